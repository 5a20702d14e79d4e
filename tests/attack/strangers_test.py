#!/usr/bin/env python3
"""Strangers: attacks by those who reach the port of a server with TLS and logins, and have no valid login.

    the attacks of the greedy clients (rows 1, 2, 10 and 11), and the floods of row 5: every call is refused, so nothing of
    them is queued, parked, opened or stored
    10,000 calls with wrong tokens: they cost the others less than 5% of their throughput
"""

import argparse
import json
import select
import statistics
import subprocess
import sys
import time

import flood_test
import http2
from greedy_test import (EXISTS, WAIT, Attacker, add_one, batch_of, compare, fill,
                         range_get, status, temporary_folder, transaction)
from guarded_server import GuardedServer
from light_client import ATTACKER, MIB, check_memory, rss_of, take_core
from programs import SLOWER

WRONG_CALLS = 10000


def attacks():
    """Name, method, message, connections and calls of each attack of a greedy client."""
    reads = transaction(*[range_get(b"k", b"l", 10000) for _ in range(10)])
    guard = http2.number_field(1, EXISTS) + http2.number_field(2, WAIT) + http2.bytes_field(3, b"never")
    waits = transaction(add_one(b"applied"), guards=(guard,), wait_us=86400 * 10**6)
    adds = batch_of([transaction(add_one(b"a%06d" % number)) for number in range(8192)])
    gets = b"".join(http2.bytes_field(1, b"v%06d" % number) for number in range(7))
    yield "row 1", "Get", gets, 1, 100
    for connections in (1, 64):
        yield "row 2", "ExecuteBatch", batch_of([reads] * 1000), connections, 1
        yield "row 10", "ExecuteBatch", adds, connections, 128 // connections
    yield "row 11", "ExecuteBatch", batch_of([waits] * 1000), 1, 40
    yield "row 11", "OpenSession", http2.number_field(1, 3600 * 10**6), 1, 100


def attack_without_a_login(seconds, strict):
    with temporary_folder() as folder, GuardedServer(folder) as server:
        fill(server, "k", 10000, 1)
        fill(server, "v", 7, "x" * (512 << 10))
        before, rss = status(server), rss_of(server.pid)
        for name, method, payload, connections, calls in attacks():
            refused = status(server)["logins_refused"]
            attack = {"method": method, "payload": payload, "connections": connections, "calls": calls,
                      "authority": server.authority}
            # They run no batch for which the light client could wait.
            compare(server, f"{name} by a stranger, {method}, {connections} connections", seconds, strict, attack, 0)
            now = status(server)
            assert now["logins_refused"] > refused, "no call was refused"
            for field in ("parked", "uploads", "queued_bytes"):
                assert now[field] == 0, f"{field} is {now[field]}"
            assert now["sessions"] <= before["sessions"], now["sessions"]
        assert server.value("applied") == 0 and server.value("a000001") == 0
        check_memory(rss_of(server.pid) - rss <= 300 * MIB, "the server's memory grew too much")
        line = next(line for line in server.log.read_text().splitlines() if "refused logins" in line)
        assert f"last_peer=ipv4:{ATTACKER}" in line and "needs a login" in line, line


def call_with_wrong_tokens(endpoint, stopping, ended, authority, calls, seconds):
    """So many calls with wrong tokens, evenly over so many seconds."""
    caller = http2.Caller(endpoint, ATTACKER, authority=authority)
    began = time.monotonic()
    sent = 0
    while ended.value < calls and not stopping.is_set():
        due = min(calls, int((time.monotonic() - began) / seconds * calls))
        while sent < due and len(caller.open) < 100:
            token = f"kilokv_{sent:016x}_{sent:064x}"
            caller.call("Get", http2.bytes_field(1, b"k"), ("authorization", f"Bearer {token}"))
            sent += 1
        select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.01)
        caller.read()
        ended.value = sent - len(caller.open)
    caller.close()


def goodput(server, seconds, wrong_calls):
    """Committed transfers per second of others, during so many calls with wrong tokens."""
    attacker = None
    if wrong_calls:
        attacker = Attacker(call_with_wrong_tokens, server.endpoint, authority=server.authority, calls=wrong_calls,
                            seconds=seconds)
    run = subprocess.run(server.command("kilokv-bench", "run", "--workload", "bank", "--batch-size", "64", "--duration",
                                        f"{seconds}s", "--warmup", "0s", "--json", "-"), capture_output=True, text=True,
                         check=False, timeout=(seconds + 120) * SLOWER, preexec_fn=lambda: take_core("attacker"))
    assert run.returncode == 0, run.stdout + run.stderr
    if attacker is not None:
        ended = attacker.stop()
        assert ended >= 0.9 * wrong_calls, f"only {ended} of {wrong_calls} calls were made"
    return json.loads(run.stdout)["committed_per_s"]


def attack_by_wrong_tokens(seconds, pairs, strict):
    with temporary_folder() as folder, GuardedServer(folder) as server:
        calls = int(min(WRONG_CALLS, 700 * seconds))
        ratios = []
        goodput(server, 1, 0)
        for pair in range(pairs):
            order = (calls, 0) if pair % 2 else (0, calls)
            rates = {wrong: goodput(server, seconds, wrong) for wrong in order}
            ratios.append(rates[calls] / rates[0])
        refused = status(server)["logins_refused"]
        print(f"wrong tokens: {calls} calls in {seconds} s, {refused} refused; throughput of the others during the attack "
              f"and alone, ratios: {' '.join(f'{ratio:.3f}' for ratio in ratios)}, median "
              f"{statistics.median(ratios):.3f}", flush=True)
        assert refused >= pairs * calls * 0.9
        lines = [line for line in server.log.read_text().splitlines() if "refused logins" in line]
        assert len(lines) <= (seconds + 2) * pairs, f"{len(lines)} lines of the log"
        if strict:
            assert statistics.median(ratios) > 0.95, "wrong tokens cost the others too much"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=2, help="of each run: alone, and under each attack")
    parser.add_argument("--pairs", type=int, default=1, help="runs with and without wrong tokens")
    parser.add_argument("--strict", action="store_true", help="fail if others wait too long; needs two idle cores")
    options = parser.parse_args()
    take_core("server")
    attack_without_a_login(options.seconds, options.strict)
    for kind in flood_test.FLOODS:
        flood_test.attack(kind, options.seconds, 600 * MIB, options.strict, GuardedServer)
    attack_by_wrong_tokens(options.seconds, options.pairs, options.strict)


if __name__ == "__main__":
    sys.exit(main())
