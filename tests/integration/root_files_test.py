#!/usr/bin/env python3
"""What the root files and docs/compatibility.md say is what the sources say."""

import configparser
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def found(pattern, path):
    match = re.search(pattern, text(path), re.MULTILINE)
    assert match, f"{path}: nothing like {pattern}"
    return match[1]


class RootFiles(unittest.TestCase):
    def test_the_editors_have_the_widths_of_the_formatter(self):
        lines = text(".editorconfig").split("\n", 1)[1]
        sections = configparser.ConfigParser()
        sections.read_string(lines.replace("root = true", "[root]\nroot = true", 1))
        limit = found(r"^ColumnLimit: (\d+)$", ".clang-format")
        self.assertEqual(sections["*.{cpp,hpp,cu,cuh,proto}"]["max_line_length"], limit)
        self.assertEqual(sections["*"]["insert_final_newline"], "true")

    def test_all_sources_are_as_the_editors_are_told(self):
        for part in ("server", "client", "engine", "docs", "deploy", "proto"):
            for path in (ROOT / part).rglob("*"):
                if path.suffix not in (".cpp", ".hpp", ".sh", ".md", ".proto", ".cu", ".cuh") or "node_modules" in path.parts:
                    continue
                content = path.read_bytes()
                with self.subTest(path=path.relative_to(ROOT)):
                    self.assertTrue(content.endswith(b"\n"), "no line feed at the end")
                    self.assertNotIn(b"\r", content)
                    self.assertNotIn(b"\t", content)
                    self.assertFalse(re.search(rb"[ ]\n", content), "white space at the end of a line")

    def test_the_changelog_is_of_this_version(self):
        version = found(r"^project\(kilokv VERSION (\S+)", "CMakeLists.txt")
        changes = text("CHANGELOG.md")
        self.assertTrue(f"## [{version}]" in changes or f"This becomes {version}," in changes, version)
        headings = re.findall(r"^## \[(.*?)\]", changes, re.MULTILINE)
        self.assertEqual(headings[0], "Unreleased")
        allowed = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        self.assertLessEqual(set(re.findall(r"^### (.*)$", changes, re.MULTILINE)), allowed)

    def test_the_policy_has_the_numbers_of_the_sources(self):
        policy = " ".join(text("docs/compatibility.md").split())
        version = found(r"^project\(kilokv VERSION (\S+)", "CMakeLists.txt")
        package = found(r"^package (\S+);", "proto/kilokv/v1/kilokv.proto")
        number = found(r"kDatabaseFormat = (\d+);", "server/storage/stored_values.hpp")
        for words in (f"now: {version},", f"package `{package}`", f"The directory's format is {number}."):
            self.assertIn(words, policy)

    def test_the_security_page_is_true(self):
        page = " ".join(text("SECURITY.md").split())
        listen = found(r'listen = "(.*?):\d+";', "server/config.hpp")
        self.assertIn(f"listens on {listen} only", page)
        self.assertIn("Open a private report with the maintainers of the repository you got it from", page)
        self.assertNotRegex(page, r"\S@\S")  # no address is invented
        # What the page says about each setting, and what the setting is without a flag.
        settings = text("docs/configuration.md")
        for flag, words, default in (("--login", "**Logins are off by default.**", r"\[off\]"),
                                     ("--tls-cert", "**TLS is off by default.**", "empty: no TLS"),
                                     ("--insecure", "or with `--insecure on`", r"\[off\]"),
                                     ("--memory-limit", "`--memory-limit` bounds the memory of the whole process", "70%"),
                                     ("--shadow-rate", "With `--shadow-rate`, a batch", r"\[0\]")):
            self.assertIn(words, page)
            self.assertRegex(settings, rf"(?m)^  {flag} .*{default}")
        for flag in re.findall(r"`(--[a-z-]+)", page):
            self.assertRegex(settings + text("server/main.cpp"), rf"{flag}\b", "SECURITY.md names a flag that does not exist")

    def test_no_page_denies_what_there_is(self):
        """A sentence of the root pages that something is missing, although there is a setting for it."""
        built = {  # what there is -> words with which a page may speak of it
            "--login": "logins?|tokens?|users|roles|rights",
            "--tls-cert": "TLS|encryption of the connections?|certificates?",
            "--memory-limit": "(bound|limit) (on|of) the memory|memory (bound|limit)",
            "--core-dumps": "core dumps?",
            "--connections-max": "(bound|limit) (on|of) (the )?connections"}
        settings = text("docs/configuration.md")
        for name in ("SECURITY.md", "CHANGELOG.md", "README.md", "ARCHITECTURE.md", "docs/security.md"):
            for sentence in re.split(r"(?<=[.:!?])\s+|\n\s*\n|\n- ", text(name)):
                sentence = " ".join(sentence.split())
                for flag, words in built.items():
                    if not re.search(rf"(?m)^  {flag} ", settings):
                        continue
                    denied = (rf"\b(no|without any) (\w+ )?({words})\b.*\byet\b|\bnot yet\b.*\b({words})\b"
                              rf"|\b({words}) (is|are) (missing|not (there|implemented|supported))|\byet no ({words})\b")
                    self.assertNotRegex(sentence, f"(?i){denied}", f"{name}: there is {flag}")

    def test_all_pages_are_linked(self):
        linked = set(re.findall(r"\]\((\S+?)\)", text("README.md") + text("docs/configuration.md")))
        for page in ("CHANGELOG.md", "SECURITY.md", "docs/compatibility.md", "health.md", "docs/health.md"):
            self.assertIn(page, linked)


if __name__ == "__main__":
    unittest.main()
