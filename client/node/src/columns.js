// Many transactions as columns of typed arrays, and their results. docs/columnar-layout.md explains the columns.
import { checkOptions, toBytes, toInteger } from './arguments.js';
import { decodeColumns, transactionColumns } from './column_codec.js';
import { columnsOf } from './columns_of.js';
import { misuse } from './make_errors.js';
import { FailedIn, OnFalse, OperandKind, OperationKind, Outcome, failedInNames, outcomeNames } from './kinds.js';
import { Read, Result, contradiction } from './results.js';
import { messageOf } from './transaction.js';

const KEY_BYTES_MAX = 0xffff;

// The transactions of one request, in columns. The constructor takes any columns of the layout, with names in camel
// case: `thenEnds` for then_ends. Those of one byte are Uint8Arrays. The arrays are not copied: they must not change
// before the call that sends them has returned.
export class TransactionColumns {
  constructor(columns) {
    checkOptions(columns, [...transactionColumns.keys()], 'the columns');
    for (const [name, value] of Object.entries(columns)) {
      const array = transactionColumns.get(name);
      if (!array) toInteger(value, name, 0, KEY_BYTES_MAX);
      else if (!(value instanceof array)) throw misuse(`${name} must be a ${array.name}`, { field: name });
    }
    if (!columns.thenEnds?.length)
      throw misuse('the columns have no transaction: thenEnds is empty', { field: 'thenEnds' });
    Object.assign(this, { guardEnds: new Uint32Array(columns.thenEnds.length) }, columns);
  }

  // The columns of a list of transactions.
  static of(transactions) {
    if (!Array.isArray(transactions)) throw misuse('of() needs a list of transactions');
    return new TransactionColumns(columnsOf(transactions.map(messageOf)));
  }

  // Transactions that put values: key i gets value i. `keys` is one Uint8Array with all keys, each of `keyLength`
  // bytes.
  static put(options) {
    return withIntegers(OperationKind.put, options);
  }

  // Transactions that add deltas: value i is added to key i.
  static add(options) {
    return withIntegers(OperationKind.add, options);
  }

  // Transactions that get keys.
  static get(options) {
    checkOptions(options, ['keys', 'keyLength', 'operationsPerTransaction'], 'the options');
    return sameOperation(OperationKind.get, options, null);
  }

  static delete(options) {
    checkOptions(options, ['keys', 'keyLength', 'operationsPerTransaction'], 'the options');
    return sameOperation(OperationKind.delete, options, null);
  }

  get size() {
    return this.thenEnds.length;
  }
}

function withIntegers(kind, options) {
  checkOptions(options, ['keys', 'keyLength', 'values', 'operationsPerTransaction'], 'the options');
  if (!(options.values instanceof BigInt64Array)) throw misuse('values must be a BigInt64Array', { field: 'values' });
  return sameOperation(kind, options, options.values);
}

function sameOperation(kind, { keys, keyLength, operationsPerTransaction = 1 }, values) {
  const keyBytes = toBytes(keys, 'keys');
  const length = toInteger(keyLength, 'keyLength', 1, KEY_BYTES_MAX);
  const operations = keyBytes.length / length;
  if (!Number.isInteger(operations))
    throw misuse(`keys has ${keyBytes.length} bytes, which is no multiple of keyLength`, { field: 'keys' });
  if (values && values.length !== operations) {
    throw misuse(`there are ${operations} keys and ${values.length} values`, { field: 'values' });
  }
  const each = toInteger(operationsPerTransaction, 'operationsPerTransaction', 1, 2 ** 32 - 1);
  return new TransactionColumns({
    thenEnds: Uint32Array.from({ length: Math.ceil(operations / each) }, (_, t) =>
      Math.min((t + 1) * each, operations),
    ),
    keyLength: length,
    keyBytes,
    operationKind: new Uint8Array(operations).fill(kind),
    operationOperand: new Uint8Array(operations).fill(OperandKind.integer),
    operationKey: Uint32Array.from({ length: operations }, (_, i) => i),
    operationValue: values ?? new BigInt64Array(operations),
  });
}

