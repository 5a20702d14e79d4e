// Transactions as people write them, the messages of the protocol, and numbers as people read them.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ApiError, errorOfAnswer, kindOfError } from '../../../server/console/page/api.js';
import { parseEntry } from '../../../server/console/page/bank.js';
import { parseJson, writeJson } from '../../../server/console/page/exact_json.js';
import * as numbers from '../../../server/console/page/numbers.js';
import { fateOf } from '../../../server/console/page/result.js';
import { checkSize, requestOf } from '../../../server/console/page/transaction.js';

const LARGEST = 9223372036854775807n;
const message = (text) => requestOf(parseJson(text)).transaction;

test('64-bit integers stay exact in JSON', () => {
  const parsed = parseJson(`{"a": 9223372036854775807, "b": [-9223372036854775808, 1], "c": 1.5, "text": "12 \\" 3"}`);
  assert.deepEqual(parsed, { a: LARGEST, b: [-LARGEST - 1n, 1n], c: 1.5, text: '12 " 3' });
  assert.deepEqual(parseJson(writeJson(parsed)), parsed);
  assert.throws(() => parseJson('{"a": }'), /This is no JSON/);
});

test('guards become messages', () => {
  const { guards } = message(`{"guards": [
    {"key": "a", "is": "ge", "value": 50, "when_false": "wait"},
    {"key": {"b64": "/w=="}, "is": "eq", "other": "b"},
    {"key": "a", "is": "version", "version": 7},
    {"key": "a", "is": "bytes_eq", "value": "x"},
    {"is": "range_unchanged", "from": "a", "to": "b", "version": 9},
    {"is": "time_before", "time_us": 5},
    {"is": "time_after", "key": "t"},
    {"key": "a", "is": "exists"}]}`);
  assert.deepEqual(guards, [
    { kind: 'GUARD_KIND_GREATER_EQUAL', on_false: 'ON_FALSE_WAIT', integer: '50', key: 'YQ==' },
    { kind: 'GUARD_KIND_EQUAL', on_false: 'ON_FALSE_FAIL', other_key: 'Yg==', key: '/w==' },
    { kind: 'GUARD_KIND_VERSION_EQUAL', on_false: 'ON_FALSE_FAIL', version: '7', key: 'YQ==' },
    { kind: 'GUARD_KIND_BYTES_EQUAL', on_false: 'ON_FALSE_FAIL', bytes: 'eA==', key: 'YQ==' },
    {
      kind: 'GUARD_KIND_RANGE_UNCHANGED',
      on_false: 'ON_FALSE_FAIL',
      version: '9',
      range: { from: 'YQ==', to: 'Yg==' },
    },
    { kind: 'GUARD_KIND_TIME_BEFORE', on_false: 'ON_FALSE_FAIL', time_us: '5' },
    { kind: 'GUARD_KIND_TIME_AFTER', on_false: 'ON_FALSE_FAIL', key: 'dA==' },
    { kind: 'GUARD_KIND_EXISTS', on_false: 'ON_FALSE_FAIL', key: 'YQ==' },
  ]);
});

test('operations and options become messages', () => {
  const { then, ...rest } =
    message(`{"precedence": 3, "wait_timeout_ms": 1.5, "expire_runs_else": true, "else": [{"op": "delete", "key": "a"}], "then": [
    {"op": "get", "key": "a"},
    {"op": "put", "key": "a", "value": {"get": 0, "negate": true}, "ttl_us": 5},
    {"op": "put", "key": "a", "value": {"commit_version": true}},
    {"op": "add", "key": "a", "delta": -9223372036854775808},
    {"op": "range_get", "from": "", "to": "", "limit": 10, "reverse": true},
    {"op": "delete_range", "from": "a", "to": "b", "limit": 1}]}`);
  assert.deepEqual(then, [
    { kind: 'OPERATION_KIND_GET', key: 'YQ==' },
    { kind: 'OPERATION_KIND_PUT', key: 'YQ==', operand: { get_negated: 0 }, ttl_us: '5' },
    { kind: 'OPERATION_KIND_PUT', key: 'YQ==', operand: { commit_version: true } },
    { kind: 'OPERATION_KIND_ADD', key: 'YQ==', operand: { integer: '-9223372036854775808' } },
    { kind: 'OPERATION_KIND_RANGE_GET_REVERSE', range: { from: '', to: '' }, limit: 10 },
    { kind: 'OPERATION_KIND_DELETE_RANGE', range: { from: 'YQ==', to: 'Yg==' }, limit: 1 },
  ]);
  const options = {
    guards: [],
    else: [{ kind: 'OPERATION_KIND_DELETE', key: 'YQ==' }],
    precedence: 3,
    wait_timeout_us: '1500',
    expire_runs_else: true,
  };
  assert.deepEqual(rest, options);
});

