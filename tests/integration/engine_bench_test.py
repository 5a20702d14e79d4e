"""kilokv-engine-bench as a user runs it: verdicts, documents, refusals."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import SLOWER  # noqa: E402

PROGRAM = os.path.join(os.environ["KILOKV_BIN_DIR"], "kilokv-engine-bench")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=240 * SLOWER, check=False)


class EngineBench(unittest.TestCase):
    def test_every_workload_is_verified(self):
        done = run("--strategy", "serial", "--workload", "all", "--verify", "--batches", "40", "--keys", "2000",
                   "--batch", "256", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["format"], "kilokv-engine-bench-1")
        axes = {(entry["workload"], entry["distribution"]) for entry in document["workloads"]}
        for expected in [("bank", "uniform"), ("bank", "zipf:0.99"), ("hot", "uniform"), ("hot-deposits", "uniform"),
                         ("bank-semantic", "uniform"), ("atm", "uniform"), ("vacation", "uniform"),
                         ("skiplist", "uniform"), ("kmeans", "uniform"), ("graph", "uniform"), ("tpcc", "uniform"),
                         *((f"ycsb-{letter}", "uniform") for letter in "abcdef"), ("mixed", "uniform")]:
            self.assertIn(expected, axes)
        by_name = {entry["workload"]: entry for entry in document["workloads"]}
        for entry in document["workloads"]:
            self.assertEqual(entry["transactions"], 40 * 256)
            self.assertIn("referee", entry["verified"])
            self.assertNotIn("transactions_per_second", entry)
        for name in ["bank-semantic", "vacation"]:
            self.assertGreater(by_name[name]["passes"], 40, name)  # WAIT guards were met
        self.assertEqual(by_name["skiplist"]["guard_failed"], 0)
        self.assertGreater(by_name["ycsb-e"]["range_pairs"], 40 * 256)
        for what in ["overflow", "type_mismatch", "postponed", "wait_expired", "guard_failed", "range_pairs"]:
            self.assertGreater(by_name["mixed"][what], 20, what)

    def ordered(self, workload, *arguments):
        done = run("--strategy", "ordered", "--workload", workload, "--verify", "--batches", "40", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        (entry,) = json.loads(done.stdout)["workloads"]
        self.assertEqual(entry["execution"]["ordered_batches"], 40)
        return entry

    def test_strategies_with_locks_are_verified_on_every_workload(self):
        workloads = [["bank"], ["bank", "--distribution", "zipf:0.99"], ["hot"], ["bank-semantic"],
                     ["mixed", "--no-ranges"]]
        locks = {"prstm": [1, 16, 4096], "lock": [1, 16, 4096], "gpustm": [1, 16, 4096], "kilo": [1], "local": [1, 16, 4096],
                 "ordered": [1]}
        for strategy, sizes in locks.items():
            for threads, records in itertools.product([1, 2, 8], sizes):
                for workload in workloads:
                    arguments = ["--strategy", strategy, "--threads", str(threads), "--workload", *workload,
                                 "--records-per-lock", str(records), "--verify", "--batches", "6", "--batch", "200",
                                 "--keys", "64" if workload[0] == "mixed" else "500", "--json"]
                    with self.subTest(arguments=arguments):
                        self.check_counts(strategy, run(*arguments))

    def test_kilo_takes_histories_and_limits(self):
        for units, history, limit in itertools.product(["1", "32"], ["512B", "4+8"], ["0", "1", "3"]):
            done = run("--strategy", "kilo", "--threads", "4", "--workload", "hot", "--commit-units", units, "--writer-history",
                       history, "--concurrency-limit", limit, "--verify", "--batches", "6", "--batch", "200", "--json")
            self.check_counts("kilo", done)
            document = json.loads(done.stdout)
            self.assertEqual((document["commit_units"], document["writer_history"], document["concurrency_limit"]),
                             (int(units), history, int(limit)))
            if limit == "1":
                self.assertEqual(document["workloads"][0]["execution"]["wasted_tickets"], 0)

    def test_local_takes_stages_and_signatures(self):
        workloads = [["local-ht"], ["local-km"], ["local-ga"], ["bank", "--keys", "500"], ["bank-semantic"]]
        for staged, threads, workload in itertools.product([0, 64, 4096], [1, 2, 8], workloads):
            done = run("--strategy", "local", "--threads", str(threads), "--workload", *workload, "--staged-records",
                       str(staged), "--signature-bits", "64", "--stage-blocks", "2", "--verify", "--batches", "6",
                       "--batch", "200", "--json")
            with self.subTest(staged=staged, threads=threads, workload=workload):
                self.check_counts("local", done)
                document = json.loads(done.stdout)
                self.assertEqual((document["staged_records"], document["signature_bits"], document["stage_blocks"]),
                                 (staged, 64, 2))
                execution = document["workloads"][0]["execution"]
                decided = sum(execution["decided_by_thread"])
                if staged != 64:
                    self.assertEqual(execution["staged"], decided if staged else 0)
                self.assertGreaterEqual(execution["lane_restarts"], execution["warp_serialized"])
                self.assertGreaterEqual(execution["warp_serialized"], execution["block_serialized"])
                self.assertLessEqual(execution["lane_restarts"], execution["conflicts"])

    def test_local_tells_where_its_time_goes(self):
        for device, keys in itertools.product(["cpu", "emulated"], ["2", "256"]):
            done = run("--strategy", "local", "--device", device, "--threads", "2", "--workload", "local-ga", "--keys",
                       keys, "--stage-times", "--verify", "--batches", "6", "--batch", "400", "--json")
            with self.subTest(device=device, keys=keys):
                self.check_counts("local", done)
                execution = json.loads(done.stdout)["workloads"][0]["execution"]
                times = dict(execution["times"])
                self.assertAlmostEqual(times.pop("serialized_attempts"),
                                       100 * execution["warp_serialized"] /
                                       (execution["staged"] + execution["lane_restarts"]), places=3)
                self.assertAlmostEqual(sum(times.values()), 100, places=2)
                self.assertGreater(min(times[of] for of in ("outside", "moving", "running", "claiming", "shadowing")), 0)
                self.assertEqual(times["in_group"] + times["in_block"] > 0, execution["warp_serialized"] > 0)
        plain = run("--strategy", "local", "--workload", "local-ga", "--batches", "2", "--json")
        self.assertNotIn("times", json.loads(plain.stdout)["workloads"][0]["execution"])

    def check_counts(self, strategy, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        (entry,) = json.loads(done.stdout)["workloads"]
        execution = entry["execution"]
        mine, other = ("ordered_batches", "ticketed_batches")[::1 if strategy == "ordered" else -1]
        self.assertEqual((execution[mine], execution[other], execution["serial_batches"]), (6, 0, 0))
        self.assertEqual(sum(execution["decided_by_thread"]) + entry["postponed"] + entry["wait_expired"],
                         entry["transactions"])
        if strategy == "ordered":
            self.assertEqual(execution["attempts"], 0)
            return
        self.assertGreaterEqual(execution["attempts"], sum(execution["decided_by_thread"]))
        self.assertAlmostEqual(execution["aborts_per_commit"], execution["conflicts"] / entry["committed"], places=3)
        if entry["workload"] == "bank-semantic":
            self.assertGreater(execution["postponed"] + execution["retried"], 0)
        if strategy != "gpustm":
            self.assertEqual(execution["retried"], 0)
        if strategy not in ("prstm", "local"):
            self.assertEqual((execution["steals"], execution["stolen"]), (0, 0))

    def test_ranges_run_serially_under_every_strategy(self):
        for strategy in ["ordered", "prstm", "lock", "gpustm", "kilo", "local"]:
            done = run("--strategy", strategy, "--workload", "mixed", "--verify", "--batches", "6", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            (entry,) = json.loads(done.stdout)["workloads"]
            self.assertEqual((entry["execution"]["serial_batches"], entry["execution"]["attempts"]), (6, 0))

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

    def test_ordered_runs_them_without_ranges(self):
        for name in ["atm", "vacation", "skiplist", "kmeans", "graph", "tpcc", "ycsb-b", "ycsb-d", "ycsb-f"]:
            self.ordered(name, "--threads", "2", "--keys", "1000", "--batch", "200")

    def test_presets_and_what_all_leaves_out(self):
        done = run("--strategy", "serial", "--workload", "all", "--batches", "1", "--no-ranges", "--keys", "200000",
                   "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = {entry["workload"]: entry["keys"] for entry in json.loads(done.stdout)["workloads"]}
        self.assertNotIn("ycsb-e", keys)
        self.assertEqual((keys["bank"], keys["skiplist"]), (200000, 131072))
        for preset, customers in [("small", 15000), ("paper", 150000)]:
            done = run("--workload", "vacation", "--preset", preset, "--batches", "1", "--json")
            (entry,) = json.loads(done.stdout)["workloads"]
            self.assertEqual(entry["keys"], customers)

    # A generator that keeps a copy of what it changed sees no batch left out between the two parts of a run.
    def test_warm_up_leaves_no_batch_out(self):
        entry = self.ordered("skiplist", "--threads", "2", "--warmup", "7", "--batch", "100")
        self.assertEqual(entry["guard_failed"], 0)

    def test_postponed_transactions_are_counted(self):
        execution = self.ordered("bank-semantic", "--threads", "2")["execution"]
        self.assertGreater(execution["postponed"], 40)

    def test_the_emulated_device_runs_all(self):
        execution = self.ordered("bank", "--device", "emulated", "--batch", "200")["execution"]
        self.assertEqual((execution["device"], execution["device_batches"]), ("emulated", 40))
        self.assertGreater(execution["kernel_seconds"], 0)
        # At least keys' records and operations there; outcomes and cells back.
        self.assertGreater(execution["sent_bytes"], 40 * 200 * 16)
        self.assertGreater(execution["returned_bytes"], 40 * 200 * 16)
        on_cpu = self.ordered("bank", "--batch", "200")["execution"]
        self.assertEqual((on_cpu["sent_bytes"], on_cpu["kernel_seconds"]), (0, 0))

    def test_throughput_is_reported_with_its_axes(self):
        done = run("--workload", "bank", "--distribution", "zipf:0.9", "--batches", "20", "--seed", "9", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        (entry,) = document["workloads"]
        self.assertEqual((document["seed"], entry["keys"], entry["distribution"]), (9, 100000, "zipf:0.9"))
        self.assertGreater(entry["transactions_per_second"], 0)
        for field in ["cpu", "cores", "compiler", "build_type", "commit"]:
            self.assertTrue(document["machine"][field], field)

    def test_the_stages_of_batches_are_measured_if_asked_for(self):
        arguments = ["--workload", "bank", "--keys", "1000", "--batch", "512", "--batches", "20", "--json"]
        for strategy, device, packs in (("serial", "cpu", False), ("ordered", "cpu", True), ("lock", "cpu", True),
                                        ("ordered", "emulated", True)):
            with self.subTest(strategy=strategy, device=device):
                done = run(*arguments, "--strategy", strategy, "--device", device, "--batch-times")
                self.assertEqual(done.returncode, 0, done.stderr)
                stages = json.loads(done.stdout)["workloads"][0]["execution"]["stages"]
                for stage in ("resolve", "run", "collect", "settle", "hash"):
                    self.assertGreater(stages[stage]["all_threads_ns"], 0, stage)
                self.assertEqual(stages["unpack"]["all_threads_ns"] > 0, packs)
                self.assertGreater(stages["serial_share"], 0)
                self.assertLessEqual(stages["sum"]["one_alone_ns"], stages["sum"]["wall_ns"])
                self.assertIn("serial share", done.stderr)
        plain = run(*arguments)
        self.assertNotIn("stages", json.loads(plain.stdout)["workloads"][0]["execution"])
        self.assertNotIn("serial share", plain.stderr)

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
        for arguments, named in [(["--wokload", "bank"], "--wokload"), (["--workload", "tpce"], "--workload"),
                                 (["--keys", "1"], "--keys"), (["--keys"], "--keys"), (["--duration", "3"], "--duration"),
                                 (["--strategy", "serial", "--threads", "2"], "--threads"),
                                 (["--records-per-lock", "0"], "1 to 1048576"),
                                 (["--strategy", "ordered", "--records-per-lock", "2"],
                                  "1, the default, unless --strategy is prstm, lock, gpustm or local (--records-per-lock)"),
                                 (["--transactions-per-thread", "4"], "--transactions-per-thread"),
                                 (["--commit-units", "8", "--writer-history", "512B"],
                                  "5kB, the default, unless --strategy is kilo (--writer-history)"),
                                 (["--strategy", "kilo", "--commit-units", "3"], "1, 2, 4, 8, 16 or 32"),
                                 (["--strategy", "kilo", "--writer-history", "5+6"], "ENTRIES+BUCKETS"),
                                 (["--strategy", "kilo", "--records-per-lock", "2"], "unless --strategy is prstm, lock, gpustm or local"),
                                 (["--staged-records", "64"],
                                  "1024, the default, unless --strategy is local (--staged-records)"),
                                 (["--strategy", "local", "--signature-bits", "3"], "a power of two to 1024"),
                                 (["--strategy", "local", "--stage-blocks", "3"], "1, 2, 4 or 8 (--stage-blocks)"),
                                 (["--stage-blocks", "2"], "1, the default, unless --strategy is local (--stage-blocks)"),
                                 (["--stage-times"], "off, the default, unless --strategy is local (--stage-times)"),
                                 (["--strategy", "local", "--staged-records", "0", "--stage-times"],
                                  "off where --staged-records is 0"),
                                 (["--strategy", "lock", "--transactions-per-thread", "1048577"], "0 to 1048576"),
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
        for strategy in ["serial", "ordered", "prstm", "lock", "gpustm", "kilo", "local", "auto"]:
            self.assertRegex(done.stdout, f"(?m)^  {strategy} ")
        self.assertRegex(done.stdout, r"vacation +customers, .* 15000 +150000")

    def test_version_and_commit(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^kilokv-engine-bench \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}(-dirty)?|unknown)\)\n$")


if __name__ == "__main__":
    unittest.main()
