"""kilokv-engine-bench validate as a user runs it: the document, the ways to check a read set, refusals."""

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
    return subprocess.run([PROGRAM, "validate", *arguments], capture_output=True, text=True, timeout=240 * SLOWER, check=False)


class EngineValidate(unittest.TestCase):
    def document(self, *arguments):
        done = run("--repeats", "2", "--duration", "1ms", "--json", "-", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("M reads/s", done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["format"], "kilokv-validate-1")
        self.assertNotEqual(document["machine"]["commit"], "")
        return document["points"]

    def test_every_way_is_measured(self):
        points = self.document("--reads", "10,20000", "--records", "20000", "--threads", "2,3")
        ways = {(point["reads"], point["conflict"], point["validation"], point["threads"]) for point in points}
        self.assertEqual(len(ways), 2 * 2 * 5)
        for point in points:
            self.assertEqual(len(point["reads_per_second_repeats"]), 2)
            self.assertGreater(point["reads_per_second"], point["transactions_per_second"] * 0.99)
            large = point["reads"] > 1000 and point["validation"] != "by-guard"
            self.assertEqual(point["choice"] != "", large, point)
            if point["validation"] == "cooperative" and large:
                self.assertIn(f"on {point['threads']} threads", point["choice"])
            if point["validation"] == "auto" and large:
                self.assertIn("times as fast", point["choice"])

    def test_with_a_device(self):
        points = self.document("--reads", "3000", "--records", "4000", "--device", "emulated", "--lanes", "strided")
        self.assertEqual({point["ran_on"] for point in points}, {"emulated"})
        together = [point for point in points if point["validation"] == "cooperative"]
        self.assertEqual(len(together), 2)
        for point in together:
            self.assertIn("with the device", point["choice"])

    def test_refusals(self):
        for arguments, named in [(["--reads", "20", "--records", "10"], "--records"), (["--reads", "0"], "--reads"),
                                 (["--threads", "1"], "--threads"), (["--lanes", "wide"], "--lanes")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(named, done.stderr)

    def test_a_device_that_is_not_there_is_said_first(self):
        done = subprocess.run([PROGRAM, "validate", "--reads", "1000", "--records", "1000", "--device", "cuda"],
                              capture_output=True, text=True, timeout=240 * SLOWER, check=False,
                              env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("kilokv-engine-bench validate: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