test('a mistake is named with its place', () => {
  const mistakes = [
    ['{}', /needs a guard or an operation/],
    ['{"guards": [{"key": "a", "is": "bigger"}]}', /guards\[0\]\.is/],
    ['{"guards": [{"key": "a", "is": "eq"}]}', /guards\[0\]\.value: must be a whole number/],
    ['{"then": [{"op": "put", "key": "a", "value": 9223372036854775808}]}', /then\[0\]\.value: must be from/],
    ['{"then": [{"op": "put", "key": "a", "valeu": 1}]}', /no field "valeu"/],
    ['{"then": [{"op": "get"}]}', /then\[0\]\.key/],
    ['{"then": {}}', /then: must be a list/],
    ['{"precedence": 256, "then": [{"op": "get", "key": "a"}]}', /precedence/],
    ['[]', /must be an object/],
    ['{"then": [{"op": "constructor", "key": "a"}]}', /then\[0\]\.op: must be one of/],
    ['{"then": [{"op": "toString", "key": "a"}]}', /then\[0\]\.op: must be one of/],
    ['{"then": [{"op": ["get"], "key": "a"}]}', /then\[0\]\.op: must be one of/],
    ['{"then": [{"key": "a"}]}', /then\[0\]\.op: must be one of/],
    ['{"guards": [{"is": "constructor", "key": "a"}]}', /guards\[0\]\.is: must be one of/],
    ['{"guards": [{"is": "__proto__", "key": "a"}]}', /guards\[0\]\.is: must be one of/],
  ];
  for (const [text, error] of mistakes) assert.throws(() => message(text), error, text);
});

test('the kinds of errors', () => {
  assert.equal(kindOfError(401, { reason: 'LOGIN_MISSING' }), 'login');
  assert.equal(kindOfError(403, { code: 'PERMISSION_DENIED', reason: 'RIGHT_MISSING' }), 'right');
  assert.equal(kindOfError(503, { code: 'UNAVAILABLE', reason: 'RECOVERING' }), 'away');
  assert.equal(kindOfError(503, { code: 'RESOURCE_EXHAUSTED', reason: 'ANSWER_TOO_LARGE' }), 'too_large');
  assert.equal(kindOfError(400, { code: 'INVALID_ARGUMENT', reason: 'ANSWER_TOO_LARGE' }), 'too_large');
  assert.equal(kindOfError(400, { code: 'INVALID_ARGUMENT', reason: 'MESSAGE_TOO_LARGE' }), 'too_large');
  assert.equal(kindOfError(413, { code: 'INVALID_ARGUMENT', reason: 'OTHER' }), 'refused');
  assert.equal(kindOfError(429, { code: 'RESOURCE_EXHAUSTED', reason: 'QUEUE_FULL' }), 'refused');
});

test('answers that are not JSON', () => {
  const kindAndText = (status, text, type = 'text/plain') => {
    const { kind, message, details } = errorOfAnswer(status, type, text);
    assert.deepEqual(details, {});
    return [kind, message];
  };
  assert.deepEqual(kindAndText(413, 'the body of a request may have 8192 bytes\n'), [
    'refused',
    'the body of a request may have 8192 bytes',
  ]);
  assert.deepEqual(kindAndText(503, 'too many pages are asked for at the same time'), [
    'busy',
    'too many pages are asked for at the same time',
  ]);
  assert.deepEqual(kindAndText(429, 'slower'), ['refused', 'slower']);
  assert.deepEqual(kindAndText(431, 'a\u202eb'), ['refused', 'a\\u202eb']);
  assert.deepEqual(kindAndText(400, ''), ['refused', 'The server answered with the HTTP code 400.']);
  assert.deepEqual(kindAndText(502, '<html>bad gateway</html>', 'text/html'), [
    'unreachable',
    'The server answered with the HTTP code 502.',
  ]);
  assert.deepEqual(kindAndText(401, ''), ['login', 'The server answered with the HTTP code 401.']);
  assert.equal(kindAndText(500, 'x'.repeat(1000))[1], `${'x'.repeat(200)}…`);
  for (const text of ['null', '7', '{}', '{"error": null}']) assert.equal(kindAndText(503, text)[0], 'busy', text);
});

