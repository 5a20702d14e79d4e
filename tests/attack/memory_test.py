#!/usr/bin/env python3
"""The memory of the server: it keeps to --memory-limit, and gives memory back.

    elements    long messages of the shortest elements, each of which takes many times its bytes when it is parsed
    compressed  a compressed message that becomes a thousand times as long when it is unpacked
    values      values until memory is full: new data is refused, reads and deletes go on, and the server starts again
    gives_back  the resident memory, after all clients of a peak have left
"""

import argparse
import base64
import json
import pathlib
import re
import select
import struct
import subprocess
import sys
import time
import zlib

import http2
from greedy_test import (Attacker, add_one, batch_of, fill, keep_in_flight, pairs_of, range_get, status, transaction,
                         wait_until_nothing_is_left)
from light_client import MIB, check_memory, rss_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, leaves_out, temporary_folder, until  # noqa: E402

MESSAGE_BYTES = 3 << 20  # of values in one request
REFUSAL = re.compile(r"memory is (\d+) bytes needed = (\d+) of data, with new data \+ (\d+) kept for everything else; "
                     r"the limit is (\d+) bytes \(raise --memory-limit\)")


# The parts of the memory that the status shows.
OWNERS = {"table", "keys", "index", "values", "queue", "parked", "sessions", "uploads", "access", "snapshots", "scans",
          "dropped", "batches", "connections", "calls", "answers", "decoding", "grpc", "http", "storage", "process"}


