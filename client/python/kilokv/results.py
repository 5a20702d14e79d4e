"""The answers of a server to transactions, reads and scans."""

from __future__ import annotations

import enum
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Union, overload

from kilokv.transaction import Get, RangeGet, Transaction
from kilokv.v1 import transaction_pb2 as pb
from kilokv.values import Value, wrong_type


class Outcome(enum.IntEnum):
    """How a transaction ended."""
    COMMITTED = pb.OUTCOME_COMMITTED          # all guards held, and the operations ran
    GUARD_FAILED = pb.OUTCOME_GUARD_FAILED    # a FAIL guard was false; the else-operations ran
    WAIT_EXPIRED = pb.OUTCOME_WAIT_EXPIRED    # it waited in vain; with expire_runs_else the else-operations ran
    OVERFLOW = pb.OUTCOME_OVERFLOW            # an integer left the signed 64-bit range; nothing was written
    TYPE_MISMATCH = pb.OUTCOME_TYPE_MISMATCH  # an integer was needed and the value was bytes, or the reverse
    CANCELLED = pb.OUTCOME_CANCELLED          # it was cancelled before it was decided; nothing was written


class FailedIn(enum.IntEnum):
    """The list that `failed_index` is an index of."""
    NONE = pb.FAILED_IN_NONE
    GUARDS = pb.FAILED_IN_GUARDS
    THEN = pb.FAILED_IN_THEN
    ELSE = pb.FAILED_IN_ELSE


class Read(NamedTuple):
    """What a get, a range or a deciding guard has read."""
    key: bytes
    value: Value
    version: Optional[int]  # None: the value is an own write of the transaction; 0: the key was never written
    operation: int = 0      # index of the operation in the list that ran


class Pair(NamedTuple):
    """A key of a scan or of a range, with its value."""
    key: bytes
    value: Union[int, bytes]
    version: Optional[int]  # as in Read
    expires_at_us: Optional[int] = None  # when the key expires, in microseconds since the Unix epoch; None: never, or
                                         # the pair is not from a scan outside of transactions


class Position(NamedTuple):
    """The moment that a scan shows: the state after all transactions of a batch."""
    boundary: int          # number of the batch
    boundary_version: int  # no pair is newer; for guard_range_unchanged()
    batch_time_us: int     # stamp of the batch, in microseconds since the Unix epoch


class WatchPosition(NamedTuple):
    """A place between two writes. All writes up to the version are before it. If `writes` is not 0, only so many writes
    of the version itself are before it."""
    version: int
    writes: int = 0


class WatchedWrite(NamedTuple):
    """A durable write. `batch` and `rank` are the place of its transaction in the one serial order."""
    key: bytes
    value: Value                   # None: the key was deleted
    version: int
    batch_time_us: int             # stamp of the batch, in microseconds since the Unix epoch
    expires_at_us: Optional[int]   # when the key expires; None: never
    expired: bool                  # the server deleted the key because it had expired
    batch: int
    rank: int


class WatchedPart(NamedTuple):
    """The next writes of a watch. A part comes at least every second, so it may have no writes."""
    writes: List[WatchedWrite]
    position: WatchPosition  # after these writes; a later watch goes on there
    unfinished: bool         # the transaction of the last write goes on in the next part
    incarnation: str         # of the database: 32 hexadecimal digits


class Reads(List[Read]):
    """What a read of several keys has found, in the order of the keys, all as of one moment. `batch` and `rank` are its
    place in the one serial order."""

    def __init__(self, answer: Any) -> None:
        super().__init__(read_of(read) for read in answer.reads)
        self.batch: int = answer.batch
        self.rank: int = answer.rank
        self.batch_time_us: int = answer.batch_time_us


def value_of(message: Any) -> Value:
    """The value in a message Value."""
    kind = message.WhichOneof("kind")
    return None if kind is None else getattr(message, kind)


def read_of(message: Any) -> Read:
    return Read(message.key, value_of(message.value), None if message.own_write else message.version, message.operation)


def expiry_of(message: Any) -> Optional[int]:
    """When the key of a read or a write expires."""
    return message.expires_at_us or None


def pair_of(message: Any) -> Pair:
    value = value_of(message.value)
    assert value is not None  # a range has present keys only
    return Pair(message.key, value, None if message.own_write else message.version, expiry_of(message))


