#!/usr/bin/env python3
"""deploy/gpu-check.sh: the rehearsal on the emulated device passes with the real programs; with planted ones each thing
that can go wrong is found and told, and a run that is ended leaves what it has. deploy/gpu-carry.sh: what it
carries."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from programs import SANITIZED, leaves_out  # noqa: E402

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")
SCRIPT = os.path.join(DEPLOY, "gpu-check.sh")
REAL_PROGRAMS = os.environ["KILOKV_BIN_DIR"]

DOCUMENT = ('{"machine":{"cpu":"planted","cores":1,"commit":"0123"},"workloads":[{"workload":"bank","batches":3,'
            '"committed":500000000,"wait_expired":4,"postponed":5,'
            '"execution":{"device":"$on","device_reason":"planted","device_batches":%d,"sent_bytes":8000000000,'
            '"returned_bytes":2000000000,"sent_seconds":0.2,"kernel_seconds":0.2500,"returned_seconds":0.0500,'
            '"postponed":6,"decided_by_thread":[]},"seconds":0.5000,"transactions_per_second":5430000.0}]}')
# Says that it runs where it was told to, and writes a document where one is asked for.
GOOD_BENCH = f"""on=cpu
if [[ $* =~ --device\\ ([a-z]+) ]]; then on=${{BASH_REMATCH[1]}}; fi
echo "[1/1] planted" >&2
if [[ $* =~ --json\\ (/.*)$ ]]; then
  echo '{{}}' >"${{BASH_REMATCH[1]}}"
  printf '%s\\n' 'a table' '' 'Claims; the worst:' 'kilo: of lock' '  yes figure 6: 2.5, at least 1' \\
    '  NO  figure 7: 0.5, at least 1'
  exit
fi
text='{DOCUMENT % 3}'
echo "${{text/\\$on/$on}}"
"""
PASSES = "exit 0"
# Runs the program, and says that it has found nothing.
GOOD_SANITIZER = """tool=$2
while [[ $1 == --* ]]; do shift 2; done
"$@" || exit
if [ "$tool" = racecheck ]; then
  echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'
else
  echo '========= ERROR SUMMARY: 0 errors'
