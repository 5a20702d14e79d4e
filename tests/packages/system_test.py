#!/usr/bin/env python3
"""The packages in systems of their own, which have nothing of the build: a small Debian 12 in a folder each.

The .deb is installed, runs as its unit says, is upgraded to a version with a newer format of the data, downgraded, upgraded
again, removed and purged. Nothing of the database is lost on the way. The archive runs the demo of the bank.

In most tests systemd does not run. They start the command line of the unit by hand, as the user of the unit, with the
variables that systemd would set, and listen at the socket themselves. The tests of class Booted boot a machine, in which
systemd starts the unit, keeps it within its rights, and ends it when it hangs.

  system_test.py --build BUILD_FOLDER --next KILOKVD    a kilokvd whose data has a newer format; it is built if need be
"""

import argparse
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from chroot import Machine, System, enter_namespace, make_base, run  # noqa: E402

TOKEN = "/var/lib/kilokv/admin.token"
FORMAT = int(re.search(r"kDatabaseFormat = (\d+);", (ROOT / "server" / "storage" / "stored_values.hpp").read_text())[1])
OPTIONS = argparse.Namespace()


def setUpModule():
    OPTIONS.folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="kilokv-system-")))
    run("cmake", "--build", OPTIONS.build, "--target", "installed", "kilokvd_next_format", timeout=1700)
    packages = OPTIONS.folder / "packages"
    run("cpack", "--config", OPTIONS.build / "CPackConfig.cmake", "-B", packages, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
    (OPTIONS.deb,) = packages.glob("kilokv_*.deb")
    (OPTIONS.dev,) = packages.glob("libkilokv-dev_*.deb")
    (OPTIONS.archive,) = packages.glob("kilokv-*.tar.gz")
    OPTIONS.base = make_base(OPTIONS.build / "debian-12")


def next_version(deb, program, folder):
    """The .deb of a later version: with another kilokvd, and a new line in its configuration."""
    contents = folder / "contents"
    run("dpkg-deb", "--raw-extract", deb, contents)
    run("strip", "-o", contents / "usr" / "bin" / "kilokvd", program)
    control = contents / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.9.0-1", control.read_text()))
    with open(contents / "etc" / "kilokv" / "kilokvd.toml", "a") as file:
        file.write("# A line of the next version.\n")
    made = folder / "kilokv_0.9.0-1_amd64.deb"
    run("dpkg-deb", "--build", "-Zgzip", contents, made)
    return made


def has_device_code():
    """Whether the engine of the build needs the CUDA toolkit, which a program that embeds it needs, too."""
    return "KILOKV_CUDA:BOOL=ON" in (OPTIONS.build / "CMakeCache.txt").read_text()


class Service:
    """kilokvd as the unit starts it; or another command line, as another user."""

    def __init__(self, system, command=None, user=None):
        self.system = system
        unit = system.path("/lib/systemd/system/kilokvd.service").read_text()
        self.user = user or re.search(r"(?m)^User=(.*)$", unit)[1]
        self.command = command or re.search(r"(?m)^ExecStart=(.*)$", unit)[1].split()
        self.endpoint = None

    def start(self):
        name = f"kilokv-{id(self)}-{time.monotonic_ns()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{name}")
        self.log = open(self.system.root.parent / f"{name}.log", "w+", encoding="utf-8")
        # A free port, because this machine may have other servers.
        variables = {"NOTIFY_SOCKET": f"@{name}", "KILOKV_LISTEN": "127.0.0.1:0"}
        self.process = subprocess.Popen(
            [str(part) for part in self.system.command(*self.command, user=self.user)], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, env=self.system.environment(variables), umask=0o077)
        return self

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def wait_ready(self):
        self.socket.settimeout(0.1)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            assert self.process.poll() is None, self.text()
            try:
                message = self.socket.recv(4096).decode()
            except TimeoutError:
                continue
            if "READY=1" in message:
                self.endpoint = re.search(r"STATUS=serving on (\S+)", message)[1]
                return self
        raise AssertionError(f"not ready: {self.text()}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(timeout=120)
        self.socket.close()
        self.log.close()
        return code

    def client(self, program, *arguments, **how):
        """A command of root in the system, with the token of the administrator."""
        return self.system.run(program, "--endpoint", self.endpoint, "--tls-ca", "/etc/kilokv/ca.pem", "--token-file", TOKEN,
                               *arguments, **how)


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=OPTIONS.folder))
        self.addCleanup(shutil.rmtree, self.folder)
        self.system = System(OPTIONS.base, self.folder / "root")
        self.addCleanup(self.system.close)

    def put(self, path):
        shutil.copy(path, self.system.path("/srv"))
        return f"/srv/{path.name}"

    def install(self, deb, *flags):
        return self.system.apt(*flags, "install", self.put(deb))

    def owner(self, path):
        return self.system.run("stat", "--format", "%U:%G %a", path).strip()


