"""A small database that answers as the contract says, one batch after another, and writes the history of it.

For the judge's own tests: what it writes is valid by construction (batch semantics executed literally).
"""

import random

from history import expiry_line


class Simulator:
    """`lines` is the history so far; `pairs` the state: key -> (value, version), deleted keys with value None."""

    def __init__(self, initial=()):
        self.pairs = {key: (value, index + 1) for index, (key, value) in enumerate(dict(initial).items())}
        self.header = {"format": "kilokv-history-2", "config": {},
                       "initial": [{"key": k, "value": wire(v), "version": n} for k, (v, n) in self.pairs.items()]}
        self.lines, self.parked = [], []
        self.now_us, self.batch, self.next_version, self.requests = 0, 0, len(self.pairs) + 1, 0
        self.expiries = {}

    def final_state(self):
        return [{"key": key, "value": wire(value), "version": version,
                 **({"expires_at_us": self.expiries[key]} if self.expiries.get(key) else {})}
                for key, (value, version) in sorted(self.pairs.items()) if value is not None]

    def run(self, *transactions, advance_us=1000):
        """One batch of these and of what is parked. Returns the lines of those that finished."""
        self.batch += 1
        invoke_us = self.now_us
        self.now_us += advance_us
        for transaction in transactions:
            self.requests += 1
            self.parked.append({
                "session": "00", "request": self.requests, "index": 0, "attempts": 1, "invoke_us": invoke_us,
                "return_us": None, "precedence": 0, "wait_timeout_ms": 0, "guards": [], "then": [], "else": [],
                "outcome": None, "failed_guard": None, "version": None, "batch": self.batch, "rank": None,
                "admitted_batch": self.batch, "batch_time_us": self.now_us, "reads": [],
                "_deadline_us": self.now_us + transaction.get("wait_timeout_ms", 0) * 1000, **transaction})
        finished = self._passes(sorted(self.parked, key=lambda line: line["precedence"]))
        self.now_us += advance_us
        for line in finished:
            line.update(batch=self.batch, return_us=self.now_us, batch_time_us=self.now_us - advance_us)
            self.lines.append({name: field for name, field in line.items() if name[0] != "_"})
        self.parked = [line for line in self.parked if line not in finished]
        return self.lines[len(self.lines) - len(finished):]

    def expire(self):
        """A batch that deletes what is due."""
        due = sorted((time_us, key) for key, time_us in self.expiries.items() if time_us <= self.now_us)
        if not due:
            return
        self.batch += 1
        for rank, (_, key) in enumerate(due):
            version = self.next_version + rank
            self.pairs[key] = (None, version)
            del self.expiries[key]
            self.lines.append(expiry_line({"key": key, "version": version, "batch": self.batch, "rank": rank,
                                           "batch_time_us": self.now_us}))
        self.next_version += len(due)

    def _passes(self, batch):
        finished, waiting, passes = [], list(enumerate(batch)), 0
        progress = True
        while progress and waiting and passes < 16:
            still = [(p, line) for p, line in waiting if not self._decide(line, passes * len(batch) + p)]
            finished += [line for _, line in waiting if line["rank"] is not None]
            progress, waiting, passes = len(still) < len(waiting), still, passes + 1
        last_tries = [(position, line) for position, line in waiting if line["_deadline_us"] <= self.now_us]
        one_more = any(line.get("expire_runs_else") for _, line in last_tries)
        for position, line in last_tries:
            rank = passes * len(batch) + position
            if not one_more or not self._decide(line, rank, last_try=bool(line.get("expire_runs_else"))):
                line.update(outcome="WAIT_EXPIRED", rank=rank)
            finished.append(line)
        for _, line in waiting:
            if line["outcome"] is None:
                line.update(failed_guard=None)
        self.next_version += (passes + one_more) * len(batch)
        return finished

    def _decide(self, line, rank, last_try=False):
        """Runs it. False: it has to wait. On its last try its else-operations run instead."""
        version = self.next_version + rank
        try:
            false = next((i for i, guard in enumerate(line["guards"]) if not self._true(guard)), None)
            waits = false is not None and line["guards"][false]["when_false"] == "wait"
            if waits and not last_try:
                line["failed_guard"] = false
                return False
            reads, writes, expiries = self._apply(line["then" if false is None else "else"], version)
            outcome = "COMMITTED" if false is None else "WAIT_EXPIRED" if waits else "GUARD_FAILED"
            line.update(outcome=outcome, failed_guard=false, reads=reads)
            line["version"] = version if writes else None
            self.pairs.update((key, (value, version)) for key, value in writes.items())
            self.expiries.update(expiries)
            self.expiries = {key: time_us for key, time_us in self.expiries.items() if time_us is not None}
        except OverflowError:
            line.update(outcome="OVERFLOW", failed_guard=None)
        except TypeError:
            line.update(outcome="TYPE_MISMATCH", failed_guard=None)
        line["rank"] = rank
        return True

    def _true(self, guard):
        kind = guard["is"]
        if kind == "range_unchanged":
            inside = [version for key, (_, version) in self.pairs.items() if guard["from"] <= key < guard["to"]]
            return max(inside, default=0) <= guard["version"]
        if kind in ("time_before", "time_after"):
            time_us = guard["time_us"] if "time_us" in guard else number(self.pairs.get(guard["key"], (None, 0))[0])
            return (self.now_us >= time_us) == (kind == "time_after")
        value, version = self.pairs.get(guard["key"], (None, 0))
        if kind in ("exists", "absent"):
            return (value is None) == (kind == "absent")
        if kind in ("version", "unchanged"):
            return version == guard["version"] or (kind == "unchanged" and version < guard["version"])
        if kind == "bytes_eq":
            if isinstance(value, int):
                raise TypeError
            return wire(value) == guard["value"]
        other = number(self.pairs.get(guard["other"], (None, 0))[0]) if "other" in guard else guard["value"]
        value = number(value)
        return {"eq": value == other, "ne": value != other, "lt": value < other, "le": value <= other,
                "gt": value > other, "ge": value >= other}[kind]

    def _apply(self, operations, version):
        reads, writes, gets, expiries = [], {}, {}, {}
        for index, operation in enumerate(operations):
            view = {**self.pairs, **{key: (value, None) for key, value in writes.items()}}
            if operation["op"] in ("range_get", "delete_range"):
                begin, end = operation["from"], operation["to"]
                keys = sorted(key for key, (value, _) in view.items() if value is not None and begin <= key < end)
                if operation.get("reverse"):
                    keys.reverse()
                for key in keys[:operation["limit"]]:
                    if operation["op"] == "delete_range":
                        writes[key] = expiries[key] = None
                    else:
                        reads.append({"key": key, "value": wire(view[key][0]), "version": view[key][1]})
                continue
            key = operation["key"]
            value, seen = view.get(key, (None, 0))
            if operation["op"] == "get":
                gets[index] = value
                reads.append({"key": key, "value": wire(value), "version": seen})
                continue
            operand = operation.get("value", operation.get("delta"))
            if isinstance(operand, dict) and "get" in operand:
                operand = gets[operand["get"]]
                if operation.get("value", operation.get("delta")).get("negate") and operand is not None:
                    operand = bounded(-number(operand))
            elif isinstance(operand, dict):
                inputs = {"commit_version": version, "batch_time": self.now_us}
                operand = next((inputs[name] for name in operand if name in inputs), None) or Bytes(operand["b64"])
            expiry = self.now_us + operation["ttl_us"] if "ttl_us" in operation else operation.get("expires_at_us")
            if operation["op"] == "add":
                writes[key] = bounded(number(operand) + number(value))
                if expiry is not None:
                    expiries[key] = expiry
            elif operation["op"] == "put" and operand is not None:
                writes[key], expiries[key] = operand, expiry
            elif value is not None:
                writes[key] = expiries[key] = None
        return reads, writes, expiries


