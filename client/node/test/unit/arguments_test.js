// What programs may give: 64-bit numbers, bytes, options.
import assert from 'node:assert/strict';
import test from 'node:test';

import { callOptions } from '../../src/call_options.js';
import { MisuseError, Transaction, TransactionColumns, WAIT, connect, fromGet } from '../../src/index.js';
import { resolveOptions } from '../../src/options.js';

const refused = (action, words) =>
  assert.throws(action, (error) => error instanceof MisuseError && words.test(error.message));

test('a number must be a safe integer, and a bigint must fit', () => {
  for (const good of [5, -5n, 0, Number.MAX_SAFE_INTEGER, 2n ** 63n - 1n, -(2n ** 63n)])
    new Transaction().put('k', good);
  for (const wrong of [0.5, NaN, 2 ** 53, 2n ** 63n, -(2n ** 63n) - 1n, null, undefined, true, {}]) {
    refused(() => new Transaction().add('k', wrong), /delta is .* must be an integer/);
  }
  refused(() => new Transaction().guardVersion('k', 2n ** 64n), /version is/);
  refused(() => new Transaction().guardVersion('k', -1), /version is/);
});

test('the error of an argument names field, limit and value', () => {
  try {
    new Transaction({ precedence: -1 });
    assert.fail('it was accepted');
  } catch (error) {
    assert.equal(error.field, 'precedence');
    assert.match(error.limit, /from 0 to 4294967295/);
    assert.equal(error.actual, '-1');
    assert.equal(error.reason, 'OUT_OF_RANGE');
    assert.equal(error.code, 'INVALID_ARGUMENT');
    assert.ok(error.neverRan);
  }
});

test('a key is bytes, or a string of Unicode', () => {
  new Transaction()
    .get('Zürich')
    .get(Buffer.from([0, 255]))
    .get(new Uint8Array(3));
  for (const wrong of [5, null, undefined, ['a'], '\ud800']) refused(() => new Transaction().get(wrong), /key is/);
});

test('WAIT is never lost: a misspelled one is refused', () => {
  for (const wrong of ['wait', 'Wait', 1, true, null, { onFalse: WAIT }]) {
    refused(() => new Transaction().guard('k', '>=', 1, wrong), /onFalse is/);
  }
  refused(
    () => new Transaction({ waitTimeout: 5 }),
    /no waitTimeout in .*: did you mean waitTimeoutMs\? There are precedence,/,
  );
  refused(() => new Transaction({ waitTimeoutMs: -1 }), /waitTimeoutMs is -1/);
  refused(() => new Transaction({ waitTimeoutMs: '5s' }), /waitTimeoutMs is "5s"/);
  refused(() => new Transaction({ expireRunsElse: 'yes' }), /expireRunsElse/);
});

test('what does not fit in a column is refused, and not cut off', () => {
  refused(() => TransactionColumns.of([new Transaction({ precedence: 256 }).get('k')]), /precedence is 256/);
  refused(() => TransactionColumns.of([new Transaction().guardVersion('k', 2n ** 63n)]), /operand of a guard/);
});

test('a guard of time that could only wait in vain is refused', () => {
  refused(() => new Transaction().guardTimeBefore(5, WAIT), /cannot WAIT/);
});

test('an expiry is a duration or a time', () => {
  refused(
    () => new Transaction().put('k', 1, { ttl: 5 }),
    /no ttl in .*: did you mean ttlMs\? There are ttlMs, expiresAtUs/,
  );
  refused(() => new Transaction().put('k', 1, { ttlMs: 5, expiresAtUs: 5n }), /not both/);
  refused(() => new Transaction().add('k', 1, { ttlMs: -5 }), /ttlMs is -5/);
  for (const wrong of [0, 0.0001])
    refused(() => new Transaction().put('k', 1, { ttlMs: wrong }), /ttlMs is .*, and must be a microsecond/);
  refused(() => new Transaction().put('k', 1, { expiresAtUs: 0 }), /expiresAtUs is 0/);
  refused(() => new Transaction().put('k', 1, []), /the options of the operation must be an object/);
});

test('an operator must be known', () => {
  for (const wrong of ['=', '===', 'ge', 'toString', undefined])
    refused(() => new Transaction().guard('k', wrong, 1), /compare is/);
});

test('an operand names an earlier get of the same list', () => {
  new Transaction().get('a').put('b', fromGet(0));
  refused(() => new Transaction().put('a', 1).put('b', fromGet(0)), /no earlier get/);
  refused(() => new Transaction().get('a').put('b', fromGet(1)), /no earlier get/);
  refused(() => new Transaction().get('a').otherwise().put('b', fromGet(0)), /no earlier get/);
  refused(() => new Transaction().otherwise().otherwise(), /called before/);
  refused(() => new Transaction().add('a', 'text'), /delta is "text"/);
});

test('a transaction is no promise: await returns it', async () => {
  const transaction = new Transaction().get('a');
  assert.equal(await transaction, transaction);
});

