// The errors between a client and the server. Outcomes of transactions are not errors (results.js).
//
// Each gRPC code has a class, and each reason of the server (docs/errors.md) has a subclass of the class of its code.
// The names of the classes follow from those of the reasons: QUEUE_FULL is QueueFullError.

export class KiloKVError extends Error {
  constructor(code, message, details = {}) {
    super(message);
    this.code = code;
    this.reason = details.reason ?? '';
    this.field = details.field ?? '';
    this.limit = details.limit ?? '';
    this.actual = details.actual ?? '';
    this.setting = details.setting ?? '';
    this.retryAfterUs = details.retryAfterUs ?? 0n;
    this.notRun = details.notRun ?? false;
    this.mayHaveRun = details.mayHaveRun ?? false;
    this.request = details.request ?? null;
    this.attempts = details.attempts ?? 0;
    this.results = details.results ?? [];
    if (details.cause !== undefined) this.cause = details.cause;
  }

  get name() {
    return this.constructor.name;
  }

  // The codes are those of docs/transactions.md, section 15.1. RESOURCE_EXHAUSTED alone is not enough: a stream that is
  // cut for too many unsent answers ends with it, too, after its transactions ran. FAILED_PRECONDITION alone is not
  // enough: a session that ends while a request runs gives it.
  get neverRan() {
    if (this.mayHaveRun) return false;
    return (
      this.notRun || ['INVALID_ARGUMENT', 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'UNIMPLEMENTED'].includes(this.code)
    );
  }
}

export class CancelledError extends KiloKVError {}
export class UnknownError extends KiloKVError {}
export class InvalidArgumentError extends KiloKVError {}
export class DeadlineExceededError extends KiloKVError {}
export class NotFoundError extends KiloKVError {}
export class PermissionDeniedError extends KiloKVError {}
export class ResourceExhaustedError extends KiloKVError {}
export class FailedPreconditionError extends KiloKVError {}
export class AbortedError extends KiloKVError {}
export class UnimplementedError extends KiloKVError {}
export class InternalError extends KiloKVError {}
export class UnavailableError extends KiloKVError {}
export class DataLossError extends KiloKVError {}
export class UnauthenticatedError extends KiloKVError {}

// Errors that the client itself finds.

// The program has given an argument that no server could take. Nothing was sent.
export class MisuseError extends InvalidArgumentError {}

// The program's AbortSignal has ended the wait for an answer. `cause` is the reason of the signal.
export class AbortError extends CancelledError {}

// An interactive transaction has read something that has changed since then. Nothing was written.
export class ConflictError extends AbortedError {
  constructor(message, key) {
    super('ABORTED', message, { notRun: true });
    this.key = key;
  }
}

// Errors that the server gives a reason for.

export class MalformedMessageError extends InvalidArgumentError {}
export class UnknownFieldError extends InvalidArgumentError {}
export class MissingFieldError extends InvalidArgumentError {}
export class NotAllowedError extends InvalidArgumentError {}
export class OutOfRangeError extends InvalidArgumentError {}
export class MessageTooLargeError extends InvalidArgumentError {}
export class AnswerTooLargeError extends InvalidArgumentError {}
export class ContentDiffersError extends InvalidArgumentError {}
export class UnknownMethodError extends UnimplementedError {}
export class QueueFullError extends ResourceExhaustedError {}
export class ParkedFullError extends ResourceExhaustedError {}
export class SessionFullError extends ResourceExhaustedError {}
export class SessionsFullError extends ResourceExhaustedError {}
export class UploadsFullError extends ResourceExhaustedError {}
export class TableFullError extends ResourceExhaustedError {}
export class DiskFullError extends ResourceExhaustedError {}
export class ArchiveLateError extends ResourceExhaustedError {}
export class CallsFullError extends ResourceExhaustedError {}
export class ScansFullError extends ResourceExhaustedError {}
export class SlowReaderError extends ResourceExhaustedError {}
export class MemoryFullError extends ResourceExhaustedError {}
export class SessionUnknownError extends FailedPreconditionError {}
export class SessionFencedError extends FailedPreconditionError {}
export class SessionFrozenError extends FailedPreconditionError {}
export class ReadOnlyError extends FailedPreconditionError {}
export class NumberAcknowledgedError extends FailedPreconditionError {}
export class UploadMissingError extends FailedPreconditionError {}
export class SnapshotTooOldError extends AbortedError {}
export class WatchTooOldError extends AbortedError {}
export class RecoveringError extends UnavailableError {}
export class DrainingError extends UnavailableError {}
export class FailedError extends InternalError {}
export class CorruptError extends DataLossError {}
export class LoginMissingError extends UnauthenticatedError {}
export class LoginWrongError extends UnauthenticatedError {}
export class RightMissingError extends PermissionDeniedError {}
export class AccessUnknownError extends NotFoundError {}
export class AccessFullError extends ResourceExhaustedError {}
export class AccessNeedsAdminError extends FailedPreconditionError {}
export class AccessOverlapsError extends FailedPreconditionError {}
