"""The errors between a client and a server. Outcomes of transactions are results, not errors (results.py).

Each error has a class for its gRPC code, such as ResourceExhaustedError. If the server has named a reason, the class is
one below it, such as QueueFullError. So a program catches as much as it wants to handle:

    try:
        session.execute(transaction)
    except kilokv.SessionFencedError:     # one reason
        ...
    except kilokv.UnavailableError:       # a code, whatever the reason is
        ...
    except kilokv.Error as error:         # everything
        print(error.reason, error.setting)

docs/errors.md explains each reason: whether the request ran, and what to do.
"""

from __future__ import annotations

from typing import ClassVar, Dict, Tuple, Type

__all__ = [
    "AbortedError", "AccessFullError", "AccessNeedsAdminError", "AccessOverlapsError", "AccessUnknownError",
    "AnswerTooLargeError", "ArchiveLateError", "CallCancelledError", "CallsFullError", "CancelledError", "ClosedError",
    "ConflictError", "ContentDiffersError", "CorruptError", "DataLossError", "DeadlineExceededError", "DiskFullError",
    "DrainingError", "Error", "FailedError", "FailedPreconditionError", "InternalError", "InvalidArgumentError",
    "LoginMissingError", "LoginWrongError", "MalformedMessageError", "MemoryFullError", "MessageTooLargeError",
    "MissingFieldError", "NotAllowedError", "NotFoundError", "NumberAcknowledgedError", "OutOfRangeError",
    "ParkedFullError", "PermissionDeniedError", "QueueFullError", "ReadOnlyError", "RecoveringError",
    "ResourceExhaustedError", "RightMissingError", "ScansFullError", "SessionFencedError", "SessionFrozenError",
    "SessionFullError", "SessionUnknownError", "SessionsFullError", "SlowReaderError", "SnapshotTooOldError",
    "TableFullError", "UnauthenticatedError", "UnavailableError", "UnimplementedError", "UnknownError",
    "UnknownFieldError", "UnknownMethodError", "UploadMissingError", "UploadsFullError",
    "WatchTooOldError"]


class Error(Exception):
    """Why a call has no answer.

    code            the name that gRPC uses, such as INVALID_ARGUMENT
    reason          as the server named it, such as QUEUE_FULL; empty: it named none, or one that this client does not
                    know
    message         for people
    field, limit, actual, setting
                    what exceeded which limit, and the flag of kilokvd that sets the limit; empty: the server named none
    retry_after     seconds after which a retry can succeed; 0: waiting does not help, or it is not known
    not_run         nothing of the request ran or will run: the server said so of each sending, or none was sent
    may_have_run    a sending may have run; then not_run is False, because a refusal is about its own sending only
    request         number of the request in its session, for resume(); 0: it has none
    attempts        how often the request with this number was sent
    """

    code: ClassVar[str] = "UNKNOWN"

    def __init__(self, message: str = "", *, reason: str = "", field: str = "", limit: str = "", actual: str = "",
                 setting: str = "", retry_after: float = 0.0, not_run: bool = False,
                 may_have_run: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.field, self.limit, self.actual, self.setting = field, limit, actual, setting
        self.retry_after = retry_after
        self.not_run, self.may_have_run = not_run, may_have_run
        self.request = 0
        self.attempts = 0

    @property
    def never_ran(self) -> bool:
        """Whether each sending of the request was refused. If True, its transactions without an answer did not run. If
        False, nobody knows whether they ran (docs/transactions.md, section 15.1)."""
        if self.may_have_run:
            return False
        return self.not_run or self.code in _REFUSALS

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}" if self.message else self.code
        return f"{text} (reason {self.reason})" if self.reason else text


# Codes that alone say that a sending did not run.
_REFUSALS = frozenset({"INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"})


# By code.
class CancelledError(Error):
    """The client or the server ended the call."""
    code = "CANCELLED"


class UnknownError(Error):
    """gRPC gives a code that says nothing."""


class InvalidArgumentError(Error):
    """The input is malformed or over a limit. Nothing of it ran."""
    code = "INVALID_ARGUMENT"


class DeadlineExceededError(Error):
    """No answer came in time. In a session, resume() asks for it again."""
    code = "DEADLINE_EXCEEDED"


