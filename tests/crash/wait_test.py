#!/usr/bin/env python3
"""A withdrawal that arrives before its deposit: commits in the same batch, in a later one, or expires on time."""

import time
import unittest

from programs import SLOWER, Server, add, history, temporary_folder, until, wait_for


class WaitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(temporary_folder())
        cls.server = cls.enterClassContext(Server(cls.folder))

    def withdraw(self, account, amount, timeout_ms):
        return {"guards": [wait_for(account, amount)], "then": [add(account, -amount)], "wait_timeout_ms": timeout_ms}

    def test_deposit_in_the_same_batch(self):
        withdrawal, deposit = self.server.transactions(self.withdraw("same", 50, 0), {"then": [add("same", 50)]})
        self.assertEqual((withdrawal["outcome"], deposit["outcome"]), ("COMMITTED", "COMMITTED"))
        self.assertEqual(withdrawal["batch"], deposit["batch"])
        self.assertGreater(withdrawal["rank"], deposit["rank"])
        self.assertEqual(self.server.value("same"), 0)

    def test_deposit_in_a_later_batch(self):
        waiting = self.server.start_transactions(self.withdraw("later", 50, 30000))
        until(lambda: self.server.parked() == 1, "the withdrawal is parked")
        not_enough, = self.server.transactions({"then": [add("later", 49)]})
        self.assertEqual(self.server.parked(), 1)
        deposit, = self.server.transactions({"then": [add("later", 1)]})
        withdrawal, = history(waiting)
        self.assertEqual(withdrawal["outcome"], "COMMITTED")
        self.assertLess(withdrawal["admitted_batch"], not_enough["batch"])
        self.assertGreaterEqual((withdrawal["batch"], withdrawal["rank"]), (deposit["batch"], deposit["rank"]))
        self.assertEqual(self.server.value("later"), 0)

    def test_no_deposit(self):
        timeout_ms = 400
        begin = time.monotonic()
        withdrawal, = self.server.transactions(self.withdraw("never", 50, timeout_ms))
        elapsed_ms = (time.monotonic() - begin) * 1000
        self.assertEqual((withdrawal["outcome"], withdrawal["failed_guard"]), ("WAIT_EXPIRED", 0))
        self.assertIsNone(withdrawal["version"])
        waited_ms = (withdrawal["return_us"] - withdrawal["invoke_us"]) / 1000
        self.assertGreaterEqual(waited_ms, timeout_ms)
        self.assertLess(waited_ms, timeout_ms + 250)
        print(f"asked to wait {timeout_ms} ms, answered after {waited_ms:.1f} ms ({elapsed_ms:.0f} ms with the client)")

    def test_else_runs_at_the_deadline(self):
        """The pass of last tries: what `else` writes lets another one that is on its last try commit."""
        give_up = {"guards": [wait_for("quota", 5)], "then": [add("quota", -5)], "wait_timeout_ms": 300,
                   "expire_runs_else": True, "else": [add("gave up", 1), {"op": "get", "key": "quota"}, add("quota", 9)]}
        line, = self.server.transactions(give_up)
        self.assertEqual((line["outcome"], line["failed_guard"]), ("WAIT_EXPIRED", 0))
        self.assertEqual([read["value"] for read in line["reads"]], [None])
        self.assertGreaterEqual(line["return_us"] - line["invoke_us"], 300000)
        self.assertEqual((self.server.value("gave up"), self.server.value("quota")), (1, 9))
        now = {"wait_timeout_ms": 0, "guards": [wait_for("quota", 10)]}
        expired, committed = self.server.transactions(
            {**now, "expire_runs_else": True, "else": [add("quota", 3)], "then": []}, {**now, "then": [add("quota", -10)]})
        self.assertEqual((expired["outcome"], committed["outcome"]), ("WAIT_EXPIRED", "COMMITTED"))
        self.assertEqual((expired["batch"], expired["rank"] + 1), (committed["batch"], committed["rank"]))
        self.assertEqual(committed["version"] - expired["version"], 1)
        self.assertEqual(self.server.value("quota"), 2)

    def take_lease(self, length_us):
        return {"guards": [{"is": "time_after", "key": "lease", "when_false": "wait"}], "wait_timeout_ms": 30000,
                "then": [{"op": "put", "key": "lease", "value": {"batch_time": True}}, add("lease", length_us)]}

    def test_a_lease_is_taken_over_at_its_end(self):
        length_us = 3000000 * SLOWER
        first, = self.server.transactions(self.take_lease(length_us))
        end_us = first["batch_time_us"] + length_us
        self.assertEqual((first["outcome"], self.server.value("lease")), ("COMMITTED", end_us))
        waiting = self.server.start_transactions(self.take_lease(1))
        until(lambda: self.server.parked() == 1, "the second one is parked")
        early, = self.server.transactions({"guards": [{"is": "time_before", "time_us": end_us}], "then": [add("worked", 1)]})
        second, = history(waiting)
        late, = self.server.transactions({"guards": [{"is": "time_before", "time_us": end_us}], "then": [add("worked", 1)]})
        self.assertEqual([line["outcome"] for line in (early, second, late)], ["COMMITTED", "COMMITTED", "GUARD_FAILED"])
        self.assertLess(early["batch_time_us"], end_us)
        self.assertGreaterEqual(second["batch_time_us"], end_us)
        self.assertLess(second["batch_time_us"], end_us + 250000 * SLOWER)
        self.assertEqual(late["failed_guard"], 0)
        print(f"taken over {second['batch_time_us'] - end_us} us after its end")

    def test_no_time(self):
        withdrawal, = self.server.transactions(self.withdraw("nothing", 50, 0))
        self.assertEqual(withdrawal["outcome"], "WAIT_EXPIRED")
        self.assertEqual(withdrawal["batch"], withdrawal["admitted_batch"])

    def test_one_wait_does_not_hold_the_others(self):
        """The rest of a request is done while one of it waits."""
        waiting = self.server.start_transactions(self.withdraw("held", 50, 30000), {"then": [add("other", 7)]})
        until(lambda: self.server.value("other") == 7, "the other transaction of the request")
        self.assertIsNone(waiting.poll())
        self.server.transactions({"then": [add("held", 50)]})
        self.assertEqual([line["outcome"] for line in history(waiting)], ["COMMITTED", "COMMITTED"])


if __name__ == "__main__":
    unittest.main()
