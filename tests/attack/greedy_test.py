#!/usr/bin/env python3
"""Greedy clients: every request is valid, and there are too many of them, or they are too large.

    unread_answers  a client that asks for large answers and reads none of them
    reads           requests of 1,000 transactions that read 100,000 keys each; and their sender leaves
    full_batches    128 requests of 8,192 transactions in flight
    waiting         transactions that wait for a day, and sessions, until there is no room for more

A light client goes on meanwhile, from the first moment of the attack. The attacker has a core of its own where there are
two. Server and light client share the other one. After each attack the books are checked: all that was answered has
happened, once, and nothing of the attacker is left in the server.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import pathlib
import select
import sys
import time

import http2
from full_batches import (EXISTS, WAIT, add_one, batch_of, longest_batch, range_get, reads_of_100000_keys,  # noqa: F401
                          transaction)
from guarded_server import GuardedServer
from light_client import ATTACKER, MIB, LightClient, check_memory, p99, rss_of, take_core

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, leaves_out, temporary_folder, until  # noqa: E402

ATTACKS = ("unread_answers", "reads", "full_batches", "waiting")
LONGEST_BATCH_MAX = 0.05  # seconds that the longest batch may take
DAY_US = 86400 * 10**6
HOUR_US = 3600 * 10**6


def fill(server, prefix, count, value):
    """Writes `count` keys, by the client."""
    lines = [{"then": [{"op": "put", "key": f"{prefix}{number:06}", "value": value}]} for number in range(count)]
    for at in range(0, count, 10000):
        assert all(line["outcome"] == "COMMITTED" for line in server.transactions(*lines[at:at + 10000]))


def status(server):
    return json.loads(server.client("--output", "json", "status"))


class Counts(ctypes.Structure):
    """What an attacker has done so far: calls that it began, that ended (`value`), and that ended with OK; messages and
    bytes of answers."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("sent", "value", "succeeded", "messages", "received")]


class Attacker:
    """A process that attacks until stop() is called. `ended`: its Counts."""

    def __init__(self, what, endpoint, **arguments):
        self.stopping = multiprocessing.Event()
        self.ended = multiprocessing.RawValue(Counts)
        self.process = multiprocessing.Process(target=self._run, args=(what, endpoint, arguments), daemon=True)
        self.process.start()

    def _run(self, what, endpoint, arguments):
        take_core("attacker")
        what(endpoint, self.stopping, self.ended, **arguments)

    def stop(self):
        self.stopping.set()
        self.process.join(60 * SLOWER)
        assert self.process.exitcode == 0, f"the attacker ended with {self.process.exitcode}"
        return self.ended.value


def read_and_count(caller, ended):
    """Reads what the server has sent, and counts it."""

    def seen():
        return sum(caller.ends.values()), caller.ends["0"], caller.messages, caller.received

    before = seen()
    try:
        caller.read()
    finally:
        for field, old, new in zip(("value", "succeeded", "messages", "received"), before, seen()):
            setattr(ended, field, getattr(ended, field) + new - old)


def read_for(caller, ended, seconds):
    """Waits so long at most for something that can be read or written, and does so."""
    select.select([caller], [caller] if caller.wants_to_write() else [], [], seconds)
    read_and_count(caller, ended)


def keep_in_flight(endpoint, stopping, ended, method, payload, connections, calls, authority=None, headers=(),
                   window=0x7fffffff, source=ATTACKER):
    """Each connection has so many calls in flight, and sends the next when one ends. A lost connection comes back.
    `authority`, `headers`, `window`, `source`: as for http2.Caller."""
    callers = []
    while not stopping.is_set():
        while len(callers) < connections:
            try:
                callers.append(http2.Caller(endpoint, source, window, authority, headers))
            except OSError:
                break
        for caller in list(callers):
            try:
                while len(caller.open) < calls:
                    caller.call(method, payload)
                    ended.sent += 1
                caller.write()
            except OSError:
                caller.close()
                callers.remove(caller)
        writers = [caller for caller in callers if caller.wants_to_write()]
        for caller in select.select(callers, writers, [], 0.05)[0]:
            try:
                read_and_count(caller, ended)
            except OSError:
                caller.close()
                callers.remove(caller)
    for caller in callers:
        caller.close()


