#!/usr/bin/env python3
"""Measures the Python client against a server that runs: single calls, compared with plain gRPC, and bulk calls.

  speed.py 127.0.0.1:7070 [--in-flight 16] [--rounds 9]

The server keeps the keys that begin with speed/. Each number is the median of the rounds. The ways take turns, so that
other load on the machine meets all of them.
"""

import argparse
import asyncio
import statistics
import threading
import time

import grpc
import kilokv
import kilokv.aio
import numpy as np
from kilokv.v1 import kilokv_pb2, kilokv_pb2_grpc, transaction_pb2

SECONDS = 0.7
RECORDS = 200_000


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


def calls_per_second(call, in_flight):
    counts, end = [0] * in_flight, time.monotonic() + SECONDS

    def work(thread):
        while time.monotonic() < end:
            call(counts[thread])
            counts[thread] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


async def calls_per_second_async(call, in_flight):
    end = time.monotonic() + SECONDS

    async def work():
        count = 0
        while time.monotonic() < end:
            await call(count)
            count += 1
        return count

    return sum(await asyncio.gather(*(work() for _ in range(in_flight)))) / SECONDS


def show(name, rounds):
    plain, client, session = (statistics.median(column) for column in zip(*rounds))
    print(f"{name:8} calls/s: plain gRPC {plain:6,.0f}   client {client:6,.0f} ({client / plain:.2f})   "
          f"session {session:6,.0f} ({session / plain:.2f})")


def measure(options):
    stub = kilokv_pb2_grpc.KiloKVStub(grpc.insecure_channel(options.endpoint))
    with kilokv.Client(options.endpoint) as db, db.session() as session:
        ways = (lambda i: stub.Execute(plain_request(i), timeout=30).result.version,
                lambda i: db.execute(transaction(i)).version,
                lambda i: session.execute(transaction(i)).version)
        show("threads", [[calls_per_second(way, options.in_flight) for way in ways] for _ in range(options.rounds)])
        measure_bulk(db, options.rounds)


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
    async with kilokv.aio.Client(options.endpoint) as db, db.session() as session:
        async def plain(i):
            return (await stub.Execute(plain_request(i), timeout=30)).result.version

        async def client(i):
            return (await db.execute(transaction(i))).version

        async def in_session(i):
            return (await session.execute(transaction(i))).version

        show("asyncio", [[await calls_per_second_async(way, options.in_flight) for way in (plain, client, in_session)]
                         for _ in range(options.rounds)])


def main():
    parser = argparse.ArgumentParser(description="Measures the Python client.")
    parser.add_argument("endpoint", help="HOST:PORT of a server that runs")
    parser.add_argument("--in-flight", type=int, default=16, help="calls in flight (default 16)")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each number (default 9)")
    options = parser.parse_args()
    measure(options)
    asyncio.run(measure_async(options))


if __name__ == "__main__":
    main()
