// What goes on the wire: no guard, number or option is lost or changed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { encodeTransactionColumns } from '../../src/column_codec.js';
import { TransactionColumns } from '../../src/columns.js';
import { GuardKind, OnFalse, OperandKind, OperationKind } from '../../src/kinds.js';
import { decode, encode, message, numbers } from '../../src/protocol.js';
import { FAIL, Transaction, WAIT, encodeRows, keyNamed, messageOf } from '../../src/transaction.js';
import { everyKind } from '../support/every_kind.js';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

// The text that protoc makes of the bytes: a decoder that shares nothing with the client.
function textOf(type, bytes) {
  const command = ['-I', `${root}proto`, `--decode=kilokv.v1.${type}`, 'kilokv/v1/kilokv.proto'];
  return execFileSync('protoc', command, { input: bytes, encoding: 'utf8', cwd: root });
}

// The numbers of an enum as the proto file has them.
function numbersInFile(file, name) {
  const body = new RegExp(`enum ${name} \\{(.*?)\\n\\}`, 's').exec(
    readFileSync(`${root}proto/kilokv/v1/${file}`, 'utf8'),
  )[1];
  return new Map([...body.matchAll(/^\s+([A-Z0-9_]+) = (\d+);/gm)].map(([, value, number]) => [value, Number(number)]));
}

test('the descriptors of the package are those of proto/kilokv/v1', () => {
  execFileSync(process.execPath, [`${root}client/node/scripts/make_protocol.js`, '--check'], { stdio: 'inherit' });
});

test('every number is the one that the proto file has', () => {
  const guards = numbersInFile('transaction.proto', 'GuardKind');
  assert.equal(guards.size, Object.keys(GuardKind).length + 1);
  assert.deepEqual([...guards.values()].slice(1), Object.values(GuardKind));
  assert.deepEqual(
    numbersInFile('transaction.proto', 'OnFalse'),
    new Map([
      ['ON_FALSE_FAIL', OnFalse.FAIL],
      ['ON_FALSE_WAIT', OnFalse.WAIT],
    ]),
  );
  assert.deepEqual(
    [...numbersInFile('transaction.proto', 'OperationKind').values()].slice(1),
    Object.values(OperationKind),
  );
  assert.deepEqual([...numbersInFile('columns.proto', 'OperandKind').values()], Object.values(OperandKind));
});

test('a table of numbers must name what the protocol has, and all of it', () => {
  assert.throws(() => numbers('OnFalse', { FAIL: 'ON_FALSE_FAIL' }), /has ON_FALSE_WAIT, too/);
  assert.throws(() => numbers('OnFalse', { FAIL: 'ON_FALSE_FAIL', WAIT: 'ON_FALSE_WAITS' }), /has no ON_FALSE_WAITS/);
});

test('a field that the protocol lacks is refused, and not left out', () => {
  assert.throws(() => message('Guard', { on_false: 1 }), /Guard has no field on_false/);
  assert.throws(() => message('Transaction', { waitTimeout: 1n }), /no field waitTimeout/);
});

test('each kind of guard keeps its WAIT, as rows and as columns', () => {
  const { guards, waits } = everyKind();
  for (const [name, build] of Object.entries(guards)) {
    for (const onFalse of waits.includes(name) ? [FAIL, WAIT] : [FAIL]) {
      const transaction = build(new Transaction({ waitTimeoutMs: 1.5 }), onFalse);
      const rows = textOf('TransactionRows', encodeRows([messageOf(transaction)]));
      assert.equal(/on_false: ON_FALSE_WAIT/.test(rows), onFalse === WAIT, `${name} ${onFalse}: ${rows}`);
      assert.match(rows, /wait_timeout_us: 1500\n/);
      assert.match(rows, new RegExp(`kind: ${name}\\n`));
      const columns = textOf('TransactionColumns', encodeTransactionColumns(TransactionColumns.of([transaction])));
      assert.equal(/guard_on_false: "\\001"/.test(columns), onFalse === WAIT, `${name} ${onFalse}: ${columns}`);
    }
  }
});

