"""The steps that a generator yields, and what a client must do for each.

Call   makes a call of gRPC, and sends its answer back. A failure is thrown into the generator as an Error
       (failures.py).
Pause  waits.
"""

from __future__ import annotations

from typing import Any, Callable, Generator, Optional, Tuple, TypeVar, Union

Metadata = Tuple[Tuple[str, str], ...]


class Call:
    """A call of the method, until the deadline (of time.monotonic()).

    take            for a call that streams its answers: gets each message; the answer of the step is None
    wait_for_ready  whether the call waits for a connection, instead of failing at once
    """
    __slots__ = ("method", "request", "deadline", "take", "wait_for_ready", "metadata")

    def __init__(self, method: str, request: Any, deadline: float, take: Optional[Callable[[Any], None]] = None,
                 wait_for_ready: bool = False, metadata: Metadata = ()) -> None:
        self.method, self.request, self.deadline = method, request, deadline
        self.take, self.wait_for_ready, self.metadata = take, wait_for_ready, metadata


class Pause:
    """A pause of so many seconds."""
    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


T = TypeVar("T")
Steps = Generator[Union[Call, Pause], Any, T]
