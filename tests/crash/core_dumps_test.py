#!/usr/bin/env python3
"""A crash leaves no core file, because a core holds data and secrets, unless --core-dumps on is given."""

import os
import pathlib
import resource
import signal
import subprocess

from programs import Server, temporary_folder

SECRET = "a-value-that-nobody-else-may-see"
NO_CORE = ["0", "0"]  # soft and hard limit


def crash(process_id):
    """Whether the system says that it has written a core."""
    os.kill(process_id, signal.SIGSEGV)
    _, status = os.waitpid(process_id, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV, status
    return os.WCOREDUMP(status)


def cores(folder):
    """The files that hold the secret. That of the log, the command line's and the value's own file do not count."""
    return [path for path in pathlib.Path(folder).iterdir() if path.is_file() and SECRET.encode() in path.read_bytes()]


def crash_server(folder, *flags):
    server = Server(folder, *flags)
    server.start()
    server.client("put", "key", SECRET)
    limits = pathlib.Path(f"/proc/{server.pid}/limits").read_text()
    limit = next(line for line in limits.splitlines() if line.startswith("Max core file size")).split()[4:6]
    memory = int(pathlib.Path(f"/proc/{server.pid}/coredump_filter").read_text(), 16)
    dumped = crash(server.pid)
    server.kill()
    return limit, memory, dumped


def main():
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # so the server has to raise it
    started_with = "unlimited" if most == resource.RLIM_INFINITY else str(most)
    by_pipe = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().startswith("|")
    with temporary_folder() as folder:
        os.chdir(folder)  # where a plain core_pattern puts cores
        shell = subprocess.Popen(["sleep", "60"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)))
        machine_dumps = crash(shell.pid)
        for path in pathlib.Path(folder).iterdir():
            path.unlink()
        limit, memory, dumped = crash_server(folder)
        assert limit == NO_CORE and memory == 0, f"limit {limit}, kinds of memory {memory:x}"
        assert by_pipe or not dumped, "the server left a core"
        assert not cores(folder), cores(folder)
        limit, memory, dumped = crash_server(folder, "--core-dumps", "on")
        assert memory != 0, "a core has no memory"
        # Also where the machine writes no core. The hard limit is what the server was started with.
        soft, hard = limit
        assert soft == hard == started_with, f"limit {soft}, at most {hard}, started with {started_with}"
        if machine_dumps:
            assert dumped and limit != NO_CORE, "--core-dumps on leaves no core"
            assert by_pipe or cores(folder), "the core does not hold the secret: the search above finds nothing"
        print(f"core dumps: none without the flag; with it: {'a core with the secret' if cores(folder) else dumped}; "
              f"the machine {'writes' if machine_dumps else 'does not write'} cores")
    os.chdir("/")


if __name__ == "__main__":
    main()
