// Transactions with every kind of guard and operation.
import { FAIL, Transaction, batchTime, commitVersion, fromGet, keyNamed } from '../../src/transaction.js';

// `guards`: builders by the name of the kind in the protocol. `waits`: those that may wait. `all`: one transaction with
// every operation and operand.
export function everyKind() {
  const compares = { EQUAL: '==', NOT_EQUAL: '!=', LESS: '<', LESS_EQUAL: '<=', GREATER: '>', GREATER_EQUAL: '>=' };
  const guards = {
    GUARD_KIND_EXISTS: (t, onFalse) => t.guardExists('k', onFalse),
    GUARD_KIND_ABSENT: (t, onFalse) => t.guardAbsent('k', onFalse),
    GUARD_KIND_VERSION_EQUAL: (t, onFalse) => t.guardVersion('k', 7, onFalse),
    GUARD_KIND_UNCHANGED: (t, onFalse) => t.guardUnchanged('k', 7n, onFalse),
    GUARD_KIND_BYTES_EQUAL: (t, onFalse) => t.guardBytes('k', 'value', onFalse),
    GUARD_KIND_RANGE_UNCHANGED: (t, onFalse) => t.guardRangeUnchanged('a', 'b', 7n, onFalse),
    GUARD_KIND_TIME_BEFORE: (t) => t.guardTimeBefore(7n),
    GUARD_KIND_TIME_AFTER: (t, onFalse) => t.guardTimeAfter(7n, onFalse),
  };
  for (const [name, compare] of Object.entries(compares)) {
    guards[`GUARD_KIND_${name}`] = (t, onFalse) => t.guard('k', compare, -7, onFalse);
  }
  const waits = Object.keys(guards).filter((name) => name !== 'GUARD_KIND_TIME_BEFORE');
  const all = () =>
    new Transaction({ precedence: 200, waitTimeoutMs: 3_600_000, expireRunsElse: true })
      .guard('k', '<=', keyNamed('other'), FAIL)
      .get('k')
      .put('p', -5, { ttlMs: 1.5 })
      .put('q', Buffer.from([0xff, 0x78]))
      .put('r', fromGet(0))
      .add('s', fromGet(0, { negate: true }))
      .put('t', commitVersion)
      .add('u', batchTime, { expiresAtUs: 7n })
      .delete('v')
      .rangeGet('a', 'b', 3)
      .rangeGetReverse('', '', 4)
      .deleteRange('c', 'd', 5)
      .otherwise()
      .delete('w');
  return { guards, waits, all };
}
