#!/usr/bin/env python3
"""All parts of the server's memory full at the same time, and honest full load on a database that fills its part.

    everything    clients fill the data, and then at once the queue, the parked transactions, the stored results of
                  sessions, the uploads, the before-images of scans, the answers, and the buffers of gRPC
    honest        the load tester, as fast as it can, with three forms of requests at once, on as many accounts as fit
    unfinished    messages that lack their end, and what they do to others
    hidden        the same, while each connection also makes short calls that succeed
    hidden_well   the same with many short calls, whose headers may have been long
    hidden_wrong  the same with short calls of a method that the server does not have
    silent        calls whose messages do not come, with long headers
    silent_short  very many of them, with short headers; many_sessions and health: the same with other calls
    many_gets     very many calls that succeed at once; many_unknown: the same with a method that the server does not have
    slow          sessions whose first message comes slowly and never ends, while their connections make short calls
    slow_check    the same with health checks, which need no login
    slow_long     the same with sessions whose messages say that they are long

In all, the resident memory stays within 1.1 of --memory-limit. After each, the books are correct. 30 s after all clients
of the first have left, the memory is at most 1.2 times what it was before with the same data, and 64 MiB.
"""

import argparse
import json
import os
import pathlib
import re
import select
import struct
import subprocess
import sys
import time

import http2
from full_batches import (EXISTS, WAIT, add_one, batch_of, call, execute, get, key_range, put, range_get,  # noqa: F401
                          transaction)
from greedy_test import Attacker, keep_in_flight, status
from light_client import ATTACKER, MIB, LightClient, check_memory, rss_of, take_core

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, leaves_out, temporary_folder, until  # noqa: E402

BYTES_EQUAL = 11  # a kind of guards
HOUR_US = 3600 * 10**6
BIG = 100000  # bytes of a value of the data
SMALL = 500  # the same for the honest load: the room for results of sessions is planned for the largest value of all
DATA = ("table", "keys", "index", "values")  # the parts that share the bound of `values`
FULL = ("data", "queue", "parked", "sessions", "uploads", "snapshots", "answers", "grpc")
GIVE_BACK_S = 30
FILLED_LIMIT = 512 * MIB  # to fill all parts of a higher limit takes too long
UNFINISHED = 3900000  # bytes of a message that lacks its end
LONG_HEADERS = (("padding", "y" * 7000),)
FIVE_TIMES = 5 * (("padding", "y" * 1400),)  # 5 bytes, when the field has an index
CALLS = 224 << 20  # bytes of calls that gRPC has begun, and that the server has not refused yet (docs/limits.md)
GET = http2.message(http2.bytes_field(1, b"key"))
MANY_S = 3  # the longest answer while there are very many calls: the first round of gRPC, before connections take turns
LONGEST_S = 5  # an answer may take so long then, with a new connection
UNHARMED_S = 1  # an answer that is faster was not held up by an attack: other programs on the machine can take as long
LATE = "ended calls whose messages were late"  # in the log
CUT_OFF = "cut_off=[1-9]|a flood came from this address"  # likewise
TURNS = "reads the connections of an address in turns"  # likewise
HARM_S, FAILURES_MAX = 2, 10  # unfinished messages: so long, and so often, calls of others may fail


class Talker(http2.Caller):
    """A caller that keeps what the server answers to unary calls."""

    def __init__(self, endpoint):
        super().__init__(endpoint, ATTACKER)
        self._answers = {}

    def _take(self, kind, flags, stream, payload):
        if kind == http2.DATA:
            self._answers[stream] = self._answers.get(stream, b"") + bytes(payload)
        super()._take(kind, flags, stream, payload)

    def ask(self, method, payload, seconds=30 * SLOWER):
        """The message that answers a call; None: the call was refused, or took too long."""
        stream = self.call(method, payload)
        end = time.monotonic() + seconds
        while stream in self.open and time.monotonic() < end:
            select.select([self], [self] if self.wants_to_write() else [], [], 0.05)
            self.read()
        answer = self._answers.pop(stream, None)
        return answer[5:] if answer else None


def request_id(session, number):
    return http2.bytes_field(1, http2.bytes_field(1, session) + http2.number_field(2, number))


def open_session(talker, lease_us):
    answer = talker.ask("OpenSession", http2.number_field(1, lease_us))
    return answer[2:18] if answer else None  # field 1: 16 bytes


