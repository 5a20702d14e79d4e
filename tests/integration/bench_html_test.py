#!/usr/bin/env python3
"""The page that kilokv-bench writes with --html: what stands in it, what cannot leave it, and how it looks in Chromium.

The browser's part needs Chromium, and says so if there is none. $KILOKV_CHROMIUM names another one.
"""

import html.parser
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, Server  # noqa: E402

BRIEF = ["--warmup", "100ms", "--keys", "1000"]
SHORT = [*BRIEF, "--duration", "300ms"]
CHROMIUM = shutil.which(os.environ.get("KILOKV_CHROMIUM", "chromium"))
PLANTED = "</script><script>document.title='planted'</script><img src=x onerror=alert(1)><!--"


class Page(html.parser.HTMLParser):
    """A page: its elements by their names, the texts of its scripts, and every address that it names."""

    def __init__(self, text):
        super().__init__()
        self.names, self.scripts, self.addresses, self.data = [], [], [], None
        self.open_script = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names.append(tag)
        self.addresses += [attributes[name] for name in ("src", "href", "action") if name in attributes]
        if tag == "script":
            self.open_script = attributes
            self.scripts.append("")

    def handle_data(self, data):
        if self.open_script is not None:
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        if tag != "script":
            return
        if self.open_script.get("id") == "data":
            self.data = json.loads(self.scripts.pop())
        self.open_script = None


def scripts_of_the_page():
    text = (ROOT / "client" / "bench" / "page" / "index.html").read_text()
    return text.count("<script>")


class BenchHtml(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kilokv-html-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = Server(folder.name)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)

    def bench(self, *words, code=0):
        command = [str(BIN / "kilokv-bench"), *map(str, words), "--endpoint", self.server.endpoint]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def read(self, path):
        text = path.read_text()
        page = Page(text)
        self.assertEqual(len(page.scripts), scripts_of_the_page())
        self.assertEqual(page.addresses, ["data:,"])  # the icon that there is none
        self.assertIn("The MIT License", text)
        return page

    def test_a_run(self):
        path, report = self.folder / "run.html", self.folder / "run.json"
        shown = self.bench("run", *BRIEF, "--duration", "1200ms", "--html", path, "--json", report).stdout
        self.assertIn("committed", shown.lower())  # the text for people stays
        data = self.read(path).data
        self.assertEqual(data["kind"], "run")
        self.assertEqual(data["report"], json.loads(report.read_text()))
        self.assertTrue(data["command"].startswith("kilokv-bench run --warmup 100ms"))
        [details] = data["details"]
        self.assertGreater(sum(count for _, count in details["latency_counts"]), 0)
        self.assertGreater(details["samples"][0]["committed"], 0)
        batches = data["report"]["server_batches"]
        whole = data["report"]["whole_run"]
        # There is no other client. On a busy machine the server may not answer the last look in time.
        self.assertGreater(batches["transactions"], 0)
        self.assertLessEqual(batches["transactions"], whole["committed"] + whole["guard_failed"])
        self.assertGreaterEqual(batches["mean_size"], 1)

    def test_a_sweep(self):
        path = self.folder / "sweep.html"
        self.bench("sweep", *SHORT, "--batch-size", "1,64", "--connections", "1,2", "--html", path)
        data = self.read(path).data
        self.assertEqual(data["kind"], "sweep")
        self.assertEqual([run["config"]["batch_size"] for run in data["report"]], [1, 1, 64, 64])
        self.assertEqual(len(data["details"]), 4)
        for choice, connections in zip(data["choices"], (1, 2), strict=True):
            chosen, best = (data["report"][choice[name]] for name in ("chosen", "best"))
            self.assertEqual(chosen["config"]["connections"], connections)
            self.assertGreaterEqual(chosen["committed_per_s"], 0.95 * best["committed_per_s"])

    def test_the_page_on_standard_output(self):
        shown = self.bench("run", *SHORT, "--html", "-").stdout
        self.assertTrue(shown.startswith("<!doctype html>"))
        self.assertEqual(Page(shown).data["kind"], "run")

    def test_no_text_of_a_user_leaves_the_data(self):
        path = self.folder / PLANTED / "run.html"
        path.parent.mkdir(parents=True)
        self.bench("run", *SHORT, "--html", path)
        page = self.read(path)
        self.assertIn(str(path), shlex.split(page.data["command"]))
        self.assertNotIn("img", page.names)
        self.assertNotIn(PLANTED, path.read_text())

    def test_files_that_cannot_be_written(self):
        done = self.bench("run", "--html", "no/such/page.html", code=5)
        self.assertEqual(done.stderr, "kilokv-bench: --html: cannot write no/such/page.html: No such file or directory\n")
        done = self.bench("sweep", "--json", "-", "--html", "-", code=5)
        self.assertIn("--json and --html cannot both be -", done.stderr)
        done = self.bench("run", *SHORT, "--html", "/dev/full", code=5)
        self.assertIn("--html: cannot write /dev/full", done.stderr)

    def show(self, path):
        """The page as Chromium has built it. Fails if anything went wrong in the page."""
        if CHROMIUM is None:
            self.skipTest("there is no chromium: deploy/install-deps.sh installs it")
        command = [CHROMIUM, "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
                   f"--user-data-dir={self.folder / 'browser'}", "--virtual-time-budget=2000", "--dump-dom", path.as_uri()]
        if os.getuid() == 0:  # for root Chromium has no sandbox
            command.insert(1, "--no-sandbox")
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=True)
        self.assertNotIn(":CONSOLE", done.stderr)
        return done.stdout

    def test_a_run_in_a_browser(self):
        path = self.folder / PLANTED / "run.html"
        path.parent.mkdir(parents=True)
        self.bench("run", *BRIEF, "--duration", "4s", "--html", path)
        shown = self.show(path)
        self.assertRegex(shown, r"<h1>bank: [\d,]+ committed transactions a second")
        self.assertRegex(shown, r"<title>bank: [^<]* - KiloKV load test</title>")
        self.assertIn("<h2>Verified</h2>", shown)
        figures = re.findall(r"<figcaption>([^<]*)</figcaption>", shown)
        self.assertEqual(figures, ["Latency of the transactions", "Latency by percentile", "Throughput over time",
                                   "Latency over time", "Processors over time", "Batch size of the server over time"])
        self.assertEqual(shown.count("<canvas"), len(figures))
        self.assertNotIn("<img", shown)

    def test_a_sweep_in_a_browser(self):
        path = self.folder / "sweep.html"
        self.bench("sweep", *SHORT, "--batch-size", "1,64", "--in-flight", "1,4", "--html", path)
        shown = self.show(path)
        self.assertRegex(shown, r"<h1>bank: the most of 4 runs is [\d,]+ committed transactions a second")
        figures = re.findall(r"<figcaption>([^<]*)</figcaption>", shown)
        self.assertEqual(figures[:2], ["Throughput by batch size", "Latency (p99) by batch size"])
        self.assertEqual(figures[-2:], ["Throughput by requests in flight", "Latency (p99) by requests in flight"])
        self.assertEqual(shown.count("<canvas"), len(figures))
        self.assertIn("<h2>The smallest batch size within 5% of the best</h2>", shown)


if __name__ == "__main__":
    unittest.main()
