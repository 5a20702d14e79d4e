#!/usr/bin/env python3
"""Attacks on the data directory: the lock is removed, others want to read it, it is the directory of others, the clock is
wrong, and the server is killed while it creates or recovers a database."""

import argparse
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, LoggingServer, Server, temporary_folder, until  # noqa: E402

LONG = 100  # so many kills must have met what they are for at least once in ten
LOG_FILES_MAX = 2  # write-ahead logs that are there after a start, however many starts were killed before


def attack_lock():
    """The file LOCK is removed while the server runs, and a second server starts on the directory."""
    with temporary_folder() as folder, Server(folder) as server:
        server.client("put", "before", "1")
        (server.folder / "data" / "LOCK").unlink()
        done = subprocess.run([BIN / "kilokvd", "--data-dir", server.folder / "data", "--listen", "127.0.0.1:0"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1, f"the second server: exit {done.returncode}: {done.stderr}"
        assert "is in use by another process" in done.stderr.splitlines()[-1], done.stderr
        for number in range(20):
            server.client("put", f"after{number}", str(number))
        server.kill()
        server.start()
        assert [server.value(f"after{number}") for number in range(20)] == list(range(20))
    print("lock: the second server was refused; nothing is lost")


def attack_place():
    """The directory is moved away under the server, and a second server takes its place: the first acknowledges nothing
    more."""
    with temporary_folder() as folder, Server(folder) as server:
        server.client("put", "before", "1")
        data = server.folder / "data"
        data.rename(server.folder / "moved")
        data.mkdir()
        server.client("--timeout", "2s", "put", "after", "1", codes=(4,))
        assert server.wait_end() == 1
        assert "was replaced by another directory" in server.log.read_text().splitlines()[-1]
        shutil.rmtree(data)
        (server.folder / "moved").rename(data)
        server.start()
        assert (server.value("before"), server.value("after")) == (1, 0)
    print("place: the server whose directory was replaced ended without an acknowledgement")


def attack_rights():
    """Who else can read the directory, its files and the log."""
    with temporary_folder() as folder, LoggingServer(folder) as server:
        server.client("put", "key", "1")
        found = [server.folder / "data", server.log_file.parent, server.log_file, server.folder / "port",
                 *(server.folder / "data").iterdir()]
        assert len(found) > 8
        for path in found:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), f"{path.name}: {mode:o}"
    print(f"rights: {len(found)} paths are for their owner only")


def attack_foreign_files():
    """A start on a directory that is not the server's own, such as a home: no database, and not a single file."""
    with temporary_folder() as folder:
        data = pathlib.Path(folder) / "home"
        (data / "photos").mkdir(parents=True)
        (data / "letter.txt").write_text("dear")
        command = [BIN / "kilokvd", "--data-dir", data, "--listen", "127.0.0.1:0", "--http-listen", "off"]
        for words in ([], ["--create-database"]):
            done = subprocess.run([*command, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                                  check=False)
            assert done.returncode == 1, f"exit {done.returncode}: {done.stderr}"
            assert "it has other files, such as" in done.stderr and "letter.txt" in done.stderr, done.stderr
        assert sorted(path.name for path in data.iterdir()) == ["letter.txt", "photos"]
    # A new file system, and settings that name files in the directory.
    with temporary_folder() as folder:
        data = pathlib.Path(folder) / "data"
        (data / "lost+found").mkdir(parents=True)
        (data / "kilokvd.log").write_text("a line of an earlier start\n")
        made = subprocess.run([BIN / "kilokvd", "--data-dir", data, "--log-file", data / "kilokvd.log", "--create-database"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        assert made.returncode == 0, made.stderr
        with Server(folder, "--create", "never") as server:
            server.client("put", "key", "1")
    print("foreign files: no database was made among them")


def attack_clock():
    """A start with a clock that is far after the last batch. (A limit of one second stands for a clock that is wrong.)"""
    with temporary_folder() as folder, Server(folder) as server:
        server.client("put", "key", "1")
        assert server.stop() == 0
        time.sleep(1.1)
        done = subprocess.run([BIN / "kilokvd", "--data-dir", server.folder / "data", "--listen", "127.0.0.1:0",
                               "--clock-gap-max", "1s"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1, f"exit {done.returncode}: {done.stderr}"
        assert "after the last batch, and --clock-gap-max is" in done.stderr.splitlines()[-1], done.stderr
        server.start()
        assert server.value("key") == 1
    print("clock: a start with a clock that was too far ahead was refused")


def time_of_creation():
    """When a new database begins to be created, and when it is whole: seconds after the start of its server."""
    with temporary_folder() as folder:
        server = Server(folder)
        mark = server.folder / "data" / "CREATING"
        began = time.monotonic()
        server.start(wait=False)
        try:
            until(mark.exists, "the begin of the creation")
            first = time.monotonic() - began
            until(lambda: not mark.exists(), "the end of the creation")
            return first, time.monotonic() - began
        finally:
            server.kill()


def attack_creation(kills, rng):
    """SIGKILL in the first 200 ms of a new database. Every one of them starts afterwards, and works. Half of the kills come
    while the database is created, as far as one can tell before."""
    first, last = time_of_creation()
    cut = 0
    for number in range(kills):
        with temporary_folder() as folder:
            server = Server(folder)
            server.start(wait=False)
            time.sleep(rng.uniform(first, last) if number % 2 and last < 0.2 else rng.uniform(0, 0.2))
            server.kill()
            cut += (server.folder / "data" / "CREATING").exists()
            with server:
                server.client("put", "key", "7")
                assert server.value("key") == 7
        if number % 100 == 99:
            print(f"creation: {number + 1} kills, {cut} of them before the database was whole", flush=True)
    print(f"creation: {kills} kills, {cut} of them before the database was whole; all start")
    assert kills < LONG or cut >= kills // 10, "too few kills came before the database was whole"


def attack_recovery(kills, rng):
    """SIGKILL while the server recovers. The state stays, and the directory does not fill up."""
    with temporary_folder() as folder, Server(folder, "--checkpoint-interval", "1h") as server:
        for _ in range(5):
            server.client("txn", "--batch", stdin='{"then": [{"op": "add", "key": "sum", "delta": 1}]}\n' * 1000)
        server.kill()
        began = time.monotonic()
        server.start()
        whole = time.monotonic() - began
        inside = 0
        for number in range(kills):
            server.kill()
            server.start(wait=False)
            time.sleep(rng.uniform(0, whole))
            server.kill()
            inside += "kilokvd ready" not in server.log.read_bytes()[server._seen:].decode()
            if number % 10 == 9 or number + 1 == kills:
                server.start()
                assert server.value("sum") == 5000, server.value("sum")
                logs = [path.name for path in (server.folder / "data").glob("*.log")]
                assert len(logs) <= LOG_FILES_MAX, f"{len(logs)} write-ahead logs after {number + 1} kills: {logs}"
    print(f"recovery: {kills} kills, {inside} of them before the server was ready; the state is the same, and "
          f"{len(logs)} write-ahead logs are left")
    assert kills < LONG or inside >= kills // 10, "too few kills came inside recovery"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--creation-kills", type=int, default=20)
    parser.add_argument("--recovery-kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    options = parser.parse_args()
    print(f"replay with --seed {options.seed}")
    rng = random.Random(options.seed)
    attack_lock()
    attack_place()
    attack_rights()
    attack_foreign_files()
    attack_clock()
    attack_creation(options.creation_kills, rng)
    attack_recovery(options.recovery_kills, rng)


if __name__ == "__main__":
    main()
