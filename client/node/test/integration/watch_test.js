// Keys that expire, and watches.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AbortError, Transaction, TransactionColumns, connect } from '../../src/index.js';
import { Server, sleep } from '../support/server.js';

async function use(t) {
  const server = await new Server().start();
  t.after(() => server.remove());
  const db = await connect({ endpoint: server.endpoint });
  t.after(() => db.close());
  return { server, db, session: await db.openSession() };
}

// Reads parts until `count` writes have come.
async function take(watch, count) {
  const writes = [];
  let last;
  for await (const part of watch) {
    writes.push(...part.writes);
    last = part;
    if (writes.length >= count) break;
  }
  return { writes, last };
}

test('keys expire after their time, as rows and as columns', async (t) => {
  const { db, session } = await use(t);
  const put = (key) => new Transaction().put(key, 1, { ttlMs: 400 });
  const result = await session.execute(put('rows'));
  await session.execute(
    TransactionColumns.of([new Transaction().get('x'), put('columns'), new Transaction().put('stays', 1)]),
  );
  await session.execute(
    new Transaction().put('late', 1, { expiresAtUs: result.batchTimeUs + 3_600_000_000n }).add('late', 1),
  );
  const expiries = new Map();
  for await (const { key, expiresAtUs } of db.scan()) expiries.set(key.toString(), expiresAtUs);
  assert.equal(expiries.get('rows'), result.batchTimeUs + 400_000n);
  assert.equal(typeof expiries.get('columns'), 'bigint');
  assert.equal(expiries.get('stays'), null);
  assert.equal(expiries.get('late'), result.batchTimeUs + 3_600_000_000n);
  await sleep(1500);
  const { reads } = await db.getMany(['rows', 'columns', 'stays', 'late']);
  assert.deepEqual(
    reads.map(({ value }) => value),
    [null, null, 1n, 2n],
  );
});

test('a watch after a scan shows each write once, over a kill of the server', async (t) => {
  const { server, db, session } = await use(t);
  await session.execute(new Transaction().put('w/a', 1).put('other', 1));
  const scan = db.scan({ prefix: 'w/' });
  for await (const { key } of scan) assert.equal(key.toString(), 'w/a');
  const watching = take(db.watch({ prefix: 'w/', after: scan.boundaryVersion }), 43);
  const versions = [];
  for (let i = 0; i < 40; ++i) {
    versions.push((await session.execute(new Transaction().put('w/n', i).put('other', i))).version);
    if (i === 20) {
      await server.kill();
      await server.start();
    }
  }
  await session.execute(new Transaction().put('w/bytes', Buffer.from([0, 255]), { ttlMs: 300 }));
  await session.execute(new Transaction().delete('w/a'));
  const { writes } = await watching;
  assert.deepEqual(
    writes.slice(0, 40).map(({ value }) => value),
    Array.from({ length: 40 }, (_, i) => BigInt(i)),
  );
  assert.deepEqual(
    writes.slice(0, 40).map(({ version }) => version),
    versions,
  );
  const [bytes, deleted, expired] = writes.slice(40);
  assert.deepEqual([bytes.value, typeof bytes.expiresAtUs], [Buffer.from([0, 255]), 'bigint']);
  assert.deepEqual([deleted.key.toString(), deleted.value, deleted.expired], ['w/a', null, false]);
  assert.deepEqual([expired.key.toString(), expired.value, expired.expired], ['w/bytes', null, true]);
});

test('a watch goes on from a position that the program has kept', async (t) => {
  const { db, session } = await use(t);
  const before = await session.execute(new Transaction().put('a', 1).put('b', 1).put('c', 1));
  const first = await take(db.watch({ after: before.version - 1n }), 3);
  assert.equal(first.writes.length, 3);
  assert.match(first.last.incarnation, /^[0-9a-f]{32}$/);
  await session.execute(new Transaction().put('d', 1));
  const { position, incarnation } = first.last;
  const second = await take(db.watch({ after: position, incarnation }), 1);
  assert.deepEqual(
    second.writes.map(({ key }) => key.toString()),
    ['d'],
  );
  const wrong = take(db.watch({ after: position, incarnation: '0'.repeat(32) }), 1);
  await assert.rejects(wrong, (error) => error.reason === 'WATCH_TOO_OLD' && error.name === 'WatchTooOldError');
});

test('a signal ends a watch, and a server that does not come back does, too', async (t) => {
  const { server, db } = await use(t);
  const signal = AbortSignal.timeout(300);
  await assert.rejects(take(db.watch({ signal }), 1), AbortError);
  const lost = take(db.watch({ reconnectMs: 500 }), 1);
  const failing = lost.then(assert.fail, (error) => error);
  await sleep(300);
  await server.kill();
  assert.equal((await failing).code, 'UNAVAILABLE');
  assert.throws(() => db.watch({ timeoutMs: 5 }), /no timeoutMs/);
  assert.throws(() => db.watch({ incarnation: 'x' }), /32 hexadecimal digits/);
});

test('a watch ends when its client is closed', async (t) => {
  const { server } = await use(t);
  const db = await connect({ endpoint: server.endpoint });
  const watching = take(db.watch(), 1).then(assert.fail, (error) => error);
  await sleep(300);
  await db.close();
  assert.equal((await watching).code, 'CANCELLED');
});
