#!/usr/bin/env python3
"""What keys that expire cost a light client.

Keys of 16 bytes are written at an even pace (`kilokv import` of JSON lines), while a light client makes transfers at a low
rate, one in a request (`kilokv-bench`). There are three parts, each on a server of its own with a new data folder:

kept      the same keys never expire: --base-seconds
expiring  each key expires --life after it was written: --seconds
at once   --due keys all expire at one moment; nothing else is written then

The script prints a line for each --every seconds: the latency of the light client, the lag (for how long the oldest key that
was due had been due), records, tombstones and memory. At the end it compares the p99 of the light client, says whether each
key that was to expire did, and how much memory the second half of `expiring` has added.
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from bench import output_of, processor  # noqa: E402
from programs import BIN, Server, memory_of  # noqa: E402


class Feed(threading.Thread):
    """Writes `rate` keys a second, in steps of 10 ms. life_us: 0: they never expire."""

    def __init__(self, server, rate, seconds, life_us):
        super().__init__()
        self._rate, self._seconds, self._life_us = rate, seconds, life_us
        self._import = subprocess.Popen(server.command("kilokv", "--output", "json", "--timeout", "60s", "import", "-",
                                                       "--format", "jsonl", "--quiet"),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.written = 0

    def run(self):
        begin, written = time.monotonic(), 0
        while (elapsed := time.monotonic() - begin) < self._seconds:
            due = int(elapsed * self._rate)
            expiry = f', "expires_at_us": {int(time.time() * 1e6) + self._life_us}' if self._life_us else ""
            self._import.stdin.write("".join(f'{{"key": "expiry/{i:09}", "value": {i}{expiry}}}\n' for i in range(written, due)))
            self._import.stdin.flush()
            written = due
            time.sleep(0.01)
        self._import.stdin.close()
        self.written = json.loads(self._import.stdout.read())["written"]
        self._import.wait()


def light_client(server, options, seconds):
    """The report of transfers at a low rate."""
    return json.loads(output_of(server.command(
        "kilokv-bench", "run", "--workload", "bank", "--keys", 10000, "--batch-size", 1, "--rate", options.rate_of_client,
        "--in-flight", 64, "--warmup", "0s", "--duration", f"{seconds}s", "--json", "-")))


class Lag(threading.Thread):
    """Asks for the lag all the time, and keeps the greatest one since it was taken."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self._server, self._greatest, self.ended = server, 0, False

    def run(self):
        while not self.ended:
            self._greatest = max(self._greatest, self._server.status()["expiry_lag_us"])
            time.sleep(0.1)

    def take(self):
        greatest, self._greatest = self._greatest, 0
        return greatest


def watch(server, options, seconds, what):
    """Lines of `seconds` in all, while something else writes. Returns (p99 in microseconds, lag, resident bytes) of each."""
    samples, lag = [], Lag(server)
    lag.start()
    for end in range(options.every, seconds + 1, options.every):
        report = light_client(server, options, options.every)
        if not report["verified"]["holds"] or report["errors"] or report["unknown"]:
            raise RuntimeError(f"the light client: {report}")
        status, greatest = server.status(), lag.take()
        resident, latency = memory_of(server.pid), report["latency_us"]
        print(f"{what:9} {end:5} s  p50 {latency['p50'] / 1000:7.2f} ms  p99 {latency['p99'] / 1000:7.2f} ms  "
              f"lag {greatest / 1000:8.1f} ms  expiring {status['expiring']:9,}  expired {status['expired']:10,}  records "
              f"{status['records']:9,}  tombstones {status['tombstones']:10,}  engine "
              f"{status['table_memory_bytes'] >> 20:6,} MiB  resident {resident >> 20:6,} MiB", flush=True)
        samples.append((latency["p99"], greatest, resident))
    lag.ended = True
    lag.join()
    return samples


