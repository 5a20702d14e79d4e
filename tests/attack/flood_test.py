#!/usr/bin/env python3
"""Floods of one connection. The server cuts the connection off, its memory stays bounded, and a light client goes on.

    continuation  headers that never end
    resets        calls that are reset at once
    pings         pings, one after the other
    settings      settings, one after the other

Only an end that comes from the server counts as a cut: the connection is closed, or reset. If the server merely stops to
read, the attacker goes on trying.

The attacker has a core of its own where there are two.
"""

import argparse
import multiprocessing
import pathlib
import select
import sys
import time

import http2
from greedy_test import fill, range_get, transaction
from light_client import ATTACKER, CORES, MIB, LightClient, check_memory, p99, rss_of, take_core

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, leaves_out, temporary_folder, until  # noqa: E402

LONGEST_BATCH = 0.05  # seconds that the limits of batches allow at most
CUT_WITHIN = 2  # seconds from the begin of a flood until its connection is cut off


def end_headers_never(connection):
    connection.sendall(http2.frame(http2.HEADERS, 0, 1, http2.call_headers("Get")))
    fields = http2.field("x", "y" * 4000) * 4
    chunk = http2.frame(http2.CONTINUATION, 0, 1, fields[:16384]) * 16
    while True:
        yield chunk


def reset_calls(connection):
    block = http2.call_headers("Get")
    stream = 1
    while True:
        chunk = bytearray()
        for _ in range(500):
            chunk += http2.frame(http2.HEADERS, http2.END_HEADERS, stream, block)
            chunk += http2.frame(http2.RST_STREAM, 0, stream, http2.CANCEL.to_bytes(4, "big"))
            stream += 2
        yield bytes(chunk)


def ping(connection):
    chunk = http2.frame(http2.PING, 0, 0, bytes(8)) * 1000
    while True:
        yield chunk


def settings(connection):
    chunk = http2.frame(http2.SETTINGS, 0, 0, bytes([0, 4, 0, 0, 255, 255])) * 1000
    while True:
        yield chunk


FLOODS = {"continuation": end_headers_never, "resets": reset_calls, "pings": ping, "settings": settings}


class Seen:
    """What the attacker counts; shared with the process that attacks. Times are those of time.monotonic()."""

    def __init__(self):
        self.connections, self.cuts, self.stalls, self.bytes = (multiprocessing.Value("L", 0) for _ in range(4))
        self.began, self.first_cut = multiprocessing.Value("d", 0), multiprocessing.Value("d", 0)


