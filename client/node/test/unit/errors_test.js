// Errors: their classes, and what they say about whether a request ran.
import assert from 'node:assert/strict';
import test from 'node:test';

import * as errors from '../../src/errors.js';
import {
  changed,
  errorOfMessage,
  errorOfStatus,
  isTooLargeForGrpc,
  makeError,
  misuse,
  ofManySendings,
  withoutPromise,
} from '../../src/make_errors.js';
import { enumNames, message } from '../../src/protocol.js';

const detail = (fields) => message('ErrorDetail', fields);
const number = (reason) => new Map(enumNames('ErrorReason')).get(`ERROR_REASON_${reason}`);

test('each reason of the protocol has a class, below that of its code', () => {
  for (const [name, reason] of enumNames('ErrorReason').slice(1)) {
    const error = errorOfMessage(message('Error', { code: 9, message: 'x', detail: detail({ reason }) }));
    assert.ok(error instanceof errors.KiloKVError);
    assert.equal(error.reason, name.slice('ERROR_REASON_'.length));
    assert.equal(error.name.replaceAll('_', '').toUpperCase(), `${error.reason.replaceAll('_', '')}ERROR`);
  }
});

test('an error has all that the server says', () => {
  const said = {
    field: 'f',
    limit: 'l',
    actual: 'a',
    setting: '--s',
    retryAfterUs: 5n,
    notRun: true,
    reason: number('QUEUE_FULL'),
  };
  const error = errorOfStatus({ code: 8, details: 'full' }, detail(said), 'Execute at h:1');
  assert.ok(error instanceof errors.QueueFullError && error instanceof errors.ResourceExhaustedError);
  assert.equal(error.message, 'Execute at h:1: full');
  const { field, limit, actual, setting, retryAfterUs, notRun, code } = error;
  assert.deepEqual(
    { field, limit, actual, setting, retryAfterUs, notRun, code },
    { field: 'f', limit: 'l', actual: 'a', setting: '--s', retryAfterUs: 5n, notRun: true, code: 'RESOURCE_EXHAUSTED' },
  );
});

test('a reason that this client does not know leaves the code', () => {
  const error = errorOfMessage(message('Error', { code: 9, message: 'x', detail: detail({ reason: 999 }) }));
  assert.equal(error.constructor, errors.FailedPreconditionError);
  assert.equal(error.reason, '');
});

test('which errors say that nothing ran', () => {
  assert.ok(makeError('INVALID_ARGUMENT', 'x').neverRan);
  assert.ok(makeError('UNAVAILABLE', 'x', { notRun: true }).neverRan);
  for (const code of ['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'DEADLINE_EXCEEDED', 'CANCELLED']) {
    assert.ok(!makeError(code, 'x').neverRan, code);
  }
  assert.ok(!ofManySendings(makeError('INVALID_ARGUMENT', 'x')).neverRan);
  assert.match(ofManySendings(makeError('INVALID_ARGUMENT', 'x')).message, /another sending/);
  assert.equal(ofManySendings(makeError('UNAVAILABLE', 'x')).message, 'x');
  assert.ok(!withoutPromise(makeError('UNAVAILABLE', 'x', { notRun: true })).neverRan);
  // The server ends a call that runs, because its client lost its rights.
  assert.ok(!errorOfStatus({ code: 7, details: 'x' }, detail({ reason: number('RIGHT_MISSING') }), 'c').neverRan);
  assert.ok(errorOfStatus({ code: 7, details: 'x' }, null, 'c').neverRan);
});

test('a message that gRPC refuses as too long is no full server', () => {
  const status = { code: 8, details: 'Received message larger than max (16777217 vs. 16777216)' };
  const error = errorOfStatus(status, null, 'Session');
  assert.equal(error.code, 'INVALID_ARGUMENT');
  assert.equal(error.setting, '--message-bytes-max');
  assert.ok(error.neverRan && isTooLargeForGrpc(error));
});

test('a changed error keeps its class as long as its code stays', () => {
  const error = misuse('x', { field: 'f' });
  assert.ok(changed(error, { attempts: 3 }) instanceof errors.MisuseError);
  assert.equal(changed(error, { attempts: 3 }).field, 'f');
  assert.equal(changed(error, {}, 'y', 'UNAVAILABLE').constructor, errors.UnavailableError);
});