// How long the server may let these transactions wait, in milliseconds: the longest of them.
export function longestWaitOfColumns({ guardOnFalse, waitTimeoutUs }) {
  if (!waitTimeoutUs || !guardOnFalse?.includes(OnFalse.WAIT)) return 0;
  return Number(waitTimeoutUs.reduce((a, b) => (a > b ? a : b), 0n)) / 1000;
}

const optional = (column, length) => column.length === 0 || column.length === length;

function endsAreValid(ends, count, most) {
  if (ends.length !== count) return false;
  let last = 0;
  for (const end of ends) {
    if (end < last) return false;
    last = end;
  }
  return last <= most;
}

// Checks columns of reads, and numbers their byte values: read i has byte value bytesIndex[i].
function numberReads(reads, withOperation) {
  const count = reads.type.length;
  const bytesIndex = new Uint32Array(count);
  let values = 0;
  for (let i = 0; i < count; ++i) {
    if (reads.type[i] > 2) throw contradiction();
    bytesIndex[i] = values;
    if (reads.type[i] === 2) values += 1;
  }
  const good =
    (!withOperation || reads.operation.length === count) &&
    reads.integer.length === count &&
    reads.version.length === count &&
    optional(reads.ownWrite, count) &&
    endsAreValid(reads.keyEnds, count, reads.keyBytes.length) &&
    endsAreValid(reads.valueEnds, values, reads.valueBytes.length);
  if (!good) throw contradiction();
  return bytesIndex;
}

const element = (ends, bytes, i) => Buffer.from(bytes.subarray(i === 0 ? 0 : ends[i - 1], ends[i]));

// One message of results.
class Slice {
  constructor(bytes, transactions) {
    const columns = decodeColumns('ResultColumns', bytes);
    this.columns = columns;
    const count = columns.outcome.length;
    const good =
      optional(columns.index, count) &&
      columns.rank.length === count &&
      optional(columns.wrote, count) &&
      optional(columns.admittedBatch, count) &&
      optional(columns.failedIn, count) &&
      columns.failedIndex.length === columns.failedIn.length &&
      optional(columns.readsDropped, count) &&
      (columns.index.length > 0 || count <= transactions) &&
      columns.index.every((index) => index < transactions) &&
      columns.outcome.every((outcome) => outcomeNames.has(outcome)) &&
      columns.failedIn.every((list) => failedInNames.has(list));
    if (!good) throw contradiction();
    this.readBytes = numberReads(columns.reads, true);
    if (columns.readEnds.length > 0 && !endsAreValid(columns.readEnds, count, this.readBytes.length))
      throw contradiction();
    this.guardBytes = numberReads(columns.guardValues, false);
    this.guardValue = this.#placeGuardValues(count);
  }