fi
"""
GOOD_ROOFLINE = """if [ "$2" = 134217728 ]; then reads=16000; else reads=10000; fi
echo the table >&2
echo '{"measures":[{"name":"random_read","unit":"M/s","what":"a, b","median":'$reads'.0000,"min":1.0},'\
'{"name":"both_ways","unit":"GB/s","what":"c","median":40.0000,"min":1.0}]}'
"""
ON_CUDA = {"kilokv-roofline": GOOD_ROOFLINE, "kilokv-cluster-check": PASSES, "compute-sanitizer": GOOD_SANITIZER}
# Says so when it runs, and then runs on.
RUNS_ON = "exec 3>\"$(dirname \"$0\")/begun\"; echo a word; echo $$ >&3; exec tail -f /dev/null"


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
        # The script ends each step after a time. ThreadSanitizer makes the emulated device too slow for that.
        if "thread" in SANITIZED and leaves_out("the rehearsal on the emulated device"):
            return
        code, report, summary = self.check("--device", "emulated", "--budget", "500", programs=REAL_PROGRAMS)
        self.assertEqual(code, 0, summary)
        self.assertEqual(self.steps(report, "failed") + self.steps(report, "cut"), [])
        left_out = {name.split(",")[0] for name in self.steps(report, "left out")}
        self.assertEqual(left_out, {"roofline", "cluster memory", "compute-sanitizer", "best strategy against serial on the device",
                                    "the whole server"})
        self.assertNotIn("missing", summary)
        self.assertNotIn("unknown", report["commit"])
        rates = [step for step in report["steps"] if step["kind"] == "measurement" and step["status"] == "passed"
                 and not step["name"].startswith(("compare", "validate"))]
        for figures in ("prstm", "kilo", "local", "contention", "workloads"):
            with open(os.path.join(self.out, f"compare-{figures}.json"), encoding="utf-8") as file:
                self.assertGreater(len(json.load(file)["panels"]), 0)
            self.assertRegex(summary, rf"\n\| {figures} \| (yes|NO) \| \w+: [^|]+ \| [^|]+ \|\n")
        self.assertGreater(len(rates), 50)
        for step in rates:
            self.assertGreater(step["output"]["workloads"][0]["transactions_per_second"], 0)
        for workload in ("bank", "ycsb-a"):
            numbers = r"( \| [0-9.]+){2}( \| -){2} \| [0-9.]+ \| - \|"
            self.assertRegex(summary, rf"\n\| {workload}[^|]* \| prstm{numbers}")
        self.assertRegex(summary, r"\| coalesced \| 2000 \| none \| cooperative \| emulated( \| [0-9.]+){2} \|\n")
        self.assertRegex(summary, r"Payment on 1 warehouse against 2: [0-9.]+\.\n")
        self.assertEqual(sorted(os.listdir(self.out)), sorted(
            ["raw.log", "report.json", "summary.md"]
            + [f"compare-{figures}.json" for figures in ("prstm", "kilo", "local", "contention", "workloads")]))

    def test_planted_programs_pass_on_cuda(self):
        self.plant(**ON_CUDA)
        code, report, summary = self.check("--device", "cuda")
        self.assertEqual(code, 0, summary)
        self.assertEqual(len(self.steps(report, "left out")), 2, summary)
        self.assertEqual(report["gpu"], "planted")
        self.assertTrue(report["finished"])
        outputs = {step["name"]: step["output"] for step in report["steps"]}
        self.assertEqual(outputs["roofline, 134217728 bytes"]["measures"][0]["median"], 16000)
        self.assertEqual(outputs["roofline, 268435456 bytes"]["measures"][0]["median"], 10000)
        self.assertEqual(summary.count("\nthe table\n"), 2)
        self.assertIn("| batch 1024 | 5.43 | 5.43 | 5.43 | 5.43 |", summary)
        # 1G/s by the clock and 2G/s on the device, of 4G and 2.5G; 20 GB/s, of 40
        self.assertIn("| bank, 100000 accounts, batches of 8192 | ordered | 1000.000 | 2000.000 | 0.500 | 0.800 "
                      "| 20.000 | 0.500 | 5 | 4 |\n", summary)
        self.assertIn("| auto | 1000.000 | 2000.000 | - | - | 20.000 | 0.500 | 5 | 4 |\n", summary)
        self.assertIn("Payment on 1 warehouse against 2: 1.000.\n", summary)
        self.assertIn("| kilo | yes | kilo: of lock | figure 6: 2.5, at least 1 |\n"
                      "| kilo | NO | kilo: of lock | figure 7: 0.5, at least 1 |\n", summary)
        with open(os.path.join(self.out, "raw.log"), encoding="utf-8") as file:
            self.assertIn("[1/1] planted\n", file.read())

    def test_parts(self):
        for part, step in (("checks", "device layer"), ("sanitizers", "compute-sanitizer racecheck, large stages"),
                           ("figures", "compare, kilo"), ("rates", "hot, batch 1024, serial")):
            self.plant(**ON_CUDA)
            code, report, summary = self.check("--device", "cuda", "--parts", part)
            self.assertEqual(code, 0, summary)
            self.assertEqual(report["steps"][0]["name"], "a batch on the device")
            is_check = part in ("checks", "sanitizers")
            self.assertEqual({one["kind"] for one in report["steps"][1:]}, {"check" if is_check else "measurement"})
            self.assertIn(step, self.steps(report, "passed"))
            self.assertEqual("## Rates" in summary, part == "rates")
            self.assertEqual("## Targets" in summary, part == "rates")
            self.assertEqual("GPU check: nothing was checked" in summary, not is_check)

    def test_wrong_usage_is_named(self):
        for flags, told in ((["--parts", "checks,speed"], "no part is called 'speed'"),
                            (["--parts", ""], "no part is called ''"), (["--device", "gpu"], "--device gpu: "),
                            (["--budget", "9m"], "--budget 9m: "), (["--fast"], "unknown flag --fast")):
            done = subprocess.run([SCRIPT, *flags], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(told, done.stderr)
            self.assertIn("--parts LIST", done.stderr)

    def assert_fails(self, part, step, reason, *arguments, **programs):
        self.plant(**programs)
        code, report, summary = self.check("--parts", part, *(arguments or ("--device", "emulated")))
        self.assertEqual(code, 1)
        self.assertIn(step, self.steps(report, "failed"))
        told = [one["reason"] for one in report["steps"] if one["name"] == step]
        self.assertIn(reason, told[0])
        self.assertIn(f"- {step}: failed: {told[0]}", summary)
        return report

    def test_failing_bench(self):
        bench = f"case \"$*\" in *--workload\\ hot\\ *) echo a '\"planted\"' failure >&2; exit 1 ;; esac\n{GOOD_BENCH}"
        report = self.assert_fails("rates", "hot, batch 1024, serial", 'exit code 1: a "planted" failure',
                                   **{"kilokv-engine-bench": bench})
        self.assertIn("bank uniform, batch 1024, serial", self.steps(report, "passed"))

    def test_batch_that_ran_on_the_cpu_instead(self):
        bench = f"case \"$*\" in *--verify*--keys\\ 2000\\ *) echo '{DOCUMENT % 2}'; exit ;; esac\n{GOOD_BENCH}"
        self.assert_fails("checks", "verify, all workloads, 2k keys, batches of 2048",
                          "2 of 3 batches ran on the device: planted", **{"kilokv-engine-bench": bench})

    def test_auto_without_the_device(self):
        document = DOCUMENT.replace('"device":"$on"', '"device":"cpu"') % 0
        bench = f"case \"$*\" in *auto*) echo '{document}'; exit ;; esac\n{GOOD_BENCH}"
        self.assert_fails("rates", "hot, batch 1024, auto-emulated", "the device is not in use: planted",
                          **{"kilokv-engine-bench": bench})

    def test_rate_of_the_device_is_not_told_where_the_cpu_ran_some(self):
        document = (DOCUMENT % 2).replace("$on", "cuda")
        self.plant(**{**ON_CUDA, "kilokv-engine-bench":
                      f"case \"$*\" in *--order*) echo '{document}'; exit ;; esac\n{GOOD_BENCH}"})
        _, _, summary = self.check("--device", "cuda", "--parts", "rates")
        self.assertIn("| bank, 100000 accounts, batches of 8192 | auto | 1000.000 | - | - | - | - | - | 5 | 4 |\n",
                      summary)
        self.assertIn("| prstm | 1000.000 | 2000.000 |", summary)

    def test_failing_random_batches(self):
        self.assert_fails("checks", "random batches, 50 chains of 10", "exit code 1: chain 7 differs",
                          engine_random_batch_test="echo chain 7 differs; exit 1")

    def test_device_layer_is_told_the_device(self):
        self.assert_fails("checks", "device layer", "exit code 1: no CUDA driver", "--device", "cuda",
                          **{**ON_CUDA, "engine_device_test": "echo no ${KILOKV_TEST_DEVICE^^} driver; exit 1"})

    def test_failing_cluster_memory(self):
        self.assert_fails("checks", "cluster memory", "exit code 1: clusters of 2 blocks: WRONG", "--device", "cuda",
                          **{**ON_CUDA, "kilokv-cluster-check": "echo clusters of 2 blocks: WRONG; exit 1"})

    def test_failing_roofline(self):
        self.assert_fails("figures", "roofline, 134217728 bytes", "exit code 1: no device", "--device", "cuda",
                          **{**ON_CUDA, "kilokv-roofline": "echo no device >&2; exit 1"})

    def test_failing_sanitizer(self):
        race = 'if [ "$2" = racecheck ]; then echo "[1/1] planted" >&2; echo a race; exit 9; fi\n'
        self.assert_fails("sanitizers", "compute-sanitizer racecheck, local", "exit code 9: [1/1] planted a race",
                          "--device", "cuda", **{**ON_CUDA, "compute-sanitizer": race + GOOD_SANITIZER})

    def test_sanitizer_without_a_verdict(self):
        runs_only = "while [[ $1 == --* ]]; do shift 2; done\n\"$@\"\n"
        report = self.assert_fails("sanitizers", "compute-sanitizer memcheck, bank",
                                   "has no line 'ERROR SUMMARY: 0 errors'", "--device", "cuda",
                                   **{**ON_CUDA, "compute-sanitizer": runs_only})
        under = [step["name"] for step in report["steps"] if step["name"].startswith("compute-sanitizer")]
        self.assertEqual(len(under), 18)
        self.assertEqual([name for name in self.steps(report, "failed") if name in under], under)

    def test_sanitizer_that_found_something_and_does_not_say_so_by_its_exit_code(self):
        found = GOOD_SANITIZER.replace("0 hazards", "10 hazards").replace("0 errors'", "10 errors'")
        report = self.assert_fails("sanitizers", "compute-sanitizer racecheck, large stages",
                                   "has no line 'RACECHECK SUMMARY: 0 hazards", "--device", "cuda",
                                   **{**ON_CUDA, "compute-sanitizer": found})
        self.assertEqual(len(self.steps(report, "failed")), 18)

    def test_batch_that_left_the_device_under_the_sanitizer(self):
        small = "*--workload\\ bank\\ --keys\\ 1000\\ *"
        bench = f"case \"$*\" in {small}) echo '{DOCUMENT % 1}'; exit ;; esac\n{GOOD_BENCH}"
        self.assert_fails("sanitizers", "compute-sanitizer memcheck, bank", "1 of 3 batches ran on the device: planted",
                          "--device", "cuda", **{**ON_CUDA, "kilokv-engine-bench": bench})

    def test_comparison_without_its_document(self):
        bench = f"if [ \"$1\" = compare ]; then echo a table; exit; fi\n{GOOD_BENCH}"
        os.mkdir(self.out)
        with open(os.path.join(self.out, "compare-kilo.json"), "w", encoding="utf-8") as file:
            file.write("{}")  # of an earlier run
        self.assert_fails("figures", "compare, kilo", "it left no compare-kilo.json", **{"kilokv-engine-bench": bench})

    def test_program_that_is_killed_before_its_time(self):
        self.assert_fails("checks", "random batches, 50 chains of 10", " of 60 s: out of memory?",
                          engine_random_batch_test="kill -KILL $$")

    def test_program_that_ends_with_the_exit_code_of_timeout(self):
        self.assert_fails("checks", "random batches, 50 chains of 10", "exit code 124: planted",
                          engine_random_batch_test="echo planted; exit 124")

    def test_without_the_device(self):
        self.plant(**{**ON_CUDA, "kilokv-engine-bench": "echo no driver, planted >&2; exit 1"})
        done = self.start("--device", "cuda")
        told = done.communicate()[1]
        self.assertEqual(done.returncode, 1)
        self.assertIn("no driver, planted", told)
        report, summary, raw = self.left()
        self.assertEqual(self.steps(report, "failed"), ["a batch on the device"])
        self.assertEqual((len(report["steps"]), report["passed"], report["finished"]), (1, False, True))
        self.assertIn("# GPU check: FAILED\n", summary)
        self.assertIn("- a batch on the device: failed: exit code 1: no driver, planted", summary)
        self.assertIn("no driver, planted\n", raw)

    def start(self, *arguments):
        environment = {**os.environ, "PATH": self.bin + os.pathsep + os.environ["PATH"]}
        return subprocess.Popen([SCRIPT, "--quick", "--bin", self.bin, "--out", self.out, *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    def left(self):
        """(report, summary, raw log)"""
        texts = []
        for name in ("report.json", "summary.md", "raw.log"):
            with open(os.path.join(self.out, name), encoding="utf-8") as file:
                texts.append(file.read())
        return json.loads(texts[0]), texts[1], texts[2]

    def end_while_it_runs(self, number):
        """Sends a signal while the random batches run. Returns what it says of them, and (pid, pipe) of the planted
        program: the pipe is at its end when that has ended."""
        self.plant(engine_random_batch_test=RUNS_ON)
        os.mkfifo(os.path.join(self.bin, "begun"))
        run = self.start("--device", "emulated")
        pipe = open(os.path.join(self.bin, "begun"), encoding="utf-8")
        self.addCleanup(pipe.close)
        pid = int(pipe.readline())
        run.send_signal(number)
        return run, pid, pipe

    def test_run_that_is_ended_by_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            run, _, pipe = self.end_while_it_runs(number)
            told = run.communicate()
            self.assertEqual((run.returncode, told[1]), (143, ""))
            self.assertEqual(pipe.read(), "")
            report, summary, raw = self.left()
            self.assertEqual(self.steps(report, "passed"), ["a batch on the device", "device layer"])
            self.assertEqual(self.steps(report, "cut"), ["random batches, 50 chains of 10"])
            self.assertEqual((report["passed"], report["finished"]), (False, False))
            self.assertIn("# GPU check: not finished\n", summary)
            self.assertIn("- random batches, 50 chains of 10 (cut: the run was ended from outside)", summary)
            self.assertIn("a word\n== the run was ended from outside", raw)
            self.assertEqual(sorted(os.listdir(self.out)), ["raw.log", "report.json", "summary.md"])
            os.remove(os.path.join(self.bin, "begun"))

    def test_run_that_is_killed(self):
        run, pid, pipe = self.end_while_it_runs(signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        run.communicate()
        self.assertEqual(pipe.read(), "")
        report, summary, raw = self.left()
        self.assertEqual(self.steps(report, "passed"), ["a batch on the device", "device layer"])
        self.assertFalse(report["finished"])
        self.assertIn("# GPU check: not finished\n", summary)
        self.assertIn("- passed: device layer", summary)
        self.assertRegex(raw, r"== random batches, 50 chains of 10\n\$ env .*\n\Z")
        with open(os.path.join(self.out, "running", "out"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "a word\n")

    def test_step_that_does_not_end_is_cut_and_told(self):
        self.plant(engine_random_batch_test="exec tail -f /dev/null")
        code, report, summary = self.check("--device", "emulated", "--budget", "8")
        self.assertEqual(code, 1)
        cut = self.steps(report, "cut")
        self.assertIn("random batches, 50 chains of 10", cut)
        self.assertIn("hot, batch 1024, serial", cut)  # no time was left for it
        for step in cut:
            self.assertIn(f"- {step} (cut: ", summary)

    def test_sanitizer_that_does_not_support_the_device(self):
        self.plant(**{**ON_CUDA, "compute-sanitizer": "echo Error: Device not supported; exit 1"})
        code, report, summary = self.check("--device", "cuda")
        self.assertEqual(code, 0, summary)
        self.assertEqual(self.steps(report, "left out")[0], "compute-sanitizer")
        self.assertIn("- compute-sanitizer (it does not support this device", summary)
        _, _, summary = self.check("--device", "cuda", "--parts", "sanitizers")
        self.assertIn("# GPU check: nothing was checked\n", summary)

    def test_missing_programs(self):
        for missing in ["kilokv-engine-bench", "engine_random_batch_test", "engine_device_test", "kilokv-cluster-check"]:
            self.plant(**ON_CUDA)
            os.remove(os.path.join(self.bin, missing))
            done = subprocess.run([SCRIPT, "--bin", self.bin, "--out", self.out], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"no {missing} in", done.stderr)


class GpuCarryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.to = os.path.join(folder.name, "root"), os.path.join(folder.name, "to")
        os.makedirs(os.path.join(self.root, "deploy"))
        for script in ("gpu-carry.sh", "gpu-check.sh"):
            shutil.copy(os.path.join(DEPLOY, script), os.path.join(self.root, "deploy"))

    def carry(self):
        return subprocess.run([os.path.join(self.root, "deploy", "gpu-carry.sh"), "--build",
                               os.path.join(REAL_PROGRAMS, ".."), "--to", self.to],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(self.root)})

    @unittest.skipUnless(os.path.exists(os.path.join(REAL_PROGRAMS, "kilokv-roofline")), "made where nvcc is found")
    def test_what_it_carries_runs_and_replaces_what_it_carried(self):
        os.mkdir(self.to)
        for name, text in (("notes", "mine"), ("old_program", "old"), ("carried", "old_program\n")):
            with open(os.path.join(self.to, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = self.carry()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not a checkout", done.stderr)
        with open(os.path.join(self.to, "carried"), encoding="utf-8") as file:
            carried = file.read().split()
        self.assertEqual(sorted(os.listdir(self.to)), sorted([*carried, "carried", "notes"]))
        self.assertIn("gpu-check.sh", carried)
        for program in carried:
            self.assertTrue(os.access(os.path.join(self.to, program), os.X_OK), program)
        version = subprocess.run([os.path.join(self.to, "kilokv-engine-bench"), "--version"], capture_output=True,
                                 text=True, check=True)
        self.assertIn("kilokv-engine-bench", version.stdout)

    @unittest.skipUnless(os.path.exists(os.path.join(REAL_PROGRAMS, "kilokv-roofline")), "made where nvcc is found")
    def test_stale_build_is_refused(self):
        author = ["-c", "user.name=n", "-c", "user.email=e"]
        for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "m"]):
            subprocess.run(["git", *command], cwd=self.root, check=True)
        done = self.carry()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"is stale: kilokv-engine-bench .*, and the checkout is at [0-9a-f]{12};")
        self.assertFalse(os.path.exists(self.to))


if __name__ == "__main__":
    unittest.main()
