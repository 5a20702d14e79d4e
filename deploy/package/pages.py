#!/usr/bin/env python3
"""Makes the manual page and the bash completion of a program from its help, so that they say what the program says.

  pages.py --program build/release/bin/kilokv --section 1 --about "command line client of KiloKV" --manual kilokv.1
           --completion kilokv.bash

The manual page needs help2man. It has the help of the program, and in the section COMMANDS that of each command.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

# A flag with its names, and the word for its value if it takes one, such as "  --tls-ca FILE     PEM file of ...".
FLAG = re.compile(r"^  (-[^ ]+)(?: (\S(?:[^ ]| (?! ))*))?(?:  .*)?$")
# What a flag excludes or needs stands where the word for a value would be, as in "  --quiet Excludes: --progress".
OTHER_FLAGS = re.compile(r" ?(Excludes|Needs): .*")
FILE_ARGUMENT = re.compile(r"^  (file|FILE)\b", re.MULTILINE)
COMMAND = re.compile(r"^  ([a-z][a-z-]*)  +\S")
NAMES_A_PATH = re.compile(r"(-(file|dir|cert|key|ca)|^--(json|history|server))$")
LONG_LIST = re.compile(r"\S+\|\S{40,}")
WIDTH = 78


def output_of(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60).stdout


class Command:
    """A program, or one of its commands: its help, its flags with the words for their values, and its own commands."""

    def __init__(self, program, path=()):
        self.path = path
        self.help = output_of([program, *path, "--help"])
        self.flags = {}
        for names, value in (match.groups() for match in map(FLAG.match, self.help.splitlines()) if match):
            for name in names.split(","):
                self.flags[re.sub(r"\{.*\}", "", name)] = OTHER_FLAGS.sub("", value or "") or None
        arguments = self.help.partition("\nPositionals:\n")[2].partition("\n\n")[0]
        self.takes_file = FILE_ARGUMENT.search(arguments) is not None
        listed = self.help.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
        self.names = [match[1] for match in map(COMMAND.match, listed.splitlines()) if match]
        self.commands = [Command(program, (*path, name)) for name in self.names if name != "help"]

    def all(self):
        yield self
        for command in self.commands:
            yield from command.all()


def wrapped(line):
    """The line in pieces of at most WIDTH columns. What follows a gap of two spaces stays in its column."""
    gap = max((match.end() for match in re.finditer(r"\S  +(?=\S)", line)), default=len(line) - len(line.lstrip()))
    if gap > WIDTH // 2:
        gap = 4
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * gap, drop_whitespace=True, break_on_hyphens=False,
                         replace_whitespace=False, break_long_words=False) or [""]


def verbatim(text):
    """The text as groff shows it unchanged."""
    lines = [piece for line in text.rstrip("\n").splitlines() for piece in wrapped(line)]
    lines = [line.replace("\\", "\\e").replace("-", "\\-") for line in lines]
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def manual(program, root, about, section, see_also):
    """The manual page, by help2man. Its date is that of $SOURCE_DATE_EPOCH, if it is set."""
    name = pathlib.Path(program).name
    include = f"[NAME]\n{name} \\- {about}\n"
    commands = [command for command in root.all() if command.path]
    if commands:
        include += "\n[COMMANDS]\n"
        for command in commands:
            include += f".SS \"{name} {' '.join(command.path)}\"\n.nf\n{verbatim(command.help)}\n.fi\n"
    include += "\n[SEE ALSO]\n" + ",\n".join(f".BR {page.split('.')[0]} ({page.split('.')[1]})" for page in see_also) + "\n"
    include += ".PP\nThe pages in /usr/share/doc/kilokv say more.\n"
    with tempfile.NamedTemporaryFile("w", suffix=".h2m") as file:
        file.write(include)
        file.flush()
        page = output_of(["help2man", "--no-info", f"--section={section}", f"--include={file.name}", program])
    # Lists of values, which are longer than a line: groff may break them after each value.
    return LONG_LIST.sub(lambda match: match[0].replace("|", "|\\:"), page)


def kind_of(flag, value):
    """What may stand after a flag: nothing "", a file "file", words such as "on off", or anything "any"."""
    if value is None or value.startswith("["):  # [DURATION]: the flag also stands alone
        return ""
    if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", value.split(" ")[0]):
        return value.split(" ")[0].replace("|", " ")
    is_path = value.split(" ")[0] == "FILE" or (value.split(" ")[0].startswith("TEXT") and NAMES_A_PATH.search(flag))
    return "file" if is_path else "any"


COMPLETION = """\
# Bash completion of {name}, made from its help.
declare -gA _{function}_flags=(
{flags}
)
declare -gA _{function}_commands=(
{commands}
)
# The commands whose argument is a file.
declare -gA _{function}_files=(
{files}
)
# What comes after a flag: a file, one of these words, or anything.
declare -gA _{function}_values=(
{values}
)

