"""The Python client of KiloKV, a transactional key-value database.

    import kilokv

    with kilokv.Client("127.0.0.1:7070") as db:
        db.put("alice", 100)
        transfer = kilokv.Transaction().guard("alice", ">=", 10).add("alice", -10).add("bob", 10)
        with db.session() as session:
            print(session.execute(transfer).outcome.name)      # COMMITTED: it is durable now

kilokv.aio has the same for asyncio. docs/python.md of the project is the guide.
"""

from typing import TYPE_CHECKING

from kilokv import errors
from kilokv.client import Client
from kilokv.errors import *  # noqa: F403: the classes that its __all__ names
from kilokv.interactive import Interactive
from kilokv.options import ClientOptions, Tls, session_id_from_environment
from kilokv.results import (FailedIn, KnownRequest, NotCommittedError, Outcome, Pair, Position, Read, Reads,
                            RequestState, Result, Results, WatchedPart, WatchedWrite, WatchPosition)
from kilokv.scan import Scan
from kilokv.session import AttachedSession, Pending, Session
from kilokv.status import MemoryOwner, OpenSession, ParkedTransaction, ServerStatus
from kilokv.transaction import (BATCH_TIME, COMMIT_VERSION, FAIL, WAIT, Get, OnFalse, Operations, RangeGet,
                                ServerOperand, Transaction)
from kilokv.values import INTEGER_MAX, INTEGER_MIN, Value, prefix_end
from kilokv.watch import Watch

__all__ = [
    "AttachedSession", "BATCH_TIME", "COMMIT_VERSION", "Client", "ClientOptions", "FAIL",
    "FailedIn", "Get", "INTEGER_MAX", "INTEGER_MIN", "Interactive", "KnownRequest", "MemoryOwner", "NotCommittedError",
    "OnFalse", "OpenSession", "Operations", "Outcome", "Pair", "ParkedTransaction", "Pending", "Position", "RangeGet",
    "Read", "Reads", "RequestState", "Result", "Results", "Scan", "ServerOperand", "ServerStatus", "Session", "Tls",
    "Transaction", "Value", "WAIT", "Watch", "WatchPosition", "WatchedPart", "WatchedWrite", "prefix_end",
    "session_id_from_environment"]
__all__ += errors.__all__

if TYPE_CHECKING:
    from kilokv.columns import ColumnResults as ColumnResults
    from kilokv.columns import Columns as Columns


def __getattr__(name: str) -> object:
    """Columns and ColumnResults need numpy, which is not loaded before it is used."""
    if name in ("Columns", "ColumnResults"):
        from kilokv import columns
        return getattr(columns, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