class Deb(InFolder):
    def setUp(self):
        super().setUp()
        self.system.apt("update")

    def start(self, *how):
        service = Service(self.system, *how).start()
        self.addCleanup(lambda: service.process.poll() is None and service.stop())
        return service.wait_ready()

    def use_tls(self):
        """As an administrator does it: a certificate, and two lines of the configuration."""
        etc = self.system.path("/etc/kilokv")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=kilokv", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", etc / "server.key", "-out", etc / "server.pem",
            stderr=subprocess.DEVNULL)
        shutil.copy(etc / "server.pem", etc / "ca.pem")
        self.system.run("chown", "kilokv:kilokv", "/etc/kilokv/server.key")
        self.system.run("chmod", "0600", "/etc/kilokv/server.key")
        self.system.run("chmod", "0644", "/etc/kilokv/server.pem", "/etc/kilokv/ca.pem")
        path = etc / "kilokvd.toml"
        text, changed = re.subn(r"(?m)^#(?=tls-(cert|key) )", "", path.read_text())
        self.assertEqual(changed, 2)
        path.write_text(text)

    def test_install_upgrade_downgrade_and_remove(self):
        self.install(OPTIONS.deb)
        self.check_installed()
        self.use_tls()

        service = self.start()
        service.client("kilokv", "put", "kept", "41")
        self.assertEqual(self.owner(TOKEN), "kilokv:kilokv 600")
        self.assertEqual(self.owner("/var/lib/kilokv/data"), "kilokv:kilokv 700")
        self.assertEqual(service.client("kilokv-bank", "open", "alice", "--balance", "100.00"), "alice 100.00\n")
        no_login = self.system.run("kilokv", "--endpoint", service.endpoint, "--tls-ca", "/etc/kilokv/ca.pem", "get", "kept",
                                   code=None)
        self.assertIn("UNAUTHENTICATED", no_login)
        self.assertEqual(service.stop(), 0)

        self.check_mistyped_path()
        self.again_with(OPTIONS.deb, "--reinstall")
        newer = next_version(OPTIONS.deb, OPTIONS.next, self.folder)
        output = self.install(newer)
        self.assertIn("Unpacking kilokv (0.9.0-1) over", output)
        self.check_configuration_is_kept()
        service = self.start()
        self.assertEqual(service.client("kilokv", "add", "kept", "1"), "42\n")
        self.assertEqual(service.stop(), 0)  # the checkpoint of the end writes the newer format

        self.install(OPTIONS.deb, "--allow-downgrades")
        self.check_refused()
        self.check_refused()  # and nothing was changed by the first try

        self.install(newer)
        service = self.start()
        self.assertEqual(service.client("kilokv", "get", "kept"), "42\n")
        service.client("kilokv-bank", "audit", "--expect", "100.00")
        self.assertEqual(service.stop(), 0)
        self.check_removal(newer)

    def check_installed(self):
        self.assertEqual(self.owner("/var/lib/kilokv"), "kilokv:kilokv 700")
        self.assertEqual(self.owner("/var/log/kilokv"), "kilokv:kilokv 750")
        self.assertEqual(self.owner("/etc/kilokv/kilokvd.toml"), "root:root 644")
        user = self.system.run("getent", "passwd", "kilokv").split(":")
        self.assertEqual(user[5:], ["/var/lib/kilokv", "/usr/sbin/nologin\n"])
        self.assertLess(int(user[2]), 1000)
        self.assertTrue(self.system.path("/etc/systemd/system/multi-user.target.wants/kilokvd.service").is_symlink())
        self.assertEqual(self.owner("/var/lib/kilokv/data"), "kilokv:kilokv 700")

    def check_mistyped_path(self):
        """Neither a start nor an upgrade makes a database in a place that is not there."""
        config = self.system.path("/etc/kilokv/kilokvd.toml")
        text = config.read_text()
        config.write_text(text.replace('"/var/lib/kilokv/data"', '"/var/lib/kilokv/dta"'))
        self.assertNotEqual(config.read_text(), text)
        self.install(OPTIONS.deb, "--reinstall")
        service = Service(self.system).start()
        self.assertEqual(service.process.wait(timeout=120), 1)
        self.assertRegex(service.text(), "kilokvd cannot start .*/var/lib/kilokv/dta .*--create never")
        service.stop()
        self.assertFalse(self.system.path("/var/lib/kilokv/dta").exists())
        config.write_text(text)

    def check_configuration_is_kept(self):
        text = self.system.path("/etc/kilokv/kilokvd.toml").read_text()
        self.assertRegex(text, "(?m)^tls-cert = ")
        self.assertNotIn("next version", text)

    def again_with(self, deb, *flags):
        """The scripts run again, and change nothing."""
        before = self.system.run("find", "/var/lib/kilokv", "/var/log/kilokv", "/etc/kilokv", "-printf", "%p %u %g %m %s\n")
        user = self.system.run("getent", "passwd", "kilokv")
        for _ in range(2):
            self.install(deb, *flags)
        self.assertEqual(self.system.run("find", "/var/lib/kilokv", "/var/log/kilokv", "/etc/kilokv", "-printf",
                                         "%p %u %g %m %s\n"), before)
        self.assertEqual(self.system.run("getent", "passwd", "kilokv"), user)

    def check_refused(self):
        service = Service(self.system).start()
        self.assertEqual(service.process.wait(timeout=120), 1)
        self.assertIn(f"the database has format {FORMAT + 1}; this version reads formats up to {FORMAT}", service.text())
        service.stop()

    def check_removal(self, deb):
        self.system.apt("remove", "kilokv")
        self.assertFalse(self.system.path("/usr/bin/kilokvd").exists())
        self.assertTrue(self.system.path("/etc/kilokv/kilokvd.toml").exists())
        self.install(deb)
        service = self.start()
        self.assertEqual(service.client("kilokv", "get", "kept"), "42\n")
        self.assertEqual(service.stop(), 0)
        output = self.system.apt("purge", "kilokv")
        self.assertIn("the database stays in /var/lib/kilokv", output)
        for gone in ("/usr/bin/kilokvd", "/etc/kilokv/kilokvd.toml", "/etc/logrotate.d/kilokvd", "/var/log/kilokv",
                     "/lib/systemd/system/kilokvd.service", "/etc/systemd/system/multi-user.target.wants/kilokvd.service"):
            self.assertFalse(self.system.path(gone).exists() or self.system.path(gone).is_symlink(), gone)
        self.assertTrue(self.system.path("/var/lib/kilokv/data/CURRENT").exists())
        self.assertEqual(self.system.run("getent", "passwd", "kilokv").split(":")[0], "kilokv")
        self.install(deb)  # over what a purge leaves
        self.assertEqual(self.owner("/var/lib/kilokv"), "kilokv:kilokv 700")

    def test_logrotate_moves_the_log(self):
        self.system.apt("install", "logrotate", "procps")
        self.install(OPTIONS.deb)
        self.use_tls()
        config = self.system.path("/etc/kilokv/kilokvd.toml")
        config.write_text(config.read_text().replace("#log-file", "log-file"))
        service = self.start()
        log = self.system.path("/var/log/kilokv/kilokvd.log")
        self.assertIn("kilokvd ready", log.read_text())
        self.system.run("logrotate", "--force", "/etc/logrotate.d/kilokvd")
        end = time.monotonic() + 60
        while not (log.exists() and "kilokvd has opened its log file again" in log.read_text()):
            self.assertLess(time.monotonic(), end, "the new log file")
            time.sleep(0.05)
        self.assertIn("kilokvd ready", log.with_name("kilokvd.log.1").read_text())
        self.assertEqual(self.owner("/var/log/kilokv/kilokvd.log"), "kilokv:kilokv 600")
        self.assertEqual(service.stop(), 0)

    def test_the_image(self):
        """The steps of the container file, without an engine for containers."""
        text = (ROOT / "deploy" / "container" / "Containerfile").read_text().replace("\\\n", " ")
        steps = re.findall(r"(?m)^([A-Z]+) (.*)$", text.rpartition("\nFROM ")[2].partition("\n")[2])
        for name, value in steps:
            if name == "COPY":
                shutil.copy(OPTIONS.deb, self.system.path(value.split()[-1]))
            if name == "RUN":
                self.system.run("sh", "-c", value)
        of = dict(steps)
        command = [*json.loads(of["ENTRYPOINT"]), *json.loads(of["CMD"])]
        self.assertEqual(command[-1], "127.0.0.1:7070")
        user = of["USER"].split(":")[0]
        self.assertFalse(self.system.path(of["VOLUME"] + "/data").exists())
        lacks = Service(self.system, [*command[:-1], "127.0.0.1:0"], user).start()
        self.assertEqual(lacks.process.wait(timeout=120), 1)
        self.assertIn("--create never", lacks.text())
        lacks.stop()
        once = self.system.run(*json.loads(of["ENTRYPOINT"]), "--create-database", user=user)
        self.assertEqual(once, f"kilokvd: {of['VOLUME']}/data has a new, empty database\n")
        service = self.start([*command[:-1], "127.0.0.1:0"], user)
        how = ("--endpoint", service.endpoint, "--token-file", TOKEN)
        self.system.run("kilokv", *how, "put", "a", "1", user="7070")
        self.assertEqual(self.system.run("kilokv", *how, "get", "a", user="7070"), "1\n")
        self.assertEqual(self.system.run("stat", "--format", "%u:%g %a", of["VOLUME"] + "/data").strip(), f"{of['USER']} 700")
        self.assertEqual(service.stop(), 0)

    def test_the_development_package_is_enough_to_build(self):
        self.install(OPTIONS.dev)
        self.system.apt("install", "cmake", "make", "g++")
        for example in ("client/examples/tickets", "engine/examples/embedded"):
            source = f"/tmp/{pathlib.Path(example).name}"
            shutil.copytree(ROOT / example, self.system.path(source))
            if "engine/" in example and has_device_code():
                said = self.system.run("cmake", "-S", source, "-B", f"{source}/build", code=1)
                self.assertIn("CUDAToolkit", said, "an engine with device code needs the toolkit, which Debian does not have")
                continue
            self.system.run("cmake", "-S", source, "-B", f"{source}/build")
            self.system.run("cmake", "--build", f"{source}/build")
        if not has_device_code():
            self.assertIn("alice 20, bob 20, carol 60", self.system.run("/tmp/embedded/build/embedded"))
        self.assertIn("no server", self.system.run("/tmp/tickets/build/tickets", "127.0.0.1:1", code=1))


