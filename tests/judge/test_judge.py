#!/usr/bin/env python3
"""The judge accepts valid histories, and finds each planted violation."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

from simulator import Simulator, random_history

JUDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge.py")


def get(key):
    return {"op": "get", "key": key}


def put(key, value):
    return {"op": "put", "key": key, "value": value}


def add(key, delta):
    return {"op": "add", "key": key, "delta": delta}


def at_least(key, value, when_false="fail"):
    return {"key": key, "is": "ge", "value": value, "when_false": when_false}


def transfer(source, target, amount, **more):
    return {"guards": [at_least(source, amount)], "then": [add(source, -amount), add(target, amount)], **more}


class JudgeTest(unittest.TestCase):
    def judge(self, simulator, lines=None, final=None):
        """Exit code and output for the simulator's history, or for these lines of it."""
        with tempfile.TemporaryDirectory() as folder:
            history, state = os.path.join(folder, "history"), os.path.join(folder, "state")
            with open(history, "w", encoding="utf-8") as file:
                for line in [simulator.header, *(simulator.lines if lines is None else lines)]:
                    file.write(json.dumps(line) + "\n")
            with open(state, "w", encoding="utf-8") as file:
                for line in simulator.final_state() if final is None else final:
                    file.write(json.dumps(line) + "\n")
            command = [sys.executable, JUDGE, history, "--final-state", state]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            return run.returncode, run.stdout + run.stderr

    def assert_accepted(self, simulator, lines=None):
        code, output = self.judge(simulator, lines)
        self.assertEqual(code, 0, output)
        self.assertIn("ACCEPTED", output)

    def assert_rejected(self, simulator, message, lines=None, final=None):
        self.assert_accepted(simulator)  # it is the planted change that is found
        code, output = self.judge(simulator, lines, final)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, message)

    def changed(self, simulator, index, **fields):
        lines = copy.deepcopy(simulator.lines)
        lines[index].update(fields)
        return lines

    def test_random_valid_histories(self):
        for seed in range(40):
            with self.subTest(seed=seed):
                self.assert_accepted(random_history(seed))

    def test_random_histories_reach_every_outcome(self):
        seen = {line["outcome"] for seed in range(40) for line in random_history(seed).lines}
        self.assertEqual(seen, {"COMMITTED", "GUARD_FAILED", "WAIT_EXPIRED", "OVERFLOW", "TYPE_MISMATCH"})

    def test_any_changed_read_of_a_random_history(self):
        for seed in range(10):
            simulator = random_history(seed)
            lines = copy.deepcopy(simulator.lines)
            line = next(line for line in reversed(lines) if any(read["version"] for read in line["reads"]))
            next(read for read in line["reads"] if read["version"])["version"] += 1
            with self.subTest(seed=seed):
                self.assertEqual(self.judge(simulator, lines)[0], 1)

    def test_stale_read(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [put("a", 2)]})
        simulator.run({"then": [get("a")]})
        lines = self.changed(simulator, 1, reads=[{"key": "a", "value": 1, "version": 1}])
        self.assert_rejected(simulator, r"key 'a': expected 2, version 2; got 1, version 1", lines)

    def test_lost_update(self):
        simulator = Simulator({"a": 10})
        simulator.run({"then": [get("a"), put("a", 11)]}, {"then": [get("a"), put("a", 12)]})
        lines = self.changed(simulator, 1, reads=[{"key": "a", "value": 10, "version": 1}])  # both read 10
        self.assert_rejected(simulator, r"line 3: key 'a': expected 11, version 2", lines)

    def test_lost_update_of_an_add(self):
        simulator = Simulator({"a": 10})
        simulator.run({"then": [add("a", 1)]}, {"then": [add("a", 1)]})
        self.assert_rejected(simulator, r"final state, key 'a': expected 12, version 3; got 11",
                             final=[{"key": "a", "value": 11, "version": 3}])

    def test_write_skew(self):
        simulator = Simulator({"a": 1, "b": 1})  # each may go only while the other stays
        simulator.run({"guards": [at_least("b", 1)], "then": [put("a", 0)]},
                      {"guards": [at_least("a", 1)], "then": [put("b", 0)]})
        self.assertEqual(simulator.lines[1]["outcome"], "GUARD_FAILED")
        lines = self.changed(simulator, 1, outcome="COMMITTED", failed_guard=None, version=4)
        self.assert_rejected(simulator, r"expected GUARD_FAILED by guard 0, got COMMITTED; guard 0: key 'a' is 0",
                             lines)

    def test_double_apply(self):
        simulator = Simulator({"a": 100, "b": 0})
        simulator.run(transfer("a", "b", 30))
        self.assert_rejected(simulator, r"final state, key 'a': expected 70.*got 40",
                             final=[{"key": "a", "value": 40, "version": 3}, {"key": "b", "value": 60, "version": 3}])

    def test_request_answered_twice(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        simulator.run({"then": [get("a")]})
        lines = self.changed(simulator, 1, request=1)
        self.assert_rejected(simulator, r"request 1, index 0 was answered in line 2, too", lines)

    def test_lost_acknowledged_write(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [put("b", 7)]})
        self.assert_rejected(simulator, r"final state, key 'b': expected 7, version 2; got absent",
                             final=[{"key": "a", "value": 1, "version": 1}])

    def test_write_that_nobody_sent(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        self.assert_rejected(simulator, r"final state, key 'z': expected absent, version 0; got 9",
                             final=[*simulator.final_state(), {"key": "z", "value": 9, "version": 5}])

    def test_false_expiry(self):
        """It says that it waited in vain, but its guard holds at its place."""
        simulator = Simulator({"a": 5})
        simulator.run({"guards": [at_least("a", 5, "wait")], "then": [get("a")]})
        lines = self.changed(simulator, 0, outcome="WAIT_EXPIRED", failed_guard=0, reads=[])
        self.assert_rejected(simulator, r"expected COMMITTED, got WAIT_EXPIRED by guard 0", lines)

    def test_early_expiry(self):
        """It gave up before its time: admitted with stamp 1000, 10 ms to wait, gone with stamp 9000."""
        simulator = Simulator({"a": 0})
        simulator.run({"then": [get("a")]}, {"guards": [at_least("a", 5, "wait")], "then": [], "wait_timeout_ms": 10})
        for _ in range(5):
            simulator.run({"then": [get("a")]})
        self.assert_rejected(simulator, r"gave up waiting 10000 us after it was admitted; its time is 20 ms",
                             [{**line, "wait_timeout_ms": 2 * line["wait_timeout_ms"]} for line in simulator.lines])

    def test_expiry_runs_else(self):
        simulator = Simulator({"a": 0})
        simulator.run({"then": [get("a")]},  # so that the stamp of the first batch is known
                      {"guards": [at_least("a", 5, "wait")], "then": [], "else": [add("missed", 1), get("a")],
                       "wait_timeout_ms": 3, "expire_runs_else": True})
        for _ in range(3):
            simulator.run({"then": [get("missed")]})
        expired = next(line for line in simulator.lines if line["outcome"] == "WAIT_EXPIRED")
        self.assertEqual([expired["reads"][0]["value"], simulator.pairs["missed"][0]], [0, 1])
        at = simulator.lines.index(expired)
        for message, change in [("expected WAIT_EXPIRED by guard 0, got GUARD_FAILED", {"outcome": "GUARD_FAILED"}),
                                ("it wrote something, but has version None", {"version": None}),
                                ("expected 1 reads, got 0", {"reads": []}),
                                ("it wrote nothing, but has version", {"expire_runs_else": False, "reads": []}),
                                ("gave up waiting 4000 us after it was admitted", {"wait_timeout_ms": 9})]:
            self.assert_rejected(simulator, message, self.changed(simulator, at, **change))

    def test_expiry(self):
        simulator = Simulator({"a": 0})
        simulator.run({"then": [{**put("x", 1), "ttl_us": 3000}, {**put("kept", 1), "ttl_us": 3000}]})
        simulator.run({"then": [put("kept", 2), add("x", 1)]})
        simulator.run({"then": [get("x")]})
        simulator.expire()
        self.assertEqual((simulator.pairs["x"][0], simulator.pairs["kept"][0]), (None, 2))
        at = len(simulator.lines) - 1
        self.assertEqual(simulator.lines[at]["origin"], "expiry")
        self.assert_rejected(simulator, "it had expired, 1998 us before its time",
                             [*self.changed(simulator, at, batch=2, rank=1, admitted_batch=2, batch_time_us=2002,
                                            version=simulator.lines[1]["version"] + 1)])
        for key, message in [("kept", "but it does not expire here"), ("y", "but it is absent here")]:
            lines = self.changed(simulator, at, then=[{"op": "delete", "key": key}])
            self.assert_rejected(simulator, message, lines)

    def test_last_tries_see_one_another(self):
        """What the else-operations of one write lets the other one commit in the same pass."""
        simulator = Simulator({"a": 0})
        simulator.run({"guards": [at_least("a", 5, "wait")], "then": [], "else": [put("a", 5)],
                       "expire_runs_else": True}, {"guards": [at_least("a", 5, "wait")], "then": [add("a", -1)]})
        self.assertEqual([(line["outcome"], line["rank"]) for line in simulator.lines],
                         [("WAIT_EXPIRED", 2), ("COMMITTED", 3)])
        lines = self.changed(simulator, 1, outcome="WAIT_EXPIRED", failed_guard=0, version=None)
        self.assert_rejected(simulator, "expected COMMITTED, got WAIT_EXPIRED by guard 0", lines)

    def test_lost_expiry(self):
        """The state at the end tells when keys expire."""
        simulator = Simulator({"a": 0})
        simulator.run({"then": [{**put("x", 1), "ttl_us": 3000}, put("y", 1)]})
        pairs = {pair["key"]: pair for pair in simulator.final_state()}
        without = {key: value for key, value in pairs["x"].items() if key != "expires_at_us"}
        for changed in (without, {**pairs["x"], "expires_at_us": 1}, {**pairs["y"], "expires_at_us": 9}):
            final = list({**pairs, changed["key"]: changed}.values())
            self.assert_rejected(simulator, f"key '{changed['key']}': expected to expire at", final=final)

    def test_expiry_with_else_that_overflows(self):
        simulator = Simulator({"a": 0, "full": (1 << 63) - 1})
        simulator.run({"then": [get("a")]},
                      {"guards": [at_least("a", 5, "wait")], "then": [], "else": [add("full", 1)],
                       "wait_timeout_ms": 2, "expire_runs_else": True})
        for _ in range(2):
            simulator.run({"then": [get("a")]})
        at = next(i for i, line in enumerate(simulator.lines) if line["outcome"] == "OVERFLOW")
        self.assert_rejected(simulator, "gave up waiting", self.changed(simulator, at, wait_timeout_ms=7))

    def test_wait_commits_later(self):
        simulator = Simulator({"a": 0})
        simulator.run({"guards": [at_least("a", 5, "wait")], "then": [add("a", -5)], "wait_timeout_ms": 100})
        simulator.run({"then": [add("a", 5)]})
        self.assertEqual([line["outcome"] for line in simulator.lines], ["COMMITTED"] * 2)
        self.assertEqual(simulator.pairs["a"][0], 0)
        self.assert_accepted(simulator)

    def test_phantom_in_a_range(self):
        simulator = Simulator({"a1": 1, "a3": 3})
        simulator.run({"then": [put("a2", 2)]})
        simulator.run({"then": [{"op": "range_get", "from": "a", "to": "b", "limit": 10}]})
        reads = [read for read in simulator.lines[1]["reads"] if read["key"] != "a2"]
        lines = self.changed(simulator, 1, reads=reads)
        self.assert_rejected(simulator, r"expected to read key 'a2', got key 'a3'", lines)

    def test_reverse_range(self):
        simulator = Simulator({"a1": 1, "a3": 3, "a5": 5})
        last = {"op": "range_get", "from": "a", "to": "b", "limit": 2, "reverse": True}
        simulator.run({"then": [put("a2", 2), {"op": "delete", "key": "a5"}, last]})
        self.assertEqual([read["key"] for read in simulator.lines[0]["reads"]], ["a3", "a2"])
        self.assert_accepted(simulator)
        reads = simulator.lines[0]["reads"]
        self.assert_rejected(simulator, r"expected to read key 'a3', got key 'a2'",
                             self.changed(simulator, 0, reads=reads[::-1]))
        forward = {**last, "reverse": False}
        lines = self.changed(simulator, 0, then=simulator.lines[0]["then"][:2] + [forward])
        self.assert_rejected(simulator, r"expected to read key 'a1', got key 'a3'", lines)

    def test_phantom_in_a_range_guard(self):
        simulator = Simulator({"a1": 1})
        unchanged = {"is": "range_unchanged", "from": "a", "to": "b", "version": 1, "when_false": "fail"}
        simulator.run({"then": [put("a2", 2)]}, {"guards": [unchanged], "then": [put("c", 1)]})
        lines = self.changed(simulator, 1, outcome="COMMITTED", failed_guard=None, version=3)
        self.assert_rejected(simulator, r"expected GUARD_FAILED by guard 0, got COMMITTED", lines)

    def scan_line(self, simulator, reads, **more):
        template = {**simulator.lines[-1], "request": 1000, "rank": None, "version": None, "guards": [], "then": [],
                    "else": [], "invoke_us": simulator.now_us, "return_us": simulator.now_us + 1}
        return {**template, "scan": {"from": None, "to": None, "limit": 100}, "reads": reads, **more}

    def test_scan(self):
        simulator = Simulator({"a1": 1, "a3": 3})
        simulator.run({"then": [put("a2", 2)]})
        self.assert_accepted(simulator, [*simulator.lines, self.scan_line(simulator, simulator.final_state())])
        self.assert_rejected(simulator, r"expected 3 reads, got 2; the first one missing is key 'a3'",
                             [*simulator.lines, self.scan_line(simulator, simulator.final_state()[:2])])

    def test_later_page_keeps_its_boundary(self):
        simulator = Simulator({"a": 1, "b": 2})
        simulator.run({"then": [get("a")]})
        first = self.scan_line(simulator, simulator.final_state()[:1], scan={"from": None, "to": None, "limit": 1})
        second = self.scan_line(simulator, simulator.final_state()[1:], index=1)
        second["scan"] = {"from": "b", "to": None, "limit": 1}
        simulator.now_us += 10
        simulator.run({"then": [put("b", 3)]})
        second["invoke_us"] = second["return_us"] = simulator.now_us + 1
        self.assert_accepted(simulator, [*simulator.lines, first, second])

    def test_stale_boundary(self):
        """A scan that began after a write was acknowledged must show it."""
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        old = self.scan_line(simulator, simulator.final_state())
        simulator.run({"then": [put("a", 2)]})
        old.update(invoke_us=simulator.now_us + 1, return_us=simulator.now_us + 2)
        self.assert_rejected(simulator, r"returned at .* before line \d+ was invoked at", [*simulator.lines, old])

    def test_real_time_inversion(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]}, {"then": [get("a")]})
        lines = self.changed(simulator, 1, invoke_us=0, return_us=10)
        lines[0].update(invoke_us=20, return_us=30)  # stands first, but began when the other one had returned
        self.assert_rejected(simulator, r"returned at 10 us, before line 2 was invoked at 20 us", lines)

    def test_wrong_version(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [put("a", 2)]})
        simulator.run({"then": [put("a", 3)]})
        self.assert_rejected(simulator, r"version 2 is not greater than 2", self.changed(simulator, 1, version=2))

    def test_wrong_version_within_a_batch(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [put("a", 2)]}, {"then": [put("a", 3)]})
        lines = self.changed(simulator, 1, version=9)
        self.assert_rejected(simulator, r"version 9 at rank 1: batch 1 began at 2", lines)

    def test_version_without_a_write(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        self.assert_rejected(simulator, r"it wrote nothing, but has version 2", self.changed(simulator, 0, version=2))

    def test_wrong_failed_guard(self):
        simulator = Simulator({"a": 1, "b": 1})
        simulator.run({"guards": [at_least("a", 1), at_least("b", 5), at_least("a", 7)], "then": []})
        self.assert_rejected(simulator, r"expected GUARD_FAILED by guard 1, got GUARD_FAILED by guard 2",
                             self.changed(simulator, 0, failed_guard=2))

    def test_one_place_for_two(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]}, {"then": [get("a")]})
        lines = self.changed(simulator, 1, rank=0)
        self.assert_rejected(simulator, r"batch 1, rank 0 is also the place of line 2", lines)

    def test_stamps(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        simulator.run({"then": [get("a")]}, {"then": [get("a")]})
        self.assert_rejected(simulator, r"batch 2 has two stamps", self.changed(simulator, 2, batch_time_us=5000))
        self.assert_rejected(simulator, r"batch 1 has stamp|batch 2 has stamp .* before",
                             self.changed(simulator, 0, batch_time_us=99999))

    def test_admitted_after_it_finished(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        lines = self.changed(simulator, 0, admitted_batch=2)
        self.assert_rejected(simulator, r"admitted to batch 2, but finished in batch 1", lines)

    def unknown(self, simulator, index):
        """The history in which the answer of one transaction was lost."""
        return self.changed(simulator, index, outcome=None, error="UNAVAILABLE", batch=None, rank=None, version=None,
                            return_us=None, reads=[], batch_time_us=None)

    def test_unknown_that_ran_is_inconclusive(self):
        simulator = Simulator({"a": 1, "b": 1})
        simulator.run({"then": [add("a", 1)]})
        simulator.run({"then": [get("a")]})
        code, output = self.judge(simulator, self.unknown(simulator, 0))
        self.assertEqual(code, 2, output)

    def test_unknown_that_did_not_run(self):
        simulator = Simulator({"a": 1, "b": 1})
        simulator.run({"then": [get("a")]})
        never = {**self.unknown(simulator, 0)[0], "request": 77, "then": [add("a", 1)]}
        self.assert_accepted(simulator, [*simulator.lines, never])

    def test_a_refusal_is_never_run_only_where_it_says_so(self):
        simulator = Simulator({"a": 1, "b": 1})
        simulator.run({"then": [add("a", 1)]})
        simulator.run({"then": [get("a")]})
        lines = self.unknown(simulator, 0)
        lines[0]["error"] = "RESOURCE_EXHAUSTED"
        code, output = self.judge(simulator, lines)  # the read saw 2: it ran all the same
        self.assertEqual(code, 2, output)
        lines[0]["not_run"] = True
        code, output = self.judge(simulator, lines)
        self.assertEqual(code, 1, output)
        lines[0]["attempts"] = 2
        code, output = self.judge(simulator, lines)
        self.assertEqual(code, 2, output)

    def test_a_refusal_that_may_have_run_is_unknown(self):
        simulator = Simulator({"a": 1, "b": 1})
        simulator.run({"then": [add("a", 1)]})
        simulator.run({"then": [get("a")]})
        lines = self.unknown(simulator, 0)
        lines[0]["error"] = "INVALID_ARGUMENT"  # of the last sending; an earlier one may have run
        code, output = self.judge(simulator, lines)
        self.assertEqual(code, 1, output)
        lines[0]["not_run"] = False
        code, output = self.judge(simulator, lines)
        self.assertEqual(code, 2, output)

    def test_unknown_hides_nothing_elsewhere(self):
        simulator = Simulator({"a": 1, "b": 1})
        simulator.run({"then": [add("a", 1)]})
        simulator.run({"then": [get("b")]})
        lines = self.unknown(simulator, 0)
        lines[1]["reads"][0]["value"] = 5
        code, output = self.judge(simulator, lines)
        self.assertEqual(code, 1, output)
        self.assertIn("key 'b': expected 1, version 2; got 5", output)

    def test_malformed(self):
        simulator = Simulator({"a": 1})
        simulator.run({"then": [get("a")]})
        code, output = self.judge(simulator, [{"nonsense": 1}])
        self.assertEqual(code, 1)
        self.assertIn("line 2: not a transaction", output)


if __name__ == "__main__":
    unittest.main()
