#!/usr/bin/env python3
"""kilokv as a script uses it: what each command prints, and its exit codes."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
sys.path.insert(0, str(ROOT / "tests" / "attack"))
import http2  # noqa: E402
from programs import BIN, SLOWER, Server, until  # noqa: E402


def resolves(host):
    """A folder that debootstrap made has no /etc/hosts, so no name resolves there."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except socket.gaierror:
        return False


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kilokv-cli-")
        cls.server = Server(cls.folder.name)
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    def kilokv(self, *words, code=0, stdin=b"", endpoint=None):
        """Standard output and standard error of one run. `code`: its exit code; None: any."""
        command = [str(BIN / "kilokv"), "--endpoint", endpoint or self.server.endpoint, *words]
        run = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        if code is not None:
            self.assertEqual(run.returncode, code, f"{words}\n{run.stdout}{run.stderr}")
        return run.stdout, run.stderr.decode()

    def json(self, *words, **options):
        out, _ = self.kilokv("--output", "json", *words, **options)
        return [json.loads(line) for line in out.splitlines()]

    def txn(self, *transactions, words=(), code=0):
        lines = "".join(json.dumps(transaction) + "\n" for transaction in transactions).encode()
        out, error = self.kilokv("txn", *words, stdin=lines, code=code)
        return [json.loads(line) for line in out.splitlines()], error

    def test_a_server_that_comes_later_is_found(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-late-") as folder, socket.create_server(("127.0.0.1", 0)) as held:
            endpoint = f"127.0.0.1:{held.getsockname()[1]}"
            held.close()  # nothing listens there now
            command = [str(BIN / "kilokv"), "--endpoint", endpoint, "--wait", "status"]
            early = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with self.assertRaises(subprocess.TimeoutExpired):
                early.wait(timeout=1)  # refused a few times
            server = Server(folder)
            server.endpoint = endpoint
            with server:
                self.assertEqual(early.wait(timeout=60), 0, early.stderr.read())
                self.assertIn("ready", early.stdout.read())
            early.stdout.close()
            early.stderr.close()

    def test_put_get_del(self):
        self.assertRegex(self.kilokv("put", "p/int", "-12")[0], rb"^version \d+\n$")
        self.kilokv("put", "p/text", "hello world")
        self.kilokv("put", "p/forced", "--string", "12")
        self.kilokv("put", "p/stdin", "-", stdin=b"\x00\xff\n")
        self.assertEqual(self.kilokv("get", "p/int")[0], b"-12\n")
        self.assertEqual(self.kilokv("get", "p/stdin")[0], b"\x00\xff\n\n")
        self.assertEqual(self.kilokv("get", "p/text", "p/none", "p/forced", code=1)[0],
                         b'p/text\t"hello world"\np/none\t(absent)\np/forced\t"12"\n')
        read = self.json("get", "p/stdin")[0]
        self.assertEqual(read["value"], {"b64": "AP8K"})
        self.assertGreater(read["version"], 0)
        self.kilokv("del", "p/int", "p/text")
        out, error = self.kilokv("get", "p/int", code=1)
        self.assertEqual(out, b"")
        self.assertIn("absent", error)
        self.assertEqual(self.kilokv("del", "p/int")[0], b"nothing to write\n")

    def test_get_raw(self):
        for value in (b"\x00\xff\n", b"no newline", b"", b"\n"):
            self.kilokv("put", "raw/bytes", "--bytes", "-", stdin=value)
            self.assertEqual(self.kilokv("get", "--raw", "raw/bytes")[0], value)
        self.kilokv("put", "raw/int", "-12")
        self.assertEqual(self.kilokv("get", "--raw", "raw/int")[0], b"-12")
        out, error = self.kilokv("get", "--raw", "raw/none", code=1)
        self.assertEqual((out, error), (b"", "kilokv: key raw/none is absent\n"))
        for words in (("get", "--raw", "raw/int", "raw/bytes"), ("--output", "json", "get", "--raw", "raw/int")):
            out, error = self.kilokv(*words, code=2)
            self.assertEqual(out, b"")
            self.assertIn("--raw prints one value", error)

    def test_put_reads_no_more_than_any_server_takes(self):
        command = [str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "put", "endless", "-"]
        with open("/dev/zero", "rb") as zero:
            process = subprocess.Popen(command, stdin=zero, stderr=subprocess.PIPE)
            error = process.stderr.read().decode()
            process.stderr.close()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 3, error)
        for told in ("standard input has more than 67108864 bytes", "limit: 67108864 bytes", "setting: --message-bytes-max"):
            self.assertIn(told, error)
        self.assertLess(usage.ru_maxrss, SLOWER * 192 * 1024)  # KiB: the value once, and the program
        # No setting of a server lets it take more.
        for size, code in (("67108864", 0), ("67108865", 2)):
            run = subprocess.run([str(BIN / "kilokvd"), "--data-dir", self.folder.name, "--message-bytes-max", size,
                                  "--check-config"], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(run.returncode, code, run.stderr)
        self.assertIn("--value-bytes-max", self.kilokv("put", "long", "-", stdin=b"v" * (2 << 20), code=3)[1])
        folder = os.open("/", os.O_RDONLY)
        self.addCleanup(os.close, folder)
        run = subprocess.run(command, stdin=folder, capture_output=True, timeout=60, check=False)
        self.assertEqual((run.returncode, run.stderr), (5, b"kilokv: cannot read standard input: Is a directory\n"))
        self.kilokv("get", "endless", code=1)

    def test_what_is_an_integer(self):
        for word in ("007", "+5", "-0", "1e3", " 5"):  # bytes: no character is lost
            self.kilokv("put", "p/word", word)
            self.assertEqual(self.kilokv("get", "p/word")[0], word.encode() + b"\n")
        self.kilokv("put", "p/word", "-9223372036854775808")
        self.assertEqual(self.json("get", "p/word")[0]["value"], -(1 << 63))
        self.assertIn("64-bit", self.kilokv("put", "p/word", "9223372036854775808", code=2)[1])
        self.kilokv("put", "p/word", "--bytes", "9223372036854775808")

    def test_add(self):
        self.assertEqual(self.kilokv("add", "a/n", "5")[0], b"5\n")
        self.assertEqual(self.kilokv("add", "a/n", "-7")[0], b"-2\n")
        line = self.json("add", "a/n", "1")[0]
        self.assertEqual((line["value"], line["outcome"]), (-1, "COMMITTED"))
        self.kilokv("put", "a/text", "words")
        self.assertIn("a/text holds bytes; add needs an integer (TYPE_MISMATCH)",
                      self.kilokv("add", "a/text", "1", code=1)[1])
        self.kilokv("put", "a/most", str((1 << 63) - 1))
        self.assertIn("a/most plus 1 is outside", self.kilokv("add", "a/most", "1", code=1)[1])

    def test_scan(self):
        for i in range(5):
            self.kilokv("put", f"scan/{i}", str(i))
        self.assertEqual(self.kilokv("scan", "scan/1", "scan/3")[0], b"scan/1\t1\nscan/2\t2\n")
        self.assertEqual(len(self.json("scan", "--prefix", "scan/")), 5)
        self.assertEqual([p["value"] for p in self.json("scan", "--prefix", "scan/", "--limit", "2")], [0, 1])
        self.assertEqual(self.kilokv("scan", "scan/1", "scan/3", "--reverse")[0], b"scan/2\t2\nscan/1\t1\n")
        self.assertEqual([p["value"] for p in self.json("scan", "--prefix", "scan/", "--reverse", "--limit", "2")], [4, 3])
        self.assertIn("TO a is before FROM c", self.kilokv("scan", "c", "a", code=2)[1])
        for limit in ("-1", "99999999999999999999", "1.5"):
            out, error = self.kilokv("scan", "--limit", limit, code=2)
            self.assertEqual(out, b"")
            self.assertIn(f'kilokv: --limit: "{limit}" is not a whole number', error)

    def test_txn(self):
        deposit = {"then": [{"op": "add", "key": "t/a", "delta": 30}]}
        transfer = {"guards": [{"key": "t/a", "is": "ge", "value": 20}],
                    "then": [{"op": "add", "key": "t/a", "delta": -20}, {"op": "add", "key": "t/b", "delta": 20},
                             {"op": "get", "key": "t/b"}],
                    "else": [{"op": "get", "key": "t/a"}]}
        lines, _ = self.txn(deposit, transfer, transfer, code=1)
        self.assertEqual([line["outcome"] for line in lines], ["COMMITTED", "COMMITTED", "GUARD_FAILED"])
        self.assertEqual([line["request"] for line in lines], [1, 2, 3])
        self.assertEqual(lines[1]["reads"], [{"key": "t/b", "value": 20, "version": None}])
        self.assertEqual(lines[2]["failed_guard"], 0)
        self.assertEqual(lines[2]["reads"][0]["value"], 10)
        self.assertLess(lines[0]["version"], lines[1]["version"])
        again, _ = self.txn(*lines[:1])
        self.assertEqual(again[0]["then"], lines[0]["then"], "a history line can be sent again")

    def test_txn_as_one_request(self):
        withdraw = {"guards": [{"key": "t/w", "is": "ge", "value": 5, "when_false": "wait"}], "precedence": 1,
                    "then": [{"op": "add", "key": "t/w", "delta": -5}]}
        deposit = {"then": [{"op": "add", "key": "t/w", "delta": 5}]}
        lines, _ = self.txn(withdraw, deposit, words=("--batch",))
        self.assertEqual([line["outcome"] for line in lines], ["COMMITTED", "COMMITTED"])
        self.assertEqual([(line["request"], line["index"]) for line in lines], [(1, 0), (1, 1)])
        self.assertEqual(lines[0]["batch"], lines[1]["batch"])

    def test_txn_errors(self):
        good = {"then": [{"op": "add", "key": "t/e", "delta": 1}]}
        lines, error = self.txn(good, {"thne": []}, good, code=2)
        self.assertEqual(len(lines), 1)
        self.assertIn("line 2, column 1: unknown field \"thne\"; did you mean \"then\"?; everything before it was sent",
                      error)
        self.assertIn("line 1, column 1: transactions[0] is empty", self.txn({}, code=3)[1])
        lines, error = self.txn(good, {"thne": []}, words=("--batch",), code=2)
        self.assertEqual(lines, [])
        self.assertIn("; nothing was sent", error)
        lines, error = self.txn({"then": [{"op": "get", "key": "k" * 2000}]}, good, code=3)
        self.assertEqual([line["outcome"] for line in lines], [None, "COMMITTED"])
        self.assertEqual(lines[0]["error"], "INVALID_ARGUMENT")
        self.assertIn("--key-bytes-max", error)
        error = self.txn({"guards": [{"is": "exists", "key": f"k{i}"} for i in range(1025)]}, code=3)[1]
        for told in ("field: transactions[0].guards", "limit: 1024 guards", "actual: 1025 guards", "setting: --guards-max",
                     "the version guards that a transaction begins with do not count if it is alone"):
            self.assertIn(told, error)

    def test_the_help_of_txn_has_each_guard_and_operation(self):
        text = self.kilokv("help", "txn")[0].decode()
        for transaction in (b'{"guards": [{"is": "no guard"}]}', b'{"then": [{"op": "no operation"}]}'):
            known = self.kilokv("txn", stdin=transaction, code=2)[1].split("known: ")[1].split(";")[0].split()
            self.assertGreater(len(known), 5)
            for name in known:
                self.assertRegex(text, rf"(?m)^  (\w+, )*{name}\b", name)

    def test_txn_reads_transactions_over_several_lines(self):
        text = b"""{"then": [
          {"op": "put", "key": "t/lines", "value": 5}
        ]} {"then": [{"op": "get", "key": "t/lines"}]}

        {"then":
           [{"op": "add", "key": "t/lines", "delta": 1}]}"""
        for words in ((), ("--batch",)):
            out, _ = self.kilokv("txn", *words, stdin=text)
            lines = [json.loads(line) for line in out.splitlines()]
            self.assertEqual([line["outcome"] for line in lines], ["COMMITTED"] * 3)
        _, error = self.kilokv("txn", stdin=text + b"\n{\n  'then': []}", code=2)
        self.assertEqual(error, "kilokv: line 8, column 3: this is not JSON: unexpected 'then'; everything before it was "
                                "sent\n")

    def test_txn_answers_before_its_input_ends(self):
        command = [str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "txn"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdin.write(b'{"then":\n[{"op": "get", "key": "t/none"}]}')  # and no newline
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["outcome"], "COMMITTED")
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)

    def test_a_refused_batch_is_one_error(self):
        good = {"then": [{"op": "add", "key": "t/refused", "delta": 1}]}
        long_key = {"then": [{"op": "get", "key": "k" * 2000}]}
        lines, error = self.txn(good, good, long_key, words=("--batch",), code=3)
        self.assertEqual(lines, [])
        self.assertEqual(error.count("INVALID_ARGUMENT"), 1)
        self.assertIn("kilokv: INVALID_ARGUMENT: line 3, column 1: transactions[2].then[0].key is 2000 bytes", error)
        self.assertIn("none of its 3 transactions ran", error)
        self.kilokv("get", "t/refused", code=1)

    def test_a_batch_that_a_full_server_refuses_is_one_error(self):
        wait = {"guards": [{"key": "t/full", "is": "exists", "when_false": "wait"}], "wait_timeout_ms": 60000}
        with tempfile.TemporaryDirectory(prefix="kilokv-full-") as folder, Server(folder, "--parked-max", "1") as server:
            stdin = json.dumps(wait).encode()
            command = server.command("kilokv", "--timeout", "1s", "txn", "--batch")
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as parked:
                parked.stdin.write(stdin)
                parked.stdin.close()
                until(lambda: server.parked() == 1, "one transaction waits")
                wait["wait_timeout_ms"] = 500  # the server is asked again until this is over, too
                refused = subprocess.run(command, input=json.dumps(wait).encode() * 3, capture_output=True, timeout=120,
                                         check=False)
                parked.kill()
            self.assertEqual((refused.returncode, refused.stdout), (4, b""), refused.stderr)
            self.assertIn(b"none of its 3 transactions ran", refused.stderr)
            self.assertEqual(refused.stderr.count(b"RESOURCE_EXHAUSTED"), 1)

    def test_a_wait_may_be_longer_than_the_timeout(self):
        wait = {"guards": [{"key": "t/never", "is": "exists", "when_false": "wait"}], "wait_timeout_ms": 900}
        out, _ = self.kilokv("--timeout", "400ms", "txn", stdin=json.dumps(wait).encode(), code=1)
        self.assertEqual(json.loads(out)["outcome"], "WAIT_EXPIRED")

    def test_parked(self):
        wait = {"guards": [{"key": "pärk/x", "is": "exists", "when_false": "wait"}], "wait_timeout_ms": 60000,
                "then": [{"op": "get", "key": "pärk/x"}]}
        process = subprocess.Popen([str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "txn"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(json.dumps(wait).encode() + b"\n")
        process.stdin.close()
        parked = until(lambda: self.json("parked", "list"), "one is parked")[0]
        self.assertEqual(parked["guard_key"], {"b64": "cMOkcmsveA=="})
        self.assertIn(rb"p\xc3\xa4rk/x", self.kilokv("parked", "list")[0])
        self.assertEqual(self.kilokv("parked", "cancel", str(parked["id"]))[0], b"cancelled 1\n")
        line = json.loads(process.stdout.read())
        process.stdout.close()
        self.assertEqual((line["outcome"], line["error"], line["cancelled"]), (None, "CANCELLED", True))
        self.assertEqual(process.wait(), 1)
        self.kilokv("parked", "cancel", str(parked["id"]), code=1)
        self.kilokv("parked", "cancel", code=2)

    def park(self, key, *words):
        """Starts `kilokv txn` with a withdrawal of 10 that waits for a deposit. Returns it with its line of the list."""
        wait = {"guards": [{"key": key, "is": "ge", "value": 10, "when_false": "wait"}], "wait_timeout_ms": 600000,
                "then": [{"op": "add", "key": key, "delta": -10}]}
        process = subprocess.Popen([str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "txn", *words],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdin.write(json.dumps(wait).encode())
        process.stdin.close()
        return process, until(lambda: self.parked_of(key), f"a transaction waits for {key}")[0]

    def parked_of(self, key):
        return [one for one in self.json("parked", "list") if one["guard_key"] == key]

    def test_what_ends_with_its_client(self):
        for words in (("--detached",), ("--detached", "--batch"), ()):  # without the flag it is in a session
            key = "gone/" + "".join(words)
            process, _ = self.park(key, *words)
            process.kill()
            process.wait()
            self.kilokv("add", key, "10")
            until(lambda: self.kilokv("get", key)[0] == b"0\n", "the withdrawal goes on")
            self.assertEqual(self.parked_of(key), [])

    def test_what_is_neither_detached_nor_in_a_session_ends_with_its_client(self):
        for detached in (False, True):
            key = f"gone/{detached}"
            process = self.execute_by_curl(key, detached)
            until(lambda: self.parked_of(key), "a transaction waits")
            process.kill()
            process.wait()
            if not detached:
                until(lambda: not self.parked_of(key), "the end of what waits")
            self.kilokv("add", key, "10")
            if detached:
                until(lambda: self.kilokv("get", key)[0] == b"0\n", "the withdrawal goes on")
            self.assertEqual(self.parked_of(key), [])
            self.assertEqual(self.kilokv("get", key)[0], b"0\n" if detached else b"10\n")

    def execute_by_curl(self, key, detached):
        """The same withdrawal as an Execute without a session."""
        field = http2.bytes_field
        guard = b"\x08\x08\x10\x01" + field(3, key.encode()) + b"\x20\x14"  # >= 10, or it waits
        add = b"\x08\x04" + field(2, key.encode()) + field(3, b"\x08\x13")  # -10
        transaction = field(1, guard) + field(2, add) + b"\x28" + http2.varint(600_000_000)
        request = field(2, transaction) + (b"\x20\x01" if detached else b"")
        process = subprocess.Popen(
            ["curl", "-sS", "--max-time", "300", "--http2-prior-knowledge", "-H", "content-type: application/grpc", "-H",
             "te: trailers", "--data-binary", "@-", f"http://{self.server.endpoint}/kilokv.v1.KiloKV/Execute"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdin.write(http2.message(request))
        process.stdin.close()
        return process

    def test_cancel_of_many(self):
        def cancel(*words):
            told = self.json("parked", "cancel", *words, code=None)[0]["cancelled"]
            left = {one["guard_key"] for one in self.json("parked", "list")}
            return told, sorted(key for key in left if str(key).startswith("bulk"))

        first, first_line = self.park("bulk/a")
        second, second_line = self.park("bulk/b", "--detached")
        self.park("bulk/c")
        self.park("bulk-other")
        self.assertNotEqual(first_line["client"], second_line["client"])
        every = ["bulk-other", "bulk/a", "bulk/b", "bulk/c"]
        # All conditions must hold.
        for words in (("--client", "nobody"), ("--prefix", "bulk0"), ("--older-than", "1h"),
                      ("--client", first_line["client"], "--prefix", "bulk-"),
                      ("--prefix", "bulk/", "--older-than", "1h")):
            self.assertEqual(cancel(*words), (0, every), words)
        self.kilokv("parked", "cancel", "--prefix", "bulk0", code=1)
        self.assertEqual(cancel("--client", first_line["client"], "--prefix", "bulk/"), (1, every[:1] + every[2:]))
        line = json.loads(first.stdout.read())
        self.assertEqual((line["outcome"], line["error"], first.wait()), (None, "CANCELLED", 1))
        self.assertEqual(cancel("--client", second_line["client"]), (1, ["bulk-other", "bulk/c"]))
        self.assertEqual(json.loads(second.stdout.read())["error"], "CANCELLED")
        self.assertEqual(cancel("--prefix", "bulk/"), (1, ["bulk-other"]))
        self.assertEqual(cancel("--prefix", "bulk", "--older-than", "1ms"), (1, []))

    def test_cancel_of_old_ones(self):
        gap = 3 * SLOWER
        _, old = self.park("age/old")
        until(lambda: time.time() > old["since_us"] / 1e6 + gap, "some time passes")
        _, new = self.park("age/new")
        between = (old["since_us"] + new["since_us"]) / 2e6
        self.json("parked", "cancel", "--prefix", "age/", "--older-than", f"{int((time.time() - between) * 1000)}ms")
        self.assertEqual(([], 1), (self.parked_of("age/old"), len(self.parked_of("age/new"))))
        self.kilokv("parked", "cancel", str(new["id"]))

    def test_status(self):
        self.assertEqual(self.json("status")[0]["state"], "ready")
        text = self.kilokv("status")[0].decode()
        for line in (r"strategy +\w+", r"threads +0$", r"records_per_lock +1$", r"transactions_per_thread +0$",
                     r"shadow_rate +0(\.0)?$", r"commit_units +8$", r"writer_history +5kB$",
                     r"concurrency_limit +0$", r"staged_records +1024$", r"signature_bits +256$", r"stage_blocks +1$",
                     r"validation +auto$", r"validation_lanes +coalesced$", r"validator_choice ",
                     r"device +\w+", r"device_model ", r"device_reason ",
                     r"order +fixed$", r"strategy_choice +serial: ", r"batches_serial +\d+", r"batches_parallel +\d+",
                     r"batches_on_device +\d+", r"shadow_batches +\d+", r"shadow_skipped +\d+"):
            self.assertRegex(text, "(?m)^" + line)

    def test_every_field_of_the_status_is_documented(self):
        page = (ROOT / "docs" / "server-status.md").read_text()
        told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", page))))
        self.assertEqual(told, set(self.json("status")[0]))

    def test_no_server(self):
        began = time.monotonic()
        self.assertIn("cannot be resolved", self.kilokv("--timeout", "60s", "get", "a", code=4,
                                                        endpoint="no-such-host.invalid:7070")[1])
        self.assertLess(time.monotonic() - began, 30, "it waited for a server")
        error = self.kilokv("get", "a", endpoint="http://127.0.0.1:1", code=3)[1]
        self.assertIn("is not HOST:PORT: write it without http://", error)
        for endpoint in ("127.0.0.1:1", "localhost:1")[:2 if resolves("localhost") else 1]:
            began = time.monotonic()
            out, error = self.kilokv("--timeout", "60s", "get", "a", endpoint=endpoint, code=4)
            self.assertLess(time.monotonic() - began, 30, "it waited for a server")
            self.assertEqual(out, b"")
            self.assertEqual(error.splitlines()[0],
                             f"kilokv: UNAVAILABLE: nothing listens at {endpoint}: the connection is refused")
            for told in ("start kilokvd there", "--endpoint", "KILOKV_ENDPOINT", "--wait-for-server"):
                self.assertIn(told, error)
        began = time.monotonic()
        self.kilokv("--wait", "1500ms", "get", "a", endpoint="127.0.0.1:1", code=4)
        self.assertGreater(time.monotonic() - began, 0.5, "it did not wait")
        self.assertIn("--endpoint: \"127.0.0.1\" is not HOST:PORT",
                      self.kilokv("get", "a", endpoint="127.0.0.1", code=2)[1])

    def test_a_server_that_does_not_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
            for words in (("get", "a"), ("status",), ("backup", f"{self.folder.name}/late.backup")):
                error = self.kilokv("--timeout", "700ms", *words, endpoint=endpoint, code=4)[1]
                self.assertIn("--timeout (now 700ms)", error)
            error = self.kilokv("--wait", "800ms", "get", "a", endpoint=endpoint, code=4)[1]
            self.assertIn("--timeout (now 5s, and --wait 800ms)", error)
        self.assertEqual(list(pathlib.Path(self.folder.name).glob("late.backup*")), [])

    def test_the_endpoint_of_the_environment(self):
        def run(variable, *words):
            done = subprocess.run([str(BIN / "kilokv"), *words], capture_output=True, text=True, timeout=60, check=False,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "KILOKV_ENDPOINT": variable})
            return done.returncode, done.stdout + done.stderr
        code, text = run(self.server.endpoint, "status")
        self.assertEqual(code, 0, text)
        self.assertEqual(run("127.0.0.1:1", "--endpoint", self.server.endpoint, "status")[0], 0, "the flag wins")
        self.assertEqual(run("wrong", "--endpoint", self.server.endpoint, "status")[0], 0, "the flag wins")
        code, text = run("wrong", "status")
        self.assertEqual(code, 2)
        self.assertIn('kilokv: the environment variable KILOKV_ENDPOINT: "wrong" is not HOST:PORT', text)
        code, text = run("wrong", "--help")
        self.assertEqual(code, 0)
        self.assertIn("KILOKV_ENDPOINT", text)

    def test_output_that_cannot_be_written(self):
        self.kilokv("put", "full/x", "1")
        for words in (("get", "full/x"), ("parked", "list"), ("scan", "full/"), ("status",)):
            command = [str(BIN / "kilokv"), "--endpoint", self.server.endpoint, *words]
            with open("/dev/full", "wb") as full:
                run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(run.returncode, 5, words)
            self.assertIn(b"cannot write", run.stderr)

    def test_refused_by_the_server(self):
        error = self.kilokv("put", "k" * 2000, "1", code=3)[1]
        self.assertIn("--key-bytes-max", error)
        self.assertIn("\n  reason: OUT_OF_RANGE (docs/errors.md)\n", error)

    def waiting_program(self, key):
        """A program in a session of its own, whose transaction waits for the key; and the file with the id of the session."""
        file = pathlib.Path(self.folder.name) / (key.replace("/", "-") + ".session")
        command = [str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "txn", "--session-file", str(file)]
        program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        waits = {"guards": [{"key": key, "is": "ge", "value": 1, "when_false": "wait"}], "wait_timeout_ms": 3600000,
                 "then": [{"op": "get", "key": key}, {"op": "put", "key": key + "/done", "value": 1}]}
        program.stdin.write(json.dumps(waits).encode() + b"\n")
        program.stdin.flush()
        until(lambda: self.parked_of(key), f"a transaction waits for {key}")
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program, file

    def test_a_session_whose_program_was_killed(self):
        program, file = self.waiting_program("attach/a")
        session = file.read_text().strip()
        self.assertRegex(session, "^[0-9a-f]{32}$")
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.parked_of("attach/a")[0]["session"], session[:8])
        program.kill()
        program.wait()
        head, parked = self.json("session", "attach", "--session-file", str(file))
        self.assertEqual(head, {"session": session[:8], "holder": 1, "acknowledged_through": 0, "frozen": False,
                                "incarnation": self.json("status")[0]["incarnation"]})
        self.assertEqual(parked, {"request": 1, "state": "parked", "transactions": 1, "decided": 0, "parked": 1, "queued": 0,
                                  "results": []})
        self.kilokv("session", "attach", "--session-file", str(file), "--request", "1", code=1)
        self.kilokv("put", "attach/a", "5")
        until(lambda: self.kilokv("get", "attach/a/done", code=None)[0] == b"1\n", "it has run")
        head, decided = self.json("session", "attach", "--session-file", str(file), "--request", "1")
        self.assertEqual(head["holder"], 3)
        self.assertEqual((decided["state"], decided["decided"], decided["parked"]), ("decided", 1, 0))
        result = decided["results"][0]
        self.assertEqual((result["index"], result["outcome"]), (0, "COMMITTED"))
        self.assertEqual([(read["key"], read["value"]) for read in result["reads"]], [("attach/a", 5)])
        out = self.kilokv("session", "attach", "--session-file", str(file))[0].decode()
        self.assertRegex(out, rf"(?s)^session {session[:8]}, holder 4, acknowledged through 0\nREQUEST +STATE .*\n"
                              r"1 +decided +1 +1 +0 +0\n  \[0\] COMMITTED, version \d+, batch \d+, rank \d+\n +attach/a\t5\n$")
        self.assertNotIn(session, out)
        _, unknown = self.json("session", "attach", "--session-file", str(file), "--request", "9", code=1)
        self.assertEqual((unknown["state"], unknown["transactions"]), ("not_known", 0))

    # The program is alive, and another one takes its session.
    def test_a_program_whose_session_is_taken_over_says_so(self):
        program, file = self.waiting_program("attach/b")
        self.kilokv("session", "attach", "--session-file", str(file))
        program.stdin.write(b'{"then": [{"op": "put", "key": "attach/never", "value": 1}]}\n')
        program.stdin.close()
        self.kilokv("put", "attach/b", "1")  # what was accepted goes on, and its answer still comes
        self.assertEqual(program.wait(timeout=60), 5)
        error = program.stderr.read().decode()
        self.assertIn("another client has attached to the session", error)
        self.assertEqual(self.kilokv("get", "attach/never", code=1)[0], b"")
        self.assertEqual(self.kilokv("get", "attach/b/done")[0], b"1\n")

    def test_a_session_file_is_there_while_an_answer_is_missing(self):
        file = pathlib.Path(self.folder.name) / "answered.session"
        self.txn({"then": [{"op": "put", "key": "attach/c", "value": 1}]}, words=("--session-file", str(file)))
        self.assertFalse(file.exists())
        file.write_text("of another program\n")
        _, error = self.txn({"then": [{"op": "put", "key": "attach/c", "value": 2}]}, words=("--session-file", str(file)),
                            code=5)
        self.assertIn("nothing was sent", error)
        self.assertEqual(self.kilokv("get", "attach/c")[0], b"1\n")
        file.unlink()

    def test_a_request_of_a_session_is_cancelled(self):
        program, file = self.waiting_program("attach/d")
        cancel = ("parked", "cancel", "--session-file", str(file), "--request", "1")
        self.kilokv("session", "attach", "--session-file", str(file))
        self.assertIn("another client has attached", self.kilokv(*cancel, code=5)[1])
        self.assertEqual(self.kilokv(*cancel, "--holder", "1")[0], b"cancelled 1\n")
        program.stdin.close()
        self.assertEqual(program.wait(timeout=60), 1)  # its answer still comes: CANCELLED

    def test_the_id_of_a_session_comes_from_a_file_or_the_environment(self):
        program, file = self.waiting_program("attach/e")
        environment = {**os.environ, "KILOKV_ENDPOINT": self.server.endpoint}
        command = [str(BIN / "kilokv"), "session", "attach"]
        for variables in ({"KILOKV_CLIENT_SESSION_FILE": str(file)}, {"KILOKV_CLIENT_SESSION": file.read_text().strip()}):
            run = subprocess.run(command, env={**environment, **variables}, capture_output=True, timeout=60, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
        short = pathlib.Path(self.folder.name) / "short.session"
        short.write_text(file.read_text()[:8])
        for words, said, code in ((("--session-file", str(short)), "has 32 hexadecimal digits", 2),
                                  (("--session-file", str(short) + ".none"), "--session-file: cannot read", 5),
                                  ((), "KILOKV_CLIENT_SESSION_FILE", 2)):
            error = self.kilokv("session", "attach", *words, code=code)[1]
            self.assertIn(said, error)
            self.assertEqual("hint: `kilokv txn --session-file FILE` writes such a file" in error, words == ())
            self.assertNotIn(short.read_text(), error)
        program.kill()

    def test_a_file_that_cannot_be_read_or_written_is_no_wrong_usage(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-files-") as folder:
            none, taken = f"{folder}/none/file", pathlib.Path(folder, "taken")
            taken.write_text("not empty\n")
            empty = pathlib.Path(folder, "empty")
            empty.write_text("\n")
            for words in (("txn", none), ("txn", "/"), ("txn", "--session-file", none), ("txn", "--session-file", str(taken)),
                          ("session", "attach", "--session-file", none), ("status", "--token-file", none),
                          ("parked", "cancel", "--session-file", none, "--request", "1"), ("export", none), ("export", folder),
                          ("import", none), ("import", folder), ("import", "--bad-lines", none),
                          ("import", "--bad-lines", str(taken)), ("import", "--bad-lines", str(taken), "--position-key", "p"),
                          ("token", "create", "user", "--file", str(taken)), ("backup", none), ("backup", str(taken)),
                          ("check", none), ("restore", none, f"{folder}/new")):
                with self.subTest(words):
                    error = self.kilokv(*words, code=5)[1]
                    self.assertRegex(error, "cannot (read|write|open|be opened)|is there already")
            self.assertEqual(taken.read_text(), "not empty\n")
            # What a file holds may be wrong. That is the input.
            for words in (("txn", str(taken)), ("import", str(taken)), ("status", "--token-file", str(empty)),
                          ("session", "attach", "--session-file", str(taken))):
                with self.subTest(words):
                    self.kilokv(*words, code=2)

    def test_usage(self):
        for words in ((), ("put", "k"), ("jump",), ("--timeout", "5", "status"), ("--output", "xml", "status"),
                      ("add", "k", "much"), ("scan", "a", "--prefix", "a")):
            self.assertNotEqual(self.kilokv(*words, code=2)[1], "")
        self.assertIn('unknown command "gett"; did you mean "get"? Known here: put get',
                      self.kilokv("gett", "a", code=2)[1])
        self.assertIn('unknown flag "--limt"; did you mean "--limit"?', self.kilokv("scan", "--limt", "1", code=2)[1])
        self.assertIn("kilokv: --timeout needs a value", self.kilokv("status", "--timeout", code=2)[1])
        self.assertIn('unknown command "jump"; known here: list cancel', self.kilokv("parked", "jump", code=2)[1])
        # A duration needs a unit, also after a flag that may have no value.
        for words in (("--wait", "5", "status"), ("status", "--wait", "5"), ("--wait=5", "status"),
                      ("--wait-for-server", "5", "status"), ("--timeout", "5", "status")):
            flag = next(word for word in words if word.startswith("--")).removesuffix("=5")
            self.assertIn(f'kilokv: {flag}: "5" is not a duration: a number with us, ms, s, m or h, such as',
                          self.kilokv(*words, code=2)[1])
        for words in (("parked", "cancel", "9" * 300), ("parked", "cancel", "--request", "zz"),
                      ("--timeout", "-5s", "status"), ("--timeout", "0s", "status")):
            self.assertIn('" is not ', self.kilokv(*words, code=2)[1])
        self.assertRegex(self.kilokv("--version")[0].decode(), r"^kilokv \d+\.\d+\.\d+ \(commit .+\)\n$")
        for words in ((), ("put",), ("get",), ("del",), ("add",), ("scan",), ("parked",), ("parked", "cancel"),
                      ("txn",), ("session",), ("session", "attach"), ("status",), ("export",), ("import",)):
            out, _ = self.kilokv(*words, "--help")
            self.assertTrue(words == () or b"Examples:" in out, words)
            self.assertEqual(self.kilokv("help", *words)[0], out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
