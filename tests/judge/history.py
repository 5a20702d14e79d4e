"""History files: reading, and the places of their transactions in the one serial order.

A history (docs/history.md) is one JSON object a line: a header, then a transaction each. The file is mapped and read
twice. It is never held in memory as a whole: the first pass finds the place of each transaction, the second visits them
in that order. In memory are the places (with the names of those in sessions during the first pass, some 300 bytes for
each transaction), the initial pairs, and the lines without an answer.
Keys are str with one character per byte (so that they sort as bytes do); values are int, bytes, or None for absent.
"""

import base64
import bisect
import json
import mmap

FORMATS = ("kilokv-history-1", "kilokv-history-2")
OUTCOMES = {"COMMITTED", "GUARD_FAILED", "WAIT_EXPIRED", "OVERFLOW", "TYPE_MISMATCH"}
# Codes that say that the transaction was never run, if it was sent only once: docs/transactions.md, section 15.1.
# test_never_ran.py compares them with the page and with the client. The other codes say so only with `not_run`. For
# example, a stream whose answers are too much ends with RESOURCE_EXHAUSTED after its transactions ran. `not_run` false
# says that a sending may have run, whatever the code is.
NEVER_RUN = {"INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"}
AFTER_ALL = 1 << 62  # rank of a boundary read: after all of its batch
INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1


class Malformed(Exception):
    """The file is not a history."""


def to_key(field):
    if type(field) is str:
        return field
    if type(field) is dict and type(field.get("b64")) is str:
        return base64.b64decode(field["b64"], validate=True).decode("latin-1")
    raise Malformed(f"not a key: {field!r}")


def to_value(field):
    if field is None or (type(field) is int and INT_MIN <= field <= INT_MAX):
        return field
    if type(field) is dict and type(field.get("b64")) is str:
        return base64.b64decode(field["b64"], validate=True)
    raise Malformed(f"not a value: {field!r}")


def to_bound(field):
    return "" if field is None else to_key(field)


def can_wait(line):
    return any(guard.get("when_false") == "wait" for guard in line["guards"])


def may_be_parked(line):
    return can_wait(line) and line.get("wait_timeout_ms", 0) > 0


def show(value):
    return "absent" if value is None else repr(value)


def pairs_of(items):
    """A list of {"key", "value", "version"} as a dict key -> (value, version)."""
    pairs = {}
    for item in items:
        key = to_key(item["key"])
        if key in pairs:
            raise Malformed(f"key {key!r} is listed twice")
        if type(item["version"]) is not int or item["value"] is None:
            raise Malformed(f"a pair needs a value and a version: {item!r}")
        pairs[key] = (to_value(item["value"]), item["version"])
    return pairs


def expiry_line(write):
    """The line of a history for a delete of an expired key, from what `kilokv --output json watch` prints of it."""
    return {"origin": "expiry", "session": None, "request": None, "index": None, "attempts": 0, "invoke_us": None,
            "return_us": None, "precedence": 0, "wait_timeout_ms": 0, "guards": [], "else": [], "reads": [],
            "then": [{"op": "delete", "key": write["key"]}], "outcome": "COMMITTED", "version": write["version"],
            "batch": write["batch"], "rank": write["rank"], "admitted_batch": write["batch"],
            "batch_time_us": write["batch_time_us"]}


def read_final_state(path):
    """The pairs of a scan over everything, and when keys expire: JSON lines with key, value and version."""
    with open(path, encoding="utf-8") as lines:
        items = [item for item in map(json.loads, lines) if "key" in item]
    return pairs_of(items), expiries_of(items)


def expiries_of(items):
    return {to_key(item["key"]): item["expires_at_us"] for item in items if item.get("expires_at_us")}


