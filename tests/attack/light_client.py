"""The client that an attack must not hurt, and what the attacks measure."""

import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, leaves_out, memory_of  # noqa: E402

ATTACKER = "127.0.0.2"  # another address of this machine than that of the light client
MIB = 1 << 20
CORES = sorted(os.sched_getaffinity(0))


def take_core(which, strict=False):
    """Where there are two cores, the attacker has the last one, and server and light client have the first. `strict`: ends
    the test where there is only one core, because times mean nothing then."""
    if len(CORES) > 1:
        os.sched_setaffinity(0, {CORES[-1] if which == "attacker" else CORES[0]})
    elif strict:
        sys.exit(f"--strict needs two cores, one of them for the attacker; this process may use only core {CORES[0]}")


def rss_of(pid):
    return memory_of(pid)


def check_memory(holds, problem):
    """Checks a limit of resident memory."""
    if not leaves_out(f"the limit of resident memory ({problem})"):
        assert holds, problem


class LightClient:
    """One ADD after the other; the times of all."""

    def __init__(self, server):
        self.process = subprocess.Popen(
            [*server.command("kilokv", "--output", "json", "--timeout", f"{60 * SLOWER}s", "txn")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def add(self):
        began = time.monotonic()
        self.process.stdin.write('{"then": [{"op": "add", "key": "light", "delta": 1}]}\n')
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert '"COMMITTED"' in line, line
        return time.monotonic() - began

    def run(self, seconds, watch=lambda: None):
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            times.append(self.add())
            watch()
            time.sleep(0.002)
        return times

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=60) == 0


def p99(times):
    return statistics.quantiles(times, n=100)[98]
