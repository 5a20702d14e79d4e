#!/usr/bin/env python3
"""TLS of the real programs: what they say about each mistake, certificates that change, and revoked ones."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
sys.path.insert(0, str(ROOT / "tests" / "attack"))
import http2  # noqa: E402
from certificates import CLIENT, OTHER_SERVER, SERVER, Authority, openssl, secrets_of, self_signed  # noqa: E402
from programs import BIN, Server, temporary_folder, until  # noqa: E402

UNAUTHENTICATED, INVALID = 5, 3  # exit codes
DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Certificates:
    """All certificates of these tests. They are made once."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.ca = Authority(folder, "Test CA")
        self.other_ca = Authority(folder, "Other CA")
        self.middle_ca = Authority(folder, "Middle CA", issuer=self.ca)
        self.server = self.ca.issue("server", SERVER)
        self.second = self.ca.issue("second", SERVER)
        self.client = self.ca.issue("alice", CLIENT)
        self.bob = self.ca.issue("bob", CLIENT)
        self.server_by_middle = self.middle_ca.issue("server", SERVER)
        self.client_by_middle = self.middle_ca.issue("carol", CLIENT)
        self.stranger = self.other_ca.issue("mallory", CLIENT)
        self.expired_client = self.ca.issue("late", CLIENT, begin=-10, end=-1)
        self.revoked = self.ca.issue("eve", CLIENT)
        self.ca.revoke(self.revoked)
        self.lists = self.folder / "lists"
        self.lists.mkdir()
        self.ca.write_list(self.lists / "test.crl")


class TlsTest(unittest.TestCase):
    """What the tests share."""

    @classmethod
    def setUpClass(cls):
        folder = temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.made = Certificates(folder.name)

    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.said = []  # all that the programs printed

    def tearDown(self):
        log = self.folder / "kilokvd.log"
        if log.exists():
            self.said.append(log.read_text(errors="replace"))
        text = "\n".join(self.said).encode(errors="surrogateescape")
        self.assertFalse([secret for secret in secrets_of(self.made.folder) if secret in text], "a key was printed")

    def serve(self, *flags):
        server = Server(self.folder, *flags)
        server.start()
        self.addCleanup(server.kill)
        return server

    def stop(self, server):
        server.kill()
        shutil.rmtree(self.folder / "data")
        self.said.append(server.log.read_text(errors="replace"))
        server.log.unlink()

    def run_client(self, server, *flags, program="kilokv", command=("put", "key", "1"), environment=None):
        run = subprocess.run([BIN / program, *command, "--endpoint", server.endpoint, *flags], capture_output=True,
                             text=True, check=False, timeout=60, env={**os.environ, **(environment or {})})
        self.said.append(run.stdout + run.stderr)
        return run

    def trusting(self, pair=None):
        return ["--tls-ca", str(self.made.ca.certificate), *(pair.flags() if pair else [])]

    def expect_works(self, server, *flags):
        run = self.run_client(server, *flags)
        self.assertEqual(run.returncode, 0, run.stderr)

    def expect_refused(self, server, flags, code, text):
        began = time.monotonic()
        run = self.run_client(server, *flags)
        self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
        self.assertRegex(run.stderr.splitlines()[0], "^kilokv: (UNAUTHENTICATED|INVALID_ARGUMENT): .*" + text)
        more = [line for line in run.stderr.splitlines()[1:] if not re.fullmatch(r"  reason: LOGIN_\w+ \(docs/errors.md\)", line)]
        self.assertEqual(more, [], "gRPC's own lines, or advice that does not fit")
        self.assertLess(time.monotonic() - began, 3, "it was tried again, without hope")

    def health(self, server, *flags):
        """The headers and the answer of a health check by curl. A call that is refused before the server has read its
        message is reset after the answer. If curl has not read the answer by then, it says 92, and the check is made
        again."""
        for _ in range(50):
            run = subprocess.run(
                ["curl", "-sS", "-i", "--max-time", "20", "--http2", "--cacert", self.made.ca.certificate, "-H",
                 "content-type: application/grpc", "-H", "te: trailers", "--data-binary", "@-", *flags,
                 f"https://{server.endpoint}/grpc.health.v1.Health/Check"], input=b"\0\0\0\0\0", capture_output=True,
                check=False, timeout=30)
            if run.returncode != 92:
                break
        return (run.stdout + run.stderr).decode(errors="replace")


