#!/usr/bin/env python3
"""Logins and rights of the real programs: the first administrator, rights by key, and what a revoke ends."""

import json
import os
import pathlib
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "crash"), str(ROOT / "tests" / "attack")]
import http2  # noqa: E402
from certificates import CLIENT, SERVER, Authority, forms_of, secrets_of  # noqa: E402
from programs import BIN, SLOWER, Server, temporary_folder, until  # noqa: E402

OK, NOT_DONE, REFUSED = 0, 1, 3
LOGIN_FAILED = DENIED = NOT_NOW = NOT_FOUND = 5  # the code for other errors


def forms_of_token(token):
    """The forms in which the secret of a token could be written: its text and its bytes."""
    secret = token.split("_")[2]
    return [secret.upper().encode(), *forms_of(secret.encode()), *forms_of(bytes.fromhex(secret))]


def forms_of_key_secret(secret):
    """The same for the two numbers under which keys are hashed."""
    forms = forms_of(secret)
    for number in struct.unpack("<QQ", secret):
        forms += [b"%016x" % number, b"%d" % number]
    return forms


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


class LoginTest(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.admin = self.folder / "admin.token"
        self.server = Server(self.folder, "--login", "on", "--bootstrap-file", str(self.admin))
        self.addCleanup(self.server.kill)
        self.server.start()

    def command(self, *words, token=None, program="kilokv"):
        flags = ["--token-file", str(token)] if token else []
        return [str(BIN / program), *words, "--endpoint", self.server.endpoint, *flags]

    def run_as(self, token, *words, code=OK, stdin=None, program="kilokv"):
        done = subprocess.run(self.command(*words, token=token, program=program), input=stdin, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def as_admin(self, *words, **more):
        return self.run_as(self.admin, *words, **more)

    def user(self, name, *rights):
        """Makes a user with a role of its own, and returns the file of its token."""
        token = self.folder / f"{name}.token"
        self.as_admin("role", "grant", f"role-{name}", *rights)
        self.as_admin("user", "set", name, "--role", f"role-{name}")
        self.as_admin("token", "create", name, "--file", str(token))
        return token

    def test_the_first_administrator_gets_a_token(self):
        self.assertEqual(stat.S_IMODE(self.admin.stat().st_mode), 0o600)
        self.as_admin("put", "a", "1")
        self.assertIn("1", self.as_admin("get", "a"))
        self.assertIn("admin", self.as_admin("user", "list"))
        text = self.server.log.read_text()
        self.assertIn("has made the user admin", text)
        self.assertNotIn(self.admin.read_text().strip(), text)

    def test_nobody_gets_in_without_a_login(self):
        text = self.run_as(None, "get", "a", code=LOGIN_FAILED)
        self.assertIn("needs a login", text)
        wrong = self.folder / "wrong.token"
        wrong.write_text("kilokv_" + "0" * 16 + "_" + "1" * 64 + "\n")
        self.assertIn("unknown, or was removed", self.run_as(wrong, "get", "a", code=LOGIN_FAILED))
        wrong.write_text("secret\n")
        self.assertIn("malformed", self.run_as(wrong, "get", "a", code=REFUSED))
        until(lambda: "refused logins" in self.server.log.read_text(), "a line about refused logins")

    def test_every_program_takes_the_token(self):
        for program, command in (("kilokv", ["put", "key", "1"]), ("kilokv-bank", ["open", "alice"]),
                                 ("kilokv-bank", ["demo", "--duration", "300ms", "--clients", "2", "--accounts", "10"]),
                                 ("kilokv-bench", ["run", "--duration", "300ms", "--warmup", "0", "--keys", "100"])):
            with self.subTest(program, command=command):
                self.run_as(None, *command, program=program, code=LOGIN_FAILED)
                self.run_as(self.admin, *command, program=program)

    def test_rights_are_checked_by_key(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        auditor = self.user("auditor", "--read", "", "--metrics")
        self.run_as(teller, "add", "account/1", "5")
        text = self.run_as(teller, "put", "bonus", "1", code=DENIED)
        self.assertIn('then[0]: user "teller" has no write right', text)
        self.run_as(teller, "get", "bonus", code=DENIED)
        self.run_as(teller, "scan", "--prefix", "account/")
        self.run_as(teller, "scan", code=DENIED)
        self.run_as(teller, "status", code=DENIED)
        self.run_as(teller, "user", "list", code=DENIED)
        self.run_as(teller, "parked", "list", code=DENIED)
        self.run_as(auditor, "get", "account/1", "bonus", code=NOT_DONE)  # bonus is absent
        self.run_as(auditor, "status")
        self.run_as(auditor, "del", "account/1", code=DENIED)
        # A guard reads, and both lists of operations count.
        guard = {"guards": [{"key": "other", "is": "absent"}], "then": [{"op": "add", "key": "account/1", "delta": 1}]}
        self.run_as(teller, "txn", stdin=json.dumps(guard), code=DENIED)
        els = {"guards": [{"key": "account/1", "is": "exists"}], "then": [{"op": "add", "key": "account/1", "delta": 1}],
               "else": [{"op": "put", "key": "other", "value": 1}]}
        self.assertIn("else[0]", self.run_as(teller, "txn", stdin=json.dumps(els), code=DENIED))
        self.assertIn("5", self.run_as(teller, "get", "account/1"))

    def test_a_restart_keeps_users_and_rights(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        for end in (self.server.kill, self.server.stop):
            end()
            self.server.start()
            self.run_as(teller, "add", "account/1", "5")
            self.run_as(teller, "put", "bonus", "1", code=DENIED)
            self.as_admin("role", "list")

    def status(self):
        return json.loads(self.as_admin("--output", "json", "status"))

    def wait_for_checkpoint(self):
        """Until a checkpoint has all that was done so far."""
        batch = self.status()["executed_batch"]
        until(lambda: self.status()["checkpoint_batch"] >= batch, "a checkpoint")

    def restart(self, *flags):
        """Ends the server and starts it again, on the same data with these flags more."""
        if self.server.pid:
            self.server.kill()
        endpoint = self.server.endpoint
        self.server = Server(self.folder, "--login", "on", "--bootstrap-file", str(self.admin), *flags)
        self.server.endpoint = endpoint
        self.addCleanup(self.server.kill)
        self.server.start()

    def test_a_change_waits_for_the_server(self):
        self.assertEqual(self.server.stop(), 0)
        waiting = subprocess.Popen(self.command("user", "set", "bob", "--wait", "60s", token=self.admin), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        text = self.run_as(self.admin, "user", "set", "carol", code=4)
        self.assertIn("nothing listens", text)
        self.server.start()
        output, _ = waiting.communicate(timeout=90)
        self.assertEqual(waiting.returncode, OK, output)
        users = self.as_admin("user", "list")
        self.assertIn("bob", users)
        self.assertNotIn("carol", users)

    def test_an_expired_token_runs_nothing_new(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        short = self.folder / "short.token"
        self.as_admin("token", "create", "teller", "--file", str(short), "--expires-in", f"{4 * SLOWER}s")
        # What was accepted before goes on.
        waiting = self.park(short, "account/7")
        line = '{"then": [{"op": "add", "key": "account/1", "delta": 1}]}\n'
        stream = subprocess.Popen(self.command("txn", token=short), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        self.addCleanup(end, stream)
        stream.stdin.write(line)
        stream.stdin.flush()
        self.assertIn("COMMITTED", stream.stdout.readline())
        until(lambda: subprocess.run(self.command("get", "account/1", token=short), capture_output=True,
                                     timeout=60).returncode == LOGIN_FAILED, "the end of the token", 20)
        text = self.run_as(short, "add", "account/1", "1", code=LOGIN_FAILED)
        self.assertRegex(text, "UNAUTHENTICATED: .*the token [0-9a-f]{16} has expired")
        stream.stdin.write(line)
        stream.stdin.close()
        stream.stdin = None
        text = stream.communicate(timeout=60)[0]
        self.assertEqual(stream.returncode, LOGIN_FAILED, text)
        self.assertIn("has expired", text)
        self.assertEqual(len(self.parked()), 1)
        self.run_as(teller, "add", "account/7", "10")
        with waiting:
            self.assertIn("COMMITTED", waiting.stdout.read())
        self.assertEqual(self.run_as(teller, "get", "account/1").strip(), "1")
        self.restart()
        self.assertIn("has expired", self.run_as(short, "get", "account/1", code=LOGIN_FAILED))

    def test_a_call_whose_message_comes_after_the_end_of_its_token_is_refused(self):
        """The headers come while the token counts."""
        short = self.folder / "short.token"
        self.as_admin("token", "create", "admin", "--file", str(short), "--expires-in", f"{2 * SLOWER}s")
        new_token = http2.bytes_field(6, http2.bytes_field(1, b"admin"))
        caller = http2.Caller(self.server.endpoint,
                              headers=(("authorization", f"Bearer {short.read_text().strip()}"),))
        self.addCleanup(caller.close)
        streams = [(caller.call_unfinished(method, b""), message) for method, message in (
            ("ChangeAccess", new_token), ("ListAccess", b""), ("ListParked", b""), ("Status", b""), ("OpenSession", b""),
            ("SetLogLevel", b""), ("Scan", b""), ("Get", http2.bytes_field(1, b"a")), ("Execute", b""), ("ExecuteBatch", b""))]
        until(lambda: subprocess.run(self.command("get", "a", token=short), capture_output=True,
                                     timeout=60).returncode == LOGIN_FAILED, "the end of the token", 20)
        tokens = self.as_admin("token", "list")
        for stream, message in streams:
            sent = http2.message(message)
            caller.socket.setblocking(True)
            caller.socket.sendall(http2.frame(http2.DATA, http2.END_STREAM, stream, sent))
        caller.socket.setblocking(False)

        def all_ended():
            select.select([caller], [], [], 0.1)
            caller.read()
            return not caller.open

        until(all_ended, "the ends of the calls")
        self.assertEqual(set(caller.ends), {"16"} | ({"3"} & set(caller.ends)), caller.ends)
        self.assertGreaterEqual(caller.ends["16"], len(streams) - 2, "Execute and ExecuteBatch are malformed as well")
        self.assertEqual(self.as_admin("token", "list"), tokens)

    def test_no_key_reaches_users_roles_or_tokens(self):
        """They are outside the space of keys, also in a checkpoint. So an administrator with all rights reads and
        deletes only keys."""
        self.restart("--checkpoint-interval", "100ms")
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        keys = ["!", "account/1", "admin", "role-teller", "teller"]
        for key in keys:
            self.as_admin("put", key, "1")
        self.wait_for_checkpoint()

        def all_keys():
            scanned = [json.loads(line)["key"] for line in self.as_admin("--output", "json", "scan").splitlines()]
            read = {"then": [{"op": "range_get", "from": "", "to": None, "limit": 10000}]}
            line = json.loads(self.as_admin("--output", "json", "txn", stdin=json.dumps(read)))
            self.assertEqual(scanned, [pair["key"] for pair in line["reads"]])
            return scanned

        self.assertEqual(all_keys(), keys)
        self.assertEqual(self.status()["records"], len(keys))
        listed = [self.as_admin(kind, "list") for kind in ("user", "role", "token")]
        everything = {"then": [{"op": "delete_range", "from": "", "to": None, "limit": 10000}]}
        self.as_admin("txn", stdin=json.dumps(everything))
        self.assertEqual(all_keys(), [])
        for restart in (False, True):
            if restart:
                self.wait_for_checkpoint()
                self.restart("--checkpoint-interval", "100ms")
                self.assertEqual(all_keys(), [])
            self.assertEqual([self.as_admin(kind, "list") for kind in ("user", "role", "token")], listed)
            self.run_as(teller, "add", "account/1", "1")
            self.run_as(teller, "put", "admin", "1", code=DENIED)
            self.as_admin("txn", stdin=json.dumps(everything))

    def test_a_user_has_a_weight(self):
        def weights():
            return {user["user"]: user["weight"] for user in map(json.loads, self.as_admin("--output", "json", "user",
                                                                                           "list").splitlines())}
        before = self.status()["state_hash"]
        self.as_admin("user", "set", "alice")
        self.as_admin("user", "set", "batch-jobs", "--weight", "5")
        self.assertEqual(weights(), {"admin": 1, "alice": 1, "batch-jobs": 5})
        self.as_admin("user", "set", "alice", "--weight", "100")
        self.as_admin("user", "set", "batch-jobs", "--certificate", "jobs")  # leaves the weight as it is
        for words in ("0", "101", "-1", "much"):
            self.as_admin("user", "set", "alice", "--weight", words, code=2)
        for end_server in (self.server.kill, self.server.stop):
            end_server()
            self.server.start()
            self.assertEqual(weights(), {"admin": 1, "alice": 100, "batch-jobs": 5})
        self.assertRegex(self.as_admin("user", "list"), r"(?m)^alice\t.*\tweight 100$")
        self.assertIn('change=change_user of_user="alice" weight=100', self.server.log.read_text())
        changed = self.status()["state_hash"]
        self.as_admin("user", "set", "alice", "--weight", "99")
        self.assertNotIn(self.status()["state_hash"], (before, changed))

    def test_the_state_hash_covers_rights(self):
        self.as_admin("put", "a", "1")
        before = self.status()["state_hash"]
        self.assertEqual(self.status()["state_hash"], before)
        seen = {before}
        for words in (("role", "grant", "teller", "--read", "a"), ("role", "grant", "teller", "--write", "a"),
                      ("user", "set", "alice"), ("user", "set", "alice", "--role", "teller"),
                      ("token", "create", "alice", "--file", str(self.folder / "alice.token")),
                      ("role", "grant", "teller", "--metrics")):
            self.as_admin(*words)
            changed = self.status()["state_hash"]
            self.assertNotIn(changed, seen, words)
            seen.add(changed)
        for end_server in (self.server.kill, self.server.stop):
            end_server()
            self.server.start()
            self.assertEqual(self.status()["state_hash"], changed)
        for words in (("user", "remove", "alice"), ("role", "remove", "teller")):
            self.as_admin(*words)
        self.assertEqual(self.status()["state_hash"], before)

    def parked(self):
        return [json.loads(line) for line in self.as_admin("--output", "json", "parked", "list").splitlines()]

    def park(self, token, key, *flags):
        """Starts a withdrawal that waits for a deposit."""
        before = len(self.parked())
        waiting = self.begin_to_wait(self.command("--timeout", "60s", "txn", *flags, token=token), key)
        until(lambda: len(self.parked()) > before, "a parked transaction")
        return waiting

    def begin_to_wait(self, command, key):
        transaction = {"guards": [{"key": key, "is": "ge", "value": 10, "when_false": "wait"}], "wait_timeout_ms": 60000,
                       "then": [{"op": "add", "key": key, "delta": -10}]}
        waiting = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        self.addCleanup(end, waiting)
        waiting.stdin.write(json.dumps(transaction))
        waiting.stdin.close()
        return waiting

    def end_of(self, waiting):
        with waiting:
            text = waiting.stdout.read()
            self.assertNotEqual(waiting.wait(timeout=30), OK)
        return text

    def test_a_start_without_logins_warns_where_there_are_users(self):
        warning = "warning kilokvd checks nobody's rights: this database has users, and --login is off"
        self.assertNotIn(warning, self.server.log.read_text())
        self.server.kill()
        server = Server(self.folder)
        with server:
            self.assertIn(warning, server.log.read_text())

    def test_a_file_is_never_overwritten_with_a_token(self):
        self.user("alice", "--read", "account/")
        file = self.folder / "old.token"
        file.write_text("precious")
        before = self.as_admin("token", "list")
        self.assertIn("is there already, and is not overwritten; no token was made",
                      self.as_admin("token", "create", "alice", "--file", str(file), code=5))
        self.assertEqual(file.read_text(), "precious")
        self.assertEqual(self.as_admin("token", "list"), before)

    def test_what_was_parked_before_a_revoke_does_not_run(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        for revoke in (("role", "revoke", "role-teller", "--write", "account/"), ("role", "remove", "role-teller"),
                       ("user", "remove", "teller")):
            with self.subTest(revoke):
                teller.unlink()
                teller = self.user("teller", "--read", "account/", "--write", "account/")
                waiting = self.park(teller, "account/7")
                self.as_admin(*revoke)
                self.assertEqual(self.parked(), [])
                self.as_admin("put", "account/7", "100")
                self.assertIn("100", self.as_admin("get", "account/7"))
                self.assertIn("PERMISSION_DENIED", self.end_of(waiting))
                self.as_admin("del", "account/7")

    def test_what_was_parked_without_a_call_does_not_run_after_a_revoke(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        for revoke in (("role", "revoke", "role-teller", "--write", "account/"), ("user", "remove", "teller")):
            with self.subTest(revoke):
                teller.unlink()
                teller = self.user("teller", "--read", "account/", "--write", "account/")
                waiting = self.park(teller, "account/7", "--detached")
                connections = self.sockets_of(waiting.pid)
                self.assertTrue(connections)
                waiting.kill()
                until(lambda: not connections & self.sockets_of_server(), "the end of the client's connections")
                self.assertEqual(len(self.parked()), 1, "it is detached")
                self.as_admin(*revoke)
                self.assertEqual(self.parked(), [])
                self.as_admin("put", "account/7", "100")
                self.assertIn("100", self.as_admin("get", "account/7"))
                self.as_admin("del", "account/7")

    def test_a_removed_token_does_not_count(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        waiting = self.park(teller, "account/9")
        token = teller.read_text().split("_")[1]
        self.as_admin("token", "remove", token)
        self.run_as(teller, "get", "account/1", code=LOGIN_FAILED)
        self.assertIn("PERMISSION_DENIED", self.end_of(waiting))
        self.assertEqual(self.parked(), [])

    def test_the_connections_of_a_removed_user_end(self):
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        other = self.user("other", "--read", "account/", "--write", "account/")
        line = '{"then": [{"op": "add", "key": "account/1", "delta": 1}]}\n'
        open_clients = []
        for token in (teller, other):
            client = subprocess.Popen(self.command("txn", token=token), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
            self.addCleanup(end, client)
            client.stdin.write(line)
            client.stdin.flush()
            self.assertIn("COMMITTED", client.stdout.readline())
            open_clients.append(client)
        lost, stays = (self.sockets_of(client.pid) for client in open_clients)
        self.assertTrue(lost and stays)
        self.as_admin("user", "remove", "teller")
        until(lambda: not lost & self.sockets_of_server(), "the end of the connections of the removed user")
        self.assertEqual(stays & self.sockets_of_server(), stays)
        for client, code in zip(open_clients, (LOGIN_FAILED, OK)):
            client.stdin.write(line)
            client.stdin.close()
            client.stdin = None
            text = client.communicate(timeout=30)[0]
            self.assertEqual(client.returncode, code, text)

    def connections(self):
        """Local port, port of the peer and inode of each open connection to the server, of all processes."""
        lines = [line.split() for family in ("tcp", "tcp6")
                 for line in pathlib.Path(f"/proc/net/{family}").read_text().splitlines()[1:]]
        port = int(self.server.endpoint.rsplit(":", 1)[1])
        return [(int(line[1].split(":")[1], 16), int(line[2].split(":")[1], 16), line[9]) for line in lines
                if line[3] == "01" and f":{port:04X}" in line[1] + line[2]]

    def sockets_of(self, pid):
        """The ports of a client's connections to the server."""
        inodes = set()
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(descriptor))
            except OSError:
                pass
        return {local for local, _, inode in self.connections() if f"socket:[{inode}]" in inodes}

    def sockets_of_server(self):
        """The ports of all clients that have an open connection to the server."""
        port = int(self.server.endpoint.rsplit(":", 1)[1])
        return {peer for local, peer, _ in self.connections() if local == port}

    def test_the_last_administrator_stays(self):
        for words in (("user", "remove", "admin"), ("role", "revoke", "admin", "--admin"), ("role", "remove", "admin"),
                      ("token", "remove", self.admin.read_text().split("_")[1])):
            self.assertIn("nobody could log in", self.as_admin(*words, code=NOT_NOW))
        self.as_admin("user", "list")

    def raw(self, headers, scheme="http", *flags):
        """A call of Status by curl, with these headers: the headers and trailers of the answer. A call that is refused
        before its message is reset after the answer. If curl has not read the answer by then, it says 92, and the call is
        made again."""
        words = ["curl", "-sS", "-i", "--max-time", "60", *flags, "-H", "content-type: application/grpc", "-H",
                 "te: trailers", *(part for header in headers for part in ("-H", header)), "--data-binary", "@-",
                 f"{scheme}://{self.server.endpoint}/kilokv.v1.KiloKV/Status"]
        for _ in range(20):
            done = subprocess.run(words, input=bytes(5), capture_output=True, timeout=90)
            if done.returncode != 92:
                break
        return (done.stdout + done.stderr).decode(errors="surrogateescape")

    def key_secret(self):
        """The secret under which keys are hashed: the value of `identity` in the first write-ahead log
        (docs/log-format.md)."""
        logs = b"".join(file.read_bytes() for file in (self.folder / "data").rglob("*.log"))
        found = set(re.findall(b"identity\x21\x01.{16}(.{16})", logs, re.DOTALL))
        self.assertEqual(len(found), 1)
        return found.pop()

    def data_files(self):
        files = [file for file in (self.folder / "data").rglob("*") if file.is_file()]
        self.assertTrue(files)
        return [file.read_bytes() for file in files]

    def test_no_secret_is_shown(self):
        key_secret = self.key_secret()
        self.restart("--log-level", "trace", "--checkpoint-interval", "100ms")
        teller = self.user("teller", "--read", "account/", "--write", "account/")
        removed = self.user("removed", "--read", "account/")
        wrong = self.folder / "wrong.token"
        wrong.write_text("kilokv_" + "5" * 16 + "_" + os.urandom(32).hex() + "\n")
        self.as_admin("token", "remove", removed.read_text().split("_")[1])
        shown = [self.as_admin("--output", form, *words) for form in ("text", "json")
                 for words in (("status",), ("user", "list"), ("role", "list"), ("token", "list"))]
        # Errors and histories.
        shown += [self.run_as(token, "get", "account/1", code=LOGIN_FAILED) for token in (removed, wrong)]
        shown.append(self.run_as(teller, "put", "other", "1", code=DENIED))
        shown.append(self.run_as(teller, "txn", stdin='{"then": [{"op": "add", "key": "account/1", "delta": 1}]}'))
        # Headers that are no login, around good tokens.
        for token in (teller, self.admin, removed, wrong):
            good = token.read_text().strip()
            for header in (f"Bearer {good}x", f"bearer {good}", f"Basic {good}", good, f"Bearer x{good}",
                           f"Bearer {good}, Bearer {good}"):
                text = self.raw([f"authorization: {header}"], "http", "--http2-prior-knowledge")
                self.assertIn("grpc-status: 16", text, header)
                shown.append(text)
        shown += self.command_lines(teller)
        self.wait_for_checkpoint()
        data = self.data_files()
        self.server.stop()
        data += self.data_files()
        self.server.start()
        self.run_as(teller, "get", "account/1")
        self.server.stop()
        data += self.data_files()
        log = self.server.log.read_bytes()
        said = b"\n".join([log, *(text.encode(errors="surrogateescape") for text in shown)])
        for token in (teller, self.admin, removed, wrong):
            forms = forms_of_token(token.read_text().strip())
            self.assertTrue(any(form in token.read_bytes() for form in forms))  # what is searched can be found
            for form in forms:
                self.assertFalse(any(form in content for content in (said, *data)), token.name)
        forms = forms_of_key_secret(key_secret)
        self.assertTrue(any(form in content for form in forms for content in data))
        for form in forms:
            self.assertNotIn(form, said, "the secret under which keys are hashed")

    def test_no_secret_is_in_a_history(self):
        history = self.folder / "bench.history"
        self.run_as(self.admin, "run", "--duration", "200ms", "--keys", "100", "--history", str(history),
                    program="kilokv-bench")
        content = history.read_bytes()
        self.assertIn(b'"outcome"', content)
        for form in forms_of_token(self.admin.read_text().strip()):
            self.assertNotIn(form, content)

    def command_lines(self, token):
        """Those of the server and of all clients while they run, and what the clients print."""
        waiting = self.park(token, "account/7")
        bank = lambda *words: self.command(*words, token=self.admin, program="kilokv-bank")  # noqa: E731
        texts = [subprocess.run(bank("open", "alice"), capture_output=True, text=True, timeout=60).stdout]
        self.assertIn("alice", texts[0])
        running = [waiting]
        for command in (bank("withdraw", "alice", "7.00", "--wait", "60s"),
                        self.command("run", "--duration", "60s", "--warmup", "0s", "--keys", "100", token=self.admin,
                                     program="kilokv-bench")):
            running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True))
            self.addCleanup(end, running[-1])
        until(lambda: len(self.parked()) == 2, "a withdrawal that waits")
        texts.append(self.as_admin("--output", "json", "parked", "list"))
        for process in (*running, self.server):
            texts.append(pathlib.Path(f"/proc/{process.pid}/cmdline").read_text())
        for process in running:
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            process.stdin = None  # park() has closed it
            texts.append(process.communicate(timeout=60)[0])
        # No program takes a token from its command line, or repeats it.
        secret = token.read_text().strip()
        for program, words in (("kilokv", ("status",)), ("kilokv-bank", ("audit",)), ("kilokv-bench", ("run",))):
            for flags in ((f"--token={secret}",), ("--token", secret)):
                done = subprocess.run([*self.command(*words, program=program), *flags], capture_output=True, text=True,
                                      timeout=60)
                self.assertNotEqual(done.returncode, OK)
                texts.append(done.stdout + done.stderr)
        return texts

    def test_no_private_key_is_shown(self):
        authority = Authority(self.folder, "Test CA")
        alice = authority.issue("alice", CLIENT)
        flags = [*authority.issue("server", SERVER).flags(), "--tls-client-ca", str(authority.certificate)]
        self.restart("--log-level", "trace", "--checkpoint-interval", "100ms", *flags)
        trusting = ["--tls-ca", str(authority.certificate), *alice.flags()]
        shown = [self.as_admin("user", "set", "alice", "--role", "admin", "--certificate", "alice", *trusting),
                 self.as_admin("--output", "json", "status", *trusting), self.as_admin("user", "list", *trusting),
                 self.run_as(None, "put", "a", "1", *trusting)]
        other = authority.issue("other", CLIENT)
        shown.append(self.run_as(None, "get", "a", "--tls-ca", trusting[1], *other.flags(), code=LOGIN_FAILED))
        broken = self.folder / "broken.key"
        broken.write_text(alice.key.read_text()[:-40])
        for key in (broken, other.key):
            shown.append(self.run_as(None, "get", "a", "--tls-ca", trusting[1], "--tls-cert", str(alice.certificate),
                                     "--tls-key", str(key), code=REFUSED))
        until(lambda: json.loads(self.as_admin("--output", "json", "status", *trusting))["checkpoint_batch"] > 0,
              "a checkpoint")
        shown.append(pathlib.Path(f"/proc/{self.server.pid}/cmdline").read_text())
        self.server.stop()
        content = [self.server.log.read_bytes(), *(text.encode(errors="surrogateescape") for text in shown),
                   *self.data_files()]
        broken.unlink()
        secrets = secrets_of(self.folder)
        keys = [path.read_bytes() for path in self.folder.rglob("*.key")]
        self.assertTrue(any(secret in key for secret in secrets for key in keys))
        for secret in secrets:
            self.assertFalse(any(secret in part for part in content), "a private key")

    def test_the_log_says_who_changed_what(self):
        teller = self.user("teller", "--read", "account/")
        self.as_admin("user", "set", "mallory", "--role", "admin")
        self.run_as(teller, "user", "set", "teller", "--role", "admin", code=DENIED)
        self.as_admin("user", "remove", "n" * 100000, code=NOT_FOUND)
        lines = [line.partition(" info ")[2] or line.partition(" warning ")[2]
                 for line in self.server.log.read_text().splitlines()
                 if "kilokvd audit" in line and "result=begins" not in line]
        granted, made, _, promoted, denied, missing = lines[3:]  # the first three make the first administrator
        self.assertRegex(granted, r'^kilokvd audit user=admin token=[0-9a-f]{16} peer=ipv4:127\.0\.0\.1:\d+ '
                                  r'change=grant role="role-teller" read=\["account/","account0"\) batch=\d+ result=OK$')
        self.assertIn('change=change_user of_user="teller" add_roles="role-teller" ', made)
        self.assertIn('change=change_user of_user="mallory" add_roles="admin" ', promoted)
        self.assertRegex(denied, "refused changes of users, roles or tokens refused=1 last_user=teller last_peer=ipv4")
        self.assertIn("result=NOT_FOUND", missing)
        self.assertLess(len(missing), 400)

    def test_a_certificate_logs_in(self):
        authority = Authority(self.folder, "Test CA")
        other_names = "subjectAltName = otherName:1.2.3.4;UTF8:somebody\n"  # of a kind that the server does not compare
        alice = authority.issue("alice", CLIENT + other_names)
        mallory = authority.issue("mallory", CLIENT)
        lists = self.folder / "lists"
        lists.mkdir()
        authority.write_list(lists / "ca.crl")
        flags = [*authority.issue("server", SERVER).flags(), "--tls-client-ca", str(authority.certificate),
                 "--tls-crl-dir", str(lists), "--login", "on", "--bootstrap-file", str(self.admin)]
        server = Server(self.folder / "with-certificates", *flags)
        server.folder.mkdir()
        self.addCleanup(server.kill)
        server.start()

        def run(pair, *words, token=None, code=OK):
            command = [*server.command("kilokv", *words), "--tls-ca", str(authority.certificate), *pair.flags()]
            command += ["--token-file", str(token)] if token else []
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        self.assertIn('no user has the name of the client certificate, "alice"', run(alice, "get", "a", code=LOGIN_FAILED))
        run(alice, "role", "grant", "teller", "--read", "account/", "--write", "account/", token=self.admin)
        run(alice, "user", "set", "alice", "--role", "teller", "--certificate", "alice", token=self.admin)
        run(alice, "put", "account/1", "5")
        self.assertIn('user "alice" has no', run(alice, "put", "other", "5", code=DENIED))
        run(mallory, "get", "account/1", code=LOGIN_FAILED)
        run(mallory, "get", "account/1", token=self.admin)  # a token counts before a certificate
        parked = lambda: run(alice, "--output", "json", "parked", "list", token=self.admin).splitlines()  # noqa: E731
        waiting = self.begin_to_wait([*server.command("kilokv", "--timeout", "60s", "txn"), "--tls-ca",
                                      str(authority.certificate), *alice.flags()], "account/9")
        until(lambda: len(parked()) == 1, "a parked transaction")
        run(alice, "user", "set", "alice", "--remove-certificate", "alice", token=self.admin)
        self.assertEqual(parked(), [])
        self.assertIn("PERMISSION_DENIED", self.end_of(waiting))
        run(alice, "put", "account/9", "100", token=self.admin)
        self.assertIn("100", run(alice, "get", "account/9", token=self.admin))
        run(alice, "get", "account/1", code=LOGIN_FAILED)
        run(alice, "user", "set", "alice", "--certificate", "alice", token=self.admin)
        run(alice, "get", "account/1")
        authority.revoke(alice)
        authority.write_list(lists / "ca.crl")
        until(lambda: subprocess.run([*server.command("kilokv", "get", "account/1"), "--tls-ca",
                                      str(authority.certificate), *alice.flags()], capture_output=True,
                                     timeout=60).returncode == LOGIN_FAILED, "the revoked certificate to be refused")

    def test_another_machine_needs_tls_and_logins(self):
        authority = Authority(self.folder, "Test CA")
        tls = authority.issue("server", SERVER).flags()
        login = ["--login", "on", "--bootstrap-file", str(self.folder / "other.token")]
        for flags in ([], login, tls):
            done = subprocess.run([BIN / "kilokvd", "--data-dir", self.folder / "other", "--listen", "0.0.0.0:0", *flags],
                                  capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, OK)
            self.assertIn("is for other machines", done.stderr)
            self.assertFalse((self.folder / "other.token").exists())
        for flags, insecure in ((["--insecure", "on"], True), ([*login, "--insecure", "on"], True),
                                ([*tls, *login], False), ([*tls, *login, "--insecure", "on"], False)):
            folder = self.folder / f"other-{len(flags)}"
            folder.mkdir()
            server = Server(folder, *flags)
            server.endpoint = "0.0.0.0:0"
            with server, self.subTest(flags):
                server.endpoint = f"127.0.0.1:{server.endpoint.rsplit(':', 1)[1]}"
                command = server.command("kilokv", "status")
                command += ["--tls-ca", str(authority.certificate)] if flags[:1] == tls[:1] else []
                command += ["--token-file", login[-1]] if login[0] in flags else []
                done = subprocess.run(command, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, OK, done.stderr)
                self.assertRegex(done.stdout, f"(?m)^insecure +{str(insecure).lower()}$")
                self.assertEqual("warning kilokvd is insecure" in server.log.read_text(), insecure)
            if login[0] in flags:
                (self.folder / "other.token").unlink()
        self.assertRegex(self.as_admin("status"), "(?m)^insecure +false$")

    def test_no_token_goes_to_another_machine_without_tls(self):
        """The address 0.0.0.0 leads to this machine, but is none of its own."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0)
            port = listener.getsockname()[1]
            for program, words in (("kilokv", ("--timeout", "1s", "get", "a")), ("kilokv-bank", ("audit",)),
                                   ("kilokv-bench", ("run", "--duration", "1s"))):
                command = [str(BIN / program), *words, "--endpoint"]
                by_file, by_variable = (["--token-file", str(self.admin)], {}), \
                    ([], {"KILOKV_CLIENT_TOKEN": self.admin.read_text().strip()})
                for flags, variables in (by_file, by_variable):
                    with self.subTest(program, flags=flags):
                        done = subprocess.run([*command, f"0.0.0.0:{port}", *flags], capture_output=True, text=True,
                                              timeout=60, env={**os.environ, **variables})
                        self.assertNotEqual(done.returncode, OK)
                        self.assertIn("without TLS", done.stdout + done.stderr)
                        self.assertRaises(BlockingIOError, listener.accept)
                # With an address of this machine the program does connect.
                client = subprocess.Popen([*command, f"127.0.0.1:{port}", *by_file[0]], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.addCleanup(end, client)
                listener.settimeout(30)
                listener.accept()[0].close()
                client.kill()
                client.wait()
                listener.settimeout(0)
                self.accept_all(listener)

    @staticmethod
    def accept_all(listener):
        try:
            while True:
                listener.accept()[0].close()
        except BlockingIOError:
            pass

    def test_the_bootstrap_file_is_for_its_owner_only(self):
        other = temporary_folder()
        self.addCleanup(other.cleanup)
        token = pathlib.Path(other.name) / "token"
        token.write_text(self.admin.read_text())
        token.chmod(0o644)
        flags = ["--data-dir", f"{other.name}/data", "--listen", "127.0.0.1:0", "--login", "on"]
        for more, words in (([], "give --bootstrap-file FILE"), (["--bootstrap-file", str(token)], "chmod 600")):
            done = subprocess.run([BIN / "kilokvd", *flags, *more], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, OK)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    os.environ.pop("KILOKV_CLIENT_TOKEN", None)
    unittest.main()
