// Results in columns: those that contradict themselves are refused as a whole.
import assert from 'node:assert/strict';
import test from 'node:test';

import { ColumnResults } from '../../src/columns.js';
import { RowResults } from '../../src/results.js';
import { decode, encode, message } from '../../src/protocol.js';

const read = {
  type: Uint8Array.of(1),
  integer: [130n],
  version: [500n],
  keyEnds: [5],
  keyBytes: Buffer.from('carol'),
  operation: [0],
};
// The example of docs/columnar-layout.md.
const example = {
  batch: 7n,
  batchTimeUs: 1760000000000000n,
  firstVersion: 500n,
  outcome: Uint8Array.of(1, 1),
  rank: [0, 1],
  wrote: Uint8Array.of(1, 0),
  readEnds: [0, 1],
};

function bytesOf(fields, reads = read, guards = {}) {
  const all = { ...fields, reads: message('ReadColumns', reads), guardValues: message('ReadColumns', guards) };
  return encode('ResultColumns', message('ResultColumns', all));
}

test('the example of the page', () => {
  const results = new ColumnResults(2);
  assert.deepEqual(results.add(bytesOf(example)), [0, 1]);
  assert.ok(results.complete);
  assert.equal(results.version(0), 500n);
  assert.equal(results.version(1), null);
  assert.equal(results.count('COMMITTED'), 2);
  assert.deepEqual([...results.integers()], [0n, 130n]);
  const { reads, batch, rank, admittedBatch, batchTimeUs } = results.at(1);
  assert.equal(reads[0].key.toString(), 'carol');
  assert.equal(reads[0].version, 500n);
  assert.deepEqual([batch, rank, admittedBatch, batchTimeUs], [7n, 1, 7n, 1760000000000000n]);
  assert.deepEqual(results.add(bytesOf(example)), []); // a repetition
});

test('a guard value, bytes, an own write and an absent key', () => {
  const reads = {
    operation: [0, 1, 2],
    type: Uint8Array.of(2, 0, 2),
    integer: [0n, 0n, 0n],
    version: [3n, 0n, 9n],
    ownWrite: Uint8Array.of(0, 0, 1),
    keyEnds: [1, 2, 3],
    keyBytes: Buffer.from('abc'),
    valueEnds: [2, 2],
    valueBytes: Buffer.from('xy'),
  };
  const guards = { type: Uint8Array.of(1), integer: [-1n], version: [4n], keyEnds: [1], keyBytes: Buffer.from('g') };
  const fields = {
    batch: 2n,
    outcome: Uint8Array.of(2),
    rank: [3],
    failedIn: Uint8Array.of(1),
    failedIndex: [5],
    readEnds: [3],
  };
  const results = new ColumnResults(9);
  results.add(bytesOf({ ...fields, index: [4], admittedBatch: [1n] }, reads, guards));
  const result = results.at(4);
  assert.equal(result.outcome, 'GUARD_FAILED');
  assert.deepEqual([result.failedIn, result.failedIndex, result.admittedBatch], ['guards', 5, 1n]);
  assert.equal(result.guardValue.value, -1n);
  assert.deepEqual(
    result.reads.map(({ value, version }) => [value === null ? null : value.toString(), version]),
    [
      ['xy', 3n],
      [null, 0n],
      ['', null],
    ],
  );
  assert.equal(results.at(0), undefined);
  assert.equal(results.outcome(0), undefined);
});

test('contradictions', () => {
  const wrong = [
    { ...example, rank: [0] },
    { ...example, outcome: Uint8Array.of(1, 9) },
    { ...example, index: [0, 2] },
    { ...example, readEnds: [1, 0] },
    { ...example, readEnds: [0, 2] },
    { ...example, wrote: Uint8Array.of(1) },
    { ...example, failedIn: Uint8Array.of(0, 4), failedIndex: [0, 0] },
    { ...example, admittedBatch: [1n] },
  ];
  for (const fields of wrong) {
    const results = new ColumnResults(2);
    assert.throws(() => results.add(bytesOf(fields)), /cannot be/);
    assert.equal(results.at(0), undefined);
  }
  for (const reads of [
    { ...read, keyEnds: [6] },
    { ...read, type: Uint8Array.of(3) },
    { ...read, type: Uint8Array.of(2) },
    { ...read, version: [] },
  ]) {
    assert.throws(() => new ColumnResults(2).add(bytesOf(example, reads)), /cannot be/);
  }
  assert.throws(() => new ColumnResults(1).add(bytesOf(example)), /cannot be/);
});

test('rows that contradict themselves', () => {
  const row = { index: 0, outcome: 1, failedIn: 0 };
  const rows = (fields) =>
    decode(
      'ResultRows',
      encode('ResultRows', message('ResultRows', { results: [message('TransactionResult', fields)] })),
    ).results;
  assert.deepEqual(new RowResults(1).add(rows(row)), [0]);
  for (const fields of [
    { ...row, index: 1 },
    { ...row, outcome: 0 },
    { ...row, outcome: 7 },
    { ...row, failedIn: 4 },
  ]) {
    assert.throws(() => new RowResults(1).add(rows(fields)), /cannot be/);
  }
});

test('values that a program gets share no memory with the message', () => {
  const fields = {
    index: 0,
    outcome: 1,
    reads: [
      message('Read', {
        key: Buffer.from('k'),
        value: message('Value', { kind: { case: 'bytes', value: Buffer.from('v') } }),
      }),
    ],
  };
  const bytes = encode('ResultRows', message('ResultRows', { results: [message('TransactionResult', fields)] }));
  const results = new RowResults(1);
  results.add(decode('ResultRows', bytes).results);
  bytes.fill(0);
  assert.equal(results.at(0).reads[0].key.toString(), 'k');
  assert.equal(results.at(0).reads[0].value.toString(), 'v');
});