class Compared:
    """What compare() saw: the Counts of the attacker, and how many transactions were not of the attacker."""

    def __init__(self, ended, others):
        self.ended, self.others = ended, others


def compare(server, name, seconds, strict, attack, longest, must_end=True):
    """Runs the light client alone and during the attack; `longest`: seconds of the longest batch. `must_end`: calls of the
    attacker have to end."""
    books = server.value("light")
    light = LightClient(server)
    answers = len(light.run(0.5))
    alone = light.run(seconds * SLOWER)
    attacker = Attacker(keep_in_flight, server.endpoint, **attack)
    times = light.run(seconds * SLOWER)
    ended = attacker.stop()
    highest = server.look_at_memory()
    light.close()
    answers += len(alone) + len(times)
    limit = 3 * p99(alone) + min(longest, LONGEST_BATCH_MAX)
    print(f"{name}: {ended} calls of the attacker ended, {attacker.ended.succeeded} with OK, "
          f"{attacker.ended.messages} messages, {attacker.ended.received >> 20} MiB; light client {len(alone)} answers "
          f"alone, {len(times)} during the attack; p99 {p99(alone) * 1e3:.1f} ms alone, {p99(times) * 1e3:.1f} ms during "
          f"the attack (longest {max(times) * 1e3:.1f}; at most {limit * 1e3:.1f} are wanted); memory up to "
          f"{highest >> 20} MiB", flush=True)
    assert server.value("light") == books + answers, "an answer of the light client is not in its books"
    assert not must_end or ended > 0 or attacker.ended.messages > 0, "there was no attack"
    assert len(times) > seconds * 2, "the light client hardly got answers"
    if strict:
        assert p99(times) <= limit, "the light client waits too long"
    return Compared(attacker.ended, answers + 2)  # and two Gets


def wait_until_nothing_is_left(server, seconds=20):
    """Nothing of the attackers is left in the server."""

    def what_is_left():
        now = status(server)
        left = {field: now[field] for field in ("queued_transactions", "queued_bytes", "parked", "parked_bytes", "uploads",
                                                "uploads_bytes")}
        return {**left, "answers": now["memory"]["answers"]["bytes"]}

    end = time.monotonic() + seconds * SLOWER
    while any((left := what_is_left()).values()):
        assert time.monotonic() < end, f"{seconds} s after the attackers have left, the server still has {left}"
        time.sleep(0.05)


def attack_with_batches(server, name, seconds, strict, attack, longest, transactions):
    """Compares, and checks that the attack took place: what was answered has run. `transactions`: of each call."""
    before = status(server)
    seen = compare(server, name, seconds, strict, attack, longest)
    wait_until_nothing_is_left(server)
    ended = seen.ended
    # A message has the results of one transaction or more.
    assert ended.messages > 0, "no transaction of the attacker was answered"
    answered = max(ended.messages, ended.succeeded * transactions)
    until(lambda: status(server)["transactions"] - before["transactions"] - seen.others >= answered,
          f"{answered} transactions that were answered to have run", 2)
    assert status(server)["batches"] > before["batches"]
    return seen


def pairs_of(server, prefix):
    """The values of all keys with this prefix."""
    output = server.client("--output", "json", "scan", "--prefix", prefix)
    return {pair["key"]: pair["value"] for pair in map(json.loads, output.splitlines())}


def read_much(server, seconds, strict, longest, attacks, **login):
    """The attack `reads`. `attacks`: pairs of connections and calls of each."""
    fill(server, "k", 10000, 1)
    payload = batch_of([reads_of_100000_keys()] * 1000)
    for connections, calls in attacks:
        attack = {"method": "ExecuteBatch", "payload": payload, "connections": connections, "calls": calls, **login}
        name = f"reads, {connections} connections with {calls} calls" + (" of one user" if login else "")
        attack_with_batches(server, name, seconds, strict, attack, longest, 1000)
    assert all(value == 1 for value in pairs_of(server, "k").values())


