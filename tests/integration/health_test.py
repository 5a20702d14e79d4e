#!/usr/bin/env python3
"""Health and reflection of the real kilokvd, from outside of gRPC: the states, and the probe of docs/health.md."""

import fcntl
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder, until  # noqa: E402

SERVING, NOT_SERVING = b"\0\0\0\0\2\x08\1", b"\0\0\0\0\2\x08\2"
NAMES = (b"", b"kilokv.v1.KiloKV")
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def request(name):
    message = b"\x0a" + bytes([len(name)]) + name if name else b""
    return b"\0" + len(message).to_bytes(4, "big") + message


class Health(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = Server(self.folder)
        self.server.start()
        self.addCleanup(self.server.kill)

    def curl(self, method, *flags):
        return ["curl", "-sS", "--max-time", "60", "--http2-prior-knowledge", "-H", "content-type: application/grpc",
                "-H", "te: trailers", "--data-binary", "@-", *flags,
                f"http://{self.server.endpoint}/grpc.health.v1.Health/{method}"]

    def check(self, name=b"", *flags):
        done = subprocess.run(self.curl("Check", *flags), input=request(name), capture_output=True, timeout=90)
        return done.stdout if done.returncode == 0 else done.stderr

    def watch(self, name):
        watch = subprocess.Popen(self.curl("Watch", "-N"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        watch.stdin.write(request(name))
        watch.stdin.close()
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        return watch.stdout

    def test_the_probe_says_no_where_nothing_serves(self):
        probe = next(commands for commands in COMMANDS.findall((ROOT / "docs" / "health.md").read_text())
                     if "--max-time" in commands)
        self.assertEqual(self.server.stop(), 0)
        done = subprocess.run(["bash", "-c", probe.replace("127.0.0.1:7070", self.server.endpoint)], timeout=60)
        self.assertNotEqual(done.returncode, 0)

    def test_names(self):
        for name in NAMES:
            self.assertEqual(self.check(name), SERVING)
        self.assertIn(b"grpc-status: 5", self.check(b"kilokv", "-D", "-"))

    def test_states(self):
        """The log is a pipe that has room for the lines before the port opens, and no more: then the server stands still
        until the pipe is read."""
        self.assertEqual(self.server.stop(), 0)
        endpoint = self.server.endpoint  # its port is free again, and known before this start is ready
        pipe = self.folder / "pipe"
        self.server = Server(self.folder, "--log-file", pipe)
        self.server.endpoint = endpoint
        self.server.start(wait=False)
        self.addCleanup(self.server.kill)
        until(lambda: pipe.exists() and "kilokvd ready" in pipe.read_text(), "a start whose lines are counted")
        self.assertEqual(self.server.stop(), 0)
        before, _, _ = pipe.read_text().partition("kilokvd recovering")
        before = before[:before.rindex("\n") + 1]
        pipe.unlink()
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, end)
        size = fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, os.sysconf("SC_PAGE_SIZE"))
        more = 20  # the number of the process may be longer; a line is longer than this
        os.write(end, b"x" * (size - len(before.encode()) - more))
        self.server = Server(self.folder, "--log-file", pipe)
        self.server.endpoint = endpoint
        self.server.start(wait=False)
        self.addCleanup(self.server.kill)
        until(lambda: self.check() == NOT_SERVING, "NOT_SERVING while it recovers")
        watches = [self.watch(name) for name in NAMES]
        for watch in watches:
            self.assertEqual(watch.read(7), NOT_SERVING)
        reader = subprocess.Popen(["cat", pipe], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        for watch in watches:
            self.assertEqual(watch.read(7), SERVING)
        os.kill(self.server.pid, signal.SIGTERM)
        for watch in watches:
            self.assertEqual(watch.read(7), NOT_SERVING)
        self.assertEqual(self.server.wait_end(), 0)
        self.assertIn(b"curl: (7)", self.check())


class HealthWithLogins(unittest.TestCase):
    """Only the health check needs no login. Reflection needs one, but no right."""

    def call(self, server, path, body, *headers):
        """The headers and trailers of the answer, and its message. A call that is refused before the server has read its
        message is reset after the answer. If curl has not read the answer by then, it says 92, and the call is made
        again."""
        words = ["curl", "-sS", "-i", "--max-time", "60", "--http2-prior-knowledge", "-H",
                 "content-type: application/grpc", "-H", "te: trailers", *(f"-H{header}" for header in headers),
                 "--data-binary", "@-", f"http://{server.endpoint}/{path}"]
        for _ in range(50):
            run = subprocess.run(words, input=body, capture_output=True, timeout=90)
            if run.returncode != 92:
                break
        return run.stdout

    def test_what_needs_no_login(self):
        reflection = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        list_services = b"\0\0\0\0\2\x3a\0"
        with temporary_folder() as folder:
            token = pathlib.Path(folder) / "admin.token"
            with Server(folder, "--login", "on", "--bootstrap-file", token) as server:
                logged_in = f"authorization: Bearer {token.read_text().strip()}"
                for name in NAMES:
                    answer = self.call(server, "grpc.health.v1.Health/Check", request(name))
                    self.assertIn(SERVING, answer)
                    self.assertIn(b"grpc-status: 0", answer)
                self.assertIn(b"grpc-status: 16", self.call(server, "kilokv.v1.KiloKV/Status", bytes(5)))
                self.assertIn(b"grpc-status: 0", self.call(server, "kilokv.v1.KiloKV/Status", bytes(5), logged_in))
                # curl may see the end of a refused stream before its answer, and then prints nothing.
                answer = until(lambda: self.call(server, reflection, list_services), "an answer")
                self.assertNotIn(b"kilokv.v1", answer)
                self.assertIn(b"grpc-status: 16", answer)
                self.assertIn(b"kilokv.v1.KiloKV", self.call(server, reflection, list_services, logged_in))
        with temporary_folder() as folder, Server(folder) as server:  # what is searched can be found
            self.assertIn(b"kilokv.v1.KiloKV", self.call(server, reflection, list_services))


if __name__ == "__main__":
    unittest.main()
