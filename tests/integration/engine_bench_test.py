"""kilokv-engine-bench as a user runs it: verdicts, documents, refusals."""

import json
import os
import subprocess
import unittest

PROGRAM = os.path.join(os.environ["KILOKV_BIN_DIR"], "kilokv-engine-bench")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=240, check=False)


class EngineBench(unittest.TestCase):
    def test_every_workload_is_verified(self):
        done = run("--strategy", "serial", "--workload", "all", "--verify", "--batches", "40", "--keys", "2000",
                   "--batch", "256", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["format"], "kilokv-engine-bench-1")
        axes = {(entry["workload"], entry["distribution"]) for entry in document["workloads"]}
        for expected in [("bank", "uniform"), ("bank", "zipf:0.99"), ("hot", "uniform"), ("hot-deposits", "uniform"),
                         ("bank-semantic", "uniform"), ("ycsb-a", "uniform"), ("mixed", "uniform")]:
            self.assertIn(expected, axes)
        by_name = {entry["workload"]: entry for entry in document["workloads"]}
        for entry in document["workloads"]:
            self.assertEqual(entry["transactions"], 40 * 256)
            self.assertIn("referee", entry["verified"])
            self.assertNotIn("transactions_per_second", entry)
        self.assertGreater(by_name["bank-semantic"]["passes"], 40)  # WAIT guards were met
        for what in ["overflow", "type_mismatch", "postponed", "wait_expired", "guard_failed", "range_pairs"]:
            self.assertGreater(by_name["mixed"][what], 20, what)

    def ordered(self, workload, *arguments):
        done = run("--strategy", "ordered", "--workload", workload, "--verify", "--batches", "40", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        (entry,) = json.loads(done.stdout)["workloads"]
        self.assertEqual(entry["execution"]["ordered_batches"], 40)
        return entry

    def test_threads_share_the_work(self):
        entry = self.ordered("bank", "--threads", "8")
        execution = entry["execution"]
        self.assertEqual(len(execution["decided_by_thread"]), 8)
        # What a tail decides is the first thread's.
        self.assertEqual(sum(execution["decided_by_thread"]), entry["transactions"])
        for decided in execution["decided_by_thread"]:
            self.assertGreaterEqual(decided, 0.05 * entry["transactions"])
        self.assertGreaterEqual(execution["reservations"], 3 * entry["transactions"])

    def test_adds_without_a_guard_take_one_round(self):
        execution = self.ordered("hot-deposits", "--threads", "2")["execution"]
        self.assertEqual((execution["rounds"], execution["chained_adds"], execution["tail"]), (40, 0, 0))

    def test_postponed_transactions_are_counted(self):
        execution = self.ordered("bank-semantic", "--threads", "2")["execution"]
        self.assertGreater(execution["postponed"], 40)

    def test_the_emulated_device_runs_all(self):
        execution = self.ordered("bank", "--device", "emulated", "--batch", "200")["execution"]
        self.assertEqual((execution["device"], execution["device_batches"]), ("emulated", 40))

    def test_throughput_is_reported_with_its_axes(self):
        done = run("--workload", "bank", "--distribution", "zipf:0.9", "--batches", "20", "--seed", "9", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        (entry,) = document["workloads"]
        self.assertEqual((document["seed"], entry["keys"], entry["distribution"]), (9, 100000, "zipf:0.9"))
        self.assertGreater(entry["transactions_per_second"], 0)
        for field in ["cpu", "cores", "compiler", "build_type", "commit"]:
            self.assertTrue(document["machine"][field], field)

    def test_same_seed_same_counts(self):
        arguments = ["--workload", "mixed", "--batches", "10", "--seed", "3", "--verify", "--json"]
        first, second = (json.loads(run(*arguments).stdout)["workloads"] for _ in range(2))
        self.assertEqual(first, second)

    def test_baseline_reports_a_ratio(self):
        done = run("--baseline", "--keys", "1000", "--pairs", "2", "--duration", "50ms", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        baseline = json.loads(done.stdout)["baseline"]
        self.assertEqual(len(baseline["pairs"]), 2)
        self.assertGreater(baseline["ratio_median"], 0)

    def test_wrong_usage_is_named(self):
        for arguments, named in [(["--wokload", "bank"], "--wokload"), (["--workload", "tpcc"], "--workload"),
                                 (["--keys", "1"], "--keys"), (["--keys"], "--keys"), (["--duration", "3"], "--duration"),
                                 (["--strategy", "serial", "--threads", "2"], "--threads"),
                                 (["--device", "tpu"], "--device"), (["--verify=yes"], "--verify"),
                                 (["--baseline", "--verify"], "--baseline")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(named, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_help_names_every_default(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for flag in ["--strategy", "--workload", "--keys", "--batch", "--duration", "--verify", "--baseline", "--json"]:
            self.assertIn(flag, done.stdout)
        self.assertIn("(default 1024 transactions)", done.stdout)


if __name__ == "__main__":
    unittest.main()
