#!/usr/bin/env python3
"""The load tester runs while the server is killed with SIGKILL and started again, many times.

At the end nothing is unknown, the judge accepts the history together with the final state, the bank's books add up, and
another crash changes nothing.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import time

from programs import BIN, JUDGE, Server, temporary_folder

ACCOUNTS = 1000  # of the load tester, with 10.00 each
LOAD_TESTER_TOTAL = "10,000.00"
BANK_TOTAL = "1000.00"


def kill_again_and_again(server, bench, kills, rng):
    """Kills at random moments, some of them while the server still starts."""
    for number in range(1, kills + 1):
        time.sleep(rng.uniform(0.05, 1.0))  # how long it lives is what is varied
        assert bench.poll() is None, f"the load tester ended before kill {number}"
        server.kill()
        impatient = rng.random() < 0.2
        server.start(wait=not impatient)
        if impatient:
            time.sleep(rng.uniform(0, 0.1))
            server.kill()
            server.start()
        print(f"\rkilled {number} of {kills}", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)


def run_load(server, folder, options, rng):
    """The load with the kills; returns the load tester's report."""
    report = folder / "report.json"
    bench = subprocess.Popen(server.command(
        "kilokv-bench", "run", "--workload", options.workload, "--keys", ACCOUNTS, "--batch-size", 16,
        "--connections", 2, "--in-flight", 4, "--rate", options.rate, "--seed", options.seed, "--warmup", "0s",
        "--duration", f"{8 + int(options.kills * options.seconds_per_kill)}s", "--give-up-after", "60s",
        "--wait=60s",  # the first kill may come before the first contact
        "--history", folder / "history.jsonl", "--json", report), stdin=subprocess.DEVNULL)
    try:
        kill_again_and_again(server, bench, options.kills, rng)
        code = bench.wait(timeout=300)
    finally:
        if bench.poll() is None:
            bench.kill()
            bench.wait()
    assert code == 0, f"kilokv-bench: exit {code}"
    return json.loads(report.read_text())


def check_report(report, answers_min):
    answered = sum(report["whole_run"][outcome] for outcome in
                   ("committed", "guard_failed", "wait_expired", "overflow", "type_mismatch"))
    assert report["unknown"] == 0, f"{report['unknown']} transactions of unknown fate"
    assert report["errors"] == 0, f"{report['errors']} errors"
    assert answered >= answers_min, f"{answered} transactions answered, at least {answers_min} are wanted"
    print(f"answered {answered}, sent again {report['requests_sent_again']}, unknown 0")


def run(command):
    print("$", pathlib.Path(command[0]).name, *command[1:], flush=True)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def audit(bank):
    """The bank's own accounts, and those of the load tester."""
    done = subprocess.run([*bank, "audit", "--expect", BANK_TOTAL], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    print(done.stdout, end="", flush=True)
    assert done.returncode == 0, f"audit: exit {done.returncode}: {done.stderr}"
    assert f"of the load tester with {LOAD_TESTER_TOTAL}" in done.stdout, "the load tester's total is another"


def main():
    parser = argparse.ArgumentParser(description="Kills the server under load, and judges what clients were told.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--answers", type=int, default=10000, help="at least")
    parser.add_argument("--rate", type=int, default=2000, help="transactions per second")
    parser.add_argument("--seconds-per-kill", type=float, default=1.2, help="sets how long the load runs")
    parser.add_argument("--workload", default="bank")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    options = parser.parse_args()
    print(f"replay with --seed {options.seed} --kills {options.kills}")
    with temporary_folder() as name, Server(name, "--checkpoint-interval", "500ms") as server:
        folder = pathlib.Path(name)
        bank = [str(BIN / "kilokv-bank"), "--endpoint", server.endpoint]
        for account in ("alice", "bob"):
            run([*bank, "open", account, "--balance", "500.00"])
        run([*bank, "transfer", "alice", "bob", "123.45"])

        report = run_load(server, folder, options, random.Random(options.seed))
        check_report(report, options.answers)
        server.scan_to(folder / "final.jsonl")
        run([sys.executable, str(JUDGE), str(folder / "history.jsonl"), "--final-state", str(folder / "final.jsonl")])
        audit(bank)

        server.kill()
        server.start()
        server.scan_to(folder / "again.jsonl")
        same = (folder / "final.jsonl").read_bytes() == (folder / "again.jsonl").read_bytes()
        assert same, "the state after another crash is not the same"
        print(f"the same state after {server.starts} starts")


if __name__ == "__main__":
    main()
