"""Commits with large read sets. Guards of versions at the begin of a transaction are uploaded in chunks, under the
number of the request. Then the rest is sent, and the server joins both to one transaction."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kilokv import errors
from kilokv._core.failures import is_too_large
from kilokv._core.retry import Backoff, Retry
from kilokv._core.steps import Metadata, Pause, Steps
from kilokv.results import Result
from kilokv.transaction import WAIT, Transaction
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.v1 import transaction_pb2

if TYPE_CHECKING:
    from kilokv._core.session import SessionCore

_GUARDS_MAX = 1024             # default of the server's --guards-max
_FEW_GUARDS = 64               # they fit in one request, whatever their keys are
_CHUNK_BYTES = 1 << 20         # about the bytes of one message
_CHUNK_BYTES_MIN = 1 << 12     # smallest chunk, for a server with a lower limit
_KEY_BYTES = 16                # most bytes of a key in a message, its own not counted


def uploadable_guards(transaction: Transaction) -> int:
    """How many guards at its begin can be uploaded. A transaction that may wait has none."""
    message = transaction.message
    if message.wait_timeout_us != 0 or any(guard.on_false == WAIT for guard in message.guards):
        return 0
    count = 0
    for guard in message.guards:
        if guard.kind != transaction_pb2.GUARD_KIND_VERSION_EQUAL:
            break
        count += 1
    return count


def needs_upload(transaction: Transaction) -> bool:
    """Whether the guards do not fit in one request."""
    guards = len(transaction.message.guards)
    if guards <= _FEW_GUARDS:
        return False
    uploadable = uploadable_guards(transaction)
    if uploadable == 0:
        return False
    key_bytes = sum(len(guard.key) for guard in transaction.message.guards)
    return guards > _GUARDS_MAX or key_bytes + uploadable * _KEY_BYTES > _CHUNK_BYTES


class Upload:
    """One commit with its upload. `attempts` counts the sendings of the commit. `may_have_run`: one of them may have
    run."""

    def __init__(self, session: "SessionCore", transaction: Transaction, number: int, attempts: int, deadline: float,
                 metadata: Metadata, may_have_run: bool) -> None:
        self._session, self._transaction, self._number = session, transaction, number
        self._deadline, self._metadata = deadline, metadata
        self._keys = uploadable_guards(transaction)
        self._chunk_bytes = _CHUNK_BYTES
        self._session_gone = False
        self.attempts, self.may_have_run = attempts, may_have_run

    def commit(self) -> Steps[Result]:
        """Uploads, commits, and begins again if the server does not have the keys any more."""
        backoff = Backoff(self._session.caller.options)
        while True:
            try:
                yield from self._upload()
                return (yield from self._execute())
            except errors.FailedPreconditionError as error:
                delay = backoff.next(error.retry_after)
                if self._session_gone or time.monotonic() + delay >= self._deadline:
                    raise
            yield Pause(delay)

    def _upload(self) -> Steps[None]:
        begin = 0
        while begin < self._keys:
            chunk = pb.UploadReadSetRequest(offset=begin)
            self._fill_id(chunk.id)
            end = self._fill(chunk, begin)
            try:
                yield from self._session.caller.call("UploadReadSet", chunk, self._deadline, Retry.IN_SESSION)
            except errors.Error as error:
                if is_too_large(error) and self._chunk_bytes > _CHUNK_BYTES_MIN:
                    self._chunk_bytes //= 2
                    continue
                # Keys that are missing are never the reason for the first chunk.
                self._session_gone = begin == 0 and isinstance(error, errors.FailedPreconditionError)
                error.may_have_run = False  # only a lost upload, which runs nothing
                raise
            begin = end

    def _fill(self, chunk: Any, begin: int) -> int:
        """Fills the chunk with keys from `begin` on. Returns the end of those that fit."""
        guards = self._transaction.message.guards
        filled, end = 0, begin
        while end < self._keys and filled < self._chunk_bytes:
            chunk.keys.append(guards[end].key)
            chunk.versions.append(guards[end].version)
            filled += len(guards[end].key) + _KEY_BYTES
            end += 1
        return end

    def _execute(self) -> Steps[Result]:
        request = pb.ExecuteRequest(transaction=self._transaction.message, uploaded_keys=self._keys)
        del request.transaction.guards[:self._keys]

        def attempt() -> None:
            self.attempts += 1
            self._fill_id(request.id)

        try:
            answer = yield from self._session.caller.call("Execute", request, self._deadline, Retry.IN_SESSION,
                                                          metadata=self._metadata, attempt=attempt)
        except errors.Error as error:
            self.may_have_run = self.may_have_run or not error.never_ran
            raise
        return Result(answer.result, self._transaction, self._number, self.attempts)

    def _fill_id(self, request_id: Any) -> None:
        request_id.session, request_id.holder = self._session.session, self._session.holder
        request_id.number = self._number
        request_id.acknowledged_through = self._session.numbers.acknowledged_through
