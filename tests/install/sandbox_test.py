#!/usr/bin/env python3
"""The server does nothing that its unit forbids. This is seen from outside: by strace, on the real server with TLS, logins and
a log file, from its start to its end. systemd is not needed for it.

What is forbidden comes from the unit itself: its system calls, its families of sockets, memory that can be written and run,
namespaces, devices, and files that are written outside of its folders.
"""

import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "crash"), str(ROOT / "tests" / "attack")]
from guarded_server import GuardedServer  # noqa: E402
from programs import temporary_folder, until  # noqa: E402

UNIT = (ROOT / "deploy" / "package" / "kilokvd.service").read_text()
CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
# systemd allows these to all services.
ALWAYS = {"execve", "exit", "exit_group", "getrlimit", "rt_sigreturn", "sigreturn"}
PRIVATE_DEVICES = {"null", "zero", "full", "random", "urandom", "tty"}
OF_THE_PROCESS = re.compile(r"^/proc/(self|\d+)/")


def values(unit, key):
    return re.findall(rf"(?m)^{key}=(.*)$", unit)


@functools.cache
def calls_of(name):
    """The system calls of a name in a filter: of a set, all in it."""
    if not name.startswith("@"):
        return frozenset([name])
    text = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    members = [line.strip() for line in text.splitlines() if line.startswith("    ") and "#" not in line]
    return frozenset().union(*map(calls_of, members))


def allowed_calls(unit):
    allowed = set(ALWAYS)
    for value in values(unit, "SystemCallFilter"):
        named = set().union(*map(calls_of, value.lstrip("~").split()))
        allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed


def findings(trace, unit, folders):
    """What the traced process did although the unit forbids it. `folders`: where it may write."""
    allowed, families = allowed_calls(unit), set(" ".join(values(unit, "RestrictAddressFamilies")).split())
    found = set()
    for name, text in trace:
        if name not in allowed:
            found.add(f"SystemCallFilter: {name}")
        if name == "socket" and text.split(",")[0] not in families:
            found.add(f"RestrictAddressFamilies: {text.split(',')[0]}")
        if "MemoryDenyWriteExecute=yes" in unit and "PROT_EXEC" in text and (name == "mprotect" or "PROT_WRITE" in text):
            found.add(f"MemoryDenyWriteExecute: {name}")
        if name in ("clone", "clone3", "unshare", "setns") and "CLONE_NEW" in text:
            found.add(f"RestrictNamespaces: {name}")
        path = re.search(r'"([^"]*)"', text) if name in ("open", "openat", "creat") else None
        if path is None:
            continue
        if path[1].startswith("/dev/") and path[1].removeprefix("/dev/") not in PRIVATE_DEVICES:
            found.add(f"PrivateDevices: {path[1]}")
        if re.search(r"O_WRONLY|O_RDWR|O_CREAT", text) and not path[1].startswith((*folders, "/dev/")) and \
                not OF_THE_PROCESS.match(path[1]):
            found.add(f"ProtectSystem: {path[1]}")
    return found


class Sandbox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert shutil.which("strace"), "strace is needed: deploy/install-deps.sh"
        folder = cls.enterClassContext(temporary_folder())
        cls.folder, path, log = pathlib.Path(folder), pathlib.Path(folder) / "strace", pathlib.Path(folder) / "log" / "kilokvd.log"
        log.parent.mkdir()
        tracer = ["strace", "-D", "-f", "-s", "4096", "-e", "signal=none", "-o", path]
        port = cls.folder / "port"
        server = GuardedServer(folder, "--log-file", log, "--device", "cpu", "--port-file", port, tracer=tracer)
        server.start(wait=False)
        cls.addClassCleanup(server.kill)
        server.endpoint = f"127.0.0.1:{until(lambda: port.exists() and port.read_text().strip(), 'the port')}"
        server.client("put", "a", "1")
        server.add_user("alice", "--read", "a")
        subprocess.run(server.command("kilokv-bench", "run", "--keys", "100", "--warmup", "0s", "--duration", "1s"),
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=120)
        server.client("scan")
        log.rename(log.with_suffix(".1"))
        os.kill(server.pid, signal.SIGHUP)
        until(lambda: log.exists() and "opened its log file again" in log.read_text(), "the new log file")
        assert server.stop() == 0
        until(lambda: re.search(rf"(?m)^{server.pid} +\+\+\+ ", path.read_text()), "strace wrote all")
        cls.trace = [match.groups() for match in map(CALL.match, path.read_text().splitlines()) if match]
        cls.folders = (f"{folder}/data", f"{folder}/log/", f"{folder}/admin.token", str(port))

    def found(self, unit):
        return findings(self.trace, unit, self.folders)

    def test_it_needs_nothing_else(self):
        names = {name for name, _ in self.trace}
        self.assertLessEqual({"socket", "mmap", "fdatasync", "setpriority", "openat"}, names)
        self.assertEqual(self.found(UNIT), set())
        print(f"{len(self.trace)} calls of {len(names)} kinds are allowed")

    def test_a_unit_that_forbids_more_is_found(self):
        self.assertIn("SystemCallFilter: setpriority", self.found(UNIT.replace("~@privileged", "~@privileged @resources")))
        self.assertEqual(self.found(UNIT.replace("AF_INET AF_INET6 ", "")) - {"RestrictAddressFamilies: AF_INET6"},
                         {"RestrictAddressFamilies: AF_INET"})
        self.assertIn(f"ProtectSystem: {self.folders[1]}kilokvd.log", findings(self.trace, UNIT, self.folders[:1]))
        for call, words in ((("mmap", "NULL, 4096, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE"), "MemoryDenyWriteExecute: mmap"),
                            (("mprotect", "0x1000, 4096, PROT_READ|PROT_EXEC"), "MemoryDenyWriteExecute: mprotect"),
                            (("clone3", "{flags=CLONE_VM|CLONE_NEWUSER}, 88"), "RestrictNamespaces: clone3"),
                            (("openat", 'AT_FDCWD, "/dev/kvm", O_RDONLY'), "PrivateDevices: /dev/kvm")):
            self.assertEqual(findings([call], UNIT, ()), {words})


if __name__ == "__main__":
    unittest.main()
