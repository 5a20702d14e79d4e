#!/usr/bin/env python3
"""The monitoring as an operator sets it up: a real Prometheus scrapes a real server with TLS and logins, under load. All
queries of the dashboard and of the alerts must find data, the rules must pass their tests, an alert must fire when a sync
hangs, and docs/monitoring.md must list exactly what the server shows."""

import collections
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "crash"), str(ROOT / "tests" / "attack")]
from guarded_server import GuardedServer  # noqa: E402
from programs import Server, add, temporary_folder, until, wait_for  # noqa: E402

MONITORING = ROOT / "deploy" / "monitoring"
TESTS = ("alerts_test.yml", "alerts_days_test.yml")
PAGE = ROOT / "docs" / "monitoring.md"
SELECTOR = re.compile(r"\b((?:kilokv|process)_\w+|up)\b(\{[^}]*\})?")
# An alert that fires on a server in good health, as soon as others may.
CANARY = """groups:
  - name: canary
    rules:
      - alert: Canary
        expr: kilokv_ready == 1
        for: 20s
"""


def tool(name):
    path = shutil.which(name)
    assert path, f"{name} is missing: deploy/install-deps.sh installs the package prometheus"
    return path


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=60, **more)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def alerts():
    """Name and expression of each alert. The file has one of each in a line, or a block after a `|`."""
    text = (MONITORING / "alerts.yml").read_text()
    found = re.findall(r"- alert: (\w+)\n\s+expr: (?:\|\n((?:\s{10,}.*\n)+)|(.*)\n)", text)
    assert len(found) == text.count("- alert:") > 15
    return {name: (block or line).strip() for name, block, line in found}


def dashboard_queries():
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])]


class Prometheus:
    """A Prometheus that scrapes often. `jobs`: the text of its scrape_configs. If it is impatient, all alerts that wait for
    minutes wait for some seconds."""

    def __init__(self, folder, jobs, impatient=False):
        self.folder = pathlib.Path(folder)
        self.endpoint = f"127.0.0.1:{free_port()}"
        rules = self.folder / "alerts.yml"
        text = (MONITORING / "alerts.yml").read_text()
        rules.write_text(re.sub(r"for: \d+m", "for: 10s", text) if impatient else text)
        (self.folder / "canary.yml").write_text(CANARY)
        configuration = self.folder / "prometheus.yml"
        configuration.write_text("global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  evaluation_interval: 1s\n"
                                 f"rule_files: [alerts.yml, canary.yml]\nscrape_configs:\n{jobs}")
        run(tool("promtool"), "check", "config", configuration)
        self.log = self.folder / "prometheus.log"
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [tool("prometheus"), f"--config.file={configuration}", f"--storage.tsdb.path={self.folder / 'tsdb'}",
                 f"--web.listen-address={self.endpoint}", "--log.level=warn"], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL)

    def stop(self):
        self._process.kill()
        self._process.wait()

    def ask(self, path, **arguments):
        url = f"http://{self.endpoint}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None  # it has not read its files yet
            raise AssertionError(f"{arguments}: {error.read().decode()}") from error
        except OSError:
            assert self._process.poll() is None, self.log.read_text()
            return None  # it does not listen yet

    def query(self, expression):
        """The values that are numbers."""
        data = self.ask("query", query=expression)
        return [] if data is None else [sample for sample in data["result"] if sample["value"][1] != "NaN"]

    def firing(self):
        data = self.ask("alerts")
        return {} if data is None else {alert["labels"]["alertname"]: alert for alert in data["alerts"]
                                        if alert["state"] == "firing"}


class Files(unittest.TestCase):
    def test_promtool_takes_the_rules_and_their_tests(self):
        run(tool("promtool"), "check", "rules", "--lint-fatal", MONITORING / "alerts.yml")
        self.assertEqual(run(tool("promtool"), "test", "rules", *TESTS, cwd=MONITORING).count("SUCCESS"), len(TESTS))
        run(tool("promtool"), "check", "config", MONITORING / "prometheus.yml")

    def test_every_alert_has_a_test(self):
        tested = "".join((MONITORING / name).read_text() for name in TESTS)
        for name in alerts():
            self.assertIn(name, tested)

    def test_a_broken_rule_is_noticed(self):
        """A canary: the test above can fail."""
        with temporary_folder() as folder:
            for file in ("alerts.yml", *TESTS):
                shutil.copy(MONITORING / file, folder)
            rules = pathlib.Path(folder) / "alerts.yml"
            text = rules.read_text()
            for test, change in zip(TESTS, (("append_running_seconds > 5", "append_running_seconds > 500"),
                                            ("> 2 * 86400", "> 3 * 86400"))):
                self.assertIn(change[0], text)
                rules.write_text(text.replace(*change))
                done = subprocess.run([tool("promtool"), "test", "rules", test], cwd=folder, capture_output=True, text=True,
                                      check=False, timeout=60)
                self.assertNotEqual(done.returncode, 0, test)

    def test_the_page_explains_every_alert(self):
        page = PAGE.read_text()
        for name in alerts():
            self.assertIn(f"\n### {name}\n", page)
            self.assertIn(f"docs/monitoring.md#{name.lower()}\n", (MONITORING / "alerts.yml").read_text())
        self.assertEqual(set(re.findall(r"^### (Kilokv\w+)$", page, re.MULTILINE)), set(alerts()))


