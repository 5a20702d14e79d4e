// Role: turns a transaction in the form of `kilokv txn` (docs/history.md) into the message of the protocol.
import { fromBase64, toBase64 } from './keys.js';
import { whole } from './numbers.js';

export const GUARD_KINDS = {
  exists: 'GUARD_KIND_EXISTS',
  absent: 'GUARD_KIND_ABSENT',
  eq: 'GUARD_KIND_EQUAL',
  ne: 'GUARD_KIND_NOT_EQUAL',
  lt: 'GUARD_KIND_LESS',
  le: 'GUARD_KIND_LESS_EQUAL',
  gt: 'GUARD_KIND_GREATER',
  ge: 'GUARD_KIND_GREATER_EQUAL',
  version: 'GUARD_KIND_VERSION_EQUAL',
  unchanged: 'GUARD_KIND_UNCHANGED',
  bytes_eq: 'GUARD_KIND_BYTES_EQUAL',
  range_unchanged: 'GUARD_KIND_RANGE_UNCHANGED',
  time_before: 'GUARD_KIND_TIME_BEFORE',
  time_after: 'GUARD_KIND_TIME_AFTER',
};
const OPERATION_KINDS = {
  get: 'OPERATION_KIND_GET',
  put: 'OPERATION_KIND_PUT',
  delete: 'OPERATION_KIND_DELETE',
  add: 'OPERATION_KIND_ADD',
  range_get: 'OPERATION_KIND_RANGE_GET',
  delete_range: 'OPERATION_KIND_DELETE_RANGE',
};
const FIELDS = {
  transaction: ['guards', 'then', 'else', 'precedence', 'wait_timeout_ms', 'expire_runs_else'],
  guard: ['is', 'key', 'value', 'other', 'version', 'time_us', 'from', 'to', 'when_false'],
  operation: ['op', 'key', 'value', 'delta', 'from', 'to', 'limit', 'reverse', 'ttl_us', 'expires_at_us'],
};
const INT64 = [-(2n ** 63n), 2n ** 63n - 1n];
const UINT64 = [0n, 2n ** 64n - 1n];
const LONGEST_REQUEST = 8192; // bytes of JSON that the console takes

const encoder = new TextEncoder();

function check(holds, path, what) {
  if (!holds) throw new Error(`${path}: ${what}.`);
}

// Whether a table has this name of its own: every object also has `constructor` and others.
const isOneOf = (table, name) => typeof name === 'string' && Object.hasOwn(table, name);

function checkFields(object, known, path) {
  check(typeof object === 'object' && object !== null && !Array.isArray(object), path, 'must be an object');
  for (const name of Object.keys(object)) check(FIELDS[known].includes(name), path, `has no field "${name}"`);
}

function listOf(list, path) {
  check(list === undefined || Array.isArray(list), path, 'must be a list');
  return list ?? [];
}

function integer(value, path, [least, most] = INT64) {
  check(typeof value === 'bigint', path, 'must be a whole number');
  check(value >= least && value <= most, path, `must be from ${least} to ${most}`);
  return String(value);
}

function bytes(value, path) {
  if (typeof value === 'string') return toBase64(encoder.encode(value));
  check(typeof value?.b64 === 'string', path, 'must be a text or {"b64": "..."}');
  try {
    return toBase64(fromBase64(value.b64));
  } catch {
    throw new Error(`${path}.b64: is not base64.`);
  }
}

const range = ({ from, to }, path) => ({ from: bytes(from ?? '', `${path}.from`), to: bytes(to ?? '', `${path}.to`) });

function guardOperand(guard, path) {
  const { is, value, other, version, time_us: time } = guard;
  if (is === 'exists' || is === 'absent') return {};
  if (is === 'version' || is === 'unchanged' || is === 'range_unchanged')
    return { version: integer(version, `${path}.version`, UINT64) };
  if (is === 'bytes_eq') return { bytes: bytes(value, `${path}.value`) };
  if (is === 'time_before' || is === 'time_after')
    return time === undefined ? {} : { time_us: integer(time, `${path}.time_us`, UINT64) };
  return other === undefined
    ? { integer: integer(value, `${path}.value`) }
    : { other_key: bytes(other, `${path}.other`) };
}