def attack_by_reads(seconds, strict, longest):
    """The attack `reads`: large reads, from 1 and from 64 connections, and 12,000 at once; and a sender that cancels and
    leaves."""
    with temporary_folder() as folder, Server(folder) as server:
        read_much(server, seconds, strict, longest, ((1, 1), (1, 12), (64, 1)))
        leave(server, strict)


def call_and_leave(endpoint, stopping, ended, payload):
    """Sends a request, takes answers for a while, cancels, and leaves."""
    caller = http2.Caller(endpoint, ATTACKER)
    stream = caller.call("ExecuteBatch", payload)
    ended.sent += 1
    end = time.monotonic() + 0.5 * SLOWER
    while time.monotonic() < end or ended.messages == 0 and not stopping.is_set():
        read_for(caller, ended, 0.05)
    caller.cancel(stream)
    caller.close()


def leave(server, strict):
    """The sender of `reads` leaves: its transactions that have not started are dropped."""
    answers = server.value("light")
    light = LightClient(server)
    light.add()
    before = status(server)
    attacker = Attacker(call_and_leave, server.endpoint, payload=batch_of([reads_of_100000_keys()] * 1000))
    until(lambda: attacker.process.exitcode is not None, "the end of the sender")
    left = time.monotonic()
    attacker.stop()
    until(lambda: status(server)["queued_transactions"] == 0, "the end of the dropped transactions", 2)
    dropped = time.monotonic() - left
    waited = light.add()
    wait_until_nothing_is_left(server)
    ran = status(server)["transactions"] - before["transactions"] - 1
    print(f"reads: the sender has left after {attacker.ended.messages} answers; {ran} of its 1,000 transactions ran; the "
          f"others were dropped within {dropped * 1e3:.0f} ms, and then an ADD took {waited * 1e3:.1f} ms", flush=True)
    light.close()
    assert attacker.ended.messages <= ran < 1000, "the transactions of the client that has left were not dropped"
    assert server.value("light") == answers + 2


def add_much(server, seconds, strict, longest, attacks, **login):
    """The attack `full_batches`. Each call adds 1 to each of 8,192 keys, so each key has at least as much as there were
    calls with OK, and at most as much as there were calls. The transactions of a call that its client left may have run,
    each for itself. So only the sum says how many: all that have committed."""
    payload = batch_of([transaction(add_one(b"a%06d" % number)) for number in range(8192)])
    succeeded = sent = others = 0
    before = status(server)["committed"]
    for connections, calls in attacks:
        attack = {"method": "ExecuteBatch", "payload": payload, "connections": connections, "calls": calls, **login}
        name = f"full_batches, {connections} connections with {calls} calls" + (" of one user" if login else "")
        seen = attack_with_batches(server, name, seconds, strict, attack, longest, 8192)
        assert seen.ended.succeeded > 0, "no call of the attacker ended with OK"
        succeeded, sent, others = succeeded + seen.ended.succeeded, sent + seen.ended.sent, others + seen.others
        # The last batches may still run.
        until(lambda: status(server)["committed"] - before - others == sum(pairs_of(server, "a").values()),
              "as many committed transactions as the sum of the keys", 10)
        values = pairs_of(server, "a").values()
        assert len(values) == 8192
        assert succeeded <= min(values) and max(values) <= sent, (
            f"{succeeded} calls of {sent} had OK; the keys have {min(values)} to {max(values)}")


def attack_by_full_batches(seconds, strict, longest):
    """The attack `full_batches`, from 1 and from 64 connections."""
    with temporary_folder() as folder, Server(folder) as server:
        add_much(server, seconds, strict, longest, ((1, 128), (64, 2)))


def attack_by_one_user(seconds, strict, longest, what):
    """The attacks `reads` and `full_batches` by one user on 64 connections."""
    with temporary_folder() as folder, GuardedServer(folder) as server:
        login = {"headers": (server.add_user("attacker", "--read", "k", "--write", "a"),), "authority": server.authority}
        what(server, seconds, strict, longest, ((64, 1 if what == read_much else 2),), **login)


