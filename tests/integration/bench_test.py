#!/usr/bin/env python3
"""Short runs of kilokv-bench against a real server: every workload, both loops, both encodings, histories, sweeps."""

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

    def test_usage_and_no_server(self):
        self.assertIn("--batch-size", self.bench("run", "--batch-size", "0", code=2))
        command = [str(BIN / "kilokv-bench"), "run", "--endpoint", "127.0.0.1:1", "--give-up-after", "1s"]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(b"start kilokvd there, or check --endpoint", done.stderr)

    def test_command_lines_that_are_wrong(self):
        for words, code, problem in ((["foo"], 2, 'kilokv-bench: unknown command "foo"; known here: run sweep'),
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
