#!/usr/bin/env python3
"""How kilokvd executes its batches: the device that is asked for and is not there, and the check of a sample of them."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, Server, add, temporary_folder  # noqa: E402

DEPOSIT = {"then": [add("till", 5)]}
PAY_OUT = {"guards": [{"key": "till", "is": "ge", "value": 3}], "then": [add("till", -3), {"op": "get", "key": "till"}]}


def choices(flag):
    """What the flag may be, as kilokvd says it where it is something else."""
    run = subprocess.run([str(BIN / "kilokvd"), flag, "nonsense", "--check-config"], capture_output=True, text=True,
                         timeout=60, check=False)
    assert run.returncode == 2, run
    return re.search(r"the limit is one of (.*) \(", run.stderr)[1].split(", ")


def status(server):
    return json.loads(server.client("--output", "json", "status"))


class Devices(unittest.TestCase):
    def run_on(self, device):
        """A few batches; returns the log and the status after them."""
        with temporary_folder() as folder, Server(folder, "--device", device) as server:
            outcomes = [line["outcome"] for line in server.transactions(DEPOSIT, PAY_OUT, PAY_OUT)]
            self.assertEqual(outcomes, ["COMMITTED", "COMMITTED", "GUARD_FAILED"])
            after = status(server)
            self.assertEqual(server.stop(), 0)
            return server.log.read_text(), after

    def test_every_device_serves(self):
        for device in choices("--device"):
            with self.subTest(device):
                log, after = self.run_on(device)
                ready = re.findall(r"kilokvd ready .*", log)
                self.assertEqual(len(ready), 1, log)
                self.assertIn(f" strategy={after['strategy']} device={after['device']} ", ready[0])
                self.assertEqual("device_reason=" in ready[0], after["device_reason"] != "")
                self.assertGreater(after["batches"], 0)
                self.assertEqual(after["batches"], sum(after[f"batches_{by}"] for by in
                                                       ("serial", "parallel", "on_device")))

    def test_cuda_where_there_is_none(self):
        if "cuda" not in choices("--device"):  # an engine without it says what it has
            with self.assertRaisesRegex(AssertionError, r"(?s)ended with 2.*the limit is one of"):
                self.run_on("cuda")
            return
        environment = {"CUDA_VISIBLE_DEVICES": ""}  # also where there is one
        with temporary_folder() as folder, Server(folder, "--device", "cuda", environment=environment) as server:
            server.transactions(DEPOSIT)
            after = status(server)
            self.assertEqual(after["device"], "cpu")
            self.assertNotEqual(after["device_reason"], "")
            self.assertEqual(after["batches_on_device"], 0)
            reasons = re.findall(r'device_reason="(.*?)"', server.log.read_text())
            self.assertEqual(reasons, [after["device_reason"]])


    def test_a_device_that_is_lost(self):
        """The batch at hand and all later ones run on the CPU; nobody notices but who reads the log or the status."""
        environment = {"KILOKV_FAIL_POINTS": "engine.device.call=error:200"}
        with temporary_folder() as folder, Server(folder, "--device", "emulated", "--strategy", "ordered",
                                                  "--shadow-rate", "1", environment=environment) as server:
            self.assertEqual(status(server)["device"], "emulated")
            deposits = 0
            while status(server)["device"] == "emulated":
                outcomes = [line["outcome"] for line in server.transactions(*[DEPOSIT] * 10, batch=False)]
                self.assertEqual(outcomes, ["COMMITTED"] * 10)
                deposits += 10
                self.assertLess(deposits, 500)
            self.assertEqual(server.transactions(DEPOSIT)[0]["outcome"], "COMMITTED")
            self.assertEqual(server.value("till"), 5 * (deposits + 1))
            after = status(server)
            self.assertEqual(after["device"], "cpu")
            self.assertGreater(after["batches_on_device"], 0)
            self.assertGreater(after["batches_parallel"] + after["batches_serial"], 0)
            self.assertEqual(server.stop(), 0)
            warnings = re.findall(r'warning kilokvd has lost its device: .*device_reason="(.*)"', server.log.read_text())
            self.assertEqual(warnings, [after["device_reason"]])


class Shadow(unittest.TestCase):
    def test_good_batches_pass(self):
        with temporary_folder() as folder, Server(folder, "--shadow-rate", "1") as server:
            server.transactions(DEPOSIT, PAY_OUT)
            after = status(server)
            self.assertEqual(after["shadow_batches"], after["batches"])
            self.assertEqual(server.stop(), 0)

    def test_a_wrong_batch_stops_the_server(self):
        """Nothing is answered, and what the log says of the batch runs again elsewhere."""
        environment = {"KILOKV_FAIL_POINTS": "core.execute.lost_writes=error:6"}
        flags = ("--shadow-rate", "1", "--log-keys", "full")
        with temporary_folder() as folder, Server(folder, *flags, environment=environment) as server:
            client = subprocess.Popen(server.command("kilokv", "--timeout", "3s", "txn"), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            answers, _ = client.communicate((json.dumps(DEPOSIT) + "\n") * 6, timeout=60)
            self.assertEqual(server.wait_end(), 1)
            outcomes = [json.loads(line)["outcome"] for line in answers.splitlines()]
            self.assertEqual(client.returncode, 4)
            self.assertEqual(outcomes[-1], None)
            committed = outcomes.count("COMMITTED")
            log = server.log.read_text()
            self.assertRegex(log, r'kilokvd executed a batch wrongly.* batch=6 difference="--shadow-rate: the referee differs: '
                                  r'batch 6, number of writes: ')
            self.assertRegex(log, r'kilokvd fatal .*--shadow-rate: the referee differs: batch 6 was executed wrongly')
            lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
            self.assertEqual((lines[0]["batch"], lines[0]["transactions"]), (6, 1))
            self.assertEqual((lines[1]["key"], lines[1]["value"]), ("till", 5 * committed))
            with Server(folder) as again:
                self.assertEqual(again.value("till"), 5 * committed)
                self.assertEqual(again.transactions(*lines[2:])[0]["outcome"], "COMMITTED")
                self.assertEqual(again.value("till"), 5 * (committed + 1))

    def test_a_wrong_batch_goes_to_a_file_where_the_log_may_not_have_its_keys(self):
        environment = {"KILOKV_FAIL_POINTS": "core.execute.lost_writes=error:6"}
        for keys in ("hash", "none"):
            flags = ("--shadow-rate", "1", "--log-keys", keys)
            with temporary_folder() as folder, Server(folder, *flags, environment=environment) as server:
                client = subprocess.Popen(server.command("kilokv", "--timeout", "3s", "txn"), stdin=subprocess.PIPE,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
                client.communicate((json.dumps(DEPOSIT) + "\n") * 6, timeout=60)
                self.assertEqual(server.wait_end(), 1)
                log = server.log.read_text()
                file = pathlib.Path(re.search(r'kilokvd executed a batch wrongly.* batch=6 batch_file="(.*?)"', log)[1])
                self.assertEqual(file.stat().st_mode & 0o777, 0o600)
                difference, *lines = file.read_text().splitlines()
                self.assertRegex(difference, r"^--shadow-rate: the referee differs: batch 6, number of writes: ")
                self.assertEqual([json.loads(line).get("batch") for line in lines][0], 6)
                self.assertIn("till", file.read_text())
                self.assertNotIn("till", log)
                with Server(folder) as again:  # the file does no harm
                    self.assertGreater(again.value("till"), 0)


if __name__ == "__main__":
    unittest.main()
