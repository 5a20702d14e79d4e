#!/usr/bin/env python3
"""The classes of errors, and what an error says about its request."""

import inspect
import unittest

import grpc
import kilokv
from kilokv import errors
from kilokv._core.failures import error_of_call
from kilokv.v1 import kilokv_pb2 as pb


def failure(code, detail=None, text="words"):
    trailing = [] if detail is None else [("kilokv-error-bin", detail.SerializeToString())]
    return error_of_call(code.value[0], text, trailing, "Execute", "127.0.0.1:1")


class ErrorsTest(unittest.TestCase):
    def test_each_reason_of_the_protocol_has_a_class(self):
        names = {name[len("ERROR_REASON_"):] for name in pb.ErrorReason.keys()} - {"UNSPECIFIED"}
        self.assertEqual(set(errors.CLASS_OF_REASON), names)
        self.assertEqual(len(set(errors.CLASS_OF_REASON.values())), len(names))

    def test_each_class_is_public_and_says_what_it_means(self):
        for name, kind in vars(errors).items():
            if inspect.isclass(kind) and issubclass(kind, errors.Error):
                self.assertIs(getattr(kilokv, name), kind)
                self.assertTrue(kind.__doc__, name)

    def test_each_code_of_grpc_has_a_class_with_its_name(self):
        for code in grpc.StatusCode:
            if code is not grpc.StatusCode.OK:
                error = failure(code)
                expected = {"ALREADY_EXISTS": "UNKNOWN", "OUT_OF_RANGE": "INVALID_ARGUMENT"}.get(code.name, code.name)
                self.assertEqual(error.code, expected)

    def test_the_detail_names_everything(self):
        detail = pb.ErrorDetail(field="f", limit="5 bytes", actual="6 bytes", setting="--x", retry_after_us=1_500_000,
                                reason=pb.ERROR_REASON_QUEUE_FULL, not_run=True)
        error = failure(grpc.StatusCode.RESOURCE_EXHAUSTED, detail)
        self.assertIs(type(error), kilokv.QueueFullError)
        self.assertEqual((error.reason, error.field, error.limit, error.actual, error.setting, error.retry_after),
                         ("QUEUE_FULL", "f", "5 bytes", "6 bytes", "--x", 1.5))
        self.assertTrue(error.not_run and error.never_ran)
        self.assertIn("QUEUE_FULL", str(error))

    def test_a_reason_under_another_code_keeps_the_class_of_the_code(self):
        error = failure(grpc.StatusCode.NOT_FOUND, pb.ErrorDetail(reason=pb.ERROR_REASON_UNKNOWN_METHOD))
        self.assertIs(type(error), kilokv.NotFoundError)
        self.assertEqual(error.reason, "UNKNOWN_METHOD")

    def test_a_reason_of_a_newer_server_has_no_name(self):
        error = failure(grpc.StatusCode.UNAVAILABLE, pb.ErrorDetail(reason=9999))
        self.assertIs(type(error), kilokv.UnavailableError)
        self.assertEqual(error.reason, "")

    def test_which_errors_say_that_nothing_ran(self):
        for code in grpc.StatusCode:
            if code is not grpc.StatusCode.OK:
                says_so = code.name in ("INVALID_ARGUMENT", "OUT_OF_RANGE", "PERMISSION_DENIED", "UNAUTHENTICATED",
                                        "UNIMPLEMENTED")
                self.assertEqual(failure(code).never_ran, says_so, code)
                self.assertTrue(failure(code, pb.ErrorDetail(not_run=True)).never_ran, code)

    def test_a_login_that_is_lost_during_the_call_may_have_run(self):
        lost = failure(grpc.StatusCode.UNAUTHENTICATED, pb.ErrorDetail(reason=pb.ERROR_REASON_LOGIN_WRONG))
        self.assertIs(type(lost), kilokv.LoginWrongError)
        self.assertTrue(lost.may_have_run)
        self.assertFalse(lost.never_ran)

    def test_words_of_grpc_become_plain(self):
        for text, kind, plain in [
                ("failed to connect to all addresses; Connection refused", kilokv.UnavailableError, "nothing listens"),
                ("Socket closed", kilokv.UnavailableError, "was closed"),
                ("DNS resolution failed", kilokv.UnavailableError, "cannot be resolved"),
                ("Ssl handshake failed: CERTIFICATE_VERIFY_FAILED", kilokv.UnauthenticatedError, "not accepted"),
                ("Peer name a is not in peer certificate", kilokv.UnauthenticatedError, "not accepted"),
                ("Ssl handshake failed: wrong version number", kilokv.UnauthenticatedError, "does not use TLS")]:
            error = failure(grpc.StatusCode.UNAVAILABLE, text=text)
            self.assertIs(type(error), kind)
            self.assertIn(plain, error.message)

    def test_a_message_that_grpc_refuses_names_the_setting(self):
        error = failure(grpc.StatusCode.RESOURCE_EXHAUSTED, text="Received message larger than max (20 vs. 16)")
        self.assertIs(type(error), kilokv.InvalidArgumentError)
        self.assertEqual((error.field, error.actual, error.setting), ("message", "20 bytes", "--message-bytes-max"))
        self.assertTrue(error.never_ran)


if __name__ == "__main__":
    unittest.main()
