#!/usr/bin/env python3
"""What the real kilokvd tells systemd, at a socket of this test: that it starts, is ready, stops, and is alive. It is alive
only as long as the pipeline makes progress: a stage that hangs, or a sync that does not return, makes it silent."""

import os
import pathlib
import socket
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER, Server, temporary_folder  # noqa: E402

WATCHDOG_US = 400_000 * SLOWER
SILENCE = 4 * WATCHDOG_US / 1e6  # seconds without a word, after which systemd has ended the server long ago
STAGES = ("core.execute.before", "core.log.before_append", "storage.append.before_sync", "core.answer.before")


class Manager:
    """The socket of a service manager, and what came there."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0", 1))
        self.variables = {"NOTIFY_SOCKET": name}

    def take(self, seconds=60 * SLOWER):
        """The next message as a dictionary; None: nothing came in this time."""
        self.socket.settimeout(seconds)
        try:
            message = self.socket.recv(65536).decode()
        except TimeoutError:
            return None
        return dict(line.split("=", 1) for line in message.split("\n"))

    def take_until(self, key, seconds=60 * SLOWER):
        """All messages up to the first that has the key."""
        taken = []
        while not taken or key not in taken[-1]:
            message = self.take(seconds)
            assert message is not None, f"no {key}, but {taken}"
            taken.append(message)
        return taken

    def is_silent(self):
        """Takes what is there. Whether then nothing comes for the whole time of SILENCE."""
        for _ in range(100):
            if self.take(SILENCE) is None:
                return True
        return False


class ServiceManager(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def manager(self, name=None):
        manager = Manager(name or str(self.folder / "notify"))
        self.addCleanup(manager.socket.close)
        return manager

    def start(self, manager, *flags, **variables):
        server = Server(self.folder, *flags, environment={**manager.variables, **variables})
        server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        return server

    def test_a_start_and_an_end(self):
        for name in (str(self.folder / "notify"), f"@kilokv-test-{os.getpid()}"):
            with self.subTest(name):
                manager = self.manager(name)
                server = self.start(manager, "--drain-timeout", "7s")
                *before, ready = manager.take_until("READY")
                self.assertEqual(ready, {"READY": "1", "STATUS": f"serving on {server.endpoint}"})
                self.assertTrue(before)
                for message in before:
                    self.assertEqual(set(message), {"STATUS", "EXTEND_TIMEOUT_USEC"})
                    self.assertGreater(int(message["EXTEND_TIMEOUT_USEC"]), 60_000_000)
                server.client("put", "a", "1")
                self.assertEqual(server.stop(), 0)
                (stopping,) = manager.take_until("STOPPING")
                # The unit's time limit may be shorter than --drain-timeout.
                self.assertGreater(int(stopping["EXTEND_TIMEOUT_USEC"]), 7_000_000)
                self.assertIsNone(manager.take(0.01))  # without WATCHDOG_USEC, there are no keepalives

    def test_ready_comes_when_it_serves_and_not_before(self):
        manager = self.manager()
        server = Server(self.folder, environment=manager.variables)
        server.start(wait=False)
        self.addCleanup(server.kill)
        manager.take_until("READY")
        server.wait_ready(0.001)  # its line is in the log
        self.assertEqual(server.client("put", "a", "1"), "version 1\n")

    def test_the_recovery_shows_its_progress(self):
        first = Server(self.folder)
        with first:
            for i in range(3):
                first.client("put", f"key{i}", str(i))
            first.kill()
        manager = self.manager()
        server = self.start(manager)
        texts = [message["STATUS"] for message in manager.take_until("READY")]
        self.assertEqual(texts[0], "opening the files of the database")
        self.assertRegex(texts[1], r"^recovering: loaded \d+ records of the checkpoint, and the log up to batch \d+$")
        self.assertEqual(server.stop(), 0)

    def test_a_start_that_fails_is_never_ready(self):
        (self.folder / "data").write_text("no folder")
        manager = self.manager()
        server = Server(self.folder, environment=manager.variables)
        server.start(wait=False)
        self.assertEqual(server.wait_end(), 1)
        self.assertNotIn("READY", [key for message in iter(lambda: manager.take(0.01), None) for key in message])

    def test_it_is_alive_while_idle_and_under_load(self):
        manager = self.manager()
        server = self.start(manager, WATCHDOG_USEC=str(WATCHDOG_US))
        manager.take_until("READY")
        for _ in range(5):
            self.assertEqual(manager.take(), {"WATCHDOG": "1"})
        load = subprocess.Popen(server.command("kilokv-bench", "run", "--keys", "1000", "--warmup", "0s", "--duration", "2s",
                                               "--batch-size", "256"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        alive = 0
        while load.poll() is None:
            alive += manager.take() == {"WATCHDOG": "1"}
        self.assertEqual(load.returncode, 0)
        self.assertGreaterEqual(alive, 3)
        self.assertEqual(server.stop(), 0)
        self.assertIn("STOPPING", manager.take_until("STOPPING")[-1])

    def test_a_stage_that_hangs_makes_it_silent(self):
        for stage in STAGES:
            with self.subTest(stage):
                manager = self.manager(str(self.folder / f"notify-{stage}"))
                server = self.start(manager, WATCHDOG_USEC=str(WATCHDOG_US), KILOKV_FAIL_POINTS=f"{stage}=hang")
                manager.take_until("READY")
                self.assertEqual(manager.take(), {"WATCHDOG": "1"})  # nothing has passed the point yet
                hangs = subprocess.Popen(server.command("kilokv", "--timeout", "60s", "put", "a", "1"),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.addCleanup(lambda process=hangs: (process.kill(), process.wait()))
                self.assertTrue(manager.is_silent())
                self.assertIsNone(hangs.poll())
                os.kill(server.pid, 0)  # the process is there, and its other threads run
                server.kill()

    def test_the_watchdog_of_another_process(self):
        manager = self.manager()
        server = self.start(manager, WATCHDOG_USEC="1000", WATCHDOG_PID="1")
        manager.take_until("READY")
        self.assertIsNone(manager.take(0.2))
        self.assertEqual(server.stop(), 0)

    def test_a_socket_that_nobody_has_is_said_and_does_not_matter(self):
        for name, words in ((str(self.folder / "none"), 'does not take \\"STATUS=opening the files of the database'),
                            ("nonsense", 'NOTIFY_SOCKET is \\"nonsense\\": it must be a path')):
            with self.subTest(name):
                server = Server(self.folder, environment={"NOTIFY_SOCKET": name})
                with server:
                    server.client("put", "a", "1")
                    self.assertEqual(server.stop(), 0)
                lines = [line for line in server.log.read_text().splitlines() if "cannot reach the service manager" in line]
                self.assertTrue(any(words in line for line in lines), lines)
                self.assertTrue(all(" warning kilokvd cannot reach" in line for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
