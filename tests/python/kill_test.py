#!/usr/bin/env python3
"""The server is killed with SIGKILL again and again, and starts again on the same folder and port. Meanwhile threads of
the synchronous client and tasks of the asyncio client send transactions in sessions. Some of their keys expire. Each
client has a watch of all keys, too.

At the end nothing is unknown, and the judge accepts the history of all answers and expiries together with the final
state. Both watches gave what the log holds: nothing is missing, and nothing comes twice.

  kill_test.py             5 kills
  kill_test.py --kills 50  the long form
"""

import argparse
import asyncio
import base64
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

import kilokv
import kilokv.aio

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "crash"), str(ROOT / "tests" / "conformance" / "adapters")]
import forms  # noqa: E402
from programs import JUDGE, Server, temporary_folder, until  # noqa: E402
from watched import all_expire, expiry_line, lines_of, nothing_left_to_expire, watch  # noqa: E402

KEYS = 20      # few, so that transactions meet
THREADS = 4    # of the synchronous client, each with a session
TASKS = 8      # of the asyncio client, in one session
NUMBERS = {"value", "version", "delta", "time_us", "ttl_us"}
LARGE = 50_000  # bytes of a value; a part of a watch has about 128 KiB


class History:
    """A file in the format of docs/history.md."""

    def __init__(self, path):
        self._lock, self._began = threading.Lock(), time.monotonic()
        self._file = open(path, "w", encoding="utf-8")
        self._write({"format": "kilokv-history-2", "config": {"client": "python"}, "initial": []})
        self.answered = self.sent_again = 0
        self.unknown = []

    def now_us(self):
        return int((time.monotonic() - self._began) * 1e6)

    def add(self, session, form, index, invoke_us, result):
        """`form`: the transaction in the form of the conformance test. `result`: a Result, or the Error of its
        request."""
        line = {"session": session, "request": result.request, "index": index, "attempts": result.attempts,
                "invoke_us": invoke_us, "return_us": self.now_us(), "precedence": 0,
                "wait_timeout_ms": form.get("wait_timeout_ms", 0), "guards": numbers(form.get("guards", [])),
                "then": numbers(form.get("then", [])), "else": numbers(form.get("else", [])), "outcome": None,
                "version": None, "batch": None, "rank": None, "admitted_batch": None, "batch_time_us": None,
                "reads": [], "reads_dropped": False}
        if form.get("expire_runs_else"):
            line["expire_runs_else"] = True
        if isinstance(result, kilokv.Error):
            line |= {"error": result.code, "not_run": result.never_ran, "return_us": None}
        else:
            line |= answer(result)
        with self._lock:
            self._write(line)
            if line["outcome"] is None:
                self.unknown.append(line)
            else:
                self.answered += 1
                self.sent_again += result.attempts > 1

    def add_expiry(self, write):
        self._write(expiry_line(write))

    def close(self):
        self._file.close()

    def _write(self, line):
        self._file.write(json.dumps(line) + "\n")


class Watched:
    """What a watch has given."""

    def __init__(self, seed):
        self.writes, self.parts_unfinished = [], 0
        self._rng = random.Random(seed)
        self._position = kilokv.WatchPosition(0)

    def take(self, part):
        """Returns for how many seconds to read nothing, so that kills meet a watch in the middle of a transaction."""
        assert part.position >= self._position or part.position == (self._position.version, 0), part.position
        self.writes += part.writes
        self.parts_unfinished += part.unfinished
        self._position = part.position
        return 0.4 if part.unfinished and self._rng.random() < 0.15 else 0

    def has_all(self, last):
        """Whether it has all writes up to this version."""
        version, writes = self._position
        return version > last or (version == last and writes == 0)

    def lines(self):
        """As `kilokv --output json watch` prints them."""
        return [line_of(write) for write in self.writes]


def line_of(write):
    form = forms.from_value(write.value)
    line = {"key": forms.from_key(write.key), "value": int(form) if isinstance(form, str) else form,
            "version": write.version, "batch": write.batch, "rank": write.rank, "batch_time_us": write.batch_time_us}
    if write.expires_at_us is not None:
        line["expires_at_us"] = write.expires_at_us
    if write.expired:
        line["expired"] = True
    return line


def numbers(form):
    """The same with JSON numbers instead of strings of digits."""
    if isinstance(form, list):
        return [numbers(value) for value in form]
    if not isinstance(form, dict):
        return form
    return {name: int(value) if name in NUMBERS and isinstance(value, str) else numbers(value)
            for name, value in form.items()}