class Scraped(unittest.TestCase):
    """One server with TLS and logins, under load."""

    @classmethod
    def setUpClass(cls):
        folder = temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.server = GuardedServer(cls.folder, "--checkpoint-interval", "1s")
        cls.server.start()
        cls.addClassCleanup(cls.server.kill)
        _, cls.header = cls.server.add_user("prometheus", "--metrics")
        cls.start_load()
        cls.prometheus = Prometheus(
            cls.folder, f"""  - job_name: kilokv
    scheme: https
    tls_config: {{ca_file: {cls.server.authority}}}
    authorization: {{credentials_file: {cls.folder / 'prometheus.token'}}}
    static_configs: [{{targets: ["{cls.server.pages()}"]}}]
""", impatient=True)
        cls.addClassCleanup(cls.prometheus.stop)
        until(lambda: len(cls.prometheus.query('up{job="kilokv"} == 1')) == 1, "the first scrape", 60)

    @classmethod
    def start_load(cls):
        load = subprocess.Popen(cls.server.command("kilokv-bench", "run", "--duration", "600s", "--keys", "1000", "--rate", "2000",
                                                   "--batch-size", "16"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(load.wait)
        cls.addClassCleanup(load.kill)
        waiting = cls.server.start_transactions({"guards": [wait_for("gate", 1)], "then": [add("x", 1)],
                                                 "wait_timeout_ms": 600000})
        cls.addClassCleanup(waiting.communicate)
        cls.addClassCleanup(waiting.kill)
        cls.server.client("put", "k" * 2000, "1", codes=(3,))  # a key that is too long

    def metrics(self):
        request = urllib.request.Request(f"https://{self.server.pages()}/metrics", headers={"Authorization": self.header})
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.server.authority), timeout=30) as page:
            return page.read().decode()

    def test_promtool_takes_the_metrics(self):
        text = self.metrics()
        self.assertEqual(run(tool("promtool"), "check", "metrics", input=text), "")
        canary = subprocess.run([tool("promtool"), "check", "metrics"], input=text.replace("kilokv_batches_total", "kilokv_batches"),
                                capture_output=True, text=True, check=False, timeout=60)
        self.assertNotEqual(canary.returncode, 0, "this check can fail")

    def test_every_query_of_the_dashboard_finds_data(self):
        queries = dashboard_queries()
        self.assertGreater(len(queries), 50)
        for title, expression in queries:
            expression = expression.replace("$instance", ".*").replace("$__rate_interval", "10s")
            with self.subTest(title, expression=expression):
                until(lambda: self.prometheus.query(expression), "data", 60)

    def test_every_series_of_the_alerts_is_there(self):
        for name, expression in alerts().items():
            self.prometheus.ask("query", query=expression)  # it can be evaluated
            selectors = SELECTOR.findall(expression)
            self.assertTrue(selectors, name)
            for metric, labels in selectors:
                with self.subTest(name, selector=metric + labels):
                    until(lambda: self.prometheus.query(metric + labels), "a series", 60)

    def test_a_healthy_server_fires_nothing(self):
        until(lambda: "Canary" in self.prometheus.firing(), "the canary", 60)
        # A disk that is slow, or nearly full, is a matter of the machine.
        self.assertEqual(set(self.prometheus.firing()) - {"KilokvSyncSlow", "KilokvDiskNearlyFull"}, {"Canary"})

    def test_the_page_lists_what_the_server_shows(self):
        """The tables of docs/monitoring.md: | `name` | type | labels | what it is |"""
        listed = {}
        for name, kind, labels in re.findall(r"^\| `((?:kilokv|process)_\w+)` \| (\w+) \| (.*?) \|", PAGE.read_text(), re.MULTILINE):
            self.assertNotIn(name, listed)
            listed[name] = kind, frozenset(re.findall(r"`(\w+)`", labels))
        text = self.metrics()
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        labels = collections.defaultdict(set)
        for sample, inside in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
            family = sample if sample in kinds else re.sub(r"_(bucket|sum|count)$", "", sample)
            labels[family] |= set(re.findall(r'(\w+)="', inside)) - {"le"}
        self.assertEqual(listed, {name: (kind, frozenset(labels[name])) for name, kind in kinds.items()})
        for name, what in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE):
            self.assertFalse(what.endswith("."), name)
            for unit in ("seconds", "bytes"):
                if name.removesuffix("_total").endswith(unit):
                    self.assertIn(f"in {unit}", what, f"{name} has its unit in its help")

    def test_the_page_is_small(self):
        """It is bounded, because its labels are (docs/limits.md)."""
        self.assertLess(len(self.metrics()), 256 << 10)


class Alarmed(unittest.TestCase):
    def test_a_sync_that_hangs_fires_an_alert_and_so_does_the_end(self):
        with temporary_folder() as folder:
            server = Server(folder, environment={"KILOKV_FAIL_POINTS": "storage.append.before_sync=hang:20"})
            server.start()
            self.addCleanup(server.kill)
            prometheus = Prometheus(folder, f"""  - job_name: kilokv
    static_configs: [{{targets: ["{server.pages()}"]}}]
""")
            self.addCleanup(prometheus.stop)
            until(lambda: prometheus.query('up{job="kilokv"} == 1'), "the first scrape", 60)
            until(lambda: "Canary" in prometheus.firing(), "the canary", 60)
            self.assertEqual(set(prometheus.firing()), {"Canary"})
            load = subprocess.Popen(server.command("kilokv-bench", "run", "--duration", "600s", "--keys", "100"),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(load.wait)
            self.addCleanup(load.kill)
            until(lambda: "KilokvSyncHangs" in prometheus.firing(), "the alert", 60)
            alert = prometheus.firing()["KilokvSyncHangs"]
            self.assertEqual(alert["labels"]["severity"], "page")
            self.assertIn("waits for its disk", alert["annotations"]["summary"])
            self.assertEqual(prometheus.query("kilokv_ready")[0]["value"][1], "1")
            server.kill()
            until(lambda: prometheus.query('ALERTS{alertname="KilokvDown"}'), "the alert begins", 60)


if __name__ == "__main__":
    unittest.main()
