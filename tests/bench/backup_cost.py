#!/usr/bin/env python3
"""What a backup at its default rate costs the load, and how long it takes.

One server has --records accounts of the workload `bank`. The script measures
  1. a whole backup without load: its time, and that the restored state has the same hash;
  2. pairs of runs in a closed loop, one without a backup and one while a backup is made: the ratio of the throughputs;
  3. pairs of runs in an open loop at half the median throughput of part 2 without a backup: the longest time without
     any answer, and how much longer it is with a backup.
Before each of the two, one run is thrown away: the first runs after the load are faster than all later ones. Every other
pair begins at the other end. So a machine that drifts drifts for both. Each run is printed, then the medians.

The program `kilokv backup` runs on the same machine here, and verifies the backup at its end. With --no-verify it does
not, as if it ran on another machine.

Exit codes: 0 all medians are within their bounds; 1 one is not, or a run failed; 2 wrong usage.
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "crash"),
                str(pathlib.Path(__file__).resolve().parent.parent / "integration")]
from bench import processor  # noqa: E402
from backups import kilokv, last_json, status  # noqa: E402
from programs import BIN, Server, until  # noqa: E402


class Backups:
    """Makes backups while the block runs, one after the other."""

    number = 0

    def __init__(self, server, folder, options):
        self._server, self._folder = server, folder
        self._flags = ("--no-verify",) if options.no_verify else ()
        self._process = self._failure = None
        self._stopping = threading.Event()
        self._has_begun = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stopping.is_set() and self._failure is None:
            Backups.number += 1
            path = self._folder / f"{Backups.number}.backup"
            partial = pathlib.Path(f"{path}.partial")
            self._process = subprocess.Popen(self._server.command("kilokv", "backup", path, *self._flags),
                                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                until(lambda: partial.exists() and partial.stat().st_size > 0 or self._stopping.is_set(), "the first frame", 120)
                self._has_begun.set()
                _, said = self._process.communicate()
                if self._process.returncode != 0 and not self._stopping.is_set():
                    self._failure = RuntimeError(f"kilokv backup: exit {self._process.returncode}: {said[-500:]}")
            except (AssertionError, OSError) as error:
                self._failure = error
            for left in (path, partial):
                left.unlink(missing_ok=True)
        self._has_begun.set()

    def __enter__(self):
        self._thread.start()
        self._has_begun.wait()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._process.kill()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def run_bench(server, options, seed, *more):
    command = server.command("kilokv-bench", "run", "--workload", "bank", "--keys", options.records, "--batch-size",
                             options.batch_size, "--connections", 1, "--in-flight", options.in_flight, "--seed", seed, "--json", "-",
                             *more)
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=3600)
    if run.returncode != 0:
        raise RuntimeError(f"{command}: exit {run.returncode}: {run.stderr[-2000:]}")
    return json.loads(run.stdout)


def measure_pairs(server, folder, options, name, measure):
    """Returns the figures without and with a backup."""
    figures = {False: [], True: []}
    measure(-1)
    for pair in range(options.pairs):
        for with_backup in ((False, True) if pair % 2 == 0 else (True, False)):
            if with_backup:
                with Backups(server, folder, options):
                    figures[True].append(measure(pair))
            else:
                figures[False].append(measure(pair))
        without, with_one = figures[False][-1], figures[True][-1]
        print(f"{name} pair {pair + 1}: without a backup {without:,.1f}, with one {with_one:,.1f}", flush=True)
    return figures


def whole_backup(server, folder, options):
    """Seconds of a backup, and of its restore. The restored state must be equal."""
    backup, begin = folder / "whole.backup", time.monotonic()
    said = last_json(server.client("--output", "json", "backup", backup))
    seconds = time.monotonic() - begin
    now = status(server)
    if said["state_hash"] != now["state_hash"] or said["records"] < options.records:
        raise RuntimeError(f"the backup has {said}, the server {now}")
    begin = time.monotonic()
    found = last_json(kilokv("--output", "json", "restore", backup, folder / "restored")[0])
    if found["state_hash"] != said["state_hash"] or found["records"] != said["records"]:
        raise RuntimeError(f"the backup has {said}, the restored database {found}")
    size = backup.stat().st_size
    print(f"backup of {said['records']:,} records: {seconds:.1f} s, {size:,} bytes, {size / seconds / 2**20:.2f} MiB/s; "
          f"restore {time.monotonic() - begin:.1f} s; the state is equal", flush=True)
    backup.unlink()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10**7, help="accounts (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of each kind (default %(default)s)")
    parser.add_argument("--duration", default="20s", help="measured in each run (default %(default)s)")
    parser.add_argument("--batch-size", type=int, default=1024, help="(default %(default)s)")
    parser.add_argument("--in-flight", type=int, default=8, help="requests in flight (default %(default)s)")
    parser.add_argument("--no-verify", action="store_true", help="the backups of parts 2 and 3 are not verified")
    parser.add_argument("--most-seconds", type=float, default=180, help="bound of part 1 (default %(default)s)")
    parser.add_argument("--least", type=float, default=0.9, help="smallest median ratio of part 2 (default %(default)s)")
    parser.add_argument("--most-ms", type=float, default=50, help="bound of part 3 in ms (default %(default)s)")
    parser.add_argument("--rate", type=int, help="part 2 is left out, and part 3 has this rate (transactions/s)")
    parser.add_argument("--flags", default="", help="further flags of kilokvd, separated by blanks")
    parser.add_argument("--folder", help="where the data folder is made (default: the temporary folder)")
    options = parser.parse_args()
    version = subprocess.run([BIN / "kilokvd", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}; {processor()}, {platform.platform()}; {' '.join(sys.argv[1:]) or 'defaults'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kilokv-backup-", dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        with Server(folder, *options.flags.split()) as server:
            run_bench(server, options, 1, "--warmup", "0s", "--duration", "1ms")  # loads
            until(lambda: status(server)["checkpoint_batch"] > 0, "a checkpoint of the whole state", 600)
            seconds = whole_backup(server, folder, options)
            window = ("--no-load", "--warmup", "2s", "--duration", options.duration)
            closed = None
            if options.rate is None:
                closed = measure_pairs(server, folder, options, "closed loop, committed/s",
                                       lambda pair: run_bench(server, options, 11 + pair, *window)["committed_per_s"])
            rate = options.rate or statistics.median(closed[False]) / 2
            gaps = measure_pairs(server, folder, options, f"open loop at {rate:,.0f}/s, longest gap in ms",
                                 lambda pair: run_bench(server, options, 101 + pair, *window, "--rate",
                                                        round(rate))["longest_gap_us"] / 1000)
    ratio = statistics.median(b / a for a, b in zip(closed[False], closed[True])) if closed else None
    longer = statistics.median(gaps[True]) - statistics.median(gaps[False])
    said = f"median ratio of the throughputs {ratio:.3f}; " if closed else ""
    print(f"{said}median gap without a backup {statistics.median(gaps[False]):.1f} ms, "
          f"with one {statistics.median(gaps[True]):.1f} ms, {longer:.1f} ms longer; a whole backup took {seconds:.1f} s")
    return 0 if seconds <= options.most_seconds and (ratio is None or ratio >= options.least) and longer <= options.most_ms else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
        print(f"backup_cost: {error}", file=sys.stderr)
        sys.exit(1)
