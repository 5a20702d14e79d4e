"""Starts the real programs for the crash tests: the server on a folder of its own, and clients against it.

The programs are found in $KILOKV_BIN_DIR, or in build/release/bin. $KILOKV_SANITIZED names their sanitizers, if any
(tests/sanitize/watched.py sets it). $KILOKV_MEMORY_LIMIT is the memory limit of each server that sets none itself, as for
every setting. Whatever the limit is, the peak of a server's resident memory may not exceed it by more than a tenth. The class
Server says which servers are checked.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("KILOKV_BIN_DIR", ROOT / "build" / "release" / "bin"))
JUDGE = ROOT / "tests" / "judge" / "judge.py"

SANITIZED = os.environ.get("KILOKV_SANITIZED", "")
SLOWER = 6 if SANITIZED else 1  # every time that a test waits at most
MOST_OF_LIMIT = 1.1  # how much of its limit a server's resident memory may be


def leaves_out(what, sanitizer=SANITIZED):
    """Whether a check means nothing under sanitizers, or under this one: they take memory and time of their own. Prints
    what is left out."""
    if not SANITIZED or SANITIZED != sanitizer:
        return False
    print(f"left out under -fsanitize={SANITIZED}: {what}", flush=True)
    return True


def until(condition, what, seconds=30):
    """Polls until the condition holds, and returns what it returned."""
    seconds *= SLOWER
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.005)


def memory_of(pid, field="VmRSS"):
    """Bytes of a process that runs. VmHWM: the peak of its resident memory. 0: it has ended."""
    try:
        match = re.search(rf"^{field}:\s+(\d+) kB$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(match[1]) << 10 if match else 0


class Server:
    """A kilokvd of this test. Starting again after a kill keeps the folder and the port.

    A server that is used with `with` checks its memory at the end of the block, if the block has not failed
    (enterClassContext() and the like are such a use, too). A server that a test starts by start() alone never checks its
    memory.

    `programs` is the folder of the built programs. `peak` is the highest resident memory of all its starts that have ended,
    or are about to end. `limit` is the memory limit that the last of them told in its log; 0: none has told it.
    """

    def __init__(self, folder, *flags, environment=None, tracer=(), programs=BIN):
        self.folder = pathlib.Path(folder)
        self._programs = pathlib.Path(programs)
        self.log = self.folder / "kilokvd.log"
        self.endpoint = None
        self._flags, self._environment, self._tracer = flags, environment or {}, tracer
        self._process = None
        self.starts = 0
        self.peak = self.limit = 0
        self._was_ready = False  # any of its starts

    def start(self, wait=True):
        assert self._process is None
        self.starts += 1
        listen = self.endpoint or "127.0.0.1:0"
        command = [*self._tracer, self._programs / "kilokvd", "--data-dir", self.folder / "data", "--listen", listen, *self._flags]
        with open(self.log, "ab") as log:
            self._seen = log.tell()
            # Each server of a test has a port of its own for its pages, unless the test says otherwise.
            environment = {"KILOKV_HTTP_LISTEN": "127.0.0.1:0", **os.environ, **self._environment}
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.pid = self._process.pid
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=60):
        self.endpoint = until(self._ready_endpoint, "kilokvd ready", seconds)
        self._was_ready = True
        self._find_limit()  # now, because the log file may be moved away

    def _ready_endpoint(self):
        text = self._said()
        if self._process.poll() is not None:
            raise AssertionError(f"kilokvd ended with {self._process.returncode}:\n{text[-4000:]}")
        match = re.search(r"kilokvd ready.*?endpoint=(\S+)", text)
        return match and match[1]

    def pages(self):
        """HOST:PORT of the pages over HTTP. They are there before the server is ready."""
        return until(lambda: re.search(r"serves pages over HTTP http_endpoint=(\S+)", self._said()), "the pages")[1]

    def look_at_memory(self):
        """Keeps the peak of the resident memory. The system tells it only while the process runs."""
        self.peak = max(self.peak, memory_of(self.pid, "VmHWM"))
        return self.peak

    def check_memory(self):
        """Checks the peaks of all starts that have ended, and shows them if the test chose a limit. A server that was ready
        must have told its limit, because nothing can be checked without it. A server that was never ready may have ended
        before. `programs` of another build may be older than that line of the log."""
        if self.limit == 0:
            if self._was_ready and self._programs == BIN:
                raise AssertionError(f"the log of kilokvd has no line \"kilokvd memory limit_bytes=...\", so nothing can say "
                                     f"whether its peak of {self.peak} bytes of memory is too much:\n{self._said()[-2000:]}")
            return
        share = self.peak / self.limit
        if "--memory-limit" in self._flags or "KILOKV_MEMORY_LIMIT" in {**os.environ, **self._environment}:
            print(f"memory of kilokvd: at most {self.peak >> 20} MiB, {share:.3f} of its limit of {self.limit >> 20} MiB",
                  flush=True)
        if share > MOST_OF_LIMIT and not leaves_out("the limit of resident memory"):
            raise AssertionError(f"kilokvd took {self.peak} bytes of memory; its limit is {self.limit}")

    def kill(self):
        """SIGKILL: nothing is flushed, nothing is said."""
        if self._process is not None:
            self.look_at_memory()
            self._process.kill()
            self._process.wait()
            self._ended()

    def stop(self, seconds=60):
        """SIGTERM: drains."""
        self._process.terminate()
        return self.wait_end(seconds)

    def wait_end(self, seconds=60):
        """The exit code of a server that ends by itself."""
        end = time.monotonic() + seconds * SLOWER
        while self._process.poll() is None:
            self.look_at_memory()
            if time.monotonic() > end:
                raise AssertionError(f"kilokvd did not end within {seconds * SLOWER} s")
            time.sleep(0.002)
        return self._ended()

    def _ended(self):
        code, self._process = self._process.returncode, None
        self._find_limit()
        return code

    def _find_limit(self):
        told = re.search(r"kilokvd memory limit_bytes=(\d+)", self._said())
        self.limit = int(told[1]) if told else self.limit

    def _said(self):
        """What the log says since the last start."""
        return self.log.read_bytes()[self._seen:].decode(errors="replace") if self.log.exists() else ""

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.kill()
        if kind is not None:
            print(f"--- end of the server's log ({self.starts} starts)")
            print(self.log.read_text(errors="replace")[-4000:])
        else:
            self.check_memory()

    def command(self, program, *arguments):
        return [str(part) for part in (self._programs / program, *arguments, "--endpoint", self.endpoint)]

    def client(self, *arguments, stdin="", codes=(0,)):
        """Runs `kilokv` with these arguments; returns what it printed."""
        command = self.command("kilokv", *arguments)
        run = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120 * SLOWER)
        assert run.returncode in codes, f"kilokv {arguments}: exit {run.returncode}: {run.stdout}{run.stderr}"
        return run.stdout

    def transactions(self, *transactions, batch=True, codes=(0, 1)):
        """Sends them by `kilokv txn`; returns their history lines by index."""
        return parse_lines(self.client(*transaction_arguments(batch), stdin=as_lines(transactions), codes=codes))

    def start_transactions(self, *transactions, wait=False):
        """The same as one request in the background; finish with history(). `wait`: also if the server is away at first."""
        waiting = ["--wait=60s"] if wait else []
        process = subprocess.Popen(self.command("kilokv", *waiting, *transaction_arguments(True)), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(as_lines(transactions))
        process.stdin.close()
        process.stdin = None
        return process

    def status(self):
        """The counters and sizes by their names."""
        return json.loads(self.client("--output", "json", "status"))

    def parked(self):
        """How many transactions wait on the server."""
        return self.status()["parked"]

    def value(self, key):
        """The integer of a key; 0 if it is absent."""
        return int(self.client("get", key, codes=(0, 1)).strip() or 0)

    def pairs(self):
        """All pairs, as the JSON lines of `kilokv scan`."""
        return [json.loads(line) for line in self.client("--output", "json", "scan").splitlines()]

    def scan_to(self, path):
        with open(path, "w", encoding="utf-8") as output:
            subprocess.run(self.command("kilokv", "--output", "json", "scan"), stdout=output, check=True,
                           timeout=300 * SLOWER)


class LoggingServer(Server):
    """A kilokvd with --log-file: what it says on standard error stays in `log`."""

    def __init__(self, folder, *flags, **how):
        self.log_file = pathlib.Path(folder) / "logs" / "kilokvd.txt"
        super().__init__(folder, "--log-file", self.log_file, "--port-file", pathlib.Path(folder) / "port", *flags, **how)

    def _ready_endpoint(self):
        assert self._process.poll() is None, f"kilokvd ended with {self._process.returncode}"
        port = self.folder / "port"
        return port.exists() and f"127.0.0.1:{port.read_text().strip()}"

    def _said(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def lines(self):
        return self.log_file.read_text().splitlines()

    def has_line(self, words):
        return lambda: self.log_file.exists() and any(words in line for line in self.lines())

    def send(self, which):
        os.kill(self.pid, which)


def transaction_arguments(batch):
    return ["--timeout", "60s", "txn", *(["--batch"] if batch else [])]


def as_lines(transactions):
    return "".join(json.dumps(transaction) + "\n" for transaction in transactions)


def parse_lines(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return sorted((line for line in lines if "outcome" in line), key=lambda line: (line["request"], line["index"]))


def history(process):
    """The history lines of start_transactions(), when it ends."""
    output, errors = process.communicate(timeout=120 * SLOWER)
    assert process.returncode in (0, 1), f"kilokv txn: exit {process.returncode}: {output}{errors}"
    return parse_lines(output)


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="kilokv-test-")


def add(key, delta):
    return {"op": "add", "key": key, "delta": delta}


def wait_for(key, at_least):
    return {"key": key, "is": "ge", "value": at_least, "when_false": "wait"}
