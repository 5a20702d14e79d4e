#!/usr/bin/env python3
"""Limits how often somebody may do something: at most LIMIT times in each window of time. The server's stamps decide to
which window a try belongs, so no client needs a right clock. docs/recipes.md explains it.

  limit/WHO/WINDOW    how often WHO was allowed in this window; the server deletes it after the window
"""

import pathlib
import sys

import kilokv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example import integer, main, wrong_command  # noqa: E402

USAGE = """\
limiter [--endpoint HOST:PORT] VERB ...
  allow WHO LIMIT WINDOW_MS    counts a try, and says whether it is allowed
"""


class Limiter:
    def __init__(self):
        # A guess of the stamp of the next batch: the newest stamp that was seen. A wrong guess costs one more try.
        self._guessed_time_us = 0

    def allow(self, session, who, limit, window_us):
        while True:
            window = self._guessed_time_us // window_us
            begin_us, end_us = window * window_us, (window + 1) * window_us
            count = f"limit/{who}/{window}"
            counting = kilokv.Transaction()
            counting.guard(count, "<", limit)
            counting.guard_time_after(begin_us)
            counting.guard_time_before(end_us)
            counting.add(count, 1, ttl=window_us / 1e6)  # no batch before the end of the window can find it deleted

            result = session.execute(counting)
            now = self._guessed_time_us = result.batch_time_us
            if result.committed:
                return f"allowed at {now}"
            if result.outcome != kilokv.Outcome.GUARD_FAILED:
                return result.outcome.name
            if begin_us <= now < end_us:
                return f"refused at {now} until {end_us}"
            # The guess was wrong. Now the stamp of a batch is known.

    def run(self, session, words):
        if words[0] != "allow" or len(words) != 4:
            raise wrong_command()
        return self.allow(session, words[1], integer(words[2], 1), integer(words[3], 1) * 1000)


if __name__ == "__main__":
    sys.exit(main(USAGE, Limiter().run))
