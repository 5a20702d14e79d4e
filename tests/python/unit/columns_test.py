#!/usr/bin/env python3
"""Columns from numpy arrays: the message, and its results."""

import unittest

import kilokv
import numpy as np
from kilokv.columns import encode_keys
from kilokv.v1 import columns_pb2, transaction_pb2
from kilokv.v1 import kilokv_pb2 as pb


def decoded(columns):
    return columns_pb2.TransactionColumns.FromString(columns.encode())


class ColumnsTest(unittest.TestCase):
    def test_the_message_has_one_operation_for_each_transaction(self):
        message = decoded(kilokv.Columns.add(["a", b"bcd"], [5, -1]))
        self.assertEqual((list(message.guard_ends), list(message.then_ends)), ([0, 0], [1, 2]))
        self.assertEqual((list(message.key_ends), message.key_bytes), ([1, 4], b"abcd"))
        self.assertEqual(message.operation_kind, bytes([transaction_pb2.OPERATION_KIND_ADD] * 2))
        self.assertEqual((list(message.operation_key), list(message.operation_value)), ([0, 1], [5, -1]))

    def test_the_same_keys_in_each_form(self):
        keys = [b"a\x00b", b"cde", b"\xffxy"]
        wide = np.frombuffer(b"".join(keys), np.uint8).reshape(3, 3)
        for form in (keys, np.array(keys), wide, np.array(keys).view("V3")):
            ends, joined = encode_keys(form)
            self.assertEqual((ends.tolist(), joined), ([3, 6, 9], b"".join(keys)))

    def test_padded_keys_end_before_their_padding(self):
        ends, joined = encode_keys(np.array([b"a", b"bcd", b"ef"]))
        self.assertEqual((ends.tolist(), joined), ([1, 4, 6], b"abcdef"))
        ends, joined = encode_keys(np.array([b"a"], "S3").view("V3"))
        self.assertEqual((ends.tolist(), joined), ([3], b"a\x00\x00"))
        ends, joined = encode_keys(np.array([b"ab", b"cd", b"ef"])[::2])
        self.assertEqual((ends.tolist(), joined), ([2, 4], b"abef"))

    def test_wrong_arrays_are_refused(self):
        for keys in (np.zeros(3), np.zeros((2, 2), np.int64), np.array(["a"])):
            with self.assertRaises(TypeError):
                kilokv.Columns.put(keys, [1] * len(keys))
        with self.assertRaisesRegex(ValueError, "2 keys and 1 values"):
            kilokv.Columns.put(["a", "b"], [1])
        for values, error in (([1.5], TypeError), ([1 << 63], ValueError), ([-(1 << 70)], ValueError),
                              (np.array([1 << 63], np.uint64), ValueError), (["x"], TypeError)):
            with self.assertRaises(error):
                kilokv.Columns.put(["a"], values)
        with self.assertRaisesRegex(ValueError, "no transaction"):
            kilokv.Columns.put([], []).sending()

    def test_parts_have_their_own_keys(self):
        parts = [decoded(part) for part in kilokv.Columns.put([b"a", b"bb", b"ccc"], [1, 2, 3]).parts(2)]
        self.assertEqual([part.key_bytes for part in parts], [b"abb", b"ccc"])
        self.assertEqual([list(part.key_ends) for part in parts], [[1, 3], [3]])
        self.assertEqual(list(parts[1].operation_value), [3])

    def test_each_record_can_expire(self):
        keys, ttl, at = ["a", "b", "c"], columns_pb2.EXPIRY_KIND_TTL, columns_pb2.EXPIRY_KIND_AT
        for times, kind, operations, expected in (
                ({"ttl": 2}, ttl, [0, 1, 2], [2_000_000] * 3), ({"ttl": [1e-6, 2, 1e13]}, ttl, [0, 1, 2],
                                                                [1, 2_000_000, 10 ** 18]),
                ({"expires_at_us": 5}, at, [0, 1, 2], [5] * 3), ({"expires_at_us": np.array([5, 0, 7])}, at, [0, 2],
                                                                 [5, 7])):
            for make in (kilokv.Columns.put, kilokv.Columns.add):
                message = decoded(make(keys, [1, 2, 3], **times))
                self.assertEqual((list(message.expiry_operation), message.expiry_kind, list(message.expiry_us)),
                                 (operations, bytes([kind]) * len(operations), expected))
        last = [decoded(part) for part in kilokv.Columns.put(keys, [1, 2, 3], expires_at_us=[5, 0, 7]).parts(2)][1]
        self.assertEqual((list(last.expiry_operation), list(last.expiry_us)), ([0], [7]))
        self.assertFalse(decoded(kilokv.Columns.put(keys, [1, 2, 3])).expiry_kind)

    def test_wrong_times_are_refused(self):
        for times, error in (({"ttl": 1, "expires_at_us": 1}, ValueError), ({"ttl": 0}, ValueError),
                             ({"ttl": [1, -1]}, ValueError), ({"ttl": float("nan")}, ValueError),
                             ({"ttl": [1]}, ValueError), ({"expires_at_us": 0}, ValueError),
                             ({"expires_at_us": [1, -1]}, ValueError), ({"expires_at_us": [1, 2, 3]}, ValueError),
                             ({"expires_at_us": 1.5}, TypeError), ({"expires_at_us": 1 << 63}, ValueError),
                             ({"ttl": "1s"}, TypeError)):
            with self.assertRaises(error, msg=times):
                kilokv.Columns.put(["a", "b"], [1, 2], **times)

    def test_the_request_is_a_message_of_the_protocol(self):
        sending = kilokv.Columns.put([b"k" * 200], [7]).sending()
        sending.message.id.number = 9
        request = pb.ExecuteBatchRequest.FromString(sending.message.SerializeToString())
        self.assertEqual((request.id.number, request.columns.key_bytes), (9, b"k" * 200))

    def test_results_in_parts_and_twice(self):
        sending = kilokv.Columns.get([b"a", b"b", b"c"]).sending()
        first = columns_pb2.ResultColumns(batch=7, first_version=500, index=[2, 0], outcome=b"\x01\x02", rank=[3, 4],
                                          read_ends=[1, 1])
        first.reads.type, first.reads.integer[:] = b"\x01", [-9]
        last = columns_pb2.ResultColumns(batch=8, first_version=600, index=[1, 2], outcome=b"\x01\x01", rank=[0, 3],
                                         wrote=b"\x00\x01", read_ends=[1, 2])
        last.reads.type, last.reads.integer[:] = b"\x00\x01", [0, -9]
        sending.take(pb.ExecuteBatchResponse(columns=first))
        with self.assertRaisesRegex(kilokv.InternalError, "without answering all"):
            sending.results(None, 1, 1)
        sending.take(pb.ExecuteBatchResponse(columns=last))
        results = sending.results(None, 4, 2)
        self.assertEqual(results.outcome.tolist(), [2, 1, 1])
        self.assertEqual(results.version.tolist(), [0, 0, 603])
        self.assertEqual(results.batch.tolist(), [7, 8, 8])
        self.assertEqual((results.request, results.attempts, results.all_committed), (4, 2, False))
        values, present = results.integers()
        self.assertEqual((values.tolist(), present.tolist()), ([0, 0, -9], [False, False, True]))

    def test_bytes_are_no_integers(self):
        sending = kilokv.Columns.get([b"a"]).sending()
        message = columns_pb2.ResultColumns(batch=1, outcome=b"\x01", rank=[0], read_ends=[1])
        message.reads.type, message.reads.integer[:] = b"\x02", [0]
        sending.take(pb.ExecuteBatchResponse(columns=message))
        with self.assertRaisesRegex(TypeError, "key 0 holds bytes"):
            sending.results(None, 1, 1).integers()


if __name__ == "__main__":
    unittest.main()
