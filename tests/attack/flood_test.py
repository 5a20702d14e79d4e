#!/usr/bin/env python3
"""Row 5: floods of one connection. Headers that never end (CONTINUATION), calls that are reset at once, pings and settings.
The server cuts the connection off, its memory stays bounded, and a light client goes on.

The attacker has a core of its own where there are two.
"""

import argparse
import multiprocessing
import pathlib
import sys
import time

import http2
from light_client import ATTACKER, MIB, LightClient, check_memory, p99, rss_of, take_core

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, temporary_folder  # noqa: E402

LONGEST_BATCH = 0.05  # seconds


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


FLOODS = {"headers that never end": end_headers_never, "calls that are reset": reset_calls, "pings": ping,
          "settings": settings}


def flood(kind, endpoint, seconds, connections, sent, authority):
    """Sends until it is cut off, and then connects again; `connections` and `sent` count. `authority`: as for
    http2.connect()."""
    take_core("attacker")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with http2.connect(endpoint, source=ATTACKER, authority=authority) as connection:
                connection.settimeout(1)
                connections.value += 1
                for chunk in FLOODS[kind](connection):
                    connection.sendall(chunk)
                    sent.value += len(chunk)
                    connection.setblocking(False)
                    try:
                        while connection.recv(1 << 20):
                            pass
                        raise ConnectionError
                    except http2.WOULD_BLOCK:
                        connection.settimeout(1)
                    if time.monotonic() > end:
                        return
        except (OSError, ConnectionError):
            time.sleep(0.05)


def attack(kind, seconds, rss_growth_max, strict, server_class=Server):
    """`server_class`: GuardedServer for floods over TLS, by somebody without a login."""
    with temporary_folder() as folder, server_class(folder) as server:
        light = LightClient(server)
        alone = light.run(seconds)
        before = rss_of(server.pid)
        highest = before

        def watch():
            nonlocal highest
            highest = max(highest, rss_of(server.pid))

        connections, sent = multiprocessing.Value("L", 0), multiprocessing.Value("L", 0)
        attacker = multiprocessing.Process(target=flood, args=(kind, server.endpoint, seconds + 2, connections, sent,
                                                               getattr(server, "authority", None)))
        attacker.start()
        first = light.run(2, watch)
        later = light.run(seconds, watch)
        attacker.join(60)
        assert attacker.exitcode == 0
        light.close()
        assert server.value("light") == len(alone) + len(first) + len(later)
        log = server.log.read_text()
        print(f"{kind}: {sent.value >> 20} MiB by {connections.value} connections in {seconds + 2:.0f} s; memory "
              f"{before >> 20} to {highest >> 20} MiB; p99 of the light client {p99(alone) * 1e3:.1f} ms alone, "
              f"{p99(first) * 1e3:.1f} ms in the first two seconds, {p99(later) * 1e3:.1f} ms later (longest "
              f"{max(later) * 1e3:.1f})", flush=True)
        check_memory(highest - before <= rss_growth_max, "the server's memory grew too much")
        cut = [line for line in log.splitlines() if "kilokvd refused or cut off connections" in line]
        assert connections.value > 1, "the flood was never cut off"  # by gRPC, or by the server
        assert kind == "pings" or cut and f"last_address={ATTACKER}" in cut[0], log
        if strict:
            assert p99(later) <= 3 * p99(alone) + LONGEST_BATCH, "the light client waits too long"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="of each run: alone, and under each flood")
    parser.add_argument("--memory", type=int, default=300, help="most MiB by which the server may grow")
    parser.add_argument("--strict", action="store_true", help="fail if the light client waits too long; needs two idle cores")
    parser.add_argument("--only", choices=FLOODS, help="one flood")
    options = parser.parse_args()
    take_core("server")
    for kind in FLOODS if options.only is None else (options.only,):
        attack(kind, options.seconds, options.memory * MIB, options.strict)


if __name__ == "__main__":
    main()
