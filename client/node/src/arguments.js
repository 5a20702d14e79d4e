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

// A misspelled option must not be left out in silence: it might be a timeout, or that a transaction waits.
export function checkOptions(options, names, what) {
  if (typeof options !== 'object' || options === null) throw misuse(`${what} must be an object`);
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw misuse(`${what} has no ${name}: there are ${names.join(', ')}`, { field: name });
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