def drain(connection):
    """Throws away what the server has sent. Raises ConnectionError if the server has closed the connection."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 20):
            pass
        raise ConnectionError
    except http2.WOULD_BLOCK:
        pass
    finally:
        connection.settimeout(1)


def send_all(connection, chunk, seen, end):
    """Sends the chunk, however long the server does not read it."""
    left = memoryview(chunk)
    while left and time.monotonic() < end:
        try:
            count = connection.send(left)
        except TimeoutError:
            seen.stalls.value += 1
        else:
            left = left[count:]
            seen.bytes.value += count
        drain(connection)


def flood(kind, endpoint, seconds, seen, authority):
    """Sends until it is cut off, and then connects again. `authority`: as for http2.connect()."""
    take_core("attacker")
    seen.began.value = time.monotonic()
    end = seen.began.value + seconds
    while time.monotonic() < end:
        try:
            connection = http2.connect(endpoint, source=ATTACKER, authority=authority)
        except OSError:  # the address has to wait
            time.sleep(0.05)
            continue
        with connection:
            connection.settimeout(1)
            seen.connections.value += 1
            try:
                for chunk in FLOODS[kind](connection):
                    send_all(connection, chunk, seen, end)
                    if time.monotonic() > end:
                        return
            except TimeoutError:  # the first bytes of a flood were not read; they are not the flood
                seen.stalls.value += 1
            except OSError:
                seen.cuts.value += 1
                if seen.cuts.value == 1:
                    seen.first_cut.value = time.monotonic()
                time.sleep(0.05)


def longest_batch(server):
    """How long the largest transaction takes, as the median of 20 calls by somebody who may read."""
    fill(server, "k", 10000, 1)
    payload = http2.bytes_field(2, transaction(*[range_get(b"k", b"l", 10000) for _ in range(10)]))
    login = (("authorization", f"Bearer {server.token_file.read_text().strip()}"),) if hasattr(server, "token_file") else ()
    caller = http2.Caller(server.endpoint, authority=getattr(server, "authority", None))
    times = []
    for _ in range(20):
        began, received = time.monotonic(), caller.received
        caller.call("Execute", payload, *login)
        while caller.open:
            select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.01)
            caller.read()
        times.append(time.monotonic() - began)
        assert caller.received - received > 100000, "the transaction did not read its ranges"
    caller.close()
    return sorted(times)[len(times) // 2]


def attack(kind, seconds, rss_growth_max, strict, server_class=Server):
    """`server_class`: GuardedServer for floods over TLS, by somebody without a login."""
    with temporary_folder() as folder, server_class(folder) as server:
        longest = longest_batch(server)
        light = LightClient(server)
        warm = light.run(0.5)
        alone = light.run(seconds)
        before = rss_of(server.pid)
        highest = before

        def watch():
            nonlocal highest
            highest = max(highest, rss_of(server.pid))

        seen = Seen()
        attacker = multiprocessing.Process(target=flood, args=(kind, server.endpoint, seconds + 2, seen,
                                                               getattr(server, "authority", None)))
        attacker.start()
        until(lambda: seen.began.value, "the begin of the flood")
        first = light.run(seen.began.value + 2 - time.monotonic(), watch)
        later = light.run(seconds, watch)
        attacker.join(60)
        assert attacker.exitcode == 0
        light.close()
        log = server.log.read_text()
        cut_after = seen.first_cut.value - seen.began.value
        limit = 3 * p99(alone) + min(longest, LONGEST_BATCH)
        print(f"{kind}: {seen.bytes.value >> 20} MiB by {seen.connections.value} connections in {seconds + 2:.0f} s, "
              f"{seen.cuts.value} of them cut off by the server"
              + (f", the first after {cut_after:.2f} s" if seen.cuts.value else "")
              + f"; {seen.stalls.value} stalls of a second; memory {before >> 20} to {highest >> 20} MiB; p99 of the light "
              f"client {p99(alone) * 1e3:.1f} ms alone, {p99(first) * 1e3:.1f} ms in the first two seconds, "
              f"{p99(later) * 1e3:.1f} ms later (longest {max(later) * 1e3:.1f}; at most {limit * 1e3:.1f} are wanted); the "
              f"longest batch takes {longest * 1e3:.1f} ms", flush=True)
        assert server.value("light") == sum(map(len, (warm, alone, first, later))), "the books are wrong"
        check_memory(highest - before <= rss_growth_max, "the server's memory grew too much")
        if seen.cuts.value == 0 and seen.bytes.value > 0 and leaves_out("that a slow flood is cut off", "thread"):
            return
        assert seen.cuts.value > 0, "the flood was never cut off"  # by gRPC, or by the server
        cut = [line for line in log.splitlines() if "kilokvd refused or cut off connections" in line]
        assert kind == "pings" or cut and f"last_address={ATTACKER}" in cut[0], log
        if strict:
            assert cut_after <= CUT_WITHIN, f"the flood was cut off after {cut_after:.2f} s only"
            assert p99(later) <= limit, "the light client waits too long"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="of each run: alone, and under each flood")
    parser.add_argument("--memory", type=int, default=300, help="most MiB by which the server may grow")
    parser.add_argument("--strict", action="store_true", help="fail if the light client waits too long; needs two idle cores")
    parser.add_argument("--only", choices=FLOODS, help="one flood")
    options = parser.parse_args()
    assert not options.strict or len(CORES) > 1, "the attacker needs a core of its own"
    take_core("server")
    for kind in FLOODS if options.only is None else (options.only,):
        attack(kind, options.seconds, options.memory * MIB, options.strict)


if __name__ == "__main__":
    main()