def again_until_the_end(endpoint, stopping, ended, step):
    """Calls step(talker) until the end. What is refused is tried again later. A lost connection comes back."""
    talker = None
    while not stopping.is_set():
        try:
            talker = talker or Talker(endpoint)
            if step(talker):
                ended.succeeded += 1
            else:
                time.sleep(0.05)
        except OSError:
            talker = None
    if talker:
        talker.close()


def store_results(endpoint, stopping, ended, lease_us):
    """Sessions with results of 60 KB that nobody acknowledges."""
    state = {"session": None, "number": 0}
    reads = batch_of([transaction(get(b"stored"))] * 10)

    def step(talker):
        if state["session"] is None:
            state["session"], state["number"] = open_session(talker, lease_us), 0
            return False
        state["number"] += 1
        if talker.ask("ExecuteBatch", request_id(state["session"], state["number"]) + reads) is None:
            state["session"] = None  # this session is full
            return False
        return True

    again_until_the_end(endpoint, stopping, ended, step)


def upload(endpoint, stopping, ended, lease_us):
    """Read sets of long keys that no commit takes."""
    state = {"session": None, "number": 0, "keys": 0}
    chunk = 500

    def step(talker):
        if state["session"] is None:
            state["session"], state["number"], state["keys"] = open_session(talker, lease_us), 0, 0
            return False
        if state["keys"] == 0:
            state["number"] += 1
        keys = b"".join(http2.bytes_field(3, b"%0900d" % (state["keys"] + i)) for i in range(chunk))
        message = (request_id(state["session"], state["number"]) + http2.number_field(2, state["keys"]) + keys
                   + http2.bytes_field(4, bytes(chunk)))
        if talker.ask("UploadReadSet", message) is None:
            state["keys"] = 0
            return False
        state["keys"] += chunk
        return True

    again_until_the_end(endpoint, stopping, ended, step)


def keep_boundaries(endpoint, stopping, ended):
    """Scans that begin and never go on, while their keys get new values. (The bytes of old values count as data.)"""
    scan = http2.bytes_field(1, key_range(b"image", b"imagf")) + http2.number_field(2, 1) + http2.number_field(4, 1)

    def step(talker):
        talker.ask("Scan", scan)
        return talker.ask("ExecuteBatch", changed_images())

    again_until_the_end(endpoint, stopping, ended, step)


def changed_images():
    return batch_of([transaction(add_one(b"image%06d" % key)) for key in range(5000)])


def hold_back(endpoint, stopping, ended, connections, calls, address=ATTACKER, part=None, headers=(), short_calls=0,
              short_path="Get", indexed=False, path="ExecuteBatch"):
    """Calls whose messages lack the last byte, so that gRPC keeps the rest; or this part of a message alone.
    Calls that end are begun again. `short_calls`: each connection also makes so many short calls, 20 times a second. `indexed`: headers are sent once."""
    if part is None:
        part = http2.message(bytes(UNFINISHED))[:-1]
    callers, begun = [], time.monotonic()
    unfinished = {}  # of each caller: its streams

    def begin(caller):
        unfinished[caller] = [stream for stream in unfinished.get(caller, ()) if stream in caller.open]
        while len(unfinished[caller]) < calls:
            unfinished[caller].append(caller.call_unfinished(path, part))
            ended.sent += 1

    while not stopping.is_set():
        while len(callers) < connections:
            try:
                callers.append(http2.Caller(endpoint, address, headers=headers, indexed=indexed))
                begin(callers[-1])
            except OSError:
                break
        if short_calls and time.monotonic() - begun > 0.05:
            begun = time.monotonic()
            for caller in callers:
                try:
                    for _ in range(short_calls):
                        caller.call(short_path, http2.bytes_field(1, b"key"))
                except OSError:
                    pass  # it is removed below
        writers = [caller for caller in callers if caller.wants_to_write()]
        for caller in set(sum(map(list, select.select(callers, writers, [], 0.05)[:2]), [])):
            try:
                caller.read()
                begin(caller)
            except OSError:
                caller.close()
                callers.remove(caller)
                unfinished.pop(caller, None)
    for caller in callers:
        caller.close()


