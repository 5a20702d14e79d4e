#!/usr/bin/env python3
"""A queue of jobs. A worker takes a job for a time, and finishes it within this time. Otherwise another worker takes
it. The work may be done more than once. Its result counts once. docs/recipes.md explains it.

  jobs/QUEUE/work/ID     what to do: an integer, which the job adds to the sum
  jobs/QUEUE/lease/ID    from when on a worker may take the job, in microseconds; 0: at once
  jobs/QUEUE/done/ID     the token under which the job was finished
  jobs/QUEUE/submitted   how many jobs were submitted
  jobs/QUEUE/sum         the result of all jobs
"""

import pathlib
import random
import sys

import kilokv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example import end_of, integer, main, wrong_command  # noqa: E402

USAGE = """\
jobs [--endpoint HOST:PORT] VERB ...
  submit QUEUE ID NUMBER           adds a job; each job needs an ID of its own
  take QUEUE LEASE_MS WAIT_MS      takes a job for LEASE_MS; waits up to WAIT_MS for one; prints ID, NUMBER and TOKEN
  finish QUEUE ID NUMBER TOKEN     says that the job is done: NUMBER is added to the sum
"""
LOOKED = 100  # leases that a worker looks at; more than there are workers


class Queue:
    def __init__(self, session, name):
        self._session = session
        self._work, self._lease, self._done = (f"jobs/{name}/{kind}/" for kind in ("work", "lease", "done"))
        self._submitted, self._sum = f"jobs/{name}/submitted", f"jobs/{name}/sum"

    def submit(self, job, number):
        self._session.execute(kilokv.Transaction()
                              .guard_absent(self._work + job)
                              .guard_absent(self._done + job)
                              .put(self._work + job, number)
                              .put(self._lease + job, 0)
                              .add(self._submitted, 1))  # wakes workers that wait
        return f"submitted {job}"  # by this run, or by an earlier one

    def take(self, lease_us, wait_us):
        until_us = None
        while True:
            now_us, submitted, ends = self._look()
            jobs = [job for job, end in ends.items() if end <= now_us]
            random.shuffle(jobs)  # so that few workers want the same job
            for job in jobs:
                taken = self._take_one(job, lease_us)
                if taken:
                    return taken
            if jobs:
                continue
            if until_us is None:
                until_us = now_us + wait_us
            if now_us >= until_us:
                return "nothing"
            self._wait(submitted, min(ends, key=ends.get, default=None), (until_us - now_us) / 1e6)

    def _look(self):
        """What a worker sees at one moment: the time, how many jobs were submitted, and the end of the lease of each
        job."""
        looking = kilokv.Transaction()
        submitted = looking.get(self._submitted)
        leases = looking.range_get(self._lease, end_of(self._lease), LOOKED)
        result = self._session.execute(looking)
        ends = {lease.key.decode().removeprefix(self._lease): lease.value for lease in result[leases]}
        return result.batch_time_us, result[submitted] or 0, ends

    def _take_one(self, job, lease_us):
        """The token is the version of the transaction that takes the job. As long as nobody else takes the job, the
        lease has this version. Returns None if another worker was faster."""
        taking = kilokv.Transaction()
        taking.guard_exists(self._work + job)
        taking.guard_time_after(key=self._lease + job)  # nobody has it now
        taking.put(self._lease + job, kilokv.BATCH_TIME).add(self._lease + job, lease_us)
        number = taking.get(self._work + job)
        result = self._session.execute(taking)
        if not result.committed:
            return None
        return f"took {job} {result[number]} {result.version} until {result.batch_time_us + lease_us}"

    def _wait(self, submitted, job, seconds):
        """Waits until a new job is submitted, or until the lease of this job ends or the job is done."""
        waiting = kilokv.Transaction(wait_timeout=seconds)
        if job is not None:
            waiting.guard_time_before(key=self._lease + job)  # false: it ends the wait
        waiting.guard(self._submitted, ">", submitted, on_false=kilokv.WAIT)
        self._session.execute(waiting)

    def finish(self, job, number, token):
        finishing = kilokv.Transaction()
        finishing.guard_version(self._lease + job, token)  # nobody has taken it since
        finishing.add(self._sum, number)  # the result, in the same transaction
        finishing.put(self._done + job, token)
        finishing.delete(self._lease + job).delete(self._work + job)
        before = finishing.otherwise.get(self._done + job)

        result = self._session.execute(finishing)
        if not result.committed and result.outcome != kilokv.Outcome.GUARD_FAILED:
            return result.outcome.name
        # If the guard was false, an earlier run has finished it, or another worker has the job, or had it.
        said = "finished" if result.committed or result[before] == token else "lost"
        return f"{said} {job} at {result.batch_time_us}"


def run(session, words):
    verb, arguments = words[0], words[2:]
    queue = Queue(session, words[1] if len(words) > 1 else "")
    if verb == "submit" and len(arguments) == 2:
        return queue.submit(arguments[0], integer(arguments[1]))
    if verb == "take" and len(arguments) == 2:
        return queue.take(integer(arguments[0], 1) * 1000, integer(arguments[1], 0) * 1000)
    if verb == "finish" and len(arguments) == 3:
        return queue.finish(arguments[0], integer(arguments[1]), integer(arguments[2], 1))
    raise wrong_command()


if __name__ == "__main__":
    sys.exit(main(USAGE, run))
