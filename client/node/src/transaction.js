// Builds a transaction. The methods add guards and operations, and return the transaction:
//
//   new Transaction({ waitTimeoutMs: 10_000 }).guard('alice', '>=', 10, WAIT).add('alice', -10).add('bob', 10)
//
// A transaction is a plain description. It can be sent more than once, by any client.
import { checkOptions, toBytes, toExpiry, toInt64, toInteger, toMicroseconds, toTime, toUint64 } from './arguments.js';
import { misuse } from './make_errors.js';
import { COMPARES, GuardKind, OnFalse, OperationKind } from './kinds.js';
import { encode, message } from './protocol.js';

// What a false guard does.
export const FAIL = 'FAIL';
export const WAIT = 'WAIT';

const UINT32_MAX = 2 ** 32 - 1;

// An operand that the server computes. `kind`: as in Operand of the protocol.
class Operand {
  constructor(kind) {
    this.kind = Object.freeze(kind);
    Object.freeze(this);
  }
}

// The value that the GET at this index of the same list has read; its sign can be changed.
export function fromGet(index, options = {}) {
  checkOptions(options, ['negate'], 'the options of fromGet()');
  const value = toInteger(index, 'index', 0, UINT32_MAX);
  return new Operand({ case: options.negate ? 'getNegated' : 'get', value });
}

export const commitVersion = new Operand({ case: 'commitVersion', value: true });
export const batchTime = new Operand({ case: 'batchTime', value: true });

// A name of a key, for a guard that compares two keys.
class KeyName {
  constructor(key) {
    this.key = toBytes(key, 'key');
    Object.freeze(this);
  }
}

export function keyNamed(key) {
  return new KeyName(key);
}

function onFalseNumber(onFalse) {
  if (!Object.hasOwn(OnFalse, onFalse))
    throw misuse(`onFalse is ${String(onFalse)}, and must be FAIL or WAIT`, { field: 'onFalse' });
  return OnFalse[onFalse];
}

const rangeOf = (from, to) => message('KeyRange', { from: toBytes(from, 'from'), to: toBytes(to, 'to') });

// The description of a transaction: a message of the protocol. For other modules of this package only.
export let messageOf;

export class Transaction {
  #message;
  #list;
  #inElse = false;

  static {
    messageOf = (transaction) => {
      if (!(#message in Object(transaction))) throw misuse('a transaction must be a Transaction');
      return transaction.#message;
    };
  }

  constructor(options = {}) {
    checkOptions(options, ['precedence', 'waitTimeoutMs', 'expireRunsElse'], 'the options of a transaction');
    const { precedence = 0, waitTimeoutMs = 0, expireRunsElse = false } = options;
    if (typeof expireRunsElse !== 'boolean')
      throw misuse('expireRunsElse must be true or false', { field: 'expireRunsElse' });
    this.#message = message('Transaction', {
      precedence: toInteger(precedence, 'precedence', 0, UINT32_MAX),
      waitTimeoutUs: toMicroseconds(waitTimeoutMs, 'waitTimeoutMs'),
      expireRunsElse,
    });
    this.#list = this.#message.then;
  }

  guardExists(key, onFalse = FAIL) {
    return this.#guard(GuardKind.exists, onFalse, { key: toBytes(key, 'key') });
  }

  guardAbsent(key, onFalse = FAIL) {
    return this.#guard(GuardKind.absent, onFalse, { key: toBytes(key, 'key') });
  }

  guard(key, compare, value, onFalse = FAIL) {
    if (!Object.hasOwn(COMPARES, compare)) {
      throw misuse(`compare is ${String(compare)}, and must be one of ${Object.keys(COMPARES).join(' ')}`, {
        field: 'compare',
      });
    }
    const operand =
      value instanceof KeyName
        ? { case: 'otherKey', value: value.key }
        : { case: 'integer', value: toInt64(value, 'value') };
    return this.#guard(COMPARES[compare], onFalse, { key: toBytes(key, 'key'), operand });
  }

  guardVersion(key, version, onFalse = FAIL) {
    const operand = { case: 'version', value: toUint64(version, 'version') };
    return this.#guard(GuardKind.version, onFalse, { key: toBytes(key, 'key'), operand });
  }

  guardUnchanged(key, sinceVersion, onFalse = FAIL) {
    const operand = { case: 'version', value: toUint64(sinceVersion, 'sinceVersion') };
    return this.#guard(GuardKind.unchanged, onFalse, { key: toBytes(key, 'key'), operand });
  }

