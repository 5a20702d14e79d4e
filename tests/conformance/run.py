#!/usr/bin/env python3
"""Runs the scripts of the conformance test against a client library, through its adapter. README.md has the protocol.

  run.py --adapter COMMAND [SCRIPT ...]    SCRIPT: a name, such as guards; none: all

Exit codes: 0 every step of every script is as expected, 1 not.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

from matching import Mismatch, fill_in, match

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get("KILOKV_BIN_DIR", HERE.parent.parent / "build" / "release" / "bin"))
OF_THE_RUNNER = {"expect", "error", "misuse", "or_misuse", "start", "note"}
STEPS = ("call", "answer", "until", "server", "sleep_ms")


class Server:
    """The kilokvd of a script. After a kill or a stop it starts again on the same folder and port."""

    def __init__(self, folder, flags):
        self._folder, self._flags = pathlib.Path(folder), flags
        self._log = self._folder / "kilokvd.log"
        self._process = None
        self.endpoint = "127.0.0.1:0"

    def start(self):
        with open(self._log, "ab") as log:
            begin = log.tell()
            self._process = subprocess.Popen(
                [BIN / "kilokvd", "--data-dir", self._folder / "data", "--listen", self.endpoint, "--http-listen",
                 "off", *self._flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while True:
            text = self._log.read_bytes()[begin:].decode(errors="replace")
            ready = re.search(r"kilokvd ready.*?endpoint=(\S+)", text)
            if ready:
                self.endpoint = ready[1]
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"kilokvd is not ready:\n{text[-2000:]}")
            time.sleep(0.01)

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self):
        self._process.terminate()
        self._process.wait(60)
        self._process = None


class Adapter:
    """The adapter as a process. Its answers may come in any order."""

    def __init__(self, command):
        self._process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         encoding="utf-8")
        self._answers = {}
        self._last = 0
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, call):
        """Returns where the answer will be."""
        self._last += 1
        place = self._answers[self._last] = queue.Queue()
        self._process.stdin.write(json.dumps({"id": self._last, **call}) + "\n")
        self._process.stdin.flush()
        return place

    @staticmethod
    def wait(place, timeout):
        try:
            answer = place.get(timeout=timeout)
        except queue.Empty:
            raise Mismatch(f"no answer within {timeout} s") from None
        if answer is None:
            raise Mismatch("the adapter has ended, or has written a line that is no answer")
        return answer

    def close(self):
        """Returns its exit code."""
        self._process.stdin.close()
        try:
            return self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _read(self):
        try:
            for line in self._process.stdout:
                answer = json.loads(line)
                self._answers.pop(answer["id"]).put(answer)
        except (ValueError, KeyError, TypeError) as error:
            print(f"the adapter has written a line that is no answer: {error!r}", file=sys.stderr)
        for place in list(self._answers.values()):
            place.put(None)


class Run:
    """One script against one server and one adapter."""

    def __init__(self, server, adapter, timeout):
        self._server, self._adapter, self._timeout = server, adapter, timeout
        self._kept, self._started = {}, {}

    def step(self, step):
        if sum(kind in step for kind in STEPS) != 1:
            raise Mismatch(f"a step has exactly one of {', '.join(STEPS)}")
        if "call" in step:
            self._call(step)
        elif "answer" in step:
            self._compare(step, self._adapter.wait(self._started.pop(step["answer"]), self._timeout))
        elif "until" in step:
            self._until(step)
        elif "server" in step:
            getattr(self._server, step["server"])()
        else:
            time.sleep(step["sleep_ms"] / 1000)

    def end(self):
        if self._started:
            raise Mismatch(f"the script does not look at the answers of {', '.join(self._started)}")

    def _call(self, step):
        place = self._send({name: value for name, value in step.items() if name not in OF_THE_RUNNER})
        if "start" in step:
            self._started[step["start"]] = place
        else:
            self._compare(step, self._adapter.wait(place, self._timeout))

    def _send(self, call):
        call = fill_in(call, self._kept)
        if call.get("endpoint") == "$ENDPOINT":
            call["endpoint"] = self._server.endpoint
        return self._adapter.send(call)

    def _compare(self, step, answer):
        if step.get("misuse"):
            if "misuse" not in answer:
                raise Mismatch(f"misuse is expected, not {json.dumps(answer)[:500]}")
            return
        if step.get("or_misuse") and "misuse" in answer:
            return
        kind = "error" if "error" in step else "ok"
        if kind not in answer:
            raise Mismatch(f"{kind} is expected, not {json.dumps(answer)[:500]}")
        match(fill_in(step.get("error", step.get("expect", {})), self._kept), answer[kind], self._kept, kind)

    def _until(self, step):
        end = time.monotonic() + 20
        while True:
            try:
                self._compare(step, self._adapter.wait(self._send(step["until"]), self._timeout))
                return
            except Mismatch:
                if time.monotonic() > end:
                    raise
            time.sleep(0.02)


def run_script(path, options):
    """Returns what is wrong; None: nothing."""
    script = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="kilokv-conformance-") as folder:
        server, adapter = Server(folder, script.get("server", [])), None
        try:
            server.start()
            adapter = Adapter(options.adapter)
            run = Run(server, adapter, options.timeout)
            for number, step in enumerate(script["steps"], 1):
                try:
                    run.step(step)
                except Mismatch as mismatch:
                    return f"step {number}: {json.dumps(step)[:400]}\n    {mismatch}"
            run.end()
            code = adapter.close()
            return None if code == 0 else f"the adapter has ended with code {code}"
        except (Mismatch, RuntimeError) as error:
            return str(error)
        finally:
            server.kill()
            if adapter is not None:
                adapter.close()


def main():
    parser = argparse.ArgumentParser(description="Runs the conformance test of the client libraries.")
    parser.add_argument("--adapter", required=True, help="command that starts the adapter")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for one answer (default 60)")
    parser.add_argument("scripts", nargs="*", help="names of scripts (default: all)")
    options = parser.parse_args()
    known = {path.stem: path for path in sorted((HERE / "scripts").glob("*.json"))}
    unknown = [name for name in options.scripts if name not in known]
    if unknown:
        parser.error(f"there is no script {', '.join(unknown)}; there are {', '.join(known)}")
    failed = 0
    for name in options.scripts or known:
        began = time.monotonic()
        problem = run_script(known[name], options)
        failed += problem is not None
        print(f"{name}: {'FAILED: ' + problem if problem else 'ok'} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{len(options.scripts or known)} scripts, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
