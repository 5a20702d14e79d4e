// Wrong arguments to every function of the client: a MisuseError that names the argument, or an error of the server
// with a reason. Never an error of JavaScript or gRPC.
import assert from 'node:assert/strict';
import test from 'node:test';

import * as kilokv from '../../src/index.js';
import { useServer } from '../support/fixtures.js';

const { FAIL, KiloKVError, MisuseError, Transaction, TransactionColumns, connect, fromGet, keyNamed } = kilokv;
const WRONG = [null, -1, 1.5, 'x', '', new Uint8Array(1), [], ['x'], {}, Symbol('s'), true, NaN, 1n << 70n, () => 1];
const place = useServer();
const ID = '0'.repeat(32);
const one = () => new Transaction().add('a', 1);

// [name, call with a wrong value] for each argument of a method, where all others are right.
function positions(name, object, method, right) {
  return right.map((_, i) => [
    `${name}.${method}[${i}]`,
    (wrong) => object()[method](...right.map((value, j) => (i === j ? wrong : value))),
  ]);
}

const options = (name, names, call) =>
  names.map((option) => [`${name}.${option}`, (wrong) => call({ [option]: wrong })]);

function* ofTransactions() {
  const rights = {
    guardExists: ['k', FAIL],
    guardAbsent: ['k', FAIL],
    guard: ['k', '>=', 1, FAIL],
    guardVersion: ['k', 1, FAIL],
    guardUnchanged: ['k', 1, FAIL],
    guardBytes: ['k', 'b', FAIL],
    guardRangeUnchanged: ['a', 'b', 1, FAIL],
    guardTimeBefore: [1, FAIL],
    guardTimeAfter: [1, FAIL],
    get: ['k'],
    put: ['k', 1, {}],
    delete: ['k'],
    add: ['k', 1, {}],
    rangeGet: ['a', 'b', 1],
    rangeGetReverse: ['a', 'b', 1],
    deleteRange: ['a', 'b', 1],
  };
  for (const [method, right] of Object.entries(rights))
    yield* positions('Transaction', () => new Transaction(), method, right);
  yield ['new Transaction', (wrong) => new Transaction(wrong)];
  yield* options('new Transaction', ['precedence', 'waitTimeoutMs', 'expireRunsElse'], (o) => new Transaction(o));
  yield* options('put', ['ttlMs', 'expiresAtUs'], (o) => one().put('k', 1, o));
  yield ['fromGet', (wrong) => fromGet(wrong)];
  yield ['fromGet', (wrong) => fromGet(0, wrong)];
  yield ['keyNamed', (wrong) => keyNamed(wrong)];
  for (const method of ['put', 'add', 'get', 'delete', 'of'])
    yield [`TransactionColumns.${method}`, (wrong) => TransactionColumns[method](wrong)];
  const columns = { keys: Buffer.from('ab'), keyLength: 1, values: new BigInt64Array(2) };
  yield* options('TransactionColumns.put', ['keys', 'keyLength', 'values', 'operationsPerTransaction'], (o) =>
    TransactionColumns.put({ ...columns, ...o }),
  );
  yield ['new TransactionColumns', (wrong) => new TransactionColumns(wrong)];
  const sender = { invokeUs: 0n };
  yield ['historyLine', (wrong) => kilokv.historyLine(wrong, null, sender)];
  yield ['historyLine', (wrong) => kilokv.historyLine(one(), new Error(''), wrong)];
  yield ['historyScanLine', (wrong) => kilokv.historyScanLine(wrong, { boundary: 1n }, [], sender)];
  yield ['historyScanLine', (wrong) => kilokv.historyScanLine({}, wrong, [], sender)];
  yield ['historyScanLine', (wrong) => kilokv.historyScanLine({}, { boundary: 1n }, wrong, sender)];
}

