#!/usr/bin/env python3
"""Backups, checks and restores with the real programs, as an operator runs them."""

import argparse
import json
import os
import pathlib
import random
import re
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest

from backups import batches_of, check, check_flips, judge, kilokv, last_json, restored, status

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "attack"))
sys.path.insert(0, str(ROOT / "tests" / "crash"))
import http2  # noqa: E402
from damage_test import Asker, LoginServer, numbered  # noqa: E402
from programs import BIN, SLOWER, Server, temporary_folder, until  # noqa: E402

SEED = time.time_ns() % 1000000
LEASE_US = 86400 * 10**6


def load(server, begin=0, count=300):
    lines = ({"then": [{"op": "add", "key": f"account{i % 40}", "delta": i},
                       {"op": "put", "key": f"note{i}", "value": "x" * (i % 300)}]} for i in range(begin, begin + count))
    server.client("txn", "--batch", stdin="".join(json.dumps(line) + "\n" for line in lines))


def files_of(folder):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_mode, path.read_bytes())
            for path in folder.iterdir() if path.is_file()}


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


class Proxy:
    """Passes connections on to the server, until they are cut."""

    def __init__(self, endpoint):
        host, port = endpoint.rsplit(":", 1)
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets, self._lock = [], threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                self._sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass_on(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        with self._lock:
            cut, self._sockets = self._sockets, []
        for one in cut:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # a close alone leaves it until the thread has accepted once more
        except OSError:
            pass
        self._listener.close()
        self.cut()


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(temporary_folder()))

    def start(self, *flags, name="source", kind=Server):
        place = self.folder / name
        place.mkdir(exist_ok=True)
        return self.enterContext(kind(place, *flags))


class CheckTest(WithFolder):
    def test_a_killed_database_is_whole_and_does_not_change(self):
        server = self.start("--checkpoint-interval", "200ms")
        load(server)
        time.sleep(0.6)  # a checkpoint
        load(server, 1000)
        hash_before = status(server)["state_hash"]
        server.kill()
        data = server.folder / "data"
        before = files_of(data)
        found = check(data)
        self.assertEqual(found["state_hash"], hash_before)
        self.assertEqual(files_of(data), before)
        server.start()
        now = status(server)
        self.assertEqual(now["state_hash"], hash_before)
        self.assertEqual(now["records"], found["records"])
        _, said = kilokv("check", data, codes=(5,))
        self.assertIn("in use", said)

    def test_check_needs_no_login(self):
        server = self.start()
        server.client("put", "a", "1")
        server.stop()
        command = [str(BIN / "kilokv"), "check", str(self.folder / "source" / "data")]
        environment = {**os.environ, "KILOKV_CLIENT_TOKEN_FILE": str(self.folder / "none"), "KILOKV_CLIENT_TLS": "x"}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_each_damaged_file_is_named(self):
        server = self.start("--checkpoint-interval", "200ms")
        load(server)
        time.sleep(0.6)
        load(server, 1000)
        server.stop()
        data = server.folder / "data"
        tables = sorted(data.glob("*.sst"))[:2]
        for table in tables:
            content = bytearray(table.read_bytes())
            content[100] ^= 1
            table.write_bytes(content)
        _, said = kilokv("check", data, codes=(1,))
        for table in tables:
            self.assertIn(table.name, said)
        server.start(wait=False)
        self.assertEqual(server.wait_end(), 3)  # the server finds it, too

    def test_what_is_no_database_is_refused(self):
        _, said = kilokv("check", self.folder / "missing", codes=(5,))
        self.assertIn("FAILED_PRECONDITION", said)
        self.assertFalse((self.folder / "missing").exists())
        file, directory = self.folder / "file", self.folder / "directory"
        file.write_bytes(b"no backup at all" * 100)
        directory.mkdir()
        (directory / "letter").write_text("Dear reader")
        for words, wanted in ((("check", file), f"{file} is no backup: it does not begin as one"),
                              (("check", directory), f"{directory} is no data directory and no archive: no file in it is of a "
                                                     "database"),
                              (("restore", file, self.folder / "new"), f"{file} is no backup: it does not begin as one"),
                              (("restore", directory, self.folder / "new"), f"{directory} is no backup: it is a directory")):
            _, said = kilokv(*words, codes=(2,))
            self.assertEqual(said, f"kilokv: {wanted}\n")
        self.assertFalse((self.folder / "new").exists())
        # A backup would go on with the partial file. This one is somebody else's.
        partial = self.folder / "letter.partial"
        partial.write_text("Dear reader")
        _, said = kilokv("backup", self.folder / "letter", codes=(2,))
        self.assertIn(f"{partial} is no backup", said)
        self.assertEqual(partial.read_text(), "Dear reader")


