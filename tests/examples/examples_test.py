#!/usr/bin/env python3
"""Each program of client/examples, in several copies, against a server that is killed and started again meanwhile. Some
copies are killed, too. Then the database must be right: no seat is sold twice, each payment is applied once, and so on.

A full run is: examples_test.py --programs build/release/tests/bin --kills 50
"""

import argparse
import atexit
import base64
import collections
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

from customers import Crowd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from programs import ROOT, SLOWER, Server, temporary_folder, until  # noqa: E402

OPTIONS = argparse.ArgumentParser(description=__doc__)
OPTIONS.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "release" / "tests" / "bin",
                     help="folder of the programs in C++")
OPTIONS.add_argument("--language", default="cpp", choices=["cpp", "python", "node"])
OPTIONS.add_argument("--example", help="seats, payments, ...; default: all")
OPTIONS.add_argument("--kills", type=int, default=5, help="how often the server is killed in each test")
OPTIONS.add_argument("--seed", type=int, default=1)
CHOSEN = OPTIONS.parse_args([])

EXAMPLES, NODE_CLIENT = ROOT / "client" / "examples", ROOT / "client" / "node"


def node_program(example):
    """Copies the program into a folder where Node finds the package, as in a project of a user."""
    if not (NODE_CLIENT / "node_modules").is_dir():
        raise FileNotFoundError("the packages of the Node client are missing: npm ci --prefix client/node")
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "kilokv").symlink_to(NODE_CLIENT)
    return ["node", folder / "examples" / example / f"{example}.mjs"]


# The program of an example in each language. A program in Python has the interpreter and the packages of the test.
LANGUAGES = {
    "cpp": lambda example: [CHOSEN.programs / f"example_{example}"],
    "python": lambda example: [sys.executable, EXAMPLES / example / f"{example}.py"],
    "node": node_program,
}


class ExampleTest(unittest.TestCase):
    example = ""

    def setUp(self):
        self.server = self.enterContext(Server(self.enterContext(temporary_folder())))
        program = [str(part) for part in LANGUAGES[CHOSEN.language](self.example)]
        self.crowd = Crowd(self.server, [*program, "--endpoint", self.server.endpoint], CHOSEN.seed)
        self.addCleanup(lambda: [customer.kill() for customer in self.crowd.customers])

    def run_crowd(self):
        self.crowd.run(CHOSEN.kills)
        print(f"{self.example}: {self.crowd.summary()}", flush=True)

    def state(self, prefix):
        """The values below the prefix, by the rest of their keys: integers, or texts."""
        return {pair["key"].removeprefix(prefix): value_of(pair["value"]) for pair in self.server.pairs()
                if pair["key"].startswith(prefix)}


def value_of(value):
    return value if isinstance(value, int) else base64.b64decode(value["b64"]).decode()


def goods_of(words):
    """The goods that a text such as "tea 3 cup 2" names."""
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


