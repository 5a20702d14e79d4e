#!/usr/bin/env node
// The adapter of the conformance test (tests/conformance/README.md): reads calls as lines of JSON, makes them with the
// public surface of this package, and writes the answers.
import { createInterface } from 'node:readline';

import {
  ConflictError,
  FAIL,
  KiloKVError,
  MisuseError,
  Transaction,
  TransactionColumns,
  WAIT,
  batchTime,
  commitVersion,
  connect,
  fromGet,
  keyNamed,
} from '../src/index.js';

const COMPARES = { eq: '==', ne: '!=', lt: '<', le: '<=', gt: '>', ge: '>=' };

const clients = new Map();
const sessions = new Map();
const transactions = new Map();

// Forms of the scripts -> values of the library.

const bytesOf = (form) => (typeof form === 'string' ? form : Buffer.from(form.b64, 'base64'));
const integerOf = (form) => (typeof form === 'string' && /^-?\d+$/.test(form) ? BigInt(form) : form);

function valueOf(form) {
  return typeof form === 'object' && form !== null && 'b64' in form ? bytesOf(form) : integerOf(form);
}

function operandOf(form) {
  if (form?.commit_version) return commitVersion;
  if (form?.batch_time) return batchTime;
  if (form !== null && typeof form === 'object' && 'get' in form)
    return fromGet(form.get, { negate: form.negate ?? false });
  return valueOf(form);
}

function addGuard(transaction, guard) {
  const onFalse = { fail: FAIL, wait: WAIT }[guard.when_false ?? 'fail'];
  const key = guard.key === undefined ? undefined : bytesOf(guard.key);
  switch (guard.is) {
    case 'exists':
      return transaction.guardExists(key, onFalse);
    case 'absent':
      return transaction.guardAbsent(key, onFalse);
    case 'version':
      return transaction.guardVersion(key, integerOf(guard.version), onFalse);
    case 'unchanged':
      return transaction.guardUnchanged(key, integerOf(guard.version), onFalse);
    case 'bytes_eq':
      return transaction.guardBytes(key, bytesOf(guard.value), onFalse);
    case 'range_unchanged':
      return transaction.guardRangeUnchanged(bytesOf(guard.from), bytesOf(guard.to), integerOf(guard.version), onFalse);
    case 'time_before':
    case 'time_after': {
      const time = key === undefined ? integerOf(guard.time_us) : keyNamed(key);
      return guard.is === 'time_after'
        ? transaction.guardTimeAfter(time, onFalse)
        : transaction.guardTimeBefore(time, onFalse);
    }
    default: {
      const right = guard.other === undefined ? integerOf(guard.value) : keyNamed(bytesOf(guard.other));
      return transaction.guard(key, COMPARES[guard.is] ?? guard.is, right, onFalse);
    }
  }
}

function expiryOf({ ttl_us: ttlUs, expires_at_us: expiresAtUs }) {
  return given({ ttlMs: ttlUs && Number(ttlUs) / 1000, expiresAtUs: expiresAtUs && integerOf(expiresAtUs) });
}

function addOperation(transaction, operation) {
  const range = () => [bytesOf(operation.from), bytesOf(operation.to), operation.limit];
  switch (operation.op) {
    case 'get':
      return transaction.get(bytesOf(operation.key));
    case 'delete':
      return transaction.delete(bytesOf(operation.key));
    case 'put':
      return transaction.put(bytesOf(operation.key), operandOf(operation.value), expiryOf(operation));
    case 'add':
      return transaction.add(bytesOf(operation.key), operandOf(operation.delta), expiryOf(operation));
    case 'range_get':
      return operation.reverse ? transaction.rangeGetReverse(...range()) : transaction.rangeGet(...range());
    case 'delete_range':
      return transaction.deleteRange(...range());
    default:
      throw new Error(`unknown operation ${operation.op}`);
  }
}

function transactionOf(form) {
  const transaction = new Transaction({
    precedence: form.precedence ?? 0,
    waitTimeoutMs: form.wait_timeout_ms ?? 0,
    expireRunsElse: form.expire_runs_else ?? false,
  });
  for (const guard of form.guards ?? []) addGuard(transaction, guard);
  for (const operation of form.then ?? []) addOperation(transaction, operation);
  if (form.else?.length) transaction.otherwise();
  for (const operation of form.else ?? []) addOperation(transaction, operation);
  return transaction;
}

// Values of the library -> forms of the scripts.

const isPrintable = (bytes) => bytes.every((byte) => byte >= 0x20 && byte <= 0x7e);
const keyForm = (key) => (isPrintable(key) ? key.toString('latin1') : { b64: key.toString('base64') });
const valueForm = (value) => (value instanceof Uint8Array ? { b64: value.toString('base64') } : digits(value));
const digits = (value) => (value === null ? null : String(value));