class Booted(InFolder):
    def setUp(self):
        super().setUp()
        self.system.apt("update")
        self.system.apt("install", "systemd-sysv", "logrotate")

    def boot(self):
        self.system = Machine(self.system)
        self.addCleanup(lambda: self.system.close())

    def client(self, *arguments, **how):
        return self.system.run("kilokv", "--token-file", TOKEN, *arguments, **how)

    def shown(self, name):
        return self.system.run("systemctl", "show", "--value", "--property", name, "kilokvd").strip()

    def journal(self):
        return self.system.run("journalctl", "--no-pager", "--unit", "kilokvd")

    def wait_for(self, condition, what):
        end = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}:\n{self.journal()}")
            time.sleep(0.2)

    def check_active(self):
        self.assertEqual(self.shown("ActiveState"), "active", self.journal())

    def test_systemd_runs_the_package(self):
        self.system.apt("--download-only", "install", self.put(OPTIONS.deb))
        newer = next_version(OPTIONS.deb, OPTIONS.next, self.folder)
        self.boot()
        self.install(OPTIONS.deb)
        self.check_active()
        self.client("put", "kept", "41")
        self.assertEqual(self.shown("StatusText"), "serving on 127.0.0.1:7070")
        self.check_rights()
        self.check_reload()

        first = self.shown("MainPID")
        self.install(newer)
        self.check_active()
        self.assertNotEqual(self.shown("MainPID"), first)
        self.assertEqual(self.client("add", "kept", "1"), "42\n")

        self.install(OPTIONS.deb, "--allow-downgrades")
        self.wait_for(lambda: self.shown("Result") == "start-limit-hit" or self.shown("ActiveState") == "failed", "it gives up")
        self.assertIn(f"the database has format {FORMAT + 1}; this version reads formats up to {FORMAT}", self.journal())
        self.install(newer)  # soon after the failures: they do not count any more
        self.check_active()
        self.assertEqual(self.client("get", "kept"), "42\n")

        self.system.close()
        self.system.boot()
        self.wait_for(lambda: self.shown("ActiveState") == "active", "it starts with the machine")
        self.assertEqual(self.client("get", "kept"), "42\n")
        self.check_watchdog()
        self.check_removal()

    def check_rights(self):
        pid = self.shown("MainPID")
        status = dict(re.findall(r"(?m)^(\w+):\s+(.*)$", self.system.run("cat", f"/proc/{pid}/status")))
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        self.assertEqual({int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")}, {0})
        self.assertEqual(status["Uid"].split()[0], self.system.run("id", "--user", "kilokv").strip())
        for path, words in (("/etc/kilokv/new", "Read-only file system"), ("/usr/new", "Read-only file system"),
                            ("/boot/new", "Read-only file system"), ("/var/lib/kilokv/new", "^$")):
            said = self.system.run("nsenter", "--target", pid, "--mount", "touch", path, code=None)
            self.assertRegex(said, words, path)

    def check_reload(self):
        config = self.system.path("/etc/kilokv/kilokvd.toml")
        config.write_text(config.read_text().replace("#log-file", "log-file"))
        self.system.run("systemctl", "restart", "kilokvd")
        pid = self.shown("MainPID")
        self.system.run("logrotate", "--force", "/etc/logrotate.d/kilokvd")
        log = self.system.path("/var/log/kilokv/kilokvd.log")
        self.wait_for(lambda: log.exists() and "kilokvd has opened its log file again" in log.read_text(), "the new log file")
        self.assertEqual(self.shown("MainPID"), pid)
        config.write_text(config.read_text().replace("log-file", "#log-file"))
        self.system.run("systemctl", "restart", "kilokvd")

    def check_watchdog(self):
        """A sync that does not return."""
        more = self.system.path("/etc/systemd/system/kilokvd.service.d/hang.conf")
        more.parent.mkdir()
        more.write_text("[Service]\nWatchdogSec=4s\nEnvironment=KILOKV_FAIL_POINTS=storage.append.before_sync=hang\n")
        self.system.run("systemctl", "daemon-reload")
        self.system.run("systemctl", "restart", "kilokvd")
        first = self.shown("MainPID")
        time.sleep(6)  # idle for longer than WatchdogSec
        self.assertEqual((self.shown("MainPID"), self.shown("NRestarts")), (first, "0"))
        self.client("--timeout", "1s", "put", "kept", "0", code=None)
        self.wait_for(lambda: self.shown("NRestarts") == "1" and self.shown("ActiveState") == "active", "a new start")
        self.assertIn("Watchdog timeout (limit 4s)!", self.journal())
        self.assertNotEqual(self.shown("MainPID"), first)
        more.unlink()
        self.system.run("systemctl", "daemon-reload")
        self.system.run("systemctl", "kill", "--signal=KILL", "kilokvd")  # a crash, which also leads to a new start
        self.wait_for(lambda: self.shown("NRestarts") == "2" and self.shown("ActiveState") == "active", "a new start")
        self.assertIn(self.client("get", "kept"), ("42\n", "0\n"))  # the answer to the put was lost
        self.client("put", "kept", "43")

    def check_removal(self):
        pid = self.shown("MainPID")
        self.system.apt("purge", "kilokv")
        self.system.run("test", "-e", f"/proc/{pid}", code=1)
        self.assertEqual(self.shown("LoadState"), "not-found")
        self.assertTrue(self.system.path("/var/lib/kilokv/data/CURRENT").exists())

    def commands(self, heading):
        """The command blocks of a part of docs/install.md."""
        page = (ROOT / "docs" / "install.md").read_text()
        (part,) = re.findall(rf"(?ms)^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", page)
        return re.findall(r"(?ms)^```text\n(.*?)^```$", part)

    def shell(self, commands):
        return self.system.run("sh", "-e", "-c", f"cd /srv\n{commands}", variables={"DEBIAN_FRONTEND": "noninteractive"})

    def edit(self, *changes):
        path = self.system.path("/etc/kilokv/kilokvd.toml")
        text = path.read_text()
        for pattern, new in changes:
            text, changed = re.subn(pattern, new, text, flags=re.MULTILINE)
            self.assertEqual(changed, 1, pattern)
        path.write_text(text)

    def test_the_page_is_true(self):
        """The commands of docs/install.md for Debian, in their order."""
        self.system.apt("install", "sudo", "openssl")
        self.system.apt("--download-only", "install", self.put(OPTIONS.deb))
        self.system.path("/etc/apt/apt.conf.d/91yes").write_text(
            'APT::Get::Assume-Yes "true";\nDpkg::Options { "--force-confold"; };\n')
        (first, status, _), (restart,) = self.commands("Debian"), self.commands("Change a setting")
        (certificates,), (folder, gpu) = self.commands("Let other machines in"), self.commands("The service")
        (upgrade,), (remove,) = self.commands("Upgrade and downgrade"), self.commands("Remove")
        newer = next_version(OPTIONS.deb, OPTIONS.next, self.folder)
        shutil.copy(newer, self.system.path("/srv") / upgrade.split("./")[1].strip())
        self.boot()

        self.shell(first)
        self.check_active()
        self.assertIn("state", self.shell(status))
        self.edit(("^#log-level = .*", 'log-level = "debug"'))
        self.assertIn("all settings are valid", self.shell(restart))
        self.check_active()
        self.client("put", "a", "1")

        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=kilokv", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.system.path("/srv/server.key"), "-out",
            self.system.path("/srv/server.pem"))
        self.shell(certificates)
        self.edit(("^#(tls-cert = .*)", r"\1"), ("^#(tls-key = .*)", r"\1"), ("^listen = .*", 'listen = "0.0.0.0:7070"'))
        self.shell(restart)
        tls = ("--tls-ca", "/etc/kilokv/server.pem")
        self.assertEqual(self.client(*tls, "get", "a"), "1\n")

        self.edit(("^data-dir = .*", 'data-dir = "/srv/bank/data"'))
        self.system.run("install", "-d", "-o", "kilokv", "-g", "kilokv", "-m", "0700", "/srv/bank")
        self.system.run("cp", "--archive", "/var/lib/kilokv/data", "/srv/bank/data")
        self.system.run("systemctl", "restart", "kilokvd", code=1)  # the unit does not allow that folder
        for text in (folder, gpu):
            more = self.system.path("/etc/systemd/system/kilokvd.service.d/override.conf")
            more.parent.mkdir(exist_ok=True)
            with open(more, "a") as file:
                file.write(text)
        self.system.run("systemctl", "daemon-reload")
        self.system.run("systemctl", "reset-failed", "kilokvd")
        self.shell(restart)
        self.check_active()
        self.assertEqual(self.client(*tls, "get", "a"), "1\n")

        self.shell(upgrade)
        self.check_active()
        self.assertEqual(self.client(*tls, "get", "a"), "1\n")
        self.shell(f"apt purge kilokv\n{remove}")
        self.assertFalse(self.system.path("/var/lib/kilokv").exists())
        self.system.run("getent", "passwd", "kilokv", code=2)

    def test_systemd_runs_the_archive(self):
        """By the commands of the page."""
        unpack, commands = self.commands("The archive")
        self.boot()
        shutil.copy(OPTIONS.archive, self.system.path("/srv"))
        self.shell(f"{unpack.splitlines()[0]}\n{commands}")
        self.check_active()
        (programs,) = self.system.path("/opt").glob("*/bin")
        kilokv = f"/opt/{programs.parent.name}/bin/kilokv"
        self.system.run(kilokv, "--token-file", TOKEN, "put", "a", "1")
        self.assertEqual(self.system.run(kilokv, "--token-file", TOKEN, "get", "a"), "1\n")


class Archive(InFolder):
    def test_the_demo_runs_where_nothing_is_installed(self):
        packages = self.system.run("dpkg-query", "--show", "--showformat", "${Package}\n").split()
        self.assertFalse([name for name in packages if re.match("librocksdb|libgrpc|libprotobuf|libjemalloc|libssl-dev", name)])
        run("tar", "-C", self.system.path("/opt"), "-xf", OPTIONS.archive)
        (folder,) = self.system.path("/opt").iterdir()
        self.system.run("useradd", "--system", "--shell", "/usr/sbin/nologin", "teller")
        output = self.system.run(f"/opt/{folder.name}/bin/kilokv-bank", "demo", "--duration", "5s", user="teller",
                                 variables={"HOME": "/tmp"})
        self.assertIn("The server was killed (SIGKILL)", output)
        self.assertIn("Proven: the books are right to the cent.", output)
        for program in ("kilokv", "kilokv-bench", "kilokv-engine-bench", "kilokvd"):
            self.assertIn(program, self.system.run(f"/opt/{folder.name}/bin/{program}", "--version"))


def main():
    parser = argparse.ArgumentParser(description="Tests the packages in systems of their own.")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the build")
    parser.add_argument("--next", type=pathlib.Path, required=True, help="a kilokvd whose data has a newer format")
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    OPTIONS.build = OPTIONS.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    enter_namespace()
    main()
