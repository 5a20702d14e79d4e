// Sessions: retries that are applied once, kills of the server, attaching, leases.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Transaction, WAIT, connect } from '../../src/index.js';
import { SessionFencedError, SessionUnknownError, UnavailableError } from '../../src/errors.js';
import { freshKey } from '../support/fixtures.js';
import { Server, sleep, until } from '../support/server.js';

async function use(t, flags = []) {
  const server = await new Server(flags).start();
  t.after(() => server.remove());
  const db = await connect({ endpoint: server.endpoint });
  t.after(() => db.close());
  return { server, db };
}

test('requests go on over a kill of the server, and each is applied once', async (t) => {
  const { server, db } = await use(t);
  const session = await db.openSession();
  const key = freshKey();
  const requests = [];
  for (let i = 0; i < 400; ++i) {
    requests.push(session.submit(new Transaction().add(key, 1).get(key)));
    if (i % 100 === 50) {
      await server.kill();
      await server.start({ wait: false });
    }
    await sleep(1);
  }
  const results = await Promise.all(requests.map((request) => request.results));
  assert.deepEqual(
    results.map((result) => result.reads[0].value).sort((a, b) => (a < b ? -1 : 1)),
    Array.from({ length: 400 }, (_, i) => BigInt(i + 1)),
  );
  assert.equal((await db.get(key)).value, 400n);
  assert.ok(
    requests.some((request) => request.attempts > 1),
    'no request was sent again: the kills came at no good time',
  );
});

test('the client is back soon after a long absence of the server', async (t) => {
  const { server, db } = await use(t);
  const session = await db.openSession();
  await server.kill();
  const pending = session.execute(new Transaction().put('k', 1));
  await assert.rejects(db.get('k', { timeoutMs: 300 }), UnavailableError);
  await sleep(6000); // long enough for gRPC's own delays to grow to many seconds
  await server.start();
  const ready = Date.now();
  assert.equal((await pending).outcome, 'COMMITTED');
  assert.equal((await db.get('k')).value, 1n);
  assert.ok(Date.now() - ready < 2500, `${Date.now() - ready} ms after the server was ready`);
});

test('a wait starts again after a kill of the server', async (t) => {
  const { server, db } = await use(t);
  const session = await db.openSession();
  const key = freshKey();
  const waiting = session.execute(new Transaction({ waitTimeoutMs: 60_000 }).guard(key, '>=', 10, WAIT).add(key, -10));
  await until(async () => (await db.listParked()).length === 1, 'it is parked');
  await server.kill();
  await server.start();
  await until(async () => (await db.listParked()).length === 1, 'it is parked again');
  await session.execute(new Transaction().put(key, 15));
  assert.equal((await waiting).outcome, 'COMMITTED');
  assert.equal((await db.get(key)).value, 5n);
});

test('without a session, a lost answer is told as one whose outcome is unknown', async (t) => {
  const { server, db } = await use(t);
  const waiting = db.execute(new Transaction({ waitTimeoutMs: 60_000 }).guardExists('never', WAIT).put('k', 1));
  const failing = waiting.then(assert.fail, (failure) => failure);
  await until(async () => (await db.listParked()).length === 1, 'it is parked');
  await server.kill();
  const error = await failing;
  assert.ok(error instanceof UnavailableError, String(error));
  assert.ok(!error.neverRan);
  assert.match(error.message, /the connection to .* was closed/);
});

test('a client that attaches learns what became of the requests, and fences the one before', async (t) => {
  const { server, db } = await use(t);
  const before = await connect({ endpoint: server.endpoint });
  const session = await before.openSession();
  assert.equal(session.holder, 0n);
  const key = freshKey();
  const waiting = session.submit(new Transaction({ waitTimeoutMs: 60_000 }).guardExists(key, WAIT).put('paid', 1));
  waiting.results.catch(() => {});
  await until(async () => (await db.listParked()).length === 1, 'it is parked');
  await session.execute(new Transaction().put('sent', 7).get('sent'));

  const attached = await db.attachSession(session.id, { numbersUsed: 5 });
  assert.equal(attached.session.holder, 1n);
  assert.equal(attached.session.id, session.id);
  assert.equal(attached.stateOf(1), 'parked');
  assert.equal(attached.stateOf(2n), 'decided');
  assert.equal(attached.stateOf(3), 'not_known');
  assert.equal(attached.frozen, false);
  assert.equal(attached.acknowledgedThrough, 0n);
  const [parked, decided] = attached.requests;
  assert.deepEqual([parked.number, parked.transactions, parked.parked, parked.results], [1n, 1, 1, [undefined]]);
  assert.equal(decided.results[0].reads[0].value, 7n);

  const error = await session.execute(new Transaction().put('late', 1)).then(assert.fail, (failure) => failure);
  assert.ok(error instanceof SessionFencedError, String(error));
  await assert.rejects(session.execute(new Transaction().put('late', 1)), SessionFencedError);
  await before.close();

  const request = attached.session.submit(new Transaction().put(key, 1));
  assert.equal(request.number, 6n); // after those that the program before may have used
  await request.results;
  const known = await until(async () => {
    const list = await attached.session.knownRequests();
    return list[0].state === 'decided' && list;
  }, 'the request that waited is decided');
  assert.equal(known[0].results[0].outcome, 'COMMITTED');
  const same = new Transaction({ waitTimeoutMs: 60_000 }).guardExists(key, WAIT).put('paid', 1);
  assert.equal((await attached.session.resume(1, same).results).outcome, 'COMMITTED');
  assert.equal((await attached.session.resume(4, new Transaction().put('new', 1)).results).outcome, 'COMMITTED');
  attached.session.acknowledgeThrough(5);
  await attached.session.execute(new Transaction().get(key));
  const kept = await attached.session.knownRequests();
  assert.ok(kept.length > 0 && kept.every(({ number }) => number > 5n));
});

