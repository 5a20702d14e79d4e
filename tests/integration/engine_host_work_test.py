"""kilokv-engine-bench host-work as a user runs it: the document, the rows, refusals."""

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
STAGES = {"resolve", "pack", "run", "unpack", "collect", "settle", "hash"}


def run(*arguments):
    return subprocess.run([PROGRAM, "host-work", *arguments], capture_output=True, text=True, timeout=240 * SLOWER,
                          check=False)


class EngineHostWork(unittest.TestCase):
    def point(self, *arguments):
        done = run("--repeats", "2", "--buffers", "1", "--json", "-", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["format"], "kilokv-host-work-1")
        self.assertIn("dirty marks and hash against serial", document["verified"])
        (point,) = document["points"]
        return point

    def test_the_document_has_the_ratio_and_the_stages(self):
        point = self.point("--workload", "bank", "--keys", "2000", "--batch", "512")
        self.assertEqual((point["workload"], point["keys"], point["batch_transactions"]), ("bank", 2000, 512))
        self.assertGreaterEqual(point["buffer_bytes"], 1 << 20)
        self.assertEqual(len(point["ratios"]), 2)
        for serial, host, ratio in zip(point["serial_ns"], point["host_ns"], point["ratios"]):
            self.assertAlmostEqual(host / serial, ratio, places=2)
        for side in ("serial_stages", "host_stages"):
            stages = point[side]
            self.assertEqual(set(stages), STAGES | {"sum", "serial_share"})
            for clock in ("wall_ns", "all_threads_ns", "one_alone_ns"):
                self.assertAlmostEqual(sum(stages[stage][clock] for stage in STAGES), stages["sum"][clock], delta=0.01)
        self.assertEqual(point["serial_stages"]["unpack"]["all_threads_ns"], 0)
        self.assertGreater(point["host_stages"]["unpack"]["all_threads_ns"], 0)

    def test_bytes_go_there_and_back(self):
        point = self.point("--workload", "bank", "--keys", "2000", "--batch", "512")
        transactions = point["batches"] * point["batch_transactions"]
        self.assertGreater(point["sent_bytes"], 50 * transactions)
        self.assertGreater(point["returned_bytes"], 50 * transactions)
        self.assertGreater(point["calls"], 5 * point["batches"])
        self.assertEqual(point["patches"], 0)  # no key is created

    def test_new_keys_byte_values_and_hot_keys_are_compared_too(self):
        for arguments in (["--workload", "tpcc", "--keys", "60000", "--batch", "128"],
                          ["--workload", "ycsb-a", "--keys", "500", "--operations", "4", "--batch", "128"],
                          ["--workload", "hot-deposits", "--keys", "100", "--batch", "256"]):
            with self.subTest(arguments=arguments):
                self.assertGreater(self.point(*arguments)["host_ns"][0], 0)

    def test_the_table_says_what_is_measured(self):
        done = run("--workload", "bank", "--keys", "500", "--batch", "64", "--buffers", "1", "--repeats", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("ratio: host to serial", "bank, 500 keys", "bytes back", "by stage, all threads"):
            self.assertIn(text, done.stdout)

    def test_refusals(self):
        for arguments, named in [(["--workload", "nothing"], "nothing"), (["--workload", "ycsb-e"], "--workload"),
                                 (["--keys", "1"], "--keys"), (["--repeats", "0"], "--repeats"),
                                 (["--json", "/"], "--json")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main()
