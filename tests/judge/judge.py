#!/usr/bin/env python3
"""Judges a history: is there one serial order of the transactions that explains every answer that clients got?

The service names the order itself: every answer carries its place (batch, rank). The judge replays all transactions
one by one at their places, over the state before the run, and compares outcomes, deciding guards, reads, ranges and
versions; it checks that the order agrees with real time (what returned before another began stands before it), that
nothing was applied twice, that versions follow the order, that no wait was given up too early, and that the state that
was found at the end is the one that the replay leaves. It shares no code with the engine.

A transaction without an answer may or may not have run. The judge assumes that it did not; what contradicts that on
keys which such a transaction may have reached is reported as inconclusive, everything else as a violation.

The rules are those of docs/transactions.md, section 16.

Limits: versions of deleted keys are taken to be remembered for the whole run (shorter than --tombstone-retention).
Exit codes: 0 accepted, 1 violations, 2 inconclusive.
"""

import argparse
import sys
import time

from history import History, Malformed, can_wait, read_final_state, show, to_bound, to_key, to_value
from model import Execution, State, Undone, VersionUnknown, first_false
from taint import Taint

ENOUGH = 10  # violations, then the judge stops
PASSES_MAX = 16  # of a batch


class Judge:
    def __init__(self, history):
        self.history = history
        self.state = State(history.initial, history.initial_expiries)
        self.violations = []
        self.inconclusive = []
        self.tainted = Taint(history.unknown)
        self._last_version = max((version for _, version in history.initial.values()), default=0)
        self._place = None
        self._batch = None
        self._undo = []  # of the batch at hand: (rank, key, the cell before), in order
        self._class = (0, 0)  # of its transactions that never wait: the highest precedence so far, and its line
        self._cause = None  # why the transaction at hand was undone: field and index
        self._expires = False  # a WAIT guard of the transaction at hand is false at its place
        self._latest_here = self._latest_before = (-1, 0)  # latest invocation at, and before, _place; and its line

    def judge(self, final_state=None):
        for number, message in self.history.problems:
            self.report(number, (), message)
        for number, line in self.history.in_order():
            if len(self.violations) >= ENOUGH:
                return
            try:
                self._transaction(number, line)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise Malformed(f"line {number}: not a transaction: {error!r}") from None
        if final_state is not None:
            self._compare_final(*final_state)

    def report(self, number, keys, message):
        where = f"line {number}: " if number else ""
        (self.inconclusive if self.tainted.reaches(keys) else self.violations).append(where + message)

    def _transaction(self, number, line):
        self._check_real_time(number, line)
        if line.get("scan") is not None:
            self._scan(number, line)
            return
        touched = self.tainted.spread(line)
        self._enter_batch(line["batch"])
        self._check_version(number, line["version"])
        self._check_precedence(number, line)
        self._check_expiry(number, line)
        expected, failed, execution = self._replay(line)
        reported = line["failed_guard"] if line["outcome"] in ("GUARD_FAILED", "WAIT_EXPIRED") else None
        if self._was_cut_off(line):
            expected, failed, execution = "WAIT_EXPIRED", reported, Execution(self.state, None, 0)
        if (line["outcome"], reported) != (expected, failed):
            got = name(line["outcome"], reported)
            self.report(number, touched, f"expected {name(expected, failed)}, got {got}{self._explain(line, failed)}")
            execution = self._believe(line)
        else:
            if expected != "WAIT_EXPIRED":
                self._check_cause(number, touched, line)
            if self._expires or expected == "WAIT_EXPIRED":
                self._check_deadline(number, line)
        self._compare_reads(number, line, execution.reads)
        wrote = bool(execution.writes)
        if wrote != (line["version"] is not None):
            what = "something" if wrote else "nothing"
            self.report(number, touched, f"it wrote {what}, but has version {line['version']}")
        for key, value in execution.writes.items():
            self._undo.append((line["rank"], key, self.state.get(key)))
            self.state.put(key, value, line["version"] or 0)
        for key, expires_us in execution.expiries.items():
            self.state.set_expiry(key, expires_us)

    def _check_expiry(self, number, line):
        """The server deletes a key by itself only if the key has an expiry, and the stamp has reached it."""
        if line.get("origin") != "expiry":
            return
        for operation in line["then"]:
            key = to_key(operation["key"])
            expires_us, value = self.state.expiries.get(key), self.state.get(key)[0]
            if value is None or expires_us is None:
                what = "is absent" if value is None else "does not expire"
                self.report(number, (key,), f"key {key!r} was deleted because it had expired, but it {what} here")
            elif line["batch_time_us"] < expires_us:
                self.report(number, (key,), f"key {key!r} was deleted because it had expired, "
                            f"{expires_us - line['batch_time_us']} us before its time")

    def _enter_batch(self, batch):
        if batch != self._batch:
            self._batch, self._undo, self._class = batch, [], (0, 0)

    def _check_precedence(self, number, line):
        """Those that cannot wait are decided in pass 0, one precedence class after another."""
        if can_wait(line):
            return
        precedence = line.get("precedence", 0)
        if precedence < self._class[0]:
            self.report(number, (), f"precedence {precedence} stands after precedence {self._class[0]} of line "
                        f"{self._class[1]} in one pass")
        self._class = max(self._class, (precedence, number))

    def _was_cut_off(self, line):
        """Whether it was left when the last pass that a batch may have was done, though its guards hold at its place.

        Its rank is PASSES_MAX x n + position, so that its last try, in the last pass, was at rank - n. How many
        transactions the batch had, n, is not known: any that agrees with the rank will do.
        """
        if line["outcome"] != "WAIT_EXPIRED" or first_false_of(line, self.state) == line["failed_guard"]:
            return False
        if line.get("expire_runs_else"):  # its last try is at its place, in the pass of last tries
            return False
        rank, after = line["rank"], {}
        undo = list(self._undo)
        found = False
        for size in range(max(rank // (PASSES_MAX + 1) + 1, self.history.sizes[line["batch"]]), rank // PASSES_MAX + 1):
            while undo and undo[-1][0] > rank - size:
                _, key, before = undo.pop()
                after.setdefault(key, self.state.get(key))
                self.state.put(key, *before)
            failed = first_false_of(line, self.state)
            found = failed == line["failed_guard"] and line["guards"][failed].get("when_false") == "wait"
            if found:
                break
        for key, cell in after.items():
            self.state.put(key, *cell)
        return found

    def _check_cause(self, number, touched, line):
        """Of what was undone: the guard or operation that it names, where the line tells."""
        for field in ("failed_guard", "failed_operation"):
            got = line.get(field)
            if self._cause and got is not None and (field, got) != self._cause:
                expected = "{} {}".format(*self._cause)
                self.report(number, touched, f"{line['outcome']} by {expected} is expected, not by {field} {got}")

    def _replay(self, line):
        """What the transaction must answer at this place: outcome, failed guard, and its execution."""
        execution = Execution(self.state, self._version_at(line), line["batch_time_us"])
        self._cause, self._expires = None, False
        try:
            failed = first_false(line["guards"], self.state, line["batch_time_us"])
            if failed is None:
                execution.run(line["then"])
                return "COMMITTED", None, execution
            self._expires = line["guards"][failed].get("when_false", "fail") == "wait"
            if not self._expires or line.get("expire_runs_else"):
                execution.run(line["else"])
            return "WAIT_EXPIRED" if self._expires else "GUARD_FAILED", failed, execution
        except Undone as undone:
            self._cause = undone.args[1:]
            return undone.args[0], None, Execution(self.state, None, 0)
        except VersionUnknown:  # nobody in its batch wrote, so it was undone; why, cannot be told
            expected = line["outcome"] if line["outcome"] in ("OVERFLOW", "TYPE_MISMATCH") else "OVERFLOW"
            return expected, None, Execution(self.state, None, 0)

    def _version_at(self, line):
        """The commit version that belongs to the place of the transaction, or None if nobody in its batch wrote."""
        first = self.history.versions.get(line["batch"])
        return None if first is None else first + line["rank"]

    def _believe(self, line):
        """After a violation: the execution that the reported outcome would have had, so that one error is not many."""
        execution = Execution(self.state, line["version"], line["batch_time_us"])
        try:
            if line["outcome"] == "COMMITTED":
                execution.run(line["then"])
            elif line["outcome"] == "GUARD_FAILED" or (line["outcome"] == "WAIT_EXPIRED" and
                                                       line.get("expire_runs_else")):
                execution.run(line["else"])
        except (Undone, VersionUnknown):
            pass
        return execution

    def _explain(self, line, failed):
        """The keys of the guard that decides here, and of the one that was reported."""
        parts = []
        for index in sorted({failed, line.get("failed_guard")} - {None}):
            if index < len(line["guards"]) and line["guards"][index].get("key") is not None:
                key = to_key(line["guards"][index]["key"])
                value, version = self.state.get(key)
                parts.append(f"guard {index}: key {key!r} is {show(value)}, version {version}, here")
        return "; " + "; ".join(parts) if parts else ""

    def _compare_reads(self, number, line, expected):
        if line.get("reads_dropped"):
            return
        got = [(to_key(read["key"]), to_value(read["value"]), read["version"]) for read in line["reads"]]
        if got == expected:
            return
        for (key, value, version), (got_key, got_value, got_version) in zip(expected, got):
            if key != got_key:
                self.report(number, (key, got_key), f"expected to read key {key!r}, got key {got_key!r}")
                return
            if (value, version) != (got_value, got_version) or type(value) is not type(got_value):
                self.report(number, (key,), f"key {key!r}: expected {show(value)}, version {version}; "
                            f"got {show(got_value)}, version {got_version}")
                if version is not None and got_version is not None:
                    self.state.put(key, got_value, got_version)  # one error is not many
        if len(got) != len(expected):
            rest = got[len(expected):] or expected[len(got):]
            what = "too many" if len(got) > len(expected) else "missing"
            self.report(number, [key for key, _, _ in rest],
                        f"expected {len(expected)} reads, got {len(got)}; the first one {what} is key {rest[0][0]!r}")

    def _scan(self, number, line):
        scan = line["scan"]
        execution = Execution(self.state, None, line["batch_time_us"])
        limit = scan.get("limit") or None
        self._compare_reads(number, line, execution.live(to_bound(scan.get("from")), to_bound(scan.get("to")), limit))

    def _check_version(self, number, version):
        if version is not None:
            if version <= self._last_version:
                self.report(number, (), f"version {version} is not greater than {self._last_version} before it")
            self._last_version = max(version, self._last_version)

    def _check_deadline(self, number, line):
        admitted = self.history.stamp_at_least(line["admitted_batch"])
        timeout_ms = line.get("wait_timeout_ms", 0)
        if admitted is not None and line["batch_time_us"] < admitted + timeout_ms * 1000:
            waited = line["batch_time_us"] - admitted
            self.report(number, (), f"gave up waiting {waited} us after it was admitted; its time is {timeout_ms} ms")

    def _check_real_time(self, number, line):
        invoke, returned = line["invoke_us"], line["return_us"]
        if line.get("scan") is not None:
            invoke = self.history.scan_invoke_us[(line["session"], line["request"], line["batch"])]
        place = (line["batch"], line["rank"])
        if place != self._place:  # boundary reads share a place: no order is claimed among them
            self._latest_before, self._latest_here = max(self._latest_before, self._latest_here), (-1, 0)
            self._place = place
        if returned is not None and returned < self._latest_before[0]:
            self.report(number, (), f"returned at {returned} us, before line {self._latest_before[1]} was invoked at "
                        f"{self._latest_before[0]} us, but stands after it in the order")
        if invoke is not None:  # nobody sends an expiry
            self._latest_here = max(self._latest_here, (invoke, number))

    def _compare_final(self, final, final_expiries):
        expected = {key: cell for key, cell in self.state.cells.items() if cell[0] is not None}
        for key in sorted(expected.keys() | final.keys()):
            value, version = expected.get(key, (None, self.state.get(key)[1]))
            got_value, got_version = final.get(key, (None, version))
            if (value, version) != (got_value, got_version) or type(value) is not type(got_value):
                self.report(0, (key,), f"final state, key {key!r}: expected {show(value)}, version {version}; "
                            f"got {show(got_value)}, version {got_version}")
            elif self.state.expiries.get(key) != final_expiries.get(key):
                self.report(0, (key,), f"final state, key {key!r}: expected to expire at {self.state.expiries.get(key)}, got "
                            f"{final_expiries.get(key)}")
            if len(self.violations) >= ENOUGH:
                return


def first_false_of(line, state):
    """Index of the guard that decides; None when all hold, or one meets the wrong type."""
    try:
        return first_false(line["guards"], state, line["batch_time_us"])
    except Undone:
        return None


def name(outcome, failed):
    return outcome if failed is None else f"{outcome} by guard {failed}"


def parse_arguments():
    parser = argparse.ArgumentParser(description="Judges a history file: strict serializability by replay.")
    parser.add_argument("history", help="file written by kilokv-bench --history or kilokv txn")
    parser.add_argument("--final-state", metavar="FILE", help="pairs found at the end: kilokv scan --output json")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    begin = time.monotonic()
    try:
        history = History(arguments.history)
        judge = Judge(history)
        judge.judge(read_final_state(arguments.final_state) if arguments.final_state else None)
    except (Malformed, ValueError, OSError) as error:
        print(f"REJECTED: {arguments.history}: {error}")
        return 1
    for message in judge.violations:
        print(f"VIOLATION: {message}")
    for message in judge.inconclusive[:ENOUGH]:
        print(f"INCONCLUSIVE: {message}")
    verdict = "REJECTED" if judge.violations else "INCONCLUSIVE" if judge.inconclusive else "ACCEPTED"
    final = "final state compared" if arguments.final_state else "no final state"
    print(f"{verdict}: {history.transactions} transactions, {len(history.times)} batches, "
          f"{len(history.unknown)} of unknown fate, {final}, {time.monotonic() - begin:.1f} s")
    return 1 if judge.violations else 2 if judge.inconclusive else 0


if __name__ == "__main__":
    sys.exit(main())