test('answers in JSON', () => {
  const text =
    '{"error": {"code": "UNAUTHENTICATED", "reason": "LOGIN_MISSING", "message": "log in", "not_run": true}}';
  const { kind, message, details } = errorOfAnswer(401, 'application/json', text);
  assert.deepEqual([kind, message, details.not_run], ['login', 'log in', true]);
});

test('what is known after a failure', () => {
  const fate = (kind, details) => fateOf(new ApiError(kind, '', details));
  assert.match(fate('too_large', { reason: 'ANSWER_TOO_LARGE' }), /has run/);
  assert.equal(fate('refused', { reason: 'CALLS_FULL', not_run: true }), 'The transaction has not run.');
  assert.equal(fate('unreachable'), 'No answer came. The transaction may have run, or not.');
  for (const details of [
    {},
    { code: 'UNAVAILABLE', reason: 'DRAINING', not_run: false },
    { code: 'CANCELLED', not_run: 'true' },
    { code: 'DEADLINE_EXCEEDED' },
  ])
    assert.equal(fate('refused', details), 'The transaction may have run, or not.');
});

test('a request that is too long for the console is not sent', () => {
  const withValue = (length) => requestOf({ then: [{ op: 'put', key: 'k', value: 'x'.repeat(length) }] });
  const bytesOf = (request) => JSON.stringify(request).length;
  let length = 3;
  while (bytesOf(withValue(length + 3)) <= 8192) length += 3; // base64 grows with each third byte
  checkSize(withValue(length));
  const longer = withValue(length + 3);
  const size = String(bytesOf(longer)).replace('8', '8,');
  assert.throws(
    () => checkSize(longer),
    ({ message: text }) => text.includes(`${size} bytes`) && text.includes('8,192') && text.includes('kilokv txn'),
  );
});

test('no text of a person is taken for a mark', () => {
  for (const name of ['$integer', '$integer$', '$integer of the text', '__proto__', 'constructor']) {
    const text = `{"${name}": "x", "a": {"${name}": "7"}, "b": 7, "c": ["${name}", "$integer$$"]}`;
    const parsed = parseJson(text);
    assert.ok(Object.hasOwn(parsed, name));
    assert.deepEqual(
      parsed,
      JSON.parse(text, (_, value) => (typeof value === 'number' ? BigInt(value) : value)),
    );
  }
  assert.deepEqual(parseJson('{"a": {"\\u0024integer": "1"}, "b": 1}'), { a: { $integer: '1' }, b: 1n });
  assert.deepEqual(parseJson('{"$integer": 5}'), { $integer: 5n });
  assert.deepEqual(parseJson('[12, "12"]'), [12n, '12']);
  assert.equal(parseJson('5'), 5n);
});

test('numbers for people', () => {
  assert.equal(numbers.whole('18446744073709551615'), '18,446,744,073,709,551,615');
  assert.equal(numbers.whole('-1234'), '-1,234');
  assert.equal(numbers.bytes(1023), '1023 B');
  assert.equal(numbers.bytes(1536), '1.50 KiB');
  assert.equal(numbers.duration(350), '350 µs');
  assert.equal(numbers.duration('11500'), '11.5 ms');
  assert.equal(numbers.duration(200e6), '3m 20s');
  assert.equal(numbers.duration(-5e6), '−5.00 s');
  assert.equal(numbers.rate(57412.4), '57,412');
  assert.equal(numbers.rate(null), '–');
  assert.equal(numbers.money(-123456789n), '−1,234,567.89');
  assert.equal(numbers.money(5n), '0.05');
  assert.equal(numbers.exactTime('1796015284145797'), '2026-11-30T05:08:04.145797Z');
  assert.equal(numbers.time('9223372036854775807'), 'out of range');
});

test('entries of the bank', () => {
  const id = '1796015284145797-0000abcd-1';
  assert.deepEqual(parseEntry(`bank/entry/alice/${id}/transfer/bob`, -234n), {
    id,
    kind: 'transfer',
    from: 'alice',
    to: 'bob',
    amount: 234n,
    time: '1796015284145797',
  });
  assert.equal(parseEntry(`bank/entry/bob/${id}/transfer/alice`, 234n).to, 'bob');
  assert.equal(parseEntry('bank/entry/odd', 1n), undefined);
  assert.equal(parseEntry('other/entry/a/b/c/d', 1n), undefined);
});
