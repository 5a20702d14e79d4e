#!/usr/bin/env python3
"""Measures the Python client against a server that runs: single calls, compared with plain gRPC, and bulk calls.

A call in a session is more work for the server, too, because it keeps the results. So it is compared with plain gRPC
whose requests have a session and a number. Other load on the machine disturbs the processor time of a call less than
the number of calls.

  /usr/bin/python3 speed.py 127.0.0.1:7070 [--in-flight 16] [--rounds 25]

The server keeps the keys that begin with speed/. In each round the client and plain gRPC take turns, with the same
number of calls in flight, so that other load on the machine meets both. Every second round has the opposite order.
Each number is the median of the rounds, and a ratio is the median of the ratios in each round.
"""

import argparse
import asyncio
import itertools
import platform
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


class Clock:
    """Of one measurement, which takes new calls until `end`. The last ones end later."""

    def __init__(self):
        self._began, self._began_cpu = time.monotonic(), time.process_time()
        self.end = self._began + SECONDS

    def measured(self, calls):
        """Calls in a second, and the microseconds of processor time that the client takes for one."""
        return calls / (time.monotonic() - self._began), (time.process_time() - self._began_cpu) / calls * 1e6


def calls_per_second(call, in_flight):
    counts, clock = [0] * in_flight, Clock()

    def work(thread):
        while time.monotonic() < clock.end:
            call(counts[thread])
            counts[thread] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return clock.measured(sum(counts))


async def calls_per_second_async(call, in_flight):
    clock = Clock()

    async def work():
        count = 0
        while time.monotonic() < clock.end:
            await call(count)
            count += 1
        return count

    return clock.measured(sum(await asyncio.gather(*(work() for _ in range(in_flight)))))


def orders(ways, rounds):
    """The ways in the order of each round: there and back, so that none always comes after the same other one."""
    return [ways if number % 2 == 0 else ways[::-1] for number in range(rounds)]


def show(name, ways, rounds):
    """`ways`: plain gRPC and the client, without a session and in one. `rounds`: what was measured of each way."""
    median = statistics.median
    for place, plain, client in (("", *ways[:2]), (" in a session", *ways[2:])):
        calls, cpu = ([[found[way][i] for found in rounds] for way in (plain, client)] for i in (0, 1))
        print(f"{name}{place}: plain gRPC {median(calls[0]):,.0f} calls/s, {median(cpu[0]):.0f} us   "
              f"client {median(calls[1]):,.0f} calls/s ({median(b / a for a, b in zip(*calls)):.2f}), "
              f"{median(cpu[1]):.0f} us ({median(a / b for a, b in zip(*cpu)):.2f})")


def measure(options):
    stub = kilokv_pb2_grpc.KiloKVStub(grpc.insecure_channel(options.endpoint))
    plain_session = PlainSession(stub.OpenSession(kilokv_pb2.OpenSessionRequest()).session)
    with kilokv.Client(options.endpoint) as db, db.session() as session:
        ways = (lambda i: stub.Execute(plain_request(i), timeout=30).result.version,
                lambda i: db.execute(transaction(i)).version,
                lambda i: stub.Execute(plain_session.request(i), timeout=30).result.version,
                lambda i: session.execute(transaction(i)).version)
        show("threads", ways, [{way: calls_per_second(way, options.in_flight) for way in order}
                               for order in orders(ways, options.rounds)])
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
        show("asyncio", ways, [{way: await calls_per_second_async(way, options.in_flight) for way in order}
                               for order in orders(ways, options.rounds)])


def main():
    parser = argparse.ArgumentParser(description="Measures the Python client.")
    parser.add_argument("endpoint", help="HOST:PORT of a server that runs")
    parser.add_argument("--in-flight", type=int, default=16, help="calls in flight (default 16)")
    parser.add_argument("--rounds", type=int, default=25, help="measurements of each number (default 25)")
    options = parser.parse_args()
    if not 1 <= options.in_flight < ACKNOWLEDGED_AFTER:
        parser.error(f"--in-flight must be from 1 to {ACKNOWLEDGED_AFTER - 1}")
    print(f"Python {platform.python_version()}, gRPC {grpc.__version__}, {options.in_flight} calls in flight")
    measure(options)
    asyncio.run(measure_async(options))


if __name__ == "__main__":
    main()
