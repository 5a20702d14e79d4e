#!/usr/bin/env python3
"""What goes on right now: kilokv top, hot, slow, sessions, connections and status --watch, and who may see which keys."""

import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "crash")]
from programs import BIN, Server, temporary_folder, until  # noqa: E402

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


class Activity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.admin = cls.folder / "admin.token"
        cls.server = Server(cls.folder, "--login", "on", "--bootstrap-file", str(cls.admin), "--slow-transaction", "50ms")
        cls.addClassCleanup(cls.server.kill)
        cls.server.start()
        cls.watcher = cls.user("watcher", "--metrics", "--read", "shop/")
        cls.teller = cls.user("teller", "--read", "", "--write", "")
        for _ in range(5):
            cls.run_as(cls.teller, "add", "shop/1", "1")
        for _ in range(3):
            cls.run_as(cls.teller, "add", "bank/7", "1")
        waits = {"guards": [{"key": "bank/open", "is": "ge", "value": 1, "when_false": "wait"}],
                 "then": [{"op": "put", "key": "bank/done", "value": 1}], "wait_timeout_ms": 200}
        cls.run_as(cls.teller, "--traceparent", f"00-{TRACE}-{SPAN}-01", "txn", stdin=json.dumps(waits), code=1)
        fails = {"guards": [{"key": "shop/none", "is": "exists"}], "then": [{"op": "put", "key": "shop/none", "value": 1}]}
        cls.run_as(cls.teller, "txn", stdin=json.dumps(fails), code=1)

    @classmethod
    def user(cls, name, *rights):
        token = cls.folder / f"{name}.token"
        cls.run_as(cls.admin, "role", "grant", f"role-{name}", *rights)
        cls.run_as(cls.admin, "user", "set", name, "--role", f"role-{name}")
        cls.run_as(cls.admin, "token", "create", name, "--file", str(token))
        return token

    @classmethod
    def command(cls, token, *words):
        return [str(BIN / "kilokv"), "--endpoint", cls.server.endpoint, "--token-file", str(token), *words]

    @classmethod
    def run_as(cls, token, *words, stdin=None, code=0):
        done = subprocess.run(cls.command(token, *words), input=stdin, capture_output=True, text=True, timeout=60)
        if done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def json_as(self, token, *words):
        return [json.loads(line) for line in self.run_as(token, "--output", "json", *words).splitlines()]

    def test_hot_keys_are_shown_to_those_who_may_read_them(self):
        written = self.json_as(self.watcher, "hot", "--by", "write")
        self.assertEqual(written[0]["key"], "shop/1")
        self.assertGreater(written[0]["per_second"], written[1]["per_second"])
        self.assertRegex(written[1]["key_hash"], r"^#[0-9a-f]{16}$")
        self.assertTrue(all("key" not in line for line in written[1:]))
        self.assertNotIn("bank", self.run_as(self.watcher, "hot") + self.run_as(self.watcher, "top", "--count", "1"))
        reader = self.user("reader", "--metrics", "--read", "")
        self.assertEqual([line["key"] for line in self.json_as(reader, "hot", "--by", "write", "--limit", "2")], ["shop/1", "bank/7"])
        self.assertEqual({line["key"] for line in self.json_as(reader, "hot", "--by", "failed_guard")}, {"shop/none", "bank/open"})
        self.assertEqual([line["key"] for line in self.json_as(reader, "hot", "--by", "wait")], ["bank/open"])
        text = self.run_as(reader, "hot")
        self.assertRegex(text, r"(?m)^shop/1 +\d")
        self.assertIn("rates of the last seconds", text)

    def test_slow_transactions_have_their_reason_and_their_trace(self):
        slow = self.json_as(self.watcher, "slow")
        self.assertEqual(len(slow), 1, slow)
        self.assertEqual((slow[0]["reason"], slow[0]["outcome"], slow[0]["guard"]), ("waiting", "WAIT_EXPIRED", 0))
        self.assertEqual((slow[0]["trace"], slow[0]["span"], slow[0]["client"]), (TRACE, SPAN, "user:teller"))
        self.assertGreaterEqual(slow[0]["waited_us"], 150000)
        self.assertLessEqual(slow[0]["waited_us"], slow[0]["total_us"])
        self.assertRegex(slow[0]["guard_key_hash"], r"^#[0-9a-f]{16}$")
        text = self.run_as(self.watcher, "slow")
        self.assertIn("slower than 50 ms (--slow-transaction) since the start: waiting 1 ", text.replace("50.0 ms", "50 ms"))

    def test_sessions_are_shown_by_the_begin_of_their_ids(self):
        waits = {"guards": [{"key": "bank/never", "is": "ge", "value": 1, "when_false": "wait"}],
                 "then": [{"op": "put", "key": "bank/x", "value": 1}], "wait_timeout_ms": 3600000}
        file = self.folder / "one.session"
        with subprocess.Popen(self.command(self.teller, "txn", "--session-file", str(file)), stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True) as program:
            try:
                program.stdin.write(json.dumps(waits) + "\n")
                program.stdin.flush()
                until(file.exists, "the session")
                whole = file.read_text().strip()
                mine = until(lambda: [s for s in self.json_as(self.watcher, "sessions")
                                      if s["id"] == whole[:8] and s["requests_in_flight"] == 1], "its request")[0]
                self.assertEqual((mine["user"], mine["requests"], mine["holder"]), ("teller", 1, 0))
                self.assertGreater(mine["reserved_bytes"], 0)
                text = self.run_as(self.watcher, "sessions")
                self.assertIn(whole[:8], text)
                self.assertNotIn(whole[:10], text)
                peers = self.json_as(self.watcher, "connections")
                self.assertIn("teller", [one["user"] for one in peers])
                self.assertTrue(all(one["peer"].startswith("ipv4:127.0.0.1:") for one in peers))
                self.assertTrue(any(one["received_bytes"] > 0 for one in peers))
                self.assertIn("more connections (--limit)", self.run_as(self.watcher, "connections", "--limit", "1"))
            finally:
                program.kill()

    def test_nobody_sees_them_without_the_right(self):
        for command in ("hot", "slow", "sessions", "connections", "top", "status"):
            self.assertIn("metrics right", self.run_as(self.teller, command, code=5))

    def test_limits_are_told(self):
        for command, most in (("hot", 256), ("slow", 1000), ("sessions", 10000), ("connections", 10000)):
            self.run_as(self.watcher, command, "--limit", str(most))
            self.assertIn("--limit", self.run_as(self.watcher, command, "--limit", str(most + 1), code=2))
            self.assertIn("--limit", self.run_as(self.watcher, command, "--limit", "0", code=2))
        self.assertIn("--by", self.run_as(self.watcher, "hot", "--by", "size", code=2))

    def test_top_shows_rates_between_two_looks(self):
        looks = self.json_as(self.watcher, "top", "--watch", "300ms", "--count", "3")
        self.assertEqual([look["state"] for look in looks], ["ready"] * 3)
        self.assertGreater(looks[0]["committed_per_second"], 0)  # since the start
        self.assertLess(looks[1]["seconds"], looks[0]["seconds"] + 5)
        self.assertEqual(looks[2]["slow"], 1)
        text = self.run_as(self.watcher, "top", "--count", "2", "--watch", "200ms")
        self.assertEqual(text.count("kilokvd "), 2)
        self.assertIn("MOST USED: read", text)

    def test_the_status_again_and_again(self):
        text = self.run_as(self.watcher, "status", "--watch", "100ms", "--count", "3")
        self.assertEqual(text.count("Server:\n"), 3)
        for title in ("Where batches run", "Positions in the log of batches", "Since the start", "Now", "Table", "Log", "Memory"):
            self.assertEqual(text.count(f"\n{title}:\n"), 3, title)
        self.assertIn("--watch", self.run_as(self.watcher, "status", "--watch", "1ms", code=2))


if __name__ == "__main__":
    unittest.main()
