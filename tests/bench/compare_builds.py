#!/usr/bin/env python3
"""Compares the speed of two builds: has a change made anything slower?

It runs each measure with the old and the new build in turn. A pair gives each build --seconds of measured time, in
--slices parts that alternate: old, new, new, old, ... So a machine that slows down for some seconds slows down both.
Every other pair begins with the new build, so that neither build always has the warmer machine. The ratio of a pair is
new / old. The script prints every ratio, their median, and an interval that has the true median with at least 95%: the
pairs are independent, so it lies between two of the sorted ratios whatever their distribution is (order statistics).

measure        what runs, and what is counted
engine-serial  the strategy `serial` on the workload `bank`, without a server: transactions/s
columns        a server and the load tester on one machine, columnar batches of 1,024: committed transactions/s
rows           the same with one message for each transaction
unary          the same with 64 single calls in flight, without a session
guarded        columns, with TLS and logins in the new build, and with neither in the old one: what they cost. The old
               build is usually the same as the new one
columns-cpu    the same load as columns at a fixed rate: committed transactions for each second of the server's CPU time.
               The ratio says what a change costs where the machine is not full. rows-cpu, unary-cpu: likewise
recovery       starts per second: from the start of a server that was killed to its first answer. The old build has made
               the database, with --records accounts, and a log of about --log-seconds of columns

Each build serves its own load tester. Each slice has a new server, a new data folder, a seed of its own, and a second
of load before its measured time. The load tester checks the books after each slice, and a slice that it finds wrong
ends the comparison. Exit codes: 0 the comparison is complete; 1 a run failed, or a median is below --least; 2 wrong
usage.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / "crash"), str(TESTS / "attack")]
from bench import output_of, processor  # noqa: E402
from guarded_server import GuardedServer  # noqa: E402
from programs import Server  # noqa: E402

SERVICE = {
    "columns": ["--encoding", "columns", "--batch-size", "1024", "--connections", "2", "--in-flight", "4"],
    "rows": ["--encoding", "rows", "--batch-size", "1024", "--connections", "2", "--in-flight", "4"],
    "unary": ["--unary", "--connections", "2", "--in-flight", "32"],
}
SERVICE["guarded"] = SERVICE["columns"]
# Transactions per second at which the CPU time is taken: about half of what two cores reach.
FIXED_RATES = {"columns-cpu": 300000, "rows-cpu": 100000, "unary-cpu": 4000}
USUAL = ["engine-serial", "columns", "rows", "unary"]
MEASURES = [*USUAL, "guarded", *FIXED_RATES, "recovery"]


def engine_serial(programs, options, seed):
    report = json.loads(output_of([programs / "kilokv-engine-bench", "--strategy", "serial", "--workload", "bank",
                                   "--duration", f"{options.seconds / options.slices:g}s", "--seed", seed, "--json"]))
    (run,) = report["workloads"]
    return run["transactions_per_second"]


def service(programs, options, seed, measure, is_new):
    kind = GuardedServer if measure == "guarded" and is_new else Server
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        with kind(folder, programs=programs) as server:
            report = json.loads(output_of(server.command(
                "kilokv-bench", "run", "--workload", "bank", *SERVICE[measure], "--warmup", "1s",
                "--duration", f"{options.seconds / options.slices:g}s", "--seed", seed, "--json", "-")))
    if report["verified"]["holds"] is not True:
        raise RuntimeError(f"{programs}, {measure}: the books are wrong: {report['verified']}")
    return report["committed_per_s"]


def cpu_seconds(pid):
    """Of user and system, of all threads."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    user, system = text.rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def per_cpu_second(programs, options, seed, measure):
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        with Server(folder, programs=programs) as server:
            before = cpu_seconds(server.pid)
            report = json.loads(output_of(server.command(
                "kilokv-bench", "run", "--workload", "bank", *SERVICE[measure.removesuffix("-cpu")], "--warmup", "0s",
                "--rate", FIXED_RATES[measure], "--duration", f"{options.seconds / options.slices:g}s", "--seed", seed,
                "--json", "-")))
            used = cpu_seconds(server.pid) - before
    return report["committed"] / used


def make_database(options):
    """The folder of a database that was killed; made once."""
    folder = pathlib.Path(options.made.name)
    if not (folder / "data").exists():
        with Server(folder, programs=options.old) as server:
            output_of(server.command("kilokv-bench", "run", "--workload", "bank", "--keys", options.records,
                                     *SERVICE["columns"], "--warmup", "0s", "--duration", f"{options.log_seconds}s",
                                     "--json", "-"))
    return folder / "data"


