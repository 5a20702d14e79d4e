#!/usr/bin/env python3
"""Starts that fail, as a person meets them: what kilokvd says about a typical mistake, and that --check-config says the same
before a start. Each message has the reason, the value, what is allowed, and what to change."""

import pathlib
import socket
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "crash")]
from certificates import SERVER, Authority  # noqa: E402
from programs import BIN, SLOWER, Server, temporary_folder  # noqa: E402

OK, FAILED, USAGE = 0, 1, 2
LIMIT = "this process may have {} files open"


class Starts(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kilokvd(self, *flags, code, before=(), listen="127.0.0.1:0"):
        """What a run says on standard error. It has to end by itself."""
        command = [*before, BIN / "kilokvd", "--data-dir", self.folder / "data", "--listen", listen, "--http-listen", "off",
                   *flags]
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60 * SLOWER, check=False)
        self.assertEqual(done.returncode, code, f"{flags}: {done.stdout}{done.stderr}")
        return done.stderr

    def refused_by_both(self, *flags, says, code=FAILED, **how):
        """The start and --check-config refuse, with the same words."""
        checked = self.kilokvd(*flags, "--check-config", code=code, **how)
        self.assertIn(says, checked)
        self.assertEqual(len(checked.splitlines()), 1, checked)
        self.assertFalse((self.folder / "data").exists(), "the check has made something")
        started = self.kilokvd(*flags, code=code, **how)
        self.assertIn(says, started.replace('\\"', '"'))


class WrongValues(Starts):
    """Exit code 2: the value itself is wrong. One line says so."""

    def test_on_the_command_line(self):
        for flags, says in (
                (("--batch-max-delay", "2min"), '--batch-max-delay is "2min": it must be a duration: a whole number with us, '
                                                "ms, s, m or h, such as 500us or 24h"),
                (("--batch-max-delay", "5"), '--batch-max-delay is "5": it must be a duration'),
                (("--queue-bytes-max", "64MB"), '--queue-bytes-max is "64MB": it must be a size: a whole number of bytes, or '
                                                "one with KiB, MiB, GiB or TiB, such as 4096 or 64MiB"),
                (("--queue-bytes-max", "0"), "--queue-bytes-max is 0B; the limit is 1B to 1GiB\n"),
                (("--log-buffer", "0"), "log buffer is 0B; the limit is 64KiB to 1GiB (--log-buffer)\n"),
                (("--message-bytes-max", "0"), "--message-bytes-max is 0B; the limit is 1KiB to 64MiB\n"),
                (("--checkpoint-interval", "0"), "--checkpoint-interval is 0; the limit is 1us to 876000h\n"),
                (("--sessions-max", "0"), "--sessions-max is 0; the limit is 1 to 4294967296\n"),
                (("--login", "yes"), '--login is "yes": it must be on or off'),
                (("--data-dirr", "x"), "unknown flag --data-dirr; kilokvd --help lists the flags"),
                (("--tls-key", "k.pem"), "--tls-key needs --tls-cert, the certificate of the key"),
                (("--tls-cert", "c.pem"), "--tls-cert needs --tls-key, the key of the certificate")):
            for more in ((), ("--check-config",)):
                with self.subTest(flags=flags, more=more):
                    said = self.kilokvd(*flags, *more, code=USAGE)
                    self.assertTrue(said.startswith(f"kilokvd: {says}"), said)
                    self.assertEqual(len(said.splitlines()), 1, said)

    def test_in_the_file(self):
        file = self.folder / "kilokvd.toml"
        for text, says in (('batch-max-delay = "2min"', '1:1: batch-max-delay is "2min": it must be a duration'),
                           ("batch-max-delay = 2", '1:1: batch-max-delay is "2": it must be a duration'),
                           ('queue-bytes-max = 0', "1:1: queue-bytes-max is 0B; the limit is 1B to 1GiB\n"),
                           ('batch_max_delay = "2ms"', "1:1: batch_max_delay: unknown key; did you mean batch-max-delay?\n"),
                           ('speed = "high"', "1:1: speed: unknown key; a key is a flag without its dashes"),
                           ("[server]", "1:2: server is a table")):
            with self.subTest(text):
                file.write_text(text + "\n")
                said = self.kilokvd("--config", file, code=USAGE)
                self.assertTrue(said.startswith(f"kilokvd: {file}:{says}"), said)
                self.assertEqual(self.kilokvd("--config", file, "--check-config", code=USAGE), said)


