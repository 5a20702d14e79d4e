#!/usr/bin/env python3
"""Signals of the real kilokvd: SIGHUP opens the log file again, under load too; no signal but SIGTERM and SIGINT ends it."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, LoggingServer, Server, temporary_folder, until  # noqa: E402

IGNORED = (signal.SIGUSR1, signal.SIGUSR2)


class Signals(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, server):
        server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        return server

    def test_a_log_file_that_was_moved_away_is_opened_again_under_load(self):
        server = self.start(LoggingServer(self.folder))
        load = subprocess.Popen(server.command("kilokv-bench", "run", "--keys", "1000", "--warmup", "0s", "--duration",
                                               "3s", "--batch-size", "64"), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn("loaded", load.stderr.readline())
        moved = []
        while load.poll() is None or len(moved) < 3:
            old = server.log_file.with_suffix(f".{len(moved)}")
            server.log_file.rename(old)
            server.send(signal.SIGUSR1)  # a line between the move and the signal belongs to the old file
            until(lambda: "ignores signal=10" in old.read_text(), "the line in the old file")
            server.send(signal.SIGHUP)
            until(server.has_line("has opened its log file again"), "the new log file")
            moved.append(old.read_text())
            if len(moved) > 200:
                break
        self.assertEqual(load.wait(timeout=60), 0, load.stderr.read())
        load.stderr.close()
        self.assertEqual(server.stop(), 0)
        self.assertIn("kilokvd ready", moved[0])
        for text in moved[1:]:  # nothing is lost and nothing comes twice
            # The load may be slow, or may be refused.
            kinds = [line.split(" ", 2)[2].split("=")[0] for line in text.splitlines()]
            self.assertEqual([kind for kind in kinds if "log file again" in kind or "ignores signal" in kind],
                             ["kilokvd has opened its log file again log_file", "kilokvd ignores signal"])
        self.assertIn("kilokvd stopped", server.lines()[-1])

    def test_where_the_log_file_cannot_be_opened_again_the_old_one_is_kept(self):
        server = self.start(LoggingServer(self.folder))
        old = server.log_file.with_suffix(".old")
        server.log_file.rename(old)
        server.log_file.mkdir()
        server.send(signal.SIGHUP)
        until(lambda: "kilokvd keeps its old log file error=\"--log-file: cannot open" in old.read_text(), "the error")
        self.assertIn("Is a directory", old.read_text())
        server.log_file.rmdir()
        server.send(signal.SIGHUP)
        until(server.has_line("has opened its log file again"), "the new log file")
        self.assertEqual(server.stop(), 0)

    def test_what_has_no_meaning_is_said_and_ends_nothing(self):
        server = self.start(Server(self.folder))
        for which in (*IGNORED, signal.SIGHUP, signal.SIGPIPE):
            os.kill(server.pid, which)
        text = lambda: server.log.read_text()  # noqa: E731
        for words in ("ignores signal=10", "ignores signal=12", "ignores SIGHUP"):
            until(lambda: words in text(), words)
        self.assertEqual(server.value("absent"), 0)  # it still serves
        self.assertEqual(server.stop(), 0)

    def test_a_reader_of_the_log_that_goes_away_ends_nothing(self):
        port = self.folder / "port"
        server = subprocess.Popen([BIN / "kilokvd", "--data-dir", self.folder / "data", "--listen", "127.0.0.1:0",
                                   "--port-file", port], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            until(port.exists, "kilokvd ready")
            server.stderr.close()
            for which in (*IGNORED, signal.SIGHUP):
                os.kill(server.pid, which)  # each writes a line to the pipe that nobody reads
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(timeout=60), 0)
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()

    def test_signals_before_it_is_ready_and_while_it_drains(self):
        for _ in range(20):
            command = [BIN / "kilokvd", "--data-dir", self.folder / "data", "--listen", "127.0.0.1:0", "--log-file",
                       self.folder / "log", "--port-file", self.folder / "port"]
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                until(lambda: server.poll() is not None or main_has_begun(server.pid), "the mask of signals")
                for which in (signal.SIGHUP, *IGNORED):
                    os.kill(server.pid, which)
                until(lambda: server.poll() is not None or (self.folder / "port").exists(), "kilokvd ready")
                server.send_signal(signal.SIGTERM)
                while server.poll() is None:
                    server.send_signal(signal.SIGHUP)
                self.assertEqual(server.returncode, 0)
            finally:
                if server.poll() is None:
                    server.kill()
                    server.wait()
                (self.folder / "port").unlink(missing_ok=True)

    def test_a_log_file_that_cannot_be_opened_ends_the_start(self):
        done = subprocess.run([BIN / "kilokvd", "--data-dir", self.folder / "data", "--log-file", self.folder],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"kilokvd: --log-file: cannot open {self.folder}: Is a directory\n")


def main_has_begun(pid):
    """Whether the process keeps SIGHUP from ending it. Before main(), no program can do that.

    A library that starts a thread blocks all signals for a moment, even before main(). So one reading of the mask must
    hold SIGHUP, but not SIGALRM.
    """
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith("SigBlk:")).split()[1], 16)
    return bool(mask >> (signal.SIGHUP - 1) & 1) and not mask >> (signal.SIGALRM - 1) & 1


if __name__ == "__main__":
    unittest.main()
