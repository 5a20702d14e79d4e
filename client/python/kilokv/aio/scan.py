"""Scans of the client for asyncio."""

from __future__ import annotations

from typing import AsyncGenerator, AsyncIterator, List, Optional

from kilokv._core.reads import ScanCursor
from kilokv._core.retry import Caller
from kilokv.aio.connection import Connection
from kilokv.results import Pair, Position


class Scan:
    """As kilokv.Scan, for `async for` and `async with`."""

    def __init__(self, connection: Connection, caller: Caller, cursor: ScanCursor, timeout: Optional[float]) -> None:
        self._connection, self._caller, self._cursor, self._timeout = connection, caller, cursor, timeout
        self._pairs = self._read()

    @property
    def position(self) -> Position:
        """The moment that the scan shows. Raises ValueError before the first page is read."""
        return self._cursor.known_position()

    async def all(self) -> List[Pair]:
        """All pairs as a list."""
        return [pair async for pair in self]

    def __aiter__(self) -> AsyncIterator[Pair]:
        return self._pairs

    async def close(self) -> None:
        """Gives up the moment that the server keeps."""
        await self._pairs.aclose()
        if self._cursor.holds_boundary:
            await self._connection.drive(self._cursor.give_up(self._caller))

    async def __aenter__(self) -> "Scan":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _read(self) -> AsyncGenerator[Pair, None]:
        while self._cursor.more:
            for pair in await self._connection.drive(self._cursor.next_page(self._caller, self._timeout)):
                yield pair
        if self._cursor.holds_boundary:
            await self._connection.drive(self._cursor.give_up(self._caller))
