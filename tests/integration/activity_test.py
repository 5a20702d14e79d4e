#!/usr/bin/env python3
"""What goes on right now: kilokv top, hot, slow, sessions, connections and status --watch, and who may see which keys."""

import json
import pathlib
import subprocess
import sys
import time
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

    def assert_fits(self, text):
        """Each line fits into a terminal with 80 columns."""
        self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

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
        self.assertRegex(text, r"(?m)^ +[\d.]+ +[\d.]+  shop/1$")
        self.assertRegex(text, r"(?m)^AT LEAST/S +AT MOST/S +KEY$")
        self.assertRegex(text, r"(?m)^write: [\d.]+ a second, all keys together$")
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
        self.assertRegex(text, r"(?m)^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  [\d.]+ m?s, waiting, WAIT_EXPIRED in batch \d+$")
        self.assertRegex(text, r"(?m)^    from user:teller, session [0-9a-f]{8}, request 1$")
        self.assertRegex(text, r"(?m)^    waited for guard 0 on key #[0-9a-f]{16}$")
        self.assertIn(f"    trace {TRACE}, span {SPAN}\n", text)
        self.assertTrue(text.endswith("1 transaction since the start took 50ms or longer (--slow-transaction):\n"
                                      "    1 waiting\n"), text)
        self.assert_fits(text)

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
                self.assertRegex(text, r"(?m)^SESSION +USER +LEASE LEFT .*KEPT +IN FLIGHT .*RESERVED$")
                self.assertNotIn("HOLDER", text, "nobody has attached to a session")
                self.assertRegex(text, rf"(?m)^{whole[:8]} +teller +\d.* 1 +1 .*\d [KM]?i?B$")
                self.assert_fits(text)
                peers = self.json_as(self.watcher, "connections")
                self.assertIn("teller", [one["user"] for one in peers])
                self.assertTrue(all(one["peer"].startswith("ipv4:127.0.0.1:") for one in peers))
                # The server looks at its connections from time to time.
                until(lambda: any(one["received_bytes"] > 0 for one in self.json_as(self.watcher, "connections")), "bytes")
                self.assertIn("more connections (--limit)", self.run_as(self.watcher, "connections", "--limit", "1"))
                text = self.run_as(self.watcher, "connections")
                self.assertRegex(text, r"(?m)^PEER +USER +AGE ")
                self.assertRegex(text, r"(?m)^ipv4:127\.0\.0\.1:\d+ +teller +[\d.]+ [mu]?s")
                self.assert_fits(text)
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
        self.assertEqual([look["read_only"] for look in looks], [False] * 3)
        text = self.run_as(self.watcher, "top", "--count", "2", "--watch", "200ms")
        self.assertEqual(text.count("kilokvd "), 2)
        self.assertEqual(text.count("on average since the start\n"), 1)
        for line in (r"state: +ready, strategy \w+ on \w+$", r"per second: +[\d.,]+ transactions, [\d.,]+ committed",
                     r"now: +\d+ queued, \d+ parked, \d+ sessions, \d+ uploads, \d+ connections,",
                     r"last batch: +\d+ executed, \d+ durable, \d+ in the checkpoint$",
                     r"memory: +[\d.]+ [KMG]iB of [\d.]+ [MGT]iB, [\d.]+ [MG]iB resident$",
                     r"disk: +[\d.]+ K?M?i?B of log, [\d.]+ [MGT]iB free$",
                     r"slow: +1 transaction since the start, 1 waiting$",
                     r"read/s +write/s +failed_guard/s +wait/s  key$", r" +[\d.]+ +[\d.]+ .*shop/1$"):
            self.assertRegex(text, "(?m)^" + line)
        self.assert_fits(text)

    def test_count_needs_watch(self):
        for command in ("hot", "slow", "sessions", "connections", "status"):
            self.assertIn("--count requires --watch", self.run_as(self.watcher, command, "--count", "2", code=2))

    def test_the_status_again_and_again(self):
        text = self.run_as(self.watcher, "status", "--watch", "100ms", "--count", "3")
        self.assertEqual(text.count("Server:\n"), 3)
        for title in ("Where batches run", "Positions in the log of batches", "Since the start", "Now", "Table", "Log", "Memory"):
            self.assertEqual(text.count(f"\n{title}:\n"), 3, title)
        self.assert_fits(text)
        self.assertIn("--watch", self.run_as(self.watcher, "status", "--watch", "1ms", code=2))

    def test_a_status_has_units_for_people(self):
        text = self.run_as(self.watcher, "status")
        self.assertRegex(text, r"(?m)^uptime_seconds +\d+\.\d{3}( \(\d+[mh] \d+[sm]\))?$")
        self.assertRegex(text, r"(?m)^memory_limit_bytes +\d+ \([\d.]+ [MGT]iB\)$")
        self.assertRegex(text, r"(?m)^memory of queue +\d.* of [\d.]+ [KMG]iB$")
        self.assertRegex(text, r"(?m)^device_model +(-|\w.*)$")


