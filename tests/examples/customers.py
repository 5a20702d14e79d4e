"""Runs several copies of an example program, each in a thread of the test, and kills some of them.

A Customer keeps one program running, and gives it commands, one after the other. If its program is killed, the customer
starts another one and sends the same command again. That is what a real client does, too.
"""

import contextlib
import pathlib
import random
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from programs import SLOWER  # noqa: E402

KILLED = 0.03  # the share of commands in which the program is killed
ANSWERS = 5  # how many each customer has between two kills of the server, on average and at least


class Customer:
    """`lines` has (command, answer, sendings) of each command that was answered."""

    def __init__(self, command, name, seed):
        self.name, self.random = name, random.Random(f"{seed}/{name}")
        self.lines, self.kills = [], 0
        self._command, self._process, self._numbers = command, None, 0

    def new_name(self):
        """A name that nobody else uses."""
        self._numbers += 1
        return f"{self.name}-{self._numbers}"

    def ask(self, *words, may_kill=True):
        """Gives the program a command, and returns its answer."""
        command = " ".join(map(str, words))
        for sendings in range(1, 20):
            self.send(command)
            if may_kill and self.random.random() < KILLED:
                time.sleep(self.random.choice([0, 0.0005, 0.002, 0.01]))
                self.kill()
                continue
            answer = self._process.stdout.readline().rstrip("\n")
            if not answer:
                raise AssertionError(f"{self.name}: the program ended in {command}: exit {self._process.wait()}")
            if answer.startswith("error"):
                raise AssertionError(f"{self.name}: {command}: {answer}")
            self.lines.append((command, answer, sendings))
            return answer
        raise AssertionError(f"{self.name}: {command}: killed too often")

    def send(self, command):
        """Gives the program a command, and does not wait for its answer."""
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def kill(self):
        if self._process is not None:
            self.kills += 1
            self._process.kill()
            self._end()

    def leave(self):
        if self._process is not None:
            self._process.stdin.close()  # the program ends when it has no more commands
            self._process.wait(timeout=30 * SLOWER)
            self._end()

    def _end(self):
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # of a command that the program has not read
            self._process.stdin.close()
        self._process.stdout.close()
        self._process = None


class Crowd:
    """Customers that work at the same time, until the server was killed `kills` times."""

    def __init__(self, server, command, seed):
        self.server, self.customers = server, []
        self._command, self._seed, self._threads = command, seed, []
        self._stop, self._failures = threading.Event(), []

    def customer(self, name):
        customer = Customer(self._command, name, self._seed)
        self.customers.append(customer)
        return customer

    def begin(self, work, name, count=1):
        """Starts customers that do work(customer) again and again."""
        for i in range(count):
            self._threads.append(threading.Thread(target=self._repeat, args=(work, self.customer(f"{name}{i}"))))

    def _repeat(self, work, customer):
        try:
            while not self._stop.is_set():
                work(customer)
        except Exception:  # pylint: disable=broad-except  # told by run()
            self._failures.append(traceback.format_exc())
            self._stop.set()
            customer.kill()

    def run(self, kills):
        rng = random.Random(self._seed)
        for thread in self._threads:
            thread.start()
        try:
            for _ in range(kills):
                self._stop.wait(rng.uniform(0.4, 1.2) * SLOWER)
                self._wait_for_answers()
                self.server.kill()
                self.server.start()
            self._stop.wait(0.5 * SLOWER)
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(timeout=60 * SLOWER)
        if self._failures:
            raise AssertionError("\n".join(self._failures))
        assert not any(thread.is_alive() for thread in self._threads), "a customer hangs"
        for customer in self.customers:
            customer.leave()

    def _wait_for_answers(self):
        """A busy machine may need seconds until a program runs at all. A kill before that would test nothing."""
        wanted = self.server.starts * ANSWERS * len(self.customers)
        end = time.monotonic() + 30 * SLOWER
        while sum(len(customer.lines) for customer in self.customers) < wanted and time.monotonic() < end:
            if self._stop.wait(0.01):
                return

    def lines(self, verb):
        """(words of the command, words of the answer, sendings) of all commands with this verb."""
        return [(command.split(), answer.split(), sendings) for customer in self.customers
                for command, answer, sendings in customer.lines if command.startswith(verb + " ")]

    def summary(self):
        commands = sum(len(customer.lines) for customer in self.customers)
        kills = sum(customer.kills for customer in self.customers)
        return (f"{commands} commands of {len(self.customers)} customers; {kills} times a "
                f"program was killed, and {self.server.starts - 1} times the server")

