// Transactions against a real server: guards, operations, waits, ends of waits.
import assert from 'node:assert/strict';
import test from 'node:test';

import {
  AbortError,
  OutOfRangeError,
  Transaction,
  TransactionColumns,
  WAIT,
  batchTime,
  commitVersion,
  fromGet,
  keyNamed,
} from '../../src/index.js';
import { freshKey, useServer } from '../support/fixtures.js';
import { sleep, until } from '../support/server.js';

const place = useServer();

const parkedOn = async (db, key) => (await db.listParked()).filter((one) => one.guardKey.toString() === key);

test('integers and bytes of all kinds come back as they were written', async (t) => {
  const { db, session } = await place.session(t);
  const key = freshKey();
  const values = [0n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n, Buffer.from([0, 255, 128]), Buffer.alloc(0)];
  for (const value of values) {
    const result = await session.execute(new Transaction().put(key, value).get(key));
    assert.equal(result.outcome, 'COMMITTED');
    assert.deepEqual(result.reads[0].value, value);
    assert.equal(result.reads[0].version, null); // its own write
    const read = await db.get(key);
    assert.deepEqual([read.value, read.version, read.key.toString()], [value, result.version, key]);
  }
  await session.execute(new Transaction().put(key, 'Zürich'));
  assert.deepEqual((await db.get(key)).value, Buffer.from('Zürich'));
  assert.deepEqual((await db.get(freshKey())).value, null);
});

test('keys are bytes, also those that are no UTF-8', async (t) => {
  const { db, session } = await place.session(t);
  const key = Buffer.from([0xff, 0x00, 0xc3, 0x28]);
  await session.execute(new Transaction().put(key, 5));
  const read = await db.get(key);
  assert.deepEqual(read.key, key);
  assert.equal(read.value, 5n);
});

test('operands: of a get, the version, the time', async (t) => {
  const { session } = await place.session(t);
  const [a, b, c, d] = [freshKey(), freshKey(), freshKey(), freshKey()];
  await session.execute(new Transaction().put(a, 30));
  const transaction = new Transaction()
    .get(a)
    .add(b, fromGet(0, { negate: true }))
    .put(c, commitVersion)
    .put(d, batchTime);
  const result = await session.execute(transaction.get(b).get(c).get(d));
  assert.deepEqual(
    result.reads.map((read) => read.value),
    [30n, -30n, result.version, result.batchTimeUs],
  );
});

test('else-operations run after a guard that fails', async (t) => {
  const { session } = await place.session(t);
  const [stock, misses] = [freshKey('stock'), freshKey('misses')];
  const transaction = new Transaction()
    .guardAbsent(misses)
    .guard(stock, '>=', 1)
    .add(stock, -1)
    .otherwise()
    .get(stock)
    .add(misses, 1);
  const result = await session.execute(transaction);
  assert.equal(result.outcome, 'GUARD_FAILED');
  assert.ok(!result.committed);
  assert.deepEqual([result.failedIn, result.failedIndex], ['guards', 1]);
  assert.deepEqual(
    [result.guardValue.key.toString(), result.guardValue.value, result.guardValue.version],
    [stock, null, 0n],
  );
  assert.equal(result.reads.length, 1);
  assert.notEqual(result.version, null);
});

test('TYPE_MISMATCH and OVERFLOW name the operation', async (t) => {
  const { session } = await place.session(t);
  const [text, number] = [freshKey(), freshKey()];
  await session.execute(new Transaction().put(text, 'text').put(number, 2n ** 63n - 1n));
  const [mismatch, overflow] = await session.execute([
    new Transaction().get(number).add(text, 1),
    new Transaction().add(number, 1),
  ]);
  assert.deepEqual([mismatch.outcome, mismatch.failedIn, mismatch.failedIndex], ['TYPE_MISMATCH', 'then', 1]);
  assert.deepEqual([overflow.outcome, overflow.failedIn, overflow.failedIndex], ['OVERFLOW', 'then', 0]);
});

test('ranges: forwards, backwards, and deleted', async (t) => {
  const { session } = await place.session(t);
  const prefix = freshKey('range');
  await session.execute(new Transaction().put(`${prefix}a`, 1).put(`${prefix}b`, 2).put(`${prefix}c`, 3));
  const end = `${prefix}z`;
  const result = await session.execute(
    new Transaction()
      .rangeGet(prefix, end, 2)
      .rangeGetReverse(prefix, end, 2)
      .deleteRange(prefix, end, 1)
      .rangeGet(prefix, end, 9),
  );
  assert.deepEqual(
    result.reads.map((read) => [read.operation, read.value]),
    [
      [0, 1n],
      [0, 2n],
      [1, 3n],
      [1, 2n],
      [3, 2n],
      [3, 3n],
    ],
  );
});

