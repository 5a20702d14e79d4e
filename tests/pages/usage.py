"""Checks that commands and flags of our programs exist wherever a page names them: in each block of commands, also in those
that are not run, in a synopsis, and between backticks in the text."""

import functools
import re
import sys

import page

sys.path.insert(0, str(page.ROOT / "deploy" / "package"))
sys.path.insert(0, str(page.ROOT / "tests" / "crash"))
from pages import Command, output_of  # noqa: E402
from programs import BIN  # noqa: E402

SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
# The program at the place of a command: first in its line, or after what ends another command.
CALL = re.compile(rf"(?m)(?:^|[|;&(]) *(?:sudo |exec |docker exec \S+ |\$ |[A-Z_]+=\S* )*(?:[\w./$-]*/)?"
                  rf"({'|'.join(sorted(page.PROGRAMS, key=len, reverse=True))})((?: +[^|&;()#`\s]+)*)(?=\s|$|[|&;()])")
SCRIPT = re.compile(r"(?m)(?:^|[|;&(`]) *(?:python3 )?((?:[\w.-]+/)+[\w-]+\.(?:sh|py))((?: +[^|&;()#`\s]+)*)")
GOES_ON = re.compile(r"\\\n\s*|\n\s+(?=\[)| \| (?=--)")  # of a command; of a synopsis, and a choice of flags in it
CHOICE = re.compile(r"(?<=\w)\|\w+")  # of values: json|csv
WORDS_OF_HELP = {"--help", "--version"}


@functools.lru_cache(maxsize=None)
def command_of(program):
    command = Command(str(BIN / program))
    if program == "kilokv-engine-bench":  # it lists its commands in its usage
        for name in re.findall(rf"(?m)^ +{program} ([a-z][a-z-]*) ", output_of([str(BIN / program), "--help"])):
            command.names.append(name)
            command.commands.append(Command(str(BIN / program), (name,)))
    return command


def problem_of(program, words):
    """What is wrong with these words after the name of the program; None: nothing."""
    command = command_of(program)
    known = set(command.flags) | WORDS_OF_HELP
    takes_value = False
    for word in words:
        word = word.strip("[],.:")
        flag = re.match(r"-{1,2}[a-zA-Z][\w-]*", word)
        if flag:
            if flag[0] not in known:
                return f"{' '.join([program, *command.path])} has no flag {flag[0]}"
            takes_value = "=" not in word and command.flags.get(flag[0]) is not None
            continue
        below = next((one for one in command.commands if one.path[-1] == word), None)
        if below is not None:
            command = below
            known |= set(command.flags)
        elif command.names and not takes_value and re.fullmatch("[a-z-]+", word) and word not in command.names:
            return f"{' '.join([program, *command.path])} has no command {word}"
        elif word == "help":
            return None
        takes_value = False
    return None


def fragments(text):
    """Yields (line, code): the blocks of commands and synopses, and what the text has between backticks."""
    for block in page.blocks_of(text):
        if block.has_commands or block.is_synopsis:
            yield block.line, block.text
    outside = re.sub(r"(?ms)^( *)```.*?^\1```$", lambda match: "\n" * match[0].count("\n"), text)
    for match in SPAN.finditer(outside):
        yield outside.count("\n", 0, match.start()) + 1, match[1].replace("\n", " ")


@functools.lru_cache(maxsize=None)
def script_named(path):
    """The script, by its path from the root or its name, such as that of a copy; None: there is none."""
    name = path.rpartition("/")[2]
    found = [page.ROOT / path, *(page.ROOT / "deploy").glob(f"**/{name}"), *(page.ROOT / "tests").glob(f"**/{name}")]
    return next((one for one in found if one.is_file()), None)


def problem_of_script(path, words):
    script = script_named(path)
    if script is None:
        return f"there is no {path}"
    flags = [match[0] for match in map(re.compile(r"--[\w-]+").match, words) if match]
    known = set(re.findall(r"--[\w-]+", script.read_text(encoding="utf-8")))
    return next((f"{path} has no flag {flag}" for flag in flags if flag not in known), None)


def problems(text):
    """Yields a line of text for each."""
    for line, code in fragments(text):
        code = CHOICE.sub("", GOES_ON.sub(" ", code))
        for path, rest in SCRIPT.findall(code):
            problem = problem_of_script(path, [word.strip("[],.:") for word in rest.split()])
            if problem:
                yield f"line {line}: {problem}: {code.strip()[:120]}"
        for program, rest in CALL.findall(code):
            words = rest.split()
            # The name of the program in a message of its log: `kilokvd refused logins`.
            problem = problem_of(program, words) if program != "kilokvd" or not words or words[0][0] == "-" else None
            if problem:
                yield f"line {line}: {problem}: {code.strip()[:120]}"
