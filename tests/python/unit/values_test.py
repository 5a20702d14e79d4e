#!/usr/bin/env python3
"""Keys, integers, ranges and transactions, as they are put into messages."""

import unittest

import kilokv
from kilokv import values
from kilokv.v1 import transaction_pb2 as pb


class ValuesTest(unittest.TestCase):
    def test_a_key_is_bytes_and_a_str_is_its_utf8(self):
        self.assertEqual(values.to_key("ä"), b"\xc3\xa4")
        self.assertEqual(values.to_key(bytearray(b"\x00\xff")), b"\x00\xff")
        for wrong in (5, None, ["a"]):
            with self.assertRaises(TypeError):
                values.to_key(wrong)

    def test_an_integer_has_64_bits(self):
        for integer in (kilokv.INTEGER_MIN, -1, 0, kilokv.INTEGER_MAX):
            self.assertEqual(values.to_integer(integer), integer)
        for wrong in (kilokv.INTEGER_MIN - 1, kilokv.INTEGER_MAX + 1, 1 << 100):
            with self.assertRaisesRegex(ValueError, str(wrong)):
                values.to_integer(wrong)
        for wrong in (1.0, "1", True, None):
            with self.assertRaises(TypeError):
                values.to_integer(wrong)

    def test_the_end_of_a_prefix(self):
        self.assertEqual(kilokv.prefix_end("a/"), b"a0")
        self.assertEqual(kilokv.prefix_end(b"a\xff\xff"), b"b")
        self.assertEqual(kilokv.prefix_end(b"\xff"), b"")
        self.assertEqual(kilokv.prefix_end(b""), b"")

    def test_a_range_is_a_prefix_or_two_bounds(self):
        self.assertEqual(values.to_range("a", "b", None), (b"a", b"b"))
        self.assertEqual(values.to_range(b"", b"", "a"), (b"a", b"b"))
        with self.assertRaises(ValueError):
            values.to_range("a", b"", "b")

    def test_seconds_become_microseconds(self):
        self.assertEqual(values.to_microseconds(0.0015, "x"), 1500)
        for wrong in (-0.1, float("nan")):
            with self.assertRaisesRegex(ValueError, "wait_timeout"):
                values.to_microseconds(wrong, "wait_timeout")


