#!/usr/bin/env python3
"""Calls, retries, sessions and uploads, step by step and without a server."""

import time
import unittest

import kilokv
from kilokv._core import requests
from kilokv._core.failures import error_of_call
from kilokv._core.retry import Backoff, Caller, Retry
from kilokv._core.session import SessionCore, attach
from kilokv.v1 import kilokv_pb2 as pb
from kilokv.v1 import transaction_pb2
from played import Played

REFUSED = dict(code=8, reason=pb.ERROR_REASON_QUEUE_FULL, retry_after_us=1000, not_run=True)


def error(code, reason=0, text="", **detail):
    if not (reason or detail):
        return error_of_call(code, text, [], "Execute", "127.0.0.1:1")
    message = pb.ErrorDetail(reason=reason, **detail)
    return error_of_call(code, text, [("kilokv-error-bin", message.SerializeToString())], "Execute", "127.0.0.1:1")


def lost():
    return error(14, text="Socket closed")


def refused():
    return error(**REFUSED)


def done(index=0, outcome=transaction_pb2.OUTCOME_COMMITTED):
    return transaction_pb2.TransactionResult(index=index, outcome=outcome, version=1)


def answer():
    return pb.ExecuteResponse(result=done())


def part(*indices):
    return pb.ExecuteBatchResponse(rows=pb.ResultRows(results=[done(index) for index in indices]))


def transaction():
    return kilokv.Transaction().add("a", 1)


class Fixture(unittest.TestCase):
    def setUp(self):
        self.caller = Caller(kilokv.ClientOptions(timeout=5))
        self.session = SessionCore(self.caller, b"s" * 16, 60)

    def failing(self, steps, answers, kind):
        with self.assertRaises(kind) as caught:
            Played(steps, answers)
        return caught.exception


class RetryTest(Fixture):
    def call(self, retry, answers):
        return Played(self.caller.call("Status", None, self.caller.deadline(None), retry), answers)

    def test_without_a_session_only_a_clear_refusal_is_sent_again(self):
        self.assertEqual(len(self.call(Retry.WHEN_REFUSED, [refused(), refused(), "ok"]).calls), 3)
        for failure in (lost(), error(8, pb.ERROR_REASON_QUEUE_FULL, retry_after_us=1000), error(13),
                        error(8, pb.ERROR_REASON_TABLE_FULL, not_run=True)):
            with self.assertRaises(type(failure)):
                self.call(Retry.WHEN_REFUSED, [failure])

    def test_a_read_is_sent_again_after_a_loss(self):
        played = self.call(Retry.ALWAYS, ["ok"])
        played = self.call(Retry.ALWAYS, [lost(), lost(), "ok"])
        self.assertEqual([call.wait_for_ready for call in played.calls], [False, True, True])
        self.assertEqual(len(played.pauses), 2)

    def test_no_server_at_the_first_call_is_an_error_at_once(self):
        with self.assertRaisesRegex(kilokv.UnavailableError, "nothing listens"):
            self.call(Retry.ALWAYS, [error(14, text="Connection refused")])
        self.call(Retry.ALWAYS, ["ok"])
        self.call(Retry.ALWAYS, [error(14, text="Connection refused"), "ok"])

    def test_a_wrong_endpoint_at_the_first_call_is_an_error_at_once(self):
        for words in ("DNS resolution failed", "Trying to connect an http1.x server"):
            with self.assertRaises(kilokv.UnavailableError):
                self.call(Retry.ALWAYS, [error(14, text=words)])
        self.call(Retry.ALWAYS, ["ok"])
        self.call(Retry.ALWAYS, [error(14, text="DNS resolution failed"), "ok"])

    def test_the_first_call_tries_again_for_the_time_to_connect(self):
        self.caller = Caller(kilokv.ClientOptions(connect_timeout=0.2))
        played = self.call(Retry.ALWAYS, [lost(), "ok"])
        self.assertGreater(played.calls[0].deadline, time.monotonic() + 20, "an answer may take long")
        self.assertLess(played.calls[1].deadline, time.monotonic() + 0.2, "to reach the server may not")
        self.assertGreater(self.call(Retry.ALWAYS, [lost(), "ok"]).calls[1].deadline, time.monotonic() + 20)
        self.caller = Caller(kilokv.ClientOptions(connect_timeout=0))
        with self.assertRaisesRegex(kilokv.UnavailableError, "was closed"):
            self.call(Retry.ALWAYS, [lost()])

    def test_the_first_call_waits_for_the_server_if_it_should(self):
        self.caller = Caller(kilokv.ClientOptions(wait_for_server=9, timeout=1))
        self.assertGreater(self.caller.deadline(None), time.monotonic() + 9)
        self.call(Retry.ALWAYS, [error(14, text="Connection refused"), "ok"])

    def test_the_pause_is_as_long_as_the_server_asks(self):
        played = self.call(Retry.ALWAYS, [error(8, pb.ERROR_REASON_SCANS_FULL, retry_after_us=400_000), "ok"])
        self.assertTrue(0.4 <= played.pauses[0] <= 0.6, played.pauses)

    def test_the_pause_doubles_up_to_its_maximum(self):
        backoff = Backoff(kilokv.ClientOptions(backoff_min=0.01, backoff_max=0.08))
        for bound in (0.01, 0.02, 0.04, 0.08, 0.08):
            self.assertTrue(bound / 2 <= backoff.next() <= bound)

    def test_the_last_answer_counts_at_the_deadline(self):
        failure = self.failing(self.caller.call("Get", None, self.caller.deadline(None), Retry.ALWAYS),
                               [lost(), error(4, text="Deadline Exceeded")], kilokv.UnavailableError)
        self.assertIn("the deadline passed", failure.message)
        self.assertFalse(failure.never_ran)

    def test_a_pause_never_passes_the_deadline(self):
        steps = self.caller.call("Get", None, self.caller.deadline(0.1), Retry.ALWAYS)
        self.failing(steps, [error(8, pb.ERROR_REASON_SCANS_FULL, retry_after_us=400_000)], kilokv.ScansFullError)


