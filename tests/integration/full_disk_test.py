#!/usr/bin/env python3
"""A disk without room for more: the error of the real programs shows a sum that is more than the free space."""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import Server, temporary_folder  # noqa: E402

SHOWN = re.compile(r"""disk\ is\ (\d+)\ bytes\ needed\ =\ (\d+)\ kept\ free\ \+\ (\d+)\ in\ memory\ buffers
    \ \+\ 2\ x\ (\d+)\ of\ stored\ results
    \ \+\ 3\ x\ \((\d+)\ just\ written\ \+\ (\d+)\ for\ requests\ accepted\ before\ \+\ (\d+)\ for\ this\ one\);
    \ the\ limit\ is\ (\d+)\ bytes\ free\ \((raise|lower)\ (--[a-z-]+)\)""", re.VERBOSE)


class FullDisk(unittest.TestCase):
    def refusal(self, server):
        done = subprocess.run(server.command("kilokv", "--timeout", "1s", "put", "key", "1"), capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=60)
        return done.returncode, done.stderr

    def test_the_message_adds_up_and_says_what_to_turn(self):
        with temporary_folder() as folder:
            # More than there is, by about as much as the file system has: nothing is ever admitted.
            reserve = 2 * shutil.disk_usage(folder).total
            with Server(folder, "--disk-reserve", str(reserve)) as server:
                code, errors = self.refusal(server)
                self.assertEqual(code, 4, errors)
                shown = SHOWN.search(errors)
                self.assertTrue(shown, errors)
                total, kept, buffers, stored, written, before, wanted, free = (int(shown[i]) for i in range(1, 9))
                self.assertEqual(total, kept + buffers + 2 * stored + 3 * (written + before + wanted))
                self.assertGreater(total, free)
                self.assertEqual((kept, shown[9], shown[10]), (reserve, "lower", "--disk-reserve"))
                self.assertLessEqual(free, shutil.disk_usage(folder).total)
                self.assertGreater(wanted, 0)
                self.assertEqual(server.stop(), 0)
            with Server(folder, "--disk-reserve", "0") as server:  # turned that way, it works
                self.assertEqual(self.refusal(server)[0], 0)


if __name__ == "__main__":
    unittest.main()
