#!/usr/bin/env python3
"""Overload: three times the load with which the server does the most.

The load tester has one core, and the server the other. First the rate rises, in an open loop, until the server falls
behind. The best goodput on the way is the maximum. Then the load tester offers three times the rate that gave the maximum.
It has more requests in flight than the queue of the server takes, so the server refuses some. A refusal says when to try
again, and the load tester does so then.

Goodput is committed transactions per second, measured in the window of the load.

What was offered. Each transaction that is due is sent at least once, or it is never sent because as many requests are in
flight as may be. A load tester that is too slow would have free requests instead, so the time in which all are in flight
shows that the server is the slow one. That the server had more than it could take is what it says itself: in each second of
the load it refused requests, and its queue was full. What reached it, sent for the first time or again, must be at least the
rate.

Delays. The load tester counts refusals, as the server does, and compares each delay with the time that it really waited.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from light_client import CORES, MIB, check_memory, rss_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, leaves_out, temporary_folder  # noqa: E402

FIRST_RATE = {64: 100000 // SLOWER, 1024: 300000 // SLOWER}  # transactions per second
TRIES = 2  # rates beyond the best one
SAME_SHARE = 0.95  # of the best goodput counts as the best
# With little memory, streams may send less ahead, and short batches would never fill the queue of the strict form.
SHORT_QUEUE = 2048
QUEUE = 32768  # transactions that the server takes into its queue; the load tester has more in flight
IN_FLIGHT = {64: 2048, 1024: 128}
LEAST_DELAY = 0.01  # seconds that a full queue asks for
FULL_SHARE = 0.5  # of the time, all requests are in flight
RECEIVED_SHARE = 1  # of the rate: what is sent, for the first time or again


class Memory:
    """Samples the resident memory of a process while a load runs."""

    def __init__(self, pid):
        self.samples, self._pid = [], pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.wait(0.1):
            self.samples.append(rss_of(self._pid))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def highest(self, begin, end):
        """Between two fractions of the time."""
        count = len(self.samples)
        return max(self.samples[int(begin * count):int(end * count)])


class Looks:
    """Asks the server for its state once a second while a load runs."""

    def __init__(self, server):
        self.times, self.refused, self.queued = [], [], []
        self._server, self._end = server, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.wait(1):
            now = status(self._server)
            self.times.append(time.monotonic())
            self.refused.append(now["refused"])
            self.queued.append(now["queued_transactions"])

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def within(self, began, seconds):
        """The refusals between each two looks, and the lengths of the queue, in the first seconds of the load. The load
        tester may need one second before it begins."""
        first = sum(time_of_look <= began + 1.5 for time_of_look in self.times)
        count = sum(time_of_look <= began + seconds for time_of_look in self.times)
        refused, queued = self.refused[first:count], self.queued[first:count]
        return [later - earlier for earlier, later in zip(refused, refused[1:])], queued


def load(server, batch, rate, seconds, in_flight, *more):
    """Offers the rate, and returns the report of the load tester with the memory of the server."""
    command = server.command("kilokv-bench", "run", "--batch-size", str(batch), "--rate", str(rate), "--connections", "4",
                             "--in-flight", str(in_flight // 4), "--warmup", "0s", "--duration", f"{seconds}s",
                             *more, "--json", "-")
    with Memory(server.pid) as memory:
        run = subprocess.run(["taskset", "-c", str(CORES[-1]), *command], capture_output=True, text=True, check=False,
                             timeout=(seconds + 240) * SLOWER)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    report = json.loads(run.stdout)
    assert report["verified"]["holds"] is True and report["errors"] == report["unknown"] == 0, run.stdout[-2000:]
    return report, memory


def status(server):
    command = server.command("kilokv", "--output", "json", "status")
    run = subprocess.run(["taskset", "-c", str(CORES[-1]), *command], capture_output=True, text=True, check=True,
                         timeout=60 * SLOWER)
    return json.loads(run.stdout)


def maximum(server, batch, seconds, step):
    """The best goodput at a rising rate, and the rate that gave it. At much higher rates the goodput is the same but for
    noise, so that is the least rate that gave nearly as much."""
    goodputs, behind, rate = {}, 0, FIRST_RATE[batch]
    while behind < TRIES:
        report, _ = load(server, batch, rate, seconds, IN_FLIGHT[batch])
        goodput = report["committed_per_s"]
        print(f"batches of {batch}: {rate:,.0f}/s offered, {goodput:,.0f}/s committed", flush=True)
        behind = behind + 1 if goodput <= max(goodputs.values(), default=0) else 0
        goodputs[rate] = goodput
        rate *= step
    best = max(goodputs.values())
    return best, min(rate for rate, goodput in goodputs.items() if goodput >= SAME_SHARE * best)


def check_offered(report, batch, rate, seconds, refusals, looks, strict):
    """The load tester offered the rate, and the server could not take it. `strict`: it had a core of its own."""
    due, sent, not_sent = report["due"], report["sent"], report["not_sent"]
    sendings = (report["whole_run"]["requests"] + report["requests_sent_again"]) * batch
    refusals_per_look, queued = looks
    print(f"batches of {batch}: {rate:,.0f}/s offered for {seconds} s: {due:,} transactions due, {sent:,} of them sent at "
          f"least once, {not_sent:,} never; {sendings:,} sent in all ({sendings / seconds / rate:.2f} of the rate), "
          f"{refusals * batch:,} of them refused by the server, {report['answered']:,} answered; all requests were in flight "
          f"for {report['in_flight_full_share']:.3f} of the time; in each second the server refused "
          f"{min(refusals_per_look, default=0):,} requests or more, and its queue had {min(queued, default=0):,} transactions "
          f"or more of {QUEUE:,}", flush=True)
    assert abs(due - rate * seconds) <= 0.01 * rate * seconds, "not that much was due"
    assert due == sent + not_sent, "some transactions were neither sent nor counted as never sent"
    assert sent == report["answered"] == report["whole_run"]["requests"] * batch, "what was sent was not answered"
    if leaves_out("that the load tester is faster than the server, and fills its queue"):
        return
    if not strict:
        assert refusals > 0, "the server refused nothing"
        return
    assert len(refusals_per_look) >= seconds // 2 - 1 and queued, "too few looks at the server"
    assert min(refusals_per_look) > 0, "the server had a second without a refusal"
    # One client may have half of the queue at most when others are there, and all of it alone.
    assert sorted(queued)[len(queued) // 10] >= QUEUE / 4, "the queue of the server was not full"
    assert report["in_flight_full_share"] >= FULL_SHARE, "the load tester is too slow: not all requests were in flight"
    assert sendings >= RECEIVED_SHARE * rate * seconds, "too little reached the server"


def check_delays(report, batch, refusals, seconds):
    """The refusals that the server counts came with a delay, and the load tester waited as long each time."""
    told = report["refusals"]
    print(f"batches of {batch}: {told['count']:,} refusals asked for {told['asked_seconds']:.1f} s of delay in all, and the "
          f"load tester waited for {told['waited_seconds']:.1f} s; {told['early']:,} times it was too early", flush=True)
    assert told["count"] == refusals, f"the server counts {refusals} refusals"
    assert report["requests_sent_again"] == refusals, "not every refused request was sent again, or others were, too"
    assert told["asked_seconds"] >= LEAST_DELAY * refusals * 0.999, "refusals without a delay"
    assert told["early"] == 0 and told["waited_seconds"] >= told["asked_seconds"], (
        "the load tester does not honour the delays")


def overload(batch, seconds, search_seconds, step, strict, in_flight):
    queue = QUEUE if strict or batch > min(IN_FLIGHT) else SHORT_QUEUE
    with temporary_folder() as folder, PinnedServer(folder, queue) as server:
        load(server, batch, FIRST_RATE[batch], 1, IN_FLIGHT[batch])  # loads the accounts
        best, at_rate = maximum(server, batch, search_seconds, step)
        before = status(server)["refused"]
        rate = 3 * at_rate
        with Looks(server) as looks:
            began = time.monotonic()
            report, memory = load(server, batch, rate, seconds, in_flight or IN_FLIGHT[batch], "--no-load")
        refusals = status(server)["refused"] - before
        report["answered"] = sum(report["whole_run"][outcome] for outcome in ("committed", "guard_failed"))
        check_offered(report, batch, rate, seconds, refusals, looks.within(began, seconds), strict)
        check_delays(report, batch, refusals, seconds)
        goodput = report["committed_per_s"]
        second, third = memory.highest(1 / 3, 2 / 3), memory.highest(2 / 3, 1)
        print(f"batches of {batch}: {goodput:,.0f}/s committed, {goodput / best:.3f} of the maximum of {best:,.0f}/s; memory "
              f"at most {second >> 20} MiB in the second third, {third >> 20} MiB in the last", flush=True)
        assert goodput >= (0.9 if strict else 0.3) * best, f"goodput is {goodput / best:.3f} of the maximum"
        check_memory(third <= 1.1 * second + 16 * MIB, f"from {second >> 20} to {third >> 20} MiB")


class PinnedServer(Server):
    """Its threads have the first core."""

    def __init__(self, folder, queue):
        super().__init__(folder, "--queue-transactions-max", str(queue), tracer=("taskset", "-c", str(CORES[0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="of the overload")
    parser.add_argument("--search-seconds", type=int, default=1, help="of each rate on the way to the maximum")
    parser.add_argument("--step", type=float, default=1.6, help="factor between two rates on the way")
    parser.add_argument("--batch", type=int, choices=FIRST_RATE, help="only batches of this size")
    parser.add_argument("--in-flight", type=int, help="requests in flight during the overload; few: the check fails")
    parser.add_argument("--strict", action="store_true", help="ask for 0.9 of the maximum; needs two idle cores")
    options = parser.parse_args()
    os.environ.pop("KILOKV_CLIENT_TOKEN", None)
    for batch in FIRST_RATE if options.batch is None else (options.batch,):
        overload(batch, options.seconds, options.search_seconds, options.step, options.strict, options.in_flight)


if __name__ == "__main__":
    main()
