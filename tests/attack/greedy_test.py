#!/usr/bin/env python3
"""Greedy clients: every request is valid, and there are too many of them, or they are too large.

    row 1    a client that asks for large answers and reads none of them
    row 2    one request of 1,000 transactions that read 100,000 keys each
    row 10   128 requests of 8,192 transactions in flight
    row 11   transactions that wait for a day, and sessions, until there is no room for more

A light client goes on meanwhile. The attacker has a core of its own where there are two. Server and light client share
the other one.
"""

import argparse
import json
import multiprocessing
import pathlib
import select
import sys
import time

import http2
from light_client import ATTACKER, MIB, LightClient, check_memory, p99, rss_of, take_core

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, temporary_folder, until  # noqa: E402

GET, PUT, ADD, RANGE_GET = 1, 2, 4, 5  # kinds of operations
EXISTS, WAIT = 1, 1


def key_range(first, last):
    return http2.bytes_field(1, first) + http2.bytes_field(2, last)


def range_get(first, last, limit):
    return http2.number_field(1, RANGE_GET) + http2.bytes_field(4, key_range(first, last)) + http2.number_field(5, limit)


def add_one(key):
    return (http2.number_field(1, ADD) + http2.bytes_field(2, key)
            + http2.bytes_field(3, http2.number_field(1, 2)))  # a sint64: 2 is 1


def transaction(*operations, guards=(), wait_us=0):
    return (b"".join(http2.bytes_field(1, guard) for guard in guards)
            + b"".join(http2.bytes_field(2, operation) for operation in operations)
            + (http2.number_field(5, wait_us) if wait_us else b""))


def batch_of(transactions):
    """An ExecuteBatchRequest."""
    return http2.bytes_field(2, b"".join(http2.bytes_field(1, one) for one in transactions))


def fill(server, prefix, count, value):
    """Writes `count` keys, by the client."""
    lines = [{"then": [{"op": "put", "key": f"{prefix}{number:06}", "value": value}]} for number in range(count)]
    for at in range(0, count, 10000):
        assert all(line["outcome"] == "COMMITTED" for line in server.transactions(*lines[at:at + 10000]))


class Attacker:
    """A process that attacks until stop() is called."""

    def __init__(self, what, endpoint, **arguments):
        self.stopping = multiprocessing.Event()
        self.ended = multiprocessing.Value("L", 0)
        self.process = multiprocessing.Process(target=self._run, args=(what, endpoint, arguments))
        self.process.start()

    def _run(self, what, endpoint, arguments):
        take_core("attacker")
        what(endpoint, self.stopping, self.ended, **arguments)

    def stop(self):
        self.stopping.set()
        self.process.join(60)
        assert self.process.exitcode == 0, f"the attacker ended with {self.process.exitcode}"
        return self.ended.value


def keep_in_flight(endpoint, stopping, ended, method, payload, connections, calls, authority=None):
    """Each connection has so many calls in flight, and sends the next when one ends. A lost connection comes back.
    `authority`: as for http2.connect()."""
    callers = []
    while not stopping.is_set():
        while len(callers) < connections:
            try:
                callers.append(http2.Caller(endpoint, ATTACKER, authority=authority))
            except OSError:
                break
        for caller in list(callers):
            try:
                while len(caller.open) < calls:
                    caller.call(method, payload)
                caller.write()
            except OSError:
                caller.close()
                callers.remove(caller)
        writers = [caller for caller in callers if caller.wants_to_write()]
        for caller in select.select(callers, writers, [], 0.05)[0]:
            try:
                before = len(caller.open)
                caller.read()
                ended.value += before - len(caller.open)
            except OSError:
                caller.close()
                callers.remove(caller)
    for caller in callers:
        caller.close()


def longest_batch(server, payload):
    """How long the largest transaction takes alone; its answer is read."""
    caller = http2.Caller(server.endpoint)
    times = []
    for _ in range(20):
        began = time.monotonic()
        caller.call("Execute", payload)
        while caller.open:
            select.select([caller], [caller] if caller.wants_to_write() else [], [], 1)
            caller.read()
        times.append(time.monotonic() - began)
    caller.close()
    return sorted(times)[len(times) // 2]


def compare(server, name, seconds, strict, attack, longest):
    """Runs the light client alone and during the attack; `longest`: seconds of the longest batch."""
    light = LightClient(server)
    light.run(0.5)
    alone = light.run(seconds * SLOWER)
    attacker = Attacker(keep_in_flight, server.endpoint, **attack)
    time.sleep(0.5)
    highest = 0

    def watch():
        nonlocal highest
        highest = max(highest, rss_of(server.pid))

    times = light.run(seconds * SLOWER, watch)
    ended = attacker.stop()
    light.close()
    limit = 3 * p99(alone) + min(longest, 0.05)
    print(f"{name}: {ended} calls of the attacker ended; light client {len(alone)} answers alone, {len(times)} during the "
          f"attack; p99 {p99(alone) * 1e3:.1f} ms alone, {p99(times) * 1e3:.1f} ms during the attack (longest "
          f"{max(times) * 1e3:.1f}; at most {limit * 1e3:.1f} are wanted); the longest batch takes {longest * 1e3:.1f} ms; "
          f"memory up to {highest >> 20} MiB", flush=True)
    assert len(times) > seconds * 2, "the light client hardly got answers"
    if strict:
        assert p99(times) <= limit, "the light client waits too long"
    return p99(times) <= limit


def attack_by_reads(seconds, strict):
    """Row 2: large reads, from 1 and from 64 connections; and a sender that cancels and leaves."""
    with temporary_folder() as folder, Server(folder) as server:
        fill(server, "k", 10000, 1)
        one = transaction(*[range_get(b"k", b"l", 10000) for _ in range(10)])
        longest = longest_batch(server, http2.bytes_field(2, one))
        payload = batch_of([one] * 1000)
        for connections in (1, 64):
            attack = {"method": "ExecuteBatch", "payload": payload, "connections": connections, "calls": 1}
            compare(server, f"row 2, {connections} connections", seconds, strict, attack, longest)
        # The sender leaves: its transactions that have not started are dropped.
        light = LightClient(server)
        light.add()
        caller = http2.Caller(server.endpoint, ATTACKER)
        stream = caller.call("ExecuteBatch", payload)
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.05)
            caller.read()
        caller.cancel(stream)
        caller.close()
        until(lambda: status(server)["queued_transactions"] == 0, "the end of the dropped transactions", 2)
        light.close()


