// Checks of what a program gives: 64-bit numbers, bytes, durations and the names of options. Each throws a MisuseError
// that names the argument, its limit and its value.
import { misuse } from './make_errors.js';

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2n ** 64n - 1n;

function shown(value) {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

// The limits here are those of the protocol's types. The server judges all others, and names its setting.

// A bigint, or a number that is a safe integer, from `least` to `most`.
export function toBigInt(value, field, least, most) {
  const limit = `an integer from ${least} to ${most}: a bigint, or a number up to 2^53 - 1`;
  const exact = typeof value === 'bigint' || Number.isSafeInteger(value);
  if (!exact || value < least || value > most) {
    throw misuse(`${field} is ${shown(value)}, and must be ${limit}`, {
      reason: 'OUT_OF_RANGE',
      field,
      limit,
      actual: shown(value),
    });
  }
  return BigInt(value);
}

export const toInt64 = (value, field) => toBigInt(value, field, INT64_MIN, INT64_MAX);
export const toUint64 = (value, field) => toBigInt(value, field, 0n, UINT64_MAX);
export const toTime = (value, field) => toBigInt(value, field, 0n, INT64_MAX);

// A number that is an integer from `least` to `most`.
export function toInteger(value, field, least, most) {
  return Number(toBigInt(value, field, BigInt(least), BigInt(most)));
}

// Bytes as they are, and a string as UTF-8.
export function toBytes(value, field) {
  if (value instanceof Uint8Array) return value;
  if (typeof value !== 'string')
    throw misuse(`${field} is ${shown(value)}, and must be a Uint8Array or a string`, { field });
  if (/\p{Surrogate}/u.test(value))
    throw misuse(`${field} is a string that has no UTF-8: half of a pair of surrogates`, { field });
  return Buffer.from(value, 'utf8');
}

// A string, such as the name of a file.
export function toText(value, field) {
  if (typeof value !== 'string') throw misuse(`${field} is ${shown(value)}, and must be a string`, { field });
  return value;
}

// The bytes of many keys.
export function toKeys(keys) {
  if (!Array.isArray(keys)) throw misuse(`keys is ${shown(keys)}, and must be a list`, { field: 'keys' });
  return keys.map((key, i) => toBytes(key, `keys[${i}]`));
}

// When the key of a write expires, as a field of the protocol. Nothing: a put clears the expiry of the key, and an add
// leaves it as it is.
export function toExpiry(options) {
  checkOptions(options, ['ttlMs', 'expiresAtUs'], 'the options of the operation');
  const { ttlMs, expiresAtUs } = options;
  if (ttlMs !== undefined && expiresAtUs !== undefined) throw misuse('give ttlMs or expiresAtUs, not both');
  if (expiresAtUs !== undefined)
    return { case: 'expiresAtUs', value: toBigInt(expiresAtUs, 'expiresAtUs', 1n, INT64_MAX) };
  if (ttlMs === undefined) return { case: undefined };
  const value = toMicroseconds(ttlMs, 'ttlMs');
  if (value > 0n) return { case: 'ttlUs', value };
  const limit = 'a microsecond (0.001) or more';
  throw misuse(`ttlMs is ${ttlMs}, and must be ${limit}`, {
    reason: 'OUT_OF_RANGE',
    field: 'ttlMs',
    limit,
    actual: String(ttlMs),
  });
}

// Milliseconds as whole microseconds.
export function toMicroseconds(value, field) {
  const limit = 'a number of milliseconds, 0 or more';
  if (typeof value !== 'number' || !(value >= 0) || value > Number.MAX_SAFE_INTEGER / 1000) {
    throw misuse(`${field} is ${shown(value)}, and must be ${limit}`, {
      reason: 'OUT_OF_RANGE',
      field,
      limit,
      actual: shown(value),
    });
  }
  return BigInt(Math.round(value * 1000));
}

// How many characters must be added, left out or replaced.
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

// A misspelled option must not be left out in silence: it might be a timeout, or that a transaction waits.
export function checkOptions(options, names, what) {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw misuse(`${what} must be an object`);
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const meant = names.find((known) => distance(name, known) <= 2);
    const hint = meant === undefined ? '' : `did you mean ${meant}? `;
    throw misuse(`there is no ${name} in ${what}: ${hint}There are ${names.join(', ')}`, { field: name });
  }
}

// Buffers that a program gets are its own: they share no memory with messages.
export function copyOf(bytes) {
  return Buffer.from(bytes);
}

export const toHex = (bytes) => Buffer.from(bytes).toString('hex');

// The id of a session: 32 hexadecimal digits.
export function sessionId(text) {
  if (typeof text !== 'string' || !/^[0-9a-f]{32}$/i.test(text))
    throw misuse('the id of a session must be 32 hexadecimal digits');
  return Buffer.from(text, 'hex');
}
