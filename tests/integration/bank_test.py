#!/usr/bin/env python3
"""kilokv-bank as a person uses it: its commands with their exit codes, and the demo with its kill."""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, Server  # noqa: E402


def bank(*words, code=0, timeout=60, endpoint=""):
    """Standard output and standard error of one run. `endpoint`: KILOKV_ENDPOINT; the flag is among the words."""
    done = subprocess.run([str(BIN / "kilokv-bank"), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=timeout, env={**os.environ, "KILOKV_ENDPOINT": endpoint})
    assert done.returncode == code, f"exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kilokv-bank-")
        cls.server = Server(cls.folder.name)
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    def bank(self, *words, code=0):
        return bank("--endpoint", self.server.endpoint, *words, code=code)

    def test_a_day_at_the_bank(self):
        self.assertIn("alice 100.00", self.bank("open", "alice", "--balance", "100"))
        self.assertIn("bob 0.00", self.bank("open", "bob"))
        self.assertIn("already", self.bank("open", "alice", code=1))
        self.assertIn("alice 112.34", self.bank("deposit", "alice", "12.34"))
        self.assertIn("bob 2.34", self.bank("transfer", "alice", "bob", "2.34"))
        self.assertIn("bob has 2.34, 5.00 needed", self.bank("withdraw", "bob", "5.00", code=1))
        self.assertIn("when the time was up", self.bank("withdraw", "bob", "5.00", "--wait", "200ms", code=1))
        self.assertIn("no account carol", self.bank("transfer", "alice", "carol", "1.00", code=1))
        statement = self.bank("statement", "alice")
        for text in ("opened", "deposit", "transfer", "-2.34", "balance 110.00"):
            self.assertIn(text, statement)
        self.assertIn("no account carol", self.bank("statement", "carol", code=1))
        self.bank("audit", "--expect", "112.34")
        self.assertIn("expected a total of 112.35", self.bank("audit", "--expect", "112.35", code=1))

    def test_a_withdrawal_waits_for_its_deposit(self):
        self.bank("open", "waiting.account")
        early = threading.Thread(target=lambda: self.bank("withdraw", "waiting.account", "7.00", "--wait", "30s"))
        early.start()
        self.bank("deposit", "waiting.account", "7.00")
        early.join(60)
        self.assertFalse(early.is_alive())
        self.assertIn("balance 0.00", self.bank("statement", "waiting.account"))
        self.bank("withdraw", "waiting.account", "0.01", code=1)

    def test_usage(self):
        for words in (["deposit", "alice", "1.234"], ["deposit", "alice", "0"], ["open", "a/b"], ["transfer", "a", "a", "1"],
                      ["deposit", "alice"], ["withdraw", "alice", "1", "--wait", "soon"], ["nonsense"]):
            self.bank(*words, code=2)
        self.assertIn('unknown command "balance"; known here: open deposit', self.bank("balance", "x", code=2))
        self.assertIn("amount is required", self.bank("withdraw", "carol", code=2))
        for words, problem in ((["deposit", "a", "-5"], 'amount: "-5" is negative'),
                               (["open", "a", "--balance", "9" * 20], "largest amount, 92,233,720,368,547,758.07"),
                               (["demo", "--server", "/nosuch"], "kilokv-bank: --server: cannot run /nosuch"),
                               (["demo", "--endpoint", "foo"], "kilokv-bank: --endpoint: "),
                               (["demo", "--json", "no/such/report"], "kilokv-bank: --json: cannot write"),
                               (["demo", "--clients", "-1"], '--clients: "-1" is not a whole number from 1 to 1024')):
            self.assertIn(problem, bank(*words, code=2))
        self.assertIn("kilokv-bank ", bank("--version"))

    def test_the_largest_balance(self):
        self.bank("open", "rich", "--balance", "92233720368547758.07")
        self.assertIn("the balance of rich would be more than 92,233,720,368,547,758.07",
                      self.bank("deposit", "rich", "0.01", code=1))
        self.bank("withdraw", "rich", "92233720368547758.07")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(BIN / "kilokv-bank"), "--endpoint", self.server.endpoint, "audit"], stdout=full,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"cannot write", done.stderr)

    def test_no_server(self):
        began = time.monotonic()
        self.assertIn("nothing listens at 127.0.0.1:1: the connection is refused\n  hint: start kilokvd there",
                      bank("--endpoint", "127.0.0.1:1", "--timeout", "60s", "audit", code=4))
        self.assertLess(time.monotonic() - began, 30, "it waited for a server")
        bank("--endpoint", "127.0.0.1:1", "--wait-for-server", "1500ms", "audit", code=4)
        self.assertGreater(time.monotonic() - began, 0.5, "it did not wait")

    def test_the_endpoint_of_the_environment(self):
        bank("audit", endpoint=self.server.endpoint)
        bank("--endpoint", self.server.endpoint, "audit", endpoint="127.0.0.1:1")
        self.assertIn('the environment variable KILOKV_ENDPOINT: "wrong" is not HOST:PORT',
                      bank("audit", code=2, endpoint="wrong"))
        self.assertIn("KILOKV_ENDPOINT", bank("help"))

    def test_help_is_a_command(self):
        self.assertEqual(bank("help", "withdraw"), bank("withdraw", "--help"))
        self.assertIn('unknown flag "--wait"; did you mean "--wait-for-server"?', bank("audit", "--wait", code=2))