def read_nothing(endpoint, stopping, ended, payload, calls):
    """Makes so many calls with a window of 0, and stays until the end."""
    caller = http2.Caller(endpoint, ATTACKER, window=0)
    for _ in range(calls):
        caller.call("Get", payload)
        ended.sent += 1
    while not stopping.is_set():
        try:
            read_for(caller, ended, 0.01)
        except OSError:  # the connection was cut off, and all calls with it
            ended.value = calls
            break
    stopping.wait()
    caller.close()


def attack_by_unread_answers(memory, strict):
    """The attack `unread_answers`: 1,000 Gets of 7 values of 512 KiB, by a client whose window is 0."""
    with temporary_folder() as folder, Server(folder, "--answers-bytes-max", "48MiB", "--answer-timeout", "3s") as server:
        fill(server, "v", 7, "x" * (512 << 10))
        payload = b"".join(http2.bytes_field(1, b"v%06d" % number) for number in range(7))
        light = LightClient(server)
        answers = len(light.run(0.2))
        before = rss_of(server.pid)
        attacker = Attacker(read_nothing, server.endpoint, payload=payload, calls=1000)
        held, times = 0, []
        end = time.monotonic() + 30 * SLOWER
        while time.monotonic() < end and attacker.ended.value < 1000:
            times.append(light.add())
            if len(times) % 5 == 0:
                held = max(held, status(server)["memory"]["answers"]["bytes"])
        highest = server.look_at_memory()
        ended = attacker.ended
        print(f"unread_answers: memory {before >> 20} to {highest >> 20} MiB, answers up to {held >> 20} MiB; {ended.value} "
              f"of 1,000 calls were ended, {ended.received >> 20} MiB received; longest ADD of the light client "
              f"{max(times) * 1e3:.1f} ms", flush=True)
        assert ended.value == 1000, "the server keeps calls of a client that does not read"
        assert ended.succeeded == 0 and ended.received == 0, "the attacker has read answers"
        # A sanitizer makes each look so slow that it misses most of the attack. Answers take minutes to encode, too.
        assert held >= 32 * MIB or leaves_out("how many bytes the answers had"), f"the answers had only {held} bytes"
        assert not strict or max(times) <= 2, "the light client waited too long"
        check_memory(highest - before <= memory, f"from {before >> 20} to {highest >> 20} MiB")
        # Other clients have room again, although the attacker is still there.
        assert len(server.client("get", "v000001")) > 512 << 10
        attacker.stop()
        light.close()  # after the end of the attacker, which has a copy of its pipe
        assert server.value("light") == answers + len(times)
        wait_until_nothing_is_left(server)


