#!/usr/bin/env python3
"""What 100,000 parked transactions cost load that has nothing to do with them.

Two servers of one build: on one, --parked transactions wait for keys that nobody writes; on the other none. The load
tester runs `bank` against them in turn (A B A B ...), so that a machine that drifts drifts for both. Prints each pair
and the medians of the ratios: of throughput, and of the server's processor time for a transaction, which a busy machine
disturbs less. A benchmark, not a test: it judges nothing.
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


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server, arguments, seed):
    """Committed transactions/s, and the server's processor time for one in ns (loading and checking included)."""
    command = server.command("kilokv-bench", "run", "--workload", "bank", "--batch-size", arguments.batch_size,
                             "--connections", 2, "--in-flight", 4, "--duration", arguments.duration, "--warmup", "1s",
                             "--seed", seed, "--json", "-")
    before = processor_seconds(server.pid)
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    result = json.loads(run.stdout)
    return result["committed_per_s"], (processor_seconds(server.pid) - before) / result["committed"] * 1e9


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
                ratios, costs = [], []
                for pair in range(arguments.pairs):
                    order = [waiting, plain] if pair % 2 == 0 else [plain, waiting]
                    figures = {server: load(server, arguments, pair + 1) for server in order}
                    (rate, cost), (plain_rate, plain_cost) = figures[waiting], figures[plain]
                    ratios.append(rate / plain_rate)
                    costs.append(cost / plain_cost)
                    print(f"pair {pair + 1}: {rate:,.0f}/s and {cost:.0f} ns with {waiting.parked():,} parked, "
                          f"{plain_rate:,.0f}/s and {plain_cost:.0f} ns without: {ratios[-1]:.3f}, {costs[-1]:.3f}",
                          flush=True)
                for name, values in (("throughput", ratios), ("server processor time", costs)):
                    print(f"median ratio of {name} {statistics.median(values):.3f} "
                          f"(min {min(values):.3f}, max {max(values):.3f})")
            finally:
                for client in clients:
                    client.kill()
                    client.wait()


if __name__ == "__main__":
    main()
