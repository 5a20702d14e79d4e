"""Many transactions of one kind as columns of numpy arrays, for programs that move data in bulk.

    columns = kilokv.Columns.put(keys, values)          # one transaction for each key
    results = session.execute_columns(columns)
    results.all_committed

Keys are one of
  - a list of bytes or str
  - an array of numpy's bytes type, such as S16: a key ends before the zero bytes that fill its place
  - an array of shape (count, width) and type uint8, or of a void type such as V16: each key has exactly that width

Keys of a put or an add can expire: `ttl` seconds after the write, or at `expires_at_us`, microseconds since the Unix
epoch. Each is one number for all keys, or a list or an array with one for each key. In an array of `expires_at_us`, 0
stands for a key without an expiry.

This module needs numpy. docs/columnar-layout.md explains the layout of the message.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from kilokv import errors
from kilokv._core.encoded import EncodedRequest, encode_field
from kilokv._core.requests import Sending
from kilokv.results import Outcome
from kilokv.v1 import columns_pb2, transaction_pb2
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.values import KeyLike, to_integer, to_keys, wrong_type

Keys = Union[Sequence[KeyLike], "np.ndarray[Any, Any]"]
Integers = Union[Sequence[int], "np.ndarray[Any, Any]"]
Seconds = Union[float, Sequence[float], "np.ndarray[Any, Any]"]  # one for all keys, or one for each
Times = Union[int, Integers]                                     # the same
RECORDS_AT_ONCE = 16_384  # of a bulk call in one request
REQUESTS_AT_ONCE = 4      # of a bulk call in flight

_FIELDS = {field.name: field.number for field in columns_pb2.TransactionColumns.DESCRIPTOR.fields}
_COLUMNS_FIELD = pb.ExecuteBatchRequest.DESCRIPTOR.fields_by_name["columns"].number


class Columns:
    """Transactions with one operation each. Columns.put(), add() and get() make them."""

    def __init__(self, kind: int, keys: Tuple["np.ndarray[Any, Any]", bytes], values: "np.ndarray[Any, Any]",
                 expiries: Optional["_Expiries"] = None) -> None:
        self._kind = kind
        self._key_ends, self._key_bytes = keys
        self._values = values
        self._expiries = expiries
        if len(self._key_ends) != len(values):
            raise ValueError(f"there are {len(self._key_ends)} keys and {len(values)} values")

    @classmethod
    def put(cls, keys: Keys, values: Integers, *, ttl: Optional[Seconds] = None,
            expires_at_us: Optional[Times] = None) -> "Columns":
        """Writes an integer for each key."""
        integers = to_integers(values, "values")
        expiries = _Expiries.of(ttl, expires_at_us, len(integers))
        return cls(transaction_pb2.OPERATION_KIND_PUT, encode_keys(keys), integers, expiries)

    @classmethod
    def add(cls, keys: Keys, deltas: Integers, *, ttl: Optional[Seconds] = None,
            expires_at_us: Optional[Times] = None) -> "Columns":
        """Adds an integer to each key. An absent key counts as 0."""
        integers = to_integers(deltas, "deltas")
        expiries = _Expiries.of(ttl, expires_at_us, len(integers))
        return cls(transaction_pb2.OPERATION_KIND_ADD, encode_keys(keys), integers, expiries)

    @classmethod
    def get(cls, keys: Keys) -> "Columns":
        """Reads each key. ColumnResults.integers() has the values. Two keys can be read at different moments."""
        encoded = encode_keys(keys)
        return cls(transaction_pb2.OPERATION_KIND_GET, encoded, np.zeros(len(encoded[0]), np.int64))

    def __len__(self) -> int:
        return len(self._values)

    def parts(self, records_at_once: Optional[int]) -> Iterator["Columns"]:
        """The same transactions as requests of at most so many records."""
        records = RECORDS_AT_ONCE if records_at_once is None else to_integer(records_at_once, "records_at_once", 1)
        for begin in range(0, len(self), records):
            ends = self._key_ends[begin:begin + records]
            first = int(self._key_ends[begin - 1]) if begin else 0
            yield Columns(self._kind, (ends - first, self._key_bytes[first:int(ends[-1])]),
                          self._values[begin:begin + records],
                          self._expiries and self._expiries.part(begin, begin + records))

    def sending(self) -> "ColumnsSending":
        """The request, for a session. Raises ValueError if there is no transaction."""
        if len(self) == 0:
            raise ValueError("the request has no transaction")
        return ColumnsSending(self)

    def encode(self) -> bytes:
        """The message TransactionColumns."""
        count = len(self)
        index = np.arange(count, dtype="<u4")
        parts = [
            _field("guard_ends", np.zeros(count, "<u4").tobytes()),
            _field("then_ends", (index + 1).tobytes()),
            _field("key_ends", self._key_ends.astype("<u4").tobytes()),
            _field("key_bytes", self._key_bytes),
            _field("operation_kind", bytes([self._kind]) * count),
            _field("operation_key", index.tobytes()),
            _field("operation_value", self._values.astype("<i8").tobytes()),
        ]
        if self._expiries is not None:
            parts += self._expiries.fields()
        return b"".join(parts)


class _Expiries:
    """When the key of each record expires, in microseconds. 0: never."""

    def __init__(self, kind: int, times: "np.ndarray[Any, Any]") -> None:
        self._kind, self._times = kind, times

    @classmethod
    def of(cls, ttl: Optional[Seconds], expires_at_us: Optional[Times], count: int) -> Optional["_Expiries"]:
        """Raises ValueError for times that are out of range, or are not as many as there are records."""
        if ttl is not None and expires_at_us is not None:
            raise ValueError("give either ttl or expires_at_us, not both")
        if ttl is not None:
            try:
                seconds = np.atleast_1d(np.asarray(ttl, float))
            except (TypeError, ValueError):
                raise wrong_type("ttl", "a number of seconds, or a list or an array of them", ttl) from None
            if not (seconds * 1e6 >= 1).all():
                raise ValueError("a ttl is at least a microsecond")
            times = np.rint(np.minimum(seconds, 1e12) * 1e6).astype(np.int64)
            return cls(columns_pb2.EXPIRY_KIND_TTL, _for_each(times, np.ndim(ttl), count))
        if expires_at_us is None:
            return None
        times = to_integers([expires_at_us] if np.ndim(expires_at_us) == 0 else expires_at_us, "expires_at_us")
        least = 1 if np.ndim(expires_at_us) == 0 else 0
        if (times < least).any():
            raise ValueError("expires_at_us is not after the Unix epoch")
        return cls(columns_pb2.EXPIRY_KIND_AT, _for_each(times, np.ndim(expires_at_us), count))

    def part(self, begin: int, end: int) -> "_Expiries":
        return _Expiries(self._kind, self._times[begin:end])

    def fields(self) -> List[bytes]:
        operations = np.flatnonzero(self._times)
        return [_field("expiry_operation", operations.astype("<u4").tobytes()),
                _field("expiry_kind", bytes([self._kind]) * len(operations)),
                _field("expiry_us", self._times[operations].astype("<i8").tobytes())]


class ColumnsSending(Sending["ColumnResults"]):
    """A request with columns. Its message is encoded without protobuf, so that no element is touched in Python."""
    method = "ExecuteColumns"
    wait_seconds = 0.0

    def __init__(self, columns: Columns) -> None:
        self._results = ColumnResults(len(columns))
        self.message = EncodedRequest(pb.ExecuteBatchRequest(), encode_field(_COLUMNS_FIELD, columns.encode()))

    @property
    def take(self) -> Callable[[Any], None]:
        return lambda answer: self._results.add(answer.columns)

    def results(self, answer: Any, number: int, attempts: int) -> "ColumnResults":
        if not self._results.complete:
            raise errors.InternalError("the server ended a request without answering all of its transactions")
        self._results.request, self._results.attempts = number, attempts
        return self._results


class ColumnResults:
    """The results of the transactions, as arrays with one element for each.

    outcome   uint8, numbers of Outcome
    version   uint64, the commit version; 0: it wrote nothing
    batch     uint64, and rank, uint32: the place in the one serial order
    request   number of the request in its session; of a bulk call: of its last request
    attempts  how often the request was sent; of a bulk call: the most
    """

    def __init__(self, count: int) -> None:
        self.outcome = np.zeros(count, np.uint8)
        self.version = np.zeros(count, np.uint64)
        self.batch = np.zeros(count, np.uint64)
        self.rank = np.zeros(count, np.uint32)
        self._types = np.zeros(count, np.uint8)
        self._integers = np.zeros(count, np.int64)
        self.request = self.attempts = 0

    @classmethod
    def join(cls, parts: Sequence["ColumnResults"]) -> "ColumnResults":
        """The results of several requests as one."""
        joined = cls(0)
        if parts:
            for name in ("outcome", "version", "batch", "rank", "_types", "_integers"):
                setattr(joined, name, np.concatenate([getattr(part, name) for part in parts]))
            joined.request = parts[-1].request
            joined.attempts = max(part.attempts for part in parts)
        return joined

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def complete(self) -> bool:
        """Whether each transaction has a result."""
        return bool(self.outcome.all())

    @property
    def committed(self) -> "np.ndarray[Any, Any]":
        """bool, one for each transaction."""
        return self.outcome == Outcome.COMMITTED  # type: ignore[no-any-return]

    @property
    def all_committed(self) -> bool:
        return bool(self.committed.all())

    def integers(self) -> Tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        """What the transactions of Columns.get() have read: int64 values, and bool: whether the key is present. Raises
        TypeError if a key holds bytes."""
        if (self._types == 2).any():
            raise TypeError(f"key {int(np.argmax(self._types == 2))} holds bytes")
        return self._integers, self._types == 1

    def add(self, message: Any) -> None:
        """Adds a message of the answer. It may have results that are known already."""
        outcome = np.frombuffer(message.outcome, np.uint8)
        index = _column(message.index, np.uint32) if message.index else np.arange(len(outcome))
        if len(index) and int(index.max()) >= len(self):
            raise errors.InternalError(f"the server answered transaction {int(index.max())} of {len(self)}")
        rank = _column(message.rank, np.uint32)
        wrote = np.frombuffer(message.wrote, np.uint8) != 0 if message.wrote else outcome == Outcome.COMMITTED
        self.outcome[index] = outcome
        self.rank[index] = rank
        self.batch[index] = message.batch
        self.version[index] = np.where(wrote, np.uint64(message.first_version) + rank.astype(np.uint64), np.uint64(0))
        if message.read_ends:  # of Columns.get(): at most one read for each transaction
            counts = np.diff(_column(message.read_ends, np.uint32), prepend=np.uint32(0))
            readers = index[counts == 1]
            self._types[readers] = np.frombuffer(message.reads.type, np.uint8)
            self._integers[readers] = _column(message.reads.integer, np.int64)


def encode_keys(keys: Keys) -> Tuple["np.ndarray[Any, Any]", bytes]:
    """The ends of the keys, uint32, and all their bytes."""
    if not isinstance(keys, np.ndarray):
        encoded = to_keys(keys)
        lengths = np.fromiter(map(len, encoded), np.uint32, len(encoded))
        return _ends(lengths), b"".join(encoded)
    if keys.dtype.kind == "S" and keys.ndim == 1:
        return _encode_padded(keys)
    if keys.dtype.kind == "V" and keys.ndim == 1:
        width = keys.dtype.itemsize
    elif keys.dtype == np.uint8 and keys.ndim == 2:
        width = keys.shape[1]
    else:
        raise TypeError("keys are a list, an array of type S or V, or one of type uint8 with two dimensions; not "
                        f"{keys.dtype} with {keys.ndim}")
    return _ends(np.full(len(keys), width, np.uint32)), keys.tobytes()


def _encode_padded(keys: "np.ndarray[Any, Any]") -> Tuple["np.ndarray[Any, Any]", bytes]:
    width = keys.dtype.itemsize
    table = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), width)
    if len(keys) == 0 or table[:, -1].all():  # no key is padded
        return _ends(np.full(len(keys), width, np.uint32)), table.tobytes()
    lengths = np.char.str_len(keys).astype(np.uint32)
    return _ends(lengths), table[np.arange(width) < lengths[:, None]].tobytes()


def to_integers(values: object, what: str) -> "np.ndarray[Any, Any]":
    """int64. Raises TypeError for what are no integers, and ValueError outside of the signed 64-bit range."""
    try:
        array = np.asarray(values)
    except OverflowError:
        array = np.asarray(values, object)
    if array.ndim == 0:
        raise wrong_type(what, "a list or an array of integers", values)
    if array.dtype == object:
        return np.array([to_integer(value, f"one of {what}") for value in array], np.int64)
    if array.dtype.kind == "u":
        if array.size:
            to_integer(int(array.max()), f"one of {what}")
    elif array.dtype.kind != "i" and array.size:
        raise TypeError(f"{what} must be integers, not {array.dtype}")
    return array.astype(np.int64)


def _for_each(times: "np.ndarray[Any, Any]", dimensions: int, count: int) -> "np.ndarray[Any, Any]":
    """One for each record, from one for all or one for each."""
    if dimensions == 0:
        return np.broadcast_to(times, count)
    if times.shape != (count,):
        raise ValueError(f"there are {count} values and {len(times)} times")
    return times


def _ends(lengths: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    return np.cumsum(lengths, dtype=np.uint32)


def _column(repeated: Any, kind: Any) -> "np.ndarray[Any, Any]":
    return np.fromiter(repeated, kind, len(repeated))


def _field(name: str, content: bytes) -> bytes:
    return encode_field(_FIELDS[name], content)