def drip(endpoint, stopping, ended, connections, bytes_each, short_calls, path, declared=UNFINISHED):
    """Calls whose first message has a declared length, comes slowly, and never ends. 20 times a second, each connection sends so many bytes of it,
    and makes so many short calls. A call or a connection that ends is begun again."""
    part = bytes(bytes_each)
    begin = struct.pack(">BI", 0, declared) + part
    callers = {}  # and the stream of each
    while not stopping.is_set():
        begun = time.monotonic()
        while len(callers) < connections:
            try:
                callers[http2.Caller(endpoint, ATTACKER)] = None
            except OSError:
                break
        for caller, stream in list(callers.items()):
            try:
                caller.read()
                if stream not in caller.open:
                    callers[caller] = caller.call_unfinished(path, begin)
                    ended.sent += 1
                else:
                    caller.go_on(stream, part)
                for _ in range(short_calls):
                    caller.call("Get", http2.bytes_field(1, b"key"))
            except OSError:
                caller.close()
                del callers[caller]
        stopping.wait(max(0.0, begun + 0.05 - time.monotonic()))
    for caller in callers:
        caller.close()


def guard(kind, on_false, key, value=None):
    return (http2.number_field(1, kind) + http2.number_field(2, on_false) + http2.bytes_field(3, key)
            + (http2.bytes_field(7, value) if value is not None else b""))


class PatientClient:
    """A light client that begins again when a call fails."""

    def __init__(self, server):
        self._server, self._light = server, LightClient(server)
        self.answers = self.failures = 0
        self.failed_at = time.monotonic()  # last

    def run(self, seconds):
        """Returns the times of all answers."""
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                times.append(self._light.add())
            except (AssertionError, OSError):
                self.failures += 1
                self.failed_at = time.monotonic()
                self.close()
                self._light = LightClient(self._server)
            time.sleep(0.002)
        self.answers += len(times)
        return times

    def close(self):
        self._light.process.stdin.close()
        self._light.process.stdout.close()
        self._light.process.kill()
        self._light.process.wait()


def held_back(name, seconds, connections=64, attack=hold_back, seen=CUT_OFF, longest_s=LONGEST_S, **how):
    """Messages that lack their end, or calls without a message, by many connections: gRPC keeps them. When its memory is
    full, gRPC ends connections, also those of others. The server sees that only when it has happened. So this measures the
    harm: the light client fails at the beginning at most, until those connections are cut off.
    The addresses that they came from have to wait then, so the harm does not come again at once."""
    with temporary_folder() as folder, Server(folder) as server:
        light = PatientClient(server)
        light.run(0.5)
        before = rss_of(server.pid)
        bounds = {name: part["bound_bytes"] for name, part in status(server)["memory"].items()}
        # None of them is in use before. What a call takes is an estimate.
        growth = bounds["grpc"] + bounds["calls"] * 5 // 4 + CALLS
        limit_is_low = status(server)["memory_limit_bytes"] <= FILLED_LIMIT
        began = time.monotonic()
        attacker = Attacker(attack, server.endpoint, connections=connections, **how)
        times = light.run(HARM_S * SLOWER)
        times += light.run(seconds * SLOWER)
        attacker.stop()
        light.close()
        last = f", the last after {light.failed_at - began:.1f} s" if light.failures else ""
        print(f"{name}: {attacker.ended.sent} calls; {len(times)} answers of the light client, longest "
              f"{max(times) * 1e3:.1f} ms; {light.failures} of its calls failed{last}; RSS at most "
              f"{server.look_at_memory() >> 20} MiB", flush=True)
        if re.search(seen, server.log.read_text()) is None:
            # Where a lot of memory is allowed, or the server is fast, an attack may stay within all bounds.
            assert not limit_is_low or TURNS in seen and max(times) < UNHARMED_S, "nothing was cut off, and nobody took turns"
            print(f"{name}: nothing was cut off, because the limits are high", flush=True)
        check_memory(server.look_at_memory() - before <= growth,
                     f"from {before >> 20} MiB; at most {growth >> 20} more are wanted")
        assert max(times) < longest_s * SLOWER, f"the light client waited {max(times):.1f} s"
        # A sanitizer slows the server, and not its clients: then half of the attack's time may be bad.
        harm = HARM_S if SLOWER == 1 else (HARM_S + seconds) * SLOWER / 2
        assert light.failed_at - began <= harm, f"a call failed {light.failed_at - began:.1f} s after the start"
        assert light.failures <= FAILURES_MAX, f"{light.failures} calls of the light client failed"
        assert light.answers <= server.value("light") <= light.answers + light.failures, "the books of the light client"
        assert server.stop() == 0


