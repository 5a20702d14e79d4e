#!/usr/bin/env python3
"""The log of the real server: what it says of a start, of slow transactions, of refusals and of checkpoints; its two forms
and its levels; and what it never has: keys where they are not wanted, and ids of sessions."""

import json
import pathlib
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, LoggingServer, Server, add, as_lines, temporary_folder, until, wait_for  # noqa: E402

OK, USAGE, DENIED = 0, 2, 5
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
EVERYTHING_IS_SLOW = ("--slow-transaction", "1us", "--slow-sync", "1us")
TIME = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


class LogTest(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def serve(self, *flags, **how):
        (self.folder / "port").unlink(missing_ok=True)  # of the start before
        server = LoggingServer(self.folder, *flags, **how)
        self.addCleanup(server.kill)
        server.start()
        return server

    def client(self, server, *words, code=OK, stdin="", token=None):
        command = [BIN / "kilokv", "--endpoint", server.endpoint, *(("--token-file", token) if token else ()), *words]
        done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def line(self, server, pattern):
        """The first line of the log that has this; it may come a moment later."""
        def found():
            return next((line for line in server.lines() if re.search(pattern, line)), None)
        return until(found, f"a line like {pattern}")


class Starts(LogTest):
    def test_settings_address_and_whether_the_database_is_new(self):
        server = self.serve("--batch-max-delay", "2ms", "--parked-max", "1000000")
        self.client(server, "put", "a", "1")
        self.assertEqual(server.stop(), 0)
        first = server.lines()
        text = "\n".join(first)
        self.assertRegex(first[0], rf"^{TIME} info kilokvd starts version=\S+ commit=\S+ process=\d+$")
        settings = re.search(r"info kilokvd has settings that are not the defaults (.*)", text)[1]
        self.assertIn(f'data_dir="{self.folder}/data"', settings)
        self.assertIn("batch_max_delay=2ms", settings)
        self.assertNotIn("parked_max", settings, "the value is the default")
        self.assertRegex(text, rf"info kilokvd recovering endpoint={re.escape(server.endpoint)} ")
        self.assertRegex(text, rf'warning kilokvd has made a new, empty database data_dir="{self.folder}/data" ')
        self.assertRegex(text, r"info kilokvd recovered checkpoint_batch=0 batch=0 replayed_batches=0 records=0 ")
        # The second start finds it, and runs again what came after the checkpoint.
        server = self.serve()
        server.kill()
        again = "\n".join(server.lines()[len(first):])
        self.assertNotIn("has made a new", again)
        self.assertRegex(again, r"kilokvd recovered checkpoint_batch=\d+ batch=[1-9]\d* replayed_batches=\d+ records=1 ")

    def test_a_recovery_says_how_far_it_is(self):
        server = self.serve("--checkpoint-interval", "1h")
        for i in range(3):
            self.client(server, "put", f"k{i}", "1")
        server.kill()
        server = self.serve("--log-level", "debug")
        self.assertRegex("\n".join(server.lines()), r"debug kilokvd recovers step=log records=0.* batch=\d+")

    def test_never_makes_no_database(self):
        def start(*flags):
            return subprocess.run([BIN / "kilokvd", "--data-dir", self.folder / "mistyped", "--listen", "127.0.0.1:0",
                                   *flags], capture_output=True, text=True, timeout=60)
        refused = start("--create", "never")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr.splitlines()[-1], "critical kilokvd cannot start .*does not exist, and --create never")
        for flags in (("--log-level", "off"), ("--log-file", self.folder / "kilokvd.log")):
            said = start("--create", "never", *flags).stderr
            self.assertRegex(said, r"^kilokvd: cannot start: .*does not exist, and --create never.*\n$")
        self.assertFalse((self.folder / "mistyped").exists())
        made = start("--create-database", "--create", "never")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertEqual(made.stdout, f"kilokvd: {self.folder}/mistyped has a new, empty database\n")
        (self.folder / "mistyped").rename(self.folder / "data")
        server = self.serve("--create", "never")
        self.client(server, "put", "a", "7")
        self.assertNotIn("has made a new", server.log_file.read_text())
        self.assertEqual(server.stop(), 0)
        (self.folder / "data").rename(self.folder / "mistyped")
        again = start("--create-database")
        self.assertEqual(again.stdout, f"kilokvd: {self.folder}/mistyped has a database already, which was not changed\n")
        self.assertEqual(again.returncode, 0)
        (self.folder / "mistyped").rename(self.folder / "data")
        server = self.serve("--create", "never")
        self.assertEqual(self.client(server, "get", "a").strip(), "7")

    def test_the_end_of_a_connection_says_whose_it_was_and_why(self):
        server = self.serve("--log-level", "debug")
        self.client(server, "put", "a", "1")
        opened = self.line(server, r"debug kilokvd accepted a connection peer=ipv4:127\.0\.0\.1:\d+$")
        peer = re.search(r"peer=(\S+)", opened)[1]
        self.line(server, rf'debug kilokvd connection ended peer={peer} open_seconds=\d+\.\d{{3}} received_bytes=[1-9]\d* '
                          r'reason="(the client closed it|it was closed; which side was first is not known)"$')

    def test_checkpoints_and_trims_are_told(self):
        server = self.serve("--checkpoint-interval", "100ms", "--history-retention", "0", "--history-bytes-max", "0")
        for _ in range(4):
            self.client(server, "txn", "--batch", stdin=as_lines([{"then": [add(f"key{i}", 1)]} for i in range(500)]))
        self.line(server, r"info kilokvd made a checkpoint batch=[1-9]\d* records=\d+ removed=\d+ sessions=\d+ seconds=\d")
        self.client(server, "put", "a", "1")
        self.line(server, r"info kilokvd trimmed the log first_batch=\d+ trimmed_bytes=[1-9]\d* kept_bytes=\d+")