class Seats(ExampleTest):
    example = "seats"

    def setUp(self):
        super().setUp()
        self.free = [f"s{i}" for i in range(4)]  # seats that customers want; few, so that they meet
        self.seats = 4

    def sold(self, seat):
        if seat in self.free:
            self.free.remove(seat)
            self.seats += 1
            self.free.append(f"s{self.seats}")

    def visit(self, customer):
        """Holds a seat, and then buys it in time, or too late, or gives it back, or forgets it."""
        seat, order = customer.random.choice(list(self.free)), customer.new_name()
        answer = customer.ask("hold", "hall", seat, order, 150 * SLOWER, customer.random.choice([0, 300]))
        if not answer.startswith("held"):
            return self.sold(seat) if answer.startswith("sold") else None
        do = customer.random.choice(["buy", "buy", "again", "late", "late", "release", "forget"])
        if do == "again":  # it finds its own hold, and does not wait for its end
            again = customer.ask("hold", "hall", seat, order, 150 * SLOWER, customer.random.choice([0, 300])).split()
            end = int(answer.split()[4])
            self.assertTrue(again[-1] == str(end) or int(again[2]) >= end, (seat, order, answer, again))
        if do == "late":
            time.sleep(0.16 * SLOWER)
        if do in ("buy", "late") and customer.ask("buy", "hall", seat, order).startswith("bought"):
            self.sold(seat)
        if do == "release":
            customer.ask("release", "hall", seat, order)
        return None

    def test_no_seat_is_sold_twice(self):
        self.crowd.begin(self.visit, "c", 4)
        self.run_crowd()
        state = self.state("seats/hall/")
        bought, ends, held = collections.defaultdict(set), {}, collections.defaultdict(list)
        for (_, _, seat, order), (said, _, at), _ in self.crowd.lines("buy"):
            if said == "bought":
                bought[seat].add(order)
                ends[seat, order] = int(at)
            else:
                self.assertNotEqual(state.get(f"{seat}/sold"), order)
        self.assertEqual({seat: {state[f"{seat}/sold"]} for seat in bought}, bought)
        self.assertEqual({key.split("/")[0] for key in state if key.endswith("/sold")}, set(bought))
        self.assertGreater(len(bought), CHOSEN.kills)
        for (_, _, seat, order), (said, _, at), sendings in self.crowd.lines("release"):
            if said == "released" or sendings > 1:  # an earlier sending may have released it, at a time that nobody knows
                ends[seat, order] = int(at) if sendings == 1 else 0
        for (_, _, seat, order, *_), answer, _ in self.crowd.lines("hold"):
            if answer[0] == "held" and not any(end == int(answer[4]) and holder == order for _, end, holder in held[seat]):
                held[seat].append((int(answer[2]), int(answer[4]), order))
        for (_, _, seat, order), (said, _, at), sendings in self.crowd.lines("buy"):
            end = max(end for _, end, holder in held[seat] if holder == order)
            if sendings == 1:
                self.assertEqual(said == "bought", int(at) < end, (seat, order, said, at, end))
        for seat, holds in held.items():
            holds.sort()
            for (_, end, order), (begin, _, after) in zip(holds, holds[1:]):
                self.assertLessEqual(min(end, ends.get((seat, order), end)), begin, (seat, order, after))

    def test_a_hold_ends_although_client_and_server_die(self):
        dead, other, third = (self.crowd.customer(name) for name in ("dead", "other", "third"))
        length_us = 3000000 * SLOWER
        held = dead.ask("hold", "hall", "s", "dead", length_us // 1000, 0, may_kill=False).split()
        dead.kill()
        self.server.kill()
        self.server.start()
        end = int(held[4])
        taken = other.ask("hold", "hall", "s", "early", 1000, 0, may_kill=False).split()
        self.assertEqual(taken[0], "taken" if int(taken[2]) < end else "held", taken)
        self.assertLess(int(taken[2]), end, "the machine is too slow for this test")
        late = third.ask("hold", "hall", "s", "late", 1000, 60000, may_kill=False).split()
        self.assertEqual(late[0], "held")
        self.assertGreaterEqual(int(late[2]), end)
        self.assertLess(int(late[2]), end + 2000000 * SLOWER)
        self.assertEqual(dead.ask("buy", "hall", "s", "dead", may_kill=False).split()[0], "not-held")
        print(f"held again {int(late[2]) - end} us after the end")


class Payments(ExampleTest):
    example = "payments"

    def pay(self, customer):
        payment = customer.new_name(), *customer.random.sample("abcd", 2), customer.random.randrange(1, 60)
        answer = customer.ask("pay", *payment)
        if answer.startswith("paid") and customer.random.random() < 0.3:
            self.assertEqual(customer.ask("pay", *payment), answer)  # sent again
        if answer.startswith("paid") and customer.random.random() < 0.1:
            self.assertTrue(customer.ask("pay", *payment[:3], payment[3] + 1).startswith("refused"))  # an ID twice

    def relay(self, customer, wait_ms=200):
        answer = customer.ask("deliver", wait_ms)
        if answer != "nothing":
            customer.ask("delivered", answer.split()[1])
        return answer

    def test_each_payment_is_applied_once(self):
        first = self.crowd.customer("first")
        for account in "abcd":
            first.ask("open", f"open-{account}", account, 100)
        self.crowd.begin(self.pay, "p", 3)
        self.crowd.begin(self.relay, "relay", 2)
        self.run_crowd()
        while self.relay(first, 0) != "nothing":
            pass
        state = self.state("pay/")
        payments = {key.removeprefix("payment/"): text.split() for key, text in state.items() if key.startswith("payment/")}
        balances = collections.Counter()
        for source, target, amount in payments.values():
            balances[source] -= int(amount)
            balances[target] += int(amount)
        accounts = {key.removeprefix("account/"): value for key, value in state.items() if key.startswith("account/")}
        self.assertEqual(accounts, dict(balances))
        self.assertEqual(sum(accounts.values()), 0)
        self.assertGreaterEqual(min(value for name, value in accounts.items() if name != "world"), 0)
        paid = {answer[1] for verb in ("pay", "open") for _, answer, _ in self.crowd.lines(verb) if answer[0] == "paid"}
        # A payment whose program was killed may have run after it was sent again and refused.
        unsure = {command[1] for command, _, sendings in self.crowd.lines("pay") if sendings > 1}
        self.assertLessEqual(paid, set(payments))
        self.assertLessEqual(set(payments), paid | unsure)
        refused = [answer for _, answer, _ in self.crowd.lines("pay") if answer[0] == "refused"]
        self.assertTrue(refused and len(paid) > 4 * CHOSEN.kills, (len(refused), len(paid)))
        messages = {answer[1]: answer[2:] for _, answer, _ in self.crowd.lines("deliver") if answer[0] == "deliver"}
        self.assertEqual(messages, payments)  # each at least once, and with its text
        self.assertEqual((state["undelivered"], [key for key in state if key.startswith("outbox/")]), (0, []))


class Limiter(ExampleTest):
    example = "limiter"
    limit, window_ms = 7, 400 * SLOWER

    def try_it(self, customer):
        customer.ask("allow", customer.random.choice(["ann", "bob"]), self.limit, self.window_ms)
        time.sleep(customer.random.uniform(0, 0.02))

    def test_no_window_has_more_than_its_limit(self):
        self.crowd.begin(self.try_it, "c", 4)
        self.run_crowd()
        allowed, full, unsure = collections.Counter(), set(), set()
        for customer in self.crowd.customers:
            last = None
            for command, answer, sendings in customer.lines:
                who, (said, _, at, *_) = command.split()[1], answer.split()
                window = int(at) // (self.window_ms * 1000)
                allowed[who, window] += said == "allowed"
                full |= {(who, window)} if said == "refused" else set()
                if sendings > 1:  # the first sendings may have been allowed, at some time after the last answer
                    unsure |= {(who, i) for i in range(window if last is None else last, window + 1)}
                last = window
        self.assertEqual(max(allowed.values()), self.limit)
        self.assertLessEqual(max(self.state("limit/").values(), default=0), self.limit)
        self.assertEqual({allowed[window] for window in full - unsure}, {self.limit})  # nobody was refused too early
        time.sleep(2 * self.window_ms / 1000 + 0.5 * SLOWER)
        self.assertEqual(self.state("limit/"), {})  # the counts of old windows are gone


class Inventory(ExampleTest):
    example = "inventory"
    items = ("tea", "cup", "pot")
    latest = None

    def deliver(self, customer):
        delivery = customer.new_name(), customer.random.choice(self.items), customer.random.randrange(1, 4)
        for _ in range(customer.random.choice([1, 1, 2])):
            customer.ask("deliver", *delivery)
        time.sleep(customer.random.uniform(0, 0.05))

    def order(self, customer):
        order, items = customer.new_name(), customer.random.sample(self.items, customer.random.randrange(1, 4))
        goods = [word for item in items for word in (item, customer.random.randrange(1, 6))]
        answer = customer.ask("reserve", order, customer.random.choice([0, 0, 300]), *goods).split()
        if answer[0] != "reserved":
            if customer.random.random() < 0.5:  # an earlier program of this customer may still wait for the goods
                self.assertEqual(customer.ask("cancel", order).split()[0], "cancelled")
            return
        self.assertEqual(goods_of(answer[1:]), goods_of(goods))
        do = customer.random.choice(["ship", "cancel", "keep"])
        self.latest = order
        for _ in range(customer.random.choice([1, 2]) if do != "keep" else 0):
            self.assertEqual(customer.ask(do, order).split()[1:], answer[1:])

    def meddle(self, customer):
        """Finishes the order that somebody else finishes."""
        if self.latest:
            customer.ask(customer.random.choice(["ship", "cancel"]), self.latest)

    def test_the_stock_is_what_the_orders_say(self):
        self.crowd.begin(self.order, "order", 4)
        self.crowd.begin(self.deliver, "delivery")
        self.crowd.begin(self.meddle, "other")
        self.run_crowd()
        state = self.state("stock/")
        sums = collections.defaultdict(collections.Counter)
        for key, value in state.items():
            kind, name = key.split("/")
            if kind == "order":
                said, *goods = value.split()
                sums[said].update(goods_of(goods))
            elif kind == "delivery":
                sums["delivered"].update(goods_of(value.split()))
            else:
                self.assertGreaterEqual(value, 0, key)
        for item in self.items:
            free, reserved, shipped = (state.get(f"{kind}/{item}", 0) for kind in ("free", "reserved", "shipped"))
            self.assertEqual((reserved, shipped), (sums["reserved"][item], sums["shipped"][item]))
            self.assertEqual(free + reserved + shipped, sums["delivered"][item])
        self.assertEqual({key.removeprefix("delivery/") for key in state if key.startswith("delivery/")},
                         {answer[1] for _, answer, _ in self.crowd.lines("deliver")})
        for (_, order), answer, _ in self.crowd.lines("ship") + self.crowd.lines("cancel"):
            self.assertEqual(state[f"order/{order}"].split(), answer)
        said = collections.Counter(answer[0] for _, answer, _ in self.crowd.lines("reserve"))
        self.assertGreater(min(said["reserved"], said["too-little"]), CHOSEN.kills)

    def test_what_a_dead_program_waits_for_can_be_cancelled(self):
        dead, other = (self.crowd.customer(name) for name in ("dead", "other"))
        dead.send("reserve order 60000 tea 5")
        until(lambda: self.server.parked() == 1, "the order waits")
        dead.kill()
        self.assertEqual(other.ask("cancel", "order", may_kill=False), "cancelled")
        other.ask("deliver", "delivery", "tea", 9, may_kill=False)
        self.assertEqual(other.ask("reserve", "order", 0, "tea", 5, may_kill=False), "cancelled")
        until(lambda: self.server.parked() == 0, "the order waits no more")
        self.assertEqual(self.server.value("stock/free/tea"), 9)


class Ids(ExampleTest):
    example = "ids"

    def take(self, customer):
        verb = customer.random.choice(["version", "block", "number"])
        if verb == "version":
            customer.ask("version", "a")
        elif verb == "block":
            customer.ask("block", "a", customer.random.randrange(1, 10))
        else:
            document = customer.random.choice([customer.new_name(), f"shared-{customer.random.randrange(1000)}"])
            for _ in range(customer.random.choice([1, 2])):
                customer.ask("number", "a", document)

    def test_no_number_comes_twice(self):
        self.crowd.begin(self.take, "c", 4)
        self.run_crowd()
        state = self.state("ids/a/")
        versions = [int(answer[1]) for _, answer, _ in self.crowd.lines("version")]
        self.assertEqual(len(set(versions)), len(versions))
        for customer in self.crowd.customers:
            own = [int(answer.split()[1]) for command, answer, _ in customer.lines if command.startswith("version")]
            self.assertEqual(own, sorted(own))
        blocks = sorted((int(answer[1]), int(answer[2]), int(command[2]))
                        for command, answer, _ in self.crowd.lines("block"))
        for first, last, count in blocks:
            self.assertEqual(last - first + 1, count)
        for before, after in zip([(0, 0, 0), *blocks], blocks):
            self.assertLess(before[1], after[0])
        self.assertLessEqual(blocks[-1][1], state["next"])
        numbers = {key.removeprefix("number/"): value for key, value in state.items() if key.startswith("number/")}
        self.assertEqual(sorted(numbers.values()), list(range(1, state["numbered"] + 1)))
        for (_, _, document), answer, _ in self.crowd.lines("number"):
            self.assertEqual(numbers[document], int(answer[1]))
        self.assertGreater(min(len(versions), len(blocks), len(numbers)), 3 * CHOSEN.kills)


class Jobs(ExampleTest):
    example = "jobs"
    lease_ms = 400 * SLOWER

    def submit(self, customer):
        job = customer.new_name(), customer.random.randrange(1, 1000)
        for _ in range(customer.random.choice([1, 1, 2])):
            customer.ask("submit", "q", *job)
        time.sleep(customer.random.uniform(0, 0.15))  # so slowly that workers wait, and then all want the same job

    def work(self, customer, wait_ms=300, is_good=False):
        answer = customer.ask("take", "q", self.lease_ms, wait_ms).split()
        if answer[0] == "nothing":
            return False
        do = "finish" if is_good else customer.random.choice(["finish", "finish", "finish", "late", "forget"])
        if do == "late":
            time.sleep(self.lease_ms / 1000 * customer.random.uniform(0.8, 1.6))
        if do == "forget":
            customer.kill()
            return True
        _, job, number, token, _, end = answer
        said, _, _, at = customer.ask("finish", "q", job, number, token).split()
        self.assertFalse(said == "lost" and int(at) < int(end), (job, token, at, end))
        if said == "finished" and customer.random.random() < 0.2:
            customer.ask("submit", "q", job, number)  # it was done, so nobody does it again
        return True

    def test_each_job_counts_once(self):
        self.crowd.begin(self.submit, "boss", 1)
        self.crowd.begin(self.work, "worker", 4)
        self.run_crowd()
        last = self.crowd.customer("last")
        while self.work(last, 2 * self.lease_ms, is_good=True):
            pass
        last.leave()
        state = self.state("jobs/q/")
        jobs = {command[2]: int(command[3]) for command, _, _ in self.crowd.lines("submit")}
        self.assertEqual({key.removeprefix("done/") for key in state if key.startswith("done/")}, set(jobs))
        self.assertEqual([key for key in state if key.startswith(("work/", "lease/"))], [])
        self.assertEqual((state["submitted"], state["sum"]), (len(jobs), sum(jobs.values())))
        taken = collections.Counter(answer[1] for _, answer, _ in self.crowd.lines("take") if answer[0] == "took")
        said = collections.Counter(answer[0] for _, answer, _ in self.crowd.lines("finish"))
        self.assertTrue(max(taken.values()) > 1 and said["finished"] > CHOSEN.kills, (taken, said))
        print(f"jobs taken {sum(taken.values())} times, finished {len(jobs)}; {said['lost']} were too late")


if __name__ == "__main__":
    CHOSEN, rest = OPTIONS.parse_known_args()
    if CHOSEN.example:
        rest = [CHOSEN.example.capitalize(), *rest]
    unittest.main(argv=[sys.argv[0], *rest])
