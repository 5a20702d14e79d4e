// The results of transactions, made from rows of the protocol. Integers are BigInt, bytes are Buffers of their own.
import { copyOf } from './arguments.js';
import { makeError } from './make_errors.js';
import { FailedIn, Outcome, failedInNames, outcomeNames } from './kinds.js';

// A value of the protocol: null (absent), a BigInt, or a Buffer.
export function valueOf(value) {
  if (value?.kind.case === 'integer') return value.kind.value;
  return value?.kind.case === 'bytes' ? copyOf(value.kind.value) : null;
}

export class Read {
  constructor(operation, key, value, version) {
    this.operation = operation; // its index in the list that ran
    this.key = key;
    this.value = value;
    this.version = version; // null: the transaction's own earlier write; 0n: never written
  }
}

export class Result {
  constructor(fields) {
    this.index = fields.index;
    this.outcome = fields.outcome;
    this.failedIn = fields.failedIn; // 'guards', 'then', 'else' or null
    this.failedIndex = fields.failedIndex; // null if failedIn is null
    this.guardValue = fields.guardValue; // a Read or null
    this.reads = fields.reads;
    this.version = fields.version; // null: it wrote nothing
    this.batch = fields.batch;
    this.rank = fields.rank;
    this.admittedBatch = fields.admittedBatch;
    this.batchTimeUs = fields.batchTimeUs;
    this.readsDropped = fields.readsDropped;
  }

  get committed() {
    return this.outcome === 'COMMITTED';
  }
}

export function contradiction(what = 'results') {
  return makeError('INTERNAL', `the server sent ${what} that cannot be: is it a KiloKV server of this version?`);
}

export function readOfRow(row) {
  return new Read(row.operation, copyOf(row.key), valueOf(row.value), row.ownWrite ? null : row.version);
}

// Requires: the numbers of the row are known.
function resultOfRow(row) {
  const failedIn = row.failedIn === FailedIn.none ? null : failedInNames.get(row.failedIn);
  return new Result({
    index: row.index,
    outcome: outcomeNames.get(row.outcome),
    failedIn,
    failedIndex: failedIn === null ? null : row.failedIndex,
    guardValue: row.guardValue ? readOfRow(row.guardValue) : null,
    reads: row.reads.map(readOfRow),
    version: row.version === 0n ? null : row.version,
    batch: row.batch,
    rank: row.rank,
    admittedBatch: row.admittedBatch,
    batchTimeUs: row.batchTimeUs,
    readsDropped: row.readsDropped,
  });
}

// Collects the rows that answer a request. The first answer of a transaction is kept. A repeated answer, after a
// reconnect, is dropped.
export class RowResults {
  #results;
  #answered = 0;

  constructor(size) {
    this.#results = new Array(size).fill(undefined);
  }

  get complete() {
    return this.#answered === this.#results.length;
  }

  // Returns the indices of results that are new. Throws if the server contradicts itself; then it has added nothing.
  add(rows) {
    for (const row of rows) {
      const known =
        row.index < this.#results.length && outcomeNames.has(row.outcome) && failedInNames.has(row.failedIn);
      if (!known) throw contradiction();
    }
    const fresh = [];
    for (const row of rows) {
      if (this.#results[row.index] !== undefined) continue;
      this.#results[row.index] = resultOfRow(row);
      this.#answered += 1;
      fresh.push(row.index);
    }
    return fresh;
  }

  at(index) {
    return this.#results[index];
  }

  // The results by index; undefined where no answer has come.
  list() {
    return [...this.#results];
  }
}

// The row of a Get: a transaction of GETs that has committed.
export function rowOfGet(answer) {
  const { reads, batch, rank, admittedBatch, batchTimeUs } = answer;
  const none = {
    index: 0,
    failedIn: FailedIn.none,
    failedIndex: 0,
    guardValue: undefined,
    version: 0n,
    readsDropped: false,
  };
  return { ...none, outcome: Outcome.COMMITTED, reads, batch, rank, admittedBatch, batchTimeUs };
}