def paced(options, what, seconds, life_us):
    with tempfile.TemporaryDirectory(prefix="kilokv-expiry-", dir=options.folder) as folder:
        with Server(folder, "--tombstones-max", str(options.tombstones_max)) as server:
            light_client(server, options, 1)  # loads the accounts
            feed = Feed(server, options.rate, seconds, life_us)
            feed.start()
            samples = watch(server, options, seconds, what)
            feed.join()
            if life_us:
                gone(server, feed.written)
            return samples


def gone(server, written):
    """Waits until all keys have expired. Each is deleted once."""
    end = time.monotonic() + 60
    while server.status()["expiring"] != 0:
        if time.monotonic() > end:
            raise RuntimeError(f"keys are still there after a minute: {server.status()}")
        time.sleep(0.1)
    expired = server.status()["expired"]
    left = server.client("scan", "--prefix", "expiry/", "--limit", "1")
    if expired != written or left:
        raise RuntimeError(f"{written} keys were to expire, {expired} did; left: {left!r}")
    print(f"all {written:,} keys have expired, each once")


def at_once(options):
    with tempfile.TemporaryDirectory(prefix="kilokv-expiry-", dir=options.folder) as folder:
        with Server(folder, "--tombstones-max", str(options.tombstones_max)) as server:
            light_client(server, options, 1)
            due_us = int((time.time() + options.due_in) * 1e6)
            lines = "".join(f'{{"key": "expiry/{i:09}", "value": {i}, "expires_at_us": {due_us}}}\n' for i in range(options.due))
            written = json.loads(server.client("--output", "json", "import", "-", "--format", "jsonl", "--quiet", stdin=lines))
            left = due_us / 1e6 - time.time()
            if left < 0.5:
                raise RuntimeError(f"the keys were due before they were written: raise --due-in by {1 - left:.0f} s")
            time.sleep(left - 0.5)
            begin, samples = time.monotonic(), []
            while server.status()["expiring"] != 0 or not samples:
                samples += watch(server, options, options.every, "at once")
            print(f"gone within {time.monotonic() - begin - 0.5:.1f} s, in steps of {options.every} s")
            gone(server, written["written"])
            return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="of `expiring` (default %(default)s)")
    parser.add_argument("--base-seconds", type=int, default=60, help="of `kept` (default %(default)s)")
    parser.add_argument("--every", type=int, default=10, help="seconds of a line (default %(default)s)")
    parser.add_argument("--rate", type=int, default=10000, help="keys a second (default %(default)s)")
    parser.add_argument("--life", type=float, default=1, help="seconds that a key lives (default %(default)s)")
    parser.add_argument("--due", type=int, default=1000000, help="keys of `at once` (default %(default)s)")
    parser.add_argument("--due-in", type=int, default=60, help="seconds until they are due (default %(default)s)")
    parser.add_argument("--rate-of-client", type=int, default=200, help="transfers a second (default %(default)s)")
    parser.add_argument("--tombstones-max", type=int, default=1000000, help="of the server (default %(default)s)")
    parser.add_argument("--folder", help="where the data folders are made (default: the temporary folder)")
    options = parser.parse_args()
    print(f"{output_of([BIN / 'kilokvd', '--version']).strip()}; {processor()}, {platform.platform()}; {options}", flush=True)
    kept = paced(options, "kept", options.base_seconds, 0)
    expiring = paced(options, "expiring", options.seconds, int(options.life * 1e6))
    due = at_once(options)
    base = statistics.median(p99 for p99, _, _ in kept)
    for what, samples in (("expiring", expiring), ("at once", due)):
        p99 = [sample[0] for sample in samples]
        print(f"{what}: p99 of the light client {statistics.median(p99) / base:.2f} times that of `kept` (median of the lines), "
              f"{max(p99) / base:.2f} at most; lag at most {max(sample[1] for sample in samples) / 1000:.1f} ms")
    second_half = [resident for _, _, resident in expiring[len(expiring) // 2:]]
    print(f"expiring: resident memory in the second half {min(second_half) >> 20:,} to {max(second_half) >> 20:,} MiB")


if __name__ == "__main__":
    main()