class Keys(unittest.TestCase):
    def test_a_long_key_does_not_wrap_the_lines_of_top(self):
        key = "shop/" + "x" * 200
        with temporary_folder() as folder, Server(folder) as server:
            for _ in range(3):
                server.client("add", key, "1")
            text = server.client("top", "--count", "1")
            self.assertRegex(text, r"(?m)  shop/x+\.\.\.$")
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
            self.assertIn(key, server.client("hot"))

    def test_a_rate_that_is_mostly_error_is_not_shown_to_people(self):
        """The sketch keeps 256 keys. If thousands are written once, it takes the last of them for keys of a high rate, with
        an error that is as high."""
        once = [json.dumps({"then": [{"op": "put", "key": f"once/{i}", "value": i}]}) + "\n" for i in range(3000)]
        often = [json.dumps({"then": [{"op": "add", "key": "often", "delta": 1}]}) + "\n"] * 300
        with temporary_folder() as folder, Server(folder) as server:
            for lines in (often, *(once[i:i + 300] for i in range(0, 3000, 300)), often):
                server.client("txn", "--batch", stdin="".join(lines))
                time.sleep(0.12)  # so few that each is counted, and not a sample of them
            listed = [json.loads(line) for line in
                      server.client("--output", "json", "hot", "--by", "write", "--limit", "256").splitlines()]
            text = server.client("hot", "--by", "write", "--limit", "200")
            top = server.client("top", "--count", "1")
        self.assertEqual(listed[0]["key"], "often")
        for line in listed:
            self.assertAlmostEqual(line["at_least_per_second"], max(line["per_second"] - line["error"], 0))
        rough = [line for line in listed if line["error"] > 0.6 * line["per_second"]]
        self.assertGreater(len(rough), 100, "the server lists them, with their errors")
        for line in rough:
            self.assertNotIn(f"  {line['key']}\n", text)
        self.assertRegex(text, r"(?m)  often$")
        self.assertRegex(text, r"(?m)^left out: [\d,]+ keys whose rates are mostly error$")
        self.assertRegex(top, r"(?m)  often$")


class ReadOnly(unittest.TestCase):
    def test_a_server_that_only_reads_says_so_first(self):
        with temporary_folder() as folder:
            with Server(folder) as server:
                server.client("put", "key", "1")
                self.assertRegex(server.client("status"), r"\AServer:\nstate +ready\n")
                self.assertFalse(json.loads(server.client("--output", "json", "status"))["read_only"])
                self.assertEqual(server.stop(), 0)
            with Server(folder, "--read-only", "on") as server:
                self.assertRegex(server.client("status"), r"\AServer:\nstate +ready, read-only\n")
                status = json.loads(server.client("--output", "json", "status"))
                self.assertEqual((status["state"], status["read_only"]), ("ready", True))
                self.assertRegex(server.client("top", "--count", "1"), r"(?m)^state: +ready, read-only, strategy ")
                self.assertTrue(json.loads(server.client("--output", "json", "top", "--count", "1"))["read_only"])
                self.assertEqual(server.client("sessions"), "no session is open\n")


if __name__ == "__main__":
    unittest.main()
