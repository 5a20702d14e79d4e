#!/usr/bin/env python3
"""Programs that hold a session are killed, and another program attaches and asks what became of their requests. A small proxy
delays the last request, or its answer, or sends everything once more. Whatever the new program is told is never
contradicted: what was decided stays so, and what was not known never runs.

  attach_test.py --crashes 1000 --seed 7     1,000 crashes whose last request is delayed, and others between them
"""

import argparse
import json
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder, until  # noqa: E402

FENCED = b"another client has attached"  # of the refusal, which is a message of the stream
GATE = "gate"  # transactions wait until it is 1 or more
RESTARTS = 7   # each such crash comes with one of the server
SESSION_LEASE = "1h"


class Proxy:
    """Passes the bytes of connections on, and keeps all of them. It can hold back what a client sends, or what it would get.
    The connection to the server stays when the client goes: what was held back can still arrive."""

    def __init__(self, endpoint):
        self._server_address = endpoint.rsplit(":", 1)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._sockets = [self._listener]
        self._holds_requests = self._holds_answers = False
        self._held = []  # (socket of the server, bytes)
        self._sent = []  # of each connection: what its client has sent
        self._answers = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _connect(self):
        server = socket.create_connection((self._server_address[0], int(self._server_address[1])))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets.append(server)
        return server

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                server = self._connect()
            except OSError:
                return  # closed
            self._sockets.append(client)
            sent = bytearray()
            self._sent.append(sent)
            threading.Thread(target=self._pass_requests, args=(client, server, sent), daemon=True).start()
            threading.Thread(target=self._pass_answers, args=(server, client), daemon=True).start()

    def _pass_requests(self, client, server, sent):
        for data in received(client):
            with self._lock:
                sent += data
                if self._holds_requests:
                    self._held.append((server, data))
                else:
                    send(server, data)

    def _pass_answers(self, server, client):
        for data in received(server):
            with self._lock:
                self._answers += data
                if client is not None and not self._holds_answers:
                    send(client, data)

    def hold_requests(self):
        with self._lock:
            self._holds_requests = True

    def hold_answers(self):
        with self._lock:
            self._holds_answers = True

    def wait_for_request(self, words):
        """Until a client has sent a message with these words."""
        until(lambda: any(words in sent for sent in self._sent), f"a request with {words}")

    def release(self):
        """What was held back arrives now."""
        with self._lock:
            self._holds_requests = False
            for server, data in self._held:
                send(server, data)
            self._held = []

    def replay(self):
        """Everything that clients have sent arrives once more, on new connections."""
        for sent in self._sent:
            server = self._connect()
            threading.Thread(target=self._pass_answers, args=(server, None), daemon=True).start()
            send(server, bytes(sent))

    def has_answer(self, words):
        with self._lock:
            return words in self._answers

    def forget_answers(self):
        with self._lock:
            self._answers = b""

    def close(self):
        for one in self._sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()


def received(connection):
    while True:
        try:
            data = connection.recv(65536)
        except OSError:
            return
        if not data:
            return
        yield data


