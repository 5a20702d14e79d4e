#!/usr/bin/env python3
"""A full disk: reads and deletes go on, new data is refused with a sum that is more than the free space, and room that
deletes make can be used again. The server never ends.

Without --mount, the disk is full because --disk-reserve is more than there is. With --mount (root only), a small file
system is filled.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder, until  # noqa: E402

SHOWN = re.compile(r"""disk\ is\ (\d+)\ bytes\ needed\ =\ (\d+)\ kept\ free\ \+\ (\d+)\ to\ rewrite\ files
    \ \+\ (\d+)\ in\ memory\ buffers\ \+\ (\d+)\ of\ changed\ state\ \+\ 2\ x\ (\d+)\ of\ stored\ results
    \ \+\ 3\ x\ \((\d+)\ just\ written\ \+\ (\d+)\ for\ requests\ accepted\ before\ \+\ (\d+)\ for\ this\ one\);
    \ the\ limit\ is\ (\d+)\ bytes\ free:\ make\ room\ on\ the\ disk\ \((raise|lower)\ (--[a-z-]+)\)""", re.VERBOSE)


def kilokv(server, *words, stdin=""):
    done = subprocess.run(server.command("kilokv", "--timeout", "2s", *words), capture_output=True, text=True,
                          input=stdin, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def check_reads_and_deletes(server, key, range_key):
    """A key with the value 1 is read and deleted, and so is a range of one key; then a guard and a wait are decided."""
    assert kilokv(server, "get", key)[:2] == (0, "1\n")
    code, out, error = kilokv(server, "scan", "--prefix", key)
    assert (code, out.startswith(key)) == (0, True), (out, error)
    code, _, error = kilokv(server, "del", key)
    assert code == 0, error
    assert kilokv(server, "get", key)[0] == 1
    transactions = [{"then": [{"op": "range_get", "from": range_key, "to": range_key + "~", "limit": 5}]},
                    {"then": [{"op": "delete_range", "from": range_key, "to": range_key + "~", "limit": 5}]},
                    {"guards": [{"key": range_key, "is": "exists"}], "then": [], "else": [{"op": "get", "key": key}]}]
    outcomes = [line["outcome"] for line in server.transactions(*transactions, batch=False)]
    assert outcomes == ["COMMITTED", "COMMITTED", "GUARD_FAILED"], outcomes


def attack_by_setting():
    with temporary_folder() as folder:
        with Server(folder) as server:
            for key in ("one", "range"):
                server.client("put", key, "1")
            assert server.stop() == 0
        # More than there is, by about as much as the file system has: no new data is ever admitted.
        reserve = 2 * shutil.disk_usage(folder).total
        with Server(folder, "--disk-reserve", str(reserve)) as server:
            code, _, errors = kilokv(server, "put", "new", "1")
            assert code == 4, errors
            shown = SHOWN.search(errors)
            assert shown, errors
            total, kept, files, buffers, state, stored, written, before, wanted, free = map(int, shown.groups()[:10])
            assert total == kept + files + buffers + state + 2 * stored + 3 * (written + before + wanted), errors
            assert total > free, errors
            assert (kept, shown[11], shown[12]) == (reserve, "lower", "--disk-reserve"), errors
            assert free <= shutil.disk_usage(folder).total
            assert wanted > 0
            for transaction in ({"then": [{"op": "add", "key": "new", "delta": 1}]},
                                {"guards": [{"key": "new", "is": "exists"}], "then": [],
                                 "else": [{"op": "put", "key": "new", "value": 1}]}):
                code, _, errors = kilokv(server, "txn", stdin=json.dumps(transaction) + "\n")
                assert code == 4 and "make room on the disk" in errors, errors
            check_reads_and_deletes(server, "one", "range")
            assert server.stop() == 0
        with Server(folder, "--disk-reserve", "0") as server:  # turned that way, it works
            assert kilokv(server, "put", "new", "1")[0] == 0
    print("by setting: reads and deletes went on; new data was refused with the right sum and setting")


def fill(server, prefix, size):
    """Puts values until they are refused for 3 s; returns the keys that were stored. The first have two minutes: what was
    deleted before is free only after the next checkpoints."""
    stored, refused_since = [], None
    while refused_since is None or time.monotonic() - refused_since < (3 if stored else 120):
        keys = [f"{prefix}{len(stored) + i:07d}" for i in range(max(1, min(400, 1000000 // size)))]
        lines = "".join(json.dumps({"then": [{"op": "put", "key": key, "value": key + "v" * size}]}) + "\n"
                        for key in keys)
        code, out, errors = kilokv(server, "txn", "--batch", stdin=lines)
        if code == 0:
            stored += keys
            refused_since = None
            continue
        assert code == 4 and "make room on the disk" in errors, f"exit {code}: {errors}"
        if refused_since is None:
            refused_since = time.monotonic()
    return stored


def attack_by_mount(megabytes, rounds):
    with temporary_folder() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "kilokv-full-disk", folder], check=True)
        try:
            with Server(folder) as server:
                for turn in range(rounds):
                    size = (100000, 2000, 20)[turn % 3]
                    for key in ("one", "range"):
                        until(lambda key=key: kilokv(server, "put", key, "1")[0] == 0, "room for a small key", 120)
                    stored = fill(server, f"turn{turn}/", size)
                    free = shutil.disk_usage(folder).free
                    check_reads_and_deletes(server, "one", "range")
                    end = time.monotonic() + 20
                    reads = 0
                    while time.monotonic() < end:
                        code, out, errors = kilokv(server, "get", stored[reads * 7919 % len(stored)])
                        assert code == 0 and len(out) > size, errors
                        reads += 1
                    for begin in range(0, len(stored), 1000):
                        lines = "".join(json.dumps({"then": [{"op": "delete", "key": key}]}) + "\n"
                                        for key in stored[begin:begin + 1000])
                        code, _, errors = kilokv(server, "txn", "--batch", stdin=lines)
                        assert code == 0, errors
                    print(f"by mount: turn {turn}: {len(stored)} values of {size} bytes filled {megabytes} MiB but "
                          f"{free >> 20}; {reads} reads; all deleted", flush=True)
                    if turn % 2 == 1:
                        server.kill()
                        server.start()
                until(lambda: kilokv(server, "put", "new", "1")[0] == 0, "room for a small key", 120)
                assert server.stop() == 0
        finally:
            subprocess.run(["umount", folder], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mount", action="store_true", help="fill a file system of its own; needs root")
    parser.add_argument("--megabytes", type=int, default=400, help="of that file system")
    parser.add_argument("--rounds", type=int, default=6, help="how often it is filled and emptied")
    options = parser.parse_args()
    if options.mount:
        attack_by_mount(options.megabytes, options.rounds)
    else:
        attack_by_setting()


if __name__ == "__main__":
    main()
