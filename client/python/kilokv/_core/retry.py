"""When a call is made again, and after what delay."""

from __future__ import annotations

import enum
import math
import random
import time
from typing import Any, Callable, Optional

from kilokv import errors
from kilokv._core.failures import is_of_transport, is_wrong_endpoint, of_many_sendings
from kilokv._core.steps import Call, Metadata, Pause, Steps
from kilokv.options import ClientOptions
from kilokv.values import to_microseconds


class Retry(enum.Enum):
    WHEN_REFUSED = 1  # only if the server is full, and said that nothing ran, and when to try again
    ALWAYS = 2        # also if the outcome is unknown: the call may run twice without harm
    IN_SESSION = 3    # the number makes it safe: also after every loss of the connection


class Backoff:
    """The delays between retries. The bound doubles from the least to the greatest delay. Each delay is drawn from the
    upper half below its bound."""

    def __init__(self, options: ClientOptions) -> None:
        self._bound, self._max = options.backoff_min, options.backoff_max

    def next(self, retry_after: float = 0.0) -> float:
        """Seconds to the next try: at least `retry_after`, which the server asked for."""
        bound = self._bound
        self._bound = min(2 * bound, self._max)
        return max(bound / 2, retry_after) + random.uniform(0, max(bound, retry_after) / 2)


def may_retry(error: errors.Error, retry: Retry) -> bool:
    if isinstance(error, errors.ClosedError):
        return False
    if isinstance(error, errors.ResourceExhaustedError):
        # Without a delay, waiting does not help.
        return error.retry_after > 0 and (error.not_run or retry is not Retry.WHEN_REFUSED)
    if retry is Retry.WHEN_REFUSED:
        return False
    if isinstance(error, errors.UnavailableError):
        return True
    lost = (errors.CancelledError, errors.InternalError, errors.UnknownError)
    return retry is Retry.IN_SESSION and (isinstance(error, errors.CallCancelledError) or
                                          (type(error) in lost and is_of_transport(error)))


class Caller:
    """Makes calls with retries. It knows whether the server was ever reached. Before that, an endpoint without a server
    ends the call at once, and another loss after connect_timeout. If wait_for_server has time left, both end after
    it."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._reached = False
        self._wait_until = time.monotonic() + options.wait_for_server

    def deadline(self, timeout: Optional[float], wait: float = 0.0) -> float:
        """`wait`: how long transactions may wait on the server; it is added to the default timeout. So is the time that
        the first call may wait for the server."""
        now = time.monotonic()
        if timeout is not None:
            return now + to_microseconds(timeout, "timeout") / 1e6
        first = 0.0 if self._reached else max(0.0, self._wait_until - now)
        return now + self.options.timeout + wait + first

    def call(self, method: str, request: Any, deadline: float, retry: Retry, *, metadata: Metadata = (),
             take: Optional[Callable[[Any], None]] = None, attempt: Optional[Callable[[], None]] = None) -> Steps[Any]:
        """`attempt` is called before each try, and may end the call by an Error. The error is that of the last try that
        says more than that the time is over. If a try before it may have run, the error says so."""
        backoff: Optional[Backoff] = None
        last: Optional[errors.Error] = None
        may_have_run = False
        reach_until = time.monotonic() + self.patience()
        while True:
            try:
                if attempt is not None:
                    attempt()
                was_lost = isinstance(last, errors.UnavailableError)
                until = self._sooner(deadline, reach_until) if was_lost else deadline
                answer = yield Call(method, request, until, take, wait_for_ready=was_lost, metadata=metadata)
                self.has_reached()
                return answer
            except errors.Error as caught:
                error = caught
            again = self.may_retry(error, retry)
            if again:
                backoff = backoff or Backoff(self.options)
                delay = backoff.next(error.retry_after)
                again = time.monotonic() + delay < self._sooner(deadline, reach_until)
            if not again:
                raise self._last_error(error, last, may_have_run)
            may_have_run = may_have_run or not error.never_ran
            last = error
            yield Pause(delay)

    def has_reached(self) -> None:
        """The server has answered."""
        self._reached = True

    def patience(self) -> float:
        """For how many seconds a call tries to reach a server that was never reached. Infinite: it was reached."""
        if self._reached:
            return math.inf
        left = self._wait_until - time.monotonic()
        return left if left > 0 else self.options.connect_timeout

    def _sooner(self, deadline: float, reach_until: float) -> float:
        return deadline if self._reached else min(deadline, reach_until)

    def may_retry(self, error: errors.Error, retry: Retry) -> bool:
        """may_retry() for a call of this client."""
        if error.reason:
            self.has_reached()
        if not self._reached and is_wrong_endpoint(error) and time.monotonic() >= self._wait_until:
            return False
        return may_retry(error, retry)

    @staticmethod
    def _last_error(error: errors.Error, last: Optional[errors.Error], may_have_run: bool) -> errors.Error:
        if last is not None and isinstance(error, errors.DeadlineExceededError):
            may_have_run = may_have_run or not error.never_ran
            last.message = f"the deadline passed; the last answer: {last.message}"
            error = last
        return of_many_sendings(error) if may_have_run else error
