"""kilokv-engine-bench compare as a user runs it: every point verified, the document, the page, refusals."""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER  # noqa: E402

PROGRAM = os.path.join(os.environ["KILOKV_BIN_DIR"], "kilokv-engine-bench")
STRATEGIES = ["serial", "ordered", "prstm", "lock", "gpustm"]
SHARES = [0, 0.05, 1]
TINY = ["--keys", "300", "--batch", "256", "--duration", "1ms", "--repeats", "3", "--verify", "2", "--threads", "2,1",
        "--records-per-lock", "1,64", "--semantic-shares", "0,0.05,1", "--seed", "7"]

SMALL = ["--keys", "300", "--batch", "200", "--duration", "1ms", "--repeats", "2", "--verify", "1", "--threads", "2"]


def compare(*arguments):
    return subprocess.run([PROGRAM, "compare", *arguments], capture_output=True, text=True, timeout=240 * SLOWER, check=False)


def points_of(document, figure, workload, axis=None):
    return [point for panel in document["panels"]
            if (panel["figure"], panel["workload"]) == (figure, workload) and axis in (None, panel["axis"])
            for point in panel["points"]]


class EngineCompare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.json_path, cls.html_path = (os.path.join(cls.folder.name, name) for name in ["run.json", "run.html"])
        cls.done = compare(*TINY, "--json", cls.json_path, "--html", cls.html_path)
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stderr)
        with open(cls.json_path, encoding="utf-8") as file:
            cls.text = file.read()
        cls.document = json.loads(cls.text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_figure_has_its_graphs(self):
        graphs = {(panel["figure"], panel["workload"], panel["axis"], point["graph"])
                  for panel in self.document["panels"] for point in panel["points"]}
        expected = set()
        for workload in ["bank-semantic", "vacation"]:
            for figure, axis in [("7", "threads"), ("8", "records_per_lock"), ("9", "semantic_share")]:
                expected |= {(figure, workload, axis, graph) for graph in "ABCD"}
        expected |= {("10", "skiplist", "threads", graph) for graph in "AB"}
        expected |= {("11", "skiplist", "records_per_lock", graph) for graph in "AB"}
        for figure, workload in [("12", "kmeans"), ("13", "graph")]:
            expected |= {(figure, workload, "threads", "A"), (figure, workload, "records_per_lock", "B")}
        self.assertEqual(graphs, expected)

    def test_every_strategy_is_at_every_value(self):
        axes = {"threads": [1, 2], "records_per_lock": [1, 64], "semantic_share": SHARES}
        for panel in self.document["panels"]:
            for graph in {point["graph"] for point in panel["points"]}:
                met = [(point["x"], point["strategy"]) for point in panel["points"] if point["graph"] == graph]
                self.assertEqual(met, [(x, strategy) for x in axes[panel["axis"]] for strategy in STRATEGIES])
            for point in panel["points"]:
                self.assertEqual(point[panel["axis"]], point["x"])

    def test_settings_are_those_of_the_graphs(self):
        for panel in self.document["panels"]:
            for point in panel["points"]:
                paired = panel["workload"] in ["bank-semantic", "vacation"]
                order = ("sorted" if point["graph"] in "CD" else "unsorted") if paired else "no pairs"
                self.assertEqual(point["order"], order)
                self.assertEqual(point["read_only_share"], panel["read_only_share"])
                if panel["axis"] != "semantic_share":
                    self.assertEqual(point["semantic_share"], 1 if paired else 0)

    def test_every_point_is_verified_and_counted(self):
        for panel in self.document["panels"]:
            for point in panel["points"]:
                with self.subTest(figure=panel["figure"], workload=panel["workload"], point=point):
                    self.assertEqual(point["verified_transactions"], 2 * 256)
                    self.assertTrue(point["invariant"])
                    self.assertEqual(point["transactions"], 256 * point["batches"])
                    self.assertEqual(len(point["repeats"]), 3)
                    self.assertGreater(point["min"], 0)
                    self.assertEqual((point["min"], point["median"], point["max"]), tuple(sorted(point["repeats"])))
                    if point["committed"] > 0:
                        aborts = point["conflicts"] / point["committed"]
                        self.assertAlmostEqual(point["aborts_per_commit"], aborts, places=3)
                    self.assertEqual(point["serial_batches"], point["batches"] if point["strategy"] == "serial" else 0)
                    if point["strategy"] in ["prstm", "lock", "gpustm"]:
                        self.assertGreater(point["attempts"], 0)

    def test_semantic_transactions_wait_only_where_they_are(self):
        for point in points_of(self.document, "9", "bank-semantic"):
            waited = point["retried"] + point["postponed"]
            if point["strategy"] == "serial" or point["order"] == "sorted":
                continue
            self.assertEqual(waited > 0, point["semantic_share"] > 0, point)
            self.assertEqual(point["retried"] > 0, point["strategy"] == "gpustm" and point["semantic_share"] > 0)

    def test_read_only_graphs_write_less(self):
        writes = {}
        for panel in self.document["panels"]:
            for point in panel["points"]:
                if point["strategy"] == "serial" and panel["workload"] in ["bank-semantic", "vacation", "skiplist"]:
                    place = (panel["figure"], panel["workload"], point["x"], point["order"])
                    writes.setdefault(place, {})[point["read_only_share"]] = point["writes"] / point["batches"]
        for place, by_share in writes.items():
            self.assertLess(by_share[0.2], 0.95 * by_share[0], place)

    def test_graph_is_the_same_work_for_all(self):
        for point in points_of(self.document, "13", "graph"):
            self.assertEqual(point["transactions"], 3 * (300 * 10 // (3 * 256)) * 256)

    def test_the_run_is_described(self):
        self.assertTrue(self.text.startswith('{"format":"kilokv-engine-compare-2"'))
        self.assertEqual(self.document["figures"], "prstm")
        self.assertEqual((self.document["seed"], self.document["strategies"]), (7, STRATEGIES))
        self.assertIn("--seed 7", self.document["command"])
        self.assertRegex(self.document["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        for field in ["cpu", "cores", "compiler", "build_type", "commit"]:
            self.assertTrue(self.document["machine"][field], field)
        self.assertIn("referee", self.document["verified"])

    def point(self, ratio, strategy, order):
        (found,) = [point for point in points_of(self.document, ratio["figure"], ratio["workload"], ratio["axis"])
                    if (point["x"], point["strategy"], point["order"], point["read_only_share"])
                    == (ratio["x"], strategy, order, ratio["read_only_share"])]
        return found

    def test_ratios_follow_from_the_points(self):
        kinds = {"prstm/gpustm": 0, "unsorted/sorted": 0}
        for ratio in self.document["ratios"]:
            above = self.point(ratio, ratio["strategy"], ratio["order"])
            below = (self.point(ratio, "gpustm", ratio["order"]) if ratio["kind"] == "prstm/gpustm"
                     else self.point(ratio, ratio["strategy"], "sorted"))
            self.assertEqual(above["graph"], ratio["graph"])
            each = [a / b for a, b in zip(above["repeats"], below["repeats"])]
            self.assertAlmostEqual(ratio["ratio"], statistics.median(each), delta=1e-3 * statistics.median(each) + 1e-4)
            kinds[ratio["kind"]] += 1
        points = [point for panel in self.document["panels"] for point in panel["points"]]
        self.assertEqual(kinds["prstm/gpustm"], sum(point["strategy"] == "prstm" for point in points))
        self.assertEqual(kinds["unsorted/sorted"], sum(point["order"] == "unsorted" for point in points))

    def test_claims_follow_from_the_ratios(self):
        claims = self.document["claims"]
        self.assertEqual([sum(claim["limit"] == limit for claim in claims) for limit in [1, 0.5, 0.85]], [24, 4, 24])
        for claim in claims:
            beyond = claim["worst"] >= claim["limit"] if claim["at_least"] else claim["worst"] <= claim["limit"]
            self.assertEqual(claim["holds"], beyond)
            if claim["limit"] == 0.5:
                none, few = (self.point(dict(claim, x=x), "gpustm", "unsorted")["median"] for x in SHARES[:2])
                self.assertAlmostEqual(claim["worst"], few / none, places=3)
                continue
            kind = "prstm/gpustm" if claim["limit"] == 1 else "unsorted/sorted"
            places = ["figure", "graph", "workload", "axis", "strategy", "order"]
            ratios = [ratio["ratio"] for ratio in self.document["ratios"] if ratio["semantic_share"] >= 0.05
                      and ratio["kind"] == kind and all(ratio[place] == claim[place] for place in places)]
            self.assertEqual((claim["worst"], len(ratios)), (min(ratios), 2))
            self.assertAlmostEqual(claim["median"], statistics.median(ratios), places=3)

    def test_the_text_closes_with_the_claims(self):
        tables, claims = self.done.stdout.split("Claims, where 5% or more")
        self.assertEqual(tables.count("figure "), 32)
        self.assertEqual(len(re.findall(r"(?m)^  (yes|NO ) figure", claims)), len(self.document["claims"]))
        self.assertEqual(self.done.stderr.count("aborts a commit"),
                         sum(len(panel["points"]) for panel in self.document["panels"]))

    def test_the_page_needs_nothing_else(self):
        with open(self.html_path, encoding="utf-8") as file:
            page = file.read()
        self.assertIn("Chart.js v", page)
        self.assertIn("Permission is hereby granted", page)
        (held,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
        self.assertEqual(json.loads(held), self.document)
        self.assertNotRegex(page, r"<script[^>]*\ssrc=|@import|url\(")
        self.assertEqual(re.findall(r'<(?:link|img|iframe)[^>]*', page), ['<link rel="icon" href="data:,"'])

    def test_a_page_is_made_of_a_document(self):
        later = os.path.join(self.folder.name, "later.html")
        done = compare("--from", self.json_path, "--html", later)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        with open(self.html_path, encoding="utf-8") as first, open(later, encoding="utf-8") as second:
            self.assertEqual(first.read(), second.read())

    def test_what_is_in_the_document_cannot_leave_its_element(self):
        path, later = (os.path.join(self.folder.name, name) for name in ["hostile.json", "hostile.html"])
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text.replace("--seed 7", "</script><script>/*library*/"))
        self.assertEqual(compare("--from", path, "--html", later).returncode, 0)
        with open(later, encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page.count("</script>"), 3)
        (held,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
        self.assertIn("</script><script>/*library*/", json.loads(held)["command"])

    def test_the_document_on_the_standard_output(self):
        few = ["--workloads", "kmeans", "--strategies", "serial,prstm"]
        done = compare(*TINY, *few, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["strategies"], ["serial", "prstm"])
        self.assertIn("figure 12A", done.stderr)
        self.assertIn("Claims, where", done.stderr)
        done = compare("--from", self.json_path, "--html", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.html_path, encoding="utf-8") as file:
            self.assertEqual(done.stdout, file.read())
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "compare", "--from", self.json_path, "--html", "-"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to the standard output", done.stderr)

    def test_a_choice_is_measured_alone(self):
        path = os.path.join(self.folder.name, "few.json")
        done = compare(*TINY, "--workloads", "kmeans", "--strategies", "serial,auto", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual([(panel["figure"], panel["workload"]) for panel in document["panels"]], [("12", "kmeans")] * 2)
        self.assertEqual({point["strategy"] for point in points_of(document, "12", "kmeans")}, {"serial", "auto"})
        self.assertEqual((document["ratios"], document["claims"]), ([], []))
        self.assertIn("none: the workloads or strategies that the claims are about are missing", done.stdout)

    def figures(self, name, *arguments):
        small = SMALL[2:] if name == "local" else SMALL  # without --keys
        done = compare("--figures", name, *small, "--json", "-", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["figures"], name)
        for panel in document["panels"]:
            for point in panel["points"]:
                self.assertEqual((point["verified_transactions"], bool(point["invariant"])), (200, True), point)
                self.assertGreater(point["min"], 0)
        return document, done.stderr

    def ratios(self, document, kind, strategy, other):
        """Each ratio of this kind is that of the strategy to the other, which is a function of the points of a value."""
        met = [ratio for ratio in document["ratios"] if ratio["kind"] == kind]
        for ratio in met:
            (panel,) = [panel for panel in document["panels"] if all(panel[field] == ratio[field] for field in
                        ["figure", "workload", "update_share", "operations"])]
            points = [point for point in panel["points"] if point["x"] == ratio["x"]]
            (above,) = [point for point in points if (point["strategy"], point["graph"]) == (strategy, ratio["graph"])]
            below = other(above, points)
            each = [a / b for a, b in zip(above["repeats"], below["repeats"])]
            self.assertAlmostEqual(ratio["ratio"], statistics.median(each), delta=1e-3 * statistics.median(each) + 1e-4)
        return met

    def claim(self, document, **fields):
        return [claim for claim in document["claims"] if all(claim[name] == value for name, value in fields.items())]

    def test_figures_of_kilo(self):
        document, _ = self.figures("kilo", "--concurrency-limits", "0,2", "--strategies", "serial,lock,kilo")
        names = ["ht-h", "ht-l", "atm", "cloth", "barnes-hut", "cuda-cuts", "apriori"]
        self.assertEqual([panel["figure"] for panel in document["panels"]], ["6"] + ["7, 8"] * 7)
        self.assertEqual([point["workload"] for point in document["panels"][0]["points"]],
                         [name for name in names for _ in range(3)])
        for panel, name in zip(document["panels"][1:], names):
            self.assertEqual([(point["workload"], point["at"], point["strategy"]) for point in panel["points"]],
                             [(name, at, strategy) for at in ["adapts", "2"] for strategy in ["serial", "kilo"]])
        of_lock = lambda above, points: next(point for point in points if point["strategy"] == "lock")
        ratios = self.ratios(document, "kilo/lock", "kilo", of_lock)
        self.assertEqual(len(ratios), 7)
        (claim,) = self.claim(document, strategy="kilo", on_average=True, limit=1)
        self.assertAlmostEqual(claim["mean"], statistics.geometric_mean(ratio["ratio"] for ratio in ratios), places=3)
        self.assertEqual(claim["holds"], claim["mean"] >= 1)
        self.assertIn(claim["worst_at_name"], names)

    def test_figures_of_local(self):
        document, _ = self.figures("local", "--sizes", "4,2", "--strategies", "serial,lock")
        self.assertEqual([(panel["figure"], panel["workload"]) for panel in document["panels"]],
                         [("3", "local-ht"), ("4", "local-km"), ("5", "local-ga")])
        for panel in document["panels"]:
            self.assertEqual([point["keys"] for point in panel["points"]], [2, 2, 4, 4])
            self.assertFalse(any("times" in point for point in panel["points"]))

    def test_where_the_time_of_local_goes(self):
        document, tables = self.figures("local", "--sizes", "4", "--strategies", "serial,local")
        for panel, figure in zip(document["panels"], "345"):
            serial, local = panel["points"]
            self.assertNotIn("times", serial)
            times = dict(local["times"])
            serialized = times.pop("serialized_attempts")
            self.assertAlmostEqual(sum(times.values()), 100, places=2)
            self.assertTrue(serialized > 0 or times["in_group"] + times["in_block"] == 0, times)
            self.assertGreater(times["running"], 0)
            self.assertIn(f"percent of its threads' time: figure {figure}b, {panel['workload']}", tables)

    def test_sweep_of_contention(self):
        document, text = self.figures("contention", "--thetas", "10,0", "--update-shares", "0,1", "--operations", "1,3",
                                      "--strategies", "auto,serial,prstm")
        sweep = [panel for panel in document["panels"] if panel["figure"] == "contention"]
        self.assertEqual([(panel["operations"], panel["update_share"]) for panel in sweep],
                         [(1, 0), (1, 1), (3, 0), (3, 1)])
        for panel in sweep:
            self.assertEqual([point["theta"] for point in panel["points"]], [0, 0, 0, 10, 10, 10])
            for point in panel["points"]:
                self.assertEqual(point["writes"] > 0, panel["update_share"] > 0)
                if panel["update_share"] == 1:  # two fields of the row of each operation
                    self.assertEqual(point["writes"], 2 * panel["operations"] * point["transactions"])
        # Who auto is set against has had as much before it is measured.
        self.assertEqual({point["warm_up_transactions"] for panel in document["panels"] for point in panel["points"]},
                         {32 * 200})
        best = lambda above, points: max((point for point in points if point["strategy"] != "auto"
                                          and point["graph"] == above["graph"]), key=lambda point: point["median"])
        self.assertEqual(len(self.ratios(document, "auto/best", "auto", best)), 4 * 2 + 4)
        hot = [panel for panel in document["panels"] if panel["figure"] == "hot account"]
        self.assertEqual([(point["workload"], point["order"]) for panel in hot for point in panel["points"][::3]],
                         [("bank", "uniform"), ("hot", "hot"), ("deposits", "uniform"), ("hot-deposits", "hot")])
        limits = {claim["workload"]: claim["limit"] for claim in self.claim(document, order="hot", strategy="auto")
                  if claim["limit"] != 0.9 or "hot" in claim["claim"]}
        self.assertEqual(limits, {"bank": 0.5, "deposits": 0.9})
        self.assertEqual(len(self.claim(document, strategy="auto")), 4 + 4 + 2)
        self.assertRegex(text, r"contention, ycsb-f, 100% updates, 3 operation\(s\)\n +theta")
        self.assertRegex(text, r"\d\*")  # the best

    def test_every_strategy_on_every_workload(self):
        document, text = self.figures("workloads", "--strategies", "auto,serial", "--keys", "256")
        (panel,) = document["panels"]
        names = [point["workload"] for point in panel["points"][::2]]
        self.assertGreater(len(names), 25)
        self.assertNotIn("ycsb-e", names)
        for name in names:
            self.assertRegex(text, rf"(?m)^ +{name} +\d")
        (claim,) = document["claims"]
        self.assertEqual((claim["strategy"], claim["limit"]), ("auto", 0.9))

    def test_wrong_usage_is_named(self):
        absent = os.path.join(self.folder.name, "no-such-folder", "file")
        for arguments, named in [(["--strategys", "serial"], "--strategys"), (["--strategies", "serial,fast"], "fast"),
                                 (["--strategies", ""], "--strategies"), (["--workloads", "bank"], "--workloads"),
                                 (["--threads", "1,0"], "--threads"), (["--threads", "2,"], "--threads"),
                                 (["--figures", "all"], "--figures"), (["--thetas", "11"], "0 to 10"),
                                 (["--thetas", "1"], "--thetas belongs to --figures contention, not to prstm"),
                                 (["--figures", "kilo", "--semantic-shares", "1"], "--figures prstm, not to kilo"),
                                 (["--figures", "local", "--keys", "8"], "--keys does not belong to --figures local"),
                                 (["--figures", "local", "--workloads", "bank"], "local-ht, local-km, local-ga"),
                                 (["--records-per-lock", "1;2"], "--records-per-lock"),
                                 (["--semantic-shares", "0,5"], "--semantic-shares"), (["--keys", "1"], "--keys"),
                                 (["--preset", "large"], "--preset"), (["--json", absent], "--json"),
                                 (["--html", absent], "--html"), (["--json="], "--json"),
                                 (["--from", self.json_path], "--html"),
                                 (["--json", "-", "--html", "-"], "--html"),
                                 (["--strategies", "prstm,lock,prstm"], "strategies is prstm; the limit is each once"),
                                 (["--workloads", "graph,graph"], "workloads is graph"),
                                 (["--threads", "2,1,2"], "threads is 2; the limit is each once (--threads)"),
                                 (["--records-per-lock", "16,16"], "--records-per-lock"),
                                 (["--semantic-shares", "0.5,.5"], "semantic-shares is .5; the limit is each once"),
                                 *((["--from", "a", "--html", "b", flag, value], f"--from takes no {flag}: ")
                                   for flag, value in [("--json", "c"), ("--threads", "2"), ("--preset", "small"),
                                                       ("--seed", "1"), ("--verify", "0")])]:
            done = compare(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(named, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_what_is_no_document_is_refused(self):
        page = os.path.join(self.folder.name, "page.html")
        for path, named in [(self.html_path, "not a document"), (os.path.join(self.folder.name, "none"), "cannot read")]:
            done = compare("--from", path, "--html", page)
            self.assertEqual(done.returncode, 1)
            self.assertIn(named, done.stderr)
            self.assertFalse(os.path.exists(page))

    def test_help_names_every_default(self):
        done = compare("--help")
        self.assertEqual(done.returncode, 0)
        for flag in ["--preset", "--strategies", "--workloads", "--threads", "--repeats", "--duration", "--json", "--html"]:
            self.assertIn(flag, done.stdout)
        for figures in ["prstm", "kilo", "local", "contention", "workloads"]:
            self.assertRegex(done.stdout, rf"--figures .*\b{figures}\b")


if __name__ == "__main__":
    unittest.main()
