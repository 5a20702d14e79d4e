"""A session: requests under numbers, so that each is applied once, however often it is sent."""

from __future__ import annotations

import secrets
import time
from typing import Any, List, Optional, Sequence, Tuple, TypeVar

from kilokv import errors
from kilokv._core import requests
from kilokv._core.failures import is_too_large
from kilokv._core.numbers import Numbers
from kilokv._core.read_set import Upload, needs_upload, uploadable_guards
from kilokv._core.retry import Caller, Retry, may_retry
from kilokv._core.steps import Metadata, Pause, Steps
from kilokv.results import KnownRequest, RequestState, Result
from kilokv.transaction import Operand, Transaction, check_transaction
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.values import KeyLike, to_microseconds, to_unsigned

_CLOSE_TIMEOUT = 1.0
_RENEWAL_MIN = 0.1  # seconds
# More transactions than any server accepts in a request. A list that says so is wrong, and would take much memory.
_TRANSACTIONS_MAX = 1 << 24
_STATES = {pb.KnownRequest.STATE_DECIDED: RequestState.DECIDED,
           pb.KnownRequest.STATE_PARTLY_DECIDED: RequestState.PARTLY_DECIDED,
           pb.KnownRequest.STATE_PARKED: RequestState.PARKED}
R = TypeVar("R")


