// Puts transactions into columns. Columns cost the server less than rows, and mean the same.
import { toInt64, toInteger } from './arguments.js';
import { ExpiryKind, OperandKind } from './kinds.js';

const NO_KEY = 0xffffffff; // the guard or the comparison has no key

// Byte strings one after the other, and their ends.
class Strings {
  #parts = [];
  ends = [];
  bytes = 0;

  push(bytes) {
    this.#parts.push(bytes);
    this.bytes += bytes.length;
    this.ends.push(this.bytes);
    return this.ends.length - 1;
  }

  join() {
    return Buffer.concat(this.#parts);
  }
}

class Columns {
  #keys = new Strings();
  #keyIndex = new Map();
  #values = new Strings();
  #rangeBytes = new Strings();
  #ranges = [];
  #guards = [];
  #operations = [];
  #expiries = [];
  #transactions = [];

  add({ guards, then, else: otherwise, precedence, waitTimeoutUs, expireRunsElse }) {
    for (const guard of guards) this.#addGuard(guard);
    for (const operation of then) this.#addOperation(operation);
    const thenEnd = this.#operations.length;
    for (const operation of otherwise) this.#addOperation(operation);
    const ends = { guardEnd: this.#guards.length, thenEnd, elseEnd: this.#operations.length };
    this.#transactions.push({
      ...ends,
      precedence: toInteger(precedence, 'precedence', 0, 255),
      waitTimeoutUs,
      expireRunsElse: expireRunsElse ? 1 : 0,
    });
  }

  // A key that is used again is in the columns once.
  #key(bytes) {
    const text = Buffer.from(bytes).toString('latin1');
    let index = this.#keyIndex.get(text);
    if (index === undefined) {
      index = this.#keys.push(bytes);
      this.#keyIndex.set(text, index);
    }
    return index;
  }

  // Each range belongs to exactly one guard or operation.
  #range({ from, to }, limit) {
    this.#rangeBytes.push(from);
    const fromEnd = this.#rangeBytes.bytes;
    this.#rangeBytes.push(to);
    return this.#ranges.push({ fromEnd, toEnd: this.#rangeBytes.bytes, limit }) - 1;
  }

  #addGuard({ kind, onFalse, key, range, operand }) {
    const guard = { kind, onFalse, otherKey: NO_KEY, operand: 0n };
    if (range) guard.key = this.#range(range, 0);
    else guard.key = operand.case === 'timeUs' ? NO_KEY : this.#key(key);
    if (operand.case === 'otherKey') guard.otherKey = this.#key(operand.value);
    else if (operand.case === 'bytes') guard.operand = BigInt(this.#values.push(operand.value));
    else if (operand.case !== undefined) guard.operand = toInt64(operand.value, 'the operand of a guard in columns');
    this.#guards.push(guard);
  }

  #addOperation({ kind, key, range, limit, operand, expiry }) {
    const { case: name, value } = operand?.kind ?? { case: 'integer', value: 0n };
    let number = 0n;
    if (name === 'bytes') number = BigInt(this.#values.push(value));
    else if (typeof value !== 'boolean') number = BigInt(value);
    const at = range ? this.#range(range, limit) : this.#key(key);
    if (expiry.case !== undefined) {
      this.#expiries.push({ operation: this.#operations.length, kind: ExpiryKind[expiry.case], us: expiry.value });
    }
    this.#operations.push({ kind, operand: OperandKind[name], key: at, value: number });
  }

  // Columns that have only default values are left out.
  finish() {
    const column = (array, list, field) => array.from(list, (element) => element[field]);
    const optional = (array, list, field, absent) =>
      list.some((element) => element[field] !== absent) ? column(array, list, field) : new array(0);
    const transactions = this.#transactions;
    const hasElse = transactions.some(({ thenEnd, elseEnd }) => thenEnd !== elseEnd);
    return {
      guardEnds: column(Uint32Array, transactions, 'guardEnd'),
      thenEnds: column(Uint32Array, transactions, 'thenEnd'),
      elseEnds: hasElse ? column(Uint32Array, transactions, 'elseEnd') : new Uint32Array(0),
      precedence: optional(Uint8Array, transactions, 'precedence', 0),
      waitTimeoutUs: optional(BigUint64Array, transactions, 'waitTimeoutUs', 0n),
      expireRunsElse: optional(Uint8Array, transactions, 'expireRunsElse', 0),
      keyEnds: Uint32Array.from(this.#keys.ends),
      keyBytes: this.#keys.join(),
      guardKind: column(Uint8Array, this.#guards, 'kind'),
      guardOnFalse: optional(Uint8Array, this.#guards, 'onFalse', 0),
      guardKey: column(Uint32Array, this.#guards, 'key'),
      guardOtherKey: optional(Uint32Array, this.#guards, 'otherKey', NO_KEY),
      guardOperand: column(BigInt64Array, this.#guards, 'operand'),
      operationKind: column(Uint8Array, this.#operations, 'kind'),
      operationOperand: optional(Uint8Array, this.#operations, 'operand', OperandKind.integer),
      operationKey: column(Uint32Array, this.#operations, 'key'),
      operationValue: column(BigInt64Array, this.#operations, 'value'),
      rangeFromEnds: column(Uint32Array, this.#ranges, 'fromEnd'),
      rangeToEnds: column(Uint32Array, this.#ranges, 'toEnd'),
      rangeLimit: column(Uint32Array, this.#ranges, 'limit'),
      rangeBytes: this.#rangeBytes.join(),
      valueEnds: Uint32Array.from(this.#values.ends),
      valueBytes: this.#values.join(),
      expiryOperation: column(Uint32Array, this.#expiries, 'operation'),
      expiryKind: column(Uint8Array, this.#expiries, 'kind'),
      expiryUs: column(BigInt64Array, this.#expiries, 'us'),
    };
  }
}

// `messages`: the descriptions of transactions (messageOf).
export function columnsOf(messages) {
  const columns = new Columns();
  for (const message of messages) columns.add(message);
  return columns.finish();
}
