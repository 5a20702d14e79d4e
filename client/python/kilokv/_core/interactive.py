"""Interactive transactions: reads are kept with their versions, and writes are buffered. A commit sends one
transaction, with a guard for everything that was read."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from kilokv import errors
from kilokv._core import reads
from kilokv._core.retry import Backoff, Caller
from kilokv._core.session import SessionCore
from kilokv._core.steps import Pause, Steps
from kilokv.options import ClientOptions
from kilokv.results import Outcome, Pair, Position, Result
from kilokv.transaction import Transaction
from kilokv.values import KeyLike, Value, to_expiry, to_integer, to_key, to_keys, to_value, wrong_type


class _Write(NamedTuple):
    value: Value  # None: deleted
    ttl: Optional[float] = None
    expires_at_us: Optional[int] = None


class _Range(NamedTuple):
    start: bytes
    end: bytes
    boundary_version: int


class InteractiveCore:
    """The state of one interactive transaction.

    `ended`: nothing more can be done with it. `version` is the commit version, after a commit that wrote.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._reads: Dict[bytes, Tuple[Value, int]] = {}
        self._ranges: List[_Range] = []
        self._writes: Dict[bytes, _Write] = {}
        self.ended = False
        self.version: Optional[int] = None

    def get_many(self, wanted: Iterable[KeyLike]) -> Steps[List[Value]]:
        self.check_open()
        keys = to_keys(wanted)
        unknown = list(dict.fromkeys(key for key in keys if key not in self._writes and key not in self._reads))
        for read in (yield from reads.get_in_parts(self._caller, unknown, None)):
            self._reads[read.key] = (read.value, read.version or 0)
        return [self._writes[key].value if key in self._writes else self._reads[key][0] for key in keys]

    def scan(self, start: bytes, end: bytes) -> Steps[List[Pair]]:
        self.check_open()
        pairs, position = yield from self._read_range(start, end, False, None)
        self._ranges.append(_Range(start, end, position.boundary_version))
        return self._merge(pairs, start, end)

    def scan_reverse(self, start: bytes, end: bytes, limit: int) -> Steps[List[Pair]]:
        """Only the part of the range that was read must be unchanged at the commit."""
        self.check_open()
        to_integer(limit, "limit", 1)
        # The server has the keys still that this transaction deletes.
        deleted = sum(1 for key, write in self._writes.items() if write.value is None and _is_in(key, start, end))
        pairs, position = yield from self._read_range(start, end, True, limit + deleted)
        # Own writes before the last pair that was read may hide pairs that were not read.
        begin = pairs[-1].key if len(pairs) == limit + deleted else start
        merged = self._merge(pairs, begin, end)[::-1][:limit]
        self._ranges.append(_Range(merged[-1].key if len(merged) == limit else start, end, position.boundary_version))
        return merged

    def put(self, key: KeyLike, value: "int | bytes", ttl: Optional[float], expires_at_us: Optional[int]) -> None:
        self.check_open()
        to_expiry(ttl, expires_at_us)
        self._writes[to_key(key)] = _Write(to_value(value), ttl, expires_at_us)

    def delete(self, key: KeyLike) -> None:
        self.check_open()
        self._writes[to_key(key)] = _Write(None)

    def commit(self, session: SessionCore) -> Steps[Optional[bytes]]:
        """Returns None if it committed, and else the key that changed."""
        self.check_open()
        self.ended = True
        transaction, guarded = self._build()
        if not (guarded or self._writes):
            return None
        result: Result = yield from session.execute(transaction, None)
        if result.outcome is Outcome.COMMITTED:
            self.version = result.version
            return None
        index = result.failed_index
        if result.outcome is Outcome.GUARD_FAILED and index is not None and index < len(guarded):
            return guarded[index]
        raise errors.InternalError(f"the commit ended as {result.outcome.name}")

    def check_open(self) -> None:
        if self.ended:
            raise errors.FailedPreconditionError("the interactive transaction has ended", not_run=True)

    def _read_range(self, start: bytes, end: bytes, reverse: bool,
                    limit: Optional[int]) -> Steps[Tuple[List[Pair], Position]]:
        cursor = reads.ScanCursor(start, end, reverse=reverse, limit=limit, page_pairs=0, boundary=0)
        pairs: List[Pair] = []
        while cursor.more:
            pairs += yield from cursor.next_page(self._caller, None)
        if cursor.holds_boundary:
            yield from cursor.give_up(self._caller)
        return pairs, cursor.known_position()

    def _merge(self, pairs: Sequence[Pair], start: bytes, end: bytes) -> List[Pair]:
        """The pairs of a scan with the buffered writes, in key order."""
        merged = {pair.key: pair for pair in pairs}
        for key, write in self._writes.items():
            if not _is_in(key, start, end):
                continue
            if write.value is None:
                merged.pop(key, None)
            else:
                merged[key] = Pair(key, write.value, None)
        return [merged[key] for key in sorted(merged)]

    def _build(self) -> Tuple[Transaction, List[bytes]]:
        """The transaction of the commit, and the key of each of its guards."""
        transaction = Transaction()
        for key, (_, version) in self._reads.items():
            transaction.guard_version(key, version)
        for known in self._ranges:
            transaction.guard_range_unchanged(known.start, known.end, known.boundary_version)
        for key, write in self._writes.items():
            if write.value is None:
                transaction.delete(key)
            else:
                transaction.put(key, write.value, ttl=write.ttl, expires_at_us=write.expires_at_us)
        return transaction, [*self._reads, *(known.start for known in self._ranges)]


class Conflicts:
    """Counts the conflicts of a function that is tried again and again."""

    def __init__(self, options: ClientOptions, function: object, attempts_max: int) -> None:
        if not callable(function):
            raise wrong_type("what run() calls", "a function", function)
        self._backoff = Backoff(options)
        self._attempts, self._max = 0, to_integer(attempts_max, "attempts_max", 1)

    def pause(self, conflict: errors.ConflictError) -> Steps[None]:
        """Waits before the next try. Raises ConflictError if there is none."""
        self._attempts += 1
        if self._attempts == self._max:
            raise errors.ConflictError(conflict.key, self._attempts)
        yield Pause(self._backoff.next())


def _is_in(key: bytes, start: bytes, end: bytes) -> bool:
    return key >= start and (not end or key < end)
