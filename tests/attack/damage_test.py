#!/usr/bin/env python3
"""Random damage to the files of a database. The server either starts with exactly the acknowledged state, or it ends with
the exit code for DATA_LOSS, and the last line of its log names the file or the damage."""

import argparse
import collections
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder  # noqa: E402

EXIT_DATA_LOSS = 3
DEPOSITS = '{{"then": [{{"op": "add", "key": "account{}", "delta": {}}}, {{"op": "put", "key": "note{}", "value": "{}"}}]}}\n'


def load(server, begin, end):
    server.client("txn", "--batch", stdin="".join(DEPOSITS.format(i % 40, i, i, "x" * (i % 300))
                                                  for i in range(begin, end)))


def template(folder, name, steps):
    """A database folder after these steps: "load" runs transactions, "kill" and "stop" end the server, then starts it
    again; the last step leaves it ended."""
    place = folder / name
    place.mkdir()
    server = Server(place, "--checkpoint-interval", "200ms")
    server.start()
    for number, step in enumerate(steps):
        if step == "load":
            load(server, 1000 * number, 1000 * number + 300)
        elif step == "checkpoint":
            time.sleep(0.6)
        else:
            (server.kill if step == "kill" else server.stop)()
            if number + 1 < len(steps):
                server.start()
    return place


def templates(folder):
    """What a killed or stopped server leaves: all in the log; checkpoints; several starts; and an older copy of each."""
    made = []
    for name, steps in (("log", ["load", "load", "kill"]), ("stopped", ["load", "checkpoint", "load", "stop"]),
                        ("both", ["load", "checkpoint", "kill", "load", "load", "kill"]),
                        ("starts", ["load", "kill", "load", "stop", "load", "checkpoint", "load", "kill"])):
        made.append(template(folder, name, steps))
    return made


def state_of(place, folder):
    """The acknowledged state: what an undamaged copy gives."""
    copy = folder / "copy"
    shutil.copytree(place, copy)
    with Server(copy) as server:
        server.scan_to(folder / "expected")
    shutil.rmtree(copy)
    return (folder / "expected").read_bytes()


def flip_bits(data, rng, _):
    for _ in range(rng.choice((1, 1, 1, 8))):
        place = rng.randrange(len(data))
        data[place] ^= 1 << rng.randrange(8)
    return data


def overwrite(data, rng, _):
    begin = rng.randrange(len(data))
    size = min(len(data) - begin, rng.choice((1, 16, 512, 4096)))
    data[begin:begin + size] = bytes(size) if rng.random() < 0.5 else rng.randbytes(size)
    return data


def cut(data, rng, _):
    return data[:rng.randrange(len(data))]


def lengthen(data, rng, _):
    return data + (bytes(4096) if rng.random() < 0.5 else rng.randbytes(rng.randrange(1, 4096)))


def repeat(data, rng, _):
    begin = rng.randrange(len(data))
    end = begin + rng.randrange(1, 2000)
    return data[:end] + data[begin:end] + data[end:]


def exchange(data, rng, others):
    """Becomes another file of the same kind: of another database, or of this one."""
    return bytearray(rng.choice(others).read_bytes()) if others else data


CHANGES = (flip_bits, flip_bits, overwrite, cut, lengthen, repeat, exchange)


def kind_of(path):
    return path.suffix or path.name.split("-")[0]


def damage(place, rng, made):
    """Damages one file; returns what was done."""
    files = sorted(path for path in (place / "data").iterdir() if path.name != "LOCK" and not path.name.startswith("LOG"))
    path = rng.choice(files)
    if rng.random() < 0.05 or path.stat().st_size == 0:
        path.unlink()
        return f"{path.name} removed"
    change = rng.choice(CHANGES)
    others = [other for whole in made for other in sorted((whole / "data").iterdir())
              if kind_of(other) == kind_of(path) and other.read_bytes() != path.read_bytes()]
    path.write_bytes(change(bytearray(path.read_bytes()), rng, others))
    return f"{path.name} {change.__name__}"


def try_start(copy, expected, folder):
    """Returns the outcome: "started", or the last line of the log of a server that refused."""
    server = Server(copy)
    server.start(wait=False)
    try:
        server.wait_ready(120)
    except AssertionError as error:
        code = server.wait_end()
        last = server.log.read_text(errors="replace").splitlines()[-1]
        assert code == EXIT_DATA_LOSS, f"exit {code}: {error}"
        assert "code=DATA_LOSS" in last and str(copy) in last, f"the last line names no damage: {last}"
        return last
    with_reads = folder / "state"
    server.scan_to(with_reads)
    assert with_reads.read_bytes() == expected, "the server serves another state than was acknowledged"
    server.client("put", "after", "1")
    assert server.stop() == 0, "the server cannot end"
    return "started"


def attack(folder, damages, rng):
    made = templates(folder)
    expected = {place: state_of(place, folder) for place in made}
    outcomes = collections.Counter()
    for number in range(damages):
        place = rng.choice(made)
        copy = folder / "damaged"
        shutil.copytree(place, copy)
        (copy / "kilokvd.log").unlink()
        what = damage(copy, rng, made)
        try:
            outcome = try_start(copy, expected[place], folder)
        except (AssertionError, subprocess.SubprocessError) as error:
            print(f"damage {number} ({place.name}: {what}): {error}", file=sys.stderr)
            outcomes["wrong"] += 1
        else:
            outcomes["started" if outcome == "started" else "refused"] += 1
            outcomes["refused by an assertion"] += "an assertion of RocksDB failed" in outcome
        shutil.rmtree(copy)
        if number % 100 == 99:
            print(f"{number + 1} damages: {dict(outcomes)}", flush=True)
    print(f"{damages} damages: {outcomes['started']} started with the acknowledged state, {outcomes['refused']} were refused "
          f"as DATA_LOSS ({outcomes['refused by an assertion']} by an assertion of RocksDB), {outcomes['wrong']} did anything "
          "else")
    assert outcomes["wrong"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=30)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    options = parser.parse_args()
    print(f"replay with --seed {options.seed} --damages {options.damages}")
    with temporary_folder() as name:
        attack(pathlib.Path(name), options.damages, random.Random(options.seed))


if __name__ == "__main__":
    main()
