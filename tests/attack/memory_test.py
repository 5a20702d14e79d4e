#!/usr/bin/env python3
"""The memory of the server: it keeps to --memory-limit, and gives memory back.

    row 1    long messages of the shortest elements, each of which takes many times its bytes when it is parsed
    row 4    values until memory is full: new data is refused, reads and deletes go on, and the server starts again
    row 6    the resident memory, after all clients of a peak have left
"""

import argparse
import json
import pathlib
import re
import select
import subprocess
import sys
import time

import http2
from greedy_test import Attacker, add_one, batch_of, fill, keep_in_flight, range_get, status, transaction
from light_client import MIB, check_memory, rss_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SANITIZED, SLOWER, Server, leaves_out, temporary_folder, until  # noqa: E402

MESSAGE_BYTES = 3 << 20  # of values in one request
REFUSAL = re.compile(r"memory is (\d+) bytes needed = (\d+) of data, with new data \+ (\d+) kept for everything else; "
                     r"the limit is (\d+) bytes \(raise --memory-limit\)")


class Highest:
    """The highest resident memory of a server."""

    def __init__(self, server):
        self.server, self.bytes = server, 0

    def look(self):
        self.bytes = max(self.bytes, rss_of(self.server.pid))


def fill_memory(server, prefix, size, highest):
    """Puts values of this size until they are refused. Returns their keys, and the refusal."""
    stored = []
    value = "v" * size
    count = max(1, min(5000, MESSAGE_BYTES // (size + 50)))
    while True:
        keys = [f"{prefix}{len(stored) + i:08d}" for i in range(count)]
        lines = "".join(json.dumps({"then": [{"op": "put", "key": key, "value": key + value}]}) + "\n" for key in keys)
        output = server.client_run("--timeout", f"{SLOWER}s", "txn", "--batch", stdin=lines)
        highest.look()
        if output.returncode == 0:
            stored += keys
            continue
        # Under a sanitizer, the time may be over while the client tries again.
        is_late = SANITIZED and "DEADLINE_EXCEEDED" in output.stderr
        assert output.returncode == 4 and (is_late or "--memory-limit" in output.stderr), (
            output.stdout[-1000:] + output.stderr)
        if count == 1 and not is_late:
            return stored, output.stderr
        count = max(1, count // 8)


class MemoryServer(Server):
    def client_run(self, *arguments, stdin=""):
        return subprocess.run(self.command("kilokv", *arguments), input=stdin, capture_output=True, text=True,
                              check=False, timeout=120)


def check_reads_and_deletes(server, stored):
    assert len(server.client("get", stored[0])) > 10
    assert server.client("scan", "--prefix", stored[1]).startswith(stored[1])
    server.client("del", stored[0])
    assert server.client("get", stored[0], codes=(1,)) is not None


def attack_by_values(limit_mib, strict):
    limit = limit_mib * MIB
    with temporary_folder() as folder, MemoryServer(folder, "--memory-limit", f"{limit_mib}MiB") as server:
        highest = Highest(server)
        stored = {}
        for size in (100000, 2000, 100, 10):
            began = time.monotonic()
            stored[size], errors = fill_memory(server, f"size{size}/", size, highest)
            shown = REFUSAL.search(errors)
            assert shown, errors
            needed, data, rest, told = map(int, shown.groups())
            assert needed == data + rest and needed > told == limit, errors
            print(f"row 4: {len(stored[size])} values of {size} bytes in {time.monotonic() - began:.0f} s; memory up to "
                  f"{highest.bytes >> 20} MiB of {limit_mib}", flush=True)
        check_reads_and_deletes(server, stored[100000])
        now = status(server)
        assert now["memory_limit_bytes"] == limit
        assert now["memory_sum_bytes"] == sum(owner["bytes"] for owner in now["memory"].values())
        assert sum(owner["bound_bytes"] for owner in now["memory"].values()) == limit
        print(f"row 4: sum {now['memory_sum_bytes'] >> 20} MiB, RSS {now['memory_rss_bytes'] >> 20} MiB: "
              + ", ".join(f"{name} {owner['bytes'] >> 20}" for name, owner in now["memory"].items()), flush=True)
        # Deletes make room.
        lines = "".join(json.dumps({"then": [{"op": "delete", "key": key}]}) + "\n" for key in stored[100000][1:200])
        assert server.client_run("txn", "--batch", stdin=lines).returncode == 0
        until(lambda: server.client_run("put", "new", "v" * 1000).returncode == 0, "room for a new value", 10)
        highest.look()
        check_memory(highest.bytes <= 1.1 * limit, f"RSS of {highest.bytes >> 20} MiB")
        # The same data fits again.
        for end in (server.stop, server.kill):
            end()
            server.start()
            highest.look()
            check_reads_and_deletes(server, stored[100000][-4:] if end == server.stop else stored[2000])
        check_memory(highest.bytes <= 1.1 * limit, f"RSS of {highest.bytes >> 20} MiB")
        print(f"row 4: it started again with {highest.bytes >> 20} MiB at most", flush=True)
        assert server.stop() == 0
        refuses_to_start(folder, now)


def refuses_to_start(folder, now):
    """With less memory than the data needs, and with less than anything needs."""
    for limit, code, words in (("450MiB", 1, "bytes needed by the stored data, for which a limit of"),
                               ("100MiB", 2, "the limit is at least")):
        server = MemoryServer(folder, "--memory-limit", limit)
        seen = server.log.stat().st_size
        server.start(wait=False)
        highest = 0
        while server._process.poll() is None:
            highest = max(highest, rss_of(server.pid))
            time.sleep(0.005)
        assert server.wait_end() == code
        text = server.log.read_bytes()[seen:].decode()
        assert words in text and "--memory-limit" in text, text
        check_memory(highest < now["memory_rss_bytes"] // 2, f"it took {highest >> 20} MiB before it said so")
        print(f"row 4: with {limit} it ends with code {code}, after {highest >> 20} MiB", flush=True)


def attack_by_elements(memory):
    """Row 1: messages of 4 MB of empty elements, in several calls at once. All are refused."""
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
        highest = Highest(server)
        for method, payload in payloads:
            callers = [http2.Caller(server.endpoint) for _ in range(4)]
            for caller in callers:
                caller.call(method, payload)
            end = time.monotonic() + 100 * SLOWER
            while any(caller.open for caller in callers):
                assert time.monotonic() < end, f"{method} does not end; memory {before >> 20} to {highest.bytes >> 20} MiB"
                select.select(callers, [caller for caller in callers if caller.wants_to_write()], [], 0.002)
                for caller in callers:
                    caller.read()
                highest.look()
            for caller in callers:
                caller.close()
        grown = highest.bytes - before
        print(f"row 1: memory {before >> 20} to {highest.bytes >> 20} MiB, by messages of empty elements", flush=True)
        check_memory(grown <= memory, f"from {before >> 20} to {highest.bytes >> 20} MiB")
        assert server.client("get", "a") == "1\n"
        assert server.stop() == 0


def peak(server, seconds):
    """Clients that send and read as much as they can; they add no data. Returns the highest memory."""
    highest = Highest(server)
    adds = batch_of([transaction(add_one(b"k%06d" % (number % 10000))) for number in range(8192)])
    reads = batch_of([transaction(range_get(b"k", b"l", 10000))] * 200)
    gets = b"".join(http2.bytes_field(1, b"v%06d" % number) for number in range(7))
    attacks = [("ExecuteBatch", adds, 64, 2), ("ExecuteBatch", reads, 16, 4), ("Get", gets, 32, 64)]
    attackers = [Attacker(keep_in_flight, server.endpoint, method=method, payload=payload, connections=connections,
                          calls=calls) for method, payload, connections, calls in attacks]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        highest.look()
        time.sleep(0.02)
    for attacker in attackers:
        attacker.stop()
    return highest.bytes


def attack_by_a_peak(seconds, strict):
    with temporary_folder() as folder, MemoryServer(folder) as server:
        fill(server, "k", 10000, 1)
        fill(server, "v", 7, "x" * (512 << 10))
        time.sleep(1)
        before = rss_of(server.pid)
        most = before * 12 // 10 + 64 * MIB
        highest = peak(server, seconds)
        left = time.monotonic()
        if leaves_out("row 6: the memory that the server gives back after a peak"):
            assert server.stop() == 0
            return
        assert highest > most, f"the peak was only {highest >> 20} MiB"
        until(lambda: rss_of(server.pid) <= most, f"RSS of {most >> 20} MiB", 30)
        print(f"row 6: RSS {before >> 20} MiB before, {highest >> 20} at the peak, {rss_of(server.pid) >> 20} after "
              f"{time.monotonic() - left:.0f} s", flush=True)
        if strict:
            time.sleep(max(0, 30 - (time.monotonic() - left)))
            print(f"row 6: {rss_of(server.pid) >> 20} MiB after 30 s: "
                  + str({name: owner["bytes"] >> 20 for name, owner in status(server)["memory"].items()}))
            assert rss_of(server.pid) <= most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="of the peak")
    parser.add_argument("--limit", type=int, default=512, help="MiB that the server may take in row 4")
    parser.add_argument("--strict", action="store_true", help="look again after 30 s")
    parser.add_argument("--only", type=int, choices=(1, 4, 6), help="the attack of one row")
    options = parser.parse_args()
    rows = {1: lambda: attack_by_elements(96 * MIB),
            4: lambda: attack_by_values(options.limit, options.strict),
            6: lambda: attack_by_a_peak(options.seconds, options.strict)}
    for row in rows if options.only is None else (options.only,):
        rows[row]()


if __name__ == "__main__":
    main()