class SessionTest(Fixture):
    def send(self, answers, sending=None):
        return Played(self.session.send(self.session.begin(), sending or requests.One(transaction()), None), answers)

    def test_a_request_is_sent_again_under_its_number(self):
        played = self.send([lost(), error(1), error(13), error(14, pb.ERROR_REASON_DRAINING), refused(), answer()])
        self.assertEqual([call.request.id.number for call in played.calls], [1] * 6)
        self.assertEqual((played.returned.request, played.returned.attempts), (1, 6))
        self.assertEqual(self.session.numbers.acknowledged_through, 1)

    def test_the_next_request_acknowledges_the_last(self):
        self.send([answer()])
        played = self.send([answer()])
        self.assertEqual((played.calls[0].request.id.number, played.calls[0].request.id.acknowledged_through), (2, 1))

    def test_a_request_that_was_refused_for_good_is_acknowledged(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
        failure = self.failing(steps, [error(3, pb.ERROR_REASON_OUT_OF_RANGE, not_run=True)], kilokv.OutOfRangeError)
        self.assertEqual((failure.request, failure.attempts, failure.never_ran), (1, 1, True))
        self.assertEqual(self.session.numbers.acknowledged_through, 1)

    def test_a_refusal_after_a_loss_does_not_say_that_nothing_ran(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
        refusal = error(3, pb.ERROR_REASON_OUT_OF_RANGE, not_run=True)
        failure = self.failing(steps, [lost(), refusal], kilokv.OutOfRangeError)
        self.assertTrue(failure.may_have_run)
        self.assertFalse(failure.never_ran or failure.not_run)
        self.assertEqual(self.session.numbers.acknowledged_through, 0)

    def test_a_request_without_an_answer_can_be_resumed(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
        failure = self.failing(steps, [error(4, text="Deadline Exceeded")], kilokv.DeadlineExceededError)
        self.assertFalse(failure.never_ran)
        played = Played(self.session.resume_one(1, transaction(), None), [answer()])
        self.assertEqual((played.calls[0].request.id.number, played.returned.attempts), (1, 2))
        self.assertEqual(self.session.numbers.acknowledged_through, 1)

    def test_a_task_that_gives_up_leaves_the_number_open(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
        next(steps)
        steps.close()
        self.assertEqual(self.session.numbers.acknowledged_through, 0)
        Played(self.session.resume_one(1, transaction(), None), [answer()])

    def test_a_request_that_stayed_refused_can_be_resumed(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), 0.0005)
        failure = self.failing(steps, [refused()], kilokv.QueueFullError)
        self.assertTrue(failure.never_ran)
        Played(self.session.resume_one(1, transaction(), None), [answer()])
        self.assertEqual(self.session.numbers.acknowledged_through, 1)

    def test_a_full_table_is_no_reason_to_wait(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
        failure = self.failing(steps, [error(8, pb.ERROR_REASON_TABLE_FULL, not_run=True)], kilokv.TableFullError)
        self.assertTrue(failure.never_ran)

    def test_nothing_is_sent_after_the_session_has_ended(self):
        for reason, kind in ((pb.ERROR_REASON_SESSION_FENCED, kilokv.SessionFencedError),
                             (pb.ERROR_REASON_SESSION_UNKNOWN, kilokv.SessionUnknownError)):
            self.setUp()
            steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
            self.failing(steps, [error(9, reason, not_run=True)], kind)
            with self.assertRaises(kind) as caught:
                self.session.begin()
            self.assertTrue(caught.exception.not_run)

    def test_a_retry_learns_that_the_session_has_ended_meanwhile(self):
        steps = self.session.send(self.session.begin(), requests.One(transaction()), None)
        next(steps)
        steps.throw(lost())
        self.session.leave()
        with self.assertRaises(kilokv.ClosedError) as caught:
            steps.send(None)
        self.assertTrue(caught.exception.may_have_run)

    def test_parts_that_come_twice_are_told_once(self):
        told = []
        sending = requests.Many([transaction() for _ in range(3)], lambda index, result: told.append(index))
        played = self.send([[part(1), lost()], [part(0), part(1), part(2)]], sending)
        self.assertEqual(told, [1, 0, 2])
        self.assertEqual((len(played.returned), played.returned.attempts, played.returned[2].request), (3, 2, 1))

    def test_an_answer_without_all_results_is_an_error(self):
        with self.assertRaisesRegex(kilokv.InternalError, "without answering all"):
            self.send([[part(0)]], requests.Many([transaction(), transaction()]))
        with self.assertRaisesRegex(kilokv.InternalError, "transaction 7 of 2"):
            sending = requests.Many([transaction(), transaction()])
            sending.take(part(7))

    def test_the_lease_is_renewed_and_its_end_is_noticed(self):
        played = Played(self.session.renew_until_ended(),
                        [pb.KeepSessionAliveResponse(), error(16, pb.ERROR_REASON_LOGIN_WRONG, not_run=True),
                         error(9, pb.ERROR_REASON_SESSION_UNKNOWN, not_run=True)])
        self.assertEqual(played.pauses, [20, 20, 20])
        with self.assertRaises(kilokv.SessionUnknownError):
            self.session.begin()


class UploadTest(Fixture):
    def transaction(self, guards):
        made = kilokv.Transaction()
        for i in range(guards):
            made.guard_version(f"k{i}", i)
        return made.add("a", 1)

    def test_few_guards_are_not_uploaded(self):
        self.assertEqual(Played(self.session.execute(self.transaction(1024), None), [answer()]).methods, ["Execute"])

    def test_many_guards_are_uploaded_under_the_number_of_the_commit(self):
        played = Played(self.session.execute(self.transaction(1025), None), [pb.UploadReadSetResponse(), answer()])
        chunk, commit = (call.request for call in played.calls)
        self.assertEqual((len(chunk.keys), chunk.id.number, chunk.offset), (1025, 1, 0))
        self.assertEqual((commit.uploaded_keys, len(commit.transaction.guards), commit.id.number), (1025, 0, 1))

    def test_what_the_server_has_lost_is_uploaded_again(self):
        missing = error(9, pb.ERROR_REASON_UPLOAD_MISSING)
        played = Played(self.session.execute(self.transaction(2000), None), [
            pb.UploadReadSetResponse(), missing, pb.UploadReadSetResponse(), answer()])
        self.assertEqual(played.methods, ["UploadReadSet", "Execute"] * 2)
        self.assertEqual(played.returned.attempts, 2)

    def test_a_session_that_is_gone_ends_the_commit(self):
        self.failing(self.session.execute(self.transaction(2000), None),
                     [error(9, pb.ERROR_REASON_SESSION_UNKNOWN, not_run=True)], kilokv.SessionUnknownError)

    def test_a_server_with_lower_limits_gets_smaller_chunks(self):
        too_many = error(3, pb.ERROR_REASON_OUT_OF_RANGE, setting="--guards-max", not_run=True)
        steps = self.session.execute(self.transaction(100), None)
        played = Played(steps, [too_many, pb.UploadReadSetResponse(), answer()])
        self.assertEqual([call.request.id.number for call in played.calls], [1, 2, 2])

    def test_a_transaction_that_waits_is_never_uploaded(self):
        made = kilokv.Transaction(wait_timeout=1)
        for i in range(2000):
            made.guard_version(f"k{i}", i, on_false=kilokv.WAIT)
        self.assertEqual(Played(self.session.execute(made, None), [answer()]).methods, ["Execute"])


class AttachTest(Fixture):
    def known(self, number, **fields):
        return pb.KnownRequest(number=number, transactions=2, **fields)

    def test_a_long_list_comes_in_parts(self):
        first = pb.AttachSessionResponse(holder=4, lease_us=60_000_000, acknowledged_through=1, more=True,
                                         next_number=3, next_result=1, requests=[self.known(3, results=[done(0)])])
        last = pb.AttachSessionResponse(holder=4, lease_us=60_000_000, acknowledged_through=1, requests=[
            self.known(3, state=pb.KnownRequest.STATE_DECIDED, decided=2, results=[done(1)]),
            self.known(9, state=pb.KnownRequest.STATE_PARKED, parked=2)])
        core, _, known = Played(attach(self.caller, b"s" * 16, 0), [first, last]).returned
        self.assertEqual([one.number for one in known], [3, 9])
        self.assertEqual(known[0].state, kilokv.RequestState.DECIDED)
        self.assertTrue(all(result.committed for result in known[0].results))
        self.assertEqual((core.holder, core.begin()[0]), (4, 10))

    def test_a_list_that_contradicts_itself_is_an_error(self):
        for wrong in (pb.AttachSessionResponse(holder=1, requests=[self.known(3), self.known(2)]),
                      pb.AttachSessionResponse(holder=1, more=True),
                      pb.AttachSessionResponse(holder=1, requests=[self.known(3, results=[done(2)])])):
            self.failing(attach(self.caller, b"s" * 16, 0), [wrong], kilokv.InternalError)

    def test_only_a_holder_that_has_attached_can_ask(self):
        self.failing(self.session.known_requests(), [], kilokv.FailedPreconditionError)


if __name__ == "__main__":
    unittest.main()
