#!/usr/bin/env python3
"""The check of citations finds each planted one that leads nowhere, and lets through those that lead somewhere."""

import os
import tempfile
import unittest

from check_citations import violations

TREE = {
    "README.md": "# Read me\n\n[contract](docs/transactions.md#32-integer-compare)\n",
    "docs/transactions.md": "# T\n\n## 3. Guards\n\n### 3.2 Integer compare\n\nSee section 3.2 and sections 3 to 3.2.\n",
    "docs/papers.md": "# P\n\n## 1. Gaps\n\n| gap | is |\n| --- | --- |\n| 5 | open |\n\nPR-STM, section 9.9, says so.\n",
    "engine/stm/serial.hpp": "// docs/transactions.md, sections 3 to 3.2; docs/papers.md, gap 5.\n",
    "server/core/a.cpp": "int a = 0;  // engine/stm/serial and engine/stm/serial.hpp\n",
}


class CitationsTest(unittest.TestCase):
    def check(self, changed):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**TREE, **changed}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(violations(root))

    def assert_found(self, path, line, rule):
        self.assertEqual(self.check({path: line + "\n"}), [f"{path}:1: {rule}"])

    def test_nothing_is_found_in_a_tree_whose_citations_lead_somewhere(self):
        self.assertEqual(self.check({}), [])

    def test_pages(self):
        self.assert_found("engine/a.hpp", "// As docs/contract.md says.", "docs/contract.md is no page of this tree")
        self.assert_found("deploy/a.sh", "# docs/contract.md", "docs/contract.md is no page of this tree")

    def test_sections(self):
        for cited in ["section 4", "sections 4 and 3", "sections 3 to 4", "sections 3, 4"]:
            with self.subTest(cited=cited):
                self.assert_found("engine/a.hpp", f"// docs/transactions.md, {cited}.",
                                  "docs/transactions.md has no section 4")
        self.assert_found("docs/other.md", "As docs/transactions.md (section 3.3) says.",
                          "docs/transactions.md has no section 3.3")

    def test_a_page_that_a_link_names(self):
        for link in ["[transactions.md](transactions.md)", "[it](transactions.md#3-guards)", "`docs/transactions.md`"]:
            with self.subTest(link=link):
                self.assert_found("docs/other.md", f"As {link}, section 99.9, says.",
                                  "docs/transactions.md has no section 99.9")
                self.assertEqual(self.check({"docs/other.md": f"# O\n\n## 1. One\n\nAs {link}, section 3.2, says.\n"}), [])

    def test_lists_of_numbers(self):
        for numbers in ["3.2, 3 and 99", "3, 3.2, and 99", "99, 3 and 3.2", "3 to 99"]:
            with self.subTest(numbers=numbers):
                self.assert_found("engine/a.hpp", f"// docs/transactions.md, sections {numbers}",
                                  "docs/transactions.md has no section 99")
        self.assertEqual(self.check({"engine/a.hpp": "// docs/transactions.md, section 3, 24 bits of it\n"}), [])

    def test_wrapped_citations(self):
        rule = "docs/transactions.md has no section 99"
        for path, text in [("engine/a.hpp", "// One.\n// As docs/transactions.md, sections 3\n// and 99, say.\n"),
                           ("deploy/a.sh", "# One.\n# As docs/transactions.md,\n# section 99, says.\n"),
                           ("tests/a.py", '"""One.\nAs docs/transactions.md,\nsection 99, says.\n"""\n'),
                           ("tests/a.pml", "/* One.\n * As docs/transactions.md,\n * section 99, says. */\n"),
                           ("docs/other.md", "One.\nAs [it](transactions.md),\nsection 99, says.\n")]:
            with self.subTest(path=path):
                self.assertEqual(self.check({path: text}), [f"{path}:2: {rule}"])
        # Other texts than the next line of the same one.
        for path, text in [("engine/a.hpp", "// docs/transactions.md,\nint a;\n// section 99 of the paper\n"),
                           ("docs/other.md", "See [it](transactions.md),\n\nsection 99 of the paper.\n")]:
            self.assertEqual(self.check({path: text}), [])

    def test_comments_of_a_model(self):
        self.assert_found("tests/a.pml", "int a; /* as engine/stm/nothing.hpp */", "engine/stm/nothing.hpp is no file of this tree")
        self.assertEqual(self.check({"tests/a.pml": "/* One\n * two */\nint a; engine/stm/nothing\n"}), [])

    def test_names_in_the_page_of_papers(self):
        sources = {"tests/unit/engine/a_test.cpp": "TEST(gap_1_is_found) {}\n",
                   "engine/stm/a.hpp": "constexpr bool kRule = true;\n", "tests/a.pml": "#ifdef READ_FIRST\n"}
        for line, rule in [
                ("`a_test`: `gap_1_is_found`; `kRule`; `tests/a.pml`, `READ_FIRST`", None),
                ("`a_test`: `gap_1_is_found`, `other_is_found`", "tests/unit/engine/a_test.cpp has no test other_is_found"),
                ("`b_test`: `other_is_found`", "there is no b_test.cpp"), ("`kOther`", "no source has kOther"),
                ("`gap_2_is_found`", "no source has gap_2_is_found"), ("`READ_LAST`", "no source has READ_LAST"),
                ("as in gaps 5 and 7", "docs/papers.md has no gap 7")]:
            with self.subTest(line=line):
                page = TREE["docs/papers.md"] + f"\n{line}\n"
                self.assertEqual(self.check({"docs/papers.md": page, **sources}),
                                 [f"docs/papers.md:11: {rule}"] if rule else [])

    def test_sections_of_the_page_itself(self):
        page = TREE["docs/transactions.md"] + "As section 4.1 says.\n"
        self.assertEqual(self.check({"docs/transactions.md": page}),
                         ["docs/transactions.md:8: docs/transactions.md has no section 4.1"])

    def test_gaps(self):
        for cited in ["gap 6", "gaps 5 and 6", "gaps 6, 5"]:
            self.assert_found("engine/a.hpp", f"// docs/papers.md, {cited}", "docs/papers.md has no gap 6")

    def test_links(self):
        self.assert_found("docs/other.md", "[a](transactions.md#33-nothing)",
                          "docs/transactions.md has no heading #33-nothing")
        self.assert_found("docs/other.md", "[a](contract.htm)", "the link contract.htm leads nowhere")

    def test_files(self):
        self.assert_found("docs/other.md", "`engine/stm/papers/prstm.hpp`", "engine/stm/papers/prstm.hpp is no file of this tree")
        self.assert_found("server/a.hpp", "// engine/table/serial", "engine/table/serial is no file of this tree")
        self.assert_found("docs/other.md", "`cmake/Nothing.cmake`", "cmake/Nothing.cmake is no file of this tree")
        self.assert_found("docs/other.md", "`.ci/walk`", ".ci/walk is no file of this tree")

    def test_code_is_not_read_as_a_citation_of_a_file(self):
        self.assertEqual(self.check({"server/a.cpp": 'const char* a = "engine/a/b";\n'}), [])


if __name__ == "__main__":
    unittest.main()
