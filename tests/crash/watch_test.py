#!/usr/bin/env python3
"""A watch while the server is killed with SIGKILL and started again: no write is missing, none comes twice, and what it
gave is what the log holds. Keys expire meanwhile. A full run is: watch_test.py --kills 50"""

import argparse
import random
import subprocess
import sys
import time
import unittest

from programs import SLOWER, Server, add, history, temporary_folder, until
from watched import all_expire, equal_to_the_log, judge, lines_of, nothing_left_to_expire, watch

OPTIONS = argparse.ArgumentParser(description=__doc__)
OPTIONS.add_argument("--kills", type=int, default=6)
OPTIONS.add_argument("--seed", type=int, default=1)
KILLS = None


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(temporary_folder())
        self.server = self.enterContext(Server(self.folder))

    def watch(self, name, *flags):
        """Starts a watch, whose writes go to a file."""
        return self.enterContext(watch(self.server, name, *flags))

    def versions(self):
        return self.server.status()["next_version"] - 1

    def test_kills(self):
        """The load writes and deletes, and many of its keys expire."""
        rng = random.Random(KILLS.seed)
        live = self.watch("live", "--after", "0")
        sent, answered = 0, []
        for _ in range(KILLS.kills):
            transactions = []
            for _ in range(rng.randrange(20, 200)):
                sent += 1
                key = f"k{rng.randrange(50)}"
                transactions.append(rng.choice([
                    {"then": [add(key, 1), add("count", 1)]},
                    {"then": [{"op": "put", "key": key, "value": sent, "ttl_us": rng.randrange(1, 300000)}, add("count", 1)]},
                    {"then": [{"op": "delete", "key": key}, add("count", 1)]},
                    {"then": [{"op": "put", "key": f"{key}/{i}", "value": {"b64": "YWJj"}} for i in range(rng.randrange(1, 40))]
                     + [{"op": "delete_range", "from": "k1", "to": "k2", "limit": 9}, add("count", 1)]}]))
            load = self.server.start_transactions(*transactions, wait=True)
            time.sleep(rng.uniform(0, 0.3))
            self.server.kill()
            self.server.start()
            answered += history(load)
        until(lambda: self.server.value("count") == sent, "all of the load")
        all_expire(self.server)
        logged = equal_to_the_log(self.server, *live)
        nothing_left_to_expire(logged)
        state = {}
        for write in logged:
            state[write["key"]] = write
        live_pairs = {key: write["version"] for key, write in state.items() if write["value"] is not None}
        scanned = {pair["key"]: pair["version"] for pair in self.server.pairs()}
        self.assertEqual(live_pairs, scanned)
        expired = [write for write in logged if write.get("expired")]
        self.check_expiries(logged)
        judge(self.server, answered, expired, "watch-history-refused.jsonl")
        self.assertGreater(len(expired), KILLS.kills)
        print(f"{len(logged)} writes over {KILLS.kills} kills, {len(expired)} of them expiries")

    def check_expiries(self, logged):
        """An expired key had an expiry, which had come. An expiry that a later write cleared or moved deletes nothing."""
        expiries = {}
        for write in logged:
            if write.get("expired"):
                self.assertIsNone(write["value"])
                self.assertIsNotNone(expiries.get(write["key"]), write)
                self.assertLessEqual(expiries[write["key"]], write["batch_time_us"])
            expiries[write["key"]] = write.get("expires_at_us")

    def test_a_scan_and_then_a_watch_miss_nothing(self):
        self.server.transactions(*[{"then": [add(f"a{i}", 1)]} for i in range(20)])
        self.server.transactions({"then": [add("b", 1)]})
        boundary = self.versions()
        self.server.transactions({"then": [add("a7", 1), {"op": "delete", "key": "a8"}]}, {"then": [add("b", 1)]})
        process, path = self.watch("part", "--prefix", "a", "--after", str(boundary), "--through", str(self.versions()))
        self.assertEqual(process.wait(timeout=30 * SLOWER), 0)
        self.assertEqual([(write["key"], write["value"]) for write in lines_of(path)], [("a7", 2), ("a8", None)])

    def test_new_writes_come_at_once(self):
        process, path = self.watch("new", "--limit", "1")
        until(lambda: process.poll() is not None or self.server.transactions({"then": [add("x", 1)]}) and process.poll() is not None,
              "the watch has begun and sees a write")
        begin = time.monotonic()
        process, path = self.watch("next", "--limit", "1", "--after", str(self.versions()))
        time.sleep(0.5 * SLOWER)
        sent = time.monotonic()
        self.server.transactions({"then": [add("y", 1)]})
        process.wait(timeout=30 * SLOWER)
        self.assertEqual(lines_of(path)[0]["key"], "y")
        print(f"seen {(time.monotonic() - sent) * 1000:.0f} ms after it was sent; the watch took {time.monotonic() - begin:.1f} s")

    def test_what_the_log_does_not_keep_is_refused(self):
        self.server.stop()
        folder = self.enterContext(temporary_folder())
        with Server(folder, "--history-bytes-max", "0", "--history-retention", "0s",
                    "--checkpoint-interval", "100ms", "--checkpoint-log-bytes", "64KiB") as server:
            value = {"b64": "YWJj" * 5000}
            for i in range(60):
                server.transactions({"then": [{"op": "put", "key": f"k{i}", "value": value}]})
            until(lambda: server.status()["first_log_batch"] > 1, "the log is trimmed")
            run = subprocess.run(server.command("kilokv", "watch", "--after", "0"), capture_output=True, text=True,
                                   timeout=60, check=False)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("not kept any more", run.stderr)
            self.assertIn("WATCH_TOO_OLD", run.stderr)


if __name__ == "__main__":
    KILLS, rest = OPTIONS.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
