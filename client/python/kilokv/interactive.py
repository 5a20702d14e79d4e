"""Interactive transactions: the program reads, decides, buffers writes, and commits."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, List, Optional, Sequence, TypeVar

from kilokv._core.interactive import Conflicts, InteractiveCore
from kilokv._core.retry import Caller
from kilokv._core.session import SessionCore
from kilokv._core.shared import InteractiveBase
from kilokv.connection import Connection
from kilokv.errors import ConflictError
from kilokv.results import Pair
from kilokv.values import KeyLike, Value, to_range

T = TypeVar("T")
ATTEMPTS_MAX = 100  # tries of run()


class Interactive(InteractiveBase):
    """One try of an interactive transaction.

    Each read is strictly serializable by itself. Reads at different times can be inconsistent with each other until the
    commit, which checks all of them at one moment. So before the commit, the program must do nothing outside of the
    database that cannot be undone. One thread uses it.
    """

    def __init__(self, connection: Connection, caller: Caller, session: Callable[[], SessionCore]) -> None:
        """`session` gives the session of the commit."""
        super().__init__(InteractiveCore(caller))
        self._connection, self._session = connection, session

    def get(self, key: KeyLike) -> Value:
        """The value of a key; None: it is absent. A second read of a key gives the same value. Own writes are seen."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[KeyLike]) -> List[Value]:
        """The values of many keys, in few calls. Each call reads its keys as of one moment."""
        return self._connection.drive(self._core.get_many(keys))

    def scan(self, start: KeyLike = b"", end: KeyLike = b"", *, prefix: Optional[KeyLike] = None) -> List[Pair]:
        """All pairs of [start, end) or of a prefix, in key order. Own writes have the version None."""
        return self._connection.drive(self._core.scan(*to_range(start, end, prefix)))

    def scan_reverse(self, start: KeyLike = b"", end: KeyLike = b"", *, limit: int,
                     prefix: Optional[KeyLike] = None) -> List[Pair]:
        """The last `limit` pairs, from the last key to the first. Only what was read must be unchanged at the
        commit."""
        return self._connection.drive(self._core.scan_reverse(*to_range(start, end, prefix), limit))

    def commit(self) -> Optional[int]:
        """Ends the transaction. Returns the commit version; None: it wrote nothing. Raises ConflictError if something
        that it has read was changed. Then nothing was written."""
        key = self._connection.drive(self._core.commit(self._session()))
        if key is not None:
            raise ConflictError(key)
        return self._core.version

    def __enter__(self) -> "Interactive":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Commits, unless the block has raised an exception or has ended the transaction itself."""
        if kind is not None:
            self.abandon()
        elif not self._core.ended:
            self.commit()


def run(connection: Connection, caller: Caller, begin: Callable[[], Interactive], function: Callable[[Interactive], T],
        attempts_max: int) -> T:
    """The loop of Session.run() and Client.run()."""
    conflicts = Conflicts(caller.options, function, attempts_max)
    while True:
        try:
            with begin() as transaction:
                answer = function(transaction)
                if inspect.iscoroutine(answer):
                    answer.close()
                    raise TypeError("the function of run() must not be async: kilokv.aio.Client runs async functions")
            return answer
        except ConflictError as conflict:
            connection.drive(conflicts.pause(conflict))


def transactional(run_function: Callable[[Callable[[Interactive], T]], T],
                  function: Callable[..., T]) -> Callable[..., T]:
    """The decorator of Session and Client."""
    @functools.wraps(function)
    def run_it(*arguments: Any, **named: Any) -> T:
        return run_function(lambda transaction: function(transaction, *arguments, **named))
    return run_it
