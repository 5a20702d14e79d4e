#!/usr/bin/env python3
"""Random transactions with every guard and operation, from several clients, while the server is killed with SIGKILL and
started again. Keys expire meanwhile, and a watch sees each write. The judge accepts all answers together with what expired
and with the final state, and the watch gave what the log holds. A full run is: random_test.py --kills 50"""

import argparse
import random
import sys
import time

from programs import JUDGE, Server, history, temporary_folder
from watched import all_expire, equal_to_the_log, judge, nothing_left_to_expire, watch

sys.path.insert(0, str(JUDGE.parent))
from simulator import random_transaction  # pylint: disable=wrong-import-position

KEYS = [f"k{i}" for i in range(12)]


def transactions(rng):
    """Those of one request. Their times are around now, and around the next kills."""
    count, made = rng.choice([1, rng.randrange(20, 100), rng.randrange(20, 100)]), []
    while len(made) < count:
        transaction = random_transaction(rng, KEYS, now_us=int(time.time() * 1e6) - 500000, ahead_us=3000000,
                                         life_us=800000, waits_ms=(0, 30, 200, 800))
        if transaction["guards"] or transaction["then"] or transaction["else"]:  # an empty one is refused
            made.append(transaction)
    return made


def load_over_kills(server, kills, clients, rng):
    """Each client has one request in flight, and the server dies at random moments. Returns all answers."""
    answered, running = [], []
    for number in range(1, kills + 1):
        end = time.monotonic() + rng.uniform(0.2, 1.0)
        while time.monotonic() < end:
            for process in list(running):
                if process.poll() is not None:
                    running.remove(process)
                    answered += history(process)
            while len(running) < clients:
                running.append(server.start_transactions(*transactions(rng), wait=True))
            time.sleep(0.005)
        server.kill()
        server.start()
        print(f"\rkilled {number} of {kills}", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    return answered + [line for process in running for line in history(process)]


def check_mix(answered, expired, kills):
    """The run meant something: each outcome was there, and so was each feature."""
    outcomes = {}
    for line in answered:
        outcomes[line["outcome"]] = outcomes.get(line["outcome"], 0) + 1
    unknown = [line for line in answered if line["outcome"] is None]
    assert not unknown, unknown[0]
    for outcome in ("COMMITTED", "GUARD_FAILED", "WAIT_EXPIRED", "OVERFLOW", "TYPE_MISMATCH"):
        assert outcomes.get(outcome, 0) >= kills // 4, outcomes
    ran_else = [line for line in answered if line["outcome"] == "WAIT_EXPIRED" and (line["version"] or line["reads"])]
    waited = [line for line in answered if line["outcome"] == "COMMITTED" and line["admitted_batch"] < line["batch"]]
    reverse = [line for line in answered if any(op.get("reverse") for op in line["then"]) and line["outcome"] == "COMMITTED"]
    print(f"{len(answered)} transactions over {kills} kills: {outcomes}; {len(waited)} waited, {len(ran_else)} ran else at "
          f"their deadline, {len(reverse)} read a range in reverse, {len(expired)} keys expired")
    for what, lines in (("else at a deadline", ran_else), ("waited", waited), ("reverse", reverse), ("expired", expired)):
        assert len(lines) >= kills // 8, f"{what}: {len(lines)} over {kills} kills"



def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server-flag", action="append", default=[], help="a flag of kilokvd, such as --strategy=ordered")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with temporary_folder() as name, Server(name, *options.server_flag) as server:
        with watch(server, "live", "--after", "0") as live:
            answered = load_over_kills(server, options.kills, options.clients, random.Random(options.seed))
            all_expire(server)
            logged = equal_to_the_log(server, *live)
            nothing_left_to_expire(logged)
        expired = [write for write in logged if write.get("expired")]
        judge(server, answered, expired, "random-history-refused.jsonl")
        check_mix(answered, expired, options.kills)


if __name__ == "__main__":
    main()
