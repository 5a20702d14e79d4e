// Commits with uploaded read sets, while the server is killed: each is applied once.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Transaction, TransactionColumns, connect } from '../../src/index.js';
import { Server, sleep } from '../support/server.js';

const KEYS = 3000;
const COMMITS = 40;

test('large read sets are uploaded again after a kill, and committed once', async (t) => {
  const server = await new Server().start();
  t.after(() => server.remove());
  const db = await connect({ endpoint: server.endpoint });
  t.after(() => db.close());
  const keys = Array.from({ length: KEYS }, (_, i) => `large/${String(i).padStart(6, '0')}`);
  const session = await db.openSession();
  await session.execute(TransactionColumns.of(keys.map((key) => new Transaction().put(key, 1))));

  let working = true;
  const killing = (async () => {
    let kills = 0;
    while (working) {
      await sleep(150);
      await server.kill();
      await server.start();
      kills += 1;
    }
    return kills;
  })();
  const sums = [];
  for (let i = 0; i < COMMITS; ++i) {
    const options = { session, timeoutMs: 120_000 };
    sums.push(
      await db.run(async (tx) => {
        const values = await tx.getMany([...keys, 'count']);
        const count = (values.pop() ?? 0n) + 1n;
        tx.put('count', count);
        return values.reduce((sum, value) => sum + value, 0n) * 1000n + count;
      }, options),
    );
  }
  working = false;
  assert.ok((await killing) > 1, 'there was no kill');
  assert.deepEqual(
    sums,
    Array.from({ length: COMMITS }, (_, i) => BigInt(KEYS * 1000 + i + 1)),
  );
  assert.equal((await db.get('count')).value, BigInt(COMMITS));
});
