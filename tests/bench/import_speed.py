#!/usr/bin/env python3
"""How fast `kilokv import` reads a CSV file, compared with the load tester's columnar PUTs of new 16-byte keys.

Each measurement has a server of its own on a new data folder, and writes --records new keys of 16 bytes with integers. The
load tester does so when it loads the accounts of `bank`: it sends columnar batches of up to 4,096 PUTs, each with a guard
that its key is absent, on one session. The import reads a file that was written before.

A pair measures the load tester and each kind of import in turn, and every other pair begins at the other end. So a machine
that drifts drifts for all. The script prints both figures and the ratio import / load tester of each pair, and the medians.

kind        how the file is imported
plain       with the defaults
position    with --position-key
keep        with --existing keep, so each record has a guard as those of the load tester have
jsonl       with the defaults, from JSON lines

Exit codes: 0 the medians of all kinds in --judged are at least --least; 1 one is below, or a run failed; 2 wrong usage.
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from bench import output_of, processor  # noqa: E402
from programs import BIN, Server  # noqa: E402

KINDS = {"plain": (), "position": ("--position-key", "import/position"), "keep": ("--existing", "keep"), "jsonl": ()}


def load_tester(server, options, _):
    report = json.loads(output_of(server.command("kilokv-bench", "run", "--workload", "bank", "--keys", options.records,
                                                 "--in-flight", options.in_flight, "--warmup", "0s", "--duration", "1ms",
                                                 "--json", "-")))
    load = report["load"]
    if load["written"] != options.records:
        raise RuntimeError(f"the load tester wrote {load['written']} records")
    return load["written"] / load["seconds"]


def imported(server, options, kind):
    file = options.files / ("pairs.jsonl" if kind == "jsonl" else "pairs.csv")
    report = json.loads(output_of(server.command("kilokv", "--output", "json", "--timeout", "60s", "import", file, "--quiet",
                                                 "--in-flight", options.in_flight, *KINDS[kind])))
    if report["written"] != options.records:
        raise RuntimeError(f"the import wrote {report['written']} records")
    return report["written"] / report["seconds"]


def measure(what, options):
    with tempfile.TemporaryDirectory(prefix="kilokv-import-", dir=options.folder) as folder:
        with Server(folder) as server:
            return (load_tester if what == "load tester" else imported)(server, options, what)


def write_files(folder, records):
    with open(folder / "pairs.csv", "w", encoding="ascii") as csv, open(folder / "pairs.jsonl", "w", encoding="ascii") as lines:
        csv.write("key,value\n")
        for i in range(records):
            key = f"import/{i:09}"
            csv.write(f"{key},{i}\n")
            lines.write(f'{{"key": "{key}", "value": {i}}}\n')
    assert len(key) == 16


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2000000, help="in each measurement (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=7, help="measurements of each (default %(default)s)")
    parser.add_argument("--in-flight", type=int, default=8, help="requests in flight, of both programs (default %(default)s)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated (default %(default)s)")
    parser.add_argument("--judged", default="plain,position", help="kinds that --least is for (default %(default)s)")
    parser.add_argument("--least", type=float, default=0.5, help="smallest median ratio (default %(default)s)")
    parser.add_argument("--folder", help="where the data folders are made (default: the temporary folder)")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if unknown := sorted((set(kinds) | set(options.judged.split(","))) - set(KINDS)):
        parser.error(f"{', '.join(unknown)}: each kind is one of {', '.join(KINDS)}")
    version = output_of([BIN / "kilokvd", "--version"]).strip()
    print(f"{version}; {processor()}, {platform.platform()}; {options.records:,} records a measurement, "
          f"{options.in_flight} requests in flight", flush=True)
    ratios = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="kilokv-import-files-", dir=options.folder) as files:
        options.files = pathlib.Path(files)
        write_files(options.files, options.records)
        for pair in range(options.pairs):
            order = ["load tester", *kinds]
            figures = {what: measure(what, options) for what in (order if pair % 2 == 0 else reversed(order))}
            for kind in kinds:
                ratios[kind].append(figures[kind] / figures["load tester"])
                print(f"pair {pair + 1}: load tester {figures['load tester']:11,.0f}/s, import {kind:9} "
                      f"{figures[kind]:11,.0f}/s, ratio {ratios[kind][-1]:.3f}", flush=True)
    for kind in kinds:
        print(f"{kind:9} median ratio {statistics.median(ratios[kind]):.3f} (min {min(ratios[kind]):.3f}, "
              f"max {max(ratios[kind]):.3f})")
    judged = [kind for kind in options.judged.split(",") if kind in ratios]
    return 1 if any(statistics.median(ratios[kind]) < options.least for kind in judged) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
        print(f"import_speed: {error}", file=sys.stderr)
        sys.exit(1)