function* ofClient(db) {
  const rights = {
    execute: [one(), {}],
    get: ['k', {}],
    getMany: [['k'], {}],
    scan: [{}],
    watch: [{}],
    begin: [{}],
    run: [() => 1, {}],
    listParked: [{}],
    cancelParked: [1, {}],
    cancel: [{ session: ID, request: 1 }, {}],
    status: [{}],
    listSessions: [{}],
    openSession: [{}],
    attachSession: [ID, {}],
  };
  for (const [method, right] of Object.entries(rights)) yield* positions('Client', () => db, method, right);
  const ofRange = ['from', 'to', 'prefix', 'signal'];
  yield* options('scan', [...ofRange, 'reverse', 'limit', 'pagePairs', 'boundary', 'traceparent'], (o) => db.scan(o));
  yield* options('watch', [...ofRange, 'after', 'incarnation', 'reconnectMs', 'idleMs'], (o) => db.watch(o));
  yield* options('cancelParked', ['client', 'keyPrefix', 'olderThanMs'], (o) => db.cancelParked(o));
  const target = { session: ID, request: 1 };
  yield* options('cancel', ['session', 'request', 'holder', 'index'], (o) => db.cancel({ ...target, ...o }));
  yield* options('openSession', ['leaseMs', 'requestsInFlightMax'], (o) => db.openSession(o));
  yield* options('attachSession', ['numbersUsed', 'requestsInFlightMax'], (o) => db.attachSession(ID, o));
  yield* options('execute', ['detached', 'signal', 'traceparent'], (o) => db.execute(one(), o));
  yield* options('run', ['attemptsMax', 'session', 'signal'], (o) => db.run(() => 1, o));
  yield* options('listSessions', ['limit'], (o) => db.listSessions(o));
}

function* ofSession(session) {
  const rights = { execute: [one(), {}], cancel: [1, 0, {}], acknowledgeThrough: [1] };
  for (const [method, right] of Object.entries(rights)) yield* positions('Session', () => session, method, right);
  yield ['Session.resume[1]', (wrong) => session.resume(1, wrong)];
  yield* options('Session.execute', ['onResult', 'signal', 'traceparent'], (o) => session.execute(one(), o));
}

function* ofInteractive(db) {
  const rights = { get: ['k'], getMany: [['k']], scan: [{}], put: ['k', 1, {}], delete: ['k'] };
  for (const [method, right] of Object.entries(rights))
    yield* positions('InteractiveTransaction', () => db.begin(), method, right);
  yield* options('InteractiveTransaction.scan', ['from', 'to', 'prefix', 'reverse', 'limit'], (o) =>
    db.begin().scan(o),
  );
  yield* options('InteractiveTransaction.put', ['ttlMs', 'expiresAtUs'], (o) => db.begin().put('k', 1, o));
}

function* ofConnect(endpoint) {
  const names = ['endpoint', 'connectTimeoutMs', 'waitForServerMs', 'requestTimeoutMs', 'backoffMinMs', 'token'];
  const close = async (o) => (await connect({ endpoint, ...o })).close();
  yield* options('connect', [...names, 'backoffMaxMs', 'tokenFile'], close);
  yield* options('connect.tls', ['caFile', 'certFile', 'keyFile', 'serverName'], (tls) => close({ tls }));
  yield ['connect', async (wrong) => (await connect(wrong)).close()];
}

async function problemsOf(name, call) {
  const problems = [];
  for (const wrong of WRONG) {
    try {
      const answer = await call(wrong);
      if (answer?.[Symbol.asyncIterator]) for await (const _ of answer) break;
    } catch (error) {
      const isClear =
        error instanceof MisuseError || (error instanceof KiloKVError && !/TypeError/.test(error.message));
      if (!isClear) problems.push(`${name}(${typeof wrong} ${String(wrong)}): ${error.name}: ${error.message}`);
    }
  }
  return problems;
}

test('a wrong argument is misuse, and never an error from below', async (t) => {
  const { db, session } = await place.session(t);
  const calls = [
    ...ofTransactions(),
    ...ofClient(db),
    ...ofSession(session),
    ...ofInteractive(db),
    ...ofConnect(place.server.endpoint),
  ];
  const problems = [];
  for (const [name, call] of calls) problems.push(...(await problemsOf(name, call)));
  assert.deepEqual(problems, []);
});

test('the words of some mistakes', async () => {
  for (const [words, mistake] of [
    [/ttlMs is 0, and must be a microsecond \(0.001\) or more/, () => new Transaction().put('k', 1, { ttlMs: 0 })],
    [/value is null, and must be an integer/, () => new Transaction().put('k', null)],
    [/bytes is 5, and must be a Uint8Array or a string/, () => new Transaction().guardBytes('k', 5)],
    [/time is "x", and must be an integer/, () => new Transaction().guardTimeAfter('x')],
    [/there is no ttl in the options of the operation: did you mean ttlMs/, () => one().put('k', 1, { ttl: 5 })],
  ])
    assert.throws(mistake, (error) => error instanceof MisuseError && words.test(error.message));
});
