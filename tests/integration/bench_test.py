#!/usr/bin/env python3
"""Short runs of kilokv-bench against a real server: every workload, both loops, both encodings, histories, sweeps."""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, JUDGE, SANITIZED, Server, leaves_out  # noqa: E402

BRIEF = ["--warmup", "100ms", "--keys", "1000"]
SHORT = [*BRIEF, "--duration", "500ms", "--batch-size", "64"]
FIELDS = {"committed", "committed_per_s", "guard_failed", "wait_expired", "errors", "unknown", "latency_us", "config",
          "due", "sent", "not_sent", "refusals"}


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def servers_of(pid):
    """The processes that this process has started, and that run."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in children.split()]


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kilokv-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = Server(folder.name)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)

    def bench(self, *words, code=0):
        command = [str(BIN / "kilokv-bench"), *words, "--endpoint", self.server.endpoint, "--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def check(self, report):
        self.assertLessEqual(FIELDS, set(report))
        self.assertLessEqual({"p50", "p90", "p99", "p999", "max"}, set(report["latency_us"]))
        self.assertGreater(report["committed"], 0)
        self.assertEqual((report["errors"], report["unknown"]), (0, 0))
        self.assertTrue(report["verified"]["holds"])

    def test_the_endpoint_of_the_environment(self):
        def run(variable, *words):
            done = subprocess.run([str(BIN / "kilokv-bench"), *words], capture_output=True, text=True, timeout=120,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "KILOKV_ENDPOINT": variable}, check=False)
            return done.returncode, done.stdout + done.stderr
        self.assertEqual(run(self.server.endpoint, "run", *SHORT)[0], 0)
        self.assertEqual(run("127.0.0.1:1", "run", *SHORT, "--endpoint", self.server.endpoint)[0], 0)
        code, text = run("wrong", "run", *SHORT)
        self.assertEqual(code, 2)
        self.assertIn('the environment variable KILOKV_ENDPOINT: "wrong" is not HOST:PORT', text)
        code, text = run("127.0.0.1:1", "run", *SHORT)
        self.assertEqual(code, 4)
        self.assertIn("nothing listens at 127.0.0.1:1: the connection is refused\n  hint: start kilokvd there", text)
        self.assertEqual(run("", "help", "run"), run("", "run", "--help"))
        self.assertIn("KILOKV_ENDPOINT", run("", "help", "sweep")[1])

    def test_a_server_that_comes_later_is_found(self):
        self.server.kill()
        command = self.server.command("kilokv-bench", "run", *SHORT, "--wait")
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as early:
            with self.assertRaises(subprocess.TimeoutExpired):
                early.wait(timeout=1)  # refused a few times
            self.server.start()
            text, _ = early.communicate(timeout=120)
            self.assertEqual(early.returncode, 0, text)

    def test_bank_closed_loop(self):
        self.check(self.bench("run", *SHORT))

    def test_bank_rows(self):
        self.check(self.bench("run", *SHORT, "--encoding", "rows"))

    def test_bank_open_loop(self):
        report = self.bench("run", *BRIEF, "--rate", "5000", "--duration", "1s", "--batch-size", "10")
        self.check(report)
        whole = report["whole_run"]
        due = whole["committed"] + whole["guard_failed"] + report["not_sent"]
        self.assertAlmostEqual(due / 5500, 1, delta=0.01)  # a slow machine is late, but what was due is known
        self.assertEqual(report["due"], due)
        self.assertEqual(report["sent"], whole["committed"] + whole["guard_failed"])
        self.assertLess(report["in_flight_full_share"], 1)

    def test_refusals_are_counted_and_their_delays_are_honoured(self):
        self.server.kill()
        self.server = Server(self.folder, "--queue-transactions-max", "512")
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)
        self.check(self.bench("run", *SHORT, "--in-flight", "1"))  # loads the accounts
        before = self.refused()
        report = self.bench("run", *SHORT, "--no-load", "--in-flight", "64", "--rate", "10000000")
        self.check(report)
        refusals = report["refusals"]
        self.assertGreater(refusals["count"], 0)
        self.assertEqual(refusals["count"], self.refused() - before)
        self.assertEqual(refusals["count"], report["requests_sent_again"])
        self.assertEqual(refusals["early"], 0)
        self.assertGreaterEqual(refusals["asked_seconds"], 0.01 * refusals["count"] * 0.999)
        self.assertGreaterEqual(refusals["waited_seconds"], refusals["asked_seconds"])
        self.assertEqual(report["due"], report["sent"] + report["not_sent"])
        self.assertEqual(report["sent"], 64 * report["whole_run"]["requests"])
        # The rate was not reached, because all that may be in flight was. How often that is depends on the machine.
        self.assertGreater(report["not_sent"], 0)
        self.assertGreater(report["in_flight_full_share"], 0)

    def refused(self):
        return json.loads(self.server.client("--output", "json", "status"))["refused"]

    def test_bank_unary(self):
        self.check(self.bench("run", *BRIEF, "--duration", "500ms", "--unary", "--in-flight", "16"))

    def test_bank_zipf_two_connections(self):
        self.check(self.bench("run", *SHORT, "--distribution", "zipf:0.99", "--connections", "2"))

    def test_hot(self):
        self.check(self.bench("run", *SHORT, "--workload", "hot"))

    def test_hot_deposits(self):
        self.check(self.bench("run", *SHORT, "--workload", "hot-deposits"))

    def test_bank_semantic_in_batches(self):
        report = self.bench("run", *SHORT, "--workload", "bank-semantic")
        self.check(report)
        self.assertEqual(report["wait_expired"], 0)

    def test_bank_semantic_across_requests(self):
        report = self.bench("run", *BRIEF, "--duration", "500ms", "--workload", "bank-semantic", "--batch-size", "1",
                            "--in-flight", "16")
        self.check(report)
        self.assertEqual(report["whole_run"]["wait_expired"], 0)  # no withdrawal is left without its deposit at the end

    def test_ycsb(self):
        self.check(self.bench("run", *SHORT, "--workload", "ycsb-a", "--value-size", "1KiB"))

    def test_ycsb_inserts_and_scans(self):
        for workload in ("ycsb-d", "ycsb-e"):
            self.check(self.bench("run", *BRIEF, "--duration", "500ms", "--workload", workload, "--connections", "2",
                                  "--batch-size", "32"))

    def test_a_second_run_finds_the_records(self):
        self.check(self.bench("run", *SHORT))
        report = self.bench("run", *SHORT)
        self.check(report)
        self.assertEqual((report["load"]["written"], report["load"]["there_already"]), (0, 1000))

    def test_sweep(self):
        reports = self.bench("sweep", *BRIEF, "--duration", "500ms", "--batch-size", "1,64", "--connections", "1,2")
        self.assertEqual(len(reports), 4)
        for report in reports:
            self.check(report)

    def test_history_is_judged(self):
        history, final = self.folder / "history.jsonl", self.folder / "final.jsonl"
        self.check(self.bench("run", *SHORT, "--history", str(history), "--rate", "20000"))
        self.server.scan_to(final)
        judged = subprocess.run([sys.executable, str(JUDGE), str(history), "--final-state", str(final)],
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)

    def test_a_foreign_change_is_found(self):
        self.check(self.bench("run", *SHORT))
        subprocess.run([str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "add", "acct000000000007", "1"],
                       check=True, capture_output=True, stdin=subprocess.DEVNULL)
        self.assertIn("expected 1000000, got 1000001", self.bench("run", *SHORT, code=5))

    def test_a_foreign_change_during_the_run_is_found(self):
        command = [str(BIN / "kilokv-bench"), "run", *BRIEF, "--endpoint", self.server.endpoint, "--duration", "2s",
                   "--json", "-"]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.assertIn("loaded", running.stderr.readline())
        running.stderr.readline()  # a progress line: it drives load
        subprocess.run([str(BIN / "kilokv"), "--endpoint", self.server.endpoint, "put", "acct000000000007", "123456"],
                       check=True, capture_output=True, stdin=subprocess.DEVNULL)
        out, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, errors)
        self.assertIn("INVARIANT VIOLATED", errors)
        self.assertFalse(json.loads(out)["verified"]["holds"])

    def test_all_workloads_on_one_server(self):
        words = [*BRIEF, "--duration", "300ms", "--batch-size", "64", "--workload",
                 "bank,deposits,hot,hot-deposits,bank-semantic,atm,kmeans,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f"]
        for _ in range(2):
            reports = self.bench("sweep", *words)
            self.assertEqual(len(reports), 13)
            for report in reports:
                self.check(report)

    def test_a_sweep_that_ends_early_reports_what_it_has(self):
        reports = self.bench("sweep", "--warmup", "100ms", "--duration", "300ms", "--keys", "2000,1000", code=5)
        self.assertEqual([report["config"]["keys"] for report in reports], [2000])

    def start(self, *words):
        command = [str(BIN / "kilokv-bench"), *words, "--endpoint", self.server.endpoint, "--json", "-"]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def end_early(self, which, *words):
        """Starts an hour of load, ends it by the signal in its measured part; returns the report."""
        running = self.start("run", *BRIEF, "--duration", "1h", *words)
        self.assertIn("loaded", running.stderr.readline())
        while "(warm-up)" in running.stderr.readline():
            pass
        running.send_signal(which)
        out, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 128 + which, errors)
        self.assertIn("ending early: waits for the last answers and checks the state", errors)
        report = json.loads(out)
        self.check(report)
        self.assertEqual(report["interrupted_by"], which)
        self.assertGreater(report["measured_seconds"], 0.1)
        self.assertLess(report["measured_seconds"], 60)
        self.assertAlmostEqual(report["committed"] / report["measured_seconds"] / report["committed_per_s"], 1, 2)
        return report

    def test_an_end_by_signal_is_checked_and_reported(self):
        self.end_early(signal.SIGINT, "--batch-size", "64")
        self.end_early(signal.SIGTERM, "--unary")
        report = self.end_early(signal.SIGINT, "--rate", "5000", "--batch-size", "10")
        self.assertLess(report["not_sent"], 5000 * 60)  # what was due until the end, not in the hour after it
        report = self.end_early(signal.SIGINT, "--workload", "bank-semantic", "--batch-size", "1", "--in-flight", "16")
        self.assertEqual(report["whole_run"]["wait_expired"], 0)

    def test_an_end_by_signal_between_two_requests_that_are_far_apart(self):
        for words in (["--batch-size", "1"], ["--unary", "--in-flight", "1"]):
            running = self.start("run", *BRIEF, "--duration", "1h", "--rate", "0.001", *words)
            self.assertIn("loaded", running.stderr.readline())
            running.stderr.readline()
            running.send_signal(signal.SIGINT)
            out, errors = running.communicate(timeout=30)
            self.assertEqual(running.returncode, 130, errors)
            self.assertTrue(json.loads(out)["verified"]["holds"])

    def test_a_sweep_that_is_ended_reports_what_it_has(self):
        running = self.start("sweep", *BRIEF, "--duration", "2s", "--batch-size", "64,32,16,8", "--connections", "1,2")
        for _ in range(2):
            while "loaded" not in running.stderr.readline():
                pass
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, errors)
        reports = json.loads(out)
        self.assertIn(len(reports), (1, 2))  # the second one was loading, or had begun
        self.assertEqual([report["interrupted_by"] for report in reports], [None, 2][:len(reports)])

    def test_a_second_signal_ends_at_once(self):
        # ThreadSanitizer calls a handler only when the thread calls the system through it, and gRPC's threads do not.
        if "thread" in SANITIZED and leaves_out("a second signal while no answer comes"):
            return
        running = self.start("run", *BRIEF, "--duration", "1h", "--batch-size", "64")
        self.assertIn("loaded", running.stderr.readline())
        running.stderr.readline()
        os.kill(self.server.pid, signal.SIGSTOP)  # no answer comes, so the first signal cannot end the run
        try:
            running.send_signal(signal.SIGINT)
            while "ending early" not in running.stderr.readline():
                pass
            running.send_signal(signal.SIGINT)
            out, errors = running.communicate(timeout=30)
        finally:
            os.kill(self.server.pid, signal.SIGCONT)
        self.assertEqual((running.returncode, out), (130, ""))
        self.assertIn("no report, and nothing was checked", errors)

    def test_a_check_that_cannot_run_is_said(self):
        running = self.start("run", *BRIEF, "--duration", "1h", "--batch-size", "64", "--give-up-after", "2s")
        self.assertIn("loaded", running.stderr.readline())
        running.stderr.readline()
        self.server.kill()
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, errors)
        self.assertIn("the check did not run", errors)
        self.assertIsNone(json.loads(out)["verified"]["holds"])

    def test_a_history_that_is_not_whole_is_told_although_the_check_cannot_run(self):
        running = self.start("run", *BRIEF, "--duration", "1h", "--batch-size", "64", "--give-up-after", "2s",
                             "--history", "/dev/full")
        self.assertIn("loaded", running.stderr.readline())
        running.stderr.readline()
        self.server.kill()
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, errors)
        self.assertIn("could not write all of --history", errors)
        self.assertIn("the check did not run", errors)
        self.assertIsNone(json.loads(out)["verified"]["holds"])

    def test_flags_that_mean_nothing_are_refused(self):
        for words, problem in ((["--value-size", "10"], "--value-size means nothing for --workload bank; it is for ycsb"),
                               (["--unary", "--batch-size", "2"], "--batch-size means nothing with --unary")):
            self.assertIn(problem, self.bench("run", *words, code=2))

    def test_csv_has_a_row_for_each_run(self):
        path = self.folder / "report.csv"
        reports = self.bench("sweep", *BRIEF, "--duration", "300ms", "--batch-size", "1,64", "--csv", str(path))
        rows = read_csv(path.read_text())
        self.assertEqual([row["batch_size"] for row in rows], ["1", "64"])
        for row, report in zip(rows, reports):
            self.assertEqual(int(row["committed"]), report["committed"])
            self.assertEqual(int(row["p99_us"]), report["latency_us"]["p99"])
            self.assertEqual(row["holds"], "true")
            self.assertEqual(row["warnings"].split(), [warning["code"] for warning in report["warnings"]])

    def test_what_the_processors_did_is_told(self):
        cpu = self.bench("run", *SHORT)["cpu"]
        self.assertEqual(cpu["cores"], os.cpu_count())
        self.assertGreater(cpu["server_machine_share"], 0)  # the server of this test is found by its port
        self.assertGreater(cpu["client_machine_share"], 0)
        total = sum(cpu[name] for name in ("client_machine_share", "server_machine_share", "others_share", "steal_share",
                                           "idle_share"))
        self.assertLess(total, 1.2)  # the times of the system have steps of 10 ms

    def test_an_open_loop_that_is_full_warns(self):
        for rate in ("10000000", "100"):
            report = self.bench("run", *SHORT, "--rate", rate, "--in-flight", "4")
            is_full = report["in_flight_full_share"] >= 0.9  # how full it is depends on the machine
            self.assertEqual("in_flight" in [warning["code"] for warning in report["warnings"]], is_full)
        self.assertFalse(is_full)

    def test_reset_takes_what_another_run_left(self):
        self.check(self.bench("run", "--warmup", "0", "--duration", "200ms", "--keys", "3000", "--batch-size", "64"))
        self.server.client("add", "acct000000000007", "1")
        self.server.client("put", "acct", "another key")
        self.server.client("put", "acctx", "another key")
        self.assertIn("Use the --keys and options", self.bench("run", *SHORT, code=5))
        report = self.bench("run", *SHORT, "--reset")
        self.check(report)
        self.assertEqual((report["load"]["written"], report["load"]["there_already"]), (1000, 0))
        self.assertEqual(len(self.server.pairs()), 1002)
        self.assertEqual(self.server.client("get", "acctx").strip(), "another key")
        self.assertIn("leave one out", self.bench("run", *SHORT, "--reset", "--no-load", code=2))

    def compare(self, *words, code=0):
        command = [str(BIN / "kilokv-bench"), "compare", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_compare_reports(self):
        before, after, other = (self.folder / name for name in ("a.json", "b.json", "c.json"))
        report = self.bench("run", *SHORT)
        before.write_text(json.dumps(report))
        self.assertIn("the same", self.compare(before, before))
        report["committed_per_s"] /= 2
        report["commit"] = "another"
        after.write_text(json.dumps(report))
        text = self.compare(before, after, code=1)
        self.assertIn("worse in committed/s", text)
        self.assertIn("commit of kilokv-bench differs", text)
        self.assertIn("better in committed/s", self.compare(after, before))
        self.assertIn("the same", self.compare(before, after, "--threshold", "1.5"))
        found = json.loads(self.compare(before, after, "--json", "-", code=1))
        self.assertAlmostEqual(found["points"][0]["committed_per_s"]["ratio"], 0.5)
        other.write_text("[]")
        self.assertIn("is no JSON report", self.compare(before, other, code=2))
        self.assertIn("cannot read", self.compare(before, self.folder / "none.json", code=5))

    def test_tune_on_a_given_server(self):
        # A fast server is not needed, and a machine of tests is busy: what is recommended does not matter here.
        tuned = self.tune("--endpoint", self.server.endpoint, "--batch-size", "16,1,64", "--csv", str(self.folder / "t.csv"))
        self.assertEqual(tuned["varied"], "--batch-size")
        self.assertFalse(tuned["own_server"])
        self.assertEqual([one["size"] for one in tuned["sizes"]], [1, 16, 64])
        self.assertEqual(tuned["rounds"], 3)
        sizes = [run["config"]["batch_size"] for run in tuned["runs"]]
        rounds = [sizes[i:i + 3] for i in range(0, 9, 3)]
        for one in rounds:  # interleaved: each size once in each round
            self.assertEqual(sorted(one), [1, 16, 64])
        self.assertGreater(len(set(map(tuple, rounds))), 1)
        for run in tuned["runs"]:
            self.check(run)
        self.assertEqual([run["load"]["written"] for run in tuned["runs"]], [1000] + [0] * 8)
        self.assertEqual(len(read_csv((self.folder / "t.csv").read_text())), 9)

    def tune(self, *words, codes=(0, 1)):
        command = [str(BIN / "kilokv-bench"), "tune", *BRIEF, "--duration", "200ms", "--repeats", "3", "--json", "-", *words]
        environment = {name: value for name, value in os.environ.items() if name != "KILOKV_ENDPOINT"}
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240,
                              env={**environment, "TMPDIR": str(self.folder)}, check=False)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertIn("takes about", done.stderr)
        tuned = json.loads(done.stdout)
        self.assertEqual(done.returncode == 0, tuned["recommended"] is not None)
        return tuned

    def left_folders(self):
        return [path.name for path in self.folder.iterdir() if path.name.startswith("kilokv-tune")]

    def test_tune_on_its_own_server(self):
        tuned = self.tune("--batch-size", "1,64")
        self.assertTrue(tuned["own_server"])
        for run in tuned["runs"]:
            self.check(run)
        self.assertEqual(self.left_folders(), [])
        self.assertIn("records", self.server.client("status"))  # the other server goes on

    def test_tune_varies_the_limit_of_its_own_server(self):
        tuned = self.tune("--batch-max-transactions", "8,512", "--batch-size", "16")
        self.assertEqual(tuned["varied"], "--batch-max-transactions")
        self.assertEqual([one["size"] for one in tuned["sizes"]], [8, 512])
        for run in tuned["runs"]:
            self.check(run)
            self.assertEqual(run["config"]["batch_size"], 16)
        self.assertEqual(self.left_folders(), [])

    def test_tune_that_no_size_satisfies(self):
        command = [str(BIN / "kilokv-bench"), "tune", *BRIEF, "--duration", "200ms", "--repeats", "3", "--batch-size", "1,64",
                   "--p99-goal", "1us", "--endpoint", self.server.endpoint]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, "meets the goal of a p99 of 1 us: the lowest|too busy to recommend")

    def start_tune(self, *words):
        command = [str(BIN / "kilokv-bench"), "tune", *BRIEF, "--json", "-", *words]
        environment = {name: value for name, value in os.environ.items() if name != "KILOKV_ENDPOINT"}
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**environment, "TMPDIR": str(self.folder)}, start_new_session=True)
        for part in (running.stderr.close, running.stdout.close, running.wait, running.kill):
            self.addCleanup(part)
        return running

    def test_tune_ends_its_server_and_removes_its_folder_after_a_signal(self):
        running = self.start_tune("--batch-size", "1,64", "--duration", "30s")
        while "loaded" not in running.stderr.readline():
            pass
        running.stderr.readline()  # a progress line of the first run
        own = servers_of(running.pid)
        self.assertEqual(len(own), 1)
        self.assertEqual(len(self.left_folders()), 1)
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
        out, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, errors)
        tuned = json.loads(out)
        self.assertEqual((tuned["interrupted_by"], tuned["rounds"], tuned["recommended"]), (2, 0, None))
        self.assertTrue(tuned["runs"][0]["verified"]["holds"])  # so the server was still there
        self.assertEqual(self.left_folders(), [])
        self.assertFalse(pathlib.Path(f"/proc/{own[0]}").exists())

    def test_tune_removes_its_folder_after_an_error(self):
        running = self.start_tune("--batch-size", "1,64", "--duration", "30s", "--give-up-after", "1s")
        while "loaded" not in running.stderr.readline():
            pass
        os.kill(servers_of(running.pid)[0], signal.SIGKILL)
        _, errors = running.communicate(timeout=120)
        self.assertNotEqual(running.returncode, 0, errors)
        self.assertEqual(self.left_folders(), [])
        self.assertIn("records", self.server.client("status"))  # the other server goes on

    def test_tune_whose_time_is_over(self):
        tuned = self.tune("--batch-size", "1,64", "--time-limit", "1ms", codes=(1,))
        self.assertTrue(tuned["out_of_time"])
        self.assertEqual(len(tuned["runs"]), 1)
        self.assertIn("0 complete rounds, and 3 are needed", tuned["sentences"][0])

    def test_tune_without_a_server(self):
        command = [str(BIN / "kilokv-bench"), "tune", "--server", "no/such/kilokvd"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("--server: cannot run no/such/kilokvd", done.stderr)

    def test_usage_and_no_server(self):
        self.assertIn("--batch-size", self.bench("run", "--batch-size", "0", code=2))
        command = [str(BIN / "kilokv-bench"), "run", "--endpoint", "127.0.0.1:1", "--give-up-after", "1s"]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(b"start kilokvd there, or check --endpoint", done.stderr)

    def test_command_lines_that_are_wrong(self):
        for words, code, problem in ((["foo"], 2, 'kilokv-bench: unknown command "foo"; known here: run sweep tune'),
                                     (["run", "--keys", "-5"], 2, 'kilokv-bench: --keys: "-5" is not a whole number'),
                                     (["run", "--endpoint", "foo"], 2, "kilokv-bench: --endpoint: "),
                                     (["run", "--workload", "foo"], 2, "one of bank bank-semantic deposits hot hot-deposits atm"),
                                     (["run", "--json", "no/such/report"], 5, "kilokv-bench: --json: cannot write"),
                                     (["run", "--history", "no/such/file"], 5, "kilokv-bench: --history: cannot write")):
            done = subprocess.run([str(BIN / "kilokv-bench"), *words], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (code, ""), words)
            self.assertIn(problem, done.stderr)


if __name__ == "__main__":
    unittest.main()