class Mistakes(TlsTest):
    def test_mistakes_of_the_server(self):
        made = self.made
        servers = [  # flags of kilokvd, flags of kilokv, text
            (made.server.flags(), [], "the server at 127.0.0.1:\\d+ uses TLS, and this client does not"),
            ([], self.trusting(), "the server at 127.0.0.1:\\d+ does not use TLS, and this client does"),
            (made.server.flags(), ["--tls-ca", str(made.other_ca.certificate)],
             'the certificate of the server at 127.0.0.1:\\d+ is not accepted: its issuer "CN=Test CA" is not one of '
             "the authorities in .*Other CA/ca.pem"),
            (self_signed(made.folder, "alone", SERVER).flags(), self.trusting(), "is not accepted: it is self-signed"),
            (made.ca.issue("old", SERVER, begin=-10, end=-1).flags(), self.trusting(),
             f"is not accepted: it expired on {DATE}"),
            (made.ca.issue("new", SERVER, begin=5).flags(), self.trusting(),
             f"is not accepted: it is not valid before {DATE}"),
            (made.ca.issue("elsewhere", OTHER_SERVER).flags(), self.trusting(),
             "is not accepted: it is for DNS:other.example, and not for 127.0.0.1"),
            (made.ca.issue("misused", CLIENT).flags(), self.trusting(), "is not accepted: it is not made for this use"),
            (made.server.flags(), ["--tls"], "is not one of the authorities that this system trusts"),
        ]
        for of_server, of_client, text in servers:
            with self.subTest(text):
                server = self.serve(*of_server)
                self.expect_refused(server, of_client, UNAUTHENTICATED, text)
                self.stop(server)

    def test_mistakes_of_the_client(self):
        made = self.made
        server = self.serve(*made.server.flags(), "--tls-client-ca", str(made.ca.certificate), "--tls-crl-dir",
                            str(made.lists))
        refused = "the server does not accept the certificate of the client: "
        for flags, text in [
                (self.trusting(), "the client has shown no certificate, and this server needs one"),
                (self.trusting(made.stranger), refused + 'its issuer "CN=Other CA" is not one of the authorities of the '
                                                         r"server \(--tls-client-ca\)"),
                (self.trusting(self.with_certificate_of(made.client, made.stranger)), refused + 'its issuer "CN=Other CA"'),
                (self.trusting(made.revoked), refused + 'it was revoked by "CN=Test CA"'),
                (self.trusting(made.server), refused + "it is not made for this use"),
                (self.trusting(self_signed(made.folder, "nobody", CLIENT)), refused + "it is self-signed"),
                (self.trusting(made.client_by_middle), refused + "there is no revocation list of its issuer "
                                                                 '"CN=Middle CA"')]:
            with self.subTest(text):
                self.expect_refused(server, flags, UNAUTHENTICATED, text)
        self.expect_works(server, *self.trusting(made.client))

        damaged = made.folder / "damaged.pem"
        damaged.write_text(made.client.certificate.read_text().replace("M", "?", 5))
        client, key = str(made.client.certificate), str(made.client.key)
        for flags, text in [
                (["--tls-cert", client, "--tls-key", str(made.bob.key)],
                 "the key in .*bob.key does not match the first certificate in .*alice.pem"),
                (["--tls-cert", "nowhere.pem", "--tls-key", key], "cannot read nowhere.pem: No such file"),
                (["--tls-cert", str(damaged), "--tls-key", key], "damaged.pem holds no certificate in PEM form"),
                (["--tls-cert", client, "--tls-key", client], "alice.pem holds no private key in PEM form"),
                (["--tls-cert", client], "--tls-cert.* needs .*--tls-key"),
                (["--tls-key", key], "--tls-key.* needs .*--tls-cert"),
                (made.expired_client.flags(), rf"late.pem \(--tls-cert\) expired on {DATE}"),
                (["--tls-ca", key], "alice.key holds no certificate in PEM form")]:
            with self.subTest(text):
                self.expect_refused(server, [*self.trusting(), *flags] if "--tls-ca" not in flags else flags, INVALID,
                                    text)

    def with_certificate_of(self, victim, attacker):
        """The attacker's pair, followed by the certificate of somebody whom the server knows. It is no secret."""
        path = self.folder / "borrowed.pem"
        path.write_text(attacker.certificate.read_text() + victim.certificate.read_text())
        return type(attacker)(path, attacker.key)

    def test_the_server_itself_refuses_an_expired_client(self):
        """Our own client would not send it. So another one does."""
        made = self.made
        server = self.serve(*made.server.flags(), "--tls-client-ca", str(made.ca.certificate))
        done = self.health(server, "--cert", made.expired_client.certificate, "--key", made.expired_client.key)
        self.assertIn("grpc-status: 16", done)
        self.assertIn("it expired on", done.replace("%20", " "))

    def test_names_that_cannot_be_read(self):
        """An IP address of five bytes. gRPC alone would end the program at such a name."""
        made = self.made
        address = "subjectAltName = DER:30:07:87:05:01:02:03:04:05\n"
        server = self.serve(*made.server.flags(), "--tls-client-ca", str(made.ca.certificate))
        for client in (self_signed(made.folder, "odd", CLIENT + address), made.ca.issue("odd", CLIENT + address)):
            self.expect_refused(server, self.trusting(client), INVALID, "one of its names cannot be read")
            # Our own client does not send it. So another one does.
            run = subprocess.run(["openssl", "s_client", "-connect", server.endpoint, "-cert", client.certificate,
                                  "-key", client.key, "-alpn", "h2", "-ign_eof"], input=b"", capture_output=True, timeout=60)
            self.assertIn(b"Acceptable client certificate CA names", run.stdout)
            self.expect_works(server, *self.trusting(made.client))
        false = self.serve_by_openssl(made.ca.issue("odd-server", "extendedKeyUsage = serverAuth\n" + address))
        run = subprocess.run([BIN / "kilokv", "--timeout", "1s", "get", "key", "--endpoint", false, *self.trusting()],
                             capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("the TLS handshake with", run.stderr)

    def serve_by_openssl(self, pair):
        """A server that does not look at its own certificate. Returns its endpoint."""
        server = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pair.certificate, "-key",
                                   pair.key, "-alpn", "h2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        for line in server.stdout:
            if line.startswith("ACCEPT "):
                return line.split()[1]
        self.fail("openssl s_server does not listen")

    def test_health_over_tls(self):
        server = self.serve(*self.made.server.flags())
        self.assertIn("\0\0\0\0\2\x08\1", self.health(server))
        self.stop(server)
        server = self.serve(*self.made.server.flags(), "--tls-client-ca", str(self.made.ca.certificate))
        self.assertIn("grpc-status: 16", self.health(server))
        client = self.made.client
        self.assertIn("\0\0\0\0\2\x08\1", self.health(server, "--cert", client.certificate, "--key", client.key))

    def test_certificates_of_a_middle_authority(self):
        made = self.made
        server = self.serve(*made.server_by_middle.flags(), "--tls-client-ca", str(made.ca.certificate))
        self.expect_works(server, *self.trusting(made.client_by_middle))
        self.expect_works(server, *self.trusting(made.client))

    def test_every_program_and_the_environment(self):
        made = self.made
        server = self.serve(*made.server.flags(), "--tls-client-ca", str(made.ca.certificate))
        variables = {"KILOKV_CLIENT_TLS_CA": str(made.ca.certificate),
                     "KILOKV_CLIENT_TLS_CERT": str(made.client.certificate),
                     "KILOKV_CLIENT_TLS_KEY": str(made.client.key)}
        for program, command in [("kilokv", ["put", "key", "1"]),
                                 ("kilokv-bank", ["open", "alice"]),
                                 ("kilokv-bank", ["demo", "--duration", "300ms", "--clients", "2", "--accounts", "10"]),
                                 ("kilokv-bench", ["run", "--duration", "300ms", "--warmup", "0", "--keys", "100"])]:
            with self.subTest(program, command=command):
                run = self.run_client(server, program=program, command=command, environment=variables)
                self.assertEqual(run.returncode, 0, run.stderr)
                run = self.run_client(server, *self.trusting(made.client), program=program, command=command)
                self.assertIn(run.returncode, (0, 1), run.stderr)  # the account is there already
                self.assertNotIn("UNAUTHENTICATED", run.stderr)
                run = self.run_client(server, program=program, command=command)
                self.assertIn("uses TLS, and this client does not", run.stderr)
        run = self.run_client(server, environment={"KILOKV_CLIENT_TLS": "yes"})
        self.assertEqual(run.returncode, 2)
        self.assertIn('the environment variable KILOKV_CLIENT_TLS: "yes" is not 0 or 1', run.stderr)
        self.expect_works(server, "--tls-server-name", "localhost", *self.trusting(made.client))

    def test_the_server_does_not_start_with_wrong_files(self):
        made = self.made
        key = str(made.server.key)
        locked = made.folder / "locked.pem"
        openssl("pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked)
        empty = made.folder / "empty"
        empty.mkdir()
        wrong_list = made.folder / "wrong"
        wrong_list.mkdir()
        shutil.copy(made.server.certificate, wrong_list / "list.crl")
        certificate, ca = str(made.server.certificate), str(made.ca.certificate)
        for flags, text in [
                (["--tls-cert", certificate, "--tls-key", str(made.second.key)],
                 "--tls-cert, --tls-key: the key in .*second.key does not match the first certificate in .*server.pem"),
                (["--tls-cert", certificate, "--tls-key", "nowhere.key"], "cannot read nowhere.key: No such file"),
                (["--tls-cert", certificate, "--tls-key", str(locked)],
                 "locked.pem holds a private key that a password protects"),
                (["--tls-cert", key, "--tls-key", key], "server.key holds no certificate in PEM form"),
                (made.ca.issue("unreadable", "subjectAltName = DER:30:07:87:05:01:02:03:04:05\n").flags(),
                 "unreadable.pem holds a certificate that TLS does not take: one of its names cannot be read"),
                ([*made.server.flags(), "--tls-client-ca", key], "--tls-client-ca: .*server.key holds no certificate"),
                ([*made.server.flags(), "--tls-client-ca", ca, "--tls-crl-dir", str(empty)],
                 "the folder .*empty holds no revocation list"),
                ([*made.server.flags(), "--tls-client-ca", ca, "--tls-crl-dir", str(wrong_list)],
                 "list.crl holds no revocation list in PEM form")]:
            with self.subTest(text):
                server = Server(self.folder, *flags)
                server.start(wait=False)
                code = server.wait_end()
                log = server.log.read_text()
                self.assertEqual(code, 1, log)
                self.assertRegex(log, "kilokvd cannot start.*INVALID_ARGUMENT.*" + text)
                server.log.unlink()

    def test_what_the_server_warns_of(self):
        made = self.made
        soon = made.ca.issue("soon", SERVER, end=5)
        soon.key.chmod(0o644)
        server = self.serve(*soon.flags())
        self.expect_works(server, *self.trusting())
        log = server.log.read_text()
        self.assertRegex(log, f"warning kilokvd has a certificate that expires soon detail=.valid until {DATE}")
        self.assertRegex(log, "warning kilokvd finds that all users of the machine may read the key .*soon.key")
        self.stop(server)
        soon.key.chmod(0o600)
        server = self.serve(*made.ca.issue("gone", SERVER, begin=-10, end=-1).flags())
        self.assertRegex(server.log.read_text(), f"warning kilokvd has a certificate that has expired.*{DATE}")


class Reload(TlsTest):
    def link(self, pair):
        """Puts a pair where the server finds it: in a folder that a link names."""
        folder = self.folder / f"pair-{time.monotonic_ns()}"
        folder.mkdir()
        shutil.copy(pair.certificate, folder / "cert.pem")
        shutil.copy(pair.key, folder / "key.pem")
        draft = self.folder / "draft"
        draft.symlink_to(folder)
        draft.rename(self.folder / "current")

    def link_flags(self):
        return ["--tls-cert", str(self.folder / "current" / "cert.pem"), "--tls-key",
                str(self.folder / "current" / "key.pem")]

    def connect(self, server):
        context = ssl.create_default_context(cafile=self.made.ca.certificate)
        context.set_alpn_protocols(["h2"])
        host, port = server.endpoint.rsplit(":", 1)
        return context.wrap_socket(socket.create_connection((host, int(port))), server_hostname="localhost")

    def subject(self, server):
        with self.connect(server) as connection:
            return connection.getpeercert()["subject"][0][0][1]

    def test_reload_under_load(self):
        """Connections stay, new ones get the new pair, a bad pair changes nothing, and nobody sees an error."""
        self.link(self.made.server)
        server = self.serve(*self.link_flags())
        held = self.connect(server)
        held.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))
        report = self.folder / "report.json"
        load = subprocess.Popen([BIN / "kilokv-bench", "run", "--endpoint", server.endpoint, *self.trusting(),
                                 "--duration", "60s", "--warmup", "0", "--keys", "1000", "--json", report],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(load.kill)
        self.assertEqual(self.subject(server), "server")
        for pair, name in [(self.made.second, "second"), (self.made.server, "server")]:
            self.link(pair)
            until(lambda: self.expect_works(server, *self.trusting()) or self.subject(server) == name,
                  f"the pair {name}", 5)

        bad = type(self.made.server)(self.made.second.certificate, self.made.server.key)
        self.link(bad)
        kept = "error kilokvd keeps its old TLS files, because the new ones cannot be used"
        until(lambda: kept in server.log.read_text(), "the line about a bad pair", 5)
        (self.folder / "current").unlink()
        until(lambda: "cannot read" in server.log.read_text(), "the line about missing files", 5)
        self.expect_works(server, *self.trusting())
        self.assertEqual(self.subject(server), "server")
        self.link(self.made.second)
        until(lambda: self.subject(server) == "second", "the pair after the bad one", 5)

        log = server.log.read_text()
        self.assertEqual(log.count("does not match the first certificate"), 1, log)
        self.assertEqual(log.count(kept), 2, log)
        self.assertEqual(log.count("info kilokvd uses new TLS files"), 3, log)
        self.assertIsNone(load.poll(), "the load has ended before the last pair came")
        load.send_signal(signal.SIGINT)  # ends it early, with its report
        output, _ = load.communicate(timeout=60)
        self.said.append(output)
        self.assertEqual(load.returncode, 128 + signal.SIGINT, output)
        told = json.loads(report.read_text())
        self.assertEqual((told["errors"], told["unknown"]), (0, 0), told)
        self.assertGreater(told["committed_per_s"], 0)
        held.sendall(http2.frame(http2.PING, 0, 0, b"12345678"))
        held.settimeout(10)
        answer = b""
        while b"12345678" not in answer:
            part = held.recv(65536)
            self.assertTrue(part, "the connection was dropped")
            answer += part
        held.close()

    def test_files_that_are_replaced_one_after_the_other(self):
        folder = self.folder / "files"
        folder.mkdir()
        shutil.copy(self.made.server.certificate, folder / "cert.pem")
        shutil.copy(self.made.server.key, folder / "key.pem")
        server = self.serve("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))
        for pair, name in [(self.made.second, "second"), (self.made.server, "server")]:
            shutil.copy(pair.certificate, folder / "cert.pem")
            time.sleep(0.3)
            shutil.copy(pair.key, folder / "key.pem")
            until(lambda: self.subject(server) == name, f"the pair {name}", 5)
        self.assertNotIn("keeps its old", server.log.read_text())

    def begin_to_wait(self, server, pair):
        """A client whose transaction waits until the key "gate" is there."""
        waiting = subprocess.Popen([BIN / "kilokv", "--timeout", "60s", "txn", "--endpoint", server.endpoint,
                                    *self.trusting(pair)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        waiting.stdin.write('{"guards": [{"key": "gate", "is": "exists", "when_false": "wait"}], '
                            '"wait_timeout_ms": 60000}\n')
        waiting.stdin.close()
        waiting.stdin = None  # for communicate()
        return waiting

    def test_revocation_while_the_server_runs(self):
        made = self.made
        lists = self.folder / "lists"
        lists.mkdir()
        made.ca.write_list(lists / "test.crl")
        server = self.serve(*made.server.flags(), "--tls-client-ca", str(made.ca.certificate), "--tls-crl-dir",
                            str(lists))
        self.expect_works(server, *self.trusting(made.bob))
        held = subprocess.Popen([BIN / "kilokv", "txn", "--endpoint", server.endpoint, *self.trusting(made.bob)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(held.kill)
        status = ["--output", "json", "status"]
        until(lambda: '"sessions":1' in self.run_client(server, *self.trusting(made.client), command=status).stdout,
              "the session of the held client", 10)
        waiting = [self.begin_to_wait(server, pair) for pair in (made.bob, made.client)]
        parked = ["--output", "json", "parked", "list"]
        until(lambda: self.run_client(server, *self.trusting(made.client), command=parked).stdout.count("gate") == 2,
              "the transactions that wait", 10)
        made.ca.revoke(made.bob)
        made.ca.write_list(lists / "test.crl")
        until(lambda: "uses new TLS files" in server.log.read_text(), "the new revocation list", 5)
        began = time.monotonic()
        _, errors = waiting[0].communicate(timeout=30)
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(waiting[0].returncode, UNAUTHENTICATED, errors)
        self.assertIn("it was revoked by", errors)
        self.assertIsNone(waiting[1].poll(), "the other client goes on")
        self.expect_refused(server, self.trusting(made.bob), UNAUTHENTICATED, "it was revoked by")
        self.expect_works(server, *self.trusting(made.client))
        # A connection from before the revocation has no more calls either.
        _, errors = held.communicate('{"then": [{"op": "add", "key": "key", "delta": 1}]}\n', timeout=30)
        self.assertEqual(held.returncode, UNAUTHENTICATED, errors)
        self.assertIn("it was revoked by", errors)
        self.run_client(server, *self.trusting(made.client), command=["put", "gate", "1"])
        output, errors = waiting[1].communicate(timeout=30)
        self.assertEqual((waiting[1].returncode, "COMMITTED" in output), (0, True), output + errors)

        made.ca.write_list(lists / "test.crl", end=-1)
        until(lambda: "warning kilokvd has an old revocation list" in server.log.read_text(), "the warning", 5)
        self.expect_refused(server, self.trusting(made.client), UNAUTHENTICATED,
                            'the revocation list of its issuer "CN=Test CA" is too old')


if __name__ == "__main__":
    unittest.main()
