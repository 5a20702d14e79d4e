#!/usr/bin/env python3
"""kilokv as a script uses it: what each command prints, and its exit codes."""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, Server, until  # noqa: E402


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
        """Standard output and standard error of one run."""
        command = [str(BIN / "kilokv"), "--endpoint", endpoint or self.server.endpoint, *words]
        run = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
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
            command = [str(BIN / "kilokv"), "--endpoint", endpoint, "--timeout", "30s", "status"]
            early = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with self.assertRaises(subprocess.TimeoutExpired):
                early.wait(timeout=1)  # refused a few times
            server = Server(folder)
            server.endpoint = endpoint
            with server:
                self.assertEqual(early.wait(timeout=10), 0, early.stderr.read())
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
        self.assertIn("line 2: unknown field", error)
        self.assertIn("line 1: transactions[0] is empty", self.txn({}, code=3)[1])
        lines, _ = self.txn(good, {"thne": []}, words=("--batch",), code=2)
        self.assertEqual(lines, [])
        lines, error = self.txn({"then": [{"op": "get", "key": "k" * 2000}]}, good, code=3)
        self.assertEqual([line["outcome"] for line in lines], [None, "COMMITTED"])
        self.assertEqual(lines[0]["error"], "INVALID_ARGUMENT")
        self.assertIn("--key-bytes-max", error)
        error = self.txn({"guards": [{"is": "exists", "key": f"k{i}"} for i in range(1025)]}, code=3)[1]
        for told in ("field: transactions[0].guards", "limit: 1024 guards", "met: 1025 guards", "knob: --guards-max",
                     "the version guards that a line begins with do not count if it is alone"):
            self.assertIn(told, error)
        self.assertIn("cannot read", self.kilokv("txn", "no/such/file", code=2)[1])

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

    def test_status(self):
        self.assertEqual(self.json("status")[0]["state"], "ready")
        text = self.kilokv("status")[0].decode()
        for line in (r"strategy +\w+", r"threads +0$", r"records_per_lock +1$", r"transactions_per_thread +0$",
                     r"shadow_rate +0(\.0)?$", r"commit_units +8$", r"history +5kB$",
                     r"concurrency_limit +0$", r"staged_records +1024$", r"signature_bits +256$", r"stage_blocks +1$",
                     r"validation +auto$", r"validation_lanes +coalesced$", r"validator_choice ",
                     r"device +\w+", r"device_model ", r"device_reason ",
                     r"order +fixed$", r"strategy_choice +serial: ", r"batches_serial +\d+", r"batches_parallel +\d+",
                     r"batches_on_device +\d+", r"shadow_batches +\d+", r"shadow_skipped +\d+"):
            self.assertRegex(text, "(?m)^" + line)

    def test_every_field_of_the_status_is_documented(self):
        page = (ROOT / "docs" / "status.md").read_text()
        told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", page))))
        self.assertEqual(told, set(self.json("status")[0]))

    def test_no_server(self):
        out, error = self.kilokv("--timeout", "300ms", "get", "a", endpoint="127.0.0.1:1", code=4)
        self.assertEqual(out, b"")
        self.assertIn("nothing listens at 127.0.0.1:1", error)

        self.assertIn("check --endpoint and that kilokvd runs there", error)
        self.assertIn("--endpoint: \"127.0.0.1\" is not HOST:PORT",
                      self.kilokv("get", "a", endpoint="127.0.0.1", code=2)[1])

    def test_output_that_cannot_be_written(self):
        self.kilokv("put", "full/x", "1")
        for words in (("get", "full/x"), ("parked", "list"), ("scan", "full/"), ("status",)):
            command = [str(BIN / "kilokv"), "--endpoint", self.server.endpoint, *words]
            with open("/dev/full", "wb") as full:
                run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(run.returncode, 5, words)
            self.assertIn(b"cannot write", run.stderr)

    def test_refused_by_the_server(self):
        self.assertIn("--key-bytes-max", self.kilokv("put", "k" * 2000, "1", code=3)[1])

    def test_usage(self):
        for words in ((), ("put", "k"), ("jump",), ("--timeout", "5", "status"), ("--output", "xml", "status"),
                      ("add", "k", "much"), ("scan", "a", "--prefix", "a")):
            self.assertNotEqual(self.kilokv(*words, code=2)[1], "")
        self.assertIn('unknown command "gett"; known here: put get', self.kilokv("gett", "a", code=2)[1])
        self.assertIn('unknown command "jump"; known here: list cancel', self.kilokv("parked", "jump", code=2)[1])
        for words in (("parked", "cancel", "9" * 300), ("parked", "cancel", "--session", "zz", "--request", "1"),
                      ("--timeout", "-5s", "status"), ("--timeout", "0s", "status")):
            self.assertIn('" is not ', self.kilokv(*words, code=2)[1])
        self.assertRegex(self.kilokv("--version")[0].decode(), r"^kilokv \d+\.\d+\.\d+ \(commit .+\)\n$")
        for words in ((), ("put",), ("get",), ("del",), ("add",), ("scan",), ("parked",), ("parked", "cancel"),
                      ("txn",), ("status",)):
            out, _ = self.kilokv(*words, "--help")
            self.assertTrue(words == () or b"Examples:" in out, words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