def answer(result):
    """The fields of a line that say what was answered."""
    form = forms.from_result(result)
    fields = {name: form[name] for name in ("outcome", "batch", "rank", "admitted_batch", "reads_dropped")}
    fields["version"] = result.version
    fields["batch_time_us"] = result.batch_time_us
    fields["reads"] = [{name: read[name] for name in ("key", "value", "version")} for read in form["reads"]]
    for read in fields["reads"]:
        read["version"] = None if read["version"] is None else int(read["version"])
        read["value"] = int(read["value"]) if isinstance(read["value"], str) else read["value"]
    if form["failed_in"] == "guards":
        fields["failed_guard"] = form["failed_index"]
    elif form["failed_in"] is not None:
        fields["failed_operation"] = form["failed_index"]
    return fields


def random_form(rng):
    """A transaction. Those that wait take from a key what others give."""
    def key():
        return f"k{rng.randrange(KEYS)}"
    a, b, amount = key(), key(), rng.randrange(1, 20)
    move = [{"op": "add", "key": a, "delta": str(-amount)}, {"op": "add", "key": b, "delta": str(amount)},
            {"op": "get", "key": a}]
    enough = {"is": "ge", "key": a, "value": str(amount)}
    if rng.random() < 0.002:  # more than gRPC reads ahead
        value = {"b64": base64.b64encode(rng.randbytes(LARGE)).decode()}
        return {"then": [{"op": "put", "key": f"large/{i}", "value": value} for i in range(12)]}
    kind = rng.randrange(7)
    if kind == 0:
        return {"then": [{"op": "add", "key": a, "delta": str(amount)}, {"op": "get", "key": a}]}
    if kind == 1:
        return {"guards": [enough], "then": move, "else": [{"op": "add", "key": "refused", "delta": "1"}]}
    if kind == 2:
        return {"guards": [{**enough, "when_false": "wait"}], "then": move,
                "wait_timeout_ms": rng.choice((0, 50, 2000)), "expire_runs_else": rng.random() < 0.5,
                "else": [{"op": "add", "key": "expired", "delta": "1"}]}
    if kind == 3:
        return {"then": [{"op": "range_get", "from": "k", "to": "l", "limit": 8, "reverse": rng.random() < 0.5}]}
    if kind == 4:
        return {"then": [{"op": "delete", "key": a}, {"op": "put", "key": b, "value": {"commit_version": True}}]}
    if kind == 5:
        ttl_us = str(rng.randrange(1, 300_000))
        return {"then": [{"op": "put", "key": a, "value": str(amount), "ttl_us": ttl_us},
                         {"op": "add", "key": f"{b}/brief", "delta": "1", "ttl_us": ttl_us}]}
    return {"guards": [{"is": "lt", "key": a, "other": b}], "then": [{"op": "get", "key": a}, {"op": "get", "key": b}]}


def some_forms(rng):
    return [random_form(rng) for _ in range(rng.choice((1, 1, 1, 4)))]


def client_thread(endpoint, history, seed, stop):
    rng = random.Random(seed)
    with kilokv.Client(endpoint, timeout=60, wait_for_server=60) as db, db.session() as session:
        while not stop.is_set():
            sent, invoke_us = some_forms(rng), history.now_us()
            transactions = [forms.to_transaction(form) for form in sent]
            try:
                results = session.execute_many(transactions) if len(sent) > 1 else [session.execute(transactions[0])]
            except kilokv.Error as error:
                results = [error] * len(sent)
            record(history, session, sent, invoke_us, results)


async def client_task(session, history, seed, stop):
    rng = random.Random(seed)
    while not stop.is_set():
        sent, invoke_us = some_forms(rng), history.now_us()
        transactions = [forms.to_transaction(form) for form in sent]
        try:
            if len(sent) > 1:
                results = await session.execute_many(transactions)
            else:
                results = [await session.execute(transactions[0])]
        except kilokv.Error as error:
            results = [error] * len(sent)
        record(history, session, sent, invoke_us, results)


def record(history, session, sent, invoke_us, results):
    for index, (form, result) in enumerate(zip(sent, results)):
        history.add(session.id, form, index, invoke_us, result)