class WrongPlaces(Starts):
    """Exit code 1: the settings do not fit what is there."""

    def test_an_address_for_other_machines(self):
        neither = "neither TLS (--tls-cert, --tls-key) nor logins (--login on)"
        says = " is for other machines, and there are {}; set them, or listen on 127.0.0.1, or give --insecure on"
        self.refused_by_both(listen="0.0.0.0:0", says="--listen 0.0.0.0:0" + says.format(neither))
        self.refused_by_both("--login", "on", listen="0.0.0.0:0", says=says.format("no TLS (--tls-cert, --tls-key)"))
        tls = Authority(self.folder, "Test CA").issue("server", SERVER).flags()
        self.refused_by_both(*tls, listen="0.0.0.0:0", says=says.format("no logins (--login on)"))
        for flags in ((*tls, "--login", "on"), ("--insecure", "on")):
            self.kilokvd(*flags, "--check-config", listen="0.0.0.0:0", code=OK)
        command = [BIN / "kilokvd", "--http-listen", "0.0.0.0:0"]
        for more in ([], ["--check-config"]):
            done = subprocess.run([*command, *more, "--data-dir", self.folder / "data", "--listen", "127.0.0.1:0"],
                                  capture_output=True, text=True, timeout=60 * SLOWER, check=False)
            self.assertEqual(done.returncode, FAILED, done.stderr)
            self.assertIn("--http-listen 0.0.0.0:0 is for other machines, and there are " + neither, done.stderr)

    def test_files_of_tls(self):
        authority = Authority(self.folder, "Test CA")
        pair, other = authority.issue("server", SERVER), authority.issue("other", SERVER)
        missing = self.folder / "missing.pem"
        for certificate, key, says in ((missing, pair.key, f"cannot read {missing}: No such file or directory"),
                                       (pair.certificate, missing, f"cannot read {missing}: No such file or directory"),
                                       (pair.certificate, other.key, "does not match"),
                                       (pair.key, pair.key, "holds no certificate in PEM form")):
            with self.subTest(says):
                self.refused_by_both("--tls-cert", certificate, "--tls-key", key, says=says)
        self.refused_by_both("--tls-cert", pair.certificate, "--tls-key", pair.key, "--tls-client-ca", missing,
                             says=f"--tls-client-ca: cannot read {missing}")
        old = authority.issue("old", SERVER, begin=-20, end=-10)
        self.assertIn("warning: kilokvd has a certificate that has expired", self.kilokvd(*old.flags(), "--check-config", code=OK))

    def test_few_open_files(self):
        few, enough = ("prlimit", "--nofile=100:100"), ("prlimit", "--nofile=128:128")
        self.refused_by_both(before=few, says=LIMIT.format(100) + ", connections included, and needs 128 at least: raise this "
                                                                  "limit (ulimit -n, or LimitNOFILE in the unit of systemd)")
        with Server(self.folder, tracer=enough) as server:  # the least that is allowed is enough
            server.client("put", "key", "1")
            self.assertIn("kilokvd takes fewer connections than --connections-max", server.log.read_text())

    def test_a_log_file(self):
        (self.folder / "file").write_text("no folder")
        for path, reason in ((self.folder, "Is a directory"), (self.folder / "file" / "x.log", "Not a directory")):
            says = f"kilokvd: --log-file: cannot open {path}: {reason}\n"
            self.assertEqual(self.kilokvd("--log-file", path, "--check-config", code=USAGE), says)
            self.assertEqual(self.kilokvd("--log-file", path, code=USAGE), says)
        new = self.folder / "new" / "folders" / "kilokvd.log"
        self.kilokvd("--log-file", new, "--check-config", code=OK)
        self.assertFalse(new.parent.parent.exists(), "the check has made a folder")

    def test_a_bootstrap_file_that_is_missing(self):
        says = "--bootstrap-again needs --bootstrap-file FILE"
        self.assertIn(says, self.kilokvd("--login", "on", "--bootstrap-again", "on", "--check-config", code=FAILED))
        self.assertIn(says, self.kilokvd("--login", "on", "--bootstrap-again", "on", code=FAILED))

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assertIn(f"cannot listen on {endpoint} (--listen): Address already in use: another program listens there; end "
                          "it, or choose another port", self.kilokvd(listen=endpoint, code=FAILED))

    def test_a_data_directory_that_cannot_be_used(self):
        (self.folder / "file").write_text("no directory")
        parent = self.folder / "missing"
        for path, says in ((parent / "data", f"cannot be created: its parent {parent} does not exist; make it first "
                                             "(--data-dir)"),
                           (self.folder / "file", "cannot be opened: Not a directory (--data-dir)")):
            with self.subTest(says):
                self.assertIn(f"data directory {path} {says}", self.start_on(path))

    def start_on(self, path):
        done = subprocess.run([BIN / "kilokvd", "--data-dir", path, "--listen", "127.0.0.1:0", "--http-listen", "off"],
                              capture_output=True, text=True, timeout=60 * SLOWER, check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        return done.stderr

    def test_a_port_file_that_cannot_be_written(self):
        path = self.folder / "missing" / "port"
        self.assertIn(f"--port-file: cannot write {path}: No such file or directory",
                      self.kilokvd("--port-file", path, code=FAILED))


if __name__ == "__main__":
    unittest.main()