class SlowTransactions(LogTest):
    def test_the_reason_and_the_trace(self):
        server = self.serve(*EVERYTHING_IS_SLOW, "--log-keys", "full")
        self.client(server, "--traceparent", TRACEPARENT, "put", "till", "1")
        line = self.line(server, rf"kilokvd slow transaction .*trace={TRACE} span={SPAN}")
        self.assertRegex(line, r' warning kilokvd slow transaction reason=(queued|execution|sync|answer) total_us=[1-9]\d* ')
        self.assertRegex(line, r' client="ipv4:127\.0\.0\.1:\d+" session=[0-9a-f]{8} request=1 index=0 transactions=1 ')
        self.line(server, r"warning kilokvd had slow syncs of the disk times=1 ")
        # A Get has it in the metadata of its call.
        self.client(server, "--traceparent", f"00-{TRACE[::-1]}-{SPAN}-00", "get", "till")
        self.line(server, rf"kilokvd slow transaction .*trace={TRACE[::-1]} ")

    def test_one_that_waits_names_its_guard_and_its_key(self):
        def age(server):
            """Microseconds for which the transaction has waited."""
            return time.time() * 1e6 - json.loads(self.client(server, "--output", "json", "parked", "list"))["since_us"]

        for keys, shown in (("full", r' guard=0 key="till" '), ("hash", r" guard=0 key=#[0-9a-f]{16} "), ("none", r" guard=0 index=")):
            with self.subTest(keys):
                server = self.serve("--slow-transaction", "1us", "--log-keys", keys, "--log-level", "trace")
                more = server.value("till") + 5
                waiting = server.start_transactions({"guards": [wait_for("till", more)], "wait_timeout_ms": 60000,
                                                     "then": [add("other", 1)]})
                until(lambda: server.parked() == 1, "the transaction waits")
                until(lambda: age(server) > 500_000, "it waits longer than a sync takes")
                self.client(server, "add", "till", "5")
                waiting.communicate(timeout=60)
                self.line(server, r"trace kilokvd parked a transaction .* guard=0 ")
                line = self.line(server, r"kilokvd slow transaction reason=waiting")
                self.assertRegex(line, rf" info kilokvd slow transaction reason=waiting .*{shown}")
                self.assertGreater(int(re.search(r" waited_us=(\d+) ", line)[1]), 400_000)
                server.kill()
                server.log_file.unlink()

    def test_nothing_is_slow_without_a_threshold(self):
        server = self.serve("--slow-transaction", "0", "--slow-sync", "0")
        self.client(server, "put", "a", "1")
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("slow", server.log_file.read_text().split("not the defaults")[1].split("\n", 1)[1])

    def test_a_wrong_traceparent_is_refused_by_the_client(self):
        server = self.serve()
        said = self.client(server, "--traceparent", "nonsense", "put", "a", "1", code=3)
        self.assertIn("traceparent is malformed", said)


