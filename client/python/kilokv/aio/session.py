"""Sessions of the client for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Generator, Generic, List, Optional, Sequence, TypeVar

from kilokv._core import requests
from kilokv._core.session import SessionCore
from kilokv._core.shared import Attached, SessionBase
from kilokv.aio.connection import Connection
from kilokv.aio.interactive import Interactive, run, transactional
from kilokv.interactive import ATTEMPTS_MAX
from kilokv.options import trace_metadata
from kilokv.results import KnownRequest, Result, Results
from kilokv.session import Progress
from kilokv.transaction import Operand, Transaction
from kilokv.values import KeyLike

if TYPE_CHECKING:
    from kilokv.columns import ColumnResults, Columns

T = TypeVar("T")


class Pending(Generic[T]):
    """A request that a task of its own sends. `await` gives its result. `number` is its number in the session."""

    def __init__(self, session: "Session", number: int, work: Awaitable[T]) -> None:
        self._session = session
        self.number = number
        self._task = asyncio.ensure_future(work)

    def done(self) -> bool:
        """Whether the request has ended."""
        return self._task.done()

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.shield(self._task).__await__()

    async def cancel(self, index: Optional[int] = None) -> int:
        """Cancels on the server what is not decided yet. Returns how many transactions were cancelled."""
        return await self._session.cancel(self.number, index)


class Session(SessionBase):
    """As kilokv.Session."""

    def __init__(self, connection: Connection, core: SessionCore) -> None:
        super().__init__(core)
        self.connection = connection
        self._renewal = asyncio.ensure_future(connection.drive(core.renew_until_ended()))
        self._closed = False

    async def execute(self, transaction: Transaction, *, timeout: Optional[float] = None,
                      traceparent: Optional[str] = None) -> Result:
        """Sends a transaction, and waits for its result."""
        return await self.connection.drive(self.core.execute(transaction, timeout, trace_metadata(traceparent)))

    async def execute_many(self, transactions: Sequence[Transaction], *, timeout: Optional[float] = None,
                           progress: Optional[Progress] = None, traceparent: Optional[str] = None) -> Results:
        """Sends many transactions as one request. `progress(index, result)` is called as each finishes."""
        return await self._send(requests.Many(transactions, progress), timeout, traceparent)

    async def execute_columns(self, columns: "Columns", *, timeout: Optional[float] = None) -> "ColumnResults":
        """Sends many transactions of one kind as one request."""
        return await self._send(requests.of_columns(columns), timeout)

    def submit(self, transaction: Transaction, *, timeout: Optional[float] = None) -> Pending[Result]:
        """Sends a transaction in a task of its own, and returns at once. For one that waits, and may be cancelled."""
        sending = requests.One(transaction)
        begun = self.core.begin()
        steps = self.core.send(begun, sending, timeout)
        return Pending(self, begun[0], self.connection.drive(steps))

    async def resume(self, number: int, transaction: Transaction, *, timeout: Optional[float] = None) -> Result:
        """Asks again for the result of a request that ended without an answer. The content must be the same."""
        return await self.connection.drive(self.core.resume_one(number, transaction, timeout))

    async def resume_many(self, number: int, transactions: Sequence[Transaction], *, timeout: Optional[float] = None,
                          progress: Optional[Progress] = None) -> Results:
        """resume() for a request of execute_many()."""
        return await self.connection.drive(self.core.resume(number, requests.Many(transactions, progress), timeout))

    async def cancel(self, number: int, index: Optional[int] = None) -> int:
        """Cancels what is not decided of a request, or of its transaction `index`. Returns how many transactions."""
        return await self.connection.drive(self.core.cancel(number, index))

    async def put(self, key: KeyLike, value: Operand, *, ttl: Optional[float] = None,
                  expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Writes a value, and returns its version. The key expires `ttl` seconds after the write, or at
        `expires_at_us`, microseconds since the Unix epoch; neither: never."""
        return await self.connection.drive(self.core.put(key, value, timeout, ttl, expires_at_us))

    async def add(self, key: KeyLike, delta: Operand, *, ttl: Optional[float] = None,
                  expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Adds to the integer of a key, and returns the sum."""
        return await self.connection.drive(self.core.add(key, delta, timeout, ttl, expires_at_us))

    async def delete(self, *keys: KeyLike, timeout: Optional[float] = None) -> Optional[int]:
        """Deletes keys in one transaction. Returns the version; None: all keys were absent."""
        return await self.connection.drive(self.core.delete(keys, timeout))

    def transaction(self) -> Interactive:
        """An interactive transaction, for `async with`. It is tried once."""
        return Interactive(self.connection, self.caller, self._own_core)

    async def run(self, function: Callable[[Interactive], Awaitable[T]], *, attempts_max: int = ATTEMPTS_MAX) -> T:
        """Awaits the function with an interactive transaction, commits, and tries again after a conflict."""
        return await run(self.connection, self.caller, self.transaction, function, attempts_max)

    def transactional(self, function: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        """A decorator. The function gets an interactive transaction as its first argument."""
        return transactional(self.run, function)

    async def known_requests(self) -> List[KnownRequest]:
        """Asks again what has become of the requests that nobody has acknowledged. Only in a session from attach()."""
        return await self.connection.drive(self.core.known_requests())

    async def close(self, *, keep_open: bool = False) -> None:
        """Ends the session. `keep_open`: it stays open on the server until its lease ends."""
        if self._closed:
            return
        self._closed = True
        self._renewal.cancel()
        if keep_open:
            self.core.leave()
        elif not self.connection.closed:
            await self.connection.drive(self.core.close())

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _own_core(self) -> SessionCore:
        return self.core

    async def _send(self, sending: requests.Sending[T], timeout: Optional[float],
                    traceparent: Optional[str] = None) -> T:
        metadata = trace_metadata(traceparent)
        return await self.connection.drive(self.core.send(self.core.begin(), sending, timeout, metadata))


class AttachedSession(Attached, Session):
    """As kilokv.AttachedSession."""

    def __init__(self, connection: Connection, core: SessionCore, answer: Any, known: List[KnownRequest]) -> None:
        Session.__init__(self, connection, core)
        Attached.__init__(self, answer, known)
