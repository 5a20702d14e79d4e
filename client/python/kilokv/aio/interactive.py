"""Interactive transactions of the client for asyncio."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Awaitable, Callable, List, Optional, Sequence, TypeVar

from kilokv._core.interactive import Conflicts, InteractiveCore
from kilokv._core.retry import Caller
from kilokv._core.session import SessionCore
from kilokv._core.shared import InteractiveBase
from kilokv.aio.connection import Connection
from kilokv.errors import ConflictError
from kilokv.results import Pair
from kilokv.values import KeyLike, Value, to_range

T = TypeVar("T")


class Interactive(InteractiveBase):
    """As kilokv.Interactive. Reads and the commit are awaited. Writes are buffered, so they are not."""

    def __init__(self, connection: Connection, caller: Caller, session: Callable[[], Awaitable[SessionCore]]) -> None:
        """`session` gives the session of the commit."""
        super().__init__(InteractiveCore(caller))
        self._connection, self._session = connection, session

    async def get(self, key: KeyLike) -> Value:
        """The value of a key; None: it is absent."""
        return (await self.get_many([key]))[0]

    async def get_many(self, keys: Sequence[KeyLike]) -> List[Value]:
        """The values of many keys, in few calls."""
        return await self._connection.drive(self._core.get_many(keys))

    async def scan(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None) -> List[Pair]:
        """All pairs of [start, end) or of a prefix, in key order."""
        return await self._connection.drive(self._core.scan(*to_range(start, end, prefix)))

    async def scan_reverse(self, start: KeyLike = b"", end: KeyLike = b"", *, limit: int,
                           prefix: Optional[KeyLike] = None) -> List[Pair]:
        """The last `limit` pairs, from the last key to the first."""
        return await self._connection.drive(self._core.scan_reverse(*to_range(start, end, prefix), limit))

    async def commit(self) -> Optional[int]:
        """Ends the transaction. Returns the commit version; None: it wrote nothing. Raises ConflictError."""
        key = await self._connection.drive(self._core.commit(await self._session()))
        if key is not None:
            raise ConflictError(key)
        return self._core.version

    async def __aenter__(self) -> "Interactive":
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abandon()
        elif not self._core.ended:
            await self.commit()


async def run(connection: Connection, caller: Caller, begin: Callable[[], Interactive],
              function: Callable[[Interactive], Awaitable[T]], attempts_max: int) -> T:
    """The loop of Session.run() and Client.run()."""
    conflicts = Conflicts(caller.options, function, attempts_max)
    while True:
        try:
            async with begin() as transaction:
                awaitable = function(transaction)
                if not inspect.isawaitable(awaitable):
                    raise TypeError("the function of run() must be async")
                answer: T = await awaitable
            return answer
        except ConflictError as conflict:
            await connection.drive(conflicts.pause(conflict))


def transactional(run_function: Callable[[Callable[[Interactive], Awaitable[T]]], Awaitable[T]],
                  function: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """The decorator of Session and Client."""
    @functools.wraps(function)
    async def run_it(*arguments: Any, **named: Any) -> T:
        return await run_function(lambda transaction: function(transaction, *arguments, **named))
    return run_it
