"""The JSON forms of the conformance test (README.md), to and from the objects of the Python client."""

import base64

import kilokv

COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COLLECTED = ("code", "reason", "message", "field", "limit", "actual", "setting", "not_run", "may_have_run", "never_ran",
             "request", "attempts")


def to_bytes(form):
    """A key, or bytes."""
    return base64.b64decode(form["b64"]) if isinstance(form, dict) else form.encode("ascii")


def to_value(form):
    if form is None:
        return None
    return to_bytes(form) if isinstance(form, dict) else int(form)


def from_bytes(data):
    return {"b64": base64.b64encode(data).decode()}


def from_key(key):
    return key.decode() if all(0x20 <= byte <= 0x7E for byte in key) else from_bytes(key)


def from_value(value):
    if value is None:
        return None
    return str(value) if isinstance(value, int) else from_bytes(value)


def from_version(version):
    return None if version is None else str(version)


def to_transaction(form):
    transaction = kilokv.Transaction(precedence=form.get("precedence", 0),
                                     wait_timeout=form.get("wait_timeout_ms", 0) / 1000,
                                     expire_runs_else=form.get("expire_runs_else", False))
    for guard in form.get("guards", ()):
        _add_guard(transaction, guard)
    _add_operations(transaction, form.get("then", ()))
    _add_operations(transaction.otherwise, form.get("else", ()))
    return transaction


def _add_guard(transaction, form):
    kind, on_false = form["is"], kilokv.WAIT if form.get("when_false") == "wait" else kilokv.FAIL
    key = to_bytes(form["key"]) if "key" in form else None
    if kind in COMPARE:
        other = to_bytes(form["other"]) if "other" in form else None
        value = int(form["value"]) if "value" in form else None
        transaction.guard(key, COMPARE[kind], value, other=other, on_false=on_false)
    elif kind in ("exists", "absent"):
        getattr(transaction, f"guard_{kind}")(key, on_false=on_false)
    elif kind in ("version", "unchanged"):
        getattr(transaction, f"guard_{kind}")(key, int(form["version"]), on_false=on_false)
    elif kind == "bytes_eq":
        transaction.guard_bytes(key, to_bytes(form["value"]), on_false=on_false)
    elif kind == "range_unchanged":
        transaction.guard_range_unchanged(to_bytes(form["from"]), to_bytes(form["to"]), int(form["version"]),
                                          on_false=on_false)
    elif kind == "time_after":
        transaction.guard_time_after(_time(form), key=key, on_false=on_false)
    elif on_false is kilokv.WAIT:
        raise ValueError("time_before cannot wait")
    else:
        transaction.guard_time_before(_time(form), key=key)


def _time(form):
    return int(form["time_us"]) if "time_us" in form else None


def _add_operations(operations, forms):
    reads = {}
    for index, form in enumerate(forms):
        kind = form["op"]
        if kind == "get":
            reads[index] = operations.get(to_bytes(form["key"]))
        elif kind == "delete":
            operations.delete(to_bytes(form["key"]))
        elif kind == "put":
            operations.put(to_bytes(form["key"]), _operand(form["value"], reads), **to_expiry(form))
        elif kind == "add":
            operations.add(to_bytes(form["key"]), _operand(form["delta"], reads), **to_expiry(form))
        elif kind == "range_get":
            operations.range_get(to_bytes(form["from"]), to_bytes(form["to"]), form["limit"],
                                 reverse=form.get("reverse", False))
        else:
            operations.delete_range(to_bytes(form["from"]), to_bytes(form["to"]), form["limit"])


def to_expiry(form):
    expiry = {}
    if "ttl_us" in form:
        expiry["ttl"] = int(form["ttl_us"]) / 1e6
    if "expires_at_us" in form:
        expiry["expires_at_us"] = int(form["expires_at_us"])
    return expiry


def _operand(form, reads):
    if isinstance(form, dict):
        if "get" in form:
            if form["get"] not in reads:
                raise ValueError(f"operation {form['get']} is no get before this operation")
            read = reads[form["get"]]
            return -read if form.get("negate") else read
        if "commit_version" in form:
            return kilokv.COMMIT_VERSION
        if "batch_time" in form:
            return kilokv.BATCH_TIME
    return to_value(form)


def from_read(read):
    return {"operation": read.operation, "key": from_key(read.key), "value": from_value(read.value),
            "version": from_version(read.version)}


def from_result(result):
    guard_value = result.guard_value
    failed_in = result.failed_in
    return {
        "outcome": result.outcome.name,
        "failed_in": None if failed_in is kilokv.FailedIn.NONE else failed_in.name.lower(),
        "failed_index": result.failed_index,
        "guard_value": None if guard_value is None else {
            "key": from_key(guard_value.key), "value": from_value(guard_value.value),
            "version": from_version(guard_value.version)},
        "reads": [from_read(read) for read in result.reads],
        "version": from_version(result.version),
        "batch": result.batch, "rank": result.rank, "admitted_batch": result.admitted_batch,
        "batch_time_us": str(result.batch_time_us), "reads_dropped": result.reads_dropped}


def from_pairs(pairs):
    return [{"key": from_key(pair.key), "value": from_value(pair.value), "version": from_version(pair.version)}
            for pair in pairs]


def from_scanned(pairs):
    return [{**form, "expires_at_us": from_version(pair.expires_at_us)} for form, pair in zip(from_pairs(pairs), pairs)]


def to_position(form):
    return form and kilokv.WatchPosition(int(form["version"]), form["writes"])


def from_watched(writes, last):
    """The writes of a watch, and its last part."""
    return {"writes": [{"key": from_key(write.key), "value": from_value(write.value), "version": str(write.version),
                        "batch_time_us": str(write.batch_time_us), "expires_at_us": from_version(write.expires_at_us),
                        "expired": write.expired, "batch": write.batch, "rank": write.rank} for write in writes],
            "position": {"version": str(last.position.version), "writes": last.position.writes},
            "unfinished": last.unfinished, "incarnation": last.incarnation}


def from_known(requests):
    return [{"number": known.number, "state": known.state.value, "transactions": known.transactions,
             "decided": known.decided, "parked": known.parked, "queued": known.queued,
             "results": [result and from_result(result) for result in known.results]} for known in requests]


def from_error(error):
    return {name: getattr(error, name) for name in COLLECTED}
