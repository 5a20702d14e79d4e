#!/usr/bin/env python3
"""Every strategy under the real server: what clients were told of hot keys and of waits is one serial order, says the
judge; and of every batch, says the referee."""

import json
import re
import subprocess
import sys
import unittest

from engine_knobs_test import choices, status
from programs import BIN, JUDGE, Server, temporary_folder

SHORT = ["--warmup", "0s", "--keys", "200", "--duration", "200ms", "--batch-size", "256", "--in-flight", "4"]
LOADS = (["--workload", "bank", "--distribution", "zipf:0.99"], ["--workload", "hot"], ["--workload", "bank-semantic"])


class Strategies(unittest.TestCase):
    def load(self, server, load):
        done = subprocess.run([BIN / "kilokv-bench", "run", *SHORT, *load, "--json", "-",
                               "--endpoint", server.endpoint], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertTrue(report["verified"]["holds"])
        return report

    def judge(self, server, folder, load):
        history, final = folder / "history.jsonl", folder / "final.jsonl"
        report = self.load(server, [*load, "--history", history])
        server.scan_to(final)
        judged = subprocess.run([sys.executable, JUDGE, history, "--final-state", final], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=240)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        return report["whole_run"]["committed"]

    def test_histories(self):
        for strategy in choices("--strategy"):
            for load in LOADS:
                with self.subTest(f"{strategy} {load[1]}"), temporary_folder() as folder, \
                        Server(folder, "--strategy", strategy, "--threads", "4", "--shadow-rate", "1") as server:
                    committed = self.judge(server, server.folder, load)
                    after = status(server)
                    print(f"{strategy}, {load[1]}: {committed} committed in {after['batches']} batches, judged; "
                          f"{after['batches_parallel']} parallel, {after['shadow_batches']} replayed")
                    self.assertGreater(committed, 0)
                    self.assertEqual(after["shadow_batches"], after["batches"])
                    if strategy not in ("serial", "auto"):  # which chooses
                        self.assertGreater(after["batches_parallel"], after["batches_serial"])

    def test_any_order(self):
        with temporary_folder() as folder, \
                Server(folder, "--order", "any", "--threads", "4", "--shadow-rate", "1") as server:
            self.assertGreater(self.judge(server, server.folder, LOADS[0]), 0)
            after = status(server)
            self.assertEqual((after["strategy"], after["order"]), ("auto", "any"))
            # What it chose last may be of batches that are the first of their kind: then it is to meet more of them.
            timed = r"serial \d+ ns, pipelined \d+ ns.*, partitioned \d+ ns.*, prstm \d+ ns.*, kilo \d+ ns.*, local "
            for _ in range(20):
                if re.search(timed, status(server)["strategy_choice"]):
                    break
                self.load(server, LOADS[0])
            self.assertRegex(status(server)["strategy_choice"], timed)

    def test_locks_of_many_records(self):
        for records in ("16", "4096"):
            with self.subTest(records), temporary_folder() as folder, \
                    Server(folder, "--strategy", "prstm", "--threads", "4", "--records-per-lock", records,
                           "--transactions-per-thread", "8", "--shadow-rate", "1") as server:
                told = status(server)
                self.assertEqual([told[name] for name in ("threads", "records_per_lock", "transactions_per_thread",
                                                          "shadow_rate")], [4, records, "8", 1])
                self.assertGreater(self.judge(server, server.folder, LOADS[0]), 0)

    def test_small_histories(self):
        with temporary_folder() as folder, \
                Server(folder, "--strategy", "kilo", "--threads", "4", "--commit-units", "1", "--writer-history", "4+8",
                       "--concurrency-limit", "3", "--shadow-rate", "1") as server:
            told = status(server)
            self.assertEqual([told[name] for name in ("commit_units", "writer_history", "concurrency_limit")], ["1", "4+8", "3"])
            self.assertGreater(self.judge(server, server.folder, LOADS[0]), 0)

    def test_small_stages(self):
        for staged, bits, blocks in ((0, 256, 8), (16, 4, 2)):
            with self.subTest(staged), temporary_folder() as folder, \
                    Server(folder, "--strategy", "local", "--threads", "4", "--staged-records", str(staged),
                           "--signature-bits", str(bits), "--stage-blocks", str(blocks), "--shadow-rate",
                           "1") as server:
                told = status(server)
                self.assertEqual([told[name] for name in ("staged_records", "signature_bits", "stage_blocks")],
                                 [str(staged), str(bits), str(blocks)])
                self.assertGreater(self.judge(server, server.folder, LOADS[0]), 0)

    def test_wrong_knobs(self):
        for arguments, problem in ((["--records-per-lock", "0"], "1 to 1048576 (--records-per-lock)"),
                                   (["--strategy", "lock", "--records-per-lock", "9999999"], "1 to 1048576"),
                                   (["--transactions-per-thread", "9999999"],
                                    "0 to 1048576 (--transactions-per-thread)"),
                                   (["--strategy", "serial", "--records-per-lock", "16"],
                                    "1, the default, unless --strategy is prstm, lock, gpustm or local (--records-per-lock)"),
                                   (["--transactions-per-thread", "4"],
                                    "0, the default, unless --strategy is prstm, lock, gpustm, kilo or local "
                                    "(--transactions-per-thread)"),
                                   (["--writer-history", "512B"], "5kB, the default, unless --strategy is kilo (--writer-history)"),
                                   (["--strategy", "kilo", "--commit-units", "5"], "1, 2, 4, 8, 16 or 32"),
                                   (["--order", "any", "--staged-records", "64"],
                                    "1024, the default, unless --strategy is local (--staged-records)"),
                                   (["--order", "some"], "one of fixed, any (--order)"),
                                   (["--strategy", "kilo", "--order", "any"],
                                    "fixed, the default, unless --strategy is auto (--order)"),
                                   (["--signature-bits", "64"],
                                    "256, the default, unless --strategy is local (--signature-bits)"),
                                   (["--strategy", "local", "--signature-bits", "48"], "a power of two to 1024"),
                                   (["--strategy", "local", "--staged-records", "32769"], "0 to 32768"),
                                   (["--stage-blocks", "4"],
                                    "1, the default, unless --strategy is local (--stage-blocks)"),
                                   (["--strategy", "local", "--stage-blocks", "16"], "1, 2, 4 or 8 (--stage-blocks)"),
                                   (["--strategy", "foo"], "one of auto, ordered, serial, pipelined, partitioned, prstm")):
            with self.subTest(arguments), temporary_folder() as folder:
                done = subprocess.run([BIN / "kilokvd", "--data-dir", folder, *arguments], capture_output=True,
                                      text=True, stdin=subprocess.DEVNULL, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(problem, done.stderr)


if __name__ == "__main__":
    unittest.main()