_{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path="" flags=${{_{function}_flags["."]}} word flag="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ $word == "=" ]]; then
      continue
    elif [[ -n $flag ]]; then
      flag=""
    elif [[ $word == -* ]]; then
      flag=$word
      [[ -n ${{_{function}_values[$word]-}} ]] || flag=""
    elif [[ " ${{_{function}_commands[".$path"]-}} " == *" $word "* ]]; then
      path="$path $word"
      flags+=" ${{_{function}_flags[".$path"]}}"
    fi
  done
  [[ $current == "=" ]] && current=""
  if [[ -n $flag ]]; then
    case ${{_{function}_values[$flag]}} in
      file) COMPREPLY=($(compgen -f -- "$current")) && compopt -o filenames 2>/dev/null ;;
      any) COMPREPLY=() ;;
      *) COMPREPLY=($(compgen -W "${{_{function}_values[$flag]}}" -- "$current")) ;;
    esac
  elif [[ $current != -* && -n ${{_{function}_files[".$path"]-}} ]]; then
    COMPREPLY=($(compgen -f -- "$current")) && compopt -o filenames 2>/dev/null
  elif [[ $current == -* || -z ${{_{function}_commands[".$path"]-}} ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "${{_{function}_commands[".$path"]}}" -- "$current"))
  fi
}}
complete -F _{function} {name}
"""


def completion(program, root):
    name = pathlib.Path(program).name

    def key(command):
        return "." + "".join(f" {part}" for part in command.path)

    def table(entries):
        return "\n".join(f'  ["{at}"]="{words}"' for at, words in entries)

    values = {flag: kind_of(flag, value) for command in root.all() for flag, value in command.flags.items()}
    return COMPLETION.format(
        name=name, function=name.replace("-", "_"),
        flags=table((key(command), " ".join(command.flags)) for command in root.all()),
        commands=table((key(command), " ".join(command.names)) for command in root.all() if command.names),
        files=table((key(command), "yes") for command in root.all() if command.takes_file),
        values=table((flag, kind) for flag, kind in values.items() if kind))


def main():
    parser = argparse.ArgumentParser(description="Makes the manual page and the bash completion of a program.")
    parser.add_argument("--program", required=True, help="the program, built")
    parser.add_argument("--section", default="1", help="of the manual; default 1")
    parser.add_argument("--about", default="", help="what the program is, in a few words")
    parser.add_argument("--see-also", default="", help="other pages, such as kilokv.1,kilokvd.8")
    parser.add_argument("--manual", type=pathlib.Path, help="file of the manual page to write")
    parser.add_argument("--completion", type=pathlib.Path, help="file of the completion to write")
    arguments = parser.parse_args()
    os.environ["LC_ALL"] = "C.UTF-8"
    root = Command(arguments.program)
    if arguments.manual:
        see_also = [page for page in arguments.see_also.split(",") if page]
        arguments.manual.write_text(manual(arguments.program, root, arguments.about, arguments.section, see_also))
    if arguments.completion:
        arguments.completion.write_text(completion(arguments.program, root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
