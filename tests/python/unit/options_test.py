#!/usr/bin/env python3
"""How a client finds its server: arguments, variables of the environment, TLS and tokens."""

import pathlib
import tempfile
import unittest

import kilokv
from kilokv.options import from_environment, session_id_from_environment, trace_metadata

TOKEN = "kilokv_" + "0" * 16 + "_" + "a" * 64


class OptionsTest(unittest.TestCase):
    def test_arguments_come_before_variables_and_variables_before_defaults(self):
        self.assertEqual(from_environment({}).endpoint, "127.0.0.1:7070")
        self.assertEqual(from_environment({"KILOKV_ENDPOINT": ""}).endpoint, "127.0.0.1:7070")
        self.assertEqual(from_environment({"KILOKV_ENDPOINT": "h:1"}).endpoint, "h:1")
        self.assertEqual(from_environment({"KILOKV_ENDPOINT": "h:1"}, endpoint="i:2").endpoint, "i:2")

    def test_an_endpoint_is_a_host_and_a_port(self):
        for wrong in ("", "host", ":7070", "host:", "host:0", "host:65536", "host:7070x", "host:٣"):
            with self.assertRaisesRegex(ValueError, "HOST:PORT"):
                kilokv.ClientOptions(endpoint=wrong)
        with self.assertRaisesRegex(ValueError, "write 127.0.0.1:7070, without http://"):
            kilokv.ClientOptions(endpoint="http://127.0.0.1:7070/")
        with self.assertRaisesRegex(ValueError, "the variable KILOKV_ENDPOINT: 'host' is not HOST:PORT"):
            from_environment({"KILOKV_ENDPOINT": "host"})
        with self.assertRaisesRegex(TypeError, "the endpoint must be a str, not int"):
            kilokv.ClientOptions(endpoint=7070)

    def test_times_and_counts_are_checked(self):
        for name in ("timeout", "connect_timeout", "wait_for_server", "backoff_min", "backoff_max"):
            for wrong, error in (("5", TypeError), (None, TypeError), (-1, ValueError), (float("nan"), ValueError)):
                with self.assertRaisesRegex(error, name):
                    kilokv.ClientOptions(**{name: wrong})
        for wrong, error in ((0, ValueError), (1.5, TypeError)):
            with self.assertRaisesRegex(error, "connections"):
                kilokv.ClientOptions(connections=wrong)
        with self.assertRaisesRegex(TypeError, "tls must be a kilokv.Tls, not bool"):
            kilokv.ClientOptions(tls=True)

    def test_each_variable_of_tls_turns_it_on(self):
        self.assertIsNone(from_environment({}).tls)
        self.assertIsNone(from_environment({"KILOKV_CLIENT_TLS": "0"}).tls)
        self.assertEqual(from_environment({"KILOKV_CLIENT_TLS": "1"}).tls, kilokv.Tls())
        found = from_environment({"KILOKV_CLIENT_TLS_CA": "ca", "KILOKV_CLIENT_TLS_CERT": "c",
                                  "KILOKV_CLIENT_TLS_KEY": "k", "KILOKV_CLIENT_TLS_SERVER_NAME": "n"}).tls
        self.assertEqual(found, kilokv.Tls("ca", "c", "k", "n"))
        with self.assertRaisesRegex(ValueError, "KILOKV_CLIENT_TLS"):
            from_environment({"KILOKV_CLIENT_TLS": "yes"})

    def test_a_certificate_needs_its_key(self):
        for wrong in (kilokv.Tls(cert_file="c"), kilokv.Tls(key_file="k")):
            with self.assertRaisesRegex(ValueError, "both"):
                wrong.read()

    def test_a_token_comes_from_a_file_or_a_variable(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "token"
            file.write_text(TOKEN + "\n", encoding="utf-8")
            self.assertEqual(from_environment({"KILOKV_CLIENT_TOKEN_FILE": str(file)}).token, TOKEN)
            file.write_text("\n", encoding="utf-8")
            with self.assertRaisesRegex(ValueError, "empty"):
                from_environment({"KILOKV_CLIENT_TOKEN_FILE": str(file)})
        self.assertEqual(from_environment({"KILOKV_CLIENT_TOKEN": TOKEN}).token, TOKEN)
        self.assertEqual(session_id_from_environment({"KILOKV_CLIENT_SESSION": "ab"}), "ab")
        self.assertIsNone(session_id_from_environment({}))

    def test_a_token_is_well_formed_and_stays_secret(self):
        with self.assertRaisesRegex(ValueError, "malformed"):
            kilokv.ClientOptions(token="secret")
        self.assertNotIn(TOKEN, repr(kilokv.ClientOptions(token=TOKEN)))

    def test_without_tls_a_token_stays_on_this_machine(self):
        for here in ("127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"):
            self.assertEqual(kilokv.ClientOptions(endpoint=here, token=TOKEN).metadata[0][1], f"Bearer {TOKEN}")
        for away in ("10.0.0.1:1", "127.example.org:1", "example.org:1"):
            with self.assertRaisesRegex(ValueError, "without TLS"):
                kilokv.ClientOptions(endpoint=away, token=TOKEN)
            kilokv.ClientOptions(endpoint=away, token=TOKEN, tls=kilokv.Tls())

    def test_a_trace_is_well_formed(self):
        good = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
        self.assertEqual(trace_metadata(good), (("traceparent", good),))
        self.assertEqual(trace_metadata(None), ())
        for wrong in ("", "00", good.upper(), good + "x"):
            with self.assertRaisesRegex(ValueError, "traceparent"):
                trace_metadata(wrong)


if __name__ == "__main__":
    unittest.main()
