#!/usr/bin/env python3
"""The Python client against a real server: what the conformance test does not look at."""

import asyncio
import pathlib
import sys
import threading
import time
import unittest

import kilokv
import kilokv.aio
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
from programs import Server, temporary_folder, until  # noqa: E402


def waiting(key, seconds=60.0):
    return kilokv.Transaction(wait_timeout=seconds).guard_exists(key, on_false=kilokv.WAIT).add("ran", 1)


class ServerTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(temporary_folder())
        self.server = self.enterContext(Server(folder))
        self.db = self.enterContext(kilokv.Client(self.server.endpoint))

    def parked(self):
        return [one.guard_key for one in self.db.list_parked()]


class ClientTest(ServerTest):
    def test_single_writes(self):
        version = self.db.put("a", 5)
        self.assertEqual(self.db.read(["a"])[0], (b"a", 5, version, 0))
        self.assertEqual(self.db.add("a", -7), -2)
        self.db.put("b", b"\x00")
        self.assertEqual((self.db.get("a"), self.db.get("b"), self.db.get("c")), (-2, b"\x00", None))
        with self.assertRaises(kilokv.NotCommittedError) as caught:
            self.db.add("b", 1)
        self.assertEqual(caught.exception.result.outcome, kilokv.Outcome.TYPE_MISMATCH)
        self.assertGreater(self.db.delete("a", "b", "c"), version)
        self.assertIsNone(self.db.delete("a"))

    def test_threads_share_a_client(self):
        def work():
            for _ in range(50):
                self.db.add("sum", 1)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.db.get("sum"), 400)
        sessions, count = self.db.list_sessions()
        self.assertEqual(count, 1)
        self.assertEqual(sessions[0].requests_in_flight, 0)
        self.assertLessEqual(sessions[0].requests, 8)

    def test_several_connections(self):
        with kilokv.Client(self.server.endpoint, connections=3) as db:
            for i in range(6):
                self.assertEqual(db.add("n", 1), i + 1)

    def test_a_pending_request_is_cancelled(self):
        with self.db.session() as session:
            pending = session.submit(waiting("never"))
            until(self.parked, "parked")
            with self.assertRaises(TimeoutError):
                pending.result(0.01)
            self.assertFalse(pending.done())
            self.assertEqual(pending.cancel(), 1)
            self.assertEqual(pending.result(10).outcome, kilokv.Outcome.CANCELLED)
            self.assertEqual(pending.cancel(), 0)

    def test_results_come_as_they_finish(self):
        seen = []
        with self.db.session() as session:
            def progress(index, result):
                seen.append(index)
                if index == 1:
                    self.db.put("go", 1)
            results = session.execute_many([waiting("go"), kilokv.Transaction().add("fast", 1)], progress=progress)
        self.assertEqual(seen, [1, 0])
        self.assertTrue(all(result.committed for result in results))

    def test_a_block_that_fails_writes_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with self.db.transaction() as transaction:
                transaction.put("a", 1)
                raise ZeroDivisionError
        self.assertIsNone(self.db.get("a"))
        with self.db.transaction() as transaction:
            transaction.put("a", 1)
            transaction.abandon()
        self.assertIsNone(self.db.get("a"))

    def test_a_block_is_tried_once(self):
        with self.assertRaises(kilokv.ConflictError) as caught:
            with self.db.transaction() as transaction:
                transaction.put("copy", transaction.get("a") or 0)
                self.db.add("a", 1)
        self.assertEqual((caught.exception.key, caught.exception.attempts), (b"a", 1))

    def test_the_decorator_passes_arguments_and_tries_again(self):
        tries = []

        @self.db.transactional
        def move(transaction, amount, to):
            """Moves."""
            tries.append(amount)
            balance = transaction.get("from") or 0
            if len(tries) < 3:
                self.db.add("from", 100)
            transaction.put("from", balance - amount)
            transaction.put(to, amount)
            return balance

        self.assertEqual(move(30, to="to"), 200)
        self.assertEqual(len(tries), 3)
        self.assertEqual((self.db.get("from"), self.db.get("to")), (170, 30))
        self.assertEqual((move.__name__, move.__doc__), ("move", "Moves."))

    def test_conflicts_end_after_so_many_attempts(self):
        def always_late(transaction):
            transaction.put("x", transaction.get("a") or 0)
            self.db.add("a", 1)
        with self.assertRaises(kilokv.ConflictError) as caught:
            self.db.run(always_late, attempts_max=3)
        self.assertEqual(caught.exception.attempts, 3)
        self.assertEqual(self.db.get("a"), 3)
        with self.assertRaises(ValueError):
            self.db.run(always_late, attempts_max=0)

    def test_a_scan_shows_one_moment(self):
        self.db.bulk_put([f"k{i:03}" for i in range(100)], range(100))
        with self.db.scan(prefix="k", page_pairs=10) as scan:
            with self.assertRaises(ValueError):
                scan.position
            pairs = iter(scan)
            first = next(pairs)
            self.db.delete("k050", "k051")
            other = list(self.db.scan("k049", "k053", boundary=scan.position.boundary))
            self.assertEqual([first, *pairs][50].key, b"k050")
        self.assertEqual([pair.value for pair in other], [49, 50, 51, 52])
        self.assertEqual(len(list(self.db.scan(prefix="k"))), 98)

    def test_a_scan_that_is_left_gives_up_its_moment(self):
        self.db.bulk_put([f"k{i:03}" for i in range(100)], range(100))
        with self.db.scan(page_pairs=10) as scan:
            for pair in scan:
                if pair.key == b"k005":
                    break
            boundary = scan.position.boundary
            self.db.put("later", 1)
        with self.assertRaises(kilokv.SnapshotTooOldError):
            list(self.db.scan(boundary=boundary))

    def test_bulk_calls(self):
        count = 50_000
        keys = np.array([b"%08d" % i for i in range(count)])
        self.assertTrue(self.db.bulk_put(keys, np.arange(count)).all_committed)
        results = self.db.bulk_add(keys[::2], np.full(count // 2, -1))
        self.assertEqual((len(results), results.all_committed), (count // 2, True))
        self.assertEqual(len(set(zip(results.batch.tolist(), results.rank.tolist()))), count // 2)
        values, present = self.db.bulk_get([*keys, b"none"]).integers()
        expected = np.arange(count)
        expected[::2] -= 1
        self.assertTrue((values[:count] == expected).all())
        self.assertEqual((int(present.sum()), bool(present[-1])), (count, False))
        self.assertEqual(len(self.db.bulk_put([], [])), 0)

    def test_a_record_of_a_bulk_call_fails_alone(self):
        self.db.put("text", b"x")
        results = self.db.bulk_add(["a", "text", "b"], [1, 2, 3])
        self.assertEqual(results.committed.tolist(), [True, False, True])
        self.assertEqual(results.outcome[1], kilokv.Outcome.TYPE_MISMATCH)
        with self.assertRaisesRegex(TypeError, "key 1 holds bytes"):
            self.db.bulk_get(["a", "text"]).integers()

    def test_a_closed_client_says_so(self):
        self.db.put("a", 1)
        session = self.db.session()
        self.db.close()
        for call in (lambda: self.db.get("a"), lambda: self.db.put("a", 1),
                     lambda: session.execute(kilokv.Transaction().add("a", 1)), self.db.status):
            with self.assertRaises(kilokv.ClosedError):
                call()

    def test_closing_ends_calls_of_other_threads(self):
        session = self.db.session()
        pending = session.submit(waiting("never"))
        until(self.parked, "parked")
        self.db.close()
        with self.assertRaises(kilokv.ClosedError) as caught:
            pending.result(10)
        self.assertFalse(caught.exception.never_ran)

    def test_a_session_lives_longer_than_its_lease(self):
        with self.db.session(lease=1) as session:
            time.sleep(2.5)
            self.assertTrue(session.execute(kilokv.Transaction().add("a", 1)).committed)

    def test_the_server_logs_the_trace_of_a_slow_call(self):
        trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
        with self.db.session() as session:
            transaction = kilokv.Transaction(wait_timeout=1.1).guard_exists("no", on_false=kilokv.WAIT)
            session.execute(transaction, traceparent=trace)
        until(lambda: "a" * 32 in self.server.log.read_text(), "the trace in the log")

    def test_the_status_has_counters_and_settings(self):
        self.db.put("a", 1)
        status = self.db.status()
        self.assertEqual(status.state, "ready")
        self.assertGreaterEqual(status.counters["durable_batch"], 1)
        self.assertEqual(len(status.state_hash), 32)
        self.assertTrue(any(owner.name == "values" for owner in status.memory))


class RestartTest(ServerTest):
    def test_a_restart_is_noticed_within_moments(self):
        with self.db.session() as session:
            session.execute(kilokv.Transaction().add("a", 1))
            self.server.kill()
            self.server.start()
            began = time.monotonic()
            self.assertEqual(session.add("a", 1), 2)
            self.assertLess(time.monotonic() - began, 3)

    def test_nothing_listens(self):
        self.server.kill()
        began = time.monotonic()
        with kilokv.Client(self.server.endpoint) as db:
            with self.assertRaisesRegex(kilokv.UnavailableError, "nothing listens"):
                db.get("a")
        self.assertLess(time.monotonic() - began, 5)

    def test_a_client_waits_for_the_server(self):
        self.server.kill()
        starter = threading.Timer(1, self.server.start)
        starter.start()
        with kilokv.Client(self.server.endpoint, wait_for_server=30) as db:
            self.assertIsNone(db.get("a"))
        starter.join()

    def test_an_own_session_that_has_ended_is_opened_again(self):
        self.db.put("a", 1)
        self.db.attach(self.db.own_session.id)
        with self.assertRaises(kilokv.SessionFencedError):
            self.db.put("a", 2)
        self.db.put("a", 3)
        self.assertEqual(self.db.get("a"), 3)


class FullServerTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(temporary_folder())
        self.server = self.enterContext(Server(folder, "--queue-transactions-max", "100"))

    def test_what_the_server_refuses_for_the_moment_is_sent_again(self):
        attempts = []
        with kilokv.Client(self.server.endpoint) as db:
            def work():
                with db.session() as session:
                    for _ in range(10):
                        sent = session.execute_many([kilokv.Transaction().add("sum", 1)] * 90)
                        attempts.append(sent.attempts)
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual((len(attempts), db.get("sum")), (80, 7200))
            self.assertGreater(max(attempts), 1)
            self.assertGreater(db.status().counters["refused"], 0)

    def test_a_request_that_is_too_long_names_the_setting(self):
        with kilokv.Client(self.server.endpoint) as db, db.session() as session:
            for sender in (db, session):
                with self.assertRaises(kilokv.MessageTooLargeError) as caught:
                    sender.execute_many([kilokv.Transaction().put(f"k{i}", bytes(1 << 20)) for i in range(5)])
                self.assertEqual(caught.exception.setting, "--message-bytes-max")
                self.assertTrue(caught.exception.never_ran)
            # gRPC itself refuses this one. The stream of an attempt can be reset before that. So nothing is said of
            # whether it ran.
            with self.assertRaises(kilokv.InvalidArgumentError) as caught:
                session.execute_many([kilokv.Transaction().put(f"k{i}", bytes(1 << 20)) for i in range(20)])
            self.assertEqual(caught.exception.setting, "--message-bytes-max")
            self.assertEqual(caught.exception.field, "message")


class AsyncioTest(ServerTest):
    def run_async(self, body):
        async def main():
            async with kilokv.aio.Client(self.server.endpoint) as db:
                return await asyncio.wait_for(body(db), 60)
        return asyncio.run(main())

    def test_many_requests_at_once(self):
        async def body(db):
            async with db.session() as session:
                sums = await asyncio.gather(*(session.add("sum", 1) for _ in range(500)))
            self.assertEqual(sorted(sums), list(range(1, 501)))
            self.assertEqual((await db.list_sessions())[1], 0)
        self.run_async(body)

    def test_a_task_that_is_cancelled_leaves_its_request(self):
        async def body(db):
            async with db.session() as session:
                task = asyncio.ensure_future(session.execute(waiting("go")))
                while not await db.list_parked():
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await db.put("go", 1)
                result = await session.resume(1, waiting("go"))
                self.assertEqual((result.outcome, result.request), (kilokv.Outcome.COMMITTED, 1))
            self.assertEqual(await db.get("ran"), 1)
        self.run_async(body)

    def test_closing_ends_calls_of_other_tasks(self):
        async def body(db):
            pending = (await db.session()).submit(waiting("never"))
            while not await db.list_parked():
                await asyncio.sleep(0.01)
            await db.close()
            with self.assertRaises(kilokv.ClosedError):
                await pending
            with self.assertRaises(kilokv.ClosedError):
                await db.get("a")
        self.run_async(body)

    def test_scans_bulk_calls_and_interactive_transactions(self):
        async def body(db):
            keys = [f"k{i:04}" for i in range(3000)]
            self.assertTrue((await db.bulk_put(keys, range(3000))).all_committed)
            found = [pair.value async for pair in db.scan(prefix="k", page_pairs=500)]
            self.assertEqual(found, list(range(3000)))
            async with db.scan(page_pairs=5) as scan:
                async for _ in scan:
                    break
            self.assertEqual(len(await db.scan(reverse=True, limit=7).all()), 7)

            @db.transactional
            async def increment(transaction):
                transaction.put("n", (await transaction.get("n") or 0) + 1)
            await asyncio.gather(*(increment() for _ in range(10)))
            self.assertEqual(await db.get("n"), 10)
            with self.assertRaises(kilokv.ConflictError):
                async with db.transaction() as transaction:
                    await transaction.scan(prefix="k")
                    await db.put("k5", 1)
                    transaction.put("x", 1)
        self.run_async(body)

    def test_a_restart(self):
        async def body(db):
            async with db.session() as session:
                await session.add("a", 1)
                self.server.kill()
                adding = asyncio.ensure_future(session.add("a", 1))
                await asyncio.sleep(0.3)
                await asyncio.get_running_loop().run_in_executor(None, self.server.start)
                self.assertEqual(await adding, 2)
        self.run_async(body)


if __name__ == "__main__":
    unittest.main()