test('each operation, operand and option is in the rows', () => {
  const { all } = everyKind();
  const text = textOf('TransactionRows', encodeRows([messageOf(all())]));
  for (const kind of ['GET', 'PUT', 'DELETE', 'ADD', 'RANGE_GET', 'DELETE_RANGE', 'RANGE_GET_REVERSE']) {
    assert.match(text, new RegExp(`kind: OPERATION_KIND_${kind}\\n`));
  }
  for (const operand of [
    'integer: -5',
    'bytes: "\\\\377x"',
    'get: 0',
    'get_negated: 0',
    'commit_version: true',
    'batch_time: true',
  ]) {
    assert.match(text, new RegExp(operand));
  }
  assert.match(text, /precedence: 200\n {2}wait_timeout_us: 3600000000\n {2}expire_runs_else: true/);
  assert.match(text, /else \{/);
  assert.match(text, /ttl_us: 1500\n/);
  assert.match(text, /expires_at_us: 7\n/);
});

test('64-bit numbers are exact at their ends', () => {
  const largest = 2n ** 63n - 1n;
  const smallest = -(2n ** 63n);
  const transaction = new Transaction()
    .guard('k', '==', smallest)
    .guardVersion('k', 2n ** 60n - 1n)
    .put('k', largest)
    .add('k', smallest);
  const text = textOf('TransactionRows', encodeRows([messageOf(transaction)]));
  for (const number of [largest, smallest, 2n ** 60n - 1n]) assert.match(text, new RegExp(`: ${number}\n`));
  const columns = textOf('TransactionColumns', encodeTransactionColumns(TransactionColumns.of([transaction])));
  for (const number of [largest, smallest, 2n ** 60n - 1n]) assert.match(columns, new RegExp(`: ${number}\n`));
});

test('columns are the bytes that docs/columnar-layout.md shows', () => {
  const page = readFileSync(`${root}docs/columnar-layout.md`, 'utf8');
  const shown = /```hex\n(.*?)```/s.exec(page)[1].replace(/\s/g, '');
  const transfer = new Transaction().guard('alice', '>=', 30).add('alice', -30).add('carol', 30);
  const made = TransactionColumns.of([transfer, new Transaction().get('carol')]);
  const fixed = new TransactionColumns({ ...made, keyEnds: new Uint32Array(0), keyLength: 5 });
  assert.equal(Buffer.from(encodeTransactionColumns(fixed)).toString('hex'), shown);
});

test('rows and columns of every kind mean the same', () => {
  const { all, guards } = everyKind();
  const list = [
    all(),
    ...Object.values(guards).map((build) => build(new Transaction(), FAIL)),
    new Transaction().get('z'),
  ];
  const columns = TransactionColumns.of(list);
  assert.equal(columns.size, list.length);
  assert.equal(columns.guardEnds.at(-1), columns.guardKind.length);
  assert.equal(columns.elseEnds.at(-1), columns.operationKind.length);
  assert.equal(columns.expireRunsElse[0], 1);
  assert.equal(columns.expireRunsElse[1], 0);
  assert.deepEqual(
    decode('TransactionRows', encodeRows(list.map(messageOf))).transactions.map((one) => one.guards.length),
    list.map((_, i) => columns.guardEnds[i] - (i === 0 ? 0 : columns.guardEnds[i - 1])),
  );
});

test('a guard that compares two keys, and a time in a key', () => {
  const transaction = new Transaction().guard('a', '<', keyNamed('b')).guardTimeAfter(keyNamed('t'), WAIT);
  const text = textOf('TransactionRows', encodeRows([messageOf(transaction)]));
  assert.match(text, /kind: GUARD_KIND_LESS\n\s+key: "a"\n\s+other_key: "b"/);
  assert.match(text, /kind: GUARD_KIND_TIME_AFTER\n\s+on_false: ON_FALSE_WAIT\n\s+key: "t"/);
});

test('a message is encoded as it was made', () => {
  const id = message('RequestId', { session: new Uint8Array(16).fill(7), number: 2n ** 64n - 1n, holder: 3n });
  assert.deepEqual(decode('RequestId', encode('RequestId', id)), id);
});
