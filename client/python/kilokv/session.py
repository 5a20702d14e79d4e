"""Sessions of the synchronous client."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Generic, List, Optional, Sequence, TypeVar

from kilokv._core import requests
from kilokv._core.session import SessionCore
from kilokv._core.shared import Attached, SessionBase
from kilokv.connection import Connection
from kilokv.interactive import ATTEMPTS_MAX, Interactive, run, transactional
from kilokv.options import trace_metadata
from kilokv.results import KnownRequest, Result, Results
from kilokv.transaction import Operand, Transaction
from kilokv.values import KeyLike

if TYPE_CHECKING:
    from kilokv.columns import ColumnResults, Columns

T = TypeVar("T")
Progress = Callable[[int, Result], None]


class Pending(Generic[T]):
    """A request that a thread of its own sends. `number` is its number in the session."""

    def __init__(self, session: "Session", number: int, work: Callable[[], T]) -> None:
        self._session = session
        self.number = number
        self._result: Optional[T] = None
        self._error: Optional[BaseException] = None
        self._done = threading.Event()
        threading.Thread(target=self._run, args=(work,), name=f"kilokv-request-{number}", daemon=True).start()

    def done(self) -> bool:
        """Whether the request has ended."""
        return self._done.is_set()

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits for the answer, and returns it. Raises the error of the request, or TimeoutError if it has not ended
        after so many seconds. Then it goes on."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"request {self.number} has not ended within {timeout} s")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def cancel(self, index: Optional[int] = None) -> int:
        """Cancels on the server what is not decided yet, or only the transaction with this index. Returns how many
        transactions were cancelled. Their results have the outcome CANCELLED."""
        return self._session.cancel(self.number, index)

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._result = work()
        except BaseException as error:  # whoever asks for the result gets it
            self._error = error
        self._done.set()


class Session(SessionBase):
    """Requests that are applied once, however often they are sent. Client.session() and Client.attach() make sessions.

    Each request gets the next number. If the connection is lost or the server restarts, the request is sent again under
    the same number, until its deadline. Results are acknowledged as they come, and the lease is renewed in the
    background.

    Thread safety: any thread.
    """

    def __init__(self, connection: Connection, core: SessionCore) -> None:
        super().__init__(core)
        self.connection = connection
        self._stopped = threading.Event()
        threading.Thread(target=self._renew, name="kilokv-lease", daemon=True).start()

    def execute(self, transaction: Transaction, *, timeout: Optional[float] = None,
                traceparent: Optional[str] = None) -> Result:
        """Sends a transaction, and waits for its result. `timeout`: seconds, with retries and waits; None: the timeout
        of the client plus the wait_timeout of the transaction.

        A transaction may begin with more guards of versions than fit in a request, if none of its guards waits. They
        are uploaded first. Raises: the errors of errors.py. After DeadlineExceededError or UnavailableError, resume()
        asks for the result again.
        """
        return self.connection.drive(self.core.execute(transaction, timeout, trace_metadata(traceparent)))

    def execute_many(self, transactions: Sequence[Transaction], *, timeout: Optional[float] = None,
                     progress: Optional[Progress] = None, traceparent: Optional[str] = None) -> Results:
        """Sends many transactions as one request. They have no order among themselves. `progress(index, result)` is
        called for each transaction as it finishes, so that one that waits does not hold back the others."""
        return self._send(requests.Many(transactions, progress), timeout, traceparent)

    def execute_columns(self, columns: "Columns", *, timeout: Optional[float] = None) -> "ColumnResults":
        """Sends many transactions of one kind as one request (columns.py)."""
        return self._send(requests.of_columns(columns), timeout)

    def submit(self, transaction: Transaction, *, timeout: Optional[float] = None) -> Pending[Result]:
        """Sends a transaction in a thread of its own, and returns at once. For one that waits, and may be cancelled."""
        sending = requests.One(transaction)
        begun = self.core.begin()
        steps = self.core.send(begun, sending, timeout)
        return Pending(self, begun[0], lambda: self.connection.drive(steps))

    def resume(self, number: int, transaction: Transaction, *, timeout: Optional[float] = None) -> Result:
        """Asks again for the result of a request that ended without an answer. The content must be the same. It gets
        the stored result, waits for it, or runs for the first time. Raises FailedPreconditionError if the number cannot
        be resumed: it was refused for good, or more than 1,024 requests were sent after it."""
        return self.connection.drive(self.core.resume_one(number, transaction, timeout))

    def resume_many(self, number: int, transactions: Sequence[Transaction], *, timeout: Optional[float] = None,
                    progress: Optional[Progress] = None) -> Results:
        """resume() for a request of execute_many()."""
        return self.connection.drive(self.core.resume(number, requests.Many(transactions, progress), timeout))

    def cancel(self, number: int, index: Optional[int] = None) -> int:
        """Cancels what is not decided of a request, or of its transaction `index`. Returns how many transactions."""
        return self.connection.drive(self.core.cancel(number, index))

    def put(self, key: KeyLike, value: Operand, *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Writes a value, and returns its version. The key expires `ttl` seconds after the write, or at
        `expires_at_us`, microseconds since the Unix epoch; neither: never."""
        return self.connection.drive(self.core.put(key, value, timeout, ttl, expires_at_us))

    def add(self, key: KeyLike, delta: Operand, *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Adds to the integer of a key, and returns the sum. Raises NotCommittedError for bytes, and for an
        overflow."""
        return self.connection.drive(self.core.add(key, delta, timeout, ttl, expires_at_us))

    def delete(self, *keys: KeyLike, timeout: Optional[float] = None) -> Optional[int]:
        """Deletes keys in one transaction. Returns the version; None: all keys were absent."""
        return self.connection.drive(self.core.delete(keys, timeout))

    def transaction(self) -> Interactive:
        """An interactive transaction. Used with `with`, it commits at the end of the block, and raises ConflictError
        after a conflict. It is tried once: run() tries again."""
        return Interactive(self.connection, self.caller, lambda: self.core)

    def run(self, function: Callable[[Interactive], T], *, attempts_max: int = ATTEMPTS_MAX) -> T:
        """Calls the function with an interactive transaction, commits, and returns what the function has returned.
        After a conflict it waits for a moment, and calls the function again. An exception of the function ends it, and
        nothing is written. Raises ConflictError after attempts_max conflicts."""
        return run(self.connection, self.caller, self.transaction, function, attempts_max)

    def transactional(self, function: Callable[..., T]) -> Callable[..., T]:
        """A decorator. The function gets an interactive transaction as its first argument, and each call of it goes
        through run()."""
        return transactional(self.run, function)

    def known_requests(self) -> List[KnownRequest]:
        """Asks again what has become of the requests that nobody has acknowledged. Only in a session from attach()."""
        return self.connection.drive(self.core.known_requests())

    def close(self, *, keep_open: bool = False) -> None:
        """Ends the session. `keep_open`: it stays open on the server until its lease ends, so that another client can
        attach to it. It does not wait for requests of other threads."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if keep_open:
            self.core.leave()
        else:
            self.connection.drive(self.core.close())

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, sending: requests.Sending[T], timeout: Optional[float], traceparent: Optional[str] = None) -> T:
        metadata = trace_metadata(traceparent)
        return self.connection.drive(self.core.send(self.core.begin(), sending, timeout, metadata))

    def _renew(self) -> None:
        self.connection.drive(self.core.renew_until_ended(), self._stopped)


class AttachedSession(Attached, Session):
    """A session that this client has taken over from another one."""

    def __init__(self, connection: Connection, core: SessionCore, answer: Any, known: List[KnownRequest]) -> None:
        Session.__init__(self, connection, core)
        Attached.__init__(self, answer, known)
