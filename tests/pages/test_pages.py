#!/usr/bin/env python3
"""The test of the pages finds each planted mistake of a page, and lets through a page whose commands do what it says. And
what the pages of this tree have to say about servers in the background."""

import re
import unittest
from unittest import mock

import page
import reader
import run_pages
import usage

# A page with everything that a page may have.
PAGE = """# A page

```
$ export PATH=$PWD/build/release/bin:$PATH
```

```
$ kilokvd --data-dir data
2026-11-20T12:46:34.604438Z info kilokvd ready
```

```
$ kilokv put stock:ticket 100
version 1
$ kilokv add stock:ticket -3
97
```

<!-- commands: left out: it takes a day -->
```sh
sleep 86400
```

<!-- commands: new folder -->
<!-- commands: server -->
<!-- commands: first: kilokv-bank open alice --balance 5.00 -->
<!-- commands: instead: --wait 3h => --wait 1ms -->
<!-- commands: then: kilokv get one && test -e data.json -->
```sh
kilokv put one 1     # version 2
kilokv-bank withdraw alice 6.00   # refused: alice has 5.00, 6.00 needed
kilokv-bank withdraw alice 6.00 --wait 3h  # exit code 1, as she stays poor
kilokv txn <<'END' >data.json
{"then": [{"op": "add", "key": "one", "delta": 1}]}
END
curl -s http://127.0.0.1:7071/readyz
```

```text
version 2
refused: alice has 5.00, 6.00 needed
refused: alice still had 5.00 when the time was up, 6.00 needed
ready
```

Usage: `kilokv get one`, `kilokv-bank withdraw alice 1.00 --wait 3s`, and:

```
kilokv export [FILE] [--format jsonl|csv] [--prefix KEY | --from KEY --to KEY]
              [--quiet]
```
"""


def run(text):
    """The reader of this page, or the mistake that it finds."""
    reading = reader.Reader()
    try:
        reading.run(text)
    except (page.PageError, reader.Difference) as error:
        return str(error)
    return reading


class Planted(unittest.TestCase):
    def planted(self, old, new):
        self.assertEqual(PAGE.count(old), 1, old)
        return PAGE.replace(old, new)

    def test_a_page_without_a_mistake(self):
        reading = run(PAGE)
        self.assertNotIsInstance(reading, str, reading)
        self.assertEqual((reading.ran, reading.changed), (4, 1))
        self.assertEqual([reason for _, reason in reading.left_out], ["it takes a day"])
        self.assertEqual(list(usage.problems(PAGE)), [])

    def test_mistakes_of_commands(self):
        for old, new, problem in [
                ("kilokv put stock", "kilokv set stock", "line 12: kilokv set stock:ticket 100\nexit code 2"),
                ("kilokv put stock", "kilokv put --quick stock", "exit code 2, and not 0"),
                ("$ kilokvd --data-dir data", "$ kilokvd --data-folder data", "kilokvd ended with"),
                ("version 1\n", "version 2\n", "not printed: version 2"),
                ("97\n", "", "printed, and not on the page: ['97']"),
                ("# version 2", "# version 4", "not printed: version 4"),
                ("# refused: alice has", "# refused: bob has", "not printed: refused: bob has"),
                ("  # refused: alice has 5.00, 6.00 needed", "", "exit code 1, and not 0"),
                ("# exit code 1", "# exit code 2", "exit code 1, and not 2"),
                ("/readyz", "/ready", "not printed: ready"),
                ("END\ncurl", "curl", "does not end"),
                ("get one && test -e", "get one && test ! -e", "exit code 1"),
                ("first: kilokv-bank open", "first: kilokv-bank close", "exit code 2"),
                ("curl -s", "kilokvd --data-dir other &\nwait $!; curl -s", "kilokvd cannot start")]:
            with self.subTest(planted=new):
                found = run(self.planted(old, new))
                self.assertIsInstance(found, str)
                self.assertIn(problem, found)

    def test_mistakes_of_directives(self):
        for old, new, problem in [
                ("left out: it takes a day", "left out:", "none of the directives"),
                ("left out: it takes", "skipped: it takes", "none of the directives"),
                ("--wait 3h =>", "--wait 4h =>", "nothing"),
                ("--wait 3h => --wait 1ms", "--wait 3h", "no =>"),
                ("-->\n```sh\nsleep 86400", "-->\n\n```sh\nsleep 86400", "no block follows"),
                ("Usage:", "<!-- commands: server -->\n```json\n{}\n```\n\nUsage:", "the block has no commands"),
                ("[--quiet]\n```", "[--quiet]\n", "the block does not end")]:
            with self.subTest(planted=new):
                found = run(self.planted(old, new))
                self.assertIsInstance(found, str)
                self.assertIn(problem.replace("nothing", 'there is no "--wait 4h" to replace'), found)

    def test_a_block_that_hides_its_commands_is_run(self):
        for language in ("text", ""):
            found = run(f"```{language}\nkilokv put\n```\n")
            self.assertIsInstance(found, str, language)

    def test_a_command_has_a_time(self):
        with mock.patch.object(reader, "COMMAND_SECONDS", 0.2):
            self.assertIn("the shell ended in sleep 60", run("```sh\nsleep 60\n```\n"))

    def test_mistakes_of_names(self):
        for old, new, problem in [
                ("`kilokv get one`", "`kilokv fetch one`", "kilokv has no command fetch"),
                ("1.00 --wait", "1.00 --until", "kilokv-bank withdraw has no flag --until"),
                ("--from KEY --to", "--begin KEY --to", "kilokv export has no flag --begin"),
                ("              [--quiet]", "              [--silent]", "kilokv export has no flag --silent"),
                ("sleep 86400", "sudo kilokvd --data-folder x", "kilokvd has no flag --data-folder"),
                ("sleep 86400", "deploy/test.sh --quickly", "deploy/test.sh has no flag --quickly"),
                ("sleep 86400", "deploy/tests.sh", "there is no deploy/tests.sh")]:
            with self.subTest(planted=new):
                found = list(usage.problems(self.planted(old, new)))
                self.assertEqual(len(found), 1, found)
                self.assertIn(problem, found[0])

    def test_a_page_that_is_not_there(self):
        with mock.patch("sys.argv", ["run_pages.py", "--others", "README.md", "docs/" + "tour.md"]), mock.patch("builtins.print"):
            self.assertEqual(run_pages.main(), 1)


class Tree(unittest.TestCase):
    """What must hold for the pages of this tree."""

    def test_the_readme_builds_what_it_uses(self):
        text = re.search(r"(?ms)^## Five minutes\n(.*?)^## ", (page.ROOT / "README.md").read_text())[1]
        built = re.search(r"deploy/build\.sh((?: kilokv[\w-]*)+)", text)[1].split()
        commands = "".join(block.text for block in page.blocks_of(text))
        self.assertEqual(set(re.findall(r"(?m)(?:^\$ |\| )(kilokv[\w-]*)", commands)), set(built))

    def test_who_starts_a_server_in_the_background_waits_for_it(self):
        met = 0
        for path in [*page.all_pages(), *(page.ROOT / "deploy").glob("*.sh")]:
            for client in re.findall(r"(?m)^(?:\$ )?kilokvd\b[^\n]* &\n(?:[^\n]*\n)*?(?=((?:\$ )?kilokv-?\w* [^\n]*))",
                                     path.read_text()):
                met += 1
                self.assertRegex(client, r" --wait(-for-server)?\b", path.name)
        self.assertGreater(met, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
