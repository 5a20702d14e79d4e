#!/usr/bin/env python3
"""Measures the Python client against a server that runs: single calls, compared with plain gRPC, and bulk calls.

A call in a session is more work for the server, too, because it keeps the results. So it is compared with plain gRPC
whose requests have a session and a number. Other load on the machine disturbs the processor time of a call less than
the number of calls.

  speed.py 127.0.0.1:7070 [--in-flight 16] [--rounds 25]

The server keeps the keys that begin with speed/. Each number is the median of the rounds. The ways take turns, so that
other load on the machine meets all of them.
"""

import argparse
import asyncio
import itertools
import statistics
import threading
import time

import grpc
import kilokv
import kilokv.aio
import numpy as np
from kilokv.v1 import kilokv_pb2, kilokv_pb2_grpc, transaction_pb2

SECONDS = 0.3  # of a round
RECORDS = 200_000
ACKNOWLEDGED_AFTER = 1000  # more than are in flight


class PlainSession:
    """The least that a client does in a session. `session`: its id."""

    def __init__(self, session):
        self._session, self._numbers = session, itertools.count(1)

    def request(self, i):
        request = plain_request(i)
        number = next(self._numbers)
        request.id.session, request.id.number = self._session, number
        request.id.acknowledged_through = max(number - ACKNOWLEDGED_AFTER, 0)
        return request


def plain_request(i):
    request = kilokv_pb2.ExecuteRequest()
    key = b"speed/%d" % (i % 1000)
    request.transaction.guards.add(kind=transaction_pb2.GUARD_KIND_GREATER_EQUAL, key=key, integer=0)
    operation = request.transaction.then.add(kind=transaction_pb2.OPERATION_KIND_ADD, key=key)
    operation.operand.integer = 1
    return request


def transaction(i):
    key = b"speed/%d" % (i % 1000)
    return kilokv.Transaction().guard(key, ">=", 0).add(key, 1)


def measured(calls, began):
    """Calls in a second, and the microseconds of processor time that the client takes for one."""
    return calls / SECONDS, (time.process_time() - began) / calls * 1e6


def calls_per_second(call, in_flight):
    counts, end = [0] * in_flight, time.monotonic() + SECONDS

    def work(thread):
        while time.monotonic() < end:
            call(counts[thread])
            counts[thread] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(in_flight)]
    began = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return measured(sum(counts), began)


async def calls_per_second_async(call, in_flight):
    end = time.monotonic() + SECONDS

    async def work():
        count = 0
        while time.monotonic() < end:
            await call(count)
            count += 1
        return count

    began = time.process_time()
    return measured(sum(await asyncio.gather(*(work() for _ in range(in_flight)))), began)


def show(name, rounds):
    """`rounds`: what was measured for each of the four ways."""
    for place, at in (("", 0), (" in a session", 2)):
        plain, client = ([statistics.median(part) for part in zip(*(way[i] for way in rounds))] for i in (at, at + 1))
        print(f"{name}{place}: plain gRPC {plain[0]:,.0f} calls/s, {plain[1]:.0f} us   client {client[0]:,.0f} calls/s "
              f"({client[0] / plain[0]:.2f}), {client[1]:.0f} us ({plain[1] / client[1]:.2f})")


def measure(options):
    stub = kilokv_pb2_grpc.KiloKVStub(grpc.insecure_channel(options.endpoint))
    plain_session = PlainSession(stub.OpenSession(kilokv_pb2.OpenSessionRequest()).session)
    with kilokv.Client(options.endpoint) as db, db.session() as session:
        ways = (lambda i: stub.Execute(plain_request(i), timeout=30).result.version,
                lambda i: db.execute(transaction(i)).version,
                lambda i: stub.Execute(plain_session.request(i), timeout=30).result.version,
                lambda i: session.execute(transaction(i)).version)
        show("threads", [[calls_per_second(way, options.in_flight) for way in ways] for _ in range(options.rounds)])
        measure_bulk(db, min(options.rounds, 9))


def measure_bulk(db, rounds):
    keys, values = np.array([b"speed/bulk/%08d" % i for i in range(RECORDS)]), np.arange(RECORDS)
    for name, call in (("bulk_put", lambda: db.bulk_put(keys, values)), ("bulk_add", lambda: db.bulk_add(keys, values)),
                       ("bulk_get", lambda: db.bulk_get(keys))):
        found = []
        for _ in range(rounds):
            began = time.monotonic()
            assert call().all_committed
            found.append(RECORDS / (time.monotonic() - began))
        print(f"{name} records/s: {statistics.median(found):,.0f}")


async def measure_async(options):
    stub = kilokv_pb2_grpc.KiloKVStub(grpc.aio.insecure_channel(options.endpoint))
    plain_session = PlainSession((await stub.OpenSession(kilokv_pb2.OpenSessionRequest())).session)
    async with kilokv.aio.Client(options.endpoint) as db, db.session() as session:
        async def plain(i):
            return (await stub.Execute(plain_request(i), timeout=30)).result.version

        async def client(i):
            return (await db.execute(transaction(i))).version

        async def plain_in_session(i):
            return (await stub.Execute(plain_session.request(i), timeout=30)).result.version

        async def in_session(i):
            return (await session.execute(transaction(i))).version

        ways = (plain, client, plain_in_session, in_session)
        show("asyncio", [[await calls_per_second_async(way, options.in_flight) for way in ways]
                         for _ in range(options.rounds)])


def main():
    parser = argparse.ArgumentParser(description="Measures the Python client.")
    parser.add_argument("endpoint", help="HOST:PORT of a server that runs")
    parser.add_argument("--in-flight", type=int, default=16, help="calls in flight (default 16)")
    parser.add_argument("--rounds", type=int, default=25, help="measurements of each number (default 25)")
    options = parser.parse_args()
    measure(options)
    asyncio.run(measure_async(options))


if __name__ == "__main__":
    main()