test('a guard that compares two keys', async (t) => {
  const { session } = await place.session(t);
  const [a, b] = [freshKey(), freshKey()];
  await session.execute(new Transaction().put(a, 1).put(b, 2));
  assert.equal((await session.execute(new Transaction().guard(a, '<', keyNamed(b)))).outcome, 'COMMITTED');
  assert.equal((await session.execute(new Transaction().guard(b, '<', keyNamed(a)))).outcome, 'GUARD_FAILED');
});

test('WAIT waits on the server, as rows and as columns, and ends when the guard holds', async (t) => {
  const { db, session } = await place.session(t);
  for (const asColumns of [false, true]) {
    const key = freshKey('account');
    const withdrawal = new Transaction({ waitTimeoutMs: 20_000 }).guard(key, '>=', 50, WAIT).add(key, -50);
    const request = session.submit(asColumns ? TransactionColumns.of([withdrawal]) : withdrawal);
    const [parked] = await until(async () => {
      const list = await parkedOn(db, key);
      return list.length > 0 && list;
    }, 'the withdrawal is parked');
    assert.equal(parked.request, request.number);
    assert.equal(typeof parked.deadlineUs, 'bigint');
    await session.execute(new Transaction().add(key, 80));
    const answer = await request.results;
    const result = asColumns ? answer.at(0) : answer;
    assert.equal(result.outcome, 'COMMITTED');
    assert.ok(result.admittedBatch < result.batch);
    assert.equal((await db.get(key)).value, 30n);
  }
});

test('WAIT expires after its time, and not before', async (t) => {
  const { session } = await place.session(t);
  const began = Date.now();
  const result = await session.execute(new Transaction({ waitTimeoutMs: 300 }).guardExists(freshKey(), WAIT));
  assert.equal(result.outcome, 'WAIT_EXPIRED');
  assert.ok(Date.now() - began >= 290);
  assert.equal(result.failedIndex, 0);
});

test('with expireRunsElse, the else-operations run when the wait was in vain', async (t) => {
  const { db, session } = await place.session(t);
  const [seats, away] = [freshKey('seats'), freshKey('away')];
  const transaction = new Transaction({ waitTimeoutMs: 100, expireRunsElse: true });
  transaction.guard(seats, '>=', 1, WAIT).add(seats, -1).otherwise().add(away, 1).get(away);
  for (const content of [transaction, TransactionColumns.of([transaction])]) {
    const answer = await session.execute(content);
    const result = content === transaction ? answer : answer.at(0);
    assert.equal(result.outcome, 'WAIT_EXPIRED');
    assert.notEqual(result.version, null);
    assert.equal(result.reads.length, 1);
  }
  assert.equal((await db.get(away)).value, 2n);
});

test('a transaction that waits does not hold back the others of its request', async (t) => {
  const { session } = await place.session(t);
  const key = freshKey();
  const seen = [];
  const both = [
    new Transaction({ waitTimeoutMs: 20_000 }).guardExists(key, WAIT),
    new Transaction().put(freshKey(), 1),
  ];
  const request = session.submit(both, { onResult: (result, index) => seen.push([index, result.outcome]) });
  await until(() => seen.length === 1, 'the first answer');
  assert.deepEqual(seen, [[1, 'COMMITTED']]);
  await session.execute(new Transaction().put(key, 1));
  const results = await request.results;
  assert.deepEqual(seen, [
    [1, 'COMMITTED'],
    [0, 'COMMITTED'],
  ]);
  assert.equal(results.length, 2);
  assert.equal(results[0].index, 0);
});

test('cancel ends a wait', async (t) => {
  const { db, session } = await place.session(t);
  const key = freshKey();
  const request = session.submit(new Transaction({ waitTimeoutMs: 60_000 }).guardExists(key, WAIT).put(key, 1));
  await until(async () => (await parkedOn(db, key)).length === 1, 'it is parked');
  assert.equal(await request.cancel(), 1n);
  assert.equal((await request.results).outcome, 'CANCELLED');
  assert.equal(await request.cancel(), 0n);
});

test('parked transactions are cancelled by id and by filter', async (t) => {
  const { db, session } = await place.session(t);
  const prefix = freshKey('cancel');
  const wait = (name) =>
    session.submit(new Transaction({ waitTimeoutMs: 60_000 }).guardExists(`${prefix}${name}`, WAIT));
  const requests = [wait('a'), wait('b'), wait('c')];
  await until(
    async () => (await db.listParked()).filter((one) => one.guardKey.toString().startsWith(prefix)).length === 3,
    'three wait',
  );
  const [first] = await parkedOn(db, `${prefix}a`);
  assert.equal(await db.cancelParked(first.id), 1n);
  assert.equal(await db.cancelParked({ keyPrefix: prefix, olderThanMs: 600_000 }), 0n);
  assert.equal(await db.cancelParked({ keyPrefix: prefix }), 2n);
  for (const request of requests) assert.equal((await request.results).outcome, 'CANCELLED');
});

