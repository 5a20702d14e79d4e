"""Interactive transactions: the program reads, decides, buffers writes, and commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence

from kilokv._core.interactive import InteractiveCore
from kilokv.errors import ConflictError
from kilokv.results import Pair
from kilokv.values import KeyLike, Value, to_integer, to_key, to_range

if TYPE_CHECKING:
    from kilokv.session import Session


class Interactive:
    """One try of an interactive transaction.

    Each read is strictly serializable by itself. Reads at different times can be inconsistent with each other until the commit,
    which checks all of them at one moment. So before the commit, the program must do nothing outside of the database that cannot
    be undone. One thread uses it.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._core = InteractiveCore(session.caller)

    def get(self, key: KeyLike) -> Value:
        """The value of a key; None: it is absent. A second read of a key gives the same value. Own writes are seen."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[KeyLike]) -> List[Value]:
        """The values of many keys, in few calls. Each call reads its keys as of one moment."""
        return self._session.connection.drive(self._core.get_many([to_key(key) for key in keys]))

    def scan(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None) -> List[Pair]:
        """All pairs of [start, end) or of a prefix, in key order. Own writes have the version None."""
        return self._session.connection.drive(self._core.scan(*to_range(start, end, prefix)))

    def scan_reverse(self, start: KeyLike = b"", end: KeyLike = b"", *, limit: int, prefix: Optional[KeyLike] = None) -> List[Pair]:
        """The last `limit` pairs, from the last key to the first. Only what was read must be unchanged at the commit."""
        return self._session.connection.drive(self._core.scan_reverse(*to_range(start, end, prefix), limit))

    def put(self, key: KeyLike, value: "int | bytes") -> None:
        """Buffers a write."""
        self._core.write(to_key(key), value if isinstance(value, bytes) else to_integer(value))

    def delete(self, key: KeyLike) -> None:
        """Buffers a delete."""
        self._core.write(to_key(key), None)

    def commit(self) -> Optional[int]:
        """Ends the transaction. Returns the commit version; None: it wrote nothing. Raises ConflictError if something that it has
        read was changed. Then nothing was written."""
        key = self._session.connection.drive(self._core.commit(self._session.core))
        if key is not None:
            raise ConflictError(key)
        return self._core.version

    def abandon(self) -> None:
        """Ends the transaction without a commit. Nothing was sent that has to be undone."""
        self._core.ended = True

    def __enter__(self) -> "Interactive":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Commits, unless the block has raised an exception or has ended the transaction itself."""
        if kind is not None:
            self.abandon()
        elif not self._core.ended:
            self.commit()
