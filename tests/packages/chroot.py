"""A small Debian 12 in a folder, made by debootstrap, and commands in it; and the same as a machine that systemd boots.
Needs root.

A test that uses it runs in a mount namespace of its own (enter_namespace), so that no mount outlives it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

SOURCES = ("/etc/apt/sources.list", *map(str, pathlib.Path("/etc/apt/sources.list.d").glob("*")))
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def run(*command, code=0, **how):
    how = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "timeout": 900, **how}
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False, **how)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def enter_namespace():
    """Starts the program again with mounts of its own, unless it has them."""
    if os.environ.get("KILOKV_IN_NAMESPACE") != "yes":
        os.environ["KILOKV_IN_NAMESPACE"] = "yes"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def mirror():
    """Where this machine gets Debian's packages, for debootstrap: nothing, if only debootstrap knows."""
    for path in SOURCES:
        text = pathlib.Path(path).read_text() if os.path.isfile(path) else ""
        for url in re.findall(r"(?:^URIs:\s*|^deb\s+(?:\[.*?\]\s+)?)(https?://\S*/debian/?)(?=\s|$)", text, re.MULTILINE):
            return [url]
    return []


def settings_of_apt():
    """How this machine's apt reaches Debian's packages, as lines of a configuration."""
    dump = run("apt-config", "dump", "--no-empty", "Acquire", stderr=subprocess.DEVNULL)
    wanted = r"(?m)^Acquire::(?:Check-Valid-Until|Check-Date|Retries|https?::(?:\S+::)?Proxy\S*) .*$"
    return "".join(line + "\n" for line in re.findall(wanted, dump))


def make_base(folder):
    """A Debian 12 with nothing but what every Debian has. Kept, because it takes a minute."""
    folder = pathlib.Path(folder)
    done = folder / "done"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run("debootstrap", "--variant=minbase", f"--keyring={KEYRING}", "bookworm", folder / "root", *mirror())
        run("chroot", folder / "root", "apt-get", "clean")
        done.touch()
    return folder / "root"


class System:
    """A copy of the base."""

    def __init__(self, base, root):
        self.root = pathlib.Path(root)
        run("cp", "--archive", "--reflink=auto", base, self.root)
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        (self.root / "etc" / "apt" / "apt.conf.d" / "90as-outside").write_text(settings_of_apt())
        run("mount", "-t", "proc", "proc", self.root / "proc")
        for device in ("null", "zero", "random", "urandom", "tty"):
            path = self.root / "dev" / device
            if not path.is_char_device():
                path.touch()
                run("mount", "--bind", f"/dev/{device}", path)

    def close(self):
        """Whoever removes the folder has to unmount first."""
        for mounted in reversed(re.findall(rf"^\S+ ({re.escape(str(self.root))}/\S+) ", pathlib.Path("/proc/mounts").read_text(),
                                           re.MULTILINE)):
            run("umount", "--lazy", mounted)

    def path(self, name):
        return self.root / name.lstrip("/")

    def command(self, *command, user=None):
        who = [] if user is None else [f"--userspec={user}:{user}"]
        return ["chroot", *who, self.root, *command]

    @staticmethod
    def environment(variables=None):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **(variables or {})}

    def run(self, *command, user=None, variables=None, **how):
        return run(*self.command(*command, user=user), env=self.environment(variables), **how)

    def apt(self, *arguments, **how):
        variables = {"DEBIAN_FRONTEND": "noninteractive"}
        return self.run("apt-get", "-q", "-y", "-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", *arguments,
                        variables=variables, **how)


class Machine(System):
    """A system that systemd runs. It has a network of its own, which is only loopback. So apt takes what was downloaded
    before. The system that it is made of is not used any more."""

    def __init__(self, system):
        system.close()  # systemd-nspawn mounts what a machine needs
        self.root = system.root
        self.boot()

    def boot(self):
        self.log = open(self.root.parent / "machine.log", "ab+")
        self.process = subprocess.Popen(
            ["systemd-nspawn", "--directory", self.root, "--boot", "--register=no", "--keep-unit", "--private-network",
             "--link-journal=no", "--resolv-conf=off", "--timezone=off", "--console=pipe"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 120
        while not self.is_up():
            assert self.process.poll() is None and time.monotonic() < end, f"the machine does not come up:\n{self.said()}"
            time.sleep(0.1)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-8000:]

    def leader(self):
        """The process that is number 1 in the machine; None: not yet."""
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = path.read_text().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == str(self.process.pid):
                return path.parent.name
        return None

    def is_up(self):
        self.number_one = self.leader()
        return self.number_one is not None and \
            self.run("systemctl", "is-system-running", code=None).strip() in ("running", "degraded")

    def command(self, *command, user=None):
        assert user is None
        return ["nsenter", "--target", self.number_one, "--all", "--root", "--wd=/", "--", *command]

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()  # an orderly end
            try:
                self.process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
