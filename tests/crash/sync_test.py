#!/usr/bin/env python3
"""No answer leaves before its batch is synced, seen from outside: by strace, on the real server.

A client sends transactions one at a time. Between the arrival of each (its bytes are received) and its answer (the next
DATA frame that is sent on the same HTTP/2 stream) a sync of the write-ahead log must have begun and returned. The same
check must find every answer guilty when the sync is left out (KILOKV_FAIL_POINTS): or it would prove nothing.
"""

import pathlib
import re
import shutil
import unittest

from programs import Server, add, temporary_folder, until
from strace import calls

REQUESTS = 40
SYNCS = {"fdatasync", "fsync"}  # not sync_file_range: it promises nothing
TRACED = "fdatasync,fsync,recvmsg,sendmsg"
MARK = "sync-test-key-%04d"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Frames:
    """Cuts the bytes of one direction of a connection into HTTP/2 frames; gives (stream, payload) of DATA frames."""

    def __init__(self):
        self._bytes = b""

    def feed(self, data):
        self._bytes += data
        if self._bytes.startswith(PREFACE):
            self._bytes = self._bytes[len(PREFACE):]
        found = []
        while len(self._bytes) >= 9:
            length = int.from_bytes(self._bytes[:3], "big")
            if len(self._bytes) < 9 + length:
                break
            if self._bytes[3] == 0 and length > 0:  # DATA
                stream = int.from_bytes(self._bytes[5:9], "big") & 0x7FFFFFFF
                found.append((stream, self._bytes[9:9 + length]))
            self._bytes = self._bytes[9 + length:]
        return found


def answers(trace):
    """For each marked request: (mark, end of the receiving call, begin of the call that sends its answer)."""
    found, waiting, received, sent = [], {}, {}, {}
    for call in trace:
        if call.name == "recvmsg" and call.result > 0:
            for stream, payload in received.setdefault(call.file, Frames()).feed(call.data):
                for mark in re.findall(rb"sync-test-key-\d{4}", payload)[:1]:
                    waiting[call.file, stream] = (mark.decode(), call.end)
        elif call.name == "sendmsg" and call.result > 0:
            for stream, _ in sent.setdefault(call.file, Frames()).feed(call.data):
                if (call.file, stream) in waiting:
                    found.append((*waiting.pop((call.file, stream)), call.begin))
    return found


def guilty(trace):
    """Marks of the answers that were sent before a sync of the log that began after their request had arrived."""
    syncs = [(call.begin, call.end) for call in trace
             if call.name in SYNCS and call.result == 0 and re.search(r"/\d+\.log", call.file)]
    return [mark for mark, arrived, answered in answers(trace)
            if not any(arrived < begin and end < answered for begin, end in syncs)]


class SyncTest(unittest.TestCase):
    maxDiff = None

    def trace(self, fail_points):
        """System calls of a server, from its start to its end, that served REQUESTS transactions one after another."""
        self.assertIsNotNone(shutil.which("strace"), "strace is needed: deploy/install-deps.sh")
        with temporary_folder() as folder:
            path = pathlib.Path(folder) / "strace"
            tracer = ["strace", "-D", "-f", "-y", "-xx", "-s", "65536", "-e", f"trace={TRACED}", "-o", path]
            with Server(folder, tracer=tracer, environment={"KILOKV_FAIL_POINTS": fail_points}) as server:
                lines = server.transactions(*({"then": [add(MARK % i, i)]} for i in range(REQUESTS)), batch=False)
                self.assertEqual([line["outcome"] for line in lines], ["COMMITTED"] * REQUESTS)
                server.stop()
            until(lambda: re.search(rf"^{server.pid} +\+\+\+ ", path.read_text(), re.M), "strace wrote all")
            return calls(path)

    def test_no_answer_before_its_sync(self):
        trace = self.trace("")
        self.assertEqual(sorted(mark for mark, _, _ in answers(trace)), [MARK % i for i in range(REQUESTS)])
        self.assertEqual(guilty(trace), [])
        print(f"{REQUESTS} answers, each after a sync of the log that began after its request had arrived")

    def test_the_check_finds_a_missing_sync(self):
        trace = self.trace("storage.append.skip_sync=always")
        self.assertEqual(sorted(guilty(trace)), [MARK % i for i in range(REQUESTS)])
        print(f"with the sync left out: {REQUESTS} of {REQUESTS} answers are found guilty")


if __name__ == "__main__":
    unittest.main()