function readForm({ operation, key, value, version }) {
  return { operation, key: keyForm(key), value: valueForm(value), version: digits(version) };
}

function resultForm(result) {
  if (!result) return null;
  return {
    outcome: result.outcome,
    failed_in: result.failedIn,
    failed_index: result.failedIndex,
    guard_value: result.guardValue && readForm(result.guardValue),
    reads: result.reads.map(readForm),
    version: digits(result.version),
    batch: Number(result.batch),
    rank: result.rank,
    admitted_batch: Number(result.admittedBatch),
    batch_time_us: digits(result.batchTimeUs),
    reads_dropped: result.readsDropped,
  };
}

function watchedForm({ key, value, version, batchTimeUs, expiresAtUs, expired, batch, rank }) {
  return {
    key: keyForm(key),
    value: valueForm(value),
    version: digits(version),
    batch_time_us: digits(batchTimeUs),
    expires_at_us: digits(expiresAtUs),
    expired,
    batch: Number(batch),
    rank,
  };
}

const knownForm = ({ number, results, ...rest }) => ({
  number: Number(number),
  ...rest,
  results: results.map(resultForm),
});

function errorForm(error) {
  return {
    code: error.code,
    reason: error.reason,
    message: error.message,
    field: error.field,
    limit: error.limit,
    actual: error.actual,
    setting: error.setting,
    not_run: error.notRun,
    may_have_run: error.mayHaveRun,
    never_ran: error.neverRan,
    request: Number(error.request ?? 0),
    attempts: error.attempts,
  };
}

// The calls.

const timeout = ({ timeout_ms: timeoutMs }) => (timeoutMs === undefined ? {} : { timeoutMs });
const given = (pairs) => Object.fromEntries(Object.entries(pairs).filter(([, value]) => value !== undefined));

function contentOf(call) {
  const list = call.transactions.map(transactionOf);
  return call.encoding === 'columns' ? TransactionColumns.of(list) : list;
}

const listOf = (results) =>
  Array.isArray(results) ? results : Array.from({ length: results.size }, (_, i) => results.at(i));

async function answerOf(request) {
  const results = listOf(await request.results).map(resultForm);
  return { results, request: Number(request.number), attempts: request.attempts };
}

// Interactive transactions of a session, or of the client's own.
function placeOf(call) {
  if (call.client !== undefined) return [clients.get(call.client), {}];
  const { client, session } = sessions.get(call.session);
  return [client, { session }];
}

function keep(call, session) {
  sessions.set(call.session, { client: clients.get(call.client), session });
  return session;
}

const sessionOf = (call) => sessions.get(call.session).session;

