// Scans: pages at one boundary, in both directions.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Transaction, TransactionColumns } from '../../src/index.js';
import { freshKey, useServer } from '../support/fixtures.js';

const place = useServer();
const COUNT = 1000;
const prefix = 'page/';
const nameOf = (i) => `${prefix}${String(i).padStart(4, '0')}`;

async function filled(t) {
  const { db, session } = await place.session(t);
  await session.execute(
    TransactionColumns.of(Array.from({ length: COUNT }, (_, i) => new Transaction().put(nameOf(i), i))),
  );
  return { db, session };
}

async function read(scan) {
  const values = [];
  for await (const { value } of scan) values.push(Number(value));
  return values;
}

test('all pairs, in key order and from the last one', async (t) => {
  const { db } = await filled(t);
  const all = Array.from({ length: COUNT }, (_, i) => i);
  assert.deepEqual(await read(db.scan({ prefix, pagePairs: 300 })), all);
  assert.deepEqual(await read(db.scan({ prefix, pagePairs: 300, reverse: true })), [...all].reverse());
  assert.deepEqual(await read(db.scan({ from: nameOf(10), to: nameOf(13) })), [10, 11, 12]);
  assert.deepEqual(
    await read(db.scan({ prefix, limit: 301, pagePairs: 100, reverse: true })),
    all.slice(-301).reverse(),
  );
  assert.deepEqual(await read(db.scan({ prefix, pagePairs: 100_000 })), all); // more than the server has in a page
  assert.deepEqual(await read(db.scan({ prefix: freshKey('none') })), []);
});

test('all pages are at the boundary of the first one', async (t) => {
  const { db, session } = await filled(t);
  const scan = db.scan({ prefix, pagePairs: 100 });
  assert.equal(scan.boundary, null);
  let pages = 0;
  for await (const page of scan.pages()) {
    pages += 1;
    for (const { value, version, key } of page) {
      assert.ok(value < BigInt(COUNT), key.toString());
      assert.ok(version <= scan.boundaryVersion);
    }
    await session.execute(new Transaction().put(nameOf(COUNT - 1), COUNT + pages));
  }
  assert.ok(pages >= 10);
  assert.equal(typeof scan.boundary, 'bigint');
  assert.equal(typeof scan.batchTimeUs, 'bigint');
  await assert.rejects(read(scan), /can be read once/);
});

test('a second range at the boundary of a scan that is read', async (t) => {
  const { db, session } = await filled(t);
  const scan = db.scan({ prefix, pagePairs: 10 });
  const pages = scan.pages();
  await pages.next();
  await session.execute(new Transaction().put(nameOf(500), -1));
  const second = db.scan({ from: nameOf(500), to: nameOf(501), boundary: scan.boundary });
  assert.deepEqual(await read(second), [500]);
  await pages.return();
});

test('a scan that the program leaves gives its boundary up', async (t) => {
  const { db } = await filled(t);
  for (let i = 0; i < 30; ++i) {
    for await (const { value } of db.scan({ prefix, pagePairs: 10 })) if (value > 15n) break;
  }
  const left = db.scan({ prefix, pagePairs: 10 });
  for await (const page of left.pages()) {
    assert.equal(page.length, 10);
    break;
  }
  await assert.rejects(
    read(db.scan({ prefix, boundary: left.boundary - 1n })),
    (error) => error.reason === 'SNAPSHOT_TOO_OLD',
  );
});

test('arguments of scans', async (t) => {
  const db = await place.client(t);
  assert.throws(() => db.scan({ prefix: 'a', from: 'b' }), /not both/);
  assert.throws(() => db.scan({ limit: 0 }), /limit is 0/);
  assert.throws(() => db.scan({ reversed: true }), /no reversed/);
});

test('a prefix whose last bytes are 255', async (t) => {
  const { db, session } = await place.session(t);
  const key = Buffer.from([0x61, 0xff, 0xff, 0x01]);
  await session.execute(new Transaction().put(key, 1).put(Buffer.from([0x62]), 2));
  assert.deepEqual(await read(db.scan({ prefix: Buffer.from([0x61, 0xff, 0xff]) })), [1]);
});