def many_calls(name, seconds, **how):
    """120,000 calls at a time. gRPC reads one connection after the other, and what it finds on one takes it 25 ms."""
    held_back(name, seconds, connections=240, calls=500, indexed=True, seen=f"{CUT_OFF}|{TURNS}", longest_s=MANY_S, **how)


def attacks_on_all_parts(server, lease_us):
    """The attackers, running. They add no data. Unfinished messages take half of what gRPC may have: with more, gRPC ends
    connections, also of others (see unfinished())."""
    endpoint = server.endpoint
    messages = status(server)["memory"]["grpc"]["bound_bytes"] // 2 // UNFINISHED
    waits = [transaction(guards=(guard(BYTES_EQUAL, WAIT, b"never", b"w" * 2000),), wait_us=HOUR_US)] * 500
    fails = [transaction(guards=(guard(BYTES_EQUAL, 0, b"never", b"q" * BIG),))] * 36
    slow = [transaction(*[range_get(b"k", b"l", 10000)] * 10)] * 1000
    gets = b"".join(http2.bytes_field(1, b"v%06d" % number) for number in range(7))

    def keep(method, payload, connections, calls, window=0x7fffffff):
        return Attacker(keep_in_flight, endpoint, method=method, payload=payload, connections=connections, calls=calls,
                        window=window)

    return [keep("ExecuteBatch", batch_of(waits), 4, 500), keep("ExecuteBatch", batch_of(slow), 8, 1),
            keep("ExecuteBatch", batch_of(fails), 16, 6), keep("Get", gets, 8, 100, window=0),
            # From another address: what floods has to pause, and then the others would have to pause, too.
            Attacker(hold_back, endpoint, connections=messages, calls=1, address="127.0.0.3"),
            *[Attacker(store_results, endpoint, lease_us=lease_us) for _ in range(4)],
            Attacker(upload, endpoint, lease_us=lease_us), Attacker(keep_boundaries, endpoint)]


class Parts:
    """The most that each part of the memory held, as a fraction of its bound."""

    def __init__(self, server):
        self.server, self.most, self.least_at_once = server, {}, 0

    def look(self):
        text = self.server.client("--timeout", f"{60 * SLOWER}s", "--output", "json", "status")
        memory = json.loads(text)["memory"]
        now = {name: part["bytes"] / part["bound_bytes"] for name, part in memory.items() if part["bound_bytes"] > 0}
        now["data"] = sum(memory[name]["bytes"] for name in DATA) / memory["values"]["bound_bytes"]
        del now["values"]
        for name, share in now.items():
            self.most[name] = max(self.most.get(name, 0), share)
        self.least_at_once = max(self.least_at_once, min(now[name] for name in FULL))
        return now

    def were_full(self):
        return all(self.most.get(name, 0) >= 0.5 for name in FULL)

    def text(self):
        return ", ".join(f"{name} {share:.2f}" for name, share in sorted(self.most.items()))


def put_what_is_read(server):
    """Puts what the attackers read."""
    caller = http2.Caller(server.endpoint)
    for number in range(7):
        execute(caller, put(b"v%06d" % number, b"x" * (512 << 10)))
    execute(caller, put(b"stored", b"s" * 60000))
    call(caller, "ExecuteBatch", batch_of([transaction(add_one(b"k%06d" % key)) for key in range(8000)]))
    call(caller, "ExecuteBatch", batch_of([transaction(add_one(b"k%06d" % key)) for key in range(8000, 10000)]))
    call(caller, "ExecuteBatch", changed_images())
    caller.close()


