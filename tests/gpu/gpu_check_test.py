#!/usr/bin/env python3
"""deploy/gpu-check.sh: the rehearsal on the emulated device passes with the real programs; with planted ones each thing
that can go wrong is found and told."""

import json
import os
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "gpu-check.sh")
REAL_PROGRAMS = os.environ["KILOKV_BIN_DIR"]

DOCUMENT = ('{"machine":{"cpu":"planted","cores":1,"commit":"0123"},"workloads":[{"workload":"bank","batches":3,'
            '"execution":{"device":"$on","device_reason":"planted","device_batches":%d,"decided_by_thread":[]},'
            '"transactions_per_second":5430000.0}]}')
# Says that it runs where it was told to.
GOOD_BENCH = f"""on=cpu
if [[ $* =~ --device\\ ([a-z]+) ]]; then on=${{BASH_REMATCH[1]}}; fi
text='{DOCUMENT % 3}'
echo "${{text/\\$on/$on}}"
"""
PASSES = "exit 0"


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = os.path.join(folder.name, "out")
        self.bin = os.path.join(folder.name, "bin")
        os.mkdir(self.bin)

    def plant(self, **programs):
        """Shell programs, by name: good ones but for those that are given."""
        for name, script in {"kilokv-engine-bench": GOOD_BENCH, "engine_random_batch_test": PASSES,
                             "engine_any_order_test": PASSES, "engine_read_set_test": PASSES,
                             "engine_device_test": PASSES,
                             "nvidia_smi": "echo planted", **programs}.items():
            path = os.path.join(self.bin, name.replace("nvidia_smi", "nvidia-smi"))
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/bash\n{script}\n")
            os.chmod(path, 0o755)

    def check(self, *arguments, programs=None):
        """(exit code, report, summary)"""
        environment = {**os.environ, "PATH": self.bin + os.pathsep + os.environ["PATH"]}
        done = subprocess.run([SCRIPT, "--quick", "--bin", programs or self.bin, "--out", self.out, *arguments],
                              capture_output=True, text=True, check=False, env=environment)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        with open(os.path.join(self.out, "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        with open(os.path.join(self.out, "summary.md"), encoding="utf-8") as file:
            summary = file.read()
        self.assertEqual(report["passed"], done.returncode == 0)
        return done.returncode, report, summary

    def steps(self, report, status):
        return [step["name"] for step in report["steps"] if step["status"] == status]

    def test_rehearsal_passes(self):
        code, report, summary = self.check("--device", "emulated", "--budget", "250", programs=REAL_PROGRAMS)
        self.assertEqual(code, 0, summary)
        self.assertEqual(self.steps(report, "failed") + self.steps(report, "cut"), [])
        left_out = {name.split()[0] for name in self.steps(report, "left out")}
        self.assertEqual(left_out, {"roofline", "compute-sanitizer"})
        self.assertNotIn("missing", summary)
        self.assertNotIn("unknown", report["commit"])
        rates = [step for step in report["steps"] if step["kind"] == "measurement" and step["status"] == "passed"
                 and not step["name"].startswith(("compare", "validate"))]
        for figures in ("prstm", "kilo", "local", "contention", "workloads"):
            with open(os.path.join(self.out, f"compare-{figures}.json"), encoding="utf-8") as file:
                self.assertGreater(len(json.load(file)["panels"]), 0)
        self.assertGreater(len(rates), 50)
        for step in rates:
            self.assertGreater(step["output"]["workloads"][0]["transactions_per_second"], 0)

    def test_planted_programs_pass_on_cuda(self):
        self.plant(**{"kilokv-roofline": "echo the table >&2; echo '{\"measures\":[]}'", "compute-sanitizer": PASSES})
        code, report, summary = self.check("--device", "cuda")
        self.assertEqual(code, 0, summary)
        self.assertEqual(self.steps(report, "left out"), [])
        self.assertEqual(report["gpu"], "planted")
        outputs = {step["name"]: step["output"] for step in report["steps"]}
        self.assertEqual(outputs["roofline"], {"measures": []})
        self.assertIn("the table", summary)
        self.assertIn("| batch 1024 | 5.43 | 5.43 | 5.43 | 5.43 |", summary)

    def test_parts(self):
        for part, step in (("checks", "device layer"), ("figures", "compare, kilo"), ("rates", "hot, batch 1024, serial")):
            self.plant(engine_device_test=PASSES)
            code, report, summary = self.check("--device", "emulated", "--parts", part)
            self.assertEqual(code, 0, summary)
            self.assertEqual({one["kind"] for one in report["steps"]}, {"check" if part == "checks" else "measurement"})
            self.assertIn(step, self.steps(report, "passed"))
            self.assertEqual("## Rates" in summary, part == "rates")
        done = subprocess.run([SCRIPT, "--parts", "checks,speed"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--parts LIST", done.stderr)

    def assert_fails(self, step, reason, *arguments, **programs):
        self.plant(**programs)
        code, report, summary = self.check(*(arguments or ("--device", "emulated")))
        self.assertEqual(code, 1)
        self.assertIn(step, self.steps(report, "failed"))
        told = [one["reason"] for one in report["steps"] if one["name"] == step]
        self.assertIn(reason, told[0])
        self.assertIn(f"- {step}: failed: {told[0]}", summary)
        return report

    def test_failing_bench(self):
        bench = f"case \"$*\" in *--workload\\ hot\\ *) echo a '\"planted\"' failure >&2; exit 1 ;; esac\n{GOOD_BENCH}"
        report = self.assert_fails("hot, batch 1024, serial", 'exit code 1: a "planted" failure',
                                   **{"kilokv-engine-bench": bench})
        self.assertIn("bank uniform, batch 1024, serial", self.steps(report, "passed"))

    def test_batch_that_ran_on_the_cpu_instead(self):
        bench = f"case \"$*\" in *--verify*100000*) echo '{DOCUMENT % 2}'; exit ;; esac\n{GOOD_BENCH}"
        self.assert_fails("verify, all workloads, 100k keys, batches of 4096",
                          "2 of 3 batches ran on the device: planted", **{"kilokv-engine-bench": bench})

    def test_auto_without_the_device(self):
        document = DOCUMENT.replace('"device":"$on"', '"device":"cpu"') % 0
        bench = f"case \"$*\" in *auto*) echo '{document}'; exit ;; esac\n{GOOD_BENCH}"
        self.assert_fails("hot, batch 1024, auto-emulated", "the device is not in use: planted",
                          **{"kilokv-engine-bench": bench})

    def test_failing_random_batches(self):
        self.assert_fails("random batches, 50 chains of 10", "exit code 1: chain 7 differs",
                          engine_random_batch_test="echo chain 7 differs; exit 1")

    def test_failing_roofline(self):
        self.assert_fails("roofline", "exit code 1: no device", "--device", "cuda",
                          **{"kilokv-roofline": "echo no device >&2; exit 1"})

    def test_failing_sanitizer(self):
        self.assert_fails("compute-sanitizer racecheck, random batches", "exit code 9: a race", "--device", "cuda",
                          **{"compute-sanitizer": 'if [ "$2" = racecheck ]; then echo a race; exit 9; fi'})

    def test_step_that_does_not_end_is_cut_and_told(self):
        self.plant(engine_random_batch_test="exec tail -f /dev/null")
        code, report, summary = self.check("--device", "emulated", "--budget", "3")
        self.assertEqual(code, 1)
        cut = self.steps(report, "cut")
        self.assertIn("random batches, 50 chains of 10", cut)
        self.assertIn("hot, batch 1024, serial", cut)  # no time was left for it
        for step in cut:
            self.assertIn(f"- {step} (cut: ", summary)

    def test_sanitizer_that_does_not_support_the_device(self):
        self.plant(**{"kilokv-roofline": "echo '{}'", "compute-sanitizer": "echo Error: Device not supported; exit 1"})
        code, report, summary = self.check("--device", "cuda")
        self.assertEqual(code, 0, summary)
        self.assertEqual(self.steps(report, "left out"), ["compute-sanitizer"])
        self.assertIn("- compute-sanitizer (it does not support this device", summary)

    def test_missing_programs(self):
        for missing in ["kilokv-engine-bench", "engine_random_batch_test", "engine_device_test"]:
            self.plant()
            os.remove(os.path.join(self.bin, missing))
            done = subprocess.run([SCRIPT, "--bin", self.bin, "--out", self.out], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"no {missing} in", done.stderr)


if __name__ == "__main__":
    unittest.main()
