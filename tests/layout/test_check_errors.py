#!/usr/bin/env python3
"""The check of the page of errors finds each planted mistake, and nothing in the tree as it is."""

import pathlib
import shutil
import tempfile
import unittest

from check_errors import MAP, PAGE, PROTO, ROOT, page, problems, reasons_of

FULL = "  // RESOURCE_EXHAUSTED: Too many scans keep a boundary for their next page.\n"
SOURCE = "server/core/clients/in_flight.hpp"


class ErrorsTest(unittest.TestCase):
    def changed(self, path, *edits, write=False):
        """What the check says of the tree with `old` replaced by `new` in one file. `write`: after the page was made again."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for part in (PROTO, PAGE, MAP, SOURCE):
                (root / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / part, root / part)
            text = (root / path).read_text(encoding="utf-8")
            for old, new in edits:
                self.assertIn(old, text)
                text = text.replace(old, new, 1)
            (root / path).write_text(text, encoding="utf-8")
            if write:
                (root / PAGE).write_text(page(reasons_of(root)), encoding="utf-8")
            return list(problems(root))

    def assert_found(self, pattern, path, *edits):
        found = self.changed(path, *edits, write=path == PROTO)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], pattern)

    def test_nothing_is_wrong(self):
        self.assertEqual(list(problems(ROOT)), [])

    def test_every_reason_has_a_section(self):
        text = (ROOT / PAGE).read_text(encoding="utf-8")
        reasons = reasons_of(ROOT)
        self.assertGreater(len(reasons), 30)
        for reason in reasons:
            self.assertIn(f"\n## {reason.name}\n", text)

    def test_a_part_that_is_missing(self):
        self.assert_found("SCANS_FULL: the comment does not say what it means", PROTO,
                          (FULL, "  // RESOURCE_EXHAUSTED:\n"))
        self.assert_found(r"SCANS_FULL: the comment does not say whether the request ran", PROTO,
                          ("  // Ran: nothing was read.\n", "  // Ran:\n"))
        self.assert_found(r"SCANS_FULL: the comment does not say what to do", PROTO,
                          ("  // Do: end scans that are not needed, and call again after the delay.\n", ""))

    def test_a_code_that_is_missing_or_unknown(self):
        self.assert_found("SCANS_FULL: the comment does not begin with the codes", PROTO,
                          (FULL, FULL.replace("RESOURCE_EXHAUSTED", "FULL")))

    def test_a_code_that_the_sources_contradict(self):
        self.assert_found(r"in_flight\.hpp:\d+: SNAPSHOT_TOO_OLD with RESOURCE_EXHAUSTED, and its comment names ABORTED",
                          SOURCE, ("{ErrorReason::calls_full,", "{ErrorReason::snapshot_too_old,"))

    def test_a_reason_that_the_server_can_send(self):
        self.assert_found(r"ERROR_REASON_NEW_ONE is missing, and the server can send it", MAP,
                          ("    case ErrorReason::queue_full:",
                           "    case ErrorReason::new_one: return v1::ERROR_REASON_NEW_ONE;\n    case ErrorReason::queue_full:"))
        self.assert_found(r"ERROR_REASON_SCANS_FULL: the server never sends it", MAP,
                          ("    case ErrorReason::scans_full: return v1::ERROR_REASON_SCANS_FULL;\n", ""))

    def test_a_reason_that_is_mapped_to_another(self):
        found = self.changed(MAP, ("return v1::ERROR_REASON_SCANS_FULL;", "return v1::ERROR_REASON_CALLS_FULL;"))
        self.assertIn(f"{MAP}: scans_full is mapped to ERROR_REASON_CALLS_FULL", found)

    def test_a_page_that_is_older(self):
        self.assert_found("docs/errors.md is not what the comments make", PAGE, ("## SCANS_FULL", "## SCANS FULL"))
        found = self.changed(PROTO, ("keep a boundary for", "keep boundaries for"))
        self.assertEqual(found, [f"{PAGE} is not what the comments make: run tests/layout/check_errors.py --write"])


if __name__ == "__main__":
    unittest.main()
