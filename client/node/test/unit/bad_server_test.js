// Answers that no server of this version gives: the client tells them, and never crashes or gives a wrong result.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Metadata } from '@grpc/grpc-js';

import { Transaction, TransactionColumns, connect } from '../../src/index.js';
import { decode, encode, message } from '../../src/protocol.js';
import { startFakeServer } from '../support/fake_server.js';

const committed = (index, fields = {}) =>
  message('TransactionResult', { index, outcome: 1, batch: 1n, version: 5n, ...fields });
const rows = (...results) => ({ case: 'rows', value: message('ResultRows', { results }) });
const answer = (number, results, last = true) =>
  encode('SessionResponse', message('SessionResponse', { number, last, results }));
const refusal = (number, code, detail) =>
  answer(number, {
    case: 'error',
    value: message('Error', { code, message: 'no', detail: message('ErrorDetail', detail) }),
  });

async function clientOf(t, handlers, options = {}) {
  const db = await connect({ endpoint: await startFakeServer(t, handlers), ...options });
  t.after(() => db.close());
  return db;
}

// A session whose server answers each request with what `reply` writes.
async function sessionOf(t, reply) {
  const seen = [];
  const db = await clientOf(t, {
    Session(call) {
      call.on('data', (bytes) => {
        const request = decode('SessionRequest', bytes);
        seen.push(request);
        reply(call, request, seen.length);
      });
      call.on('end', () => call.end());
    },
  });
  return { session: await db.openSession(), seen, db };
}

const put = () => new Transaction().put('k', 1);
const failure = (promise) => promise.then(assert.fail, (error) => error);

test('bytes that are no message are like a lost connection', async (t) => {
  const { session, seen } = await sessionOf(t, (call, request, count) => {
    call.write(count === 1 ? Buffer.from([0x0a, 0xff]) : answer(request.number, rows(committed(0))));
  });
  assert.equal((await session.execute(put())).version, 5n);
  assert.deepEqual(
    seen.map(({ number }) => number),
    [1n, 1n],
  );
  assert.ok(
    seen.every(({ session: id }) => id.length === 16),
    'each stream names its session',
  );
});

test('an answer that lacks results, or has too many, ends the request', async (t) => {
  const { session } = await sessionOf(t, (call, request) => {
    call.write(answer(request.number, request.number === 1n ? rows() : rows(committed(7))));
  });
  for (const number of [1n, 2n]) {
    const error = await failure(session.execute(put()));
    assert.equal(error.code, 'INTERNAL');
    assert.equal(error.request, number);
    assert.ok(!error.neverRan);
  }
});

test('a repeated answer is dropped, and so is one for a number that nobody sent', async (t) => {
  const { session } = await sessionOf(t, (call, request) => {
    call.write(answer(99n, rows(committed(0))));
    call.write(answer(request.number, rows(committed(0, { version: 8n })), false));
    call.write(answer(request.number, rows(committed(0, { version: 9n }), committed(1)), true));
  });
  const told = [];
  const results = await session.execute([put(), put()], {
    onResult: (result, index) => told.push([index, result.version]),
  });
  assert.deepEqual(
    results.map(({ version }) => version),
    [8n, 5n],
  );
  assert.deepEqual(told, [
    [0, 8n],
    [1, 5n],
  ]);
});

test('rows are no answer to columns', async (t) => {
  const { session } = await sessionOf(t, (call, request) => call.write(answer(request.number, rows(committed(0)))));
  assert.equal((await failure(session.execute(TransactionColumns.of([put()])))).code, 'INTERNAL');
});

test('a refusal with a delay is tried again under the same number, and others are not', async (t) => {
  const { session, seen } = await sessionOf(t, (call, request, count) => {
    if (count === 1) call.write(refusal(request.number, 8, { reason: 10, retryAfterUs: 50_000n, notRun: true }));
    else if (request.number === 1n) call.write(answer(request.number, rows(committed(0))));
    else call.write(refusal(request.number, 8, { reason: 15, notRun: true }));
  });
  const request = session.submit(put());
  await request.results;
  assert.equal(request.attempts, 2);
  assert.equal(request.refusals.count, 1);
  assert.ok(request.refusals.waitedUs >= 50_000n);
  await new Promise(setImmediate); // the program has the results, so they are acknowledged
  const error = await failure(session.execute(put()));
  assert.deepEqual([error.reason, error.attempts, error.neverRan], ['TABLE_FULL', 1, true]);
  assert.deepEqual(
    seen.map(({ number }) => number),
    [1n, 1n, 2n],
  );
  assert.equal(seen[2].acknowledgedThrough, 1n);
});

