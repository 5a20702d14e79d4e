#!/usr/bin/env python3
"""The errors that say that a request never ran: the page, the client and the judge name the same codes.

The page is docs/transactions.md, section 15.1. The client is never_ran() in client/lib/src/error.cpp. The judge is
NEVER_RUN in history.py. The page and the client are read as text.
"""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from history import NEVER_RUN

ROOT = pathlib.Path(__file__).resolve().parents[2]


def codes_of_page():
    page = (ROOT / "docs" / "transactions.md").read_text(encoding="utf-8")
    section = re.search(r"^### 15\.1 .*?(?=^##)", page, re.MULTILINE | re.DOTALL).group()
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("|")]
    certain = [error for error, ran in rows if ran.strip() == "no"]
    return {code for error in certain if "`not_run`" not in error for code in re.findall(r"`([A-Z_]+)`", error)}


def codes_of_client():
    source = (ROOT / "client" / "lib" / "src" / "error.cpp").read_text(encoding="utf-8")
    body = re.search(r"^bool never_ran\(.*?^}", source, re.MULTILINE | re.DOTALL).group()
    cases = re.search(r"switch .*?return true;", body, re.DOTALL).group()
    return {code.upper() for code in re.findall(r"case ErrorCode::(\w+):", cases)}


class NeverRan(unittest.TestCase):
    def test_the_page_and_the_judge_name_the_same_codes(self):
        self.assertEqual(codes_of_page(), NEVER_RUN)

    def test_the_page_and_the_client_name_the_same_codes(self):
        self.assertEqual(codes_of_page(), codes_of_client())


if __name__ == "__main__":
    unittest.main()
