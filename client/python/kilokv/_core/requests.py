"""Requests with transactions, and the calls for what is parked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generic, Iterable, List, Optional, Sequence, TypeVar

from kilokv import errors
from kilokv._core.encoded import EncodedRequest, encode_field
from kilokv._core.retry import Caller, Retry
from kilokv._core.steps import Metadata, Steps
from kilokv.results import Result, Results
from kilokv.transaction import Transaction, check_transaction
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.values import to_microseconds, to_text, to_unsigned, wrong_type

if TYPE_CHECKING:
    from kilokv.columns import ColumnResults, Columns

_TRANSACTION_FIELD = pb.ExecuteRequest.DESCRIPTOR.fields_by_name["transaction"].number
R = TypeVar("R")


class Sending(Generic[R]):
    """A request that can be sent, also several times.

    method        name of the call
    message       the message, with a field `id`
    wait_seconds  how long its transactions may wait on the server
    """
    method: str
    message: Any
    wait_seconds: float

    @property
    def take(self) -> Optional[Callable[[Any], None]]:
        """Gets each message of a stream of answers. None: the call has one answer."""
        return None

    def results(self, answer: Any, number: int, attempts: int) -> R:
        """What the user gets. `answer`: of a call that has one."""
        raise NotImplementedError


class One(Sending[Result]):
    """One transaction."""
    method = "Execute"

    def __init__(self, transaction: Transaction, detached: bool = False) -> None:
        self.transaction = check_transaction(transaction)
        field = encode_field(_TRANSACTION_FIELD, transaction.message.SerializeToString())
        self.message = EncodedRequest(pb.ExecuteRequest(detached=True) if detached else pb.ExecuteRequest(), field)
        self.wait_seconds = transaction.wait_seconds

    def results(self, answer: Any, number: int, attempts: int) -> Result:
        return Result(answer.result, self.transaction, number, attempts)


class Many(Sending[Results]):
    """Many transactions as one request. They are answered as they finish: `progress(index, result)` is called for each,
    once."""
    method = "ExecuteBatch"

    def __init__(self, transactions: Sequence[Transaction], progress: Optional[Callable[[int, Result], None]] = None,
                 detached: bool = False) -> None:
        if not isinstance(transactions, Iterable):
            raise wrong_type("transactions", "a list of kilokv.Transaction", transactions)
        if progress is not None and not callable(progress):
            raise wrong_type("progress", "a function", progress)
        transactions = [check_transaction(transaction) for transaction in transactions]
        if not transactions:
            raise ValueError("the request has no transaction")
        self._transactions = transactions
        self._progress = progress
        self._found: List[Optional[Result]] = [None] * len(transactions)
        self.message = pb.ExecuteBatchRequest(detached=bool(detached))
        self.message.rows.transactions.extend(transaction.message for transaction in transactions)
        self.wait_seconds = max(transaction.wait_seconds for transaction in transactions)

    @property
    def take(self) -> Callable[[Any], None]:
        return self._take

    def _take(self, answer: Any) -> None:
        for message in answer.rows.results:
            index = message.index
            if index >= len(self._found):
                raise errors.InternalError(f"the server answered transaction {index} of {len(self._found)}")
            if self._found[index] is not None:
                continue  # of an earlier sending
            result = Result(message, self._transactions[index])
            self._found[index] = result
            if self._progress is not None:
                self._progress(index, result)

    def results(self, answer: Any, number: int, attempts: int) -> Results:
        found = [result for result in self._found if result is not None]
        if len(found) != len(self._found):
            raise errors.InternalError("the server ended a request without answering all of its transactions")
        for result in found:
            result.request, result.attempts = number, attempts
        return Results(found, number, attempts)


def of_columns(columns: "Columns") -> "Sending[ColumnResults]":
    """The request of Columns. Their module needs numpy, so this one does not import it."""
    if not hasattr(columns, "sending"):
        raise wrong_type("columns", "kilokv.Columns", columns)
    return columns.sending()


def execute(caller: Caller, sending: Sending[R], timeout: Optional[float], metadata: Metadata = ()) -> Steps[R]:
    """Executes without a session. A request that may have run is never sent again."""
    attempts = 0

    def attempt() -> None:
        nonlocal attempts
        attempts += 1

    try:
        answer = yield from caller.call(sending.method, sending.message, caller.deadline(timeout, sending.wait_seconds),
                                        Retry.WHEN_REFUSED, metadata=metadata, take=sending.take, attempt=attempt)
    except errors.Error as error:
        error.attempts = attempts
        raise
    return sending.results(answer, 0, attempts)


def cancel_request(caller: Caller, session: bytes, number: int, index: Optional[int], holder: int) -> Steps[int]:
    """Cancels what is not decided of a request. Returns how many transactions."""
    target = pb.CancelTransactions(session=session, number=to_unsigned(number, "the number of the request"),
                                   holder=to_unsigned(holder, "holder"))
    if index is not None:
        target.indices.append(to_unsigned(index, "index", 32))
    return (yield from _cancel(caller, pb.CancelRequest(transactions=target)))


def cancel_parked(caller: Caller, parked_id: Optional[int], client: str, prefix: bytes,
                  older_than: float) -> Steps[int]:
    """Cancels one parked transaction, or all for which the given conditions hold."""
    older_than_us = to_microseconds(older_than, "older_than")
    has_condition = bool(to_text(client, "client") or prefix or older_than_us)
    if parked_id is not None:
        if has_condition:
            raise ValueError("give either parked_id or conditions")
        return (yield from _cancel(caller, pb.CancelRequest(parked_id=to_unsigned(parked_id, "parked_id"))))
    if not has_condition:
        raise ValueError("give parked_id, or at least one of client, prefix and older_than")
    parked = pb.CancelParked(client=client, key_prefix=prefix, older_than_us=older_than_us)
    return (yield from _cancel(caller, pb.CancelRequest(parked=parked)))


def _cancel(caller: Caller, request: Any) -> Steps[int]:
    answer = yield from caller.call("Cancel", request, caller.deadline(None), Retry.ALWAYS)
    return int(answer.cancelled)