class SessionCore:
    """What is known of a session, and its calls as steps.

    `ended` is the error that ended the session for this client. After it, nothing is sent.
    """

    def __init__(self, caller: Caller, session: bytes, lease: float, *, holder: int = 0,
                 numbers: Optional[Numbers] = None) -> None:
        self.caller = caller
        self.session, self.lease, self.holder = session, lease, holder
        self.numbers = numbers or Numbers()
        self.ended: Optional[errors.Error] = None

    @classmethod
    def open(cls, caller: Caller, lease: Optional[float]) -> Steps["SessionCore"]:
        """A retry may open a second session. Nobody uses the first one, so it ends with its lease."""
        request = pb.OpenSessionRequest(lease_us=0 if lease is None else to_microseconds(lease, "lease"))
        answer = yield from caller.call("OpenSession", request, caller.deadline(None), Retry.ALWAYS)
        return cls(caller, answer.session, answer.lease_us / 1e6)

    # Requests.

    def begin(self, number: Optional[int] = None) -> Tuple[int, int]:
        """The number of a request, and how often it was sent before. With a number, it resumes this one. Each begin()
        needs a send() after it."""
        if self.ended is not None:
            raise self._ended_error()
        if number is None:
            return self.numbers.take(), 0
        return number, self.numbers.take_again(number)

    def send(self, begun: Tuple[int, int], sending: requests.Sending[R], timeout: Optional[float],
             metadata: Metadata = (), resumed: bool = False) -> Steps[R]:
        """Sends a request until it is answered, refused, or its time is over. `resumed`: an earlier sending may have
        run."""
        number, attempts = begun
        can_go_on = False
        message = sending.message
        request_id = message.id
        request_id.session, request_id.number, request_id.holder = self.session, number, self.holder

        def attempt() -> None:
            nonlocal attempts
            if self.ended is not None:
                raise self._ended_error()
            attempts += 1
            request_id.acknowledged_through = self.numbers.acknowledged_through

        try:
            deadline = self.caller.deadline(timeout, sending.wait_seconds)
            can_go_on = True  # if the caller gives up, such as by a cancelled task
            answer = yield from self.caller.call(sending.method, message, deadline, Retry.IN_SESSION, metadata=metadata,
                                                 take=sending.take, attempt=attempt)
            results = sending.results(answer, number, attempts)
            can_go_on = False
            return results
        except errors.Error as error:
            can_go_on = self.fail(error, number, attempts, resumed)
            raise
        finally:
            self.numbers.ended(number, attempts, can_go_on)

    def execute(self, transaction: Transaction, timeout: Optional[float], metadata: Metadata = ()) -> Steps[Result]:
        """One transaction as a request of its own. Too many guards of versions are uploaded first."""
        if needs_upload(check_transaction(transaction)):
            return (yield from self.commit_with_upload(transaction, timeout, metadata))
        try:
            sending = requests.One(transaction)
            return (yield from self.send(self.begin(), sending, timeout, metadata))
        except errors.Error as error:
            # The upload has another number. If an earlier sending ran, the transaction would be applied twice.
            if not (is_too_large(error) and error.never_ran and uploadable_guards(transaction)):
                raise
        return (yield from self.commit_with_upload(transaction, timeout, metadata))

    def resume(self, number: int, sending: requests.Sending[R], timeout: Optional[float]) -> Steps[R]:
        """Asks again for a request. The content must be the same."""
        to_unsigned(number, "the number of the request")
        return (yield from self.send(self.begin(number), sending, timeout, resumed=True))

    def resume_one(self, number: int, transaction: Transaction, timeout: Optional[float]) -> Steps[Result]:
        """resume() for a transaction that may have been sent with an upload. How an earlier holder has sent a number is
        not known. It has decided as this client does."""
        check_transaction(transaction)
        to_unsigned(number, "the number of the request")
        uploaded = needs_upload(transaction) if self.numbers.inherits(number) else self.numbers.was_uploaded(number)
        if uploaded:
            return (yield from self.commit_with_upload(transaction, timeout, number=number))
        return (yield from self.resume(number, requests.One(transaction), timeout))

    def commit_with_upload(self, transaction: Transaction, timeout: Optional[float], metadata: Metadata = (),
                           number: Optional[int] = None) -> Steps[Result]:
        deadline = self.caller.deadline(timeout)
        begun, earlier = self.begin(number)
        upload = Upload(self, transaction, begun, earlier, deadline, metadata, number is not None)
        can_go_on = True
        try:
            result = yield from upload.commit()
            can_go_on = False
            return result
        except errors.Error as error:
            can_go_on = self.fail(error, begun, upload.attempts, upload.may_have_run)
            raise
        finally:
            self.numbers.ended(begun, upload.attempts, can_go_on, uploaded=True)

    def fail(self, error: errors.Error, number: int, attempts: int, may_have_run: bool) -> bool:
        """Completes the error of a request with what is known of all its sendings. Returns whether the request can be
        resumed. It cannot if it was refused for good, or never sent."""
        if isinstance(error, (errors.SessionUnknownError, errors.SessionFencedError)):
            self.ended = self.ended or error
        if may_have_run:
            error.not_run, error.may_have_run = False, True
        elif attempts == 0:
            error.not_run = True
        error.request, error.attempts = number, attempts
        return error.may_have_run or (attempts != 0 and (not error.never_ran or may_retry(error, Retry.ALWAYS)))

    def _ended_error(self) -> errors.Error:
        """A new error for a request that is not sent, because the session has ended."""
        assert self.ended is not None
        return type(self.ended)(f"the session has ended: {self.ended.message}", reason=self.ended.reason, not_run=True)

    def cancel(self, number: int, index: Optional[int]) -> Steps[int]:
        return (yield from requests.cancel_request(self.caller, self.session, number, index, self.holder))

    # Single writes.

    def put(self, key: KeyLike, value: Operand, timeout: Optional[float], ttl: Optional[float],
            expires_at_us: Optional[int]) -> Steps[int]:
        """Returns the version."""
        transaction = Transaction().put(key, value, ttl=ttl, expires_at_us=expires_at_us)
        result = yield from self.execute(transaction, timeout)
        version = result.check().version
        if version is None:
            raise errors.InternalError("the server committed a put without a version")
        return version

    def add(self, key: KeyLike, delta: Operand, timeout: Optional[float], ttl: Optional[float],
            expires_at_us: Optional[int]) -> Steps[int]:
        """Returns the sum."""
        transaction = Transaction().add(key, delta, ttl=ttl, expires_at_us=expires_at_us)
        total = transaction.get(key)
        result = yield from self.execute(transaction, timeout)
        value = result.check()[total]
        if not isinstance(value, int):
            raise errors.InternalError("the server answered an add without its sum")
        return value

    def delete(self, keys: Sequence[KeyLike], timeout: Optional[float]) -> Steps[Optional[int]]:
        """Deletes all keys in one transaction. Returns the version; None: all were absent."""
        transaction = Transaction()
        for key in keys:
            transaction.delete(key)
        result = yield from self.execute(transaction, timeout)
        return result.check().version

    # The life of the session.

    def renew_until_ended(self) -> Steps[None]:
        """Renews the lease again and again. Returns when the session has ended."""
        pause = self.lease / 3
        while True:
            request = pb.KeepSessionAliveRequest(session=self.session, holder=self.holder)
            try:
                yield Pause(max(pause, _RENEWAL_MIN))
                deadline = time.monotonic() + max(self.lease / 3, 1.0)
                yield from self.caller.call("KeepSessionAlive", request, deadline, Retry.ALWAYS)
                pause = self.lease / 3
            except errors.ClosedError:
                return
            except errors.FailedPreconditionError as error:
                self.ended = self.ended or error
                return
            except (errors.UnauthenticatedError, errors.PermissionDeniedError):
                pause = self.lease / 3  # to try again soon does not help
            except errors.Error:
                pause = min(self.lease / 10, 1.0)

    def leave(self) -> None:
        """Ends the session for this client only."""
        self.ended = self.ended or errors.ClosedError("the session is closed")

    def close(self) -> Steps[None]:
        """If the server does not get this call, the session ends with its lease."""
        self.leave()
        request = pb.CloseSessionRequest(session=self.session, holder=self.holder)
        try:
            yield from self.caller.call("CloseSession", request, time.monotonic() + _CLOSE_TIMEOUT, Retry.ALWAYS)
        except errors.Error:
            pass

    def known_requests(self) -> Steps[List[KnownRequest]]:
        if self.holder == 0:
            raise errors.FailedPreconditionError("this client has opened the session and knows its requests: only a "
                                                 "client that has attached can ask for them", not_run=True)
        request = pb.AttachSessionRequest(session=self.session, holder=self.holder)
        _, known = yield from _list_requests(self.caller, request)
        return known


