"""The synchronous client."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import TYPE_CHECKING, Callable, Iterable, List, Optional, Sequence, Tuple, TypeVar, Union

from kilokv._core import admin, reads, requests
from kilokv._core.session import SessionCore, attach
from kilokv._core.shared import ClientBase
from kilokv._core.watch import WatchCursor
from kilokv.connection import Connection
from kilokv.interactive import ATTEMPTS_MAX, Interactive, run, transactional
from kilokv.options import trace_metadata
from kilokv.results import Reads, Result, Results, WatchPosition
from kilokv.scan import Scan
from kilokv.session import AttachedSession, Progress, Session
from kilokv.status import OpenSession, ParkedTransaction, ServerStatus
from kilokv.transaction import Operand, Transaction
from kilokv.values import KeyLike, Value, to_key, to_keys, to_range, to_session
from kilokv.watch import Watch

if TYPE_CHECKING:
    from kilokv.columns import ColumnResults, Columns, Integers, Keys, Seconds, Times

T = TypeVar("T")


class Client(ClientBase):
    """A client of one server.

        with kilokv.Client("127.0.0.1:7070") as db:
            db.put("stock", 100)
            db.add("stock", -3)         # 97

    What the arguments leave out comes from the environment, as for all programs of KiloKV: KILOKV_ENDPOINT, the
    variables that begin with KILOKV_CLIENT_TLS, and KILOKV_CLIENT_TOKEN_FILE or KILOKV_CLIENT_TOKEN. ClientOptions
    (options.py) explains the arguments. The first call connects.

    put(), add(), delete(), run(), transaction() and the bulk calls use a session that the client opens by itself. So
    they are applied once, also if the server restarts. execute() uses no session.

    Thread safety: any thread.
    """

    def _set_up(self) -> None:
        self._connection = Connection(self.options)
        self._lock = threading.Lock()
        self._own_session: Optional[Session] = None

    # Sessions.

    def session(self, *, lease: Optional[float] = None) -> Session:
        """Opens a session. `lease`: seconds without a sign of the client after which the server ends it, from 1 s to 24
        h; None: the server's default. Close it, or use it with `with`."""
        return Session(self._connection, self._connection.drive(SessionCore.open(self._caller, lease)))

    def attach(self, session_id: str, *, numbers_used: int = 0) -> AttachedSession:
        """Takes over the session of a program that has ended, or cannot be reached. `session_id`: its Session.id. Every
        request of that program gets SessionFencedError from then on. `numbers_used`: the highest number that it may
        have used, if it is known. New requests get higher numbers."""
        steps = attach(self._caller, to_session(session_id), numbers_used)
        return AttachedSession(self._connection, *self._connection.drive(steps))

    @property
    def own_session(self) -> Session:
        """The session that the client uses by itself. It is opened when it is needed, and again after it has ended."""
        with self._lock:
            if self._own_session is None or self._own_session.core.ended is not None:
                self._own_session = self.session()
            return self._own_session

    # Transactions.

    def execute(self, transaction: Transaction, *, timeout: Optional[float] = None, detached: bool = False,
                traceparent: Optional[str] = None) -> Result:
        """Executes a transaction without a session. If the answer is lost, the error is UnavailableError, and nobody
        knows whether the transaction ran. It is sent again only if the server says that it did not run. `timeout`:
        seconds; None: that of the client plus the wait_timeout. If the call ends before the transaction is decided, the
        server drops it, unless it is `detached`."""
        return self._execute(requests.One(transaction, detached), timeout, traceparent)

    def execute_many(self, transactions: Sequence[Transaction], *, timeout: Optional[float] = None,
                     detached: bool = False, progress: Optional[Progress] = None,
                     traceparent: Optional[str] = None) -> Results:
        """execute() for many transactions as one request. They have no order among themselves. `progress(index,
        result)` is called as each finishes."""
        return self._execute(requests.Many(transactions, progress, detached), timeout, traceparent)

    def put(self, key: KeyLike, value: Operand, *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Writes an int or bytes, and returns the version. The key expires `ttl` seconds after the write, or at
        `expires_at_us`, microseconds since the Unix epoch; neither: never."""
        return self.own_session.put(key, value, ttl=ttl, expires_at_us=expires_at_us, timeout=timeout)

    def add(self, key: KeyLike, delta: Operand, *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Adds to the integer of a key, and returns the sum. Raises NotCommittedError for bytes, and for an
        overflow."""
        return self.own_session.add(key, delta, ttl=ttl, expires_at_us=expires_at_us, timeout=timeout)

    def delete(self, *keys: KeyLike, timeout: Optional[float] = None) -> Optional[int]:
        """Deletes keys in one transaction. Returns the version; None: all keys were absent."""
        return self.own_session.delete(*keys, timeout=timeout)

    def transaction(self) -> Interactive:
        """As Session.transaction(): a single try, which raises ConflictError after a conflict."""
        return Interactive(self._connection, self._caller, lambda: self.own_session.core)

    def run(self, function: Callable[[Interactive], T], *, attempts_max: int = ATTEMPTS_MAX) -> T:
        """As Session.run(): an interactive transaction, again after a conflict."""
        return run(self._connection, self._caller, self.transaction, function, attempts_max)

    def transactional(self, function: Callable[..., T]) -> Callable[..., T]:
        """As Session.transactional(): the decorator for run()."""
        return transactional(self.run, function)

    # Reads.

    def get(self, key: KeyLike, *, timeout: Optional[float] = None) -> Value:
        """The value of a key; None: it is absent."""
        return self.read([key], timeout=timeout)[0].value

    def read(self, keys: Iterable[KeyLike], *, timeout: Optional[float] = None,
             traceparent: Optional[str] = None) -> Reads:
        """Values and versions of keys, all as of one moment: up to 1,024 keys (--operations-max)."""
        steps = reads.get(self._caller, to_keys(keys), timeout, trace_metadata(traceparent))
        return self._connection.drive(steps)

    def scan(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None, reverse: bool = False,
             limit: Optional[int] = None, page_pairs: int = 0, boundary: int = 0,
             timeout: Optional[float] = None) -> Scan:
        """The pairs of [start, end) or of a prefix, in key order, or in reverse from the last key to the first. All are
        as of one moment, also if there are many pages. An empty end: there is no upper bound.

        limit       the most pairs
        page_pairs  pairs in a page; 0: as many as the server allows
        boundary    0: the newest moment. Or Position.boundary of another scan that is still open, to see the same
                    moment
        timeout     seconds for each page
        """
        cursor = reads.ScanCursor(*to_range(start, end, prefix), reverse=reverse, limit=limit, page_pairs=page_pairs,
                                  boundary=boundary)
        return Scan(self._connection, self._caller, cursor, timeout)

    def watch(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None,
              after: Union[WatchPosition, int, None] = None, incarnation: Optional[str] = None,
              reconnect: float = 60.0, idle: float = 10.0) -> Watch:
        """The durable writes of [start, end) or of a prefix, in the one serial order, each once: a Watch, which gives
        them part by part, and has no end of its own.

        after        only what comes after this position, or after this version, such as Position.boundary_version of a
                     scan; None: what is written from now on
        incarnation  that of the part whose position is `after`: then a database that was restored from a backup is told
                     from the old one
        reconnect    for how many seconds the watch tries to reach the server again
        idle         after how many seconds without an answer the connection counts as lost; the server sends one at
                     least every second
        """
        cursor = WatchCursor(self._caller, *to_range(start, end, prefix), after=after, incarnation=incarnation,
                             reconnect=reconnect, idle=idle)
        return Watch(self._connection, cursor, idle)

    # Bulk calls.

    def bulk_put(self, keys: "Keys", values: "Integers", *, ttl: Optional["Seconds"] = None,
                 expires_at_us: Optional["Times"] = None,
                 records_at_once: Optional[int] = None) -> "ColumnResults":
        """Writes an int64 for each key. columns.py says what keys, `ttl` and `expires_at_us` may be. Each record
        is a transaction of its own, so a bulk call as a whole is not atomic. If it raises an error, some of the records
        may be written."""
        from kilokv.columns import Columns
        return self._bulk(Columns.put(keys, values, ttl=ttl, expires_at_us=expires_at_us), records_at_once)

    def bulk_add(self, keys: "Keys", deltas: "Integers", *, ttl: Optional["Seconds"] = None,
                 expires_at_us: Optional["Times"] = None,
                 records_at_once: Optional[int] = None) -> "ColumnResults":
        """Adds an int64 to each key, otherwise as bulk_put()."""
        from kilokv.columns import Columns
        return self._bulk(Columns.add(keys, deltas, ttl=ttl, expires_at_us=expires_at_us), records_at_once)

    def bulk_get(self, keys: "Keys", *, records_at_once: Optional[int] = None) -> "ColumnResults":
        """Reads each key; ColumnResults.integers() has the values. The keys are not read as of one moment."""
        from kilokv.columns import Columns
        return self._bulk(Columns.get(keys), records_at_once)

    # For the people who operate the server.

    def status(self) -> ServerStatus:
        """The status of the server."""
        return self._connection.drive(admin.status(self._caller))

    def list_parked(self) -> List[ParkedTransaction]:
        """The transactions that wait on the server, in the order in which they were parked."""
        return self._connection.drive(admin.list_parked(self._caller))

    def cancel_parked(self, parked_id: Optional[int] = None, *, client: str = "", prefix: KeyLike = b"",
                      older_than: float = 0.0) -> int:
        """Cancels one parked transaction, or all for which the given conditions hold: sent by this client
        (ParkedTransaction.client), waiting for a key with this prefix, parked for at least so many seconds. Returns how
        many."""
        steps = requests.cancel_parked(self._caller, parked_id, client, to_key(prefix, "prefix"), older_than)
        return self._connection.drive(steps)

    def cancel(self, session_id: str, request: int, index: Optional[int] = None, *, holder: int = 0) -> int:
        """Cancels what is not decided of a request of any session whose whole id is known. Returns how many
        transactions."""
        steps = requests.cancel_request(self._caller, to_session(session_id), request, index, holder)
        return self._connection.drive(steps)

    def list_sessions(self, limit: int = 0) -> Tuple[List[OpenSession], int]:
        """The open sessions of the server that hold the most bytes, and how many sessions there are. `limit`: 0: as
        many as the server chooses."""
        return self._connection.drive(admin.list_sessions(self._caller, limit))

    # The life of the client.

    def close(self) -> None:
        """Closes the client's own session and all connections. Calls of other threads end with ClosedError."""
        with self._lock:
            if self._own_session is not None:
                self._own_session.close()
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _execute(self, sending: requests.Sending[T], timeout: Optional[float],
                 traceparent: Optional[str]) -> T:
        return self._connection.drive(requests.execute(self._caller, sending, timeout, trace_metadata(traceparent)))

    def _bulk(self, columns: "Columns", records_at_once: Optional[int]) -> "ColumnResults":
        from kilokv.columns import REQUESTS_AT_ONCE, ColumnResults
        session = self.own_session
        with concurrent.futures.ThreadPoolExecutor(REQUESTS_AT_ONCE, "kilokv-bulk") as threads:
            parts = threads.map(session.execute_columns, columns.parts(records_at_once))
            return ColumnResults.join(list(parts))
