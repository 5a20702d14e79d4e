"""What the tests of backups share: to restore into a server of its own, and to let the judge compare it with a history."""

import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, JUDGE, SLOWER, Server  # noqa: E402


def kilokv(*arguments, codes=(0,)):
    """Runs `kilokv` without a server; returns its standard output and standard error."""
    command = [str(part) for part in (BIN / "kilokv", *arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300 * SLOWER)
    assert run.returncode in codes, f"{command}: exit {run.returncode}: {run.stdout}{run.stderr}"
    return run.stdout, run.stderr


def last_json(text):
    return json.loads(text.splitlines()[-1])


def check(path):
    """What `kilokv check` says of a whole database or backup."""
    return last_json(kilokv("--output", "json", "check", path)[0])


def status(server):
    return json.loads(server.client("--output", "json", "status"))


def restored(folder, name, backup, *arguments):
    """A server on what was restored, and what `kilokv restore` said. It is not started yet."""
    place = folder / name
    place.mkdir()
    said = last_json(kilokv("--output", "json", "restore", backup, place / "data", *arguments)[0])
    return Server(place), said


def judge(history, batch, server, folder):
    """The state of the server must be the one that the replay of the history up to this batch leaves."""
    part, state = folder / f"until-{batch}.jsonl", folder / f"state-{batch}.jsonl"
    with open(history, encoding="utf-8") as lines, open(part, "w", encoding="utf-8") as output:
        for line in lines:
            if (json.loads(line).get("batch") or 0) <= batch:
                output.write(line)
    server.scan_to(state)
    run = subprocess.run([sys.executable, str(JUDGE), str(part), "--final-state", str(state)], capture_output=True,
                         text=True, check=False, timeout=300 * SLOWER)
    assert run.returncode == 0, f"batch {batch}: {run.stdout[-4000:]}{run.stderr}"
    return run.stdout


def batches_of(history):
    """The batches of a history, in order."""
    with open(history, encoding="utf-8") as lines:
        return sorted({json.loads(line).get("batch") or 0 for line in lines} - {0})


def flip(path, target, rng):
    """Copies the file with one bit changed; returns the place."""
    content = bytearray(path.read_bytes())
    place = rng.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    target.write_bytes(content)
    return place


def check_flips(backup, folder, count, seed):
    """Each flip of a bit must be found."""
    rng = random.Random(seed)
    damaged = folder / "damaged.backup"
    for number in range(count):
        place = flip(backup, damaged, rng)
        _, said = kilokv("check", damaged, codes=(1,))
        assert "damage: " in said, f"flip {number}, bit {place}, seed {seed}: {said}"
