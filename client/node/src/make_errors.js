// Makes errors (errors.js) from what gRPC, the server and this client say. This module checks at load that every reason
// of the protocol has its class.
import * as classes from './errors.js';
import { enumNames } from './protocol.js';

// By gRPC's numbers, from 0 to 16.
const CODE_NAMES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
];

const OTHER_SENDING = '; another sending of the request may have run';

// QUEUE_FULL -> QueueFullError
function classNameOf(text) {
  return text.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter) => letter.toUpperCase()) + 'Error';
}

// Number of a reason -> its name, without the prefix that all have.
const REASONS = new Map();
for (const [name, number] of enumNames('ErrorReason')) {
  const reason = name.slice('ERROR_REASON_'.length);
  if (reason === 'UNSPECIFIED') continue;
  if (!classes[classNameOf(reason)]) throw new Error(`the reason ${reason} of the protocol has no class of errors`);
  REASONS.set(number, reason);
}

// The name of a gRPC code. Codes that KiloKV does not use become those that say the same.
function codeName(number) {
  const name = CODE_NAMES[number];
  if (name === 'OUT_OF_RANGE') return 'INVALID_ARGUMENT';
  return name === undefined || name === 'OK' || name === 'ALREADY_EXISTS' ? 'UNKNOWN' : name;
}

// An error of this code and, if there is one, this reason.
export function makeError(code, message, details = {}) {
  const named = classes[classNameOf(details.reason || code)];
  return new named(code, message, details);
}

export function misuse(message, details = {}) {
  return new classes.MisuseError('INVALID_ARGUMENT', message, { notRun: true, ...details });
}

// The same error with another message, other details, or another code.
export function changed(error, details, message = error.message, code = error.code) {
  const made = { ...error, ...details };
  return code === error.code ? new error.constructor(code, message, made) : makeError(code, message, made);
}

// The error of the last sending, where an earlier sending of the same request may have run.
export function withoutPromise(error) {
  return changed(error, { notRun: false, mayHaveRun: true });
}

// The same for a request of a session. The message says so where the code seems to say that nothing ran.
export function ofManySendings(error) {
  const silent = [
    'CANCELLED',
    'DEADLINE_EXCEEDED',
    'UNAVAILABLE',
    'ABORTED',
    'INTERNAL',
    'UNKNOWN',
    'NOT_FOUND',
    'DATA_LOSS',
  ];
  const told = silent.includes(error.code) || error.message.endsWith(OTHER_SENDING);
  return changed(error, { notRun: false, mayHaveRun: true }, told ? error.message : error.message + OTHER_SENDING);
}

function detailsOf(detail, code) {
  if (!detail) return {};
  // With these two codes, the server can also end a call that runs, because its client may make no calls any more.
  const endsCalls = code === 'PERMISSION_DENIED' || code === 'UNAUTHENTICATED';
  return {
    reason: REASONS.get(detail.reason) ?? '', // a newer server may send one that this client does not know
    field: detail.field,
    limit: detail.limit,
    actual: detail.actual,
    setting: detail.setting,
    retryAfterUs: detail.retryAfterUs,
    notRun: detail.notRun,
    mayHaveRun: endsCalls && !detail.notRun,
  };
}

// Explains a message that gRPC refused as too long, before the service saw it. Its code is RESOURCE_EXHAUSTED, although
// nothing is full, and to send again does not help.
function tooLarge(code, text) {
  const sizes = /Received message larger than max \((\d+) vs\. (\d+)\)/.exec(text);
  if (code !== 'RESOURCE_EXHAUSTED' || !sizes) return null;
  const actual = `${sizes[1]} bytes`;
  const limit = `${sizes[2]} bytes (4 times the setting)`;
  const setting = '--message-bytes-max';
  const sizesText = `${actual}, at most ${limit}`;
  const message = `the message is too large for the server: ${sizesText}; send less at once, or raise ${setting}`;
  return new classes.InvalidArgumentError('INVALID_ARGUMENT', message, {
    field: 'message',
    actual,
    limit,
    setting,
    notRun: true,
  });
}

// The error of a call that ended with this gRPC status. `detail` is the ErrorDetail, or null.
export function errorOfStatus(status, detail, where) {
  const code = codeName(status.code);
  const isLate = code === 'DEADLINE_EXCEEDED' && !detail; // then gRPC has the words, and they are about its own parts
  const text = isLate ? 'no answer in time' : status.details || 'refused without a reason';
  return (detail ? null : tooLarge(code, text)) ?? makeError(code, `${where}: ${text}`, detailsOf(detail, code));
}

// The error inside a stream.
export function errorOfMessage(message) {
  const code = codeName(message.code);
  return makeError(code, message.message, detailsOf(message.detail, code));
}

// Whether gRPC refused the message before the service saw it.
export function isTooLargeForGrpc(error) {
  return error.code === 'INVALID_ARGUMENT' && error.field === 'message' && error.reason === '';
}

// Whether another form of the request, such as an upload of its read set, may help.
export function isTooLargeToSend(error) {
  return (
    error.code === 'INVALID_ARGUMENT' && (error.setting === '--guards-max' || error.setting === '--message-bytes-max')
  );
}

export function abortError(signal, details = {}) {
  return new classes.AbortError('CANCELLED', 'the program has aborted the call', { ...details, cause: signal.reason });
}

// The result of a promise. Its error gets the stack of the program that awaits it, instead of that of a listener of
// gRPC. Requires: each caller up to the program awaits it, too.
export async function withCallerStack(promise) {
  try {
    return await promise;
  } catch (error) {
    Error.captureStackTrace(error);
    throw error;
  }
}
