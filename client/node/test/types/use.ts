// Compiled by the tests, and never run: a program that uses the whole surface has these types.
import {
  connect,
  FAIL,
  Transaction,
  TransactionColumns,
  WAIT,
  batchTime,
  commitVersion,
  fromGet,
  keyNamed,
} from 'kilokv';
import { Client, ConflictError, KiloKVError, QueueFullError, ResourceExhaustedError, historyLine } from 'kilokv';
import type { ColumnResults, Pair, Read, Request, Result, Value } from 'kilokv';

function exactly<T>(value: T): T {
  return value;
}

const db = await connect({ endpoint: '127.0.0.1:7070', tls: { caFile: 'ca.pem' }, waitForServerMs: 1000 });
exactly<Client>(db);
// @ts-expect-error: a misspelled option
await connect({ endPoint: '127.0.0.1:7070' });

const session = await db.openSession({ leaseMs: 60_000 });
const transaction = new Transaction({ precedence: 1, waitTimeoutMs: 100, expireRunsElse: true })
  .guardExists('a', WAIT)
  .guardAbsent(Buffer.from('b'), FAIL)
  .guard('c', '>=', 5n)
  .guard('c', '<', keyNamed('d'), WAIT)
  .guardVersion('e', 0)
  .guardUnchanged('e', 1n)
  .guardBytes('f', 'text')
  .guardRangeUnchanged('a', 'b', 1n)
  .guardTimeBefore(5n)
  .guardTimeAfter(keyNamed('t'), WAIT)
  .get('a')
  .put('b', fromGet(0, { negate: true }))
  .put('c', new Uint8Array(3))
  .add('d', commitVersion)
  .add('d', -5, { ttlMs: 5000 })
  .put('d', 5, { expiresAtUs: 5n })
  .put('e', batchTime)
  .delete('f')
  .rangeGet('a', 'b', 5)
  .rangeGetReverse('a', 'b', 5)
  .deleteRange('a', 'b', 5)
  .otherwise()
  .get('g');
// @ts-expect-error: an unknown operator
transaction.guard('a', '=', 5);
// @ts-expect-error: a misspelled WAIT
transaction.guardExists('a', 'wait');
// @ts-expect-error: time alone never makes it true
transaction.guardTimeBefore(5n, WAIT);
// @ts-expect-error: no delta of bytes
transaction.add('a', Buffer.from('1'));
// @ts-expect-error: a misspelled option, which would lose the wait
new Transaction({ waitTimeout: 5 });

exactly<Result>(await session.execute(transaction));
exactly<Result[]>(await session.execute([transaction]));
const columns = TransactionColumns.put({ keys: Buffer.alloc(32), keyLength: 16, values: BigInt64Array.of(1n, 2n) });
exactly<ColumnResults>(await db.execute(columns, { detached: false }));
exactly<BigInt64Array>((await session.execute(TransactionColumns.of([transaction]))).integers());
// @ts-expect-error: values are 64-bit integers
TransactionColumns.add({ keys: 'ab', keyLength: 1, values: [1, 2] });

const request = session.submit(transaction, { onResult: (result, index) => void [exactly<Result>(result), index] });
exactly<Request<Result>>(request);
exactly<bigint>(request.number);
exactly<Result>(await session.resume(request.number, transaction).results);
exactly<bigint>(await request.cancel());

exactly<Read>(await db.get('a'));
exactly<Value>((await db.get('a')).value);
exactly<Read[]>((await db.getMany(['a', Buffer.from('b')])).reads);
// @ts-expect-error: a value may be bytes or absent
exactly<bigint>((await db.get('a')).value);
for await (const pair of db.scan({ prefix: 'a', reverse: true, limit: 5 })) exactly<Pair>(pair);
for await (const page of db.scan().pages()) exactly<Pair[]>(page);

for await (const { writes, position } of db.watch({ prefix: 'a', after: 5n })) {
  exactly<Value[]>(writes.map(({ value }) => value));
  exactly<bigint>(position.version);
}

const sum = await db.run(async (tx) => {
  const value = await tx.get('a');
  tx.put('a', typeof value === 'bigint' ? value + 1n : 1);
  exactly<Pair['key'][]>((await tx.scan({ from: 'a' })).map(({ key }) => key));
  return 5;
});
exactly<number>(sum);
exactly<void>(await db.begin({ session }).commit());

const attached = await db.attachSession(session.id, { numbersUsed: 5n });
exactly<bigint[]>(attached.requests.map(({ number }) => number));
exactly<bigint>((await db.status()).counters.committed);
exactly<string[]>((await db.listSessions()).sessions.map(({ id }) => id));
exactly<bigint>(await db.cancelParked({ keyPrefix: 'a' }));
exactly<bigint>(await db.cancelParked((await db.listParked())[0].id));
exactly<string>(historyLine(transaction, await session.execute(transaction), { invokeUs: 1n }));

try {
  await session.execute(transaction, { signal: AbortSignal.timeout(100), timeoutMs: 50 });
} catch (error) {
  if (error instanceof ConflictError) exactly<Buffer>(error.key);
  if (error instanceof QueueFullError) exactly<ResourceExhaustedError>(error);
  if (error instanceof KiloKVError) exactly<string>(error.reason + error.field + error.limit + error.setting);
}
await db.close();
