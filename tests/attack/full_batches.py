"""How long the longest batch takes that the limits allow: others may have to wait for it.

Each kind of full batch is one request that a client sends alone to an idle server. Its time is the median of several
tries, from the request to the end of the answer. So it also counts what gRPC takes.
"""

import select
import statistics
import time

import http2
from http2 import bytes_field, number_field
from light_client import MIB
from programs import SLOWER, Server, temporary_folder

GET, PUT, DELETE, ADD, RANGE_GET, DELETE_RANGE = 1, 2, 3, 4, 5, 6  # kinds of operations
EXISTS, WAIT = 1, 1
RANGE_KEYS = 10000  # --range-keys-max


def key_range(first, last):
    return bytes_field(1, first) + bytes_field(2, last)


def range_get(first, last, limit):
    return number_field(1, RANGE_GET) + bytes_field(4, key_range(first, last)) + number_field(5, limit)


def delete_range(first, last, limit):
    return number_field(1, DELETE_RANGE) + bytes_field(4, key_range(first, last)) + number_field(5, limit)


def get(key):
    return number_field(1, GET) + bytes_field(2, key)


def put(key, value):
    return number_field(1, PUT) + bytes_field(2, key) + bytes_field(3, bytes_field(2, value))


def put_copy(key, index):
    """Writes what the GET at this index of the list has read."""
    return number_field(1, PUT) + bytes_field(2, key) + bytes_field(3, number_field(3, index))


def add_one(key):
    return number_field(1, ADD) + bytes_field(2, key) + bytes_field(3, number_field(1, 2))  # a sint64: 2 is 1


def delete(key):
    return number_field(1, DELETE) + bytes_field(2, key)


def otherwise(*operations):
    """A transaction with these else-operations alone."""
    return b"".join(bytes_field(3, operation) for operation in operations)


def transaction(*operations, guards=(), wait_us=0):
    return (b"".join(bytes_field(1, guard) for guard in guards)
            + b"".join(bytes_field(2, operation) for operation in operations)
            + (number_field(5, wait_us) if wait_us else b""))


def batch_of(transactions):
    """An ExecuteBatchRequest."""
    return bytes_field(2, b"".join(bytes_field(1, one) for one in transactions))


def reads_of_100000_keys():
    """A transaction."""
    return transaction(*[range_get(b"k", b"l", RANGE_KEYS) for _ in range(10)])


def call(caller, method, payload, seconds=60 * SLOWER):
    """Makes a call, which must succeed. Returns its time."""
    before = caller.ends["0"]
    began = time.monotonic()
    caller.call(method, payload)
    while caller.open:
        assert time.monotonic() < began + seconds, f"{method} has no answer"
        select.select([caller], [caller] if caller.wants_to_write() else [], [], 1)
        caller.read()
    assert caller.ends["0"] == before + 1, f"{method} failed: {dict(caller.ends)}"
    return time.monotonic() - began


def put_keys(caller, prefix, count):
    for at in range(0, count, 8192):
        call(caller, "ExecuteBatch", batch_of(transaction(put(prefix + b"%06d" % key, b"1"))
                                              for key in range(at, min(count, at + 8192))))


def execute(caller, *operations):
    return call(caller, "Execute", bytes_field(2, transaction(*operations)))


def deletes(caller):
    put_keys(caller, b"d", 10 * RANGE_KEYS)
    return execute(caller, *[delete_range(b"d", b"e", RANGE_KEYS)] * 10)


def copies(caller, count):
    return execute(caller, get(b"large"), *[put_copy(b"copy%03d" % key, 0) for key in range(count)])


def ranges_over_deleted_keys(caller):
    """Each looks for one key, and 127 deleted ones come before it, in the same chunk of the ordered index."""
    keys = [b"r" * 1000 + b"%06d" % number for number in range(128)]
    call(caller, "ExecuteBatch", batch_of(transaction(put(key, b"1")) for key in keys))
    call(caller, "ExecuteBatch", batch_of(transaction(delete(key)) for key in keys[:-1]))
    one = transaction(*[range_get(b"r", b"s", 1)] * 960)
    return call(caller, "ExecuteBatch", batch_of([one] * 4))


def lists_that_do_not_run(caller):
    """Without guards, the else-operations never run. Their keys are made before, and removed after the batch."""
    return call(caller, "ExecuteBatch", batch_of(
        otherwise(*[add_one(b"e%02d%04d" % (number, key)) for key in range(1024)]) for number in range(32)))


def reads_that_do_not_run(caller):
    """Their keys are looked up before a batch runs, also where nothing reads them."""
    return call(caller, "ExecuteBatch", batch_of(
        otherwise(*[get(b"g%02d%04d" % (number, key)) for key in range(1024)]) for number in range(64)))


def keys_that_are_not_there(caller):
    return call(caller, "ExecuteBatch", batch_of(
        transaction(*[get(b"f%02d%04d" % (number, key)) for key in range(1024)]) for number in range(64)))


KINDS = {
    "100,000 keys read": lambda caller: call(caller, "Execute", bytes_field(2, reads_of_100000_keys())),
    "100,000 keys deleted by ranges": deletes,
    "8 copies of a value of 1 MiB, as many as a transaction may have": lambda caller: copies(caller, 8),
    "8,192 transactions": lambda caller: call(caller, "ExecuteBatch",
                                              batch_of(transaction(add_one(b"a%06d" % key)) for key in range(8192))),
    "3,840 ranges over deleted keys": ranges_over_deleted_keys,
    "32,768 operations that do not run": lists_that_do_not_run,
    "65,536 reads that do not run": reads_that_do_not_run,
    "65,536 keys read that are not there": keys_that_are_not_there,
}


def longest_batch(tries, *flags):
    """Seconds of the longest kind, on a server of its own. Prints all."""
    with temporary_folder() as folder, Server(folder, *flags) as server:
        caller = http2.Caller(server.endpoint)
        put_keys(caller, b"k", RANGE_KEYS)
        execute(caller, put(b"large", bytes(MIB)))
        times = {kind: statistics.median(run(caller) for _ in range(tries)) for kind, run in KINDS.items()}
        caller.close()
    for kind, seconds in times.items():
        print(f"full batch: {seconds * 1e3:.1f} ms for {kind}", flush=True)
    return max(times.values())
