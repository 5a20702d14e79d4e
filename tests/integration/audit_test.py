#!/usr/bin/env python3
"""The lines of the log about who changed users, roles and tokens, and who attached to a session; and how an administrator
gets in again."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, LoggingServer, temporary_folder, until  # noqa: E402

OK, LOGIN_FAILED = 0, 5
WHO = r"kilokvd audit user=admin token=[0-9a-f]{16} peer=ipv4:127\.0\.0\.1:\d+ change="


class AuditTest(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.admin = self.folder / "admin.token"

    def serve(self, *flags):
        server = LoggingServer(self.folder, "--login", "on", "--log-level", "critical", *flags)
        self.addCleanup(server.kill)
        (self.folder / "port").unlink(missing_ok=True)  # of the start before
        server.start()
        return server

    def run_as(self, token, server, *words, code=OK):
        done = subprocess.run([BIN / "kilokv", "--endpoint", server.endpoint, "--token-file", str(token), *words],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def test_no_level_of_the_log_drops_these_lines(self):
        server = self.serve("--bootstrap-file", self.admin)
        long_key = "k" * 1000
        for words in (("role", "grant", "teller", "--read", 'a "b",/', "--write", long_key, "--metrics"),
                      ("user", "set", "alice", "--role", "teller", "--certificate", "alice, bob"),
                      ("token", "create", "alice", "--file", str(self.folder / "alice.token"), "--expires-in", "1h"),
                      ("token", "create", "alice", "--file", str(self.folder / "other.token"))):
            self.run_as(self.admin, server, *words)
        alice = (self.folder / "alice.token").read_text().split("_")[1]
        self.run_as(self.admin, server, "token", "remove", alice)
        self.run_as(self.folder / "alice.token", server, "get", "a", code=LOGIN_FAILED)
        until(server.has_line("kilokvd refused logins refused=1 "), "the line about the refused login")
        lines = [line.partition(" kilokvd ")[1:] for line in server.lines()]
        lines = ["".join(line).strip() for line in lines]
        begun = [line.removesuffix("begins") for line in lines if line.endswith("result=begins")]
        lines = [line for line in lines if not line.endswith("result=begins")]
        wanted = [
            r'kilokvd audit user=bootstrap peer=local change=grant role="admin" read=\["",""\) .* batch=\d+ result=OK',
            r'kilokvd audit user=bootstrap peer=local change=change_user of_user="admin" .* batch=\d+ result=OK',
            r'kilokvd audit user=bootstrap peer=local change=create_token of_user="admin" new_token=[0-9a-f]{16} .*',
            WHO + r'grant role="teller" read=\["a \\"b\\",/","a \\"b\\",0"\) '
                  rf'write=\["{long_key}","{long_key[:-1]}l"\) metrics=true batch=\d+ result=OK',
            WHO + r'change_user of_user="alice" add_roles="teller" add_certificates="alice, bob" batch=\d+ result=OK',
            WHO + rf'create_token of_user="alice" new_token={alice} expires_us=[1-9]\d{{15}} batch=\d+ result=OK',
            WHO + r'create_token of_user="alice" new_token=[0-9a-f]{16} expires_us=0 batch=\d+ result=OK',
            WHO + rf'remove_token removed_token="{alice}" batch=\d+ result=OK',
            r'kilokvd refused logins refused=1 last_peer=\S+ reason=".*unknown, or was removed.*"',
        ]
        self.assertEqual(len(lines), len(wanted), lines)
        for line, pattern in zip(lines, wanted):
            self.assertRegex(line, f"^{pattern}$")
        # Each change has a line before it is made, too.
        self.assertEqual(begun, [line.removesuffix("OK") for line in lines if line.endswith("result=OK")])

    # The batches of a start: three make the administrator. The fourth is the change. It is durable when the kill comes.
    def test_a_change_that_is_never_answered_has_a_line(self):
        server = LoggingServer(self.folder, "--login", "on", "--bootstrap-file", self.admin,
                               environment={"KILOKV_FAIL_POINTS": "core.answer.before=kill:4"})
        self.addCleanup(server.kill)
        server.start()
        done = subprocess.run([BIN / "kilokv", "--endpoint", server.endpoint, "--token-file", str(self.admin), "--timeout",
                               "5s", "role", "grant", "teller", "--read", "a"], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, OK)
        server.wait_end()
        (self.folder / "port").unlink()
        self.assertRegex(server.lines()[-1], WHO + r'grant role="teller" read=\["a","b"\) batch=4 result=begins$')
        server = self.serve()
        self.assertIn("teller", self.run_as(self.admin, server, "role", "list"))

    # Three batches make the administrator, one opens the session, and one parks its transaction. The sixth is the attach. It
    # is durable when the kill comes.
    def test_an_attach_that_is_never_answered_has_a_line_and_counts(self):
        server = LoggingServer(self.folder, "--login", "on", "--bootstrap-file", self.admin,
                               environment={"KILOKV_FAIL_POINTS": "core.answer.before=kill:6"})
        self.addCleanup(server.kill)
        server.start()
        file = self.folder / "program.session"
        as_admin = [BIN / "kilokv", "--endpoint", server.endpoint, "--token-file", str(self.admin), "--timeout", "5s"]
        waits = '{"guards": [{"key": "a", "is": "exists", "when_false": "wait"}], "then": [{"op": "get", "key": "a"}], ' \
                '"wait_timeout_ms": 3600000}'
        program = subprocess.Popen([*as_admin, "txn", "--session-file", str(file)], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        program.stdin.write(waits)
        program.stdin.close()
        until(lambda: '"parked":1' in subprocess.run(
            [*as_admin, "--output", "json", "status"], capture_output=True, text=True, timeout=60).stdout, "one waits")
        attach = [*as_admin, "session", "attach", "--session-file", str(file)]
        done = subprocess.run(attach, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, OK)
        server.wait_end()
        program.kill()
        (self.folder / "port").unlink()
        shown = file.read_text()[:8]
        self.assertRegex(server.lines()[-1], WHO + rf"attach_session session={shown} holder=1 batch=6 result=begins$")
        self.assertNotIn(file.read_text().strip(), server.log_file.read_text())
        server = self.serve()
        again = self.run_as(self.admin, server, "session", "attach", "--session-file", str(file))
        self.assertIn(f"session {shown}, holder 2, acknowledged through 0", again)

    def test_who_lost_all_tokens_gets_in_again(self):
        server = self.serve("--bootstrap-file", self.admin)
        self.run_as(self.admin, server, "put", "a", "1")
        self.assertEqual(server.stop(), 0)
        lost = self.folder / "lost.token"
        self.admin.rename(lost)
        again = ("--bootstrap-again", "on", "--bootstrap-file", self.admin)
        server = self.serve(*again)
        self.run_as(self.admin, server, "token", "remove", lost.read_text().split("_")[1])
        self.run_as(lost, server, "get", "a", code=LOGIN_FAILED)
        self.assertEqual(self.run_as(self.admin, server, "get", "a").strip(), "1")
        self.assertEqual(server.stop(), 0)
        # A second start with the same flags makes no further administrator.
        done = subprocess.run([BIN / "kilokvd", "--data-dir", self.folder / "data", "--listen", "127.0.0.1:0", "--login",
                               "on", *again], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs a new file", done.stderr)
        server = self.serve("--bootstrap-file", lost)  # the removed token does not come back
        self.run_as(lost, server, "get", "a", code=LOGIN_FAILED)
        self.run_as(self.admin, server, "get", "a")

    def test_a_start_whose_port_file_cannot_be_written_ends_in_order(self):
        done = subprocess.run([BIN / "kilokvd", "--data-dir", self.folder / "data", "--listen", "127.0.0.1:0",
                               "--port-file", self.folder / "none" / "port"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], "kilokvd cannot start .*--port-file: cannot write")


if __name__ == "__main__":
    unittest.main()