class Demo(unittest.TestCase):
    def test_with_a_kill(self):
        text = bank("demo", "--server", str(BIN / "kilokvd"), "--duration", "4s", "--clients", "8", timeout=120,
                    endpoint="127.0.0.1:1")  # which does not count: the demo starts a server of its own
        self.assertIn("Proven: the books are right to the cent.", text)
        self.assertIn("killed (SIGKILL)", text)
        self.assertEqual(text.count("[ ok ]"), 6)

    def test_the_kill_button(self):
        """Somebody presses the button of the console two times. The demo starts its server again, and nothing is lost."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            console = f"127.0.0.1:{taken.getsockname()[1]}"
        killed = []

        def press():
            end = time.monotonic() + 60
            while len(killed) < 2 and time.monotonic() < end:
                time.sleep(1)
                request = urllib.request.Request(f"http://{console}/console/api/demo/kill", b"{}", {
                    "Content-Type": "application/json", "Origin": f"http://{console}"})
                try:
                    urllib.request.urlopen(request, timeout=5)
                except urllib.error.HTTPError as error:
                    killed.append(f"refused: {error.read()}")
                except http.client.RemoteDisconnected:
                    killed.append("killed")
                except (urllib.error.URLError, ConnectionError):
                    pass  # it does not listen yet

        presses = threading.Thread(target=press)
        presses.start()
        text = bank("demo", "--server", str(BIN / "kilokvd"), "--duration", "6s", "--clients", "4", "--no-kill",
                    "--console", console, timeout=120)
        presses.join()
        self.assertEqual(killed, ["killed", "killed"])
        self.assertIn(f"look at it, and kill it, at http://{console}/console/", text)
        self.assertIn("The server was killed (SIGKILL) 2 times", text)
        self.assertIn("Proven: the books are right to the cent.", text)

    def test_against_a_running_server(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-bank-") as folder, Server(folder) as server:
            path = pathlib.Path(folder) / "report.json"
            words = ["--duration", "2s", "--clients", "4", "--accounts", "50", "--json", str(path)]
            bank("demo", "--endpoint", server.endpoint, *words, timeout=120)
            bank("--endpoint", server.endpoint, "demo", *words, timeout=120)  # a second demo has accounts of its own
            report = json.loads(path.read_text())
            self.assertTrue(report["proven"])
            self.assertFalse(report["kill"]["killed"])
            made = {name: activity["made"] for name, activity in report["activities"].items()}
            for name in ("payments into one hot account", "withdrawals before their deposit"):
                self.assertGreater(made[name], 0, name)
            for name in ("transfers between customers", "salaries out of it"):  # money goes round: it does not drain away
                self.assertGreater(made[name], report["activities"][name]["refused"], name)
            self.assertEqual(made["waits for money that never comes"], 0)
            bank("--endpoint", server.endpoint, "audit")


if __name__ == "__main__":
    unittest.main()