class BackupTest(WithFolder):
    def test_a_restored_database_is_equal_and_of_another_incarnation(self):
        server = self.start("--checkpoint-interval", "300ms", kind=LoginServer)
        load(server)
        asker = Asker(server)
        session = asker.ask("OpenSession", http2.number_field(1, LEASE_US))[2:18]
        first = asker.ask("Execute", numbered(session, 1))
        server.client("role", "grant", "teller", "--read", "account", "--write", "account")
        server.client("user", "set", "alice", "--role", "teller")
        time.sleep(0.7)  # one half is in a checkpoint, the other in the log
        load(server, 1000)
        second = asker.ask("Execute", numbered(session, 2))
        server.client("user", "set", "bob", "--role", "teller")
        before = status(server)
        backup = self.folder / "whole.backup"
        said = last_json(server.client("--output", "json", "backup", backup))
        self.assertEqual(said["state_hash"], before["state_hash"])
        self.assertEqual(mode_of(backup), 0o600)
        self.assertFalse(backup.with_suffix(".backup.partial").exists())
        whole = check(backup)
        self.assertEqual({key: whole[key] for key in said}, said)
        users = [server.client("--output", "json", kind, "list") for kind in ("role", "user", "token")]
        server.scan_to(self.folder / "source.jsonl")

        place = self.folder / "restored"
        place.mkdir()
        (place / "admin.token").write_bytes(server.token_file.read_bytes())
        (place / "admin.token").chmod(0o600)
        found = last_json(kilokv("--output", "json", "restore", backup, place / "data")[0])
        self.assertEqual(found["state_hash"], before["state_hash"])
        self.assertGreaterEqual(found["next_version"], before["next_version"] + 2**40)
        again = self.enterContext(LoginServer(place))
        now = status(again)
        for field in ("state_hash", "sessions", "durable_batch"):
            self.assertEqual(now[field], before[field], field)
        self.assertEqual(now["records"], said["records"])
        self.assertNotEqual(now["incarnation"], before["incarnation"])
        again.scan_to(self.folder / "again.jsonl")
        self.assertEqual((self.folder / "again.jsonl").read_bytes(), (self.folder / "source.jsonl").read_bytes())
        self.assertEqual([again.client("--output", "json", kind, "list") for kind in ("role", "user", "token")], users)
        self.check_session(again, session, first, second)
        self.check_attach(again, session, now["incarnation"])
        again.kill()  # also after a checkpoint and a start
        again.start()
        self.check_session(again, session, first, second, holder=1)
        version = json.loads(again.client("--output", "json", "put", "new", "1").splitlines()[-1])["version"]
        self.assertGreater(version, 2**40)

    def check_attach(self, server, session, incarnation):
        """Who attaches sees what is stored, and learns that nothing new runs."""
        file = self.folder / "session"
        file.write_text(session.hex())
        file.chmod(0o600)
        lines = [json.loads(line) for line in
                 server.client("--output", "json", "session", "attach", "--session-file", file).splitlines()]
        self.assertTrue(lines[0]["frozen"])
        self.assertEqual(lines[0]["incarnation"], incarnation)
        self.assertEqual(lines[0]["holder"], 1)
        self.assertEqual([(line["request"], line["state"]) for line in lines[1:]], [(1, "decided"), (2, "decided")])

    def check_session(self, server, session, first, second, holder=0):
        """It answers what it stored, and takes no new number."""
        asker = Asker(server)
        as_holder = http2.number_field(4, holder) if holder else b""
        self.assertEqual(asker.ask("Execute", numbered(session, 1, as_holder)), first)
        self.assertEqual(asker.ask("Execute", numbered(session, 2, as_holder)), second)
        with self.assertRaisesRegex(AssertionError, "no message in the answer"):
            asker.ask("Execute", numbered(session, 3, as_holder))
        self.assertEqual(asker.ends["9"], 1, asker.ends)  # FAILED_PRECONDITION
        asker.close()

    def test_a_backup_under_load_equals_the_replay_of_the_judge(self):
        server = self.start("--checkpoint-interval", "500ms")
        history = self.folder / "history.jsonl"
        bench = subprocess.Popen(server.command(
            "kilokv-bench", "run", "--workload", "bank", "--keys", 1000, "--batch-size", 16, "--in-flight", 4, "--rate",
            3000, "--seed", SEED, "--warmup", "0s", "--duration", "8s", "--history", history), stdout=subprocess.DEVNULL)
        backups = []
        try:
            until(lambda: status(server)["committed"] > 2000, "load")
            for number in range(3):
                backup = self.folder / f"{number}.backup"
                backups.append((backup, last_json(server.client("--output", "json", "backup", backup))))
                time.sleep(0.5)
            self.assertIsNone(bench.poll(), "the load has ended before the backups")
            until(lambda: server.log.read_text().count("result=complete") == 3, "the server knows that all were complete")
            self.assertNotIn("result=interrupted", server.log.read_text())
        finally:
            code = bench.wait(timeout=120 * SLOWER)
        self.assertEqual(code, 0)
        for backup, said in backups:
            again, found = restored(self.folder, f"of-{backup.stem}", backup)
            self.assertEqual(found["state_hash"], said["state_hash"])
            with again:
                self.assertIn("ACCEPTED", judge(history, said["batch"], again, self.folder))

    def start_slow_backup(self, server, backup):
        """A backup of which some is there, and which takes long."""
        process = subprocess.Popen(server.command("kilokv", "backup", backup, "--rate", "64KiB"),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        partial = pathlib.Path(f"{backup}.partial")
        until(lambda: partial.exists() and partial.stat().st_size > 0, "the first frames", 60)
        self.assertIsNone(process.poll())
        return process, partial

    def big_server(self, *flags):
        """Its backup has several frames."""
        server = self.start("--checkpoint-interval", "200ms", *flags)
        for i in range(30):
            server.client("put", f"big{i}", "-", stdin="y" * 100000)
        return server

    def test_a_backup_goes_on_after_its_program_was_killed(self):
        server = self.big_server()
        backup = self.folder / "slow.backup"
        process, partial = self.start_slow_backup(server, backup)
        process.kill()
        process.communicate()
        size = partial.stat().st_size
        self.assertFalse(backup.exists())
        load(server)  # after the boundary of the backup
        said = last_json(server.client("--output", "json", "backup", backup))
        self.assertIn("result=goes on", server.log.read_text())
        self.assertNotIn("starts over", server.log.read_text())
        self.assertGreater(backup.stat().st_size, size)
        self.assertLess(said["batch"], status(server)["durable_batch"])
        self.assertEqual(check(backup)["state_hash"], said["state_hash"])

    def test_a_backup_starts_over_after_a_restart_of_the_server_and_says_so(self):
        server = self.big_server()
        backup = self.folder / "slow.backup"
        process, _ = self.start_slow_backup(server, backup)
        server.kill()
        server.start()
        process.kill()
        process.communicate()
        run = subprocess.run(server.command("kilokv", "backup", backup), capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("starts over", run.stderr)
        self.assertEqual(check(backup)["state_hash"], status(server)["state_hash"])

    def test_a_backup_that_the_server_never_keeps_long_enough_is_given_up(self):
        server = self.big_server("--backup-age-max", "1s")
        run = subprocess.run(server.command("kilokv", "backup", self.folder / "never.backup", "--rate", "64KiB"),
                             capture_output=True, text=True, check=False, timeout=120 * SLOWER)
        self.assertEqual(run.returncode, 5, run.stderr)
        self.assertGreaterEqual(run.stderr.count("the backup starts over"), 3)
        self.assertIn("--backup-age-max", run.stderr.splitlines()[-1] + run.stderr.splitlines()[-2])

    def test_a_backup_goes_on_by_itself_after_a_lost_connection(self):
        server = self.big_server()
        proxy = Proxy(server.endpoint)
        self.addCleanup(proxy.close)
        backup = self.folder / "slow.backup"
        command = server.command("kilokv", "backup", backup, "--rate", "1MiB")
        command[command.index(server.endpoint)] = proxy.endpoint
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        partial = pathlib.Path(f"{backup}.partial")
        until(lambda: partial.exists() and partial.stat().st_size > 0, "the first frames")
        load(server)  # after the boundary
        proxy.cut()
        printed, said = process.communicate(timeout=120 * SLOWER)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("goes on", said)
        self.assertNotIn("starts over", said)
        self.assertIn("result=goes on", server.log.read_text())
        self.assertIn(f"state_hash\t{check(backup)['state_hash']}\n", printed)

    def test_a_server_that_is_not_there_is_not_tried_again(self):
        backup = self.folder / "never.backup"
        began = time.monotonic()
        _, said = kilokv("--endpoint", "127.0.0.1:1", "backup", backup, codes=(4,))
        self.assertLess(time.monotonic() - began, 30 * SLOWER)
        self.assertEqual(said.splitlines()[0],
                         "kilokv: UNAVAILABLE: nothing listens at 127.0.0.1:1: the connection is refused")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_interruption_is_told_once(self):
        server = self.big_server()
        proxy = Proxy(server.endpoint)
        self.addCleanup(proxy.close)
        backup = self.folder / "slow.backup"
        command = server.command("kilokv", "backup", backup, "--rate", "64KiB", "--retry-for", "6s")
        command[command.index(server.endpoint)] = proxy.endpoint
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        partial = pathlib.Path(f"{backup}.partial")
        until(lambda: partial.exists() and partial.stat().st_size > 0, "the first frames")
        proxy.close()
        _, said = process.communicate(timeout=120 * SLOWER)
        self.assertEqual(process.returncode, 4, said)
        told = [line for line in said.splitlines() if "was interrupted, and goes on" in line]
        for line in told:
            self.assertRegex(line, r"; without progress it is given up in \ds \(--retry-for\)$")
        reasons = {line.split("; without progress")[0] for line in told}
        self.assertGreater(len(told), 0, said)
        self.assertEqual(len(reasons), len(told), said)
        self.assertLessEqual(len(told), 3, said)
        self.assertGreater(partial.stat().st_size, 0)

    def test_only_one_backup_at_a_time(self):
        server = self.big_server()
        backup = self.folder / "slow.backup"
        process, partial = self.start_slow_backup(server, backup)
        run = subprocess.run(server.command("kilokv", "backup", self.folder / "other.backup", "--retry-for", "0s"),
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("one backup at a time", run.stderr)
        self.assertFalse((self.folder / "other.backup.partial").exists())
        # The same file: the lock refuses it, before the server is asked.
        before = partial.read_bytes()
        run = subprocess.run(server.command("kilokv", "backup", backup, "--retry-for", "0s"), capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 5, run.stderr)
        self.assertIn("another backup writes", run.stderr)
        self.assertEqual(partial.read_bytes()[:len(before)], before)
        # The slow one goes on.
        until(lambda: partial.stat().st_size > len(before), "more of the slow backup", 60)
        self.assertIsNone(process.poll())
        self.assertNotIn("interrupted", server.log.read_text())
        process.kill()
        process.communicate()

    def test_a_partial_file_that_is_complete_is_no_new_backup(self):
        server = self.start()
        load(server)
        old, backup = self.folder / "old.backup", self.folder / "new.backup"
        server.client("backup", old)
        pathlib.Path(f"{backup}.partial").write_bytes(old.read_bytes())
        load(server, 1000)
        run = subprocess.run(server.command("kilokv", "backup", backup), capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("is complete, and was made earlier; the backup starts over", run.stderr)
        self.assertEqual(check(backup)["state_hash"], status(server)["state_hash"])
        server.stop()
        pathlib.Path(f"{backup}.2.partial").write_bytes(old.read_bytes())
        server.client("backup", f"{backup}.2", "--retry-for", "0s", codes=(4,))
        self.assertFalse(pathlib.Path(f"{backup}.2").exists())

    def test_a_rate_below_the_least_is_refused_with_the_units(self):
        for rate in ("100", "64kB", "1TiB"):
            _, said = kilokv("backup", self.folder / "a.backup", "--rate", rate, codes=(2,))
            self.assertEqual(said, f'kilokv: --rate: "{rate}" is not a size from 64KiB to 1024GiB: a number with B, KiB, MiB or '
                                   "GiB, such as 1MiB, or a number of bytes\n")

    def test_nothing_is_overwritten(self):
        server = self.start()
        load(server)
        backup = self.folder / "a.backup"
        server.client("backup", backup)
        before = backup.read_bytes()
        server.client("backup", backup, codes=(5,))
        self.assertEqual(backup.read_bytes(), before)
        (self.folder / "full").mkdir()
        (self.folder / "full" / "file").write_text("mine")
        _, said = kilokv("restore", backup, self.folder / "full", codes=(5,))
        self.assertIn("not empty", said)
        self.assertEqual((self.folder / "full" / "file").read_text(), "mine")

    def test_a_damaged_backup_is_found_and_not_restored(self):
        server = self.start("--checkpoint-interval", "200ms")
        load(server)
        time.sleep(0.6)
        load(server, 1000, 20)
        backup = self.folder / "a.backup"
        server.client("backup", backup)
        check_flips(backup, self.folder, 40, SEED)
        for size in (0, 10, backup.stat().st_size // 2, backup.stat().st_size - 1):
            cut = self.folder / f"cut-{size}.backup"
            cut.write_bytes(backup.read_bytes()[:size])
            kilokv("check", cut, codes=(1,))
            _, said = kilokv("restore", cut, self.folder / "new", codes=(5,))
            self.assertIn("DATA_LOSS", said)
            self.assertFalse((self.folder / "new").exists())
            self.assertFalse((self.folder / "new.partial").exists())


    def test_what_is_printed_is_of_the_command_and_is_explained(self):
        archive = self.folder / "archive"
        archive.mkdir()
        server = self.start("--archive-dir", archive, "--archive-interval", "100ms")
        began = time.time()
        load(server)
        backup, data = self.folder / "a.backup", self.folder / "new"
        printed = server.client("backup", backup)
        restored_text = kilokv("restore", backup, data)[0]
        self.assertEqual(restored_text.splitlines()[0], f"restored to {data}")
        whole = kilokv("check", data)[0]
        self.assertEqual(whole.splitlines()[0], "whole")
        for text in (printed, restored_text, whole):
            time_us, utc = re.search(r"(?m)^time_us\t(\d+) \((\S+)\)$", text).groups()
            self.assertGreater(int(time_us), began * 10**6)
            self.assertEqual(utc, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(time_us) // 10**6)) +
                             f".{int(time_us) % 10**6:06}Z")
        # Each field has a row in the page, also each one that only JSON has.
        server.stop()
        page = (ROOT / "docs" / "backup.md").read_text()
        table = page.split("\n## What is printed\n", 1)[1].split("\n## ", 1)[0]
        explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", table))))
        for text in (printed, restored_text, whole, kilokv("check", archive)[0]):
            self.assertLessEqual({line.split("\t")[0] for line in text.splitlines()[1:]}, explained)
        self.assertEqual(set(check(backup)) | set(check(archive)), explained)


class ReadOnlyTest(WithFolder):
    def test_a_server_that_only_reads_changes_nothing(self):
        server = self.start()
        load(server)
        server.client("del", "account3")  # leaves a tombstone, which is part of the hash
        hash_before = status(server)["state_hash"]
        server.stop()
        reader = self.enterContext(Server(server.folder, "--read-only", "on", "--checkpoint-interval", "100ms",
                                          "--tombstone-retention", "1s", "--snapshot-age-max", "1s"))
        self.assertEqual(reader.value("account1"), sum(i for i in range(300) if i % 40 == 1))
        reader.client("scan", "--limit", "3")
        for command in (("put", "a", "1"), ("del", "account1"), ("add", "account1", "5")):
            reader.client(*command, codes=(5,))
        run = subprocess.run(reader.command("kilokv", "txn", "--detached"), input='{"then": [{"op": "add", "key": "a", '
                             '"delta": 1}]}\n', capture_output=True, text=True, check=False)
        self.assertIn("--read-only off", run.stderr)
        for _ in range(20):  # longer than the retention of tombstones, with several checkpoints
            reader.value("account1")
            time.sleep(0.1)
        self.assertEqual(status(reader)["state_hash"], hash_before)


class WithRestores(WithFolder):
    """Restores to random batches of a server that is killed while it archives."""

    def restore_to_random_batches(self, restores, kills, duration):
        print(f"replay with --seed {SEED} --restores {restores} --kills {kills}", flush=True)
        rng = random.Random(SEED)
        archive = self.folder / "archive"
        archive.mkdir()
        server = self.start("--checkpoint-interval", "700ms", "--archive-dir", archive, "--archive-interval", "300ms",
                            "--history-bytes-max", "64KiB", "--history-retention", "1s")
        history, backup = self.folder / "history.jsonl", self.folder / "base.backup"
        bench = subprocess.Popen(server.command(
            "kilokv-bench", "run", "--workload", "bank", "--keys", 1000, "--batch-size", 16, "--in-flight", 4, "--rate",
            2000, "--seed", SEED, "--warmup", "0s", "--duration", f"{duration}s", "--give-up-after", "60s", "--wait=60s",
            "--history", history), stdout=subprocess.DEVNULL)
        try:
            until(lambda: status(server)["committed"] > 500 and status(server)["checkpoint_batch"] > 1, "load")
            base = last_json(server.client("--output", "json", "backup", backup))
            for _ in range(kills):
                time.sleep(rng.uniform(0.2, 1.2))
                server.kill()
                server.start()
        finally:
            code = bench.wait(timeout=300 * SLOWER)
        self.assertEqual(code, 0)
        last = status(server)["durable_batch"]
        until(lambda: status(server)["archive_batch"] >= last, "the archive")
        self.assertEqual(status(server)["archive_ended"], 0)
        server.stop()
        batches = [batch for batch in batches_of(history) if batch >= base["batch"]]
        for number in range(restores):
            batch = batches[-1] if number == 0 else rng.choice(batches)
            to = () if number == 0 else ("--to-batch", batch)
            again, found = restored(self.folder, f"restored-{number}", backup, "--archive", archive, *to)
            self.assertGreaterEqual(found["next_version"], base["next_version"] + 2**40)
            with again:
                self.assertIn("ACCEPTED", judge(history, batch if to else found["batch"], again, self.folder))
        self.restore_to_the_first_batch(backup, base, history)
        _, said = kilokv("restore", backup, self.folder / "never", "--archive", archive, "--to-batch", last + 10**6,
                         codes=(5,))
        self.assertIn("is not there yet", said)
        _, said = kilokv("restore", backup, self.folder / "never", "--archive", archive, "--to-batch", 1, codes=(5,))
        self.assertIn("before the backup", said)

    def restore_to_the_first_batch(self, backup, base, history):
        """The state of the backup may be newer than its checkpoint. The error names the first batch after that."""
        _, said = kilokv("restore", backup, self.folder / "never", "--to-batch", 1, codes=(5,))
        first, last = (int(number) for number in re.search(r"each batch from (\d+) to (\d+)", said).groups())
        self.assertEqual(last, base["batch"])
        self.assertGreaterEqual(first, base["checkpoint_batch"])
        kilokv("restore", backup, self.folder / "never", "--to-batch", first - 1, codes=(5,))
        again, found = restored(self.folder, "restored-first", backup, "--to-batch", first)
        self.assertEqual(found["batch"], first)
        with again:
            self.assertIn("ACCEPTED", judge(history, first, again, self.folder))


class ArchiveTest(WithRestores):
    def test_restores_to_random_batches_under_kills_equal_the_judge(self):
        self.restore_to_random_batches(restores=3, kills=4, duration=9)

    def test_restores_to_a_time(self):
        archive = self.folder / "archive"
        archive.mkdir()
        server = self.start("--archive-dir", archive, "--archive-interval", "100ms")
        server.client("put", "a", "1")
        backup = self.folder / "base.backup"
        server.client("backup", backup)
        server.client("put", "a", "2")
        time.sleep(0.05)
        between = time.time()
        time.sleep(0.05)
        server.client("put", "a", "3")
        server.stop()  # archives the rest
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(between)) + f".{int(between % 1 * 1000):03}Z"
        for to, value in ((("--to-time", text), 2), (("--to-time", str(int(between * 10**6))), 2), ((), 3)):
            again, _ = restored(self.folder, f"of-{len(to)}-{to[-1] if to else 'end'}".replace(":", ""), backup,
                                "--archive", archive, *to)
            with again:
                self.assertEqual(again.value("a"), value)
        for wrong in ("yesterday", "2026-02-30T00:00:00Z"):
            kilokv("restore", backup, self.folder / "never", "--to-time", wrong, codes=(2,))
        _, said = kilokv("restore", backup, self.folder / "never", "--archive", archive, "--to-time",
                         str(int(time.time() * 10**6)), codes=(5,))
        self.assertRegex(said, r"the time \S+Z is after the last batch that is there, of \S+Z: there may have been")
        _, said = kilokv("restore", backup, self.folder / "never", "--archive", archive, "--to-time", "2020-01-01T00:00:00Z",
                         codes=(5,))
        self.assertRegex(said, r"the time 2020-01-01T00:00:00.000000Z is before the first batch, of \S+Z; an empty")
        self.assertFalse((self.folder / "never").exists())

    def test_a_file_that_is_missing_in_the_archive_is_found(self):
        archive = self.folder / "archive"
        archive.mkdir()
        server = self.start("--archive-dir", archive, "--archive-interval", "100ms")
        backup = self.folder / "base.backup"
        server.client("put", "a", "0")
        server.client("backup", backup)
        for i in range(4):
            server.client("put", "a", str(i))
            durable = status(server)["durable_batch"]
            until(lambda batch=durable: status(server)["archive_batch"] >= batch, "the archive")
        server.stop()
        files = sorted(archive.glob("*/*.log"))
        self.assertGreaterEqual(len(files), 4)
        self.assertTrue(all(mode_of(path) == 0o600 for path in files))
        whole = check(archive)
        self.assertEqual((whole["files"], whole["damages"], whole["batch"]), (len(files), 0, durable))
        content = files[-2].read_bytes()
        files[-2].unlink()
        _, said = kilokv("restore", backup, self.folder / "never", "--archive", archive, codes=(5,))
        self.assertIn("the archive lacks the batches", said)
        _, said = kilokv("check", archive, codes=(1,))
        self.assertIn("the archive lacks the batches", said)
        files[-2].write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
        _, said = kilokv("restore", backup, self.folder / "never", "--archive", archive, codes=(5,))
        self.assertIn("DATA_LOSS", said)
        self.assertFalse((self.folder / "never").exists())
        _, said = kilokv("check", archive, codes=(1,))
        self.assertIn(files[-2].name, said)

    def test_an_archive_that_falls_back_ends_or_refuses_new_work(self):
        """Until its folder can be written again. A large value is more than the lag that is allowed."""
        for required in ("off", "on"):
            archive = self.folder / f"archive-{required}"
            archive.mkdir()
            server = self.start("--archive-dir", archive, "--archive-interval", "100ms", "--archive-lag-max", "1MiB",
                                "--archive-required", required, name=f"source-{required}")
            server.client("put", "a", "1")
            until(lambda: status(server)["archive_batch"] >= 1, "the archive")
            folder = next(archive.iterdir())
            moved = folder.with_name("moved")  # every file of it is gone: no file can be made
            folder.rename(moved)
            for number in range(3):
                server.client("put", f"big{number}", "-", stdin="x" * 900000, codes=(0, 4))
            if required == "on":
                until(lambda: self.is_refused(server), "the refusal")
                self.assertEqual(status(server)["archive_ended"], 0)
                moved.rename(folder)
                until(lambda: not self.is_refused(server), "the work goes on")
                archived = status(server)["archive_batch"]
                self.assertGreaterEqual(check(archive)["batch"], archived)
            else:
                until(lambda: status(server)["archive_ended"] == 1, "the end of the archive")
                self.assertIn("archive ended", server.log.read_text())
                server.client("put", "a", "2")
                moved.rename(folder)
            server.stop()

    @staticmethod
    def is_refused(server):
        run = subprocess.run(server.command("kilokv", "--timeout", "1s", "put", "a", "3"), capture_output=True, text=True, check=False)
        assert run.returncode in (0, 4), run.stderr
        assert run.returncode == 0 or "--archive-lag-max" in run.stderr, run.stderr
        return run.returncode != 0


class LongTest(WithRestores):
    """Not among the others: by its own entry of CTest."""

    def test_restores(self):
        self.restore_to_random_batches(restores=20, kills=20, duration=40)

    def test_flips(self):
        server = self.start("--checkpoint-interval", "200ms")
        load(server)
        time.sleep(0.6)
        load(server, 1000, 100)
        backup = self.folder / "a.backup"
        server.client("backup", backup)
        check_flips(backup, self.folder, 1000, SEED)


def main():
    global SEED
    parser = argparse.ArgumentParser(description="Backups, checks and restores.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--long", action="store_true", help="20 restores under 20 kills, and 1000 flips")
    options, rest = parser.parse_known_args()
    SEED = options.seed
    print(f"replay with --seed {SEED}", flush=True)
    classes = [LongTest] if options.long else [CheckTest, BackupTest, ReadOnlyTest, ArchiveTest]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(one) for one in classes
                               if not rest or any(word in one.__name__ for word in rest))
    if not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful():
        sys.exit(1)


if __name__ == "__main__":
    main()
