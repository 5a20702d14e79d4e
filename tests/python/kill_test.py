#!/usr/bin/env python3
"""The server is killed with SIGKILL again and again, and starts again on the same folder and port. Meanwhile threads of
the synchronous client and tasks of the asyncio client send transactions in sessions.

At the end nothing is unknown, and the judge accepts the history of all answers together with the final state.

  kill_test.py             5 kills
  kill_test.py --kills 50  the long form
"""

import argparse
import asyncio
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
from programs import JUDGE, Server, temporary_folder  # noqa: E402

KEYS = 20      # few, so that transactions meet
THREADS = 4    # of the synchronous client, each with a session
TASKS = 8      # of the asyncio client, in one session
NUMBERS = {"value", "version", "delta", "time_us"}


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

    def close(self):
        self._file.close()

    def _write(self, line):
        self._file.write(json.dumps(line) + "\n")


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
    kind = rng.randrange(6)
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


def client_loop(endpoint, history, seed, stop):
    async def main():
        async with kilokv.aio.Client(endpoint, timeout=60, wait_for_server=60) as db:
            async with db.session() as session:
                await asyncio.gather(*(client_task(session, history, seed + i, stop) for i in range(TASKS)))
    asyncio.run(main())


def kill_again_and_again(server, kills, rng):
    for number in range(1, kills + 1):
        time.sleep(rng.uniform(0.2, 1.0))
        server.kill()
        time.sleep(rng.uniform(0, 0.2))
        server.start()
        print(f"killed {number} of {kills}", flush=True)
    time.sleep(1)


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
        threads = [threading.Thread(target=client_thread, args=(server.endpoint, history, options.seed + 100 + i, stop))
                   for i in range(THREADS)]
        threads.append(threading.Thread(target=client_loop, args=(server.endpoint, history, options.seed + 200, stop)))
        for thread in threads:
            thread.start()
        try:
            kill_again_and_again(server, options.kills, random.Random(options.seed))
        finally:
            stop.set()
            for thread in threads:
                thread.join(120)
        history.close()
        assert not any(thread.is_alive() for thread in threads), "a client does not end"
        print(f"{history.answered} transactions answered, {history.sent_again} of them sent more than once, "
              f"{len(history.unknown)} unknown")
        assert not history.unknown, f"unknown: {history.unknown[:3]}"
        assert history.answered >= 100 * options.kills and history.sent_again > 0
        server.scan_to(folder / "final.jsonl")
        judged = judge(folder / "history.jsonl", "--final-state", folder / "final.jsonl")
        print(judged.stdout[-3000:], judged.stderr[-3000:])
        assert judged.returncode == 0, "the judge does not accept the history"
        with_wrong_read(folder / "history.jsonl", folder / "wrong.jsonl")
        assert judge(folder / "wrong.jsonl").returncode == 1, "the judge accepts a wrong read"


if __name__ == "__main__":
    main()