class History:
    """The header, the answered transactions by place, and the unanswered ones.

    header    the first line
    places    sorted list of (batch, rank, line number, offset in the file)
    times     batch number -> stamp in microseconds
    sizes     batch number -> how many transactions of it are known; it may have had more
    versions  batch number -> version of its rank 0, where a transaction of it wrote
    unknown   transactions that may or may not have run
    problems  what is wrong without replaying: (line number, message)
    """

    def __init__(self, path):
        self.places, self.times, self.versions, self.unknown, self.problems = [], {}, {}, [], []
        self.sizes = {}
        self.transactions = 0
        self.scan_invoke_us = {}
        self._known_batches = None
        self._file = open(path, "rb")
        self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.header = json.loads(self._map.readline())
            assert self.header["format"] in FORMATS
        except (ValueError, KeyError, TypeError, AssertionError):
            raise Malformed(f"line 1: expected a header with format {' or '.join(FORMATS)}") from None
        self.initial = pairs_of(self.header["initial"])
        self.initial_expiries = expiries_of(self.header["initial"])
        self._find_places()
        self.places.sort()
        self._check_places()

    def _find_places(self):
        seen = {}
        number = 1
        while True:
            offset = self._map.tell()
            line = self._map.readline()
            if not line:
                return
            number += 1
            try:
                self._place(number, offset, json.loads(line), seen)
            except (ValueError, KeyError, TypeError, Malformed) as error:
                raise Malformed(f"line {number}: not a transaction: {error!r}") from None

    def _place(self, number, offset, line, seen):
        self.transactions += 1
        outcome = line["outcome"]
        cancelled = line.get("cancelled", False)
        if line["session"] and (outcome is not None or cancelled):
            name = (line["request"], line["index"])
            first = seen.setdefault(line["session"], {}).setdefault(name, number)
            if first != number:
                self.problems.append((number, f"request {name[0]}, index {name[1]} was answered in line {first}, too"))
        if cancelled:  # decided, wrote nothing, has no place
            return
        if outcome is None:
            not_run = line.get("not_run")
            refused = line.get("error") in NEVER_RUN if not_run is None else not_run is True
            if not refused or line["attempts"] > 1:
                self.unknown.append(line)
            return
        if outcome not in OUTCOMES:
            raise Malformed(f"outcome {outcome!r}")
        batch, rank, time_us = line["batch"], line["rank"], line["batch_time_us"]
        if not (type(batch) is int and type(time_us) is int and (rank is None or type(rank) is int)):
            raise Malformed("batch, rank and batch_time_us are integers")
        if line["admitted_batch"] > batch:
            self.problems.append((number, f"admitted to batch {line['admitted_batch']}, but finished in batch {batch}"))
        if rank is not None:
            self.sizes[batch] = self.sizes.get(batch, 0) + 1
            if line["admitted_batch"] < batch and not may_be_parked(line):
                self.problems.append((number, f"decided in batch {batch}, but it may not wait beyond its first one, "
                                      f"{line['admitted_batch']}"))
        if self.times.setdefault(batch, time_us) != time_us:
            self.problems.append((number, f"batch {batch} has two stamps: {self.times[batch]} and {time_us}"))
        if line["version"] is not None:
            first = self.versions.setdefault(batch, line["version"] - rank)
            if first + rank != line["version"]:
                self.problems.append(
                    (number, f"version {line['version']} at rank {rank}: batch {batch} began at {first}"))
        if line.get("scan") is not None:
            # Further pages keep the boundary of the first one: the scan began when its first page was asked for.
            scan = (line["session"], line["request"], batch)
            self.scan_invoke_us[scan] = min(line["invoke_us"], self.scan_invoke_us.get(scan, line["invoke_us"]))
        self.places.append((batch, AFTER_ALL if rank is None else rank, number, offset))

    def _check_places(self):
        last_batch, last_rank, last_number, last_time = 0, -1, 0, None
        for batch, rank, number, _ in self.places:
            if (batch, rank) == (last_batch, last_rank) and rank != AFTER_ALL:
                self.problems.append((number, f"batch {batch}, rank {rank} is also the place of line {last_number}"))
            if batch != last_batch:
                if last_time is not None and self.times[batch] < last_time:
                    self.problems.append((number, f"batch {batch} has stamp {self.times[batch]}, before {last_time}, "
                                          f"that of batch {last_batch}"))
                last_time = self.times[batch]
            last_batch, last_rank, last_number = batch, rank, number

    def in_order(self):
        """Visits (line number, transaction) in the serial order."""
        for _, _, number, offset in self.places:
            self._map.seek(offset)
            yield number, json.loads(self._map.readline())

    def stamp_at_least(self, batch):
        """A lower bound of the stamp of `batch`: that of the last known batch up to it; None if there is none."""
        if batch in self.times:
            return self.times[batch]
        if self._known_batches is None:
            self._known_batches = sorted(self.times)
        at = bisect.bisect_right(self._known_batches, batch)
        return self.times[self._known_batches[at - 1]] if at else None