function guardMessage(guard, path) {
  checkFields(guard, 'guard', path);
  const { is, when_false: whenFalse = 'fail' } = guard;
  check(isOneOf(GUARD_KINDS, is), `${path}.is`, `must be one of ${Object.keys(GUARD_KINDS).join(' ')}`);
  check(whenFalse === 'fail' || whenFalse === 'wait', `${path}.when_false`, 'must be fail or wait');
  const message = {
    kind: GUARD_KINDS[is],
    on_false: whenFalse === 'wait' ? 'ON_FALSE_WAIT' : 'ON_FALSE_FAIL',
    ...guardOperand(guard, path),
  };
  if (is === 'range_unchanged') message.range = range(guard, path);
  else if (guard.key !== undefined || guard.time_us === undefined) message.key = bytes(guard.key, `${path}.key`);
  return message;
}

function operand(value, path) {
  if (typeof value === 'bigint') return { integer: integer(value, path) };
  if (typeof value === 'string' || value?.b64 !== undefined) return { bytes: bytes(value, path) };
  if (value?.get !== undefined)
    return { [value.negate ? 'get_negated' : 'get']: Number(integer(value.get, `${path}.get`, [0n, 1023n])) };
  if (value?.commit_version === true) return { commit_version: true };
  check(
    value?.batch_time === true,
    path,
    'must be a whole number, a text, {"b64"}, {"get"}, {"commit_version"} or {"batch_time"}',
  );
  return { batch_time: true };
}

function operationMessage(operation, path) {
  checkFields(operation, 'operation', path);
  const { op, reverse, ttl_us: ttl, expires_at_us: at } = operation;
  check(isOneOf(OPERATION_KINDS, op), `${path}.op`, `must be one of ${Object.keys(OPERATION_KINDS).join(' ')}`);
  if (op === 'range_get' || op === 'delete_range') {
    const kind = op === 'range_get' && reverse === true ? 'OPERATION_KIND_RANGE_GET_REVERSE' : OPERATION_KINDS[op];
    return {
      kind,
      range: range(operation, path),
      limit: Number(integer(operation.limit, `${path}.limit`, [0n, 2n ** 32n - 1n])),
    };
  }
  const message = { kind: OPERATION_KINDS[op], key: bytes(operation.key, `${path}.key`) };
  if (op === 'put') message.operand = operand(operation.value, `${path}.value`);
  if (op === 'add') message.operand = operand(operation.delta, `${path}.delta`);
  if (ttl !== undefined) message.ttl_us = integer(ttl, `${path}.ttl_us`);
  if (at !== undefined) message.expires_at_us = integer(at, `${path}.expires_at_us`);
  return message;
}

function microseconds(milliseconds, path) {
  if (typeof milliseconds === 'bigint') return integer(milliseconds * 1000n, path, UINT64);
  check(Number.isFinite(milliseconds) && milliseconds >= 0, path, 'must be a number of milliseconds');
  return String(Math.round(milliseconds * 1000));
}

// The ExecuteRequest. Integers of `transaction` are BigInt (exact_json.js). Throws an Error that names the field.
export function requestOf(transaction) {
  checkFields(transaction, 'transaction', 'the transaction');
  const { precedence = 0n, wait_timeout_ms: timeout = 0n, expire_runs_else: runsElse = false } = transaction;
  const each = (name, message) =>
    listOf(transaction[name], name).map((one, index) => message(one, `${name}[${index}]`));
  const message = {
    guards: each('guards', guardMessage),
    then: each('then', operationMessage),
    else: each('else', operationMessage),
    precedence: Number(integer(precedence, 'precedence', [0n, 255n])),
    wait_timeout_us: microseconds(timeout, 'wait_timeout_ms'),
    expire_runs_else: runsElse === true,
  };
  check(
    message.guards.length + message.then.length + message.else.length > 0,
    'the transaction',
    'needs a guard or an operation',
  );
  return { transaction: message };
}

// Throws an Error if the console would not take the request, because it is too long.
export function checkSize(request) {
  const size = encoder.encode(JSON.stringify(request)).length;
  if (size <= LONGEST_REQUEST) return;
  throw new Error(
    `This transaction has ${whole(size)} bytes of JSON when it is sent, and the console takes at most ` +
      `${whole(LONGEST_REQUEST)}. "kilokv txn" takes larger ones.`,
  );
}