def wait_and_open(endpoint, stopping, ended, connections, parked):
    """Parks so many transactions, in at least 40 calls, and opens sessions all the time, with so many connections. Stays
    until the end."""
    guard = http2.number_field(1, EXISTS) + http2.number_field(2, WAIT) + http2.bytes_field(3, b"never")
    callers = [http2.Caller(endpoint, ATTACKER) for _ in range(connections)]
    calls = max(40, connections)
    payload = batch_of([transaction(add_one(b"applied"), guards=(guard,), wait_us=DAY_US)] * (parked // calls))
    for number in range(calls):
        callers[number % connections].call("ExecuteBatch", payload)
    lease = http2.number_field(1, HOUR_US)
    while not stopping.is_set():
        for caller in callers:
            while len(caller.open) < calls // connections + max(4, 100 // connections):
                caller.call("OpenSession", lease)
                ended.sent += 1
        writers = [caller for caller in callers if caller.wants_to_write()]
        for caller in select.select(callers, writers, [], 0.05)[0]:
            read_and_count(caller, ended)
        for caller in writers:
            caller.write()
    for caller in callers:
        caller.close()


def attack_by_waiting(connections, parked, sessions):
    """The attack `waiting`: a client parks as many transactions as it may for a day, opens as many sessions as it may, and
    leaves. `parked`, `sessions`: the limits."""
    flags = ("--parked-max", str(parked), "--sessions-max", str(sessions))
    with temporary_folder() as folder, Server(folder, *flags) as server:
        light = LightClient(server)
        answers = len(light.run(0.2))
        attacker = Attacker(wait_and_open, server.endpoint, connections=connections, parked=2 * parked)
        times, now, still = [], status(server), 0
        end = time.monotonic() + 120 * SLOWER
        # Until both are more than half full, and grow no more.
        while time.monotonic() < end and still < 5:
            times += light.run(0.2)
            then, now = now, status(server)
            full = now["parked"] >= parked // 2 and now["sessions"] >= sessions // 2
            still = still + 1 if full and now["parked"] == then["parked"] and now["sessions"] == then["sessions"] else 0
        print(f"waiting, {connections} connections: {now['parked']} transactions of the attacker wait (of {parked:,}), "
              f"{now['sessions']} sessions are open (of {sessions:,}); memory {rss_of(server.pid) >> 20} MiB; longest ADD of "
              f"the light client {max(times) * 1e3:.1f} ms", flush=True)
        assert parked // 2 <= now["parked"] < parked and sessions // 2 <= now["sessions"] < sessions
        # Another client still waits for a deposit, and opens a session (which `txn` does).
        process = server.start_transactions({"guards": [{"key": "balance", "is": "ge", "value": 5, "when_false": "wait"}],
                                             "wait_timeout_ms": 60000, "then": [{"op": "add", "key": "balance", "delta": -5}]})
        until(lambda: status(server)["parked"] > now["parked"], "the withdrawal to be parked")
        server.client("add", "balance", "5")
        output, errors = process.communicate(timeout=60 * SLOWER)
        assert process.returncode == 0 and '"COMMITTED"' in output, output + errors
        assert server.value("balance") == 0
        # The attacker leaves. Its transactions do not apply later.
        attacker.stop()
        left = time.monotonic()
        until(lambda: status(server)["parked"] == 0, "the end of the waiting transactions", 10)
        print(f"waiting: none of them waits any more {time.monotonic() - left:.1f} s after the attacker has left",
              flush=True)
        wait_until_nothing_is_left(server)
        server.client("put", "never", "1")
        answers += len(times) + len(light.run(0.2))
        light.close()
        assert server.value("applied") == 0 and server.value("light") == answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="of each run: alone, and under each attack")
    parser.add_argument("--memory", type=int, default=160, help="most MiB by which the server may grow in unread_answers")
    parser.add_argument("--users", action="store_true", help="reads and full_batches also by one user on 64 connections")
    parser.add_argument("--parked", type=int, default=20000, help="the limit of transactions that wait, in waiting")
    parser.add_argument("--sessions", type=int, default=1000, help="the limit of sessions, in waiting")
    parser.add_argument("--strict", action="store_true",
                        help="fail if the light client waits too long, or if a batch takes too long; needs two idle cores")
    parser.add_argument("--only", choices=ATTACKS, action="append", help="one attack; give it again for one more")
    options = parser.parse_args()
    take_core("server", options.strict)
    attacks = options.only or ATTACKS
    seconds, strict, longest = options.seconds, options.strict, LONGEST_BATCH_MAX
    # With a lower limit on memory, there is no room for the data of full batches.
    if {"reads", "full_batches"} & set(attacks) and (strict or "KILOKV_MEMORY_LIMIT" not in os.environ):
        longest = longest_batch(5 if strict else 1)
    for name in attacks:
        if name == "unread_answers":
            attack_by_unread_answers(options.memory * MIB, options.strict)
        elif name == "waiting":
            for connections in (1, 64):
                attack_by_waiting(connections, options.parked, options.sessions)
        else:
            (attack_by_reads if name == "reads" else attack_by_full_batches)(seconds, strict, longest)
            if options.users:
                attack_by_one_user(seconds, strict, longest, read_much if name == "reads" else add_much)
    if strict:
        assert longest <= LONGEST_BATCH_MAX, f"the longest batch takes {longest * 1e3:.1f} ms"


if __name__ == "__main__":
    main()
