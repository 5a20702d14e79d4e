#!/usr/bin/env python3
"""kilokv export and kilokv import, as a user runs them.

`--kills N`: how often the importer is killed with SIGKILL in the test of that; it prints its seed, and KILOKV_TEST_SEED
replays it.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import re
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, SLOWER, Server, until  # noqa: E402

KILLS = 5


def coded(data):
    """Bytes as JSON has them if they are not text."""
    return {"b64": base64.b64encode(data).decode()}


def chosen_pairs(rng):
    """Keys and values that a format could lose."""
    texts = [b"plain", b"7", b"quo\"te", b"\"", b"com,ma", b"new\nline", b"\n", b"cr\r", b"crlf\r\n", b" blanks ", b"tab\t",
             b"\x00", b"a\x00b", b"\xff\xfe", "ümläut €".encode(), b"\xed\xa0\x80", b"b64:", b"b64:AA==", b"=1+1", b"-5",
             b"-0", b"007", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808", b"\x7f", b"{\"b64\": 1}",
             b"\xef\xbb\xbf", b"null", b"\\", b"k" * 1000, b"\xff" * 1000]
    values = [0, -1, (1 << 63) - 1, -(1 << 63), b"", b"v" * (1 << 20), rng.randbytes(1 << 20), *texts]
    pairs = {b"value/%d" % i: value for i, value in enumerate(values)}
    pairs.update({text: i for i, text in enumerate(texts)})
    for _ in range(200):
        value = rng.choice([rng.getrandbits(64) - (1 << 63), rng.randbytes(rng.randrange(20))])
        pairs[rng.randbytes(rng.randrange(1, 20))] = value
    return pairs


class Bulk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.TemporaryDirectory(prefix="kilokv-bulk-")
        cls.server = Server(cls.base.name)
        cls.server.__enter__()
        cls.seed = int(os.environ.get("KILOKV_TEST_SEED", random.SystemRandom().getrandbits(32)))
        print(f"seed {cls.seed}; replay: KILOKV_TEST_SEED={cls.seed} {pathlib.Path(__file__).name}", flush=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.base.cleanup()

    def setUp(self):
        self.rng = random.Random(self.seed)
        folder = tempfile.TemporaryDirectory(prefix="kilokv-bulk-files-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kilokv(self, *words, code=0, stdin=b"", server=None):
        """Standard output and standard error of one run."""
        command = (server or self.server).command("kilokv", *words)
        run = subprocess.run(command, input=stdin, capture_output=True, timeout=120 * SLOWER, check=False)
        self.assertEqual(run.returncode, code, f"{words}\n{run.stdout[:2000]}{run.stderr[:2000]}")
        return run.stdout, run.stderr.decode()

    def start(self, *words, server=None, **streams):
        command = (server or self.server).command("kilokv", *words)
        process = subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                               "stderr": subprocess.PIPE, **streams})
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def file(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def clear(self, prefix=""):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else ""
        one = {"then": [{"op": "delete_range", "from": prefix, "to": end, "limit": 10000}]}
        while self.kilokv("scan", "--prefix", prefix, "--limit", "1")[0]:
            self.kilokv("txn", stdin=json.dumps(one).encode())

    def put(self, pairs):
        """Writes pairs by `kilokv txn`, which reads no file of an export."""
        lines = []
        for key, value in pairs.items():
            value = coded(value) if isinstance(value, bytes) else value
            lines.append(json.dumps({"then": [{"op": "put", "key": coded(key), "value": value}]}))
        self.kilokv("txn", stdin="\n".join(lines).encode())

    def pairs(self, prefix=""):
        """What is in the database, by `kilokv scan`."""
        def bytes_of(item):
            return base64.b64decode(item["b64"]) if isinstance(item, dict) else item.encode() if isinstance(item, str) else item
        out, _ = self.kilokv("--output", "json", "scan", "--prefix", prefix)
        lines = [json.loads(line) for line in out.splitlines()]
        return {bytes_of(line["key"]): bytes_of(line["value"]) for line in lines}

    def export(self, *words, server=None):
        return self.kilokv("export", *words, "--quiet", server=server)[0]

    def bad_lines(self, name="bad.jsonl"):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    # --- round trips

    def test_export_import_export_gives_the_same_file(self):
        self.clear()
        pairs = chosen_pairs(self.rng)
        self.put(pairs)
        self.assertEqual(self.pairs(), pairs)
        files = {}
        for form in ("jsonl", "csv"):
            files[form] = self.folder / f"pairs.{form}"
            out, said = self.kilokv("export", files[form])
            self.assertEqual(out, b"")
            self.assertRegex(said, rf"exported {len(pairs)} pairs, [\d,]+ bytes, in ")
        for form in ("jsonl", "csv"):
            self.clear()
            out, _ = self.kilokv("import", files[form])
            integers = sum(isinstance(value, int) for value in pairs.values())
            self.assertRegex(out.decode(), rf"^imported {len(pairs)} records \({integers} as integers, "
                                           rf"{len(pairs) - integers} as bytes\) in ")
            self.assertEqual(self.pairs(), pairs)
            for other in ("jsonl", "csv"):
                self.assertEqual(self.export("--format", other), files[other].read_bytes(), f"{other} after {form}")
        self.clear()

    def test_what_scan_prints_can_be_imported(self):
        self.put({b"scan/a": 1, b"scan/\xff": b"\x00", b"scan/c": b"text"})
        out, _ = self.kilokv("--output", "json", "scan", "--prefix", "scan/")
        self.clear("scan/")
        self.kilokv("import", stdin=out)
        self.assertEqual(self.pairs("scan/"), {b"scan/a": 1, b"scan/\xff": b"\x00", b"scan/c": b"text"})

    def test_ranges(self):
        self.put({b"range/%d" % i: i for i in range(5)})
        self.assertEqual(self.export("--from", "range/1", "--to", "range/3"),
                         b'{"key": "range/1", "value": 1}\n{"key": "range/2", "value": 2}\n')
        self.assertEqual(self.export("--prefix", "range/4", "--format", "csv"), b"key,value\nrange/4,4\n")
        self.assertEqual(self.export("--prefix", "range/none", "--format", "csv"), b"key,value\n")
        self.assertIn("--to a is before --from b", self.kilokv("export", "--from", "b", "--to", "a", code=2)[1])
        self.kilokv("export", "--from", "a", "--prefix", "b", code=2)

    # --- export

    def test_a_file_is_replaced_as_a_whole(self):
        self.put({b"file/a": 1})
        path = self.file("out.csv", "old")
        path.chmod(0o644)
        out, _ = self.kilokv("--output", "json", "export", path, "--prefix", "file/")
        summary = json.loads(out)
        self.assertEqual((summary["pairs"], summary["bytes"]), (1, len(b"key,value\nfile/a,1\n")))
        self.assertGreater(summary["boundary"], 0)
        self.assertEqual(path.read_bytes(), b"key,value\nfile/a,1\n")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        for wrong, words in ((self.folder / "none" / "out.csv", "No such file"), (self.folder, "not a regular file")):
            self.assertIn(words, self.kilokv("export", wrong, code=5)[1])
        self.assertEqual(os.listdir(self.folder), ["out.csv"])

    def test_an_export_that_is_ended_leaves_no_file(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-ended-") as folder, \
                Server(folder, "--scan-pairs-max", "1") as server:  # an answer for each pair
            lines = "".join(f"ended/{i},1\n" for i in range(5000))
            self.kilokv("import", "--format", "csv", stdin=f"key,value\n{lines}".encode(), server=server)
            for how, code, left in ((signal.SIGTERM, 128 + signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL, 1)):
                with self.subTest(how):
                    process = self.start("export", self.folder / "ended.csv", server=server)
                    until(lambda: list(self.folder.glob("ended.csv.partial.*")), "a partial file")
                    process.send_signal(how)
                    self.assertEqual(process.wait(timeout=60 * SLOWER), code)
                    self.assertFalse((self.folder / "ended.csv").exists())
                    partial = list(self.folder.glob("ended.csv.partial.*"))
                    self.assertEqual([stat.S_IMODE(path.stat().st_mode) for path in partial], [0o600] * left)

    def test_a_moment_that_the_server_no_longer_keeps(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-old-") as folder, \
                Server(folder, "--scan-pairs-max", "1", "--snapshot-bytes-max", "0") as server:
            self.transfer(server)
            path = self.file("old.csv", "whole")
            _, said = self.kilokv("export", path, code=1, server=server)
            for words in ("kilokv: ABORTED:", "no longer keeps the moment", "no file was written", "--snapshot-age-max"):
                self.assertIn(words, said)
            self.assertEqual(path.read_text(), "whole")
            self.assertEqual(os.listdir(self.folder), ["old.csv"])
            self.assertIn("what was written is only a part", self.kilokv("export", code=1, server=server)[1])

    def test_one_moment(self):
        """Transfers go on during the export. What it shows was the state at one moment: the total is right."""
        with tempfile.TemporaryDirectory(prefix="kilokv-moment-") as folder, \
                Server(folder, "--scan-pairs-max", "50") as server:
            self.transfer(server)
            for _ in range(5):
                lines = [json.loads(line) for line in self.export(server=server).splitlines()]
                self.assertEqual((len(lines), sum(line["value"] for line in lines)), (1000, 1000 * 1000))

    def transfer(self, server):
        """Moves money between accounts until the test ends."""
        bench = subprocess.Popen(server.command("kilokv-bench", "run", "--keys", "1000", "--duration", "10m", "--warmup", "0s",
                                                "--batch-size", "16", "--rate", "5000"),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(bench.wait)
        self.addCleanup(bench.kill)
        until(lambda: json.loads(server.client("--output", "json", "status"))["committed"] > 2000, "transfers")

    def test_output_that_cannot_be_written(self):
        self.put({b"full/a": 1})
        with open("/dev/full", "wb") as full:
            run = subprocess.run(self.server.command("kilokv", "export", "--prefix", "full/"), stdin=subprocess.DEVNULL,
                                 stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(run.returncode, 5)
        self.assertIn(b"kilokv: cannot write standard output: No space left on device", run.stderr)
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as pipe:
            run = subprocess.run(self.server.command("kilokv", "export", "--prefix", "full/"), stdin=subprocess.DEVNULL,
                                 stdout=pipe, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual((run.returncode, run.stderr), (5, b"kilokv: cannot write standard output: Broken pipe\n"))

    # --- import

    def test_columns(self):
        text = "name,sku,stock\n\"Nut, small\",c/1,10\nBolt,c/2,-3\nZip,c/3,00501\n"
        path = self.file("columns.csv", text)
        self.kilokv("import", path, "--key-column", "sku", "--value-column", "stock")
        self.assertEqual(self.pairs("c/"), {b"c/1": 10, b"c/2": -3, b"c/3": b"00501"})
        self.kilokv("import", path, "--key-column", "sku", "--value-column", "stock", "--bytes")
        self.assertEqual(self.pairs("c/"), {b"c/1": b"10", b"c/2": b"-3", b"c/3": b"00501"})
        self.assertEqual(self.kilokv("import", path, code=2)[1].splitlines()[0],
                         'kilokv: line 1: there is no column key; the header was read as "name", "sku", "stock"; the first line '
                         "must be a header with the columns key and value")

    def test_separators(self):
        pairs = {b"sep/a": 1, b"sep/b": b"1,5", b"sep/c;\td": b";\t,", b"sep/\xff": b"7"}
        for separator, character in ((";", ";"), ("tab", "\t"), ("|", "|")):
            with self.subTest(separator):
                self.clear("sep/")
                self.put(pairs)
                path = self.folder / "separated.csv"
                self.kilokv("export", path, "--prefix", "sep/", "--separator", separator)
                self.assertTrue(path.read_text().startswith(f"key{character}value\nsep/a{character}1\n"))
                self.clear("sep/")
                said = self.kilokv("import", path, code=2)[1]
                self.assertIn(f'the header was read as "key{character}value"'.replace("\t", "?"), said)
                self.assertIn(f"give --separator {separator if separator == 'tab' else repr(character)}\n", said)
                self.kilokv("import", path, "--separator", separator)
                self.assertEqual(self.pairs("sep/"), pairs)
        for wrong in ("", ";;", "a", "0", "-", ":", "\"", " ", "TAB", "ä"):
            self.assertIn("separates no cells", self.kilokv("import", "--format", "csv", "--separator", wrong, code=2)[1])
        self.assertIn("--separator is for CSV", self.kilokv("export", "--separator", ";", code=2)[1])
        words = ("import", "--format", "csv", "--position-key", "import/separator")
        self.kilokv(*words, "--separator", ";", stdin=b"key;value\nsep/d;1\n")
        said = self.kilokv(*words, stdin=b"key;value\nsep/d;1\n", code=5)[1]
        self.assertIn("is that of an import of csv with the columns key and value, separated by ;", said)

    def test_numbers_that_are_no_integers(self):
        path = self.file("numbers.csv", "key,value\nn/a,7\nn/b,007\nn/c, 7\nn/d,1e3\nn/e,1.5\n")
        summary = json.loads(self.kilokv("--output", "json", "import", path)[0])
        self.assertEqual((summary["written"], summary["integers"], summary["byte_values"]), (5, 1, 4))
        self.assertEqual(self.pairs("n/"), {b"n/a": 7, b"n/b": b"007", b"n/c": b" 7", b"n/d": b"1e3", b"n/e": b"1.5"})
        self.clear("n/")
        said = self.kilokv("import", path, "--integers", code=2)[1]
        self.assertIn('kilokv: line 3: the value "007" is not written as integers are printed', said)
        self.kilokv("import", path, "--integers", "--bad-lines", self.folder / "numbers.jsonl", code=1)
        self.assertEqual(self.pairs("n/"), {b"n/a": 7})
        self.assertEqual([line["line"] for line in self.bad_lines("numbers.jsonl")], [3, 4, 5, 6])
        self.assertIn("--integers and --bytes", self.kilokv("import", path, "--integers", "--bytes", code=2)[1])

    def test_a_bad_line_stops_the_import(self):
        path = self.file("bad.csv", "key,value\nstop/a,1\nstop/b,2\n\nstop/\"c,3\nstop/d,4\n")
        out, said = self.kilokv("import", path, code=2)
        self.assertEqual(out, b"")
        self.assertEqual(said, "kilokv: line 5: a quote stands inside of a cell, or text after the quote that ends a cell\n"
                               "  hint: the import stops here; --bad-lines FILE sets bad lines aside, and goes on\n"
                               "  imported: all lines before line 5\n")
        self.assertEqual(self.pairs("stop/"), {b"stop/a": 1, b"stop/b": 2})

    def test_an_import_that_stops_at_once_has_imported_nothing(self):
        for text in (b"no header\n", b"key,value\n,1\n", b"key,value\n\n\n,1\nnothing/a,1\n"):
            said = self.kilokv("import", "--format", "csv", stdin=text, code=2)[1]
            self.assertEqual(said.splitlines()[-1], "  imported: nothing")
        self.assertEqual(self.kilokv("import", stdin=b"no JSON\n", code=2)[1].splitlines()[-1], "  imported: nothing")
        words = ("import", "--format", "csv", "--position-key", "import/nothing")
        self.kilokv(*words, stdin=b"key,value\nnothing/b,1\n")
        # An earlier run has imported something.
        said = self.kilokv(*words, stdin=b"key,value\nnothing/b,1\n,2\n", code=2)[1]
        self.assertIn("  imported: all lines before line 3\n", said)
        self.clear("nothing/")

    def test_bad_lines_are_set_aside(self):
        rows = [b"key,value", b"aside/a,1", b",2", b"aside/\xff,3", b"aside/d,9223372036854775808", b"\"aside/\n\"e,5",
                b"\"aside/f\ng\",6", b"aside/h", b"k" * 1025 + b",8", b"aside/i," + b"v" * ((1 << 20) + 1), b"aside/j,10",
                b"aside/k," + b"w" * (5 << 20), b"aside/l," + b"x" * (20 << 20), b"aside/m,\"cut"]
        path = self.file("aside.csv", b"\n".join(rows))
        bad = self.folder / "bad.jsonl"
        out, _ = self.kilokv("--output", "json", "import", path, "--bad-lines", bad, code=1)
        summary = json.loads(out)
        lines = sorted(self.bad_lines(), key=lambda line: line["line"])
        self.assertEqual([line["line"] for line in lines], [3, 4, 5, 6, 10, 11, 12, 14, 15, 16])
        self.assertEqual((summary["written"], summary["bad_lines"]), (3, 10))
        self.assertEqual(self.pairs("aside/"), {b"aside/a": 1, b"aside/f\ng": 6, b"aside/j": 10})
        self.assertEqual(stat.S_IMODE(bad.stat().st_mode), 0o600)
        self.assertEqual(lines[0], {"line": 3, "problem": "the key is empty", "text": ",2\n"})
        self.assertEqual(lines[1]["text"], coded(b"aside/\xff,3\n"))
        self.assertEqual(lines[3]["text"], "\"aside/\n\"e,5\n")
        self.assertEqual(lines[5]["problem"],
                         "the key has 1025 bytes, and the server takes 1 to 1024 bytes (--key-bytes-max of kilokvd)")
        self.assertEqual(lines[6]["problem"],
                         "the value has 1048577 bytes, and the server takes 1048576 bytes (--value-bytes-max of kilokvd)")
        self.assertIn("the input ends inside of quotes", lines[9]["problem"])
        # The file of bad lines is not overwritten.
        before = bad.read_bytes()
        self.assertIn("move it away", self.kilokv("import", path, "--bad-lines", bad, code=5)[1])
        self.assertEqual(bad.read_bytes(), before)

    def test_existing_keys(self):
        text = "key,value\n" + "".join(f"exist/{i:04},{i}\n" for i in range(3000)) + "exist/0001,5\n"
        path = self.file("existing.csv", text)
        fresh = {b"exist/%04d" % i: i for i in range(3000)}
        there = {b"exist/%04d" % i: -1 for i in (0, 7, 999, 1000, 2500)}
        for mode, wanted, bad in (("keep", {**fresh, **there}, 0), ("refuse", {**fresh, **there}, 6),
                                  ("overwrite", {**fresh, b"exist/0001": 5}, 0)):
            with self.subTest(mode):
                self.clear("exist/")
                self.put(there)
                out, _ = self.kilokv("--output", "json", "import", path, "--existing", mode, "--bad-lines",
                                     self.folder / f"{mode}.jsonl", code=1 if bad else 0)
                self.assertEqual(self.pairs("exist/"), wanted)
                summary = json.loads(out)
                self.assertEqual(summary["bad_lines"], bad)
                self.assertEqual(summary["kept"], 6 if mode == "keep" else 0)
                self.assertEqual(summary["written"], 3001 if mode == "overwrite" else 2995)
        lines = sorted((line["line"], line["problem"]) for line in self.bad_lines("refuse.jsonl"))
        self.assertEqual(lines, [(line, "the key exists already") for line in (2, 9, 1001, 1002, 2502, 3002)])
        self.clear("exist/")
        self.put(there)
        _, said = self.kilokv("import", path, "--existing", "refuse", "--position-key", "import/exist", code=2)
        self.assertIn("kilokv: line 2: the key exists already\n", said)
        self.assertIn("  imported: nothing\n", said)
        self.assertEqual(self.pairs("exist/"), there)

    def test_a_pipe_is_imported_before_it_ends(self):
        process = self.start("import", stdin=subprocess.PIPE)
        process.stdin.write(b'{"key": "pipe/a", "value": 1}\n{"key": "pipe/b", "val')
        process.stdin.flush()
        until(lambda: self.pairs("pipe/") == {b"pipe/a": 1}, "the first record of the pipe")
        out, said = process.communicate(b'ue": 2}\n', timeout=60 * SLOWER)
        self.assertEqual((process.returncode, self.pairs("pipe/")), (0, {b"pipe/a": 1, b"pipe/b": 2}))
        self.assertIn(b"imported 2 records", out)
        self.assertEqual(said, b"")

    def test_progress(self):
        """A terminal gets it, unless the user is against it. Anything else gets it if the user asks for it."""
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        for flags, target, is_shown in (((), theirs, True), (("--progress",), subprocess.PIPE, True),
                                        (("--quiet",), theirs, False), ((), subprocess.PIPE, False)):
            with self.subTest(flags=flags, terminal=target == theirs):
                process = self.start("import", *flags, stdin=subprocess.PIPE, stderr=target)
                source = ours if target == theirs else process.stderr.fileno()
                if is_shown:
                    until(lambda at=source: b" records, " in os.read(at, 4096), "a line about the progress")
                else:
                    self.assertEqual(select.select([source], [], [], 1.5)[0], [])  # a line each second would have come
                process.stdin.close()
                self.assertEqual(process.wait(timeout=60 * SLOWER), 0)
        self.kilokv("import", "--quiet", "--progress", code=2)

    def test_an_import_ends_in_order_at_a_signal(self):
        process = self.start("import", "--position-key", "import/signal", stdin=subprocess.PIPE)
        process.stdin.write(b'{"key": "signal/a", "value": 1}\n')
        process.stdin.flush()
        until(lambda: self.pairs("signal/"), "the first record of the pipe")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60 * SLOWER), 128 + signal.SIGINT)
        said = process.stderr.read().decode()
        self.assertIn("imported: all lines before line 2", said)
        self.assertIn("run the same command again", said)

    def test_flags_that_say_nothing(self):
        """A script may pass an empty text for a variable that is not set. And no flag is ignored."""
        for flag in ("--position-key", "--bad-lines", "--key-column", "--value-column"):
            for words in ((flag, ""), (f"{flag}=",)):
                self.assertIn(flag, self.kilokv("import", "--format", "csv", *words, code=2)[1])
        for words in (("--bytes",), ("--key-column", "k"), ("--value-column", "v"), ("--separator", ";")):
            self.assertIn("are for CSV", self.kilokv("import", *words, code=2)[1])
        self.assertIn("name the same column: a", self.kilokv("import", "--format", "csv", "--key-column", "a", "--value-column",
                                                             "a", code=2)[1])

    def test_a_server_that_lets_nothing_wait(self):
        text = "key,value\n" + "".join(f"wait/{i},{i}\n" for i in range(300))
        for flags, timeout in ((("--wait-timeout-max", "1s"), "5s"), (("--parked-max", "0"), "5s")):
            with self.subTest(flags), tempfile.TemporaryDirectory(prefix="kilokv-wait-") as folder, \
                    Server(folder, *flags) as server:
                self.kilokv("--timeout", timeout, "import", "--format", "csv", "--position-key", "import/wait", "--batch-size", "20",
                            stdin=text.encode(), server=server)
                self.assertEqual(len(self.kilokv("scan", "--prefix", "wait/", server=server)[0].splitlines()), 300)

    def test_rights(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-rights-") as folder:
            admin, token = pathlib.Path(folder, "admin.token"), pathlib.Path(folder, "user.token")
            with Server(folder, "--login", "on", "--bootstrap-file", admin) as server:
                for words in (("role", "grant", "writer", "--write", "own/", "--write", "import/", "--read", "import/"),
                              ("user", "set", "writer", "--role", "writer"), ("token", "create", "writer", "--file", token),
                              ("put", "own/old", "5")):
                    self.kilokv(*words, "--token-file", admin, server=server)

                def as_user(*words, **how):
                    return self.kilokv(*words, "--token-file", token, server=server, **how)

                own, other = b"key,value\nown/a,1\n", b"key,value\nown/b,1\nother/a,1\n"
                as_user("import", "--format", "csv", "--position-key", "import/own", stdin=own)
                self.assertIn("no write right", as_user("import", "--format", "csv", stdin=other, code=5)[1])
                # A guard reads.
                self.assertIn("no read right", as_user("import", "--format", "csv", "--existing", "keep", stdin=own, code=5)[1])
                self.assertIn("no read right", as_user("import", "--format", "csv", "--position-key", "own/p", stdin=own, code=5)[1])
                self.assertIn("no read right", as_user("export", "--prefix", "own/", code=5)[1])
                out, _ = as_user("export", "--prefix", "import/", "--quiet")
                self.assertEqual(json.loads(out)["key"], "import/own")
                out, _ = self.kilokv("export", "--prefix", "o", "--quiet", "--token-file", admin, server=server)
                self.assertEqual(out, b'{"key": "own/a", "value": 1}\n{"key": "own/old", "value": 5}\n')

    def test_the_examples_of_the_page(self):
        page = (ROOT / "docs" / "bulk.md").read_text()
        wanted = {b"stock:nut": 100, b"name:nut": b"Nut, 8 mm", b"\xff\x00": b"\x00\x01"}
        for kind in ("jsonl", "csv"):
            self.clear()
            text = re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1]
            self.kilokv("import", "--format", kind, stdin=text.encode())
            self.assertEqual(self.pairs(), wanted)

    def test_files_that_cannot_be_read(self):
        said = self.kilokv("import", self.folder / "none", code=5)[1]
        self.assertIn("cannot read", said)
        self.assertIn("  hint: check the path; without a file name, or with -, standard input is read\n", said)
        self.assertIn("cannot read", self.kilokv("import", self.folder, code=5)[1])

    def test_a_file_of_the_other_format(self):
        for form, other, text in (("jsonl", "csv", "key,value\na,1\n"), ("csv", "jsonl", '{"key": "a", "value": 1}\n')):
            said = self.kilokv("import", "--format", form, stdin=text.encode(), code=2)[1]
            self.assertRegex(said, rf"^kilokv: line 1: .*\n  hint: the input is read as .*; --format {other} reads ")
        # A line that is wrong otherwise has no such hint.
        self.assertNotIn("--format", self.kilokv("import", stdin=b'{"key": "a"}\n', code=2)[1])

    def test_batch_size_beyond_the_limit_of_the_server(self):
        text = "key,value\n" + "".join(f"size/{i},{i}\n" for i in range(2000))
        for size in ("2000", "1025"):
            _, said = self.kilokv("import", "--format", "csv", "--batch-size", size, stdin=text.encode(), code=3)
            self.assertIn("--operations-max", said)
            self.assertIn("a smaller --batch-size", said)
        self.kilokv("import", "--format", "csv", "--batch-size", "1023", "--position-key", "import/size", stdin=text.encode())
        self.assertEqual(len(self.pairs("size/")), 2000)

    # --- positions

    def test_a_position(self):
        text = "key,value\n" + "".join(f"pos/{i:04},{i}\n" for i in range(2500))
        path = self.file("position.csv", text)
        words = ("--output", "json", "import", path, "--existing", "refuse", "--position-key", "import/pos")
        self.assertEqual(json.loads(self.kilokv(*words)[0])["written"], 2500)
        again = json.loads(self.kilokv(*words)[0])
        self.assertEqual((again["written"], again["continued_at_line"], again["lines"]), (0, 2502, 0))
        position = json.loads(self.kilokv("get", "import/pos")[0])
        self.assertEqual((position["format"], position["line"], position["bytes"]), ("kilokv-import-1", 2502, len(text)))
        self.file("position.csv", text.replace("pos/0000,0", "pos/0000,9"))
        self.assertIn("the input is not the one that was imported before", self.kilokv(*words, code=2)[1])
        self.file("position.csv", text[:-5])
        self.assertIn("the input is not the one that was imported before", self.kilokv(*words, code=2)[1])
        self.file("position.csv", text + "pos/last,1\n")
        self.assertEqual(json.loads(self.kilokv(*words)[0])["written"], 1)
        for other in (("--existing", "keep"), ("--existing", "refuse", "--bytes")):
            _, said = self.kilokv("import", path, "--position-key", "import/pos", *other, code=5)
            self.assertIn("use the same flags, or another key", said)
        self.kilokv("put", "import/taken", "5")
        self.assertIn("is no position", self.kilokv("import", path, "--position-key", "import/taken", code=5)[1])

    def test_a_server_that_is_killed(self):
        with tempfile.TemporaryDirectory(prefix="kilokv-killed-") as folder, Server(folder) as server:
            process = self.start("--timeout", "120s", "import", "--format", "csv", "--existing", "refuse", "--batch-size", "7",
                                 stdin=subprocess.PIPE, server=server)
            process.stdin.write(b"key,value\n")
            for part in range(4):
                process.stdin.write(b"".join(b"server/%d/%d,1\n" % (part, i) for i in range(2000)))
                process.stdin.flush()
                until(lambda at=part: self.kilokv("scan", "--prefix", f"server/{at}/", "--limit", "1", server=server)[0],
                      "a record of this part")
                server.kill()
                server.start()
            out, said = process.communicate(timeout=120 * SLOWER)
            self.assertEqual(process.returncode, 0, said)
            self.assertIn(b"imported 8,000 records", out)
            self.assertEqual(len(self.kilokv("scan", "--prefix", "server/", server=server)[0].splitlines()), 8000)

    def import_in_pieces(self, name, records, kills):
        """Kills imports of one file until it was killed often enough, or is done. Some of them lose their server, too: before
        they are killed, or with them. Every record is new, so a record that is applied twice is refused, and is set aside.
        Returns how often it was killed."""
        there = {b"%s/%07d" % (name, i) for i in self.rng.sample(range(records), 5)}
        self.put({key: -1 for key in there})
        rows, wanted, bad = [b"key,value"], {}, []
        for i in range(records):
            key = b"%s/%07d" % (name, i)
            if self.rng.random() < 5 / records:
                rows.append(b",5")
                bad.append(len(rows))
            rows.append(b"%s,%d" % (key, i))
            if key in there:
                bad.append(len(rows))
            wanted[key] = -1 if key in there else i
        path = self.file(name.decode() + ".csv", b"\n".join(rows) + b"\n")
        bad_file = self.folder / f"{name.decode()}.jsonl"
        words = ("import", path, "--quiet", "--existing", "refuse", "--bad-lines", bad_file, "--batch-size", "20",
                 "--in-flight", "6", "--position-key", f"import/{name.decode()}",
                 # A loaded machine may need more than the usual time to start the server again. And the server may be gone
                 # before an import has begun to connect.
                 "--timeout", "60s", "--wait-for-server", "60s")
        done, restarts, places = 0, 0, set()
        while done < kills:
            process = self.start(*words, stdout=subprocess.DEVNULL)
            if self.ends_within(process, self.rng.uniform(0.02, 0.4)):
                break  # it was faster than the kill
            if self.rng.random() < 0.3:
                self.server.kill()
                self.server.start()
                restarts += 1
                if self.ends_within(process, self.rng.uniform(0, 0.3)):
                    break
            self.end(process)
            done += 1
            places.add(self.line_of(f"import/{name.decode()}"))
        self.kilokv(*words, code=1)
        self.assertEqual(self.pairs(name.decode() + "/"), wanted)
        self.assertEqual(sorted(line["line"] for line in self.bad_lines(bad_file.name)), bad)
        print(f"killed {done} times, at {len(places)} different places of {records} records, with {restarts} restarts of the "
              "server", flush=True)
        return done, len(places)

    def ends_within(self, process, seconds):
        """Whether the import ends so early. It has bad lines, which it sets aside."""
        try:
            code = process.wait(timeout=seconds * SLOWER)
        except subprocess.TimeoutExpired:
            return False
        self.assertEqual(code, 1, process.stderr.read())
        return True

    def line_of(self, position_key):
        """The next line of an import; 0: it has no position yet."""
        run = subprocess.run(self.server.command("kilokv", "get", position_key), capture_output=True, timeout=60, check=False)
        return json.loads(run.stdout)["line"] if run.returncode == 0 else 0

    def test_an_import_that_is_killed_is_applied_once(self):
        records = 2000 * KILLS
        folder = tempfile.TemporaryDirectory(prefix="kilokv-kills-")
        self.addCleanup(folder.cleanup)
        self.server = self.enterContext(Server(folder.name))  # one that may be killed
        for attempt in range(6):
            done, places = self.import_in_pieces(b"killed%d" % attempt, records, KILLS)
            if done >= KILLS and places > KILLS // 2:
                return
            records *= 2
        self.fail(f"no import lived long enough to be killed {KILLS} times")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS, help="of one import (default %(default)s)")
    options, rest = parser.parse_known_args()
    KILLS = options.kills
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
