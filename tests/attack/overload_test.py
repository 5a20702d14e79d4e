#!/usr/bin/env python3
"""Overload: three times the load with which the server does the most.

The load tester has one core, and the server the other. First the rate rises, in an open loop, until the server falls
behind. The best goodput on the way is the maximum. Then the load tester offers three times the rate that gave the maximum.
It has more requests in flight than the queue of the server takes, so the server refuses some. A refusal says when to try
again, and the load tester does so then.

Goodput is committed transactions per second, measured in the window of the load. What was offered is what was sent, sent
again, and due but not sent, as the load tester counts it.
"""

import argparse
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
QUEUE = 32768  # transactions that the server takes into its queue; the load tester has more in flight
IN_FLIGHT = {64: 2048, 1024: 128}


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


def load(server, batch, rate, seconds):
    """Offers the rate, and returns the report of the load tester with the memory of the server."""
    command = server.command("kilokv-bench", "run", "--batch-size", str(batch), "--rate", str(rate), "--connections", "4",
                             "--in-flight", str(IN_FLIGHT[batch] // 4), "--warmup", "0s", "--duration", f"{seconds}s",
                             "--json", "-")
    with Memory(server.pid) as memory:
        run = subprocess.run(["taskset", "-c", str(CORES[-1]), *command], capture_output=True, text=True, check=False,
                             timeout=(seconds + 240) * SLOWER)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    report = json.loads(run.stdout)
    assert report["verified"]["holds"] is True and report["errors"] == report["unknown"] == 0, run.stdout[-2000:]
    return report, memory


def refused(server):
    return json.loads(server.client("--output", "json", "status"))["refused"]


def maximum(server, batch, seconds, step):
    """The best goodput at a rising rate, and the rate that gave it."""
    best, at_rate, behind, rate = 0, 0, 0, FIRST_RATE[batch]
    while behind < TRIES:
        report, _ = load(server, batch, rate, seconds)
        goodput = report["committed_per_s"]
        print(f"batches of {batch}: {rate:,.0f}/s offered, {goodput:,.0f}/s committed", flush=True)
        if goodput > best:
            best, at_rate, behind = goodput, rate, 0
        else:
            behind += 1
        rate *= step
    return best, at_rate


def overload(batch, seconds, search_seconds, step, share):
    with temporary_folder() as folder, PinnedServer(folder) as server:
        load(server, batch, FIRST_RATE[batch], 1)  # loads the accounts
        best, at_rate = maximum(server, batch, search_seconds, step)
        before = refused(server)
        rate = 3 * at_rate
        report, memory = load(server, batch, rate, seconds)
        goodput = report["committed_per_s"]
        whole = report["whole_run"]
        transactions = sum(whole[outcome] for outcome in ("committed", "guard_failed"))
        offered = transactions + report["not_sent"]
        refusals = refused(server) - before
        second, third = memory.highest(1 / 3, 2 / 3), memory.highest(2 / 3, 1)
        print(f"batches of {batch}: {rate:,.0f}/s offered for {seconds} s ({offered:,} due, {report['not_sent']:,} of them "
              f"never sent), {goodput:,.0f}/s committed, {goodput / best:.3f} of the maximum of {best:,.0f}/s; {refusals:,} "
              f"requests refused, {report['requests_sent_again']:,} sent again; memory at most {second >> 20} MiB in the "
              f"second third, {third >> 20} MiB in the last", flush=True)
        assert offered >= 0.95 * rate * seconds, "the load tester did not offer that much"
        if not leaves_out("that requests are refused: the load tester is too slow to fill the queue"):
            assert refusals > 0 and report["requests_sent_again"] >= refusals, "nothing was refused and sent again"
        # A request that is refused waits for a hundredth of a second or longer.
        assert refusals <= IN_FLIGHT[batch] * seconds * 100, "the load tester does not honour the delays"
        assert goodput >= share * best, f"goodput is {goodput / best:.3f} of the maximum"
        check_memory(third <= 1.1 * second + 16 * MIB, f"from {second >> 20} to {third >> 20} MiB")


class PinnedServer(Server):
    """Its threads have the first core."""

    def __init__(self, folder, *flags):
        super().__init__(folder, "--queue-transactions-max", str(QUEUE), *flags, tracer=("taskset", "-c", str(CORES[0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="of the overload")
    parser.add_argument("--search-seconds", type=int, default=1, help="of each rate on the way to the maximum")
    parser.add_argument("--step", type=float, default=1.6, help="factor between two rates on the way")
    parser.add_argument("--batch", type=int, choices=FIRST_RATE, help="only batches of this size")
    parser.add_argument("--strict", action="store_true", help="ask for 0.9 of the maximum; needs two idle cores")
    options = parser.parse_args()
    os.environ.pop("KILOKV_CLIENT_TOKEN", None)
    for batch in FIRST_RATE if options.batch is None else (options.batch,):
        overload(batch, options.seconds, options.search_seconds, options.step,
                 0.9 if options.strict else 0.3)


if __name__ == "__main__":
    main()