class NotFoundError(Error):
    """What the call names is not there."""
    code = "NOT_FOUND"


class PermissionDeniedError(Error):
    """The user lacks a right."""
    code = "PERMISSION_DENIED"


class ResourceExhaustedError(Error):
    """The server stayed full until the deadline, or says that waiting does not help."""
    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error):
    """The session or the number does not allow the request."""
    code = "FAILED_PRECONDITION"


class AbortedError(Error):
    """A scan or an interactive transaction has to begin again."""
    code = "ABORTED"


class UnimplementedError(Error):
    """The server does not know the call."""
    code = "UNIMPLEMENTED"


class InternalError(Error):
    """The server failed."""
    code = "INTERNAL"


class UnavailableError(Error):
    """There is no server, or it starts or stops. Without a session, the outcome of a transaction is unknown."""
    code = "UNAVAILABLE"


class DataLossError(Error):
    """Stored data is damaged."""
    code = "DATA_LOSS"


class UnauthenticatedError(Error):
    """The login is missing or wrong, or client and server do not agree on TLS."""
    code = "UNAUTHENTICATED"


# Of this client.
class ClosedError(CancelledError):
    """The client or the session was closed."""


class ConflictError(AbortedError):
    """What an interactive transaction has read was changed before its commit. It wrote nothing.

    key       the key that changed; for a scan, the begin of the range that it guards
    attempts  how often the transaction was tried
    """

    def __init__(self, key: bytes, attempts: int = 1) -> None:
        tries = "1 attempt" if attempts == 1 else f"all {attempts} attempts"
        super().__init__(f"conflict with another transaction in {tries}; the key is {key!r}", not_run=True)
        self.key = key
        self.attempts = attempts


# By reason, in the order of the protocol.
class MalformedMessageError(InvalidArgumentError):
    """The bytes are no message of the expected type."""


class UnknownFieldError(InvalidArgumentError):
    """The server does not know a field of the transaction, because the client is newer."""


class MissingFieldError(InvalidArgumentError):
    """A field is missing."""


class NotAllowedError(InvalidArgumentError):
    """A field is set that another field excludes."""


class OutOfRangeError(InvalidArgumentError):
    """A value, a length, a count or an index is beyond its limit."""


class MessageTooLargeError(InvalidArgumentError):
    """The request is longer than the setting --message-bytes-max."""


class AnswerTooLargeError(InvalidArgumentError):
    """The values of a get do not fit in one answer: ask for fewer keys."""


class ContentDiffersError(InvalidArgumentError):
    """The number of the request was used before with other content."""


class UnknownMethodError(UnimplementedError):
    """The server has no such method, or runs without logins and the method needs them."""


class QueueFullError(ResourceExhaustedError):
    """The queue of accepted requests is full."""


class ParkedFullError(ResourceExhaustedError):
    """Too many transactions wait."""


class SessionFullError(ResourceExhaustedError):
    """A session has too many requests, or too many bytes of stored results."""


class SessionsFullError(ResourceExhaustedError):
    """There are too many sessions."""


class UploadsFullError(ResourceExhaustedError):
    """Uploaded read sets take too much memory."""


class TableFullError(ResourceExhaustedError):
    """The table has no place for a new key."""


class DiskFullError(ResourceExhaustedError):
    """The disk has no room for what the request may write."""


class ArchiveLateError(ResourceExhaustedError):
    """The required archive of the log lacks too much of it."""


class CallsFullError(ResourceExhaustedError):
    """There are too many calls at once."""


class ScansFullError(ResourceExhaustedError):
    """Too many scans keep a boundary."""


class SlowReaderError(ResourceExhaustedError):
    """The client does not take its answers."""


class MemoryFullError(ResourceExhaustedError):
    """The memory for data is full."""


class SessionUnknownError(FailedPreconditionError):
    """The session is unknown, was closed, or has ended with its lease."""


class SessionFencedError(FailedPreconditionError):
    """Another client has attached to the session. This client should stop."""


class SessionFrozenError(FailedPreconditionError):
    """The session is from before a restore, and runs nothing more."""


class ReadOnlyError(FailedPreconditionError):
    """The server was started with --read-only."""


class NumberAcknowledgedError(FailedPreconditionError):
    """The client has said before that it has the results of this number."""


