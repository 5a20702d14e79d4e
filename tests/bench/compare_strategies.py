#!/usr/bin/env python3
"""Compares strategies of the engine with the first one that is named, on the CPU and without a server.

For each workload, number of keys and batch size, each pair runs all strategies in turn: forward, then backward. So a
machine that slows down for some seconds slows down all of them. The time of a strategy in a pair is the mean of its two
runs. The ratio of a pair is the time of the first strategy divided by the time of the other one: above 1, the other one
is faster. After each run kilokv-engine-bench checks the invariant of the workload, and a run that breaks it ends the
comparison.

Exit codes: 0 the comparison is complete; 1 a run failed; 2 wrong usage.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import sys

from bench import output_of, processor


def nanoseconds(options, workload, keys, batch, strategy, seed):
    """Of a transaction, in one run."""
    report = json.loads(output_of([
        options.bin_dir / "kilokv-engine-bench", "--strategy", strategy, "--workload", workload, "--keys", str(keys),
        "--batch", str(batch), "--batches", str(max(20, options.transactions // batch)), "--warmup", "20", "--seed",
        str(seed), "--json"
    ] + ([] if strategy == "serial" else ["--threads", str(options.threads)])))
    return report["workloads"][0]["nanoseconds_per_transaction"], report["machine"]["commit"]


def compare(options, workload, keys, batch):
    ratios = {strategy: [] for strategy in options.strategies[1:]}
    times = {strategy: [] for strategy in options.strategies}
    for pair in range(options.pairs):
        met = {strategy: [] for strategy in options.strategies}
        for strategy in options.strategies + options.strategies[::-1]:
            time, _ = nanoseconds(options, workload, keys, batch, strategy, options.seed + pair)
            met[strategy].append(time)
        for strategy, both in met.items():
            times[strategy].append(statistics.mean(both))
        for strategy, of_pairs in ratios.items():
            of_pairs.append(times[options.strategies[0]][-1] / times[strategy][-1])
    for strategy in options.strategies:
        told = f"{statistics.median(times[strategy]):7.1f} ns"
        if strategy in ratios:
            told += f"  ratio {statistics.median(ratios[strategy]):.3f}  pairs " + \
                    " ".join(f"{ratio:.3f}" for ratio in ratios[strategy])
        print(f"{workload:14} {keys or 'preset':>9} {batch:>6}  {strategy:10} {told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--strategies", nargs="+", default=["serial", "pipelined", "auto"])
    parser.add_argument("--workloads", nargs="+", default=["bank"])
    parser.add_argument("--keys", type=int, nargs="+", default=[100000, 2500000], help="0: the preset's number")
    parser.add_argument("--batches", type=int, nargs="+", default=[8192], help="transactions in a batch")
    parser.add_argument("--transactions", type=int, default=2000000, help="of a run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if len(options.strategies) < 2:
        parser.error("--strategies: name at least two")
    try:
        _, commit = nanoseconds(options, "bank", 1000, 100, options.strategies[0], 1)
        print(f"command: {shlex.join(pathlib.Path(sys.argv[0]).name if i == 0 else arg for i, arg in enumerate(sys.argv))}")
        print(f"machine: {processor()}; commit {commit}; seed {options.seed}; {options.pairs} pairs\n")
        print(f"{'workload':14} {'keys':>9} {'batch':>6}  strategy   median time of a transaction")
        for workload in options.workloads:
            for keys in options.keys:
                for batch in options.batches:
                    compare(options, workload, keys, batch)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