class Forms(LogTest):
    def test_each_line_is_an_object(self):
        server = self.serve("--log-format", "json", "--log-level", "trace", *EVERYTHING_IS_SLOW)
        self.client(server, "--traceparent", TRACEPARENT, "put", "a", "1")
        self.client(server, "put", "k" * 2000, "1", code=3)
        until(lambda: '"kilokvd slow transaction"' in server.log_file.read_text(), "a slow transaction")
        self.assertEqual(server.stop(), 0)
        lines = [json.loads(line) for line in server.lines()]
        for line in lines:
            self.assertRegex(line["time"], f"^{TIME}$")
            self.assertIn(line["level"], ("trace", "debug", "info", "warning", "error", "critical"))
            self.assertNotIn("=", line["message"])
        of = {line["message"]: line for line in lines}
        self.assertEqual(of["kilokvd ready"]["endpoint"], server.endpoint)
        self.assertIsInstance(of["kilokvd ready"]["batch"], int)
        self.assertIsInstance(of["kilokvd recovered"]["seconds"], float)
        self.assertEqual(of["kilokvd has settings that are not the defaults"]["data_dir"], f"{self.folder}/data")
        slow = next(line for line in lines if line.get("trace") == TRACE and "reason" in line)
        self.assertIsInstance(slow["total_us"], int)
        self.assertRegex(slow["session"], "^[0-9a-f]{8}$")
        refused = of["kilokvd refused requests"]
        self.assertEqual((refused["reason"], refused["times"], refused["level"]), ("OUT_OF_RANGE", 1, "info"))
        self.assertIn("--key-bytes-max", refused["error"])

    def test_deeper_levels_tell_more(self):
        counts = []
        for level in ("warning", "info", "debug", "trace"):
            server = self.serve("--log-level", level)
            self.client(server, "put", "a", "1")
            self.assertEqual(server.stop(), 0)
            counts.append(len(server.lines()))
            text = server.log_file.read_text()
            self.assertEqual("kilokvd executed a batch" in text, level in ("debug", "trace"), level)
            self.assertEqual("kilokvd accepted a connection peer=ipv4:127.0.0.1:" in text, level in ("debug", "trace"))
            self.assertEqual("kilokvd admitted a request" in text, level == "trace", level)
            server.log_file.unlink()
        self.assertEqual(counts, sorted(set(counts)), "each level has more lines than the one before")


class Levels(LogTest):
    def test_the_level_changes_while_the_server_runs(self):
        admin = self.folder / "admin.token"
        server = self.serve("--login", "on", "--bootstrap-file", admin, "--log-level", "warning")
        teller = self.folder / "teller.token"
        self.client(server, "role", "grant", "teller", "--read", "", "--write", "", "--metrics", token=admin)
        self.client(server, "user", "set", "teller", "--role", "teller", token=admin)
        self.client(server, "token", "create", "teller", "--file", teller, token=admin)
        self.assertEqual(self.client(server, "log-level", token=admin).strip(), "warning")
        self.client(server, "put", "a", "1", token=teller)
        self.assertNotIn("kilokvd executed a batch", server.log_file.read_text())
        # It needs the admin right, and a refusal is noted.
        for words in (("log-level", "trace"), ("log-level",)):
            self.assertIn("admin right", self.client(server, *words, token=teller, code=DENIED))
        self.line(server, r"warning kilokvd audit refused changes of the log level refused=1 last_user=teller last_peer=ipv4")
        said = self.client(server, "--output", "json", "log-level", "debug", token=admin)
        self.assertEqual(json.loads(said), {"level": "debug", "level_before": "warning"})
        self.line(server, r"info kilokvd audit user=admin token=[0-9a-f]{16} peer=ipv4:127\.0\.0\.1:\d+ change=log_level "
                          r"new_level=debug old_level=warning result=OK$")
        self.client(server, "put", "a", "2", token=teller)
        self.line(server, r"debug kilokvd executed a batch batch=\d+ transactions=1 ")
        # No level drops the line about a change of the level.
        self.assertEqual(self.client(server, "log-level", "off", token=admin).strip(), "off (before: debug)")
        before = len(server.lines())
        self.client(server, "put", "a", "3", token=teller)
        self.client(server, "log-level", "error", token=admin)
        later = [line for line in server.lines()[before:] if "audit" in line]
        self.assertEqual(len(later), len(server.lines()) - before, "nothing else was written")
        self.assertRegex(later[0], "new_level=error old_level=off")
        self.assertIn("trace", self.client(server, "log-level", "loud", token=admin, code=USAGE))


