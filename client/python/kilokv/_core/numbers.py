"""The numbers of the requests of a session, and what of them is acknowledged.

A number is acknowledged when the program has its results, and all lower numbers are acknowledged. So a request that is
still open holds back those after it. A number that ended without an answer, and may have run, stays open for the next
1,024 requests, so that it can be resumed. The numbers that earlier holders of the session have left open stay open
until acknowledge_through(), or for 1,024 requests, too.

Thread safety: any thread. The lock is held for moments only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Dict, Set

from kilokv import errors
from kilokv.values import to_unsigned

RESUME_WINDOW = 1024
ATTEMPTS_KEPT = 4096


class Numbers:
    """`inherited_through`: the numbers up to this one are those of earlier holders of the session."""

    def __init__(self, acknowledged_through: int = 0, inherited_through: int = 0) -> None:
        self._lock = threading.Lock()
        self._next = inherited_through + 1
        self._acknowledged_through = acknowledged_through
        self._inherited_through = inherited_through
        self._open: Set[int] = set()           # in flight
        self._given_up: Set[int] = set()       # ended without an answer; can be resumed
        self._ended_beyond: Set[int] = set()   # ended for good, and above acknowledged_through
        self._attempts: "OrderedDict[int, int]" = OrderedDict()  # of requests that have ended
        self._uploaded: Dict[int, bool] = {}   # as in ended(), for the numbers in _attempts

    @property
    def acknowledged_through(self) -> int:
        return self._acknowledged_through

    def inherits(self, number: int) -> bool:
        return number <= self._inherited_through

    def take(self) -> int:
        """The number of a new request, which is in flight from now on."""
        with self._lock:
            number = self._next
            self._next += 1
            self._open.add(number)
            return number

    def take_again(self, number: int) -> int:
        """Resumes a request. Returns how often it was sent before. Raises FailedPreconditionError if it cannot be
        resumed."""
        with self._lock:
            known = self._acknowledged_through < number < self._next
            if not known or number in self._open or number in self._ended_beyond:
                raise errors.FailedPreconditionError(
                    f"request {number} cannot be resumed: it is in flight, new, or ended for good", not_run=True)
            self._given_up.discard(number)
            self._open.add(number)
            return self._attempts.get(number, 0)

    def ended(self, number: int, attempts: int, can_go_on: bool, uploaded: bool = False) -> None:
        """A request is not in flight any more. `can_go_on`: it may be resumed. `uploaded`: it was sent with an
        upload."""
        with self._lock:
            self._open.discard(number)
            is_next = number == self._acknowledged_through + 1
            if is_next and not (can_go_on or self._given_up or self._ended_beyond):
                self._acknowledged_through = number  # the usual case
                return
            self._attempts[number] = attempts
            self._uploaded[number] = uploaded
            if len(self._attempts) > ATTEMPTS_KEPT:
                oldest, _ = self._attempts.popitem(last=False)
                del self._uploaded[oldest]
            (self._given_up if can_go_on else self._ended_beyond).add(number)
            if self._given_up:
                old = {n for n in self._given_up if n + RESUME_WINDOW < self._next}
                self._given_up -= old
                self._ended_beyond |= old
            if self._next > self._inherited_through + RESUME_WINDOW:
                self._let_go_of_inherited(self._inherited_through)
            self._acknowledge_ended()

    def acknowledge_through(self, number: int) -> None:
        """Nothing more is needed of the requests of earlier holders up to this number."""
        through = to_unsigned(number, "the number of the request")
        with self._lock:
            self._let_go_of_inherited(through)
            self._acknowledge_ended()

    def was_uploaded(self, number: int) -> bool:
        """Whether the number was sent with an upload; known only for the last requests."""
        return self._uploaded.get(number, False)

    def _acknowledge_ended(self) -> None:
        while self._acknowledged_through + 1 in self._ended_beyond:
            self._acknowledged_through += 1
            self._ended_beyond.discard(self._acknowledged_through)

    def _let_go_of_inherited(self, through: int) -> None:
        """Earlier holders may have left out numbers. So all go together, up to the first one that is in flight
        again."""
        through = min(through, self._inherited_through)
        if through <= self._acknowledged_through:
            return
        through = max(min([through, *(number - 1 for number in self._open)]), self._acknowledged_through)
        self._acknowledged_through = through
        self._given_up = {number for number in self._given_up if number > through}
        self._ended_beyond = {number for number in self._ended_beyond if number > through}
