"""Watches of the client for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

import grpc.aio

from kilokv import errors
from kilokv._core.watch import WatchCursor, end_of_stream, silence
from kilokv.aio.connection import Connection
from kilokv.results import WatchedPart


class Watch:
    """As kilokv.Watch, for `async for` and `async with`. If a task that waits for a part is cancelled, the watch can be
    read on: nothing is missing."""

    def __init__(self, connection: Connection, cursor: WatchCursor) -> None:
        self._connection, self._cursor = connection, cursor
        self._stream: Any = None
        self._closing: Optional["asyncio.Future[None]"] = None  # ends the pauses; made when there is an event loop
        self._is_closed = False

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> WatchedPart:
        self._cursor.begin()
        closing = self._closing = self._closing or asyncio.get_running_loop().create_future()
        while not self._is_closed:
            try:
                return self._cursor.take(await self._receive(closing))
            except errors.Error as error:
                if self._is_closed:
                    break
                delay = self._cursor.delay_after(error)
            await asyncio.wait({closing}, timeout=delay)
        raise StopAsyncIteration

    async def close(self) -> None:
        """Ends the watch. An iteration of another task ends, too."""
        self._is_closed = True
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        self._drop()

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _receive(self, closing: "asyncio.Future[None]") -> Any:
        """The next answer. After an error, or if the task is cancelled, the next one comes from a new stream."""
        try:
            if self._stream is None:
                self._stream = self._connection.open_stream("Watch", self._cursor.request, self._cursor.is_lost)
            reading = asyncio.ensure_future(self._stream.read())
            reading.add_done_callback(_look_at)
            await asyncio.wait({reading, closing}, timeout=self._cursor.quiet_max, return_when=asyncio.FIRST_COMPLETED)
            if self._is_closed or reading.cancelled():
                raise errors.ClosedError("the watch or its client was closed")
            if not reading.done():
                raise silence()
            answer = reading.result()
            if answer is grpc.aio.EOF:
                raise end_of_stream()
            return answer
        except BaseException as error:
            self._drop()
            raise self._connection.error_of(error, "Watch") from None

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()


def _look_at(reading: "asyncio.Future[Any]") -> None:
    """asyncio complains of an error that nobody has looked at. Nobody needs that of a stream that was dropped."""
    if not reading.cancelled():
        reading.exception()