class UploadMissingError(FailedPreconditionError):
    """The uploaded keys that the request needs are not on the server."""


class SnapshotTooOldError(AbortedError):
    """The server does not keep the boundary of the scan any more: begin the scan again."""


class WatchTooOldError(AbortedError):
    """The log that the watch needs is not kept any more, or the database was restored: scan, and watch from there."""


class RecoveringError(UnavailableError):
    """The server has not recovered yet."""


class DrainingError(UnavailableError):
    """The server is about to stop."""


class CallCancelledError(CancelledError):
    """The server ended the call, because the client has gone or was cut off."""


class FailedError(InternalError):
    """The server failed. Its log says more."""


class CorruptError(DataLossError):
    """Stored data is damaged. The log of the server names the file."""


class LoginMissingError(UnauthenticatedError):
    """The server needs a login, and the call has none."""


class LoginWrongError(UnauthenticatedError):
    """The token or the certificate does not count, or not any more."""


class RightMissingError(PermissionDeniedError):
    """The user has no right to something that the request names."""


class AccessUnknownError(NotFoundError):
    """No user, role or token has this name."""


class AccessFullError(ResourceExhaustedError):
    """There are too many users, roles or tokens."""


class AccessNeedsAdminError(FailedPreconditionError):
    """After the change, nobody would have the admin right."""


class AccessOverlapsError(FailedPreconditionError):
    """The role would keep another range with some of the keys to take away."""


# Indexed by gRPC's codes, 0 to 16. A code that the server never sends has the class of its nearest neighbour.
CLASS_OF_CODE: Tuple[Type[Error], ...] = (
    UnknownError, CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError,
    UnknownError, PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError,
    InvalidArgumentError, UnimplementedError, InternalError, UnavailableError, DataLossError, UnauthenticatedError)

CLASS_OF_REASON: Dict[str, Type[Error]] = {
    "MALFORMED_MESSAGE": MalformedMessageError,
    "UNKNOWN_FIELD": UnknownFieldError,
    "MISSING_FIELD": MissingFieldError,
    "NOT_ALLOWED": NotAllowedError,
    "OUT_OF_RANGE": OutOfRangeError,
    "MESSAGE_TOO_LARGE": MessageTooLargeError,
    "ANSWER_TOO_LARGE": AnswerTooLargeError,
    "CONTENT_DIFFERS": ContentDiffersError,
    "UNKNOWN_METHOD": UnknownMethodError,
    "QUEUE_FULL": QueueFullError,
    "PARKED_FULL": ParkedFullError,
    "SESSION_FULL": SessionFullError,
    "SESSIONS_FULL": SessionsFullError,
    "UPLOADS_FULL": UploadsFullError,
    "TABLE_FULL": TableFullError,
    "DISK_FULL": DiskFullError,
    "ARCHIVE_LATE": ArchiveLateError,
    "CALLS_FULL": CallsFullError,
    "SCANS_FULL": ScansFullError,
    "SLOW_READER": SlowReaderError,
    "MEMORY_FULL": MemoryFullError,
    "SESSION_UNKNOWN": SessionUnknownError,
    "SESSION_FENCED": SessionFencedError,
    "SESSION_FROZEN": SessionFrozenError,
    "READ_ONLY": ReadOnlyError,
    "NUMBER_ACKNOWLEDGED": NumberAcknowledgedError,
    "UPLOAD_MISSING": UploadMissingError,
    "SNAPSHOT_TOO_OLD": SnapshotTooOldError,
    "WATCH_TOO_OLD": WatchTooOldError,
    "RECOVERING": RecoveringError,
    "DRAINING": DrainingError,
    "CANCELLED": CallCancelledError,
    "FAILED": FailedError,
    "CORRUPT": CorruptError,
    "LOGIN_MISSING": LoginMissingError,
    "LOGIN_WRONG": LoginWrongError,
    "RIGHT_MISSING": RightMissingError,
    "ACCESS_UNKNOWN": AccessUnknownError,
    "ACCESS_FULL": AccessFullError,
    "ACCESS_NEEDS_ADMIN": AccessNeedsAdminError,
    "ACCESS_OVERLAPS": AccessOverlapsError,
}