test('a signal ends the wait here and on the server, and the request can be resumed', async (t) => {
  const { db, session } = await place.session(t);
  const key = freshKey();
  const transaction = new Transaction({ waitTimeoutMs: 60_000 }).guardExists(key, WAIT).put(key, 2);
  const stop = new AbortController();
  const waiting = session.execute(transaction, { signal: stop.signal });
  await until(async () => (await parkedOn(db, key)).length === 1, 'it is parked');
  stop.abort(new Error('the user has left'));
  const error = await waiting.then(assert.fail, (failure) => failure);
  assert.ok(error instanceof AbortError);
  assert.equal(error.cause.message, 'the user has left');
  assert.ok(!error.neverRan);
  await until(async () => (await parkedOn(db, key)).length === 0, 'it is not parked any more');
  assert.equal((await session.resume(error.request, transaction).results).outcome, 'CANCELLED');
});

test('a deadline ends the request, and a resumption gets its result', async (t) => {
  const { session } = await place.session(t);
  const key = freshKey();
  const transaction = new Transaction({ waitTimeoutMs: 20_000 }).guardExists(key, WAIT).add(key, 1);
  const error = await session.execute(transaction, { timeoutMs: 200 }).then(assert.fail, (failure) => failure);
  assert.equal(error.code, 'DEADLINE_EXCEEDED');
  assert.equal(error.attempts, 1);
  assert.ok(!error.neverRan);
  await session.execute(new Transaction().put(key, 5));
  assert.equal((await session.resume(error.request, transaction).results).outcome, 'COMMITTED');
  assert.throws(() => session.resume(error.request, transaction), /cannot be resumed/);
});

test('without a session: one, many, columns, and a wait that ends with its call', async (t) => {
  const db = await place.client(t);
  const key = freshKey();
  assert.equal((await db.execute(new Transaction().put(key, 1))).outcome, 'COMMITTED');
  const results = await db.execute([new Transaction().add(key, 1), new Transaction().add(key, 1)]);
  assert.deepEqual(
    results.map((one) => one.outcome),
    ['COMMITTED', 'COMMITTED'],
  );
  assert.equal((await db.execute(TransactionColumns.get({ keys: key, keyLength: key.length }))).integers()[0], 3n);
  const other = freshKey();
  const stop = new AbortController();
  const waiting = db.execute(new Transaction({ waitTimeoutMs: 60_000 }).guardExists(other, WAIT), {
    signal: stop.signal,
  });
  await until(async () => (await parkedOn(db, other)).length === 1, 'it is parked');
  stop.abort();
  await assert.rejects(waiting, AbortError);
  await until(async () => (await parkedOn(db, other)).length === 0, 'the server has cancelled it');
});

test('a detached transaction goes on after its call', async (t) => {
  const db = await place.client(t);
  const [key, done] = [freshKey(), freshKey()];
  const stop = new AbortController();
  const transaction = new Transaction({ waitTimeoutMs: 60_000 }).guardExists(key, WAIT).put(done, 1);
  const waiting = db.execute(transaction, { signal: stop.signal, detached: true });
  await until(async () => (await parkedOn(db, key)).length === 1, 'it is parked');
  stop.abort();
  await assert.rejects(waiting, AbortError);
  await sleep(100);
  await db.execute(new Transaction().put(key, 1));
  await until(async () => (await db.get(done)).value === 1n, 'it has run');
});

test('an error names field, limit, actual value and setting', async (t) => {
  const { session } = await place.session(t);
  const error = await session
    .execute(new Transaction().put('k'.repeat(2000), 1))
    .then(assert.fail, (failure) => failure);
  assert.ok(error instanceof OutOfRangeError);
  assert.match(error.field, /key/);
  assert.match(error.limit, /1024/);
  assert.match(error.actual, /2000/);
  assert.equal(error.setting, '--key-bytes-max');
  assert.ok(error.neverRan);
  await assert.rejects(session.execute([]), /no transaction/);
  assert.equal((await session.execute(new Transaction().put(freshKey(), 1))).outcome, 'COMMITTED');
});

test('many small requests at once', async (t) => {
  const { db, session } = await place.session(t);
  const key = freshKey();
  const results = await Promise.all(Array.from({ length: 3000 }, () => session.execute(new Transaction().add(key, 1))));
  assert.ok(results.every((result) => result.committed));
  assert.equal(new Set(results.map((result) => result.version)).size, 3000);
  assert.equal((await db.get(key)).value, 3000n);
});

test('the stack of an error names the line of the program', async (t) => {
  const { db, session } = await place.session(t);
  const wrong = () => new Transaction().put('k'.repeat(2000), 1);
  async function callerOfThisTest(call) {
    await call();
  }
  for (const call of [() => session.execute(wrong()), () => db.execute(wrong()), () => db.get('k'.repeat(2000))]) {
    const error = await callerOfThisTest(call).then(assert.fail, (failure) => failure);
    assert.match(error.stack, /OutOfRangeError: .*callerOfThisTest/s);
  }
});
