#!/usr/bin/env python3
"""Where a watch goes on, and when it does not, without a server."""

import time
import unittest

import kilokv
from kilokv._core.failures import error_of_call
from kilokv._core.retry import Caller
from kilokv._core.watch import WatchCursor
from kilokv.v1 import kilokv_pb2 as pb

INCARNATION = bytes(range(16))


def error(code, reason=0, text="", **detail):
    trailing = []
    if reason:
        trailing = [("kilokv-error-bin", pb.ErrorDetail(reason=reason, **detail).SerializeToString())]
    return error_of_call(code, text, trailing, "Watch", "127.0.0.1:1")


def answer(version, writes_of_it=0, **more):
    return pb.WatchResponse(position=pb.WatchPosition(version=version, writes=writes_of_it), **more)


class WatchCursorTest(unittest.TestCase):
    def cursor(self, after=None, incarnation=None, reconnect=60.0, idle=10.0, reached=True):
        caller = Caller(kilokv.ClientOptions())
        if reached:
            caller.has_reached()
        cursor = WatchCursor(caller, b"a", b"b", after=after, incarnation=incarnation, reconnect=reconnect, idle=idle)
        cursor.begin()
        return cursor

    def test_it_begins_where_the_program_says(self):
        self.assertFalse(self.cursor().request.HasField("after"))
        for after, expected in ((0, (0, 0)), (7, (7, 0)), (kilokv.WatchPosition(7, 3), (7, 3))):
            request = self.cursor(after).request
            self.assertTrue(request.HasField("after"))
            self.assertEqual((request.after.version, request.after.writes), expected)
        request = self.cursor(incarnation=INCARNATION.hex()).request
        self.assertEqual((getattr(request.range, "from"), request.range.to, request.incarnation),
                         (b"a", b"b", INCARNATION))

    def test_wrong_arguments_are_refused(self):
        for wrong in ({"after": -1}, {"after": 1 << 64}, {"after": kilokv.WatchPosition(1, 1 << 32)},
                      {"incarnation": "x" * 32}, {"incarnation": "00"}, {"reconnect": -1.0}, {"idle": 0.0}):
            with self.assertRaises(ValueError, msg=wrong):
                self.cursor(**wrong)
        with self.assertRaises(TypeError):
            self.cursor(after="7")

    def test_it_moves_on_with_each_answer(self):
        cursor = self.cursor(after=3)
        write = pb.WatchedWrite(key=b"k", version=5, batch=2, rank=1, batch_time_us=9, expires_at_us=20)
        write.value.integer = 4
        part = cursor.take(answer(5, 1, writes=[write], unfinished=True, incarnation=INCARNATION))
        self.assertEqual(part, ([(b"k", 4, 5, 9, 20, False, 2, 1)], (5, 1), True, INCARNATION.hex()))
        self.assertEqual((cursor.request.after.version, cursor.request.after.writes), (5, 1))
        gone = pb.WatchedWrite(key=b"k", version=5, batch=2, rank=1, batch_time_us=9, expired=True)
        part = cursor.take(answer(5, writes=[gone]))  # only the first answer of a stream has the incarnation
        self.assertEqual(part, ([(b"k", None, 5, 9, None, True, 2, 1)], (5, 0), False, INCARNATION.hex()))
        self.assertEqual((cursor.request.after.version, cursor.request.after.writes), (5, 0))
        self.assertEqual(cursor.request.incarnation, INCARNATION)

    def test_it_goes_on_after_a_loss(self):
        for failure in (error(14, text="Socket closed"), error(14, pb.ERROR_REASON_RECOVERING), error(1),
                        error(14, pb.ERROR_REASON_DRAINING), error(1, pb.ERROR_REASON_CANCELLED), error(13), error(2),
                        error(8, pb.ERROR_REASON_CALLS_FULL, retry_after_us=1000)):
            self.assertLess(self.cursor().delay_after(failure), 0.1, failure)

    def test_it_ends_with_what_to_connect_again_does_not_help_against(self):
        for failure, kind in ((error(10, pb.ERROR_REASON_WATCH_TOO_OLD), kilokv.WatchTooOldError),
                              (error(7, pb.ERROR_REASON_RIGHT_MISSING), kilokv.RightMissingError),
                              (error(3, pb.ERROR_REASON_OUT_OF_RANGE), kilokv.OutOfRangeError),
                              (error(13, pb.ERROR_REASON_FAILED), kilokv.FailedError),
                              (kilokv.ClosedError(), kilokv.ClosedError)):
            with self.assertRaises(kind):
                self.cursor().delay_after(failure)

    def test_no_server_at_the_first_call_is_an_error_at_once(self):
        refused = error(14, text="Connection refused")
        with self.assertRaisesRegex(kilokv.UnavailableError, "nothing listens"):
            self.cursor(reached=False).delay_after(refused)
        self.cursor().delay_after(refused)
        cursor = self.cursor(reached=False)
        cursor.take(answer(1))
        cursor.delay_after(refused)

    def test_a_watch_that_reaches_no_server_ends_within_the_time_to_connect(self):
        cursor = WatchCursor(Caller(kilokv.ClientOptions(connect_timeout=0)), b"", b"", after=None, incarnation=None,
                             reconnect=60.0, idle=10.0)
        cursor.begin()
        with self.assertRaisesRegex(kilokv.UnavailableError, "was closed"):
            cursor.delay_after(error(14, text="Socket closed"))

    def test_it_gives_up_in_time_with_the_error_of_the_loss(self):
        cursor = self.cursor(reconnect=0.1)
        cursor.delay_after(error(14, text="Socket closed"))
        self.assertTrue(cursor.is_lost)
        self.assertLessEqual(cursor.quiet_max, 0.1)
        time.sleep(0.11)
        with self.assertRaisesRegex(kilokv.UnavailableError, "was closed"):
            cursor.delay_after(kilokv.UnavailableError("silence"))
        cursor.begin()
        self.assertFalse(cursor.is_lost)
        cursor.delay_after(error(14, text="Socket closed"))

    def test_delays_double_until_the_next_answer(self):
        cursor = self.cursor()
        delays = [cursor.delay_after(error(14)) for _ in range(12)]
        self.assertLess(delays[0], 0.011)
        self.assertGreater(delays[-1], 0.4)
        cursor.take(answer(1))
        self.assertLess(cursor.delay_after(error(14)), 0.011)


if __name__ == "__main__":
    unittest.main()