  guardBytes(key, bytes, onFalse = FAIL) {
    const operand = { case: 'bytes', value: toBytes(bytes, 'bytes') };
    return this.#guard(GuardKind.bytes_eq, onFalse, { key: toBytes(key, 'key'), operand });
  }

  guardRangeUnchanged(from, to, sinceVersion, onFalse = FAIL) {
    const operand = { case: 'version', value: toUint64(sinceVersion, 'sinceVersion') };
    return this.#guard(GuardKind.range_unchanged, onFalse, { range: rangeOf(from, to), operand });
  }

  guardTimeBefore(time, onFalse = FAIL) {
    if (onFalse === WAIT)
      throw misuse('time alone never makes a guardTimeBefore true, so it cannot WAIT', { field: 'onFalse' });
    return this.#guardTime(GuardKind.time_before, time, onFalse);
  }

  guardTimeAfter(time, onFalse = FAIL) {
    return this.#guardTime(GuardKind.time_after, time, onFalse);
  }

  get(key) {
    return this.#operation(OperationKind.get, { key: toBytes(key, 'key') });
  }

  put(key, value, options = {}) {
    const operand = this.#operand(value, 'value', true);
    return this.#operation(OperationKind.put, { key: toBytes(key, 'key'), operand, expiry: toExpiry(options) });
  }

  delete(key) {
    return this.#operation(OperationKind.delete, { key: toBytes(key, 'key') });
  }

  add(key, delta, options = {}) {
    const operand = this.#operand(delta, 'delta', false);
    return this.#operation(OperationKind.add, { key: toBytes(key, 'key'), operand, expiry: toExpiry(options) });
  }

  rangeGet(from, to, limit) {
    return this.#rangeOperation(OperationKind.range_get, from, to, limit);
  }

  rangeGetReverse(from, to, limit) {
    return this.#rangeOperation(OperationKind.range_get_reverse, from, to, limit);
  }

  deleteRange(from, to, limit) {
    return this.#rangeOperation(OperationKind.delete_range, from, to, limit);
  }

  // The operations after it form the else list.
  otherwise() {
    if (this.#inElse) throw misuse('otherwise() was called before');
    this.#inElse = true;
    this.#list = this.#message.else;
    return this;
  }

  #guard(kind, onFalse, fields) {
    this.#message.guards.push(message('Guard', { kind, onFalse: onFalseNumber(onFalse), ...fields }));
    return this;
  }

  #guardTime(kind, time, onFalse) {
    if (time instanceof KeyName) return this.#guard(kind, onFalse, { key: time.key });
    return this.#guard(kind, onFalse, { operand: { case: 'timeUs', value: toTime(time, 'time') } });
  }

  #operation(kind, fields) {
    this.#list.push(message('Operation', { kind, ...fields }));
    return this;
  }

  #rangeOperation(kind, from, to, limit) {
    return this.#operation(kind, { range: rangeOf(from, to), limit: toInteger(limit, 'limit', 1, UINT32_MAX) });
  }

  #operand(value, field, mayBeBytes) {
    if (value instanceof Operand) {
      this.#checkGet(value.kind, field);
      return message('Operand', { kind: value.kind });
    }
    if (mayBeBytes && (typeof value === 'string' || value instanceof Uint8Array)) {
      return message('Operand', { kind: { case: 'bytes', value: toBytes(value, field) } });
    }
    return message('Operand', { kind: { case: 'integer', value: toInt64(value, field) } });
  }

  #checkGet(kind, field) {
    if (kind.case !== 'get' && kind.case !== 'getNegated') return;
    if (this.#list[kind.value]?.kind === OperationKind.get) return;
    throw misuse(`${field} is fromGet(${kind.value}), and operation ${kind.value} of the list is no earlier get()`, {
      field,
    });
  }
}

// How long the server may let these transactions wait, in milliseconds: the longest of them.
export function longestWaitMs(messages) {
  let longest = 0n;
  for (const { guards, waitTimeoutUs } of messages) {
    if (waitTimeoutUs > longest && guards.some((guard) => guard.onFalse === OnFalse.WAIT)) longest = waitTimeoutUs;
  }
  return Number(longest) / 1000;
}

export function encodeRows(messages) {
  return encode('TransactionRows', message('TransactionRows', { transactions: messages }));
}
