// A client of one server: one short method for each call of the service.
import {
  checkOptions,
  copyOf,
  sessionId,
  toBytes,
  toHex,
  toInteger,
  toKeys,
  toMicroseconds,
  toText,
  toUint64,
} from './arguments.js';
import { AttachedSession, attach } from './attach.js';
import { Backoff } from './backoff.js';
import { CALL_OPTIONS, callOptions } from './call_options.js';
import { deadlineAfter, now, sleepUntil } from './clock.js';
import { splitAnswer } from './column_codec.js';
import { Connection, Retry } from './connection.js';
import { changed, makeError, misuse, withCallerStack } from './make_errors.js';
import { InteractiveTransaction, runInteractive } from './interactive.js';
import { resolveOptions } from './options.js';
import { encode, message } from './protocol.js';
import { RowResults, contradiction, rowOfGet } from './results.js';
import { Scan } from './scan.js';
import { Session, cancelRequest } from './session.js';
import { stateOf, statusOf } from './status.js';
import { Watch } from './watch.js';
import { workOf } from './work.js';

const LIST_SESSIONS_MAX = 10_000;

const notReady = (connection, state) =>
  makeError('UNAVAILABLE', `the server at ${connection.options.endpoint} is not ready: ${state}`);

// Makes the first call. With waitForServerMs, waits until the server is ready. Otherwise accepts any KiloKV server that
// answers, in any state.
async function reachServer(connection) {
  const { endpoint, waitForServerMs, connectTimeoutMs } = connection.options;
  const waits = waitForServerMs > 0;
  const deadline = deadlineAfter(waits ? waitForServerMs : connectTimeoutMs);
  const limits = { deadline, retry: waits ? Retry.always : Retry.whereSomeoneListens };
  const backoff = new Backoff(connection.options);
  for (let last = null; ;) {
    try {
      last = stateOf(await connection.call('Status', message('StatusRequest', {}), limits));
    } catch (error) {
      if (error.code === 'PERMISSION_DENIED') return; // the server looks at rights only when it is ready
      // The time may end during a call. An earlier answer then says more than this call.
      if (error.code === 'DEADLINE_EXCEEDED' && last) throw notReady(connection, last);
      throw explainFirstError(error, endpoint);
    }
    if (!waits || last === 'ready') return;
    const again = now() + backoff.next();
    if (again >= deadline) throw notReady(connection, last);
    await sleepUntil(again);
  }
}

function explainFirstError(error, endpoint) {
  if (error.code === 'UNIMPLEMENTED')
    return changed(error, {}, `something at ${endpoint} speaks gRPC, but is not a KiloKV server`);
  if (error.code !== 'DEADLINE_EXCEEDED') return error;
  return changed(
    error,
    {},
    `no answer from ${endpoint}: the host is wrong, a firewall drops the packets, or the server hangs`,
  );
}

export async function connect(options = {}) {
  const connection = new Connection(resolveOptions(options, process.env));
  try {
    await reachServer(connection);
  } catch (error) {
    connection.close();
    throw error;
  }
  return new Client(connection);
}

export class Client {
  #connection;
  #own = null; // the promise of the session of begin() and run()
  #sessions = new Set();

  constructor(connection) {
    this.#connection = connection;
  }

  get endpoint() {
    return this.#connection.options.endpoint;
  }