class Result:
    """The result of one transaction.

    request   number of its request in the session, for resume(); 0: it had no session
    attempts  how often the request was sent
    """
    __slots__ = ("_message", "_transaction", "request", "attempts")

    def __init__(self, message: Any, transaction: Optional[Transaction] = None, request: int = 0,
                 attempts: int = 1) -> None:
        self._message, self._transaction = message, transaction
        self.request, self.attempts = request, attempts

    @property
    def outcome(self) -> Outcome:
        return Outcome(self._message.outcome)

    @property
    def committed(self) -> bool:
        """Whether all guards held, so that the operations ran. It is durable then."""
        return bool(self._message.outcome == pb.OUTCOME_COMMITTED)

    @property
    def version(self) -> Optional[int]:
        """The commit version. None: the transaction wrote nothing."""
        return self._message.version or None

    @property
    def failed_in(self) -> FailedIn:
        return FailedIn(self._message.failed_in)

    @property
    def failed_index(self) -> Optional[int]:
        """The guard or operation that decided, in the list `failed_in`. None: none did."""
        return self._message.failed_index if self._message.failed_in else None

    @property
    def guard_value(self) -> Optional[Read]:
        """Key, value and version of the guard that decided. None: no guard did, or it has no key."""
        return read_of(self._message.guard_value) if self._message.HasField("guard_value") else None

    @property
    def batch(self) -> int:
        """Its place in the one serial order: the number of its batch, and `rank` in the batch."""
        return int(self._message.batch)

    @property
    def rank(self) -> int:
        return int(self._message.rank)

    @property
    def admitted_batch(self) -> int:
        """The first batch that the transaction was part of."""
        return int(self._message.admitted_batch)

    @property
    def batch_time_us(self) -> int:
        """The stamp of its batch, in microseconds since the Unix epoch."""
        return int(self._message.batch_time_us)

    @property
    def reads_dropped(self) -> bool:
        """Whether reads are missing, because the result was too large to be kept or sent."""
        return bool(self._message.reads_dropped)

    @property
    def reads(self) -> List[Read]:
        """In the order of the operations that ran."""
        return [read_of(message) for message in self._message.reads]

    @overload
    def __getitem__(self, handle: Get) -> Value: ...

    @overload
    def __getitem__(self, handle: RangeGet) -> List[Pair]: ...

    def __getitem__(self, handle: Union[Get, RangeGet]) -> Union[Value, List[Pair]]:
        """What an operation has read: the value of a get(), or the pairs of a range_get(). Raises KeyError if the
        operation did not run, or if its reads were dropped."""
        if not isinstance(handle, (Get, RangeGet)):
            raise wrong_type("the index of a result", "what get() or range_get() has returned", handle)
        ran = self._operations_that_ran()
        if ran is None or handle.operations is not ran:
            raise KeyError("the operation did not run")
        found = [message for message in self._message.reads if message.operation == handle.index]
        if isinstance(handle, RangeGet):
            if self.reads_dropped:
                raise KeyError("reads of this result were dropped")
            return [pair_of(message) for message in found]
        if not found:
            raise KeyError("the read was dropped")
        return value_of(found[0].value)

    def check(self) -> "Result":
        """Returns the result itself, for a program to which every other outcome is an error. Raises NotCommittedError
        unless the transaction has committed."""
        if not self.committed:
            raise NotCommittedError(self)
        return self

    def _operations_that_ran(self) -> Any:
        if self._transaction is None:
            return None
        if self._message.outcome == pb.OUTCOME_COMMITTED:
            return self._transaction
        runs_else = (pb.OUTCOME_GUARD_FAILED, pb.OUTCOME_WAIT_EXPIRED)
        return self._transaction.otherwise if self._message.outcome in runs_else else None

    def __repr__(self) -> str:
        return f"<Result {self.outcome.name} batch={self.batch} rank={self.rank} version={self.version}>"


class NotCommittedError(Exception):
    """A transaction has an outcome that its program did not expect. `result` says which, and why."""

    def __init__(self, result: Result) -> None:
        where = "" if result.failed_index is None else f" by {result.failed_in.name.lower()}[{result.failed_index}]"
        super().__init__(f"the transaction ended as {result.outcome.name}{where}")
        self.result = result


class Results(Sequence[Result]):
    """The results of the transactions of one request, in the order in which they were sent."""

    def __init__(self, results: List[Result], request: int = 0, attempts: int = 1) -> None:
        self._results = results
        self.request, self.attempts = request, attempts

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> List[Result]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Result, List[Result]]:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)


class RequestState(enum.Enum):
    """What has become of a request of a session (docs/transactions.md, section 12.8)."""
    ACKNOWLEDGED = "acknowledged"      # somebody has said to have its results
    NOT_KNOWN = "not_known"            # it did not run, and what was sent before the attach never will
    QUEUED = "queued"                  # nothing is decided; it may still be refused
    PARKED = "parked"                  # nothing is decided, and at least one transaction waits for a guard
    PARTLY_DECIDED = "partly_decided"  # some of its transactions have results
    DECIDED = "decided"                # all of its transactions have results


class KnownRequest(NamedTuple):
    """What the server knows of a request of a session. The three counts are `transactions` together, or less: the rest
    does not run unless the request is resumed."""
    number: int
    state: RequestState
    transactions: int
    decided: int
    parked: int
    queued: int
    results: List[Optional[Result]]  # one for each transaction; None: it has no result yet
