// What the client tells about a server.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Transaction } from '../../src/index.js';
import { useServer } from '../support/fixtures.js';

const place = useServer();

test('the status has texts, counters, settings and memory', async (t) => {
  const { db, session } = await place.session(t);
  await session.execute(new Transaction().put('k', 1));
  const status = await db.status();
  assert.equal(status.state, 'ready');
  assert.match(status.version, /^\d+\.\d+/);
  assert.equal(status.device, 'cpu');
  assert.match(status.incarnation, /^[0-9a-f]{32}$/);
  assert.equal(status.counters.committed, 1n);
  assert.equal(status.counters.sessions, 1n);
  assert.ok(status.counters.durable_batch > 0n);
  assert.ok(status.memory.some(({ name, bytes }) => name === 'values' && typeof bytes === 'bigint'));
  assert.equal(typeof status.settings, 'object');
  assert.equal(status.readOnly, false);
});

test('the sessions of a server', async (t) => {
  const { db, session } = await place.session(t);
  const { sessions, count } = await db.listSessions({ limit: 5 });
  const own = sessions.find(({ id }) => id === session.id.slice(0, 8));
  assert.ok(own && count >= 1n);
  assert.deepEqual([own.leaseUs, own.holder, own.user], [60_000_000n, 0n, '']);
});

test('a call of a client that was closed is told', async (t) => {
  const db = await place.client(t);
  await db.close();
  await assert.rejects(db.get('k'), (error) => error.code === 'CANCELLED' && error.neverRan);
  await assert.rejects(db.openSession(), (error) => error.code === 'CANCELLED');
});