class Secrets(LogTest):
    PLANTED = "planted-key"

    def everything(self, server, admin=None):
        """Runs all kinds of requests, with the planted key; returns the whole ids of their sessions."""
        key = self.PLANTED
        def run(*words, **more):
            return self.client(server, *words, **more, token=admin)
        run("put", key, "1")
        run("get", key)
        run("add", f"{key}-2", "5")
        run("del", f"{key}-2")
        run("scan", "--prefix", key)
        lines = run("txn", stdin=as_lines([{"guards": [{"key": key, "is": "ge", "value": 5}], "then": [add(key, 1)]}]), code=1)
        run("put", key + "k" * 2000, "1", code=3)
        def wait(*words):
            waiting = subprocess.Popen([BIN / "kilokv", "--endpoint", server.endpoint, *(("--token-file", admin) if admin else ()),
                                        "txn", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
            waiting.stdin.write(as_lines([{"guards": [wait_for(key, 1000)], "wait_timeout_ms": 60000, "then": [add(key, 1)]}]))
            waiting.stdin.close()
            waiting.stdin = None
            until(lambda: self.PLANTED in run("parked", "list"), "the transaction waits")
            return waiting
        waiting = wait()
        run("parked", "cancel", "--prefix", key)
        lines += waiting.communicate(timeout=60)[0]
        sessions = set(re.findall(r'"session": "([0-9a-f]{32})"', lines))
        self.assertEqual(len(sessions), 2, lines)
        # A second holder: attaches are written, too.
        file = self.folder / "session"
        file.unlink(missing_ok=True)
        waiting = wait("--session-file", file)
        sessions.add(file.read_text().strip())
        run("session", "attach", "--session-file", file)
        run("parked", "cancel", "--prefix", key)
        waiting.communicate(timeout=60)
        return sessions

    def check(self, server, sessions):
        text = server.log_file.read_text()
        self.assertNotIn(self.PLANTED, text)
        for session in sessions:
            self.assertNotIn(session, text)
            self.assertIn(session[:8], text, "its begin is there, so what is searched could be found")

    def test_no_level_has_a_key_or_the_whole_id_of_a_session(self):
        for level in ("trace", "debug"):
            for keys in ("hash", "none"):
                with self.subTest(f"{level}, {keys}"):
                    server = self.serve("--log-level", level, "--log-keys", keys, *EVERYTHING_IS_SLOW)
                    sessions = self.everything(server)
                    self.assertEqual(server.stop(), 0)
                    self.check(server, sessions)
                    server.log_file.unlink()

    def test_a_missing_right_does_not_show_the_key(self):
        admin, other = self.folder / "admin.token", self.folder / "other.token"
        server = self.serve("--login", "on", "--bootstrap-file", admin, "--log-level", "trace", *EVERYTHING_IS_SLOW)
        sessions = self.everything(server, admin)
        self.client(server, "user", "set", "other", token=admin)
        self.client(server, "token", "create", "other", "--file", other, token=admin)
        self.assertIn(self.PLANTED, self.client(server, "get", self.PLANTED, token=other, code=DENIED))
        self.line(server, r'kilokvd refused requests reason=RIGHT_MISSING .* last_client="user:other" field="')
        self.assertEqual(server.stop(), 0)
        self.check(server, sessions)

    def test_with_full_keys_they_are_there(self):
        server = self.serve("--log-level", "trace", "--log-keys", "full", *EVERYTHING_IS_SLOW)
        self.everything(server)
        self.line(server, rf'key="{self.PLANTED}"')


class Refusals(LogTest):
    def test_the_first_of_a_kind_is_told_and_then_how_many(self):
        server = self.serve()
        for _ in range(3):
            self.client(server, "put", "k" * 2000, "1", code=3)
        self.line(server, r"info kilokvd refused requests reason=OUT_OF_RANGE code=INVALID_ARGUMENT times=1 last_client=")
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.log_file.read_text().count("reason=OUT_OF_RANGE"), 1)


class StandardError(unittest.TestCase):
    def test_without_a_file_the_same_lines_come_there(self):
        with temporary_folder() as folder, Server(folder) as server:
            self.assertEqual(server.stop(), 0)
            lines = server.log.read_text().splitlines()
            self.assertRegex(lines[0], rf"^{TIME} info kilokvd starts version=")
            self.assertIn("kilokvd stopped", lines[-1])


if __name__ == "__main__":
    unittest.main()