class TransactionTest(unittest.TestCase):
    def test_only_fail_and_wait_say_what_a_false_guard_does(self):
        for wrong in (True, 1, "WAIT", None):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "kilokv.FAIL or kilokv.WAIT"):
                kilokv.Transaction().guard("a", ">=", 1, on_false=wrong)

    def test_guards_are_in_their_order_with_their_operands(self):
        transaction = kilokv.Transaction(precedence=3, wait_timeout=1.5, expire_runs_else=True)
        transaction.guard("a", "<=", -5).guard("a", ">", other="b", on_false=kilokv.WAIT)
        transaction.guard_exists("a").guard_absent("a").guard_version("a", 7).guard_unchanged("a", 8)
        transaction.guard_bytes("a", b"\x00").guard_range_unchanged("", "", 9)
        transaction.guard_time_before(10).guard_time_after(key="t", on_false=kilokv.WAIT)
        message = transaction.message
        self.assertEqual([guard.kind for guard in message.guards], [
            pb.GUARD_KIND_LESS_EQUAL, pb.GUARD_KIND_GREATER, pb.GUARD_KIND_EXISTS, pb.GUARD_KIND_ABSENT,
            pb.GUARD_KIND_VERSION_EQUAL, pb.GUARD_KIND_UNCHANGED, pb.GUARD_KIND_BYTES_EQUAL,
            pb.GUARD_KIND_RANGE_UNCHANGED, pb.GUARD_KIND_TIME_BEFORE, pb.GUARD_KIND_TIME_AFTER])
        self.assertEqual(message.guards[0].integer, -5)
        self.assertEqual((message.guards[1].other_key, message.guards[1].on_false), (b"b", pb.ON_FALSE_WAIT))
        self.assertTrue(message.guards[7].HasField("range"))
        self.assertEqual((message.guards[8].time_us, message.guards[9].key), (10, b"t"))
        self.assertEqual((message.precedence, message.wait_timeout_us, message.expire_runs_else), (3, 1_500_000, True))

    def test_a_time_of_zero_and_a_version_of_zero_are_sent(self):
        message = kilokv.Transaction().guard_time_after(0).guard_version("a", 0).guard("a", "==", 0).message
        self.assertEqual([guard.WhichOneof("operand") for guard in message.guards], ["time_us", "version", "integer"])

    def test_operands(self):
        transaction = kilokv.Transaction()
        read = transaction.get("a")
        transaction.put("b", read).add("b", -read).put("c", -(-read)).put("d", b"").put("e", kilokv.COMMIT_VERSION)
        transaction.add("f", kilokv.BATCH_TIME).add("g", 0)
        operands = [operation.operand for operation in transaction.message.then][1:]
        self.assertEqual([operand.WhichOneof("kind") for operand in operands], [
            "get", "get_negated", "get", "bytes", "commit_version", "batch_time", "integer"])

    def test_a_write_can_expire(self):
        transaction = kilokv.Transaction().put("a", 1, ttl=1.5).add("a", 1, expires_at_us=7).put("a", 1)
        transaction.otherwise.add("a", 1, ttl=1e-6)
        first, second, third = transaction.message.then
        self.assertEqual((first.ttl_us, second.expires_at_us, third.WhichOneof("expiry")), (1_500_000, 7, None))
        self.assertEqual(getattr(transaction.message, "else")[0].ttl_us, 1)

    def test_the_wait_counts_only_with_a_guard_that_waits(self):
        self.assertEqual(kilokv.Transaction(wait_timeout=9).guard("a", ">", 0).wait_seconds, 0)
        self.assertEqual(kilokv.Transaction(wait_timeout=9).guard("a", ">", 0, on_false=kilokv.WAIT).wait_seconds, 9)

    def test_misuse_is_refused_and_adds_nothing(self):
        transaction = kilokv.Transaction()
        of_else = transaction.otherwise.get("a")
        for error, misuse in [
                (ValueError, lambda: transaction.put("a", of_else)),
                (ValueError, lambda: transaction.put("a", kilokv.Transaction().get("a"))),
                (ValueError, lambda: transaction.put("a", 1 << 63)),
                (TypeError, lambda: transaction.put("a", "text")),
                (TypeError, lambda: transaction.put("a", None)),
                (TypeError, lambda: transaction.add("a", b"1")),
                (TypeError, lambda: transaction.put(1, 1)),
                (ValueError, lambda: transaction.put("a", 1, ttl=1, expires_at_us=1)),
                (ValueError, lambda: transaction.put("a", 1, ttl=0)),
                (ValueError, lambda: transaction.put("a", 1, ttl=1e-7)),
                (ValueError, lambda: transaction.add("a", 1, ttl=-1)),
                (ValueError, lambda: transaction.add("a", 1, ttl=float("nan"))),
                (TypeError, lambda: transaction.add("a", 1, ttl="1s")),
                (ValueError, lambda: transaction.put("a", 1, expires_at_us=0)),
                (ValueError, lambda: transaction.put("a", 1, expires_at_us=1 << 63)),
                (TypeError, lambda: transaction.put("a", 1, expires_at_us=1.5)),
                (ValueError, lambda: transaction.guard("a", "=", 1)),
                (ValueError, lambda: transaction.guard("a", ">=")),
                (ValueError, lambda: transaction.guard("a", ">=", 1, other="b")),
                (ValueError, lambda: transaction.guard_time_after()),
                (ValueError, lambda: kilokv.Transaction(wait_timeout=-1))]:
            with self.assertRaises(error):
                misuse()
        self.assertEqual(len(transaction.message.then), 0)


class ResultTest(unittest.TestCase):
    def result(self, transaction, **fields):
        return kilokv.Result(pb.TransactionResult(**fields), transaction)

    def test_a_handle_finds_its_read(self):
        transaction = kilokv.Transaction()
        first, pairs, second = transaction.get("a"), transaction.range_get("b", "c", 5), transaction.get("d")
        of_else = transaction.otherwise.get("a")
        reads = [pb.Read(operation=0, key=b"a", value=pb.Value(integer=0), version=3),
                 pb.Read(operation=1, key=b"b1", value=pb.Value(bytes=b""), version=4),
                 pb.Read(operation=1, key=b"b2", value=pb.Value(integer=5), own_write=True),
                 pb.Read(operation=2, key=b"d")]
        result = self.result(transaction, outcome=pb.OUTCOME_COMMITTED, reads=reads)
        self.assertEqual((result[first], result[second]), (0, None))
        self.assertEqual(result[pairs], [(b"b1", b"", 4, None), (b"b2", 5, None, None)])
        with self.assertRaises(KeyError):
            result[of_else]
        result = self.result(transaction, outcome=pb.OUTCOME_WAIT_EXPIRED, reads=reads[:1])
        self.assertEqual(result[of_else], 0)
        dropped = self.result(transaction, outcome=pb.OUTCOME_COMMITTED, reads_dropped=True)
        for handle in (first, pairs):
            with self.assertRaises(KeyError):
                dropped[handle]

    def test_check_raises_for_every_outcome_but_committed(self):
        self.assertTrue(self.result(None, outcome=pb.OUTCOME_COMMITTED).check().committed)
        with self.assertRaisesRegex(kilokv.NotCommittedError, r"OVERFLOW by then\[0\]") as caught:
            self.result(None, outcome=pb.OUTCOME_OVERFLOW, failed_in=pb.FAILED_IN_THEN).check()
        self.assertEqual(caught.exception.result.outcome, kilokv.Outcome.OVERFLOW)


if __name__ == "__main__":
    unittest.main()