def client_loop(endpoint, history, seed, stop, load_has_ended, watched, stop_watches):
    """All of asyncio, because gRPC prints errors if two threads have event loops."""
    async def watch_all(db):
        async with db.watch(after=0) as parts:
            async for part in parts:  # at least one in a second
                await asyncio.sleep(watched.take(part))
                if stop_watches.is_set():
                    return

    async def main():
        async with kilokv.aio.Client(endpoint, timeout=60, wait_for_server=60) as db:
            watching = asyncio.ensure_future(watch_all(db))
            async with db.session() as session:
                await asyncio.gather(*(client_task(session, history, seed + i, stop) for i in range(TASKS)))
            load_has_ended.set()
            await watching
    asyncio.run(main())


def watch_thread(endpoint, watched, stop):
    with kilokv.Client(endpoint) as db, db.watch(after=0) as parts:
        for part in parts:
            time.sleep(watched.take(part))
            if stop.is_set():
                return


def kill_again_and_again(server, kills, rng):
    for number in range(1, kills + 1):
        time.sleep(rng.uniform(0.2, 1.0))
        server.kill()
        time.sleep(rng.uniform(0, 0.2))
        server.start()
        print(f"killed {number} of {kills}", flush=True)
    time.sleep(1)


def check_watches(server, watches):
    """Returns the writes of the log."""
    all_expire(server)
    last = server.status()["next_version"] - 1
    until(lambda: all(watched.has_all(last) for watched in watches), "the watches have all", 60)
    with watch(server, "logged.jsonl", "--after", "0", "--through", str(last)) as (process, path):
        assert process.wait(timeout=300) == 0
    logged = lines_of(path)
    for watched in watches:
        seen = watched.lines()
        different = [pair for pair in zip(seen, logged) if pair[0] != pair[1]]
        assert not different, f"the watch gave {different[0][0]}, the log has {different[0][1]}"
        assert len(seen) == len(logged), f"the watch gave {len(seen)} writes, the log has {len(logged)}"
    nothing_left_to_expire(logged)
    return logged


def join(stop, threads):
    stop.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a client does not end"


def judge(*arguments):
    return subprocess.run([sys.executable, JUDGE, *arguments], capture_output=True, text=True, timeout=600, check=False)


def with_wrong_read(history, wrong):
    """Writes the history with one integer that was read, changed by 1."""
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    read = next(read for line in reversed(lines[1:]) for read in line["reads"] if isinstance(read["value"], int))
    read["value"] += 1
    wrong.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Kills the server under the load of the Python clients.")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    print(f"replay with --seed {options.seed} --kills {options.kills}", flush=True)
    with temporary_folder() as name, Server(name, "--checkpoint-interval", "500ms") as server:
        folder = pathlib.Path(name)
        history, stop = History(folder / "history.jsonl"), threading.Event()
        watches = [Watched(options.seed), Watched(options.seed + 1)]
        stop_watches, load_has_ended = threading.Event(), threading.Event()
        threads = [threading.Thread(target=client_thread, args=(server.endpoint, history, options.seed + 100 + i, stop))
                   for i in range(THREADS)]
        watchers = [
            threading.Thread(target=watch_thread, args=(server.endpoint, watches[0], stop_watches)),
            threading.Thread(target=client_loop, args=(server.endpoint, history, options.seed + 200, stop,
                                                       load_has_ended, watches[1], stop_watches))]
        for thread in [*threads, *watchers]:
            thread.start()
        try:
            kill_again_and_again(server, options.kills, random.Random(options.seed))
            join(stop, threads)
            assert load_has_ended.wait(120), "the asyncio client does not end"
            logged = check_watches(server, watches)
        finally:
            stop.set()
            join(stop_watches, [*threads, *watchers])
        expired = [write for write in logged if write.get("expired")]
        for write in expired:
            history.add_expiry(write)
        history.close()
        print(f"{len(logged)} writes, {len(expired)} of them expiries; {watches[0].parts_unfinished} and "
              f"{watches[1].parts_unfinished} parts of the watches ended in the middle of a transaction")
        print(f"{history.answered} transactions answered, {history.sent_again} of them sent more than once, "
              f"{len(history.unknown)} unknown")
        assert not history.unknown, f"unknown: {history.unknown[:3]}"
        assert history.answered >= 100 * options.kills and history.sent_again > 0 and len(expired) > options.kills
        server.scan_to(folder / "final.jsonl")
        judged = judge(folder / "history.jsonl", "--final-state", folder / "final.jsonl")
        print(judged.stdout[-3000:], judged.stderr[-3000:])
        assert judged.returncode == 0, "the judge does not accept the history"
        with_wrong_read(folder / "history.jsonl", folder / "wrong.jsonl")
        assert judge(folder / "wrong.jsonl").returncode == 1, "the judge accepts a wrong read"


if __name__ == "__main__":
    main()