test('after a lost stream, a refusal does not say that nothing ran', async (t) => {
  const { session } = await sessionOf(t, (call, request, count) => {
    if (count === 1) call.emit('error', { code: 14, details: 'lost' });
    else call.write(refusal(request.number, 3, { reason: 8, notRun: true }));
  });
  const error = await failure(session.execute(put()));
  assert.equal(error.reason, 'CONTENT_DIFFERS');
  assert.equal(error.attempts, 2);
  assert.ok(!error.neverRan && !error.notRun && error.mayHaveRun);
  assert.match(error.message, /another sending of the request may have run/);
});

test('a session that is gone ends all of its requests, and later ones at once', async (t) => {
  const { session, seen } = await sessionOf(t, (call, request, count) => {
    const metadata = new Metadata();
    metadata.set(
      'kilokv-error-bin',
      Buffer.from(encode('ErrorDetail', message('ErrorDetail', { reason: 20, notRun: true }))),
    );
    if (count === 2) call.emit('error', { code: 9, details: 'gone', metadata });
  });
  const errors = await Promise.all([failure(session.execute(put())), failure(session.execute(put()))]);
  for (const error of errors) assert.equal(error.name, 'SessionUnknownError');
  const late = await failure(session.execute(put()));
  assert.equal(late.name, 'SessionUnknownError');
  assert.ok(late.neverRan);
  assert.ok(session.ended);
  assert.equal(seen.length, 2);
});

test('a malformed detail of an error leaves its code', async (t) => {
  const metadata = new Metadata();
  metadata.set('kilokv-error-bin', Buffer.from([0xff, 0xff]));
  const db = await clientOf(t, { Get: (call, callback) => callback({ code: 3, details: 'no', metadata }) });
  const error = await failure(db.get('k'));
  assert.deepEqual([error.code, error.reason], ['INVALID_ARGUMENT', '']);
});

test('without a session, only what was refused is sent again', async (t) => {
  let calls = 0;
  const full = (fields) => {
    const metadata = new Metadata();
    metadata.set(
      'kilokv-error-bin',
      Buffer.from(encode('ErrorDetail', message('ErrorDetail', { reason: 10, retryAfterUs: 1000n, ...fields }))),
    );
    return { code: 8, details: 'full', metadata };
  };
  const results = [full({ notRun: true }), full({ notRun: true }), full({})];
  const db = await clientOf(t, { Execute: (call, callback) => callback(results[calls++]) });
  const error = await failure(db.execute(put()));
  assert.equal(calls, 3);
  assert.ok(!error.neverRan);
});

test('a batch without all of its answers, or with bytes that are no message', async (t) => {
  const answers = [Buffer.alloc(0), Buffer.from([0x0a, 0xff])];
  const db = await clientOf(t, {
    ExecuteBatch(call) {
      call.write(answers.shift());
      call.end();
    },
  });
  for (let i = 0; i < 2; ++i) assert.equal((await failure(db.execute([put(), put()]))).code, 'INTERNAL');
});

test('something that speaks gRPC, and is no KiloKV server', async (t) => {
  const endpoint = await startFakeServer(t, { Status: (call, callback) => callback({ code: 12, details: 'unknown' }) });
  assert.match((await failure(connect({ endpoint }))).message, /speaks gRPC, but is not a KiloKV server/);
});

test('the trace and the token go with the calls', async (t) => {
  const token = `kilokv_${'1'.repeat(16)}_${'2'.repeat(64)}`;
  const traceparent = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
  let seen;
  const db = await clientOf(
    t,
    {
      Execute(call, callback) {
        seen = call.metadata;
        callback(null, encode('ExecuteResponse', message('ExecuteResponse', { result: committed(0) })));
      },
    },
    { token },
  );
  await db.execute(put(), { traceparent });
  assert.deepEqual([seen.get('authorization'), seen.get('traceparent')], [[`Bearer ${token}`], [traceparent]]);
});
