#!/usr/bin/env python3
"""Transactions with 10,000 `version` guards, which kilokv uploads in chunks, across a crash of the server: the judge
accepts what they were told."""

import json
import pathlib
import subprocess
import sys
import unittest

from programs import JUDGE, Server, add, temporary_folder, transaction_arguments

KEYS = 10_000
PUTS = 1_000  # of one transaction


class Client:
    """One run of `kilokv txn`: a line in, its history line out."""

    def __init__(self, server):
        self.lines = ['{"format": "kilokv-history-1", "config": {}, "initial": []}\n']
        self._process = subprocess.Popen(server.command("kilokv", *transaction_arguments(False)), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def send(self, transaction):
        self._process.stdin.write(json.dumps(transaction) + "\n")
        self._process.stdin.flush()
        self.lines.append(self._process.stdout.readline())
        return json.loads(self.lines[-1])

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(timeout=60)


def key(i):
    return f"k{i:05}"


class ReadSetTest(unittest.TestCase):
    def expect(self, client, versions, conflict=None):
        line = client.send({
            "guards": [{"is": "version", "key": key(i), "version": versions[i]} for i in range(KEYS)],
            "then": [add("sum", 1)], "else": [add("conflicts", 1)]})
        self.assertEqual(len(line["guards"]), KEYS)
        self.assertEqual(line["outcome"], "COMMITTED" if conflict is None else "GUARD_FAILED", line.get("error"))
        self.assertEqual(line.get("failed_guard"), conflict)
        return line

    def test_the_judge_accepts_large_read_sets(self):
        with temporary_folder() as folder, Server(folder) as server:
            client = Client(server)
            versions = []
            for begin in range(0, KEYS, PUTS):
                put = client.send({"then": [{"op": "put", "key": key(i), "value": i} for i in range(begin, begin + PUTS)]})
                versions += [put["version"]] * PUTS
            self.expect(client, versions)
            for changed in (0, KEYS // 2, KEYS - 1):
                write = client.send({"then": [add(key(changed), 1)]})
                self.expect(client, versions, conflict=changed)
                versions[changed] = write["version"]
            server.kill()
            server.start()
            before = self.expect(client, versions)
            self.assertGreater(before["version"], max(versions))
            versions[7] += 1
            self.expect(client, versions, conflict=7)
            self.assertEqual(client.end(), 1)
            self.assertEqual((server.value("sum"), server.value("conflicts")), (2, 4))
            self.judge(server, pathlib.Path(folder), client.lines)

    def judge(self, server, folder, lines):
        history, final = folder / "history", folder / "final"
        server.scan_to(final)
        history.write_text("".join(lines), encoding="utf-8")
        judged = subprocess.run([sys.executable, JUDGE, history, "--final-state", final], capture_output=True, text=True,
                                timeout=120, check=False)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        # What it would say of a wrong answer: a conflict that was none.
        line = json.loads(lines[-1])
        line["failed_guard"] = 8
        history.write_text("".join([*lines[:-1], json.dumps(line) + "\n"]), encoding="utf-8")
        judged = subprocess.run([sys.executable, JUDGE, history], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(judged.returncode, 1, judged.stdout + judged.stderr)


if __name__ == "__main__":
    unittest.main()
