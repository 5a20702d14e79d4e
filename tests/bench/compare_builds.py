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
hot            columns, of transfers that all touch one account
semantic       columns, in pairs: each withdrawal waits for its deposit
ycsb-a         columns, of reads and writes of rows of 100 bytes
scans          columns, of scans and a few new rows (ycsb-e)
shadow         columns, and the referee replays 1% of the batches
inserts        rows of new keys per second: `kilokv import` of a file, in batches of 1,000
churn          keys that come and go: `kilokv txn --batch`, in pairs. One waits until a key is there, and deletes it. The
               other one creates it. Transactions/s
mixed          the workload `mixed`, without a server: all rules of transactions, on 64 keys: transactions/s
guarded        columns, with TLS and logins in the new build, and with neither in the old one: what they cost. The old
               build is usually the same as the new one
columns-cpu    the same load as columns at a fixed rate: committed transactions for each second of the server's CPU time.
               The ratio says what a change costs where the machine is not full. rows-cpu, unary-cpu: likewise
recovery       starts per second: from the start of a server that was killed to its first answer. The old build has made
               the database, with --records accounts, and a log of about --log-seconds of columns

Each build serves its own load tester. Each slice has a new server, a new data folder, a seed of its own, and a second
of load before its measured time. The load tester checks the books after each slice, and a slice that it finds wrong
ends the comparison. --old-flags and --new-flags are for the servers. So two settings of one build can be compared, too.
Exit codes: 0 the comparison is complete; 1 a run failed, or a median is below --least; 2 wrong usage.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import random
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

COLUMNS = ["--encoding", "columns", "--batch-size", "1024", "--connections", "2", "--in-flight", "4"]
SERVICE = {
    "columns": COLUMNS,
    "rows": ["--encoding", "rows", "--batch-size", "1024", "--connections", "2", "--in-flight", "4"],
    "unary": ["--unary", "--connections", "2", "--in-flight", "32"],
}
WORKLOADS = {"hot": "hot", "semantic": "bank-semantic", "ycsb-a": "ycsb-a", "scans": "ycsb-e"}  # others: bank
SERVICE |= {measure: COLUMNS for measure in (*WORKLOADS, "shadow", "guarded")}
SERVER_FLAGS = {"shadow": ["--shadow-rate", "0.01"]}
INSERTED = 100000  # rows for each second of a slice
CHURNED = 20000  # transactions of a batch
# Transactions per second at which the CPU time is taken: about half of what two cores reach.
FIXED_RATES = {"columns-cpu": 300000, "rows-cpu": 100000, "unary-cpu": 4000}
USUAL = ["engine-serial", "columns", "rows", "unary"]
ENGINE = {"engine-serial": ["--strategy", "serial", "--workload", "bank"], "mixed": ["--workload", "mixed"]}
MEASURES = [*USUAL, *WORKLOADS, "shadow", "inserts", "churn", "mixed", "guarded", *FIXED_RATES, "recovery"]


def engine_alone(programs, options, seed, measure):
    report = json.loads(output_of([programs / "kilokv-engine-bench", *ENGINE[measure], "--duration",
                                   f"{options.seconds / options.slices:g}s", "--seed", seed, "--json"]))
    (run,) = report["workloads"]
    return run["transactions_per_second"]


def server_of(build, options, folder, *flags, kind=Server):
    return kind(folder, *flags, *getattr(options, f"{build}_flags").split(), programs=getattr(options, build))


def service(build, options, seed, measure):
    kind = GuardedServer if measure == "guarded" and build == "new" else Server
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        with server_of(build, options, folder, *SERVER_FLAGS.get(measure, []), kind=kind) as server:
            report = json.loads(output_of(server.command(
                "kilokv-bench", "run", "--workload", WORKLOADS.get(measure, "bank"), *SERVICE[measure], "--warmup",
                "1s", "--duration", f"{options.seconds / options.slices:g}s", "--seed", seed, "--json", "-")))
    if report["verified"]["holds"] is not True:
        raise RuntimeError(f"{build}, {measure}: the books are wrong: {report['verified']}")
    return report["committed_per_s"]


def rows_of_new_keys(options):
    """A file for `kilokv import`; made once."""
    file = pathlib.Path(options.made.name) / "new.csv"
    if not file.exists():
        numbers = random.Random(options.seed).sample(range(10**9), INSERTED * options.seconds // options.slices)
        file.write_text("key,value\n" + "".join(f"import/{number:09},1\n" for number in numbers), encoding="ascii")
    return file


def inserts(build, options):
    file = rows_of_new_keys(options)
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        with server_of(build, options, folder) as server:
            report = json.loads(output_of(server.command("kilokv", "--output", "json", "import", file, "--quiet",
                                                         "--in-flight", "8")))
    if report["written"] != INSERTED * options.seconds // options.slices:
        raise RuntimeError(f"{build}: the import wrote {report['written']} rows")
    return report["written"] / report["seconds"]


def pairs_that_wait(options):
    """A file for `kilokv txn`; made once."""
    file = pathlib.Path(options.made.name) / "churn.jsonl"
    if not file.exists():
        names = [f"job/{number:09}" for number in random.Random(options.seed).sample(range(10**9), CHURNED // 2)]
        takes = [{"wait_timeout_ms": 60000, "guards": [{"key": name, "is": "exists", "when_false": "wait"}],
                  "then": [{"op": "delete", "key": name}]} for name in names]
        makes = [{"guards": [{"key": name, "is": "absent"}], "then": [{"op": "put", "key": name, "value": 1}]}
                 for name in reversed(names)]
        file.write_text("".join(json.dumps(each) + "\n" for each in takes + makes), encoding="ascii")
    return file


def churn(build, options):
    file, ended, runs = pairs_that_wait(options), 0.0, 0
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        with server_of(build, options, folder) as server:
            began = time.monotonic()
            while ended < options.seconds / options.slices:
                said = output_of(server.command("kilokv", "txn", "--batch", file))
                ended, runs = time.monotonic() - began, runs + 1
                if said.count('"COMMITTED"') != CHURNED:
                    raise RuntimeError(f"{build}: not all transactions have committed: {said[:500]}")
    return runs * CHURNED / ended


def cpu_seconds(pid):
    """Of user and system, of all threads."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    user, system = text.rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def per_cpu_second(build, options, seed, measure):
    with tempfile.TemporaryDirectory(prefix="kilokv-compare-", dir=options.folder) as folder:
        with server_of(build, options, folder) as server:
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
    if measure in ENGINE:
        return engine_alone(programs, options, seed, measure)
    if measure == "inserts":
        return inserts(build, options)
    if measure == "churn":
        return churn(build, options)
    if measure == "recovery":
        return recovery(programs, options)
    if measure in FIXED_RATES:
        return per_cpu_second(build, options, seed, measure)
    return service(build, options, seed, measure)


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
    parser.add_argument("--old-flags", default="", help="of the old server, such as --old-flags='--strategy serial'")
    parser.add_argument("--new-flags", default="", help="of the new server")
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
    if options.old_flags or options.new_flags:
        if without := sorted(set(measures) & {*ENGINE, "recovery"}):
            parser.error(f"--old-flags and --new-flags are for servers under load, and not for {', '.join(without)}")
        print(f"old server: {options.old_flags or 'no flags'}; new server: {options.new_flags or 'no flags'}")
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
