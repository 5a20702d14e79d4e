"""Reads outside of transactions: get, and scans page by page."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from kilokv import errors
from kilokv._core.retry import Caller, Retry
from kilokv._core.steps import Metadata, Steps
from kilokv.results import Pair, Position, Read, Reads, pair_of
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.values import to_integer, to_unsigned

_KEYS_AT_ONCE = 1000
_PAGE_MAX = (1 << 32) - 1


def get(caller: Caller, keys: Sequence[bytes], timeout: Optional[float], metadata: Metadata = ()) -> Steps[Reads]:
    """Reads all keys as of one moment."""
    request = pb.GetRequest(keys=keys)
    answer = yield from caller.call("Get", request, caller.deadline(timeout), Retry.ALWAYS, metadata=metadata)
    if len(answer.reads) != len(keys):
        raise errors.InternalError("the server answered a get without all of its reads")
    return Reads(answer)


def get_in_parts(caller: Caller, keys: Sequence[bytes], timeout: Optional[float]) -> Steps[List[Read]]:
    """Reads any number of keys, each part as of one moment. If the values do not fit in one answer, it reads half as
    many keys at a time."""
    at_once = _KEYS_AT_ONCE
    reads: List[Read] = []
    while len(reads) < len(keys):
        part = keys[len(reads):len(reads) + at_once]
        try:
            reads += yield from get(caller, part, timeout)
        except errors.InvalidArgumentError as error:
            if error.field != "keys" or len(part) == 1:
                raise
            at_once = len(part) // 2
    return reads


class ScanCursor:
    """The state of a scan between its pages.

    start, end  the range that is left
    limit       the most pairs that are left; None: all
    page_pairs  pairs in a page; 0: as many as the server has in one
    boundary    0: the newest one; otherwise that of a scan that is open
    """

    def __init__(self, start: bytes, end: bytes, *, reverse: bool, limit: Optional[int], page_pairs: int,
                 boundary: int) -> None:
        if limit is not None:
            to_integer(limit, "limit", 1)
        self._request = pb.ScanRequest(boundary=to_unsigned(boundary, "boundary"), keep_boundary=True,
                                       reverse=bool(reverse))
        self._request.range.to = end
        setattr(self._request.range, "from", start)  # `from` is a word of Python
        self._page_pairs = to_unsigned(page_pairs, "page_pairs", 32)
        self._left = limit
        self.more = True
        self.position: Optional[Position] = None

    def known_position(self) -> Position:
        """Raises ValueError before the first page is read."""
        if self.position is None:
            raise ValueError("the scan has read no page yet")
        return self.position

    def next_page(self, caller: Caller, timeout: Optional[float]) -> Steps[List[Pair]]:
        """The pairs of the next page. It may have none although there are more."""
        request = self._request
        request.limit = self._page_limit()
        try:
            page = yield from self._read(caller, timeout)
        except errors.InvalidArgumentError as error:
            if error.field != "limit" or request.limit == 0:
                raise
            request.limit = self._page_pairs = 0  # more than the server has in a page
            page = yield from self._read(caller, timeout)
        if request.reverse and not page.reverse:
            raise errors.UnimplementedError("the server does not know reverse scans")
        self.position = Position(page.boundary, page.boundary_version, page.batch_time_us)
        pairs = [pair_of(pair) for pair in page.pairs]
        self._go_on_after(page)
        if self._left is not None:
            del pairs[self._left:]
            self._left -= len(pairs)
            self.more = self.more and self._left > 0
        return pairs

    def _page_limit(self) -> int:
        if self._left is None:
            return self._page_pairs
        return min(self._left, self._page_pairs or _PAGE_MAX)

    def _go_on_after(self, page: Any) -> None:
        self.more = page.more
        self._request.boundary, self._request.reader = page.boundary, page.reader
        if self._request.reverse:
            self._request.range.to = page.next_to
        else:
            setattr(self._request.range, "from", page.next_from)

    def _read(self, caller: Caller, timeout: Optional[float]) -> Steps[Any]:
        return (yield from caller.call("Scan", self._request, caller.deadline(timeout), Retry.ALWAYS))

    @property
    def holds_boundary(self) -> bool:
        """Whether the server keeps the boundary for this scan."""
        return bool(self._request.reader)

    def give_up(self, caller: Caller) -> Steps[None]:
        """Gives up the boundary that the server keeps for the next page: reads one more page, and does not ask to keep
        it. If the call fails, the server drops the boundary when it is too old."""
        self._request.keep_boundary, self._request.limit = False, 1
        try:
            yield from self._read(caller, None)
        except errors.Error:
            pass
        self._request.reader = b""
        self.more = False