def status(server):
    return json.loads(server.client("--output", "json", "status"))


def attack_by_numbers(seconds, strict):
    """Row 10: full batches, from 1 and from 64 connections."""
    with temporary_folder() as folder, Server(folder) as server:
        fill(server, "k", 10000, 1)
        one = transaction(*[range_get(b"k", b"l", 10000) for _ in range(10)])
        longest = longest_batch(server, http2.bytes_field(2, one))
        payload = batch_of([transaction(add_one(b"a%06d" % number)) for number in range(8192)])
        for connections in (1, 64):
            attack = {"method": "ExecuteBatch", "payload": payload, "connections": connections,
                      "calls": 128 // connections}
            compare(server, f"row 10, {connections} connections", seconds, strict, attack, longest)


def attack_by_unread_answers(memory):
    """Row 1: 1,000 Gets of 7 values of 512 KiB, by a client whose window is 0."""
    with temporary_folder() as folder, Server(folder, "--answers-bytes-max", "64MiB", "--answer-timeout", "3s") as server:
        fill(server, "v", 7, "x" * (512 << 10))
        payload = b"".join(http2.bytes_field(1, b"v%06d" % number) for number in range(7))
        light = LightClient(server)
        light.run(0.2)
        before = highest = rss_of(server.pid)
        caller = http2.Caller(server.endpoint, ATTACKER, window=0)
        for _ in range(1000):
            caller.call("Get", payload)
        end = time.monotonic() + 10 * SLOWER
        longest = 0
        while time.monotonic() < end and caller.open:
            select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.01)
            caller.read()
            longest = max(longest, light.add())
            highest = max(highest, rss_of(server.pid))
        light.close()
        print(f"row 1: memory {before >> 20} to {highest >> 20} MiB; {1000 - len(caller.open)} of 1,000 calls were ended, "
              f"{caller.received >> 20} MiB received; longest ADD of the light client {longest * 1e3:.1f} ms", flush=True)
        assert not caller.open, "the server keeps calls of a client that does not read"
        check_memory(highest - before <= memory, f"from {before >> 20} to {highest >> 20} MiB")
        # Other clients have room again.
        assert len(server.client("get", "v000001")) > 512 << 10
        caller.close()


def attack_by_waiting():
    """Row 11: a client parks as many transactions as it may for a day, opens as many sessions as it may, and leaves."""
    flags = ("--parked-max", "20000", "--sessions-max", "1000")
    with temporary_folder() as folder, Server(folder, *flags) as server:
        guard = http2.number_field(1, EXISTS) + http2.number_field(2, WAIT) + http2.bytes_field(3, b"never")
        waits = transaction(add_one(b"applied"), guards=(guard,), wait_us=86400 * 10**6)
        payload = batch_of([waits] * 1000)
        caller = http2.Caller(server.endpoint, ATTACKER)
        for _ in range(40):
            caller.call("ExecuteBatch", payload)
        for _ in range(2000):
            caller.call("OpenSession", http2.number_field(1, 3600 * 10**6))
        end = time.monotonic() + 20 * SLOWER
        while time.monotonic() < end and len(caller.open) > 40:
            select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.05)
            caller.read()
        until(lambda: status(server)["parked"] >= 10000, "the transactions of the attacker to be parked")
        now = status(server)
        # Another client still waits for a deposit, and opens a session (which `txn` does).
        process = server.start_transactions({"guards": [{"key": "balance", "is": "ge", "value": 5, "when_false": "wait"}],
                                             "wait_timeout_ms": 20000, "then": [{"op": "add", "key": "balance", "delta": -5}]})
        until(lambda: status(server)["parked"] > now["parked"], "the withdrawal to be parked")
        server.client("add", "balance", "5")
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and '"COMMITTED"' in output, output + errors
        print(f"row 11: {now['parked']} transactions of the attacker wait (of 20,000), {now['sessions']} sessions are open "
              f"(of 1,000); another client's WAIT was parked and committed", flush=True)
        assert now["parked"] < 20000 and now["sessions"] < 1000
        # The attacker leaves. Its transactions do not apply later.
        caller.close()
        until(lambda: status(server)["parked"] == 0, "the end of the waiting transactions", 10)
        server.client("put", "never", "1")
        assert server.value("applied") == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="of each run: alone, and under each attack")
    parser.add_argument("--memory", type=int, default=160, help="most MiB by which the server may grow in row 1")
    parser.add_argument("--strict", action="store_true", help="fail if the light client waits too long; needs two idle cores")
    parser.add_argument("--only", type=int, choices=(1, 2, 10, 11), help="the attack of one row")
    options = parser.parse_args()
    take_core("server")
    rows = {1: lambda: attack_by_unread_answers(options.memory * MIB),
            2: lambda: attack_by_reads(options.seconds, options.strict),
            10: lambda: attack_by_numbers(options.seconds, options.strict),
            11: attack_by_waiting}
    for row in rows if options.only is None else (options.only,):
        rows[row]()


if __name__ == "__main__":
    main()
