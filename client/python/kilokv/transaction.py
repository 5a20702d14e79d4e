"""Builds transactions: guards, and operations that run together or not at all.

    transfer = kilokv.Transaction()
    transfer.guard("alice", ">=", 10)                 # FAIL unless alice has 10
    transfer.add("alice", -10).add("bob", 10)
    left = transfer.get("alice")
    result = session.execute(transfer)
    result.committed, result[left]

A method that reads returns a handle. It names the read in the result, and it can be the operand of a later operation of
the same list. All other methods return what they were called on, so that calls can be joined. `otherwise` is the list
of else-operations.

A transaction may be sent many times. It belongs to one thread while it is built.
"""

from __future__ import annotations

import enum
from typing import Any, Optional, TypeVar, Union

from kilokv.v1 import transaction_pb2 as pb
from kilokv.values import (KeyLike, to_bytes, to_expiry, to_integer, to_key, to_microseconds, to_unsigned, to_value,
                           wrong_type)


class OnFalse(enum.IntEnum):
    """What a guard does that is false."""
    FAIL = pb.ON_FALSE_FAIL  # the else-operations run; the outcome is GUARD_FAILED
    WAIT = pb.ON_FALSE_WAIT  # the transaction waits on the server, at most for its wait_timeout


FAIL, WAIT = OnFalse.FAIL, OnFalse.WAIT


class ServerOperand(enum.Enum):
    """A value that the server knows only when the transaction runs."""
    COMMIT_VERSION = "commit_version"  # the transaction's own commit version
    BATCH_TIME = "batch_time"          # the stamp of the batch, in microseconds since the Unix epoch


COMMIT_VERSION, BATCH_TIME = ServerOperand.COMMIT_VERSION, ServerOperand.BATCH_TIME

_COMPARE = {"==": pb.GUARD_KIND_EQUAL, "!=": pb.GUARD_KIND_NOT_EQUAL, "<": pb.GUARD_KIND_LESS,
            "<=": pb.GUARD_KIND_LESS_EQUAL, ">": pb.GUARD_KIND_GREATER, ">=": pb.GUARD_KIND_GREATER_EQUAL}


class Get:
    """The read of a get(). As an operand it stands for the value that was read, and with a minus for the negated
    value."""
    __slots__ = ("operations", "index", "negated")

    def __init__(self, operations: "Operations", index: int, negated: bool = False) -> None:
        self.operations, self.index, self.negated = operations, index, negated

    def __neg__(self) -> "Get":
        return Get(self.operations, self.index, not self.negated)


class RangeGet:
    """The reads of a range_get()."""
    __slots__ = ("operations", "index")

    def __init__(self, operations: "Operations", index: int) -> None:
        self.operations, self.index = operations, index


Operand = Union[int, bytes, Get, ServerOperand]
OperationsType = TypeVar("OperationsType", bound="Operations")


