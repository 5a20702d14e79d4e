// The kinds of guards and operations: their numbers in the protocol, their names in histories, and what they need.
import { numbers } from './protocol.js';

export const OnFalse = numbers('OnFalse', { FAIL: 'ON_FALSE_FAIL', WAIT: 'ON_FALSE_WAIT' });

export const GuardKind = numbers('GuardKind', {
  exists: 'GUARD_KIND_EXISTS',
  absent: 'GUARD_KIND_ABSENT',
  eq: 'GUARD_KIND_EQUAL',
  ne: 'GUARD_KIND_NOT_EQUAL',
  lt: 'GUARD_KIND_LESS',
  le: 'GUARD_KIND_LESS_EQUAL',
  gt: 'GUARD_KIND_GREATER',
  ge: 'GUARD_KIND_GREATER_EQUAL',
  version: 'GUARD_KIND_VERSION_EQUAL',
  unchanged: 'GUARD_KIND_UNCHANGED',
  bytes_eq: 'GUARD_KIND_BYTES_EQUAL',
  range_unchanged: 'GUARD_KIND_RANGE_UNCHANGED',
  time_before: 'GUARD_KIND_TIME_BEFORE',
  time_after: 'GUARD_KIND_TIME_AFTER',
});

export const OperationKind = numbers('OperationKind', {
  get: 'OPERATION_KIND_GET',
  put: 'OPERATION_KIND_PUT',
  delete: 'OPERATION_KIND_DELETE',
  add: 'OPERATION_KIND_ADD',
  range_get: 'OPERATION_KIND_RANGE_GET',
  delete_range: 'OPERATION_KIND_DELETE_RANGE',
  range_get_reverse: 'OPERATION_KIND_RANGE_GET_REVERSE',
});

export const OperandKind = numbers('OperandKind', {
  integer: 'OPERAND_KIND_INTEGER',
  bytes: 'OPERAND_KIND_BYTES',
  get: 'OPERAND_KIND_GET',
  getNegated: 'OPERAND_KIND_GET_NEGATED',
  commitVersion: 'OPERAND_KIND_COMMIT_VERSION',
  batchTime: 'OPERAND_KIND_BATCH_TIME',
});

export const ExpiryKind = numbers('ExpiryKind', { expiresAtUs: 'EXPIRY_KIND_AT', ttlUs: 'EXPIRY_KIND_TTL' });

export const Outcome = numbers('Outcome', {
  COMMITTED: 'OUTCOME_COMMITTED',
  GUARD_FAILED: 'OUTCOME_GUARD_FAILED',
  WAIT_EXPIRED: 'OUTCOME_WAIT_EXPIRED',
  OVERFLOW: 'OUTCOME_OVERFLOW',
  TYPE_MISMATCH: 'OUTCOME_TYPE_MISMATCH',
  CANCELLED: 'OUTCOME_CANCELLED',
});

export const FailedIn = numbers('FailedIn', {
  none: 'FAILED_IN_NONE',
  guards: 'FAILED_IN_GUARDS',
  then: 'FAILED_IN_THEN',
  else: 'FAILED_IN_ELSE',
});

// The operators of integer guards, as programs write them.
export const COMPARES = Object.freeze({
  '==': GuardKind.eq,
  '!=': GuardKind.ne,
  '<': GuardKind.lt,
  '<=': GuardKind.le,
  '>': GuardKind.gt,
  '>=': GuardKind.ge,
});

// The name of each number of a table above.
function namesOf(table) {
  return new Map(Object.entries(table).map(([name, number]) => [number, name]));
}

export const guardNames = namesOf(GuardKind);
export const operationNames = namesOf(OperationKind);
export const outcomeNames = namesOf(Outcome);
export const failedInNames = namesOf(FailedIn);