def recovery(programs, options):
    made = make_database(options)
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        shutil.copytree(made, pathlib.Path(folder) / "data")
        os.sync()
        server = Server(folder, programs=programs)
        began = time.monotonic()
        with server:
            return 1 / (time.monotonic() - began)


def rate(build, measure, options, seed):
    programs = getattr(options, build)
    if measure == "engine-serial":
        return engine_serial(programs, options, seed)
    if measure == "recovery":
        return recovery(programs, options)
    if measure in FIXED_RATES:
        return per_cpu_second(programs, options, seed, measure)
    return service(programs, options, seed, measure, build == "new")


def compare(measure, options):
    """The ratios new / old, pair by pair."""
    ratios = []
    digits = 3 if measure == "recovery" else 0
    for pair in range(options.pairs):
        order = ("old", "new") if pair % 2 == 0 else ("new", "old")
        rates = {"old": 0.0, "new": 0.0}
        for piece in range(options.slices):
            for build in order if piece % 2 == 0 else reversed(order):
                seed = options.seed + pair * options.slices + piece
                rates[build] += rate(build, measure, options, seed) / options.slices
        ratios.append(rates["new"] / rates["old"])
        print(f"{measure:14} pair {pair + 1:2}, {order[0]} first: old {rates['old']:13,.{digits}f}/s, "
              f"new {rates['new']:13,.{digits}f}/s, ratio {ratios[-1]:.3f}", flush=True)
    return ratios


def interval_of_median(values):
    """The narrowest pair of sorted values, at equal distances from the ends, with the median in it with 95%. Fewer than six
    values have no such pair: then None."""
    values, outside, inner = sorted(values), 0.0, None
    for i in range(len(values) // 2):
        outside += 2 * math.comb(len(values), i) / 2 ** len(values)  # the median is below values[i] or above its mirror
        if outside > 0.05:
            break
        inner = values[i], values[-1 - i]
    return inner


def version(programs):
    return output_of([programs / "kilokvd", "--version"]).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path, help="folder with the programs of the old build")
    parser.add_argument("new", type=pathlib.Path, help="folder with the programs of the new build")
    parser.add_argument("--measures", default=",".join(USUAL),
                        help=f"comma-separated, of {', '.join(MEASURES)} (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=12, help="alternating pairs of each measure (default %(default)s)")
    parser.add_argument("--seconds", type=int, default=15,
                        help="measured time of each build in a pair (default %(default)s)")
    parser.add_argument("--slices", type=int, default=5, help="parts of a run, which alternate (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first slice's transactions (default %(default)s)")
    parser.add_argument("--records", type=int, default=10000000, help="accounts, for recovery (default %(default)s)")
    parser.add_argument("--log-seconds", type=int, default=10,
                        help="how long the load runs whose log is recovered (default %(default)s)")
    parser.add_argument("--folder", help="where the data folders are made (default: the temporary folder)")
    parser.add_argument("--least", type=float, default=0.98,
                        help="smallest median ratio that is not a failure (default %(default)s)")
    options = parser.parse_args()
    measures = options.measures.split(",")
    if unknown := sorted(set(measures) - set(MEASURES)):
        parser.error(f"--measures: {', '.join(unknown)}: each is one of {', '.join(MEASURES)}")
    if min(options.pairs, options.seconds, options.slices) < 1:
        parser.error("--pairs, --seconds and --slices take at least 1")

    options.made = tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder)
    print(f"old: {version(options.old)}\nnew: {version(options.new)}\nmachine: {processor()}, {platform.platform()}")
    print(f"{options.pairs} pairs, {options.seconds} s each in {options.slices} slices, seeds from {options.seed}",
          flush=True)
    medians, intervals = {}, {}
    try:
        for measure in measures:
            ratios = compare(measure, options)
            medians[measure], intervals[measure] = statistics.median(ratios), interval_of_median(ratios)
    except (RuntimeError, subprocess.TimeoutExpired, AssertionError) as error:
        print(f"compare_builds: {error}", file=sys.stderr)
        return 1
    slower = [measure for measure in measures if medians[measure] < options.least]
    for measure in measures:
        within = intervals[measure]
        print(f"{measure:14} median of {options.pairs} ratios {medians[measure]:.3f}"
              f"{f', 95% between {within[0]:.3f} and {within[1]:.3f}' if within else ''}"
              f"{f', less than {options.least}' if measure in slower else ''}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
