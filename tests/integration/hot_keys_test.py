#!/usr/bin/env python3
"""The list of hot keys under loads with skewed keys: it has the keys that the history of the load tester used most."""

import collections
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from programs import BIN, Server, temporary_folder  # noqa: E402

TRUE_KEYS, LISTED_KEYS = 10, 20


def key_id(key):
    """The key of a history line or of `kilokv hot`: a string, or {"b64": ...}."""
    return key if isinstance(key, str) else key["b64"]


def most_used(history, use):
    """The keys that committed transactions used most, by their number of uses."""
    counts = collections.Counter()
    with open(history, encoding="utf-8") as lines:
        next(lines)  # the settings and the initial pairs
        for line in lines:
            transaction = json.loads(line)
            if transaction.get("outcome") != "COMMITTED":
                continue
            counts.update(key_id(operation["key"]) for operation in transaction["then"]
                          if "key" in operation and (operation["op"] == "get") == (use == "read"))
    return counts


class HotKeys(unittest.TestCase):
    def check(self, use, *load):
        with temporary_folder() as folder, Server(folder) as server:
            history = server.folder / "history.jsonl"
            done = subprocess.run([str(part) for part in (
                BIN / "kilokv-bench", "run", *load, "--keys", "20000", "--warmup", "0s", "--duration", "1500ms", "--batch-size",
                "256", "--in-flight", "4", "--history", history, "--endpoint", server.endpoint)],
                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            listed = [json.loads(line) for line in
                      server.client("--output", "json", "hot", "--by", use, "--limit", LISTED_KEYS).splitlines()]
            counts = most_used(history, use)
        self.assertEqual(len(listed), LISTED_KEYS)
        self.assertGreater(counts.total(), 5000)
        true_keys = [key for key, _ in counts.most_common(TRUE_KEYS)]
        print(f"{' '.join(load)}: {counts.total():,} uses of {len(counts):,} keys; the {TRUE_KEYS} most used have "
              f"{[counts[key] for key in true_keys]}; one of {listed[0]['sampled_one_in']} transactions was counted")
        self.assertLessEqual(set(true_keys), {key_id(line["key"]) for line in listed})

    def test_writes(self):
        self.check("write", "--workload", "bank", "--distribution", "zipf:0.99")

    def test_reads(self):
        self.check("read", "--workload", "ycsb-b", "--distribution", "zipf:0.99")


if __name__ == "__main__":
    unittest.main()
