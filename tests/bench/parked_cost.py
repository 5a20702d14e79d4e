#!/usr/bin/env python3
"""What 100,000 parked transactions cost load that has nothing to do with them.

Two servers of one build: on one, --parked transactions wait for keys that nobody writes; on the other none. The load
tester runs `bank` against them in turn (A B A B ...), so that a machine that drifts drifts for both. Prints each pair
and the median of the ratios. A benchmark, not a test: it judges nothing.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import pathlib
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from programs import BIN, Server, until, wait_for  # noqa: E402


def park(server, count, request_size=50000):
    """Clients that wait; they end with the server."""
    clients = []
    for begin in range(0, count, request_size):
        keys = range(begin, min(begin + request_size, count))
        process = subprocess.Popen(server.command("kilokv", "--timeout", "3600s", "txn", "--batch"), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for key in keys:
            process.stdin.write(json.dumps({"guards": [wait_for(f"parked/{key:08}", 1)], "wait_timeout_ms": 3600000,
                                            "then": [{"op": "add", "key": f"parked/{key:08}", "delta": -1}]}) + "\n")
        process.stdin.close()
        clients.append(process)
    until(lambda: server.parked() == count, f"{count} are parked", 120)
    return clients


def load(server, arguments, seed):
    command = server.command("kilokv-bench", "run", "--workload", "bank", "--batch-size", arguments.batch_size,
                             "--connections", 2, "--in-flight", 4, "--duration", arguments.duration, "--warmup", "1s",
                             "--seed", seed, "--json", "-")
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(run.stdout)["committed_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parked", type=int, default=100000, help="transactions (default 100000)")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each (default 7)")
    parser.add_argument("--duration", default="3s", help="of each run (default 3s)")
    parser.add_argument("--batch-size", type=int, default=1024, help="transactions in a request (default 1024)")
    arguments = parser.parse_args()
    commit = subprocess.run([BIN / "kilokvd", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{commit}; {platform.machine()}, {os.cpu_count()} cores; bank, 100,000 accounts, batches of "
          f"{arguments.batch_size}, {arguments.duration} a run; books checked after every run")
    with tempfile.TemporaryDirectory(prefix="kilokv-bench-") as folder:
        for name in "ab":
            os.mkdir(os.path.join(folder, name))
        with Server(os.path.join(folder, "a")) as waiting, Server(os.path.join(folder, "b")) as plain:
            clients = park(waiting, arguments.parked)
            try:
                ratios = []
                for pair in range(arguments.pairs):
                    order = [waiting, plain] if pair % 2 == 0 else [plain, waiting]
                    rates = {server: load(server, arguments, pair + 1) for server in order}
                    ratios.append(rates[waiting] / rates[plain])
                    print(f"pair {pair + 1}: {rates[waiting]:,.0f}/s with {waiting.parked():,} parked, "
                          f"{rates[plain]:,.0f}/s without: {ratios[-1]:.3f}", flush=True)
                print(f"median ratio {statistics.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f})")
            finally:
                for client in clients:
                    client.kill()
                    client.wait()


if __name__ == "__main__":
    main()
