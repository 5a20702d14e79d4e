"""The client for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Awaitable, Callable, Iterable, List, Optional, Sequence, Tuple, TypeVar, Union

from kilokv._core import admin, reads, requests
from kilokv._core.session import SessionCore, attach
from kilokv._core.shared import ClientBase
from kilokv._core.watch import WatchCursor
from kilokv.aio.connection import Connection
from kilokv.aio.interactive import Interactive, run, transactional
from kilokv.aio.opening import Opening
from kilokv.aio.scan import Scan
from kilokv.aio.session import AttachedSession, Session
from kilokv.aio.watch import Watch
from kilokv.interactive import ATTEMPTS_MAX
from kilokv.options import trace_metadata
from kilokv.results import Reads, Result, Results, WatchPosition
from kilokv.session import Progress
from kilokv.status import OpenSession, ParkedTransaction, ServerStatus
from kilokv.transaction import Operand, Transaction
from kilokv.values import KeyLike, Value, to_key, to_keys, to_range, to_session

if TYPE_CHECKING:
    from kilokv.columns import ColumnResults, Columns, Integers, Keys, Seconds, Times

T = TypeVar("T")


class Client(ClientBase):
    """A client of one server, as kilokv.Client. It belongs to one event loop."""

    def _set_up(self) -> None:
        self._connection = Connection(self.options)
        self._opening: Optional["asyncio.Future[Session]"] = None

    # Sessions.

    def session(self, *, lease: Optional[float] = None) -> Opening[Session]:
        """Opens a session: `await db.session()`, or `async with db.session() as session`, which closes it at the
        end."""
        return Opening(lambda: self._open_session(lease))

    def attach(self, session_id: str, *, numbers_used: int = 0) -> Opening[AttachedSession]:
        """Takes over the session of a program that has ended, or cannot be reached: with `await` or `async with`."""
        return Opening(lambda: self._attach(session_id, numbers_used))

    async def own_session(self) -> Session:
        """The session that the client uses by itself. It is opened when it is needed, and again after it has ended."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None or
                                                   opening.result().core.ended is not None)):
            opening = self._opening = asyncio.ensure_future(self._open_session(None))
        return await asyncio.shield(opening)

    # Transactions.

    async def execute(self, transaction: Transaction, *, timeout: Optional[float] = None, detached: bool = False,
                      traceparent: Optional[str] = None) -> Result:
        """Executes a transaction without a session. If the answer is lost, nobody knows whether it ran."""
        return await self._execute(requests.One(transaction, detached), timeout, traceparent)

    async def execute_many(self, transactions: Sequence[Transaction], *, timeout: Optional[float] = None,
                           detached: bool = False, progress: Optional[Progress] = None,
                           traceparent: Optional[str] = None) -> Results:
        """execute() for many transactions as one request. `progress(index, result)` is called as each finishes."""
        return await self._execute(requests.Many(transactions, progress, detached), timeout, traceparent)

    async def put(self, key: KeyLike, value: Operand, *, ttl: Optional[float] = None,
                  expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Writes an int or bytes, and returns the version. The key expires `ttl` seconds after the write, or at
        `expires_at_us`, microseconds since the Unix epoch; neither: never."""
        return await (await self.own_session()).put(key, value, ttl=ttl, expires_at_us=expires_at_us, timeout=timeout)

    async def add(self, key: KeyLike, delta: Operand, *, ttl: Optional[float] = None,
                  expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Adds to the integer of a key, and returns the sum."""
        return await (await self.own_session()).add(key, delta, ttl=ttl, expires_at_us=expires_at_us, timeout=timeout)

    async def delete(self, *keys: KeyLike, timeout: Optional[float] = None) -> Optional[int]:
        """Deletes keys in one transaction. Returns the version; None: all keys were absent."""
        return await (await self.own_session()).delete(*keys, timeout=timeout)

    def transaction(self) -> Interactive:
        """An interactive transaction, for `async with`: a single try, which raises ConflictError after a conflict."""
        return Interactive(self._connection, self._caller, self._own_core)

    async def run(self, function: Callable[[Interactive], Awaitable[T]], *, attempts_max: int = ATTEMPTS_MAX) -> T:
        """Awaits the function with an interactive transaction, commits, and tries again after a conflict."""
        return await run(self._connection, self._caller, self.transaction, function, attempts_max)

    def transactional(self, function: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        """The decorator for run()."""
        return transactional(self.run, function)

    # Reads.

    async def get(self, key: KeyLike, *, timeout: Optional[float] = None) -> Value:
        """The value of a key; None: it is absent."""
        return (await self.read([key], timeout=timeout))[0].value

    async def read(self, keys: Iterable[KeyLike], *, timeout: Optional[float] = None,
                   traceparent: Optional[str] = None) -> Reads:
        """Values and versions of keys, all as of one moment: up to 1,024 keys (--operations-max)."""
        steps = reads.get(self._caller, to_keys(keys), timeout, trace_metadata(traceparent))
        return await self._connection.drive(steps)

    def scan(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None, reverse: bool = False,
             limit: Optional[int] = None, page_pairs: int = 0, boundary: int = 0,
             timeout: Optional[float] = None) -> Scan:
        """The pairs of [start, end) or of a prefix, for `async for`, all as of one moment. The arguments are those of
        kilokv.Client.scan()."""
        cursor = reads.ScanCursor(*to_range(start, end, prefix), reverse=reverse, limit=limit, page_pairs=page_pairs,
                                  boundary=boundary)
        return Scan(self._connection, self._caller, cursor, timeout)

    def watch(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None,
              after: Union[WatchPosition, int, None] = None, incarnation: Optional[str] = None,
              reconnect: float = 60.0, idle: float = 10.0) -> Watch:
        """The durable writes of [start, end) or of a prefix, for `async for`, in the one serial order, each once. The
        arguments are those of kilokv.Client.watch()."""
        cursor = WatchCursor(self._caller, *to_range(start, end, prefix), after=after, incarnation=incarnation,
                             reconnect=reconnect, idle=idle)
        return Watch(self._connection, cursor)

    # Bulk calls.

    async def bulk_put(self, keys: "Keys", values: "Integers", *, ttl: Optional["Seconds"] = None,
                       expires_at_us: Optional["Times"] = None,
                       records_at_once: Optional[int] = None) -> "ColumnResults":
        """Writes an int64 for each key. Each record is a transaction of its own."""
        from kilokv.columns import Columns
        return await self._bulk(Columns.put(keys, values, ttl=ttl, expires_at_us=expires_at_us), records_at_once)

    async def bulk_add(self, keys: "Keys", deltas: "Integers", *, ttl: Optional["Seconds"] = None,
                       expires_at_us: Optional["Times"] = None,
                       records_at_once: Optional[int] = None) -> "ColumnResults":
        """Adds an int64 to each key. Each record is a transaction of its own."""
        from kilokv.columns import Columns
        return await self._bulk(Columns.add(keys, deltas, ttl=ttl, expires_at_us=expires_at_us), records_at_once)

    async def bulk_get(self, keys: "Keys", *, records_at_once: Optional[int] = None) -> "ColumnResults":
        """Reads each key; ColumnResults.integers() has the values. The keys are not read as of one moment."""
        from kilokv.columns import Columns
        return await self._bulk(Columns.get(keys), records_at_once)

    # For the people who operate the server.

    async def status(self) -> ServerStatus:
        """The status of the server."""
        return await self._connection.drive(admin.status(self._caller))

    async def list_parked(self) -> List[ParkedTransaction]:
        """The transactions that wait on the server, in the order in which they were parked."""
        return await self._connection.drive(admin.list_parked(self._caller))

    async def cancel_parked(self, parked_id: Optional[int] = None, *, client: str = "", prefix: KeyLike = b"",
                            older_than: float = 0.0) -> int:
        """Cancels one parked transaction, or all for which the given conditions hold. Returns how many."""
        steps = requests.cancel_parked(self._caller, parked_id, client, to_key(prefix, "prefix"), older_than)
        return await self._connection.drive(steps)

    async def cancel(self, session_id: str, request: int, index: Optional[int] = None, *, holder: int = 0) -> int:
        """Cancels what is not decided of a request of any session whose whole id is known. Returns how many."""
        steps = requests.cancel_request(self._caller, to_session(session_id), request, index, holder)
        return await self._connection.drive(steps)

    async def list_sessions(self, limit: int = 0) -> Tuple[List[OpenSession], int]:
        """The open sessions of the server that hold the most bytes, and how many sessions there are."""
        return await self._connection.drive(admin.list_sessions(self._caller, limit))

    # The life of the client.

    async def close(self) -> None:
        """Closes the client's own session and all connections. Calls of other tasks end with ClosedError."""
        if self._opening is not None and self._opening.done() and self._opening.exception() is None:
            await self._opening.result().close()
        await self._connection.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open_session(self, lease: Optional[float]) -> Session:
        return Session(self._connection, await self._connection.drive(SessionCore.open(self._caller, lease)))

    async def _attach(self, session_id: str, numbers_used: int) -> AttachedSession:
        steps = attach(self._caller, to_session(session_id), numbers_used)
        return AttachedSession(self._connection, *(await self._connection.drive(steps)))

    async def _own_core(self) -> SessionCore:
        return (await self.own_session()).core

    async def _execute(self, sending: requests.Sending[T], timeout: Optional[float],
                       traceparent: Optional[str]) -> T:
        steps = requests.execute(self._caller, sending, timeout, trace_metadata(traceparent))
        return await self._connection.drive(steps)

    async def _bulk(self, columns: "Columns", records_at_once: Optional[int]) -> "ColumnResults":
        from kilokv.columns import REQUESTS_AT_ONCE, ColumnResults
        session = await self.own_session()
        room = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def send(part: "Columns") -> "ColumnResults":
            async with room:
                return await session.execute_columns(part)

        parts = columns.parts(records_at_once)
        return ColumnResults.join(await asyncio.gather(*map(send, parts)))