def put_values(server, share, size=BIG):
    """Puts values of this size until the data takes this share of its part. Returns their number."""
    caller = http2.Caller(server.endpoint)
    count, parts = 0, Parts(server)
    while (left := share - parts.look()["data"]) > 0:
        bytes_left = left * status(server)["memory"]["values"]["bound_bytes"]
        at_once = min(8000, 3000000 // size)
        for _ in range(max(1, int(bytes_left / size / at_once / 2))):
            call(caller, "ExecuteBatch", batch_of([transaction(put(b"big%06d" % (count + i), big(count + i, size)))
                                                   for i in range(at_once)]))
            count += at_once
    caller.close()
    return count


def big(number, size=BIG):
    return b"%06d" % number + b"b" * size


def check_data(server, count, size=BIG):
    """The values are what was put; for many of them, some are looked at."""
    for number in range(0, count, max(1, count // 200)):
        value = server.client("get", f"big{number:06}").strip()
        assert value == big(number, size).decode(), value[:40]


def everything(seconds, data_share, lease_s, strict):
    with temporary_folder() as folder, Server(folder) as server:
        put_what_is_read(server)
        count = put_values(server, data_share)
        time.sleep(6)  # the server is idle, and gives memory back
        before = rss_of(server.pid)
        parts = Parts(server)
        light = PatientClient(server)
        attackers = attacks_on_all_parts(server, lease_s * 10**6)
        end = time.monotonic() + seconds * SLOWER
        while time.monotonic() < end or not parts.were_full() and time.monotonic() < end + 60 * SLOWER:
            try:
                parts.look()
            except AssertionError:  # gRPC has no memory for this connection
                light.failures += 1
            light.run(0.2)
        for attacker in attackers:
            attacker.stop()
        left = time.monotonic()
        limit = status(server)["memory_limit_bytes"]
        light.close()
        print(f"everything: {count} values of {BIG} bytes; RSS {before >> 20} MiB before, {server.look_at_memory() >> 20} "
              f"at most, of {limit >> 20}; {light.answers} answers of the light client, {light.failures} of its calls failed; at one moment all parts held "
              f"{parts.least_at_once:.2f} of their bounds or more; most of each bound: {parts.text()}", flush=True)
        assert light.answers <= server.value("light") <= light.answers + light.failures, "the books of the light client"
        check_data(server, count)
        if limit <= FILLED_LIMIT:
            for name in FULL:
                assert parts.most.get(name, 0) >= 0.5, f"{name} was not full: {parts.text()}"
        gives_back(server, before, left, strict)
        server.client("put", "never", "1")
        now = status(server)
        # Uploads stay until their sessions end.
        for field in ("parked", "queued_transactions", *(["uploads"] if lease_s < GIVE_BACK_S else [])):
            assert now[field] == 0, f"{field} is {now[field]}"
        check_data(server, count)
        assert server.stop() == 0


def gives_back(server, before, left, strict):
    """`left`: when all clients left."""
    if leaves_out("the memory that the server gives back"):
        return
    most = before * 12 // 10 + 64 * MIB

    def seconds():
        return time.monotonic() - left

    while rss_of(server.pid) > most and seconds() < GIVE_BACK_S or strict and seconds() < GIVE_BACK_S:
        time.sleep(0.1)
    rss = rss_of(server.pid)
    held = ", ".join(f"{name} {part['bytes'] >> 20}" for name, part in status(server)["memory"].items() if part["bytes"] >> 20)
    print(f"everything: RSS {rss >> 20} MiB {seconds():.0f} s after all clients have left; at most {most >> 20} are wanted; "
          f"MiB of the parts: {held}", flush=True)
    assert rss <= most, f"RSS is {rss >> 20} MiB {seconds():.0f} s after all clients have left"


def bench(server, accounts, seconds, *flags):
    """A run of the load tester in the background."""
    return subprocess.Popen(server.command("kilokv-bench", "run", "--workload", "bank", "--keys", str(accounts), *flags,
                                           "--warmup", "0s", "--duration", f"{seconds}s", "--give-up-after",
                                           f"{180 * SLOWER}s", "--json", "-"),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report_of(load):
    output, errors = load.communicate(timeout=1200 * SLOWER)
    assert load.returncode == 0, output[-2000:] + errors[-2000:]
    report = json.loads(output)
    assert report["verified"]["holds"] is True and report["errors"] == report["unknown"] == 0, output[-2000:]
    return report


def open_accounts(server, accounts_max):
    """Opens accounts until the data takes nearly half of its part, and returns their number."""
    accounts = 100000
    report_of(bench(server, accounts, 1, "--batch-size", "8192"))
    accounts = min(int(accounts * 0.45 / Parts(server).look()["data"]), accounts_max)
    report_of(bench(server, accounts, 1, "--batch-size", "8192"))
    return accounts


def honest(seconds, data_share, accounts_max):
    with temporary_folder() as folder, Server(folder) as server:
        began = time.monotonic()
        accounts = open_accounts(server, accounts_max)
        share = Parts(server).look()["data"]
        count = put_values(server, data_share, SMALL)
        held = Parts(server).look()["data"]
        print(f"honest: {accounts:,} accounts take {share:.2f} of the data's bound, and {count} values the rest of "
              f"{held:.2f}, after {time.monotonic() - began:.0f} s; RSS at most {server.look_at_memory() >> 20} MiB",
              flush=True)
        seconds *= SLOWER
        loads = [bench(server, accounts, seconds, "--no-load", *how)
                 for how in (("--encoding", "columns", "--batch-size", "8192", "--connections", "8", "--in-flight", "8"),
                             ("--encoding", "rows", "--batch-size", "1024", "--connections", "8", "--in-flight", "16"),
                             ("--unary", "--connections", "4", "--in-flight", "64"))]
        parts = Parts(server)
        while any(load.poll() is None for load in loads):
            parts.look()
            time.sleep(0.2)
        rates = [report_of(load)["committed_per_s"] for load in loads]
        print(f"honest: {', '.join(f'{rate:,.0f}' for rate in rates)} transfers/s by columns, rows and unary calls, for "
              f"{seconds} s; RSS at most {server.look_at_memory() >> 20} MiB of "
              f"{status(server)['memory_limit_bytes'] >> 20}; most of each bound: {parts.text()}", flush=True)
        assert all(rate > 0 for rate in rates)
        check_data(server, count, SMALL)
        assert server.stop() == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="of each attack, at least")
    parser.add_argument("--limit", help="the limit on memory, such as 512MiB; default: that of the environment, or of kilokvd")
    parser.add_argument("--data", type=float, default=0.8, help="share of its part that the data takes under attack")
    parser.add_argument("--lease", type=int, default=3600, help="seconds of the sessions' leases")
    parser.add_argument("--strict", action="store_true", help="look again after 30 s")
    parser.add_argument("--accounts-max", type=int, default=20000000, help="most accounts of the honest load")
    parser.add_argument("--only", choices=("everything", "honest", "unfinished", "hidden", "hidden_well", "hidden_wrong", "silent", "silent_short", "many_gets", "many_unknown", "many_sessions", "health", "slow", "slow_check", "slow_long"), help="one attack")
    options = parser.parse_args()
    if options.limit:
        os.environ["KILOKV_MEMORY_LIMIT"] = options.limit
    attacks = {"everything": lambda: everything(options.seconds, options.data, options.lease, options.strict),
               "honest": lambda: honest(options.seconds, 0.5, options.accounts_max),
               "unfinished": lambda: held_back("unfinished", options.seconds, calls=4),
               "hidden": lambda: held_back("hidden", options.seconds, calls=4, short_calls=1),
               "hidden_well": lambda: held_back("hidden_well", options.seconds, connections=8, calls=1, short_calls=50,
                                                headers=FIVE_TIMES, indexed=True, seen=LATE),
               "hidden_wrong": lambda: held_back("hidden_wrong", options.seconds, calls=4, short_calls=10, short_path="Wrong"),
               "silent": lambda: held_back("silent", options.seconds, calls=1000, part=b"", headers=LONG_HEADERS),
               "silent_short": lambda: many_calls("silent_short", options.seconds, part=b""),
               "many_gets": lambda: many_calls("many_gets", options.seconds, path="Get", part=GET),
               "many_unknown": lambda: many_calls("many_unknown", options.seconds, path="Wrong", part=GET),
               "many_sessions": lambda: many_calls("many_sessions", options.seconds, path="Session", part=b""),
               "health": lambda: many_calls("health", options.seconds, path="/grpc.health.v1.Health/Watch", part=b""),
               # The bytes are so few that they might be the headers of the short calls.
               "slow": lambda: held_back("slow", 5 * options.seconds, attack=drip, bytes_each=2000, short_calls=3,
                                         path="Session", seen=LATE),
               "slow_check": lambda: held_back("slow_check", 5 * options.seconds, attack=drip, bytes_each=2000, short_calls=3,
                                               path="/grpc.health.v1.Health/Check", seen=LATE),
               "slow_long": lambda: held_back("slow_long", 5 * options.seconds, connections=4, attack=drip, bytes_each=40000,
                                              short_calls=60, path="Session", declared=250 << 20, seen=LATE)}
    for name in attacks if options.only is None else (options.only,):
        attacks[name]()


if __name__ == "__main__":
    main()
