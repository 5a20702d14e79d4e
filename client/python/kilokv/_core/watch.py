"""Where a watch is, and when it goes on after an error."""

from __future__ import annotations

import re
import time
from typing import Any, Optional, Union

from kilokv import errors
from kilokv._core.retry import Backoff, Caller, Retry
from kilokv.results import WatchedPart, WatchedWrite, WatchPosition, expiry_of, value_of
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.values import to_microseconds, to_text, to_unsigned

_INCARNATION = re.compile(r"[0-9a-f]{32}")
_QUIET_MIN = 0.05  # seconds


def silence() -> errors.Error:
    return errors.UnavailableError("the server has sent nothing of the watch for too long")


def end_of_stream() -> errors.Error:
    """A watch has no end of its own."""
    return errors.UnavailableError("the server has ended the watch")


class WatchCursor:
    """The request of the next stream. It moves on with each answer, so a new stream begins where the last one ended.

    after        a position, or a version; None: what is written from now on
    incarnation  32 hexadecimal digits; None: not checked
    reconnect    seconds for which the watch tries to reach the server again
    idle         seconds without an answer after which the connection counts as lost
    """

    def __init__(self, caller: Caller, start: bytes, end: bytes, *, after: Union[WatchPosition, int, None],
                 incarnation: Optional[str], reconnect: float, idle: float) -> None:
        to_microseconds(reconnect, "reconnect")
        if to_microseconds(idle, "idle") == 0:
            raise ValueError(f"idle is {idle} seconds; it must be more than 0")
        if incarnation is not None and not _INCARNATION.fullmatch(to_text(incarnation, "incarnation")):
            raise ValueError(f"the incarnation of a database has 32 hexadecimal digits; {incarnation!r} has not")
        self._caller, self._reconnect, self._idle = caller, reconnect, idle
        self._backoff = Backoff(caller.options)
        self._lost: Optional[errors.Error] = None  # the first error since the last answer
        self._last = 0.0                           # when the program asked for a part
        self.request = pb.WatchRequest(incarnation=bytes.fromhex(incarnation or ""))
        self.request.range.to = end
        setattr(self.request.range, "from", start)  # `from` is a word of Python
        if after is not None:
            version, writes = after if isinstance(after, WatchPosition) else WatchPosition(after)
            self.request.after.version = to_unsigned(version, "after")
            self.request.after.writes = to_unsigned(writes, "after.writes", 32)
            self.request.after.SetInParent()  # the position of all writes has no field

    def begin(self) -> None:
        """The program asks for the next part. If it got an error before, the watch tries again."""
        self._last, self._lost = time.monotonic(), None

    @property
    def is_lost(self) -> bool:
        """Whether the next stream is there to reach the server again."""
        return self._lost is not None

    @property
    def quiet_max(self) -> float:
        """How many seconds to wait for the next answer."""
        if self._lost is None:
            return self._idle
        left = self._last + min(self._reconnect, self._caller.patience()) - time.monotonic()
        return min(self._idle, max(left, _QUIET_MIN))

    def take(self, answer: Any) -> WatchedPart:
        """Moves on behind the answer, and returns what the program gets of it."""
        self._caller.has_reached()
        if self._lost is not None:
            self._lost, self._backoff = None, Backoff(self._caller.options)
        if answer.incarnation:
            self.request.incarnation = answer.incarnation
        self.request.after.CopyFrom(answer.position)
        self.request.after.SetInParent()
        position = WatchPosition(answer.position.version, answer.position.writes)
        return WatchedPart([_write_of(write) for write in answer.writes], position, answer.unfinished,
                           self.request.incarnation.hex())

    def delay_after(self, error: errors.Error) -> float:
        """Seconds to the next stream. Raises the error if the watch does not go on. The server cancels a stream whose
        client has taken nothing for long: then it goes on."""
        is_over = time.monotonic() - self._last >= min(self._reconnect, self._caller.patience())
        if is_over or not self._caller.may_retry(error, Retry.IN_SESSION):
            raise self._lost if self._lost is not None and isinstance(error, errors.UnavailableError) else error
        self._lost = self._lost or error
        return self._backoff.next(error.retry_after)


def _write_of(write: Any) -> WatchedWrite:
    return WatchedWrite(write.key, value_of(write.value), write.version, write.batch_time_us,
                        expiry_of(write), write.expired, write.batch, write.rank)