def fill_memory(server, prefix, size):
    """Puts values of this size until they are refused. Returns their keys, keys that may be stored or not, and the
    refusal."""
    stored, unknown = [], set()
    value = "v" * size
    count = max(1, min(5000, MESSAGE_BYTES // (size + 50)))
    while True:
        keys = [f"{prefix}{len(stored) + i:08d}" for i in range(count)]
        lines = "".join(json.dumps({"then": [{"op": "put", "key": key, "value": key + value}]}) + "\n" for key in keys)
        output = server.client_run("--timeout", f"{SLOWER}s", "txn", "--batch", stdin=lines)
        if output.returncode == 0:
            stored += keys
            continue
        # On a slow machine, the time may be over while the client tries again.
        is_late = "DEADLINE_EXCEEDED" in output.stderr
        assert output.returncode == 4 and (is_late or "--memory-limit" in output.stderr), (
            output.stdout[-1000:] + output.stderr)
        if is_late:
            unknown.update(keys)
        elif count == 1:
            return stored, unknown - set(stored), output.stderr
        count = max(1, count // 8)


class MemoryServer(Server):
    def client_run(self, *arguments, stdin=""):
        return subprocess.run(self.command("kilokv", *arguments), input=stdin, capture_output=True, text=True,
                              check=False, timeout=120 * SLOWER)


def value_of(pair):
    """The bytes of a pair of a scan, as text."""
    value = pair["value"]
    return base64.b64decode(value["b64"]).decode() if isinstance(value, dict) else value


class Stored:
    """What the server must have: `sizes` has each key with the bytes of its value beyond the key itself. The keys of
    `unknown` it may have."""

    def __init__(self):
        self.sizes, self.unknown = {}, set()

    def delete(self, server, keys):
        lines = "".join(json.dumps({"then": [{"op": "delete", "key": key}]}) + "\n" for key in keys)
        output = server.client_run("txn", "--batch", stdin=lines)
        assert output.returncode == 0, output.stdout[-1000:] + output.stderr
        for key in keys:
            del self.sizes[key]

    def of_size(self, size):
        return [key for key in self.sizes if key.startswith(f"size{size}/")]

    def check(self, server):
        """Scans everything, and compares."""
        seen = 0
        scan = subprocess.Popen(server.command("kilokv", "--output", "json", "scan"), stdout=subprocess.PIPE, text=True)
        for line in scan.stdout:
            pair = json.loads(line)
            key = pair["key"]
            if key in self.unknown:
                continue
            seen += 1
            assert key in self.sizes, f"{key} was deleted, or refused"
            value = value_of(pair)
            assert value == key + "v" * self.sizes[key], f"{key} has another value: {value[:40]}"
        assert scan.wait(timeout=60 * SLOWER) == 0
        assert seen == len(self.sizes), f"{seen} of {len(self.sizes)} keys are there"


def check_reads_and_deletes(server, stored, size):
    keys = stored.of_size(size)[:2]
    assert server.client("get", keys[0]).startswith(keys[0] + "vvv")
    assert server.client("scan", "--prefix", keys[1]).startswith(keys[1])
    stored.delete(server, keys[:1])
    server.client("get", keys[0], codes=(1,))


def check_status(server, limit):
    now = status(server)
    assert set(now["memory"]) == OWNERS, set(now["memory"]) ^ OWNERS
    assert now["memory_limit_bytes"] == limit
    assert now["memory_sum_bytes"] == sum(owner["bytes"] for owner in now["memory"].values())
    assert sum(owner["bound_bytes"] for owner in now["memory"].values()) == limit
    for name, owner in now["memory"].items():
        assert owner["bytes"] <= (owner["bound_bytes"] or limit), f"{name}: {owner}"
    print(f"values: sum {now['memory_sum_bytes'] >> 20} MiB, RSS {now['memory_rss_bytes'] >> 20} MiB: "
          + ", ".join(f"{name} {owner['bytes'] >> 20}" for name, owner in now["memory"].items()), flush=True)
    rss = rss_of(server.pid)
    assert abs(now["memory_rss_bytes"] - rss) <= rss // 20 + 4 * MIB, (
        f"the status shows {now['memory_rss_bytes']} resident bytes, the system {rss}")
    return now


def fill_with_values(server, limit, sizes=(100000, 2000, 100, 10)):
    """Puts values of all sizes until each size is refused."""
    stored = Stored()
    for size in sizes:
        began = time.monotonic()
        keys, unknown, errors = fill_memory(server, f"size{size}/", size)
        stored.sizes.update(dict.fromkeys(keys, size))
        stored.unknown |= unknown
        shown = REFUSAL.search(errors)
        assert shown, errors
        needed, data, rest, told = map(int, shown.groups())
        assert needed == data + rest and needed > told == limit, errors
        print(f"values: {len(keys)} values of {size} bytes in {time.monotonic() - began:.0f} s; memory up to "
              f"{server.look_at_memory() >> 20} MiB of {limit >> 20}", flush=True)
    return stored


def attack_by_values(limit_mib):
    limit = limit_mib * MIB
    with temporary_folder() as folder, MemoryServer(folder, "--memory-limit", f"{limit_mib}MiB") as server:
        stored = fill_with_values(server, limit)
        check_reads_and_deletes(server, stored, 100000)
        now = check_status(server, limit)
        stored.check(server)
        # Deletes make room.
        stored.delete(server, stored.of_size(100000)[1:200])
        until(lambda: server.client_run("put", "new", "new" + "v" * 1000).returncode == 0, "room for a new value", 10)
        stored.sizes["new"] = 1000
        # The same data fits again.
        for end in (server.stop, server.kill):
            end()
            server.start()
            stored.check(server)
            check_reads_and_deletes(server, stored, 100000 if end == server.stop else 2000)
        print(f"values: it started again with {server.look_at_memory() >> 20} MiB at most", flush=True)
        assert server.stop() == 0
        starts_with_the_least(folder, stored, refuses_to_start(folder, now))


def starts_with_the_least(folder, stored, limit):
    """With the limit that the refusal to start has named."""
    with MemoryServer(folder, "--memory-limit", str(limit)) as server:
        stored.check(server)
        check_reads_and_deletes(server, stored, 100000)
        assert status(server)["memory_limit_bytes"] == limit
        print(f"values: with {limit} bytes, as the refusal said, it starts", flush=True)
        assert server.stop() == 0


def refuses_to_start(folder, now):
    """With less memory than the data needs, and with less than anything needs. Returns the limit that is enough for the
    data."""
    enough = 0
    for limit, code, words in (("480MiB", 1, r"bytes needed by the stored data, for which a limit of (\d+) bytes is enough"),
                               ("100MiB", 2, "the limit is at least")):
        server = MemoryServer(folder, "--memory-limit", limit)
        seen = server.log.stat().st_size
        server.start(wait=False)
        assert server.wait_end() == code
        text = server.log.read_bytes()[seen:].decode()
        told = re.search(words, text)
        assert told and "--memory-limit" in text, text
        enough = max(enough, *map(int, told.groups()), 0)
        # Data that fits into the whole limit is loaded, because the log may delete some of it.
        most = now["memory_rss_bytes"] // (1 if code == 1 else 2)
        check_memory(server.peak < most, f"it took {server.peak >> 20} MiB before it said so")
        print(f"values: with {limit} it ends with code {code}, after {server.peak >> 20} MiB", flush=True)
    assert 480 * MIB < enough, f"{enough} bytes are said to be enough"
    return enough


def attack_by_elements(memory):
    """The attack `elements`: messages of 4 MB of empty elements, in several calls at once. All are refused."""
    many = 2000000
    payloads = [("ExecuteBatch", http2.bytes_field(2, b"\x0a\x00" * many)),
                ("ExecuteBatch", http2.bytes_field(2, http2.bytes_field(1, b"\x0a\x00" * many))),
                ("Execute", http2.bytes_field(2, b"\x12\x00" * many)),
                ("Get", b"\x0a\x00" * many),
                ("UploadReadSet", b"\x1a\x00" * many),
                ("Cancel", http2.bytes_field(2, http2.bytes_field(3, b"\x01" * (2 * many)))),
                ("ChangeAccess", http2.bytes_field(1, b"\x12\x00" * many))]
    with temporary_folder() as folder, MemoryServer(folder) as server:
        server.client("put", "a", "1")
        before = rss_of(server.pid)
        for method, payload in payloads:
            callers = [http2.Caller(server.endpoint) for _ in range(4)]
            for caller in callers:
                caller.call(method, payload)
            end = time.monotonic() + 100 * SLOWER
            while any(caller.open for caller in callers):
                assert time.monotonic() < end, f"{method} does not end; memory {before >> 20} to {server.look_at_memory() >> 20} MiB"
                select.select(callers, [caller for caller in callers if caller.wants_to_write()], [], 0.002)
                for caller in callers:
                    caller.read()
            for caller in callers:
                caller.close()
        grown = server.look_at_memory() - before
        print(f"elements: memory {before >> 20} to {server.peak >> 20} MiB, by messages of empty elements", flush=True)
        check_memory(grown <= memory, f"from {before >> 20} to {server.peak >> 20} MiB")
        assert server.client("get", "a") == "1\n"
        assert server.stop() == 0


def packed(total, bits):
    """This many MiB of zeros, compressed. `bits`: as for zlib, which chooses between zlib and gzip by it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(total)) + packer.flush()


def attack_by_compression(memory, total=512):
    """The attack `compressed`: the server takes no compressed messages, whether the call says that it has one or not."""
    with temporary_folder() as folder, MemoryServer(folder) as server:
        server.client("put", "a", "1")
        before = rss_of(server.pid)
        for encoding, bits, wanted in (("gzip", 31, "12"), ("deflate", 15, "12"), (None, 31, "3")):
            payload = packed(total, bits)
            caller = http2.Caller(server.endpoint, headers=(("grpc-encoding", encoding),) if encoding else ())
            caller.call_message("Execute", struct.pack(">BI", 1, len(payload)) + payload)
            end = time.monotonic() + 60 * SLOWER
            while caller.open:
                assert time.monotonic() < end, f"{encoding}: the call does not end"
                select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.01)
                caller.read()
                server.look_at_memory()
            assert caller.ends == {wanted: 1}, f"{encoding}: {caller.ends}"
            caller.close()
        print(f"compressed: memory {before >> 20} to {server.peak >> 20} MiB, by {total} MiB in {len(payload) >> 10} KiB",
              flush=True)
        check_memory(server.peak - before <= memory, f"from {before >> 20} to {server.peak >> 20} MiB")
        assert server.client("get", "a") == "1\n"
        assert server.stop() == 0


def peak(server, seconds):
    """Clients that send and read as much as they can; they add no data. Returns the highest memory."""
    adds = batch_of([transaction(add_one(b"k%06d" % number)) for number in range(8192)])
    reads = batch_of([transaction(range_get(b"k", b"l", 10000))] * 200)
    gets = b"".join(http2.bytes_field(1, b"v%06d" % number) for number in range(7))
    attacks = [("ExecuteBatch", adds, 64, 2), ("ExecuteBatch", reads, 16, 4), ("Get", gets, 32, 64)]
    attackers = [Attacker(keep_in_flight, server.endpoint, method=method, payload=payload, connections=connections,
                          calls=calls) for method, payload, connections, calls in attacks]
    time.sleep(seconds * SLOWER)
    for attacker in attackers:
        attacker.stop()
    for attacker, (method, _, connections, _) in zip(attackers, attacks):
        ended = attacker.ended
        print(f"gives_back: {method} from {connections} connections: {ended.sent} calls sent, {ended.succeeded} ended with "
              f"OK, {ended.messages} messages, {ended.received >> 20} MiB received", flush=True)
        assert ended.messages > 0, "these clients got no answers"
    return attackers[0].ended


def attack_by_a_peak(seconds, strict):
    with temporary_folder() as folder, MemoryServer(folder) as server:
        fill(server, "k", 10000, 1)
        fill(server, "v", 7, "x" * (512 << 10))
        time.sleep(1)
        before, counts = rss_of(server.pid), status(server)
        most = before * 12 // 10 + 64 * MIB
        adds = peak(server, seconds)
        left = time.monotonic()
        highest = server.look_at_memory()
        wait_until_nothing_is_left(server, 30)
        # What was answered has happened, and all of it once.
        values = list(pairs_of(server, "k").values())
        assert len(values) == 10000 and set(values[8192:]) == {1}
        assert 1 + adds.succeeded <= min(values[:8192]) and max(values) <= 1 + adds.sent, (
            f"{adds.succeeded} calls of {adds.sent} had OK; the keys have {min(values[:8192])} to {max(values)}")
        assert adds.succeeded * 8192 <= sum(values) - 10000 <= status(server)["committed"] - counts["committed"]
        if leaves_out("gives_back: the memory that the server gives back after a peak"):
            assert server.stop() == 0
            return
        assert highest > most, f"the peak was only {highest >> 20} MiB"
        until(lambda: rss_of(server.pid) <= most, f"RSS of {most >> 20} MiB", 30)
        print(f"gives_back: RSS {before >> 20} MiB before, {highest >> 20} at the peak, {rss_of(server.pid) >> 20} after "
              f"{time.monotonic() - left:.0f} s", flush=True)
        if strict:
            time.sleep(max(0, 30 - (time.monotonic() - left)))
            print(f"gives_back: {rss_of(server.pid) >> 20} MiB after 30 s: "
                  + str({name: owner["bytes"] >> 20 for name, owner in status(server)["memory"].items()}))
            assert rss_of(server.pid) <= most
        assert server.stop() == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="of the peak")
    parser.add_argument("--limit", type=int, default=512, help="MiB that the server may take in values")
    parser.add_argument("--strict", action="store_true", help="look again after 30 s")
    parser.add_argument("--only", choices=("elements", "compressed", "values", "gives_back"), help="one attack")
    options = parser.parse_args()
    attacks = {"elements": lambda: attack_by_elements(96 * MIB),
               "compressed": lambda: attack_by_compression(96 * MIB),
               "values": lambda: attack_by_values(options.limit),
               "gives_back": lambda: attack_by_a_peak(options.seconds, options.strict)}
    for name in attacks if options.only is None else (options.only,):
        attacks[name]()


if __name__ == "__main__":
    main()