class Bytes(str):
    """A byte value, by its base64 text."""


def wire(value):
    return {"b64": str(value)} if isinstance(value, Bytes) else value


def number(value):
    if isinstance(value, Bytes):
        raise TypeError
    return value or 0


def bounded(value):
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError
    return value


def random_transaction(rng, keys, now_us=0, ahead_us=100000, life_us=40000, waits_ms=(0, 3, 10)):
    """Any guards and operations, over few keys, so that they meet. A guard compares the stamp with a time from `now_us` on, at
    most `ahead_us` later, and a key lives for at most `life_us`."""
    def key():
        return rng.choice(keys)

    def bounds():
        a, b = sorted(rng.sample(keys, 2))
        return {"from": a, "to": b}

    def guard():
        kind = rng.choice(["exists", "absent", "eq", "ne", "lt", "le", "gt", "ge", "version", "unchanged", "bytes_eq",
                           "range_unchanged", "time_before", "time_after"])
        fields = bounds() if kind == "range_unchanged" else {"key": key()}
        if kind in ("version", "unchanged", "range_unchanged"):
            fields["version"] = rng.choice([0, rng.randrange(2000)])
        elif kind == "bytes_eq":
            fields["value"] = {"b64": rng.choice(["YQ==", "Yg=="])}
        elif kind in ("eq", "ne", "lt", "le", "gt", "ge"):
            fields.update({"other": key()} if rng.random() < 0.3 else {"value": rng.randrange(-5, 20)})
        elif kind in ("time_before", "time_after") and rng.random() < 0.6:
            fields = {"time_us": now_us + rng.randrange(ahead_us)}
        when_false = "fail" if kind == "time_before" else rng.choice(["fail", "fail", "wait"])
        return {**fields, "is": kind, "when_false": when_false}

    def operand(gets):
        choice = rng.randrange(8)
        if choice == 0 and gets:
            return {"get": rng.choice(gets), **({"negate": True} if rng.random() < 0.5 else {})}
        special = {1: {"commit_version": True}, 2: {"batch_time": True}, 3: (1 << 63) - 1}
        return special.get(choice, rng.randrange(-9, 10))

    def operations():
        done, gets = [], []
        for index in range(rng.randrange(4)):
            kind = rng.choice(["get", "get", "put", "delete", "add", "add", "range_get", "delete_range"])
            if kind == "get":
                gets.append(index)
            fields = {**bounds(), "limit": rng.randrange(1, 4)} if "range" in kind else {"key": key()}
            if kind == "range_get" and rng.random() < 0.5:
                fields["reverse"] = True
            if kind == "put":
                fields["value"] = {"b64": "YQ=="} if rng.random() < 0.2 else operand(gets)
            elif kind == "add":
                fields["delta"] = operand(gets)
            if kind in ("put", "add") and rng.random() < 0.3:
                field, life = rng.choice(["ttl_us", "expires_at_us"]), rng.randrange(1, life_us)
                fields[field] = life + (now_us if field == "expires_at_us" else 0)
            done.append({"op": kind, **fields})
        return done

    return {"guards": [guard() for _ in range(rng.randrange(3))], "then": operations(), "else": operations(),
            "precedence": rng.randrange(2), "wait_timeout_ms": rng.choice(waits_ms),
            "expire_runs_else": rng.random() < 0.4}


def random_history(seed, batches=30):
    rng = random.Random(seed)
    keys = [f"k{i}" for i in range(8)]
    simulator = Simulator({key: rng.randrange(20) for key in keys[:4]})
    for _ in range(batches):
        transactions = [random_transaction(rng, keys) for _ in range(rng.randrange(1, 8))]
        simulator.run(*transactions, advance_us=rng.randrange(1, 3000))
        if rng.random() < 0.5:
            simulator.expire()
    return simulator
