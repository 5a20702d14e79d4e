#!/usr/bin/env python3
"""Keys that expire, and watches, against a real server."""

import asyncio
import gc
import os
import pathlib
import signal
import sys
import threading
import time
import unittest
import weakref

import kilokv
import kilokv.aio
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
from programs import Server, temporary_folder, until  # noqa: E402


def writes_of(watch, count):
    """At least so many writes, and the last part."""
    writes = []
    for part in watch:
        writes += part.writes
        if len(writes) >= count:
            return writes, part
    return writes, None


def watch_threads():
    return [thread for thread in threading.enumerate() if thread.name == "kilokv-watch"]


class ServerTest(unittest.TestCase):
    flags = ()

    def setUp(self):
        folder = self.enterContext(temporary_folder())
        self.server = self.enterContext(Server(folder, *self.flags))
        self.db = self.enterContext(kilokv.Client(self.server.endpoint))

    def expiries(self):
        return {pair.key: pair.expires_at_us for pair in self.db.scan()}


class ExpiryTest(ServerTest):
    def test_each_way_to_write_sets_an_expiry(self):
        session = self.enterContext(self.db.session())
        result = session.execute(kilokv.Transaction().put("a", 1, ttl=100).add("b", 1, ttl=1e-6).put("c", 1))
        late = result.batch_time_us + 3_600_000_000
        self.assertEqual(self.expiries()[b"a"], result.batch_time_us + 100_000_000)
        self.assertIsNone(self.expiries()[b"c"])
        session.put("d", 1, expires_at_us=late)
        self.db.put("e", b"x", expires_at_us=late)
        self.db.add("f", 1, expires_at_us=late)
        self.db.add("f", 1)                      # an add keeps the expiry
        transaction = kilokv.Transaction().guard_exists("none")
        transaction.otherwise.put("g", kilokv.BATCH_TIME, expires_at_us=late)
        session.execute(transaction)
        self.assertEqual([self.expiries()[key] for key in (b"d", b"e", b"f", b"g")], [late] * 4)
        self.db.put("e", b"y")                   # a put clears it
        self.assertIsNone(self.expiries()[b"e"])
        until(lambda: self.db.get("b") is None, "b has expired")

    def test_columns_set_expiries(self):
        count = 40_000
        keys, late = np.array([b"%08d" % i for i in range(count)]), 1 << 60
        self.assertTrue(self.db.bulk_put(keys, np.arange(count), expires_at_us=late).all_committed)
        self.assertEqual(set(self.expiries().values()), {late})
        self.assertTrue(self.db.bulk_add(keys[:2], [1, 1], ttl=np.array([1000, 0.2])).all_committed)
        until(lambda: self.db.get(keys[1].item()) is None, "the second key has expired")
        times = np.where(np.arange(count) % 3 == 0, 0, late + np.arange(count))
        self.db.bulk_put(keys, np.arange(count), expires_at_us=times)
        self.assertEqual(list(self.expiries().values()), [time or None for time in times.tolist()])

    def test_a_time_to_live_that_is_too_long_names_the_setting(self):
        with self.assertRaises(kilokv.OutOfRangeError) as caught:
            self.db.put("a", 1, ttl=1e12)
        self.assertEqual(caught.exception.setting, "--ttl-max")


