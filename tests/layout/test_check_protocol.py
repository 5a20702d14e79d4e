#!/usr/bin/env python3
"""The check of the protocol finds each kind of planted change, and lets through what breaks nobody."""

import pathlib
import shutil
import tempfile
import unittest

from check_protocol import PROTOS, ROOT, Protocol, describe, problems

BEFORE = Protocol(describe(ROOT / "proto"))


class ProtocolTest(unittest.TestCase):
    def changed(self, proto, *edits):
        """What the check says of the protos with `old` replaced by `new` in one of them."""
        with tempfile.TemporaryDirectory() as folder:
            for path in PROTOS:
                target = pathlib.Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / "proto" / path, target)
            target = pathlib.Path(folder) / "kilokv/v1" / proto
            text = target.read_text(encoding="utf-8")
            for old, new in edits:
                self.assertIn(old, text)
                text = text.replace(old, new, 1)
            target.write_text(text, encoding="utf-8")
            return list(problems(BEFORE, Protocol(describe(folder))))

    def assert_found(self, pattern, proto, *edits):
        found = self.changed(proto, *edits)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], pattern)

    def test_nothing_has_changed(self):
        self.assertEqual(list(problems(BEFORE, BEFORE)), [])

    def test_number(self):
        found = self.changed("kilokv.proto", ("string actual = 3;", "string actual = 30;"))
        self.assertEqual(found, ["kilokv.v1.ErrorDetail.actual = 3 is gone: reserve the number and the name"])

    def test_type(self):
        self.assert_found(r"ErrorDetail\.retry_after_us = 5: type was TYPE_UINT64, is TYPE_INT64", "kilokv.proto",
                          ("uint64 retry_after_us = 5;", "int64 retry_after_us = 5;"))

    def test_type_of_a_message(self):
        self.assert_found(r"ExecuteResponse\.result = 1: type name was .*TransactionResult, is .*Transaction$",
                          "kilokv.proto", ("TransactionResult result = 1;", "Transaction result = 1;"))

    def test_name(self):
        self.assert_found(r"name was actual, is met", "kilokv.proto", ("string actual = 3;", "string met = 3;"))

    def test_cardinality(self):
        self.assert_found(r"field = 1: cardinality was LABEL_OPTIONAL, is LABEL_REPEATED", "kilokv.proto",
                          ("string field = 1;", "repeated string field = 1;"))

    def test_presence(self):
        found = self.changed("kilokv.proto", ("  string field = 1;", "  optional string field = 1;"))
        self.assertTrue(any("optional was false, is true" in problem for problem in found), found)

    def test_oneof(self):
        self.assert_found(r"CancelRequest\.parked_id = 1: oneof was target, is None", "kilokv.proto",
                          ("  oneof target {\n    uint64 parked_id = 1;", "  uint64 parked_id = 1;\n  oneof target {"))

    def test_packing(self):
        self.assert_found(r"guard_ends = 1: packed was default, is false", "columns.proto",
                          ("guard_ends = 1;", "guard_ends = 1 [packed = false];"))

    def test_enum_value(self):
        self.assert_found(r"Outcome\.OUTCOME_OVERFLOW = 4: name was OUTCOME_OVERFLOW, is OUTCOME_FULL",
                          "transaction.proto", ("OUTCOME_OVERFLOW = 4", "OUTCOME_FULL = 4"))
        self.assert_found(r"Outcome\.OUTCOME_OVERFLOW = 4 is gone", "transaction.proto", ("OUTCOME_OVERFLOW = 4;", ""))

    def test_method(self):
        self.assert_found(r"KiloKV\.Get is gone", "kilokv.proto", ("rpc Get(GetRequest) returns (GetResponse);", ""))
        self.assert_found(r"KiloKV\.Get: input_type", "kilokv.proto", ("rpc Get(GetRequest)", "rpc Get(ScanRequest)"))
        self.assert_found(r"KiloKV\.Get: output_type", "kilokv.proto",
                          ("rpc Get(GetRequest) returns (GetResponse)", "rpc Get(GetRequest) returns (ScanResponse)"))

    def test_streaming(self):
        self.assert_found(r"KiloKV\.Get: server_streaming was false, is true", "kilokv.proto",
                          ("returns (GetResponse)", "returns (stream GetResponse)"))
        self.assert_found(r"KiloKV\.Get: client_streaming was false, is true", "kilokv.proto",
                          ("rpc Get(GetRequest)", "rpc Get(stream GetRequest)"))

    def test_message_and_enum(self):
        found = self.changed("kilokv.proto", ("message NamedText {", "message NamedString {"),
                             ("repeated NamedText settings", "repeated NamedString settings"),
                             ("repeated NamedText details", "repeated NamedString details"))
        self.assertIn("kilokv.v1.NamedText is gone", found)
        found = self.changed("transaction.proto", ("enum FailedIn {", "enum FailedWhere {"),
                             ("FailedIn failed_in = 3;", "FailedWhere failed_in = 3;"))
        self.assertIn("kilokv.v1.FailedIn is gone", found)

    def test_what_is_removed_must_be_reserved(self):
        field = "string active_endpoint = 7;"
        self.assert_found(r"active_endpoint = 7 is gone: reserve", "kilokv.proto", (field, ""))
        self.assert_found(r"active_endpoint = 7 is gone: reserve", "kilokv.proto", (field, "reserved 7;"))
        self.assert_found(r"active_endpoint = 7 is gone: reserve", "kilokv.proto",
                          (field, 'reserved "active_endpoint";'))
        self.assertEqual(self.changed("kilokv.proto", (field, 'reserved 7; reserved "active_endpoint";')), [])
        value = "OUTCOME_OVERFLOW = 4;"
        self.assert_found(r"OUTCOME_OVERFLOW = 4 is gone", "transaction.proto", (value, "reserved 7;"))
        self.assertEqual(self.changed("transaction.proto", (value, 'reserved 4; reserved "OUTCOME_OVERFLOW";')), [])

    def test_what_is_new_breaks_nobody(self):
        self.assertEqual(self.changed("kilokv.proto", ("message StatusRequest {}", "message StatusRequest { bool all = 1; }"),
                                      ("rpc Status(", "rpc Echo(StatusRequest) returns (StatusRequest);\n  rpc Status("),
                                      ("message NamedText {", "message Fresh {}\nmessage NamedText {")), [])


if __name__ == "__main__":
    unittest.main()
