#!/usr/bin/env python3
"""Random damage to the files of a database. The server either starts with exactly the acknowledged state, or it ends with
the exit code for DATA_LOSS, and the last line of its log names the file or the damage.

The state is what a scan shows. One of the databases also has users, roles, a token that was removed, and a session: lists,
the refused token and the answers to repeated requests belong to its state."""

import argparse
import collections
import pathlib
import random
import re
import select
import shutil
import subprocess
import sys
import time

import http2
from greedy_test import add_one, transaction

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder  # noqa: E402

EXIT_DATA_LOSS = 3
DEPOSITS = '{{"then": [{{"op": "add", "key": "account{}", "delta": {}}}, {{"op": "put", "key": "note{}", "value": "{}"}}]}}\n'


# What the last line names beside the data folder, if it does not name the damaged file: another file that does not fit to
# it, or what is damaged.
FILES = r"\d{6}\.(log|sst)|MANIFEST-\d{6}|\bCURRENT\b|\bIDENTITY\b|OPTIONS-\d{6}|\bACKNOWLEDGED\b|\bTAG\b|\bCREATING\b"
DAMAGES = ("the manifest", "metadata: ", "reading metadata ", "sessions: ", "reading the sessions", "reading the state", "log: ",
           "log at batch ", "reading the log", "log record", "stored results", "does not have the hash that the log recorded")
LEASE_US = 86400 * 10**6


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


class LoginServer(Server):
    """A server with logins, in a folder with the token of its administrator."""

    def __init__(self, folder, *flags):
        self.token_file = pathlib.Path(folder) / "admin.token"
        super().__init__(folder, "--login", "on", "--bootstrap-file", str(self.token_file), *flags)

    def command(self, program, *arguments):
        return [*super().command(program, *arguments), "--token-file", str(self.token_file)]


def server_of(place):
    return LoginServer(place) if (place / "admin.token").exists() else Server(place)


class Asker(http2.Caller):
    """Makes calls as the administrator, and keeps the answers."""

    def __init__(self, server):
        super().__init__(server.endpoint)
        self._login = ("authorization", f"Bearer {server.token_file.read_text().strip()}")
        self._answer = b""

    def ask(self, method, payload):
        """The message of the answer."""
        self._answer = b""
        end = time.monotonic() + 60
        self.call(method, payload, self._login)
        while self.open:
            assert time.monotonic() < end, f"{method}: no answer"
            select.select([self], [self] if self.wants_to_write() else [], [], 0.05)
            self.read()
        assert len(self._answer) >= 5, f"{method}: no message in the answer"
        return self._answer[5:]

    def _take(self, kind, flags, stream, payload):
        if kind == http2.DATA:
            self._answer += payload
        super()._take(kind, flags, stream, payload)


def numbered(session, number, more=b""):
    """A request of the session, as a message: the same one each time. `more`: further fields of its identity."""
    request = http2.bytes_field(1, session) + http2.number_field(2, number) + more
    return http2.bytes_field(1, request) + http2.bytes_field(2, transaction(add_one(b"by-session")))


def guarded_template(folder, name):
    """A database with users, roles, tokens and a session. Half of them are in its checkpoint, the rest in the log."""
    place = folder / name
    place.mkdir()
    server = LoginServer(place, "--checkpoint-interval", "200ms")
    server.start()
    asker = Asker(server)
    opened = asker.ask("OpenSession", http2.number_field(1, LEASE_US))
    assert opened[:2] == b"\x0a\x10", opened  # a field of 16 bytes
    session = opened[2:18]
    answers = []
    for half in range(2):
        load(server, 1000 * half, 1000 * half + 100)
        answers += [asker.ask("Execute", numbered(session, number)) for number in range(1 + 5 * half, 6 + 5 * half)]
        server.client("role", "grant", f"teller{half}", "--read", "account", "--write", f"account{half}")
        for user in ("stays", "revoked"):
            server.client("user", "set", f"{user}{half}", "--role", f"teller{half}")
            server.client("token", "create", f"{user}{half}", "--file", str(place / f"{user}{half}.token"))
        server.client("token", "remove", (place / f"revoked{half}.token").read_text().split("_")[1])
        if half == 0:
            time.sleep(0.6)  # a checkpoint
            server.kill()
            server = LoginServer(place, "--checkpoint-interval", "1h")
            server.start()
            asker = Asker(server)
    asker.close()
    server.kill()
    (place / "session").write_bytes(session)
    assert len(set(answers)) == len(answers), "the answers do not differ"
    (place / "answers").write_bytes(b"".join(answers))
    return place


def access_of(server):
    """What a database with logins has beside its keys: lists, who gets in, and the stored results of the session."""
    place = server.folder
    lists = [server.client("--output", "json", kind, "list") for kind in ("role", "user", "token")]
    entries = []
    for token in sorted(place.glob("*[01].token")):
        command = [str(token) if word == str(server.token_file) else word for word in server.command("kilokv", "get", "account1")]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert run.returncode == (5 if "revoked" in token.name else 0), f"{token.name}: exit {run.returncode}: {run.stderr}"
        entries.append(f"{token.name}: {run.stdout}")
    asker = Asker(server)
    session = (place / "session").read_bytes()
    answers = b"".join(asker.ask("Execute", numbered(session, number)) for number in range(1, 11))
    asker.close()
    assert answers == (place / "answers").read_bytes(), "a repeated request got another result"
    assert server.value("by-session") == 10, "a repeated request ran again"
    return lists, entries