  // Closes the sessions of this client, except those that stay open, and the connection.
  async close() {
    await Promise.all([...this.#sessions].map((session) => session.close()));
    this.#sessions.clear();
    this.#connection.close();
  }

  async openSession(options = {}) {
    checkOptions(options, ['leaseMs', 'requestsInFlightMax'], 'the options of openSession()');
    const { leaseMs = 0, requestsInFlightMax } = options;
    // A retry may open a second session. Nobody uses the first one, so it ends with its lease.
    const answer = await this.#call('OpenSession', { leaseUs: toMicroseconds(leaseMs, 'leaseMs') }, {});
    return this.#keep(
      new Session(this.#connection, { id: answer.session, leaseUs: answer.leaseUs }, requestsInFlightMax),
    );
  }

  async attachSession(id, options = {}) {
    checkOptions(options, ['numbersUsed', 'requestsInFlightMax'], 'the options of attachSession()');
    const used = toUint64(options.numbersUsed ?? 0n, 'numbersUsed');
    const attached = await attach(this.#connection, sessionId(id), used, this.#connection.deadline());
    const session = new Session(this.#connection, attached.identity, options.requestsInFlightMax);
    return new AttachedSession(this.#keep(session), attached);
  }

  // Executes without a session. What may have run is never sent again.
  async execute(transactions, options = {}) {
    const call = callOptions(options, ['detached']);
    const { detached = false } = options;
    if (typeof detached !== 'boolean') throw misuse('detached must be true or false', { field: 'detached' });
    const work = workOf(transactions);
    const deadline = this.#connection.deadline(call.timeoutMs, work.waitMs);
    const limits = { ...call, deadline, retry: Retry.whenRefused };
    return await withCallerStack(
      work.single ? this.#executeOne(work, detached, limits) : this.#executeMany(work, detached, limits),
    );
  }

  // Reads one key. Returns its Read.
  async get(key, options = {}) {
    return (await this.getMany([key], options)).reads[0];
  }

  // Reads keys at one moment. Returns a Result whose reads are in the order of the keys.
  async getMany(keys, options = {}) {
    const answer = await this.#call('Get', { keys: toKeys(keys) }, options);
    const results = new RowResults(1);
    results.add([rowOfGet(answer)]);
    return results.at(0);
  }

  scan(options = {}) {
    return new Scan(this.#connection, options);
  }

  watch(options = {}) {
    return new Watch(this.#connection, options);
  }

  // An interactive transaction for one attempt: its commit() throws a ConflictError.
  begin(options = {}) {
    checkOptions(options, ['session', ...CALL_OPTIONS], 'the options of begin()');
    const { session, ...call } = options;
    if (session !== undefined && !(session instanceof Session))
      throw misuse('session must be a Session', { field: 'session' });
    const send = async (transaction, limits) => (session ?? (await this.#ownSession())).execute(transaction, limits);
    const get = (keys, limits) => this.getMany(keys, limits);
    return new InteractiveTransaction(this.#connection, { get, send }, call);
  }

  // Runs `body` in an interactive transaction until it commits.
  async run(body, options = {}) {
    checkOptions(options, ['session', 'attemptsMax', ...CALL_OPTIONS], 'the options of run()');
    const { attemptsMax, ...rest } = options;
    const limits = { attemptsMax, signal: rest.signal };
    return runInteractive(() => this.begin(rest), body, limits, this.#connection.options);
  }

  async listParked(options = {}) {
    const all = [];
    for (let afterId = 0n; ;) {
      const answer = await this.#call('ListParked', { afterId }, options);
      for (const one of answer.parked) all.push(parkedOf(one));
      if (!answer.more || answer.parked.length === 0) return all;
      afterId = answer.parked.at(-1).id;
    }
  }

  // Cancels one parked transaction by its id, or all that a filter lets pass. Returns how many.
  async cancelParked(which, options = {}) {
    if (typeof which !== 'object' || which === null) {
      return this.#cancel({ case: 'parkedId', value: toUint64(which, 'id') }, options);
    }
    checkOptions(which, ['client', 'keyPrefix', 'olderThanMs'], 'the filter');
    if (Object.keys(which).length === 0) throw misuse('a filter needs a condition: client, keyPrefix or olderThanMs');
    const { client = '', keyPrefix = '', olderThanMs = 0 } = which;
    const olderThanUs = toMicroseconds(olderThanMs, 'olderThanMs');
    const filter = message('CancelParked', {
      client: toText(client, 'client'),
      keyPrefix: toBytes(keyPrefix, 'keyPrefix'),
      olderThanUs,
    });
    return this.#cancel({ case: 'parked', value: filter }, options);
  }

  // Cancels a request of a session that this client may use, such as that of a program that has gone. Returns how many.
  async cancel(which, options = {}) {
    checkOptions(which, ['session', 'holder', 'request', 'index'], 'what is to be cancelled');
    const { session, holder = 0n, request, index } = which;
    const target = {
      session: sessionId(session),
      holder: toUint64(holder, 'holder'),
      number: toUint64(request, 'request'),
    };
    return cancelRequest(this.#connection, target, index, options);
  }

  async status(options = {}) {
    return statusOf(await this.#call('Status', {}, options));
  }

  // The open sessions: those that hold the most bytes first.
  async listSessions(options = {}) {
    checkOptions(options, ['limit', ...CALL_OPTIONS], 'the options of listSessions()');
    const { limit = 100, ...call } = options;
    const answer = await this.#call('ListSessions', { limit: toInteger(limit, 'limit', 1, LIST_SESSIONS_MAX) }, call);
    return { count: answer.count, sessions: answer.sessions.map(({ $typeName, ...session }) => session) };
  }

  #keep(session) {
    for (const old of this.#sessions) if (old.ended) this.#sessions.delete(old);
    this.#sessions.add(session);
    return session;
  }

  async #ownSession() {
    this.#own ??= this.openSession();
    const opening = this.#own;
    try {
      const session = await opening;
      if (!session.ended) return session;
    } catch (error) {
      if (this.#own === opening) this.#own = null;
      throw error;
    }
    if (this.#own === opening) this.#own = null; // its lease was lost
    return this.#ownSession();
  }

  // For calls that may run twice without harm.
  async #call(name, fields, options) {
    const call = callOptions(options);
    const deadline = this.#connection.deadline(call.timeoutMs);
    const request = message(`${name}Request`, fields);
    return await withCallerStack(this.#connection.call(name, request, { ...call, deadline }));
  }

  async #cancel(target, options) {
    return (await this.#call('Cancel', { target }, options)).cancelled;
  }

  async #executeOne(work, detached, limits) {
    const request = message('ExecuteRequest', { transaction: work.messages[0], detached });
    const answer = await this.#connection.call('Execute', request, limits);
    const results = new RowResults(1);
    results.add([answer.result]);
    return results.at(0);
  }

  async #executeMany(work, detached, limits) {
    const head = encode('ExecuteBatchRequest', message('ExecuteBatchRequest', { detached }));
    const request = Buffer.concat([head, work.payload('ExecuteBatchRequest')]);
    return this.#connection.withRetries(limits, async () => {
      const collector = work.collector();
      const onAnswer = (bytes) => collector.add(splitAnswer('ExecuteBatchResponse', bytes));
      await this.#connection.readStream('ExecuteBatch', request, { ...limits, onAnswer });
      if (!collector.complete) throw contradiction('an answer to a batch');
      return collector.value();
    });
  }
}

function parkedOf(one) {
  return {
    id: one.id,
    session: toHex(one.session),
    request: one.request,
    index: one.index,
    guard: one.guard,
    guardKey: copyOf(one.guardKey),
    admittedBatch: one.admittedBatch,
    deadlineUs: one.deadlineUs,
    sinceUs: one.sinceUs,
    client: one.client,
  };
}