test('only a session that was attached knows its requests', async (t) => {
  const { db } = await use(t);
  const session = await db.openSession();
  await assert.rejects(session.knownRequests(), /only a client that has attached/);
  await assert.rejects(db.attachSession('00'), /32 hexadecimal digits/);
  await assert.rejects(db.attachSession('0'.repeat(32)), SessionUnknownError);
});

test('a session that stays open can be attached to, and one that was closed cannot', async (t) => {
  const { db } = await use(t);
  const [open, closed] = [await db.openSession(), await db.openSession()];
  await open.close({ keepOpen: true });
  await closed.close();
  await assert.rejects(
    open.execute(new Transaction().get('k')),
    (error) => error.code === 'CANCELLED' && error.neverRan,
  );
  assert.equal((await db.attachSession(open.id)).session.holder, 1n);
  await assert.rejects(db.attachSession(closed.id), SessionUnknownError);
});

test('the lease is renewed while the client is there, and the session ends without it', async (t) => {
  const { server, db } = await use(t);
  const session = await db.openSession({ leaseMs: 1000 });
  await sleep(4000);
  assert.equal((await session.execute(new Transaction().put('k', 1))).outcome, 'COMMITTED');
  const other = await connect({ endpoint: server.endpoint });
  const left = await other.openSession({ leaseMs: 1000 });
  await left.close({ keepOpen: true });
  await other.close();
  const openSessions = async () => (await db.listSessions()).sessions.map(({ id }) => id);
  await until(async () => !(await openSessions()).includes(left.id.slice(0, 8)), 'the lease ends');
  await assert.rejects(db.attachSession(left.id), SessionUnknownError);
});

test('a request in flight ends as cancelled when its session is closed', async (t) => {
  const { db } = await use(t);
  const session = await db.openSession();
  const waiting = session.execute(new Transaction({ waitTimeoutMs: 60_000 }).guardExists('never', WAIT));
  await until(async () => (await db.listParked()).length === 1, 'it is parked');
  const ended = assert.rejects(
    waiting,
    (error) => error.code === 'CANCELLED' && !error.neverRan && error.request === 1n,
  );
  await session.close();
  await ended;
});

test('numbers are acknowledged, so that the server keeps few results', async (t) => {
  const { db } = await use(t);
  const session = await db.openSession();
  for (let i = 0; i < 300; ++i) await session.execute(new Transaction().add('k', 1));
  const { sessions, count } = await db.listSessions();
  assert.equal(count, 1n);
  assert.equal(sessions[0].id, session.id.slice(0, 8));
  assert.ok(sessions[0].acknowledgedThrough >= 298n, String(sessions[0].acknowledgedThrough));
});

test('a full server is told apart, and requests are sent again until there is room', async (t) => {
  const { db } = await use(t, ['--session-requests-max', '4']);
  const session = await db.openSession();
  const requests = Array.from({ length: 200 }, () => session.submit(new Transaction().add('k', 1)));
  const results = await Promise.all(requests.map((request) => request.results));
  assert.ok(results.every((result) => result.committed));
  assert.equal((await db.get('k')).value, 200n);
  const refusals = requests.reduce((sum, request) => sum + request.refusals.count, 0);
  assert.ok(refusals > 0, 'the server was never full');
  assert.equal(
    requests.reduce((sum, request) => sum + request.refusals.early, 0),
    0,
  );
});

test('a deadline on a full server tells the refusal', async (t) => {
  const { db } = await use(t, ['--parked-max', '1']);
  const session = await db.openSession();
  const wait = () => new Transaction({ waitTimeoutMs: 60_000 }).guardExists('never', WAIT);
  session.submit(wait()).results.catch(() => {});
  await until(async () => (await db.listParked()).length === 1, 'it is parked');
  const error = await session.execute(wait(), { timeoutMs: 500 }).then(assert.fail, (failure) => failure);
  assert.equal(error.reason, 'PARKED_FULL');
  assert.equal(error.name, 'ParkedFullError');
  assert.ok(error.neverRan);
  assert.match(error.message, /the deadline passed after \d+ attempts/);
});