class Operations:
    """A list of operations, which run in their order. Each sees what the ones before it have written.

    Keys are bytes or str. Integers are in the signed 64-bit range: otherwise the methods raise ValueError.

    A put or an add can say when its key expires: `ttl` seconds after the stamp of its batch, or at `expires_at_us`,
    microseconds since the Unix epoch. The server deletes the key some time after that.
    """

    def __init__(self, messages: Any) -> None:
        self._operations = messages  # repeated Operation

    def get(self, key: KeyLike) -> Get:
        """Reads value and version of a key."""
        self._operations.add(kind=pb.OPERATION_KIND_GET, key=to_key(key))
        return Get(self, len(self._operations) - 1)

    def put(self: OperationsType, key: KeyLike, value: Operand, *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None) -> OperationsType:
        """Writes a value. If the value is a Get of an absent key, it deletes the key. Without a time, the key never
        expires."""
        self._write(pb.OPERATION_KIND_PUT, key, value, ttl, expires_at_us)
        return self

    def add(self: OperationsType, key: KeyLike, delta: Operand, *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None) -> OperationsType:
        """Adds to the integer of a key. An absent key counts as 0. Without a time, the key expires when it would have
        before."""
        if not isinstance(delta, (Get, ServerOperand)):
            delta = to_integer(delta, "the delta")
        self._write(pb.OPERATION_KIND_ADD, key, delta, ttl, expires_at_us)
        return self

    def delete(self: OperationsType, key: KeyLike) -> OperationsType:
        """Deletes a key. Writes nothing if it is absent."""
        self._operations.add(kind=pb.OPERATION_KIND_DELETE, key=to_key(key))
        return self

    def range_get(self, start: KeyLike, end: KeyLike, limit: int, *, reverse: bool = False) -> RangeGet:
        """Reads the first `limit` pairs of [start, end), or in reverse the last ones, from the last key to the first.
        An empty end: the range has no upper bound."""
        kind = pb.OPERATION_KIND_RANGE_GET_REVERSE if reverse else pb.OPERATION_KIND_RANGE_GET
        self._add_range(kind, start, end, limit)
        return RangeGet(self, len(self._operations) - 1)

    def delete_range(self: OperationsType, start: KeyLike, end: KeyLike, limit: int) -> OperationsType:
        """Deletes the first `limit` keys of [start, end)."""
        self._add_range(pb.OPERATION_KIND_DELETE_RANGE, start, end, limit)
        return self

    def _add_range(self, kind: int, start: KeyLike, end: KeyLike, limit: int) -> None:
        self._operations.add(kind=kind, range=_range(start, end), limit=to_unsigned(limit, "limit", 32))

    def _write(self, kind: int, key: KeyLike, operand: Operand, ttl: Optional[float],
               expires_at_us: Optional[int]) -> None:
        name: str
        content: Union[int, bytes]
        if isinstance(operand, Get):
            if operand.operations is not self:
                raise ValueError("an operand must be a get() of the same list of the same transaction")
            name, content = "get_negated" if operand.negated else "get", operand.index
        elif isinstance(operand, ServerOperand):
            name, content = operand.value, True
        else:
            content = to_value(operand)
            name = "integer" if isinstance(content, int) else "bytes"
        expiry = to_expiry(ttl, expires_at_us)
        operation = self._operations.add(kind=kind, key=to_key(key))
        setattr(operation.operand, name, content)
        if expiry is not None:
            setattr(operation, *expiry)