def send(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        pass  # the other side has gone


def put(key):
    return {"then": [{"op": "put", "key": key, "value": 1}]}


def put_when_open(key):
    return {"guards": [{"key": GATE, "is": "ge", "value": 1, "when_false": "wait"}], "then": put(key)["then"],
            "wait_timeout_ms": 3600000}


class Crash:
    """One program that is killed with its last request under way. `kind` says how far that request came."""

    DELAYED = ("late", "race", "replayed")  # the last request is in the proxy when the program is killed
    KINDS = (*DELAYED, "late", "lost", "parked", "partly")

    def __init__(self, test, number):
        self.test, self.server, self.rng = test, test.server, test.rng
        self.number = number
        self.kind = self.rng.choice(self.KINDS)
        self.file = test.folder / f"{number}.session"
        self.known = {}      # number -> {index: (outcome, version)} of everything that anybody was told
        self.never = set()   # numbers that were not known
        self.keys = {}       # number -> keys of its transactions
        self.proxy = Proxy(self.server.endpoint)

    def where(self):
        return f"crash {self.number}, {self.kind} (seed {self.test.seed})"

    def run(self):
        try:
            self._start_and_kill()
            self._attach_meanwhile()
            self._arrive()
        finally:
            self.proxy.close()

    def _key(self, number, index=0):
        return f"crash/{self.number}/{number}/{index}/"

    def _start_and_kill(self):
        partly = self.kind == "partly"
        words = ["--endpoint", self.proxy.endpoint, "--timeout", "60s", "txn", "--session-file", str(self.file)]
        command = [*self.server.command("kilokv")[:1], *words, *(["--batch"] if partly else [])]
        program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        try:
            before = 0 if partly else self.rng.randrange(4)
            for number in range(1, before + 1):
                self.keys[number] = [self._key(number)]
                self._feed(program, put(self._key(number)))
                self._tell(number, [json.loads(program.stdout.readline())])
            self.last = before + 1
            self._send_last(program)
        finally:
            program.kill()
            program.wait()
            program.stdin.close()
            program.stdout.close()

    @staticmethod
    def _feed(program, transaction):
        program.stdin.write(json.dumps(transaction) + "\n")
        program.stdin.flush()

    def _send_last(self, program):
        key = self._key(self.last)
        self.keys[self.last] = [key]
        if self.kind in self.DELAYED:
            self._wait_for_session()
            self.proxy.hold_requests()
            self._feed(program, put(key))
            self.proxy.wait_for_request(key.encode())
        elif self.kind == "lost":
            self._wait_for_session()
            self.proxy.hold_answers()
            self._feed(program, put(key))
            until(lambda: self.server.value(key) == 1, f"{self.where()}: the request has run")
        elif self.kind == "parked":
            parked = self.server.parked()
            self._feed(program, put_when_open(key))
            until(lambda: self.server.parked() > parked, f"{self.where()}: the request waits")
        else:
            parked = self.server.parked()
            self.keys[self.last] = [key, self._key(self.last, 1)]
            self._feed(program, put(key))
            self._feed(program, put_when_open(self._key(self.last, 1)))
            program.stdin.close()
            until(lambda: self.server.parked() > parked and self.server.value(key) == 1,
                  f"{self.where()}: a part of the request has run")

    def _wait_for_session(self):
        """Until the program has its session. Nothing of that is held back."""
        until(self.file.exists, f"{self.where()}: the session is open")

    def _tell(self, number, results):
        """Somebody was told these results. They must be those that were told before."""
        known = self.known.setdefault(number, {})
        for result in results:
            told = (result["outcome"], result["version"])
            assert known.setdefault(result["index"], told) == told, (
                f"{self.where()}: number {number} index {result['index']} is {told}, and was {known[result['index']]}")
        assert number not in self.never, f"{self.where()}: number {number} has results, and was not known"

    def attach(self):
        """What the server says of each number, by number."""
        output = self.server.client("--output", "json", "session", "attach", "--session-file", str(self.file))
        head, *lines = [json.loads(line) for line in output.splitlines()]
        states = {line["request"]: line for line in lines}
        for number in range(1, self.last + 1):
            if number <= head["acknowledged_through"]:
                continue
            line = states.get(number)
            if line is None:
                assert number not in self.known, f"{self.where()}: number {number} has results, and is not known"
                self.never.add(number)
                continue
            assert line["decided"] + line["parked"] + line["queued"] <= line["transactions"], line
            assert line["decided"] == len(line["results"]), line
            if line["results"]:
                self._tell(number, line["results"])
            missing = set(self.known.get(number, {})) - {result["index"] for result in line["results"]}
            assert not missing, f"{self.where()}: results {missing} of number {number} are gone"
        return states

    def _attach_meanwhile(self):
        """Attaches. In a race, the last request arrives at the same time."""
        releases = threading.Thread(target=self._release_soon)
        if self.kind == "race":
            releases.start()
        state = self.attach().get(self.last, {"state": "not_known"})["state"]
        if self.kind == "race":
            releases.join()
        expected = {"late": ("not_known",), "replayed": ("not_known",), "lost": ("decided",), "parked": ("parked",),
                    "partly": ("partly_decided",), "race": ("not_known", "queued", "decided")}
        assert state in expected[self.kind], f"{self.where()}: it is {state}"
        self.test.seen[self.kind, state] = self.test.seen.get((self.kind, state), 0) + 1

    def _release_soon(self):
        time.sleep(self.rng.uniform(0, 0.06))  # the moment is what is varied
        self.proxy.release()

    def _arrive(self):
        """Everything that was on its way arrives."""
        key = self.keys[self.last][0]
        restarts = self.number % RESTARTS == 0
        if restarts:
            self.server.kill()
            self.server.start()
            self.attach()
        if restarts or self.kind in ("replayed", "lost"):
            self.proxy.forget_answers()
            self.proxy.replay()
            until(lambda: self.proxy.has_answer(FENCED), f"{self.where()}: the replay is refused")
        elif self.kind in ("late", "race"):
            self.proxy.release()
            until(lambda: self.proxy.has_answer(FENCED) or self.server.value(key) == 1, f"{self.where()}: the end")
        self.attach()

    def check(self, pairs):
        """`pairs`: version by key, of everything that is in the database at the end."""
        self.attach()
        for number, keys in self.keys.items():
            for index, key in enumerate(keys):
                told = self.known.get(number, {}).get(index)
                if number in self.never:
                    assert key not in pairs, f"{self.where()}: number {number} was not known, and has run"
                elif told is not None:
                    assert told[0] == "COMMITTED" and pairs.get(key) == told[1], (
                        f"{self.where()}: number {number} index {index} is {told}, and the key has {pairs.get(key)}")
                else:
                    assert key not in pairs, f"{self.where()}: nobody was told that number {number} has run"


class AttachTest:
    def __init__(self, options, folder):
        self.seed = options.seed
        self.rng = random.Random(options.seed)
        self.folder = pathlib.Path(folder)
        self.server = Server(folder, "--session-lease-default", SESSION_LEASE)
        self.seen = {}

    def run(self, crashes):
        with self.server:
            done = []
            delayed = 0
            while delayed < crashes:
                crash = Crash(self, len(done) + 1)
                crash.run()
                done.append(crash)
                delayed += crash.kind in Crash.DELAYED
                if sys.stderr.isatty():
                    print(f"\r{delayed} of {crashes} crashes", end="", flush=True, file=sys.stderr)
            print(file=sys.stderr)
            self.server.client("put", GATE, "1")  # what waits goes on
            until(lambda: self.server.parked() == 0, "nothing waits")
            lines = self.server.client("--output", "json", "scan", "--prefix", "crash/").splitlines()
            pairs = {pair["key"]: pair["version"] for pair in map(json.loads, lines)}
            for crash in done:
                crash.check(pairs)
            return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, default=12, help="crashes whose last request is delayed in the proxy")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"attach_test.py --crashes {options.crashes} --seed {options.seed}", flush=True)
    folder = temporary_folder()
    try:
        test = AttachTest(options, folder.name)
        done = test.run(options.crashes)
    finally:
        folder.cleanup()
    for (kind, state), count in sorted(test.seen.items()):
        print(f"  {count:4} {kind}: the last request was {state}")
    requests, never = sum(len(crash.keys) for crash in done), sum(len(crash.never) for crash in done)
    print(f"{len(done)} crashes, {options.crashes} with the last request delayed in the proxy; {requests} requests, {never} not "
          "known: no answer was contradicted")


if __name__ == "__main__":
    main()