def read_state(server, folder):
    """All that was acknowledged."""
    server.scan_to(folder / "state")
    state = (folder / "state").read_bytes()
    return state, access_of(server) if isinstance(server, LoginServer) else None


def templates(folder):
    """What a killed or stopped server leaves: all in the log; checkpoints; several starts; and an older copy of each."""
    made = []
    for name, steps in (("log", ["load", "load", "kill"]), ("stopped", ["load", "checkpoint", "load", "stop"]),
                        ("both", ["load", "checkpoint", "kill", "load", "load", "kill"]),
                        ("starts", ["load", "kill", "load", "stop", "load", "checkpoint", "load", "kill"])):
        made.append(template(folder, name, steps))
    made.append(guarded_template(folder, "guarded"))
    return made


def state_of(place, folder):
    """The acknowledged state: what an undamaged copy gives."""
    copy = folder / "copy"
    shutil.copytree(place, copy)
    with server_of(copy) as server:
        state = read_state(server, folder)
    shutil.rmtree(copy)
    return state


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
    """Damages one file; returns its name, and what was done."""
    files = sorted(path for path in (place / "data").iterdir() if path.name != "LOCK" and not path.name.startswith("LOG"))
    path = rng.choice(files)
    if rng.random() < 0.05 or path.stat().st_size == 0:
        path.unlink()
        return path.name, "removed"
    change = rng.choice(CHANGES)
    others = [other for whole in made for other in sorted((whole / "data").iterdir())
              if kind_of(other) == kind_of(path) and other.read_bytes() != path.read_bytes()]
    path.write_bytes(change(bytearray(path.read_bytes()), rng, others))
    return path.name, change.__name__


def names_damage(line, name, data):
    """Whether a line of the log names the damaged file, or the damage. The line may name another file, but not in place of a
    table file: each table file is read by itself. The data folder alone says nothing."""
    rest = line.replace(str(data), "")
    named = name in rest or (not name.endswith(".sst") and re.search(FILES, rest) is not None)
    return named or any(words in rest for words in DAMAGES)


def try_start(copy, name, expected, folder):
    """Returns the outcome: "started", or the last line of the log of a server that refused. `name`: of the damaged file."""
    server = server_of(copy)
    server.start(wait=False)
    try:
        server.wait_ready(120)
    except AssertionError as error:
        code = server.wait_end()
        last = server.log.read_text(errors="replace").splitlines()[-1]
        assert code == EXIT_DATA_LOSS, f"exit {code}: {error}"
        assert "code=DATA_LOSS" in last and str(copy) in last, f"the last line does not name the database: {last}"
        assert names_damage(last, name, copy / "data"), f"the last line names no damage: {last}"
        return last
    assert read_state(server, folder) == expected, "the server serves another state than was acknowledged"
    server.client("put", "after", "1")
    assert server.stop() == 0, "the server cannot end"
    return "started"


def attack(folder, damages, rng, lines):
    made = templates(folder)
    expected = {place: state_of(place, folder) for place in made}
    outcomes = collections.Counter()
    for number in range(damages):
        place = rng.choice(made)
        copy = folder / "damaged"
        shutil.copytree(place, copy)
        (copy / "kilokvd.log").unlink()
        name, what = damage(copy, rng, made)
        try:
            outcome = try_start(copy, name, expected[place], folder)
        except (AssertionError, subprocess.SubprocessError) as error:
            print(f"damage {number} ({place.name}: {name} {what}): {error}", file=sys.stderr)
            outcomes["wrong"] += 1
        else:
            names_file = name in outcome.replace(str(copy), "")
            outcomes["refused, and the line names the file"] += outcome != "started" and names_file
            if lines is not None:
                lines.write(f"{name} {what}: {outcome}\n")
            outcomes["started" if outcome == "started" else "refused"] += 1
            outcomes["refused by an assertion"] += "an assertion of RocksDB failed" in outcome
        shutil.rmtree(copy)
        if number % 100 == 99:
            print(f"{number + 1} damages: {dict(outcomes)}", flush=True)
    print(f"{damages} damages: {outcomes['started']} started with the acknowledged state, {outcomes['refused']} were refused "
          f"as DATA_LOSS (in {outcomes['refused, and the line names the file']} the last line names the damaged file, "
          f"{outcomes['refused by an assertion']} by an assertion of RocksDB), {outcomes['wrong']} did anything "
          "else")
    assert outcomes["wrong"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=30)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    parser.add_argument("--lines", help="write the last line of each log to this file")
    options = parser.parse_args()
    print(f"replay with --seed {options.seed} --damages {options.damages}")
    with temporary_folder() as name:
        attack(pathlib.Path(name), options.damages, random.Random(options.seed),
               open(options.lines, "w", encoding="utf-8") if options.lines else None)


if __name__ == "__main__":
    main()