class Transaction(Operations):
    """Guards, operations that run if all guards hold, and else-operations (`otherwise`).

    precedence        0 to 255: within a pass of a batch, lower numbers run first
    wait_timeout      seconds that a guard with WAIT may postpone the transaction; 0: only within its batch
    expire_runs_else  if it waits in vain, its else-operations run; the outcome is WAIT_EXPIRED all the same
    """

    def __init__(self, *, precedence: int = 0, wait_timeout: float = 0.0, expire_runs_else: bool = False) -> None:
        self.message = pb.Transaction()
        if precedence != 0:
            self.message.precedence = to_unsigned(precedence, "precedence", 32)
        if wait_timeout != 0:
            self.message.wait_timeout_us = to_microseconds(wait_timeout, "wait_timeout")
        if expire_runs_else:
            self.message.expire_runs_else = True
        self._waits = False
        self._otherwise: Optional[Operations] = None
        super().__init__(self.message.then)

    @property
    def otherwise(self) -> Operations:
        """The list of else-operations."""
        if self._otherwise is None:
            self._otherwise = Operations(getattr(self.message, "else"))
        return self._otherwise

    @property
    def wait_seconds(self) -> float:
        """How long the transaction may wait on the server for others."""
        return float(self.message.wait_timeout_us) / 1e6 if self._waits else 0.0

    def guard(self, key: KeyLike, compare: str, value: Optional[int] = None, *, other: Optional[KeyLike] = None,
              on_false: OnFalse = FAIL) -> "Transaction":
        """Compares the integer of a key with an integer, or with that of another key: == != < <= > >=. An absent key
        counts as 0."""
        if not isinstance(compare, str) or compare not in _COMPARE:
            raise ValueError(f"{compare!r} is no comparison: use one of {' '.join(_COMPARE)}")
        if (value is None) == (other is None):
            raise ValueError("a guard compares either with a value or with another key")
        if other is None:
            return self._guard(_COMPARE[compare], on_false, key=to_key(key), integer=to_integer(value))
        return self._guard(_COMPARE[compare], on_false, key=to_key(key), other_key=to_key(other, "other"))

    def guard_exists(self, key: KeyLike, *, on_false: OnFalse = FAIL) -> "Transaction":
        """The key has a value."""
        return self._guard(pb.GUARD_KIND_EXISTS, on_false, key=to_key(key))

    def guard_absent(self, key: KeyLike, *, on_false: OnFalse = FAIL) -> "Transaction":
        """The key has no value."""
        return self._guard(pb.GUARD_KIND_ABSENT, on_false, key=to_key(key))

    def guard_version(self, key: KeyLike, version: int, *, on_false: OnFalse = FAIL) -> "Transaction":
        """The version of the key is exactly this one. 0: it was never written."""
        return self._guard(pb.GUARD_KIND_VERSION_EQUAL, on_false, key=to_key(key),
                           version=to_unsigned(version, "version"))

    def guard_unchanged(self, key: KeyLike, since_version: int, *, on_false: OnFalse = FAIL) -> "Transaction":
        """The key was not written or deleted after this version."""
        return self._guard(pb.GUARD_KIND_UNCHANGED, on_false, key=to_key(key),
                           version=to_unsigned(since_version, "since_version"))

    def guard_bytes(self, key: KeyLike, value: bytes, *, on_false: OnFalse = FAIL) -> "Transaction":
        """The key holds exactly these bytes."""
        return self._guard(pb.GUARD_KIND_BYTES_EQUAL, on_false, key=to_key(key), bytes=to_bytes(value, "the value"))

    def guard_range_unchanged(self, start: KeyLike, end: KeyLike, since_version: int, *,
                              on_false: OnFalse = FAIL) -> "Transaction":
        """No key of [start, end) was written or deleted after this version."""
        return self._guard(pb.GUARD_KIND_RANGE_UNCHANGED, on_false, range=_range(start, end),
                           version=to_unsigned(since_version, "since_version"))

    def guard_time_before(self, time_us: Optional[int] = None, *, key: Optional[KeyLike] = None) -> "Transaction":
        """The stamp of the batch is less than a time: a constant in microseconds since the Unix epoch, or the integer
        of a key, where an absent key counts as 0. This guard cannot wait, because time alone never makes it true."""
        return self._guard_time(pb.GUARD_KIND_TIME_BEFORE, time_us, key, FAIL)

    def guard_time_after(self, time_us: Optional[int] = None, *, key: Optional[KeyLike] = None,
                         on_false: OnFalse = FAIL) -> "Transaction":
        """The stamp of the batch is equal to a time, or greater. The time is as in guard_time_before()."""
        return self._guard_time(pb.GUARD_KIND_TIME_AFTER, time_us, key, on_false)

    def _guard(self, kind: int, on_false: OnFalse, **content: Any) -> "Transaction":
        if not isinstance(on_false, OnFalse):
            raise TypeError(f"on_false is kilokv.FAIL or kilokv.WAIT, not {on_false!r}")
        self._waits = self._waits or on_false == WAIT
        self.message.guards.add(kind=kind, on_false=on_false, **content)
        return self

    def _guard_time(self, kind: int, time_us: Optional[int], key: Optional[KeyLike],
                    on_false: OnFalse) -> "Transaction":
        if (time_us is None) == (key is None):
            raise ValueError("a guard of time has either time_us or key")
        if key is not None:
            return self._guard(kind, on_false, key=to_key(key))
        return self._guard(kind, on_false, time_us=to_integer(time_us, "time_us", 0))


def check_transaction(transaction: object) -> Transaction:
    """What a call is to send. Raises TypeError if it is no transaction."""
    if isinstance(transaction, Transaction):
        return transaction
    raise wrong_type("the transaction", "a kilokv.Transaction", transaction)


def _range(start: KeyLike, end: KeyLike) -> Any:
    return pb.KeyRange(**{"from": to_key(start, "start"), "to": to_key(end, "end")})  # `from` is a word of Python
