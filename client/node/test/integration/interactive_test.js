// Interactive transactions: conflicts, retries, scans, own writes, large read sets.
import assert from 'node:assert/strict';
import test from 'node:test';

import { ConflictError, Transaction, TransactionColumns } from '../../src/index.js';
import { freshKey, useServer } from '../support/fixtures.js';

const place = useServer(['--guards-max', '1024']);
const texts = (pairs) => pairs.map(({ key, value }) => [key.toString(), value]);

test('run() adds up what many do at once, without a lost update', async (t) => {
  const db = await place.client(t);
  const key = freshKey();
  let bodies = 0;
  const add = (transaction) => async () => {
    bodies += 1;
    const value = (await transaction.get(key)) ?? 0n;
    transaction.put(key, value + 1n);
    return value + 1n;
  };
  const sums = await Promise.all(
    Array.from({ length: 20 }, () => db.run((transaction) => add(transaction)(), { attemptsMax: 1000 })),
  );
  assert.equal((await db.get(key)).value, 20n);
  assert.equal(new Set(sums).size, 20);
  assert.ok(bodies > 20, 'there was no conflict');
});

test('one attempt throws on a conflict, and names the key', async (t) => {
  const { db, session } = await place.session(t);
  const key = freshKey();
  const transaction = db.begin({ session });
  assert.equal(await transaction.get(key), null);
  await session.execute(new Transaction().put(key, 1));
  assert.equal(await transaction.get(key), null); // a second read gives the same
  transaction.put(key, 2);
  const error = await transaction.commit().then(assert.fail, (failure) => failure);
  assert.ok(error instanceof ConflictError);
  assert.equal(error.key.toString(), key);
  assert.equal(error.code, 'ABORTED');
  assert.ok(error.neverRan);
  assert.equal((await db.get(key)).value, 1n);
  await assert.rejects(transaction.commit(), /has ended/);
});

test('run() gives up after its attempts, and ends with what the body throws', async (t) => {
  const { db, session } = await place.session(t);
  const key = freshKey();
  let bodies = 0;
  const spoiled = async (transaction) => {
    bodies += 1;
    await transaction.get(key);
    await session.execute(new Transaction().add(key, 1));
    transaction.put(key, 0);
  };
  await assert.rejects(
    db.run(spoiled, { attemptsMax: 3 }),
    (error) => error instanceof ConflictError && /all 3 attempts/.test(error.message),
  );
  assert.equal(bodies, 3);
  const mine = new Error('mine');
  await assert.rejects(
    db.run(async () => {
      throw mine;
    }),
    (error) => error === mine,
  );
  await assert.rejects(
    db.run(async () => {}, { attemptMax: 3 }),
    /no attemptMax/,
  );
});

test('reads see own writes, and values are copies', async (t) => {
  const { db, session } = await place.session(t);
  const [a, b] = [freshKey(), freshKey()];
  await session.execute(new Transaction().put(a, 'old').put(b, 5));
  const transaction = db.begin({ session });
  (await transaction.get(a)).fill(0);
  assert.equal((await transaction.get(a)).toString(), 'old');
  const bytes = Buffer.from('new');
  transaction.put(a, bytes);
  bytes.fill(0);
  assert.equal((await transaction.get(a)).toString(), 'new');
  transaction.delete(b);
  assert.deepEqual(await transaction.getMany([a, b, freshKey()]), [Buffer.from('new'), null, null]);
  await transaction.commit();
  assert.equal(typeof transaction.version, 'bigint');
  assert.equal((await db.get(a)).value.toString(), 'new');
  assert.equal((await db.get(b)).value, null);
});

test('a scan shows own writes, forwards and backwards, with a limit', async (t) => {
  const { db, session } = await place.session(t);
  const prefix = freshKey('scan');
  const put = new Transaction();
  for (const name of ['b', 'd', 'f', 'h']) put.put(`${prefix}${name}`, 1);
  await session.execute(put);
  const transaction = db.begin({ session });
  transaction.put(`${prefix}a`, 2);
  transaction.put(`${prefix}e`, 2);
  transaction.put(`${prefix}z`, 2);
  transaction.delete(`${prefix}d`);
  const names = (pairs) =>
    texts(pairs)
      .map(([key]) => key.slice(prefix.length))
      .join('');
  assert.equal(names(await transaction.scan({ prefix })), 'abefhz');
  assert.equal(names(await transaction.scan({ prefix, limit: 3 })), 'abe');
  assert.equal(names(await transaction.scan({ prefix, reverse: true, limit: 3 })), 'zhf');
  assert.equal(names(await transaction.scan({ from: `${prefix}b`, to: `${prefix}f`, reverse: true })), 'eb');
  await transaction.commit();
});

test('a commit fails if a key came into a range that was scanned, but not beyond what was read', async (t) => {
  const { db, session } = await place.session(t);
  const prefix = freshKey('phantom');
  await session.execute(new Transaction().put(`${prefix}b`, 1).put(`${prefix}d`, 1));
  for (const [options, name, conflicts] of [
    [{}, 'c', true],
    [{ limit: 1 }, 'a', true],
    [{ limit: 1 }, 'c2', false],
    [{ limit: 1, reverse: true }, 'e', true],
    [{ limit: 1, reverse: true }, 'a2', false],
  ]) {
    const transaction = db.begin({ session });
    await transaction.scan({ prefix, ...options });
    transaction.put(freshKey(), 1);
    await session.execute(new Transaction().put(`${prefix}${name}`, 1));
    if (conflicts) await assert.rejects(transaction.commit(), ConflictError, name);
    else await transaction.commit();
    await session.execute(new Transaction().delete(`${prefix}${name}`));
  }
});

test('a large read set is uploaded, and a conflict in it is found', async (t) => {
  const { db, session } = await place.session(t);
  const prefix = freshKey('large');
  const keys = Array.from({ length: 5000 }, (_, i) => `${prefix}/${String(i).padStart(6, '0')}`);
  await session.execute(TransactionColumns.of(keys.map((key) => new Transaction().put(key, 1))));
  for (const place of [{ session }, {}]) {
    const transaction = db.begin(place);
    const values = await transaction.getMany(keys);
    assert.ok(values.every((value) => value === 1n));
    transaction.put(`${prefix}sum`, values.length);
    await transaction.commit();
    assert.equal((await db.get(`${prefix}sum`)).value, 5000n);
  }
  const transaction = db.begin({ session });
  await transaction.getMany(keys);
  await session.execute(new Transaction().add(keys[4321], 1));
  transaction.put(`${prefix}sum`, 0);
  await assert.rejects(
    transaction.commit(),
    (error) => error instanceof ConflictError && error.key.toString() === keys[4321],
  );
  assert.equal((await session.execute(new Transaction().put('after', 1))).outcome, 'COMMITTED');
});

test('a transaction with many version guards is uploaded by a session, and can be resumed', async (t) => {
  const { session } = await place.session(t);
  const transaction = new Transaction();
  for (let i = 0; i < 3000; ++i) transaction.guardVersion(`none/${i}`, 0);
  transaction.put('uploaded', 1);
  const request = session.submit(transaction);
  assert.equal((await request.results).outcome, 'COMMITTED');
  assert.equal(request.attempts, 1);
  const late = await session.execute(transaction, { timeoutMs: 0 }).then(assert.fail, (failure) => failure);
  assert.ok(late.code === 'DEADLINE_EXCEEDED' || late.attempts === 0, String(late));
});