def state_of(acknowledged_through: int, known: Sequence[KnownRequest], number: int) -> RequestState:
    """The state of a number, from what an attach has told."""
    if number <= acknowledged_through:
        return RequestState.ACKNOWLEDGED
    return next((request.state for request in known if request.number == number), RequestState.NOT_KNOWN)


def attach(caller: Caller, session: bytes, numbers_used: int) -> Steps[Tuple[SessionCore, Any, List[KnownRequest]]]:
    """Takes a session over. Returns it, the last answer of the server, and the requests that the server knows."""
    used = to_unsigned(numbers_used, "numbers_used")
    request = pb.AttachSessionRequest(session=session, attempt=secrets.token_bytes(8))
    answer, known = yield from _list_requests(caller, request)
    last_known = known[-1].number if known else 0
    numbers = Numbers(answer.acknowledged_through, max(used, last_known, answer.acknowledged_through))
    core = SessionCore(caller, session, answer.lease_us / 1e6, holder=answer.holder, numbers=numbers)
    return core, answer, known


def _list_requests(caller: Caller, request: Any) -> Steps[Tuple[Any, List[KnownRequest]]]:
    """Calls until the list is complete. It may arrive twice: the token keeps the holder, and a list changes nothing."""
    deadline = caller.deadline(None)
    known: List[KnownRequest] = []
    while True:
        answer = yield from caller.call("AttachSession", request, deadline, Retry.ALWAYS)
        for message in answer.requests:
            _add_known(message, known)
        if not answer.more:
            return answer, known
        goes_on = (answer.next_number, answer.next_result) > (request.from_number, request.from_result)
        if not goes_on or answer.holder == 0:
            raise _contradiction()
        request.holder = answer.holder
        request.from_number, request.from_result = answer.next_number, answer.next_result


def _add_known(message: Any, known: List[KnownRequest]) -> None:
    """Adds the request to the list, or further results to its last request."""
    if message.transactions > _TRANSACTIONS_MAX:
        raise _contradiction()
    if known and known[-1].number == message.number:
        results = known.pop().results
    else:
        results = [None] * message.transactions
    if len(results) != message.transactions or (known and known[-1].number >= message.number):
        raise _contradiction()
    for result in message.results:
        if result.index >= len(results):
            raise _contradiction()
        results[result.index] = Result(result, None, message.number, 0)
    state = _STATES.get(message.state, RequestState.QUEUED)  # this one says least
    known.append(KnownRequest(message.number, state, message.transactions, message.decided, message.parked,
                              message.queued, results))


def _contradiction() -> errors.Error:
    return errors.InternalError("the server sent a list of requests that contradicts itself")
