#!/usr/bin/env python3
"""Logins and TLS of the Python clients."""

import asyncio
import pathlib
import sys
import unittest

import kilokv
import kilokv.aio

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
from certificates import CLIENT, OTHER_SERVER, SERVER, Authority  # noqa: E402
from programs import Server, temporary_folder  # noqa: E402


def get_async(endpoint, **options):
    async def main():
        async with kilokv.aio.Client(endpoint, **options) as db:
            return await db.get("account/a")
    return asyncio.run(main())


class LoginTest(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(temporary_folder()))
        admin, self.alice = folder / "admin.token", folder / "alice.token"
        self.server = self.enterContext(Server(folder, "--login", "on", "--bootstrap-file", admin))
        flags = ("--token-file", admin)
        self.server.client("role", "grant", "teller", "--read", "account/", "--write", "account/", *flags)
        self.server.client("user", "set", "alice", "--role", "teller", *flags)
        self.server.client("token", "create", "alice", "--file", self.alice, *flags)

    def test_a_call_needs_a_token(self):
        with kilokv.Client(self.server.endpoint) as db:
            with self.assertRaises(kilokv.LoginMissingError) as caught:
                db.get("account/a")
            self.assertTrue(caught.exception.never_ran)
        unknown = "kilokv_" + "0" * 16 + "_" + "0" * 64
        with kilokv.Client(self.server.endpoint, token=unknown) as db:
            with self.assertRaises(kilokv.LoginWrongError):
                db.get("account/a")

    def test_a_user_has_the_rights_of_its_roles(self):
        token = self.alice.read_text().strip()
        with kilokv.Client(self.server.endpoint, token=token) as db:
            db.put("account/a", 5)
            for call in (lambda: db.put("bonus", 1), lambda: list(db.scan()), db.status):
                with self.assertRaises(kilokv.RightMissingError) as caught:
                    call()
                self.assertTrue(caught.exception.never_ran)
            self.assertEqual([pair.value for pair in db.scan(prefix="account/")], [5])
        self.assertEqual(get_async(self.server.endpoint, token=token), 5)


class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(temporary_folder())
        cls.ca, cls.other_ca = Authority(folder, "Test CA"), Authority(folder, "Other CA")
        cls.server_pair, cls.client_pair = cls.ca.issue("server", SERVER), cls.ca.issue("alice", CLIENT)
        cls.other_server = cls.ca.issue("other", OTHER_SERVER)

    def serve(self, pair, *flags):
        folder = self.enterContext(temporary_folder())
        return self.enterContext(Server(folder, "--tls-cert", pair.certificate, "--tls-key", pair.key, *flags))

    def fails(self, server, tls, kind, words):
        with kilokv.Client(server.endpoint, tls=tls, timeout=5) as db:
            with self.assertRaisesRegex(kind, words):
                db.get("account/a")
        with self.assertRaises(kind):
            get_async(server.endpoint, tls=tls, timeout=5)

    def trusting(self, authority, **others):
        return kilokv.Tls(ca_file=str(authority.certificate), **others)

    def test_a_server_with_a_certificate_of_its_authority(self):
        server = self.serve(self.server_pair)
        with kilokv.Client(server.endpoint, tls=self.trusting(self.ca)) as db:
            db.put("account/a", 7)
        self.assertEqual(get_async(server.endpoint, tls=self.trusting(self.ca)), 7)

    def test_another_authority_is_not_accepted(self):
        server = self.serve(self.server_pair)
        self.fails(server, self.trusting(self.other_ca), kilokv.UnauthenticatedError, "certificate of the server")

    def test_the_name_must_be_that_of_the_certificate(self):
        server = self.serve(self.other_server)
        self.fails(server, self.trusting(self.ca), kilokv.UnauthenticatedError, "certificate of the server")
        named = self.trusting(self.ca, server_name="other.example")
        with kilokv.Client(server.endpoint, tls=named) as db:
            self.assertIsNone(db.get("account/a"))

    def test_one_side_without_tls(self):
        server = self.serve(self.server_pair)
        self.fails(server, None, kilokv.UnavailableError, "TLS")
        plain = self.enterContext(Server(self.enterContext(temporary_folder())))
        self.fails(plain, self.trusting(self.ca), kilokv.UnauthenticatedError, "does not use TLS")

    def test_a_certificate_of_the_client(self):
        server = self.serve(self.server_pair, "--tls-client-ca", self.ca.certificate)
        own = self.trusting(self.ca, cert_file=str(self.client_pair.certificate), key_file=str(self.client_pair.key))
        with kilokv.Client(server.endpoint, tls=own) as db:
            db.put("account/a", 1)
        self.fails(server, self.trusting(self.ca), kilokv.LoginMissingError, "no certificate")

    def test_a_file_that_is_missing(self):
        with self.assertRaises(FileNotFoundError):
            kilokv.Client("127.0.0.1:1", tls=kilokv.Tls(ca_file="missing.pem"))


if __name__ == "__main__":
    unittest.main()