test('columns must be typed arrays of the right kind', () => {
  const thenEnds = Uint32Array.of(1);
  refused(() => new TransactionColumns({ thenEnds, guardKinds: new Uint8Array(0) }), /no guardKinds/);
  refused(() => new TransactionColumns({ thenEnds, operationValue: [1n] }), /operationValue must be a BigInt64Array/);
  refused(() => new TransactionColumns({ thenEnds: new Uint32Array(0) }), /no transaction/);
  refused(() => TransactionColumns.put({ keys: 'abc', keyLength: 2, values: new BigInt64Array(1) }), /no multiple/);
  refused(
    () => TransactionColumns.put({ keys: 'abcd', keyLength: 2, values: new BigInt64Array(1) }),
    /2 keys and 1 values/,
  );
  refused(() => TransactionColumns.add({ keys: 'ab', keyLength: 2, values: [1] }), /BigInt64Array/);
  const three = TransactionColumns.get({ keys: 'aabbcc', keyLength: 2, operationsPerTransaction: 2 });
  assert.deepEqual([...three.thenEnds], [2, 3]);
});

test('options of calls', () => {
  refused(() => callOptions({ timeout: 5 }), /no timeout in the options of the call: did you mean timeoutMs\?/);
  refused(() => callOptions({ signal: {} }), /AbortSignal/);
  refused(() => callOptions({ traceparent: '00-0-0-00' }), /traceparent is malformed/);
  const trace = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
  assert.equal(callOptions({ traceparent: trace }).traceparent, trace);
  assert.throws(
    () => callOptions({ signal: AbortSignal.abort(new Error('no')) }),
    (error) => error.name === 'AbortError' && error.neverRan,
  );
});

const token = `kilokv_${'0'.repeat(16)}_${'a'.repeat(64)}`;

test('options come from the program first, and then from the environment', () => {
  assert.equal(resolveOptions({}, {}).endpoint, '127.0.0.1:7070');
  assert.equal(resolveOptions({}, { KILOKV_ENDPOINT: 'host:1' }).endpoint, 'host:1');
  assert.equal(resolveOptions({ endpoint: 'other:2' }, { KILOKV_ENDPOINT: 'host:1' }).endpoint, 'other:2');
  assert.equal(resolveOptions({}, { KILOKV_ENDPOINT: '' }).endpoint, '127.0.0.1:7070');
  assert.equal(resolveOptions({}, { KILOKV_CLIENT_TOKEN: token }).token, token);
  assert.equal(resolveOptions({}, {}).tls, null);
  assert.equal(resolveOptions({}, { KILOKV_CLIENT_TLS: '0' }).tls, null);
  assert.equal(resolveOptions({}, { KILOKV_CLIENT_TLS: '1' }).tls.caFile, '');
  assert.equal(resolveOptions({}, { KILOKV_CLIENT_TLS_CA: 'ca.pem' }).tls.caFile, 'ca.pem');
  assert.equal(
    resolveOptions({ tls: { caFile: 'mine.pem' } }, { KILOKV_CLIENT_TLS_CA: 'ca.pem' }).tls.caFile,
    'mine.pem',
  );
  assert.equal(resolveOptions({ tls: false }, { KILOKV_CLIENT_TLS: '1' }).tls, null);
});

test('wrong options are refused before anything is sent', async () => {
  for (const endpoint of ['host', 'host:', ':7070', 'host:0', 'host:65536', 'host:x']) {
    refused(() => resolveOptions({ endpoint }, {}), /not HOST:PORT/);
  }
  for (const endpoint of [7070, null]) refused(() => resolveOptions({ endpoint }, {}), /endpoint is .* a string/);
  refused(() => resolveOptions({ endpoint: 'http://host:1/' }, {}), /is not HOST:PORT: write host:1, without http:/);
  refused(() => resolveOptions({ endpont: 'host:1' }, {}), /no endpont in .*connect.*: did you mean endpoint\?/);
  refused(() => resolveOptions({}, { KILOKV_ENDPOINT: 'x' }), /KILOKV_ENDPOINT/);
  refused(() => resolveOptions({}, { KILOKV_CLIENT_TLS: 'yes' }), /KILOKV_CLIENT_TLS.*not 0 or 1/);
  refused(() => resolveOptions({ token: 'secret' }, {}), /token is malformed/);
  refused(() => resolveOptions({ token, endpoint: 'far:7070' }, {}), /no token is sent to far:7070 without TLS/);
  refused(() => resolveOptions({ token, endpoint: '127.evil.example:7070' }, {}), /without TLS/);
  refused(() => resolveOptions({ tokenFile: '/does/not/exist' }, {}), /cannot read/);
  refused(() => resolveOptions({ tls: { ca: 'x' } }, {}), /no ca in the option tls: There are caFile/);
  await assert.rejects(connect({ endPoint: '127.0.0.1:1' }), /no endPoint/);
  await assert.rejects(connect({ tls: { caFile: '/does/not/exist' } }), /authorities of the server.*cannot read/);
  await assert.rejects(connect({ tls: { certFile: 'a.pem' } }), /needs tls.keyFile/);
});
