#!/usr/bin/env python3
"""Overload: three times the load with which the server does the most.

The load tester has one core, and the server the other, or a share of it (--server-share, which needs root). With short
batches the load tester needs as much of a processor as the server, so it cannot offer three times what a server takes that
has a whole core. First the rate rises, in an open loop, until the server falls behind. Then the load tester offers three times the
rate that gave the best goodput. The goodput at that rate itself, right before and right after, is the maximum.

Goodput is transactions per second that were executed and answered, in the window of the load: those that committed, and those
whose guard was false. The second kind gets more frequent while the accounts of the workload run dry.

What was offered. Each transaction that is due is sent at least once, or it is never sent because as many requests are in
flight as may be. A load tester that is too slow would have free requests instead, so the time in which all are in flight
shows that the server is the slow one. Some requests wait in the client, because a session that was refused has fewer of them
at the server, and some in HTTP/2. The server refuses others, and says when to try again.

Delays. The load tester counts refusals, as the server does, and compares each delay with the time that it really waited.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading

from light_client import CORES, MIB, check_memory, rss_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, leaves_out, temporary_folder  # noqa: E402

FIRST_RATE = {64: 100000 // SLOWER, 1024: 300000 // SLOWER}  # transactions per second
TRIES = 2  # rates beyond the best one
SAME_SHARE = 0.95  # of the best goodput counts as the best
# Transactions that the server takes into its queue; the load tester has more in flight. It has one address, and of an
# address no more than 16,384 transactions are decoded ahead. A longer queue would hold all of them, and refuse none. With
# little memory, streams may not send so many short batches ahead, so the short form has a short queue for them.
QUEUE, SHORT_QUEUE = 16384, 2048
IN_FLIGHT = {64: 2048, 1024: 128}
LEAST_DELAY = 0.01  # seconds that a full queue asks for
FULL_SHARE = 0.5  # of the time, all requests are in flight


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


def goodput_of(report):
    return sum(report[outcome] for outcome in ("committed", "guard_failed")) / report["measured_seconds"]


def rate_of_maximum(server, batch, seconds, step, share):
    """The rate that gives the best goodput, of rising rates. At much higher rates the goodput is the same but for noise, so
    that is the least rate that gave nearly as much."""
    goodputs, behind, rate = {}, 0, FIRST_RATE[batch] * share
    while behind < TRIES:
        report, _ = load(server, batch, rate, seconds, IN_FLIGHT[batch])
        goodput = goodput_of(report)
        print(f"batches of {batch}: {rate:,.0f}/s offered, {goodput:,.0f}/s answered", flush=True)
        behind = behind + 1 if goodput <= max(goodputs.values(), default=0) else 0
        goodputs[rate] = goodput
        rate *= step
    best = max(goodputs.values())
    return min(rate for rate, goodput in goodputs.items() if goodput >= SAME_SHARE * best)


def check_offered(report, batch, rate, seconds, refusals, strict):
    """The load tester offered the rate, and the server could not take it. `strict`: it had a core of its own."""
    due, sent, not_sent = report["due"], report["sent"], report["not_sent"]
    sendings = (report["whole_run"]["requests"] + report["requests_sent_again"]) * batch
    print(f"batches of {batch}: {rate:,.0f}/s offered for {seconds} s: {due:,} transactions due, {sent:,} of them sent at "
          f"least once, {not_sent:,} never; {sendings:,} sent in all ({sendings / seconds / rate:.2f} of the rate), "
          f"{refusals * batch:,} of them refused by the server, {report['answered']:,} answered; all requests were in flight "
          f"for {report['in_flight_full_share']:.3f} of the time", flush=True)
    assert abs(due - rate * seconds) <= 0.01 * rate * seconds, "not that much was due"
    assert due == sent + not_sent, "some transactions were neither sent nor counted as never sent"
    assert sent == report["answered"] == report["whole_run"]["requests"] * batch, "what was sent was not answered"
    if leaves_out("that the load tester is faster than the server, and fills its queue"):
        return
    if strict:
        assert report["in_flight_full_share"] >= FULL_SHARE, "the load tester is too slow: not all requests were in flight"
    # A long queue is never full of short batches: HTTP/2 holds them back before.
    if not strict or batch > min(IN_FLIGHT):
        assert refusals > 0, "the server refused nothing"


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


def overload(batch, seconds, search_seconds, step, strict, in_flight, share):
    queue = QUEUE if strict or batch > min(IN_FLIGHT) else SHORT_QUEUE
    with temporary_folder() as folder, PinnedServer(folder, queue) as server:
        load(server, batch, FIRST_RATE[batch], 1, IN_FLIGHT[batch])  # loads the accounts
        with contextlib.ExitStack() as stack:
            if share < 1:
                stack.enter_context(processor_share(server.pid, share))
            rate = rate_of_maximum(server, batch, search_seconds, step, share)
            measure_overload(server, batch, rate, seconds, search_seconds, strict, in_flight)


def measure_overload(server, batch, best_rate, seconds, search_seconds, strict, in_flight):
    """The goodput at three times the rate, compared with that at the rate itself right before and right after."""

    def best():
        return goodput_of(load(server, batch, best_rate, search_seconds, IN_FLIGHT[batch], "--no-load")[0])

    rate, best_before = 3 * best_rate, best()
    before = status(server)["refused"]
    report, memory = load(server, batch, rate, seconds, in_flight or IN_FLIGHT[batch], "--no-load")
    refusals = status(server)["refused"] - before
    report["answered"] = sum(report["whole_run"][outcome] for outcome in ("committed", "guard_failed"))
    check_offered(report, batch, rate, seconds, refusals, strict)
    check_delays(report, batch, refusals, seconds)
    goodput, best_after = goodput_of(report), best()
    share = goodput / ((best_before + best_after) / 2)
    second, third = memory.highest(1 / 3, 2 / 3), memory.highest(2 / 3, 1)
    print(f"batches of {batch}: {goodput:,.0f}/s answered, {share:.3f} of the maximum, which was {best_before:,.0f}/s before and "
          f"{best_after:,.0f}/s after; memory at most {second >> 20} MiB in the second third, {third >> 20} MiB in the last",
          flush=True)
    assert share >= (0.9 if strict else 0.3), f"goodput is {share:.3f} of the maximum"
    check_memory(third <= 1.1 * second + 16 * MIB, f"from {second >> 20} to {third >> 20} MiB")


@contextlib.contextmanager
def processor_share(pid, share):
    """Within this, all threads of the process together have that share of one core, in periods of 10 ms."""
    mounts = [line.split()[1:4] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    first = [path for path, kind, flags in mounts if kind == "cgroup" and "cpu" in flags.split(",")]
    second = [path for path, kind, _ in mounts if kind == "cgroup2"]
    group = pathlib.Path((first or second)[0]) / f"kilokv-overload-{pid}"
    group.mkdir()
    try:
        quota_us, period_us = int(10000 * share), 10000
        if first:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


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
    parser.add_argument("--server-share", type=float, default=1, help="of its core, for the server; less needs root")
    parser.add_argument("--strict", action="store_true", help="ask for 0.9 of the maximum; needs two idle cores")
    options = parser.parse_args()
    os.environ.pop("KILOKV_CLIENT_TOKEN", None)
    for batch in FIRST_RATE if options.batch is None else (options.batch,):
        overload(batch, options.seconds, options.search_seconds, options.step, options.strict, options.in_flight,
                 options.server_share)


if __name__ == "__main__":
    main()
