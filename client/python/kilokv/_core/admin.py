"""Calls for the people who operate a server."""

from __future__ import annotations

from typing import List, Tuple

from kilokv._core.retry import Caller, Retry
from kilokv._core.steps import Steps
from kilokv.status import OpenSession, ParkedTransaction, ServerStatus, parked_of, sessions_of, status_of
from kilokv.v1 import activity_pb2
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.values import to_unsigned


def status(caller: Caller) -> Steps[ServerStatus]:
    return status_of((yield from caller.call("Status", pb.StatusRequest(), caller.deadline(None), Retry.ALWAYS)))


def list_parked(caller: Caller) -> Steps[List[ParkedTransaction]]:
    """All, page by page."""
    found: List[ParkedTransaction] = []
    while True:
        request = pb.ListParkedRequest(after_id=found[-1].id if found else 0)
        page = yield from caller.call("ListParked", request, caller.deadline(None), Retry.ALWAYS)
        found += [parked_of(parked) for parked in page.parked]
        if not (page.more and page.parked):
            return found


def list_sessions(caller: Caller, limit: int) -> Steps[Tuple[List[OpenSession], int]]:
    request = activity_pb2.ListSessionsRequest(limit=to_unsigned(limit, "limit", 32))
    return sessions_of((yield from caller.call("ListSessions", request, caller.deadline(None), Retry.ALWAYS)))