class WatchTest(ServerTest):
    flags = ("--answer-timeout", "1s")

    def test_after_a_scan_nothing_is_missing(self):
        self.db.put("w/a", 1)
        with self.db.scan(prefix="w/") as scan:
            self.assertEqual(len(list(scan)), 1)
        session = self.enterContext(self.db.session())
        session.execute(kilokv.Transaction().put("w/a", 2).put("x", 1).put("w/b", b"\x00\xff"))
        self.db.delete("w/a")
        writes, part = writes_of(self.db.watch(prefix="w/", after=scan.position.boundary_version), 3)
        self.assertEqual([(write.key, write.value) for write in writes],
                         [(b"w/a", 2), (b"w/b", b"\x00\xff"), (b"w/a", None)])
        self.assertEqual([writes[0].version, writes[2].version], [writes[1].version, part.position.version])
        self.assertEqual(part.position.writes, 0)

    def test_without_a_position_it_begins_now(self):
        self.db.put("a", 1)
        with self.db.watch() as watch:
            self.assertEqual(next(watch).writes, [])
            self.db.put("a", 2)
            self.assertEqual([write.value for write in writes_of(watch, 1)[0]], [2])

    def test_a_kill_in_the_middle_of_a_transaction_loses_and_doubles_nothing(self):
        session = self.enterContext(self.db.session())
        large = kilokv.Transaction()
        for i in range(12):
            large.put(f"k{i:02}", bytes(100_000))
        session.execute(large)
        with self.db.watch(after=0) as watch:
            first = next(watch)
            self.assertTrue(first.unfinished)
            self.assertGreater(first.position.writes, 0)
            self.server.kill()
            self.server.start()
            self.db.put("last", 1)
            writes = first.writes + writes_of(watch, 13 - len(first.writes))[0]
        expected = [f"k{i:02}".encode() for i in range(12)] + [b"last"]
        self.assertEqual([write.key for write in writes], expected)
        again, _ = writes_of(self.db.watch(after=first.position, incarnation=first.incarnation), 13 - len(first.writes))
        self.assertEqual(again, writes[len(first.writes):])

    def test_it_goes_on_after_the_server_has_cancelled_a_slow_client(self):
        count = 300
        for i in range(count // 20):
            self.db.own_session.execute_many(
                [kilokv.Transaction().put(f"k{i}/{j}", bytes(100_000)) for j in range(20)])
        with self.db.watch(after=0) as watch:
            writes = list(next(watch).writes)
            until(lambda: "--answer-timeout" in self.server.log.read_text(), "the server has cancelled the stream", 20)
            writes += writes_of(watch, count - len(writes))[0]
        versions = [write.version for write in writes]
        self.assertEqual((len(versions), versions), (count, sorted(set(versions))))

    def test_it_goes_on_after_a_silence(self):
        with self.db.watch(idle=2.0) as watch:
            next(watch)
            os.kill(self.server.pid, signal.SIGSTOP)
            threading.Timer(4, os.kill, (self.server.pid, signal.SIGCONT)).start()
            putting = threading.Timer(0.5, self.db.put, ("a", 1))
            putting.start()
            began = time.monotonic()
            self.assertEqual([write.key for write in writes_of(watch, 1)[0]], [b"a"])
            self.assertGreater(time.monotonic() - began, 3)
            putting.join()

    def test_a_silence_is_an_error_if_it_is_too_long(self):
        with self.db.watch(idle=1.5, reconnect=0.5) as watch:
            next(watch)
            os.kill(self.server.pid, signal.SIGSTOP)
            try:
                with self.assertRaisesRegex(kilokv.UnavailableError, "sent nothing"):
                    while True:
                        next(watch)
            finally:
                os.kill(self.server.pid, signal.SIGCONT)
            self.db.put("a", 1)
            self.assertEqual([write.key for write in writes_of(watch, 1)[0]], [b"a"])  # the program may go on

    def test_a_server_that_does_not_come_back(self):
        with self.db.watch(reconnect=0.5) as watch:
            next(watch)
            self.server.kill()
            began = time.monotonic()
            with self.assertRaises(kilokv.UnavailableError):
                while True:
                    next(watch)
            self.assertTrue(0.4 < time.monotonic() - began < 5)
            self.server.start()
            self.db.put("a", 1)
            self.assertEqual([write.key for write in writes_of(watch, 1)[0]], [b"a"])

    def test_nothing_listens(self):
        self.server.kill()
        with kilokv.Client(self.server.endpoint) as db:
            with self.assertRaisesRegex(kilokv.UnavailableError, "nothing listens"):
                next(db.watch())

    def test_close_ends_a_loop_of_another_thread(self):
        watch = self.db.watch()
        next(watch)
        closing = threading.Timer(0.2, watch.close)
        closing.start()
        began = time.monotonic()
        self.assertLess(len(list(watch)), 3)
        self.assertLess(time.monotonic() - began, 2)
        self.assertEqual(list(watch), [])
        watch.close()
        self.server.kill()          # also while it waits for the server
        watch = self.db.watch()
        closing = threading.Timer(0.2, watch.close)
        closing.start()
        self.assertEqual(list(watch), [])

    def test_a_closed_client_says_so(self):
        watch = self.db.watch()
        next(watch)
        threading.Timer(0.2, self.db.close).start()
        with self.assertRaises(kilokv.ClosedError):
            writes_of(watch, 1)
        with self.assertRaises(kilokv.ClosedError):
            next(watch)

    def test_a_watch_that_is_left_holds_neither_a_thread_nor_a_call(self):
        gc.disable()
        self.addCleanup(gc.enable)
        others = watch_threads()
        watch = self.db.watch(idle=1.0)
        next(watch)
        stream = weakref.ref(watch._stream)  # gRPC cancels a call that nobody refers to
        del watch
        self.assertIsNone(stream())
        until(lambda: set(watch_threads()) <= set(others), "the thread has ended", 5)

    def test_many_watches(self):
        watches = [self.db.watch(prefix=f"{i}/") for i in range(20)]
        for watch in watches:
            next(watch)
        for i in range(20):
            self.db.put(f"{i}/x", i)
        self.assertEqual([writes_of(watch, 1)[0][0].value for watch in watches], list(range(20)))
        for watch in watches:
            watch.close()

    def test_a_position_of_another_incarnation(self):
        with self.assertRaises(kilokv.WatchTooOldError) as caught:
            next(self.db.watch(after=0, incarnation="0" * 32))
        self.assertEqual(caught.exception.reason, "WATCH_TOO_OLD")
        self.assertIsInstance(caught.exception, kilokv.AbortedError)


class AsyncioWatchTest(ServerTest):
    def run_async(self, body):
        async def main():
            async with kilokv.aio.Client(self.server.endpoint) as db:
                return await asyncio.wait_for(body(db), 60)
        return asyncio.run(main())

    @staticmethod
    async def writes_of(watch, count):
        writes = []
        async for part in watch:
            writes += part.writes
            if len(writes) >= count:
                break
        return writes

    async def restart(self):
        await asyncio.get_running_loop().run_in_executor(None, self.server.kill)
        await asyncio.get_running_loop().run_in_executor(None, self.server.start)

    def test_a_watch_over_kills(self):
        async def body(db):
            async with db.watch(prefix="w/", after=0) as watch, db.session() as session:
                watching = asyncio.ensure_future(self.writes_of(watch, 60))
                for i in range(60):
                    await session.execute(kilokv.Transaction().put("w/n", i).put("other", i))
                    if i in (20, 40):
                        await self.restart()
                self.assertEqual([write.value for write in await watching], list(range(60)))
        self.run_async(body)

    def test_a_task_that_is_cancelled_loses_nothing(self):
        async def body(db):
            async with db.watch() as watch:
                await watch.__anext__()
                writes = []
                for i in range(50):
                    await db.put("a", i, ttl=1000)
                    try:
                        part = await asyncio.wait_for(watch.__anext__(), 0.001 * (i % 5))
                        writes += part.writes
                    except asyncio.TimeoutError:
                        pass
                writes += await self.writes_of(watch, 50 - len(writes))
                self.assertEqual([write.value for write in writes], list(range(50)))
        self.run_async(body)

    def test_close_ends_a_loop_of_another_task(self):
        async def body(db):
            watch = db.watch()
            await watch.__anext__()
            watching = asyncio.ensure_future(self.writes_of(watch, 1))
            await asyncio.sleep(0.1)
            await watch.close()
            self.assertEqual(await asyncio.wait_for(watching, 2), [])
            self.assertEqual(await self.writes_of(watch, 1), [])
            other = db.watch()
            watching = asyncio.ensure_future(self.writes_of(other, 1))
            await asyncio.sleep(0.1)
            await db.close()
            with self.assertRaises(kilokv.ClosedError):
                await asyncio.wait_for(watching, 2)
            with self.assertRaises(kilokv.ClosedError):
                await other.__anext__()
        self.run_async(body)

    def test_silence_and_errors(self):
        async def body(db):
            async with db.watch(idle=1.5) as watch:
                await watch.__anext__()
                os.kill(self.server.pid, signal.SIGSTOP)
                asyncio.get_running_loop().call_later(3, os.kill, self.server.pid, signal.SIGCONT)
                await asyncio.sleep(3.1)
                await db.put("a", 1)
                self.assertEqual([write.key for write in await self.writes_of(watch, 1)], [b"a"])
            with self.assertRaises(kilokv.WatchTooOldError):
                await db.watch(after=0, incarnation="0" * 32).__anext__()
            async with db.watch(reconnect=0.5) as watch:
                await watch.__anext__()
                self.server.kill()
                with self.assertRaises(kilokv.UnavailableError):
                    await self.writes_of(watch, 1)
        self.run_async(body)


if __name__ == "__main__":
    unittest.main()