  // For transaction i: the index of its guard value, or -1. Guard values are left out together, or all are there.
  #placeGuardValues(count) {
    const { outcome, failedIn } = this.columns;
    const places = new Int32Array(count).fill(-1);
    if (this.guardBytes.length === 0) return places;
    let next = 0;
    for (let i = 0; i < count; ++i) {
      const decided = outcome[i] === Outcome.GUARD_FAILED || outcome[i] === Outcome.WAIT_EXPIRED;
      if (decided && failedIn[i] === FailedIn.guards) places[i] = next++;
    }
    if (next !== this.guardBytes.length) throw contradiction();
    return places;
  }

  indexAt(i) {
    return this.columns.index.length === 0 ? i : this.columns.index[i];
  }

  versionAt(i) {
    const { wrote, outcome, firstVersion, rank } = this.columns;
    const hasWritten = wrote.length === 0 ? outcome[i] === Outcome.COMMITTED : wrote[i] !== 0;
    return hasWritten ? firstVersion + BigInt(rank[i]) : null;
  }

  readBegin(i) {
    return i === 0 || this.columns.readEnds.length === 0 ? 0 : this.columns.readEnds[i - 1];
  }

  readEnd(i) {
    return this.columns.readEnds.length === 0 ? 0 : this.columns.readEnds[i];
  }

  read(columns, bytesIndex, i) {
    const type = columns.type[i];
    const value =
      type === 1
        ? columns.integer[i]
        : type === 2
          ? element(columns.valueEnds, columns.valueBytes, bytesIndex[i])
          : null;
    const own = columns.ownWrite.length > 0 && columns.ownWrite[i] !== 0;
    return new Read(
      columns.operation[i] ?? 0,
      element(columns.keyEnds, columns.keyBytes, i),
      value,
      own ? null : columns.version[i],
    );
  }

  result(i) {
    const { columns } = this;
    const list = columns.failedIn.length === 0 ? FailedIn.none : columns.failedIn[i];
    const guard = this.guardValue[i];
    const reads = [];
    for (let r = this.readBegin(i); r < this.readEnd(i); ++r) reads.push(this.read(columns.reads, this.readBytes, r));
    return new Result({
      index: this.indexAt(i),
      outcome: outcomeNames.get(columns.outcome[i]),
      failedIn: list === FailedIn.none ? null : failedInNames.get(list),
      failedIndex: list === FailedIn.none ? null : columns.failedIndex[i],
      guardValue: guard < 0 ? null : this.read(columns.guardValues, this.guardBytes, guard),
      reads,
      version: this.versionAt(i),
      batch: columns.batch,
      rank: columns.rank[i],
      admittedBatch: columns.admittedBatch.length === 0 ? columns.batch : columns.admittedBatch[i],
      batchTimeUs: columns.batchTimeUs,
      readsDropped: columns.readsDropped.length > 0 && columns.readsDropped[i] !== 0,
    });
  }
}

// The results of TransactionColumns, by the index of a transaction. `outcomes` has the numbers of the protocol: 0 where
// no answer has come, 1 where it committed. The first answer of a transaction is kept.
export class ColumnResults {
  #slices = [];
  #slice; // of transaction i, counted from 1; 0: no answer
  #position;
  #answered = 0;

  constructor(size) {
    this.size = size;
    this.outcomes = new Uint8Array(size);
    this.#slice = new Uint32Array(size);
    this.#position = new Uint32Array(size);
  }

  get complete() {
    return this.#answered === this.size;
  }

  outcome(index) {
    return outcomeNames.get(this.outcomes[index]);
  }

  // How many transactions have this outcome, such as COMMITTED.
  count(outcome) {
    const number = Outcome[outcome];
    return this.outcomes.reduce((sum, one) => sum + (one === number ? 1 : 0), 0);
  }

  // The result of a transaction as an object; undefined: no answer has come.
  at(index) {
    const place = this.#slice[index];
    return place ? this.#slices[place - 1].result(this.#position[index]) : undefined;
  }

  // The commit version; null: it wrote nothing, or no answer has come.
  version(index) {
    const place = this.#slice[index];
    return place ? this.#slices[place - 1].versionAt(this.#position[index]) : null;
  }

  // The integers that transactions read, without an object for each: read `read` of each transaction, and 0 where it
  // has read no integer.
  integers(read = 0) {
    const values = new BigInt64Array(this.size);
    for (let index = 0; index < this.size; ++index) {
      const place = this.#slice[index];
      if (!place) continue;
      const slice = this.#slices[place - 1];
      const at = slice.readBegin(this.#position[index]) + read;
      if (at < slice.readEnd(this.#position[index])) values[index] = slice.columns.reads.integer[at];
    }
    return values;
  }

  // Adds a message. Returns the indices that are new. Throws if the server contradicts itself; then it has added
  // nothing.
  add(bytes) {
    const slice = new Slice(bytes, this.size);
    const fresh = [];
    for (let i = 0; i < slice.columns.outcome.length; ++i) {
      const index = slice.indexAt(i);
      if (this.#slice[index] !== 0) continue;
      this.#slice[index] = this.#slices.length + 1;
      this.#position[index] = i;
      this.outcomes[index] = slice.columns.outcome[i];
      this.#answered += 1;
      fresh.push(index);
    }
    if (fresh.length > 0) this.#slices.push(slice);
    return fresh;
  }
}
