#!/usr/bin/env python3
"""The examples of the pages, as a reader pastes them: the commands of the README's five minutes against a fresh server,
with their exit codes and output, and the example of docs/history.md."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, Server, leaves_out, until  # noqa: E402

Command = collections.namedtuple("Command", "text output")
PROGRAMS = ["kilokvd", "kilokv", "kilokv-bank", "kilokv-bench"]
AUDIT = "kilokv-bank audit --expect 75.00"


def section(title):
    return re.search(rf"(?ms)^## {title}\n(.*?)^## ", (ROOT / "README.md").read_text())[1]


def blocks(text, language=""):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def is_complete(command):
    return subprocess.run(["bash", "-n", "-c", command], stderr=subprocess.DEVNULL, check=False).returncode == 0


def commands(block):
    """The `$ ` commands of a block, each with the lines that it prints."""
    found = []
    lines = iter(block.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            found[-1].output.append(line)
            continue
        text = line[2:]
        while not is_complete(text):
            text += "\n" + next(lines)
        found.append(Command(text, []))
    return found


def pattern(line, is_measured):
    """What a printed line has to match: all of it, but for what no two runs have in common."""
    text = re.sub("[0-9a-f]*…", ".*", re.escape(line))
    text = re.sub(r"\b[0-9a-f]{8}\b", "[0-9a-f]{8}", text)  # the begin of the id of a session
    text = re.sub(r'(boundary\\ |"batch":\\ )[\d,]+', r"\1[\\d,]+", text)
    if is_measured:
        text = re.sub(r"\d(?:[\d,]|\\\.\d)*(?:\\ (?:us|ms|s)\b)?", lambda _: r"[\d,.]+(?: (?:us|ms|s))?", text)
        text = re.sub(r"(?:\\-){4,}", "-+", text)
    return re.compile(re.sub(r"(?:\\ )+", r"\\s+", text))


class Shell:
    """A terminal of the reader, in which every command knows the ones before it."""

    MARK = "--- end of the command: "

    def __init__(self, folder, environment):
        self._process = subprocess.Popen(["bash"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        """The exit code, and the lines that were printed until then (also by jobs in the background)."""
        self._process.stdin.write(f"{command}\nlast=$?; echo '{self.MARK}'$last; (exit $last)\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.startswith(self.MARK):
                return int(line[len(self.MARK):]), lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended in {command}: {lines}")

    def end(self):
        self._process.kill()
        self._process.communicate()


class Tour(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kilokv-tour-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build" / "release").mkdir(parents=True)
        (self.folder / "build" / "release" / "bin").symlink_to(BIN)
        self.environment = {**os.environ, "KILOKV_LISTEN": "127.0.0.1:0"}
        self.environment.pop("KILOKV_ENDPOINT", None)

    def start_server(self, command, export):
        log = open(self.folder / "log", "wb")  # noqa: SIM115
        self.addCleanup(log.close)
        process = subprocess.Popen(["bash", "-c", f"{export}\nexec {command}"], cwd=self.folder, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        ready = until(lambda: re.search(r"kilokvd ready endpoint=(\S+)", (self.folder / "log").read_text()), "the server")
        self.environment["KILOKV_ENDPOINT"] = ready[1]

    def parked(self):
        return subprocess.run([str(BIN / "kilokv"), "parked", "list"], env=self.environment, capture_output=True,
                              text=True, check=True, timeout=60).stdout.count("\n") - 1

    def run_one(self, shell, command):
        """What the command prints; its exit code is checked."""
        is_refused = any("refused:" in line or "GUARD_FAILED\"" in line for line in command.output)
        code, lines = shell.run(command.text)
        self.assertEqual(code, 1 if is_refused else 0, f"{command.text}: {lines}")
        # The reader is slower than the server.
        if command.text.endswith("&"):
            until(lambda: self.parked() == 1, "the transaction waits")
        if command.text.startswith("kilokv-bank deposit"):
            lines += shell.run("wait")[1]
        return lines

    def check_lines(self, expected, lines, is_measured):
        """Every line is expected, in any order, as a job in the background prints when it likes. A measurement prints
        more than the page shows."""
        left = list(lines)
        for line in filter(None, expected):
            if is_measured and "GUARD_FAILED" in line and leaves_out("failed guards, which come after many transactions"):
                continue
            matching = [at for at, printed in enumerate(left) if pattern(line, is_measured).fullmatch(printed)]
            self.assertTrue(matching, f"not printed: {line}\nbut: {lines}")
            del left[matching[0]]
        if not is_measured:
            self.assertEqual(left, [], "printed, and not on the page")

    def test_the_five_minutes(self):
        tour = [commands(block) for block in blocks(section("Five minutes")) if block.startswith("$ ")]
        (export,), (server,), *rest = tour
        self.assertTrue(export.text.startswith("export PATH="), export.text)
        self.assertTrue(server.text.startswith("kilokvd "), server.text)
        self.start_server(server.text, export.text)
        shell = Shell(self.folder, self.environment)
        self.addCleanup(shell.end)
        self.assertEqual(shell.run(export.text), (0, []))
        for block in rest:
            lines, expected = [], []
            is_measured = block[0].text.startswith("kilokv-bench")
            for command in block:
                lines += self.run_one(shell, command)
                expected += command.output
            self.check_lines(expected, lines, is_measured)
        run = [command.text for block in rest for command in block]
        self.assertIn(AUDIT, run)
        self.assertTrue(run[-1].startswith("kilokv-bench"), run[-1])
        code, lines = shell.run(AUDIT)  # the accounts of the load tester are not the bank's
        self.assertEqual((code, lines[-1]), (0, "the books are right"), lines)
        self.assertTrue(any("100,000 accounts of the load tester with 1,000,000.00" in line for line in lines), lines)

    def test_it_builds_what_it_uses(self):
        text = section("Five minutes")
        self.assertIn("deploy/build.sh " + " ".join(PROGRAMS), text.replace("`", ""))
        used = set(re.findall(r"(?m)(?:^\$ |\| )(kilokv[\w-]*)", "".join(blocks(text))))
        self.assertEqual(used, set(PROGRAMS))

    def test_the_example_of_the_history_page(self):
        example = blocks((ROOT / "docs" / "history.md").read_text(), "sh")[0]
        with tempfile.TemporaryDirectory(prefix="kilokv-history-") as folder, Server(folder) as server:
            environment = {**self.environment, "KILOKV_ENDPOINT": server.endpoint, "PATH": f"{BIN}:{os.environ['PATH']}"}
            done = subprocess.run(["bash", "-e", "-c", example], env=environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            line = json.loads(done.stdout.splitlines()[-1])
            self.assertEqual(line["outcome"], "COMMITTED")
            self.assertEqual((server.value("alice"), server.value("bob")), (50, 50))

    def test_who_starts_a_server_in_the_background_waits_for_it(self):
        pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").glob("*.sh")]
        met = 0
        for page in pages:
            for client in re.findall(r"(?m)^(?:\$ )?kilokvd\b[^\n]* &\n(?:[^\n]*\n)*?(?=((?:\$ )?kilokv-?\w* [^\n]*))",
                                     page.read_text()):
                met += 1
                self.assertRegex(client, r" --wait(-for-server)?\b", page.name)
        self.assertGreater(met, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
