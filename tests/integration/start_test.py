#!/usr/bin/env python3
"""Starts that fail, as a person meets them: what kilokvd says about a typical mistake, and that --check-config says the same
before a start. Each message has the reason, the value, what is allowed, and what to change."""

import pathlib
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


class WrongPlaces(Starts):
    """Exit code 1: the settings do not fit what is there."""

    def test_an_address_for_other_machines(self):
        neither = "neither TLS (--tls-cert, --tls-key) nor logins (--login on)"
        says = " is for other machines, and there are {}; set them, or listen on 127.0.0.1, or give --insecure on"
        self.refused_by_both(listen="0.0.0.0:0", says="--listen 0.0.0.0:0" + says.format(neither))
        self.refused_by_both("--login", "on", listen="0.0.0.0:0", says=says.format("no TLS"))
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


if __name__ == "__main__":
    unittest.main()