const calls = {
  async open_client(call) {
    const { endpoint, wait_for_server_ms: waitForServerMs, request_timeout_ms: requestTimeoutMs, token } = call;
    clients.set(call.client, await connect(given({ endpoint, waitForServerMs, requestTimeoutMs, token })));
    return {};
  },
  async close_client(call) {
    await clients.get(call.client).close();
    clients.delete(call.client);
    return {};
  },
  async open_session(call) {
    const session = keep(call, await clients.get(call.client).openSession(given({ leaseMs: call.lease_ms })));
    return { session_id: session.id, holder: Number(session.holder) };
  },
  async attach_session(call) {
    const options = given({ numbersUsed: call.numbers_used });
    const attached = await clients.get(call.client).attachSession(call.session_id, options);
    const { id, holder } = keep(call, attached.session);
    const requests = attached.requests.map(knownForm);
    const acknowledged_through = Number(attached.acknowledgedThrough);
    return { session_id: id, holder: Number(holder), acknowledged_through, frozen: attached.frozen, requests };
  },
  async known_requests(call) {
    return { requests: (await sessionOf(call).knownRequests(timeout(call))).map(knownForm) };
  },
  async acknowledge_through(call) {
    sessionOf(call).acknowledgeThrough(call.request);
    return {};
  },
  async close_session(call) {
    await sessionOf(call).close({ keepOpen: call.keep_open ?? false });
    sessions.delete(call.session);
    return {};
  },
  async execute(call) {
    if (call.session !== undefined) return answerOf(sessionOf(call).submit(contentOf(call), timeout(call)));
    const options = { ...timeout(call), ...given({ detached: call.detached }) };
    return { results: listOf(await clients.get(call.client).execute(contentOf(call), options)).map(resultForm) };
  },
  async resume(call) {
    return answerOf(sessionOf(call).resume(call.request, contentOf(call), timeout(call)));
  },
  async cancel(call) {
    return { cancelled: Number(await sessionOf(call).cancel(call.request, call.index, timeout(call))) };
  },
  async get(call) {
    const result = await clients.get(call.client).getMany(call.keys.map(bytesOf), timeout(call));
    return { reads: result.reads.map(readForm), batch: Number(result.batch), rank: result.rank };
  },
  async scan(call) {
    const bound = (form) => (form === undefined ? undefined : bytesOf(form));
    const { reverse, page_pairs: pagePairs, limit } = call;
    const options = given({ from: bound(call.from), to: bound(call.to), reverse, pagePairs, limit });
    const scan = clients.get(call.client).scan({ ...options, ...timeout(call) });
    const pairs = [];
    for await (const { key, value, version, expiresAtUs } of scan) {
      const expires_at_us = digits(expiresAtUs);
      pairs.push({ key: keyForm(key), value: valueForm(value), version: digits(version), expires_at_us });
    }
    return { pairs, boundary: Number(scan.boundary), boundary_version: digits(scan.boundaryVersion) };
  },
  async watch(call) {
    const bound = (form) => (form === undefined ? undefined : bytesOf(form));
    const after = call.after && { version: integerOf(call.after.version), writes: call.after.writes };
    const { incarnation, reconnect_ms: reconnectMs } = call;
    const options = given({ from: bound(call.from), to: bound(call.to), after, incarnation, reconnectMs });
    const writes = [];
    for await (const part of clients.get(call.client).watch(options)) {
      writes.push(...part.writes.map(watchedForm));
      if (writes.length < call.count) continue;
      const { version, writes: count } = part.position;
      const position = { version: digits(version), writes: count };
      return { writes, position, unfinished: part.unfinished, incarnation: part.incarnation };
    }
  },
  async list_parked(call) {
    const parked = await clients.get(call.client).listParked(timeout(call));
    return {
      parked: parked.map(({ id, request, index, guard, guardKey, client }) => {
        return { parked_id: Number(id), request: Number(request), index, guard, guard_key: keyForm(guardKey), client };
      }),
    };
  },
  async cancel_parked(call) {
    const filter = given({
      client: call.of_client,
      keyPrefix: call.prefix && bytesOf(call.prefix),
      olderThanMs: call.older_than_ms,
    });
    return { cancelled: Number(await clients.get(call.client).cancelParked(call.parked_id ?? filter, timeout(call))) };
  },
  async status(call) {
    const { state, version, counters } = await clients.get(call.client).status(timeout(call));
    return {
      state,
      version,
      counters: Object.fromEntries(Object.entries(counters).map(([name, n]) => [name, Number(n)])),
    };
  },
  async list_sessions(call) {
    const { count, sessions: list } = await clients.get(call.client).listSessions(timeout(call));
    return {
      count: Number(count),
      sessions: list.map((one) => {
        return { id: one.id, requests: Number(one.requests), acknowledged_through: Number(one.acknowledgedThrough) };
      }),
    };
  },
  async begin(call) {
    const [client, options] = placeOf(call);
    transactions.set(call.transaction, client.begin({ ...options, ...timeout(call) }));
    return {};
  },
  async read(call) {
    return { values: (await transactions.get(call.transaction).getMany(call.keys.map(bytesOf))).map(valueForm) };
  },
  async scan_in(call) {
    const bound = (form) => (form === undefined ? undefined : bytesOf(form));
    const { reverse, limit } = call;
    const options = given({ from: bound(call.from), to: bound(call.to), reverse, limit });
    const pairs = await transactions.get(call.transaction).scan(options);
    return { pairs: pairs.map(({ key, value }) => ({ key: keyForm(key), value: valueForm(value) })) };
  },
  async write(call) {
    const transaction = transactions.get(call.transaction);
    if (call.value === null) transaction.delete(bytesOf(call.key));
    else transaction.put(bytesOf(call.key), valueOf(call.value), expiryOf(call));
    return {};
  },
  async commit(call) {
    const transaction = transactions.get(call.transaction);
    try {
      await transaction.commit();
      return { committed: true, version: digits(transaction.version) };
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      return { committed: false, key: keyForm(error.key) };
    }
  },
  async run_add(call) {
    const [client, options] = placeOf(call);
    const key = bytesOf(call.key);
    const sum = await client.run(async (transaction) => {
      const value = ((await transaction.get(key)) ?? 0n) + BigInt(call.delta);
      transaction.put(key, value);
      return value;
    }, options);
    return { value: digits(sum) };
  },
};

async function answer(line) {
  const { id, call, ...fields } = JSON.parse(line);
  let outcome;
  try {
    outcome = calls[call] ? { ok: await calls[call](fields) } : { unsupported: `the library has no ${call}` };
  } catch (error) {
    if (error instanceof MisuseError) outcome = { misuse: error.message };
    else if (error instanceof KiloKVError) outcome = { error: errorForm(error) };
    else throw error;
  }
  process.stdout.write(`${JSON.stringify({ id, ...outcome })}\n`);
}

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => void answer(line));
lines.on('close', () => process.exit(0));
