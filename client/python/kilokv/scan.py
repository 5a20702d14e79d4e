"""Scans: the pairs of a range, all as of one moment."""

from __future__ import annotations

from typing import Generator, Iterator, Optional

from kilokv._core.reads import ScanCursor
from kilokv._core.retry import Caller
from kilokv.connection import Connection
from kilokv.results import Pair, Position


class Scan:
    """Iterates over pairs, and reads page after page. It can be used once. The server keeps the moment that it shows
    until the last page is read, or until close(). With `with`, or at the end of a loop that goes to the end, that
    happens by itself.

    Iterating raises SnapshotTooOldError if the program was too slow for the server (--snapshot-age-max), and has to
    begin again.
    """

    def __init__(self, connection: Connection, caller: Caller, cursor: ScanCursor, timeout: Optional[float]) -> None:
        self._connection, self._caller, self._cursor, self._timeout = connection, caller, cursor, timeout
        self._pairs = self._read()

    @property
    def position(self) -> Position:
        """The moment that the scan shows. Raises ValueError before the first page is read."""
        return self._cursor.known_position()

    def __iter__(self) -> Iterator[Pair]:
        return self._pairs

    def close(self) -> None:
        """Gives up the moment that the server keeps."""
        self._pairs.close()
        if self._cursor.holds_boundary:
            self._connection.drive(self._cursor.give_up(self._caller))

    def __enter__(self) -> "Scan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Generator[Pair, None, None]:
        while self._cursor.more:
            yield from self._connection.drive(self._cursor.next_page(self._caller, self._timeout))
        if self._cursor.holds_boundary:
            self._connection.drive(self._cursor.give_up(self._caller))
