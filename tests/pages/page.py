"""Reads the commands of a page: its blocks, what the page shows as output, and how the test has to run them.

A block has commands if its language is sh, console or bash, or if a line of it is a prompt (`$ `) or begins with a program
that readers run. An HTML comment before a block, which no reader sees, says how a test runs it:

  <!-- commands: left out: REASON -->   the block is not run
  <!-- commands: new folder -->         a new folder, a new shell, and no server; as at the begin of each page
  <!-- commands: server FLAGS -->       the block needs a server, which the page does not start in a command: the test does
  <!-- commands: first: COMMAND -->     what the text says to do before; `Ctrl-C` stops a server of another terminal
  <!-- commands: instead: OLD => NEW --> a part of the block that the test replaces, such as a long time
  <!-- commands: then: COMMAND -->      what must hold after the block
  <!-- commands: file NAME -->          the block is the text of a file, which later commands need

Several comments may follow each other.
"""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHELLS = ("sh", "console", "bash")
NO_SHELL = ("", "text")  # in a block of these languages, commands are found by their first word
PROGRAMS = ("kilokvd", "kilokv", "kilokv-bank", "kilokv-bench", "kilokv-engine-bench")
STARTS = re.compile(rf"(?:sudo )?(?:{'|'.join(PROGRAMS)}|(?:\./)?deploy/\S+\.sh|tests/\S+\.(?:py|sh)|apt|apt-get|bash|"
                    r"cd|cmake|cp|curl|deluser|docker|export|git|install|kill|mkdir|mv|ninja|openssl|prometheus|promtool|"
                    r"python3|rm|sed|sh|systemctl|tar|useradd|(?:[A-Z_]+=\S* )+\S+)(?: |$)")
SYNOPSIS = re.compile(r" \[[A-Z-]")  # such as kilokv help [COMMAND]
KINDS = ("left out", "new folder", "server", "first", "instead", "then", "file")
NEED_TEXT = ("left out", "first", "instead", "then", "file")
DIRECTIVE = re.compile(rf"<!-- commands: ({'|'.join(KINDS)})(?:: | ?)(.*?) ?-->")


class PageError(Exception):
    """The page says something that cannot be tested."""


@dataclasses.dataclass
class Directive:
    kind: str
    text: str


@dataclasses.dataclass
class Command:
    text: str
    output: list = dataclasses.field(default_factory=list)  # lines of a console block
    says: str = ""  # a comment after the command

    @property
    def first_word(self):
        return re.sub(r"^(?:[A-Z_]+=\S* )*", "", self.text).split(maxsplit=1)[0]


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    directives: list
    shown: list = None  # lines of a block of output right after this one

    def all(self, kind):
        return [directive.text for directive in self.directives if directive.kind == kind]

    @property
    def left_out(self):
        return next(iter(self.all("left out")), None)

    @property
    def is_console(self):
        return bool(re.search(r"(?m)^\$ ", self.text))

    @property
    def has_commands(self):
        if self.language in SHELLS or self.is_console:
            return True
        return self.language in NO_SHELL and not self.is_synopsis and any(map(STARTS.match, self.text.splitlines()))

    @property
    def is_synopsis(self):
        return self.language in NO_SHELL and bool(SYNOPSIS.search(self.text.partition("\n")[0]))

    @property
    def is_measured(self):
        """Whether it shows measurements, of which no two runs have the same numbers."""
        return self.is_console and self.text.startswith("$ kilokv-bench")

    def commands(self):
        text = self.text
        for replaced in self.all("instead"):
            old, _, new = replaced.partition(" => ")
            if old not in text:
                raise PageError(f"line {self.line}: there is no \"{old}\" to replace")
            text = text.replace(old, new)
        return console_commands(text) if self.is_console else shell_commands(text)


def directives_before(lines, at):
    """Those that end right before the line with this index."""
    found = []
    at -= 1
    while at >= 0 and lines[at].startswith("<!-- commands:"):
        match = DIRECTIVE.fullmatch(lines[at])
        if not match or (match[1] in NEED_TEXT and not match[2]):
            raise PageError(f"line {at + 1}: {lines[at]} is none of the directives, or lacks its text")
        if match[1] == "instead" and " => " not in match[2]:
            raise PageError(f"line {at + 1}: no => in {lines[at]}")
        found.insert(0, Directive(match[1], match[2]))
        at -= 1
    return found, at + 1


def blocks_of(text):
    """The blocks of a page. A directive that no block follows is an error."""
    lines, blocks, used, at = text.splitlines(), [], set(), 0
    while at < len(lines):
        fence = re.fullmatch(r"( *)```(\w*)", lines[at])
        if not fence:
            at += 1
            continue
        end = next((i for i in range(at + 1, len(lines)) if lines[i] == fence[1] + "```"), None)
        if end is None:
            raise PageError(f"line {at + 1}: the block does not end")
        directives, begin = directives_before(lines, at)
        used.update(range(begin, at))
        body = [line.removeprefix(fence[1]) for line in lines[at + 1:end]]
        block = Block(at + 1, fence[2], "".join(line + "\n" for line in body), directives)
        last = blocks[-1] if blocks else None
        if (last and last.language in SHELLS and block.language == "text" and not directives and not block.has_commands
                and not any(lines[last.line + last.text.count("\n") + 1:at])):
            last.shown = body
        blocks.append(block)
        at = end + 1
    for number, line in enumerate(lines):
        if "<!-- commands:" in line and number not in used:
            raise PageError(f"line {number + 1}: no block follows {line}")
    for block in blocks:
        if block.directives and block.has_commands == bool(block.all("file")):
            raise PageError(f"line {block.line}: the block {'has' if block.has_commands else 'has no'} commands")
    return blocks


def is_complete(command):
    """Whether bash sees the end of the command."""
    if re.search(r"(?<!\\)(?:\\\\)*\\$", command):
        return False
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr  # of a here-document without an end, bash only warns


def console_commands(text):
    """The `$ ` commands, each with the lines that it prints."""
    found = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            if not found:
                raise PageError(f"no command before: {line}")
            found[-1].output.append(line)
            continue
        found.append(Command(whole(line[2:], lines)))
    return found


def shell_commands(text):
    found = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            command = whole(line, lines)
            comment = re.search(r"\s+# (.*)$", command.splitlines()[-1])
            found.append(Command(command, says=comment[1] if comment else ""))
    return found


def whole(line, lines):
    text = line
    while not is_complete(text):
        try:
            text += "\n" + next(lines)
        except StopIteration:
            raise PageError(f"the command does not end: {text}") from None
    return text


def all_pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
