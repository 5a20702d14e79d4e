"""The data model as the contract defines it: state, guards, operations. Nothing here is taken from the engine."""

import bisect

from history import INT_MAX, INT_MIN, to_bound, to_key, to_value


class Undone(Exception):
    """The transaction is undone as a whole; args: the outcome, then the field that names the cause, and its index."""


class VersionUnknown(Exception):
    """The commit version is needed, and nothing in the history tells it."""


class State:
    """Every key that was ever written: key -> (value, version); a deleted key has value None and keeps its version.

    `expiries`: key -> when it expires, of the keys that expire."""

    def __init__(self, pairs, expiries=()):
        self.cells = dict(pairs)
        self.expiries = dict(expiries)
        self._sorted = None  # keys in order, made when the first range is asked for

    def get(self, key):
        return self.cells.get(key, (None, 0))

    def put(self, key, value, version):
        if self._sorted is not None and key not in self.cells:
            bisect.insort(self._sorted, key)
        self.cells[key] = (value, version)

    def set_expiry(self, key, expires_us):
        """None: the key does not expire."""
        if expires_us is None:
            self.expiries.pop(key, None)
        else:
            self.expiries[key] = expires_us

    def keys(self, begin, end):
        """Keys of [begin, end) in order, deleted ones included. An empty end: no upper bound."""
        if self._sorted is None:
            self._sorted = sorted(self.cells)
        at = bisect.bisect_left(self._sorted, begin)
        while at < len(self._sorted) and not (end and self._sorted[at] >= end):
            yield self._sorted[at]
            at += 1


def integer(value):
    if value is None:
        return 0
    if type(value) is bytes:
        raise Undone("TYPE_MISMATCH")
    return value


def in_range(number):
    if not INT_MIN <= number <= INT_MAX:
        raise Undone("OVERFLOW")
    return number


COMPARES = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}


def holds(guard, state, batch_time_us):
    kind = guard["is"]
    if kind in ("time_before", "time_after"):
        has_key = guard.get("key") is not None
        time_us = integer(state.get(to_key(guard["key"]))[0]) if has_key else guard["time_us"]
        return batch_time_us < time_us if kind == "time_before" else batch_time_us >= time_us
    if kind == "range_unchanged":
        limit = guard["version"]
        return all(state.cells[key][1] <= limit for key in state.keys(to_bound(guard["from"]), to_bound(guard["to"])))
    value, version = state.get(to_key(guard["key"]))
    if kind in COMPARES:
        left = integer(value)
        right = integer(state.get(to_key(guard["other"]))[0]) if guard.get("other") is not None else guard["value"]
        return COMPARES[kind](left, right)
    if kind == "exists":
        return value is not None
    if kind == "absent":
        return value is None
    if kind == "version":
        return version == guard["version"]
    if kind == "unchanged":
        return version <= guard["version"]
    if kind == "bytes_eq":
        if type(value) is int:
            raise Undone("TYPE_MISMATCH")
        return value is not None and value == to_value(guard["value"])
    raise KeyError(kind)


def first_false(guards, state, batch_time_us):
    """Index of the deciding guard, or None when all hold."""
    for index, guard in enumerate(guards):
        try:
            if not holds(guard, state, batch_time_us):
                return index
        except Undone as undone:
            raise Undone(undone.args[0], "failed_guard", index) from None
    return None


class Execution:
    """One list of operations over a state. `writes`: key -> value; `reads`: (key, value, version or None if own).
    `expiries`: key -> when it expires, or None, of the keys whose expiry the list sets or clears."""

    def __init__(self, state, version, batch_time_us):
        self.state, self.version, self.batch_time_us = state, version, batch_time_us
        self.writes, self.reads, self.expiries = {}, [], {}
        self._gets = {}  # index of the operation -> value read

    def run(self, operations):
        for index, operation in enumerate(operations):
            try:
                getattr(self, "_" + operation["op"])(index, operation)
            except Undone as undone:
                raise Undone(undone.args[0], "failed_operation", index) from None

    def _look(self, key):
        return (self.writes[key], None) if key in self.writes else self.state.get(key)

    def _operand(self, field):
        if type(field) is dict:
            if "get" in field:
                value = self._gets[field["get"]]
                return in_range(-integer(value)) if field.get("negate") and value is not None else value
            if field.get("batch_time"):
                return self.batch_time_us
            if field.get("commit_version"):
                if self.version is None:
                    raise VersionUnknown
                return self.version
        return to_value(field)

    def _get(self, index, operation):
        key = to_key(operation["key"])
        value, version = self._look(key)
        self._gets[index] = value
        self.reads.append((key, value, version))

    def _expiry(self, operation):
        if "ttl_us" in operation:
            return min(self.batch_time_us + operation["ttl_us"], INT_MAX)
        return operation.get("expires_at_us")

    def _put(self, _, operation):
        value = self._operand(operation["value"])
        if value is None:
            self._delete(_, operation)
        else:
            key = to_key(operation["key"])
            self.writes[key] = value
            self.expiries[key] = self._expiry(operation)

    def _delete(self, _, operation):
        key = to_key(operation["key"])
        if self._look(key)[0] is not None:
            self.writes[key] = self.expiries[key] = None

    def _add(self, _, operation):
        key = to_key(operation["key"])
        delta = self._operand(operation["delta"])  # before the key: if both are wrong, the operand decides
        self.writes[key] = in_range(integer(delta) + integer(self._look(key)[0]))
        if self._expiry(operation) is not None:
            self.expiries[key] = self._expiry(operation)

    def live(self, begin, end, limit):
        """The first `limit` pairs of [begin, end), own writes included. None: all pairs."""
        own = sorted(key for key in self.writes if begin <= key and not (end and key >= end))
        known = self.state.keys(begin, end)
        pairs = []
        for key in merge(known, own):
            if len(pairs) == limit:
                break
            value, version = self._look(key)
            if value is not None:
                pairs.append((key, value, version))
        return pairs

    def _range_get(self, _, operation):
        begin, end, limit = to_bound(operation["from"]), to_bound(operation["to"]), operation["limit"]
        if operation.get("reverse"):
            self.reads += self.live(begin, end, None)[::-1][:limit]
        else:
            self.reads += self.live(begin, end, limit)

    def _delete_range(self, _, operation):
        for key, _, _ in self.live(to_bound(operation["from"]), to_bound(operation["to"]), operation["limit"]):
            self.writes[key] = self.expiries[key] = None


def merge(known, own):
    """Two ascending sequences as one, without repetition."""
    at = 0
    for key in known:
        while at < len(own) and own[at] < key:
            yield own[at]
            at += 1
        if at < len(own) and own[at] == key:
            at += 1
        yield key
    yield from own[at:]
