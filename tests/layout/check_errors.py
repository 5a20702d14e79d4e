#!/usr/bin/env python3
"""docs/errors.md is made from the comments of ErrorReason in the protocol.

    check_errors.py           checks that every reason that the server can send has its comments, that the page is what they
                              make, and that the sources give no reason with a code that its comment does not name
    check_errors.py --write   writes the page

The comment of a value has three parts: the gRPC codes and a colon, with what the reason means; "Ran:", whether the request
ran; and "Do:", what to do.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO, PAGE = "proto/kilokv/v1/kilokv.proto", "docs/errors.md"
REASONS, MAP, SOURCES = "engine/base/status.hpp", "server/service/status_map.cpp", ("server", "engine")
PREFIX, UNKNOWN, ANY = "ERROR_REASON_", "UNSPECIFIED", "ANY CODE"
WIDTH = 125
CODES = {"CANCELLED", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
         "ABORTED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}
# With these codes the program ends, or does not start. No client gets them.
NO_ANSWER = {"FAILED": {"FAILED_PRECONDITION", "UNAVAILABLE", "NOT_FOUND"}}
# How the sources name a reason. The code is written before it, or follows from the function.
SAID = [(re.compile(r"StatusCode::(\w+),\s*ErrorReason::(\w+)"), None),
        (re.compile(r"exhausted\(\s*()ErrorReason::(\w+)"), "RESOURCE_EXHAUSTED"),
        (re.compile(r"\{()ErrorReason::(\w+), "), "RESOURCE_EXHAUSTED"),  # of a limit that clients share
        (re.compile(r"()\.because\(ErrorReason::(\w+)\)"), "INVALID_ARGUMENT")]

INTRODUCTION = """# Errors

This page is made from the comments of `ErrorReason` in `proto/kilokv/v1/kilokv.proto`. Change them there, and run
`tests/layout/check_errors.py --write`.

Each error that the server gives has a gRPC code, a text for people, and an `ErrorDetail` for programs. The detail has the
**reason**, and, if they apply, the field, the limit, the actual value, the setting that sets the limit, and the time after
which a retry can succeed (`retry_after_us`; 0: waiting does not help). `Error::reason` of the client library has the name of
the reason, and `kilokv` prints it in a line of its own. A client that does not know a reason goes by the code.

"Ran" is about one sending of a request. `not_run` in the detail says for certain that nothing of this sending ran or will
run. In a session, an earlier sending of the same number may have run. [transactions.md](transactions.md), section 15.1, says
which errors are certain without `not_run`. A client that lost all answers can ask what became of its requests
([client.md](client.md#after-a-crash)).
"""
NEXT = "Next: [Configuration of kilokvd](configuration.md)"  # the page that follows in docs/README.md


class Reason:
    def __init__(self, name, number, comment):
        self.name, self.number = name, number
        head, _, rest = comment.partition(" Ran:")
        ran, _, do = rest.partition(" Do:")
        codes, _, means = head.partition(":")
        self.codes = codes.split(", ")
        self.means, self.ran, self.do = means.strip(), ran.strip(), do.strip()

    def problems(self):
        for what, text in (("what it means", self.means), ("whether the request ran (Ran:)", self.ran),
                           ("what to do (Do:)", self.do)):
            if not text or not text.endswith("."):
                yield f"{PROTO}: {PREFIX}{self.name}: the comment does not say {what}, in a sentence"
        if not self.codes or not set(self.codes) <= (CODES | {ANY}):
            yield f"{PROTO}: {PREFIX}{self.name}: the comment does not begin with the codes of gRPC and a colon"


def reasons_of(root):
    """All values of ErrorReason, in the order of the protocol."""
    text = (root / PROTO).read_text(encoding="utf-8")
    body = re.search(r"^enum ErrorReason \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)[1]
    reasons, comment = [], []
    for line in map(str.strip, body.splitlines()):
        value = re.fullmatch(rf"{PREFIX}(\w+) = (\d+);", line)
        if line.startswith("//"):
            comment.append(line[2:].strip())
        elif value:
            reasons.append(Reason(value[1], int(value[2]), " ".join(comment)))
            comment = []
        elif line:
            raise SystemExit(f"{PROTO}: cannot read this line of ErrorReason: {line}")
    return reasons


def wrapped(text, first="", further=""):
    return "\n".join(textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=further, break_long_words=False,
                                   break_on_hyphens=False))


def capital(text):
    return text[:1].upper() + text[1:]


def page(reasons):
    lines = [INTRODUCTION, "| reason | code | number |", "| --- | --- | --- |"]
    for reason in reasons:
        codes = ", ".join(code if code == ANY else f"`{code}`" for code in reason.codes)
        lines.append(f"| [{reason.name}](#{reason.name.lower()}) | {codes.replace(ANY, 'any')} | {reason.number} |")
    for reason in reasons:
        lines += ["", f"## {reason.name}", "", wrapped(reason.means), "",
                  wrapped(capital(reason.ran), "- **Ran:** ", "  "), wrapped(capital(reason.do), "- **Do:** ", "  ")]
    return "\n".join([*lines, "", NEXT]) + "\n"


def sendable(root):
    """The reasons that the server can send: those that the switch of the service maps."""
    text = (root / MAP).read_text(encoding="utf-8")
    return re.findall(rf"case ErrorReason::(\w+): return v1::{PREFIX}(\w+);", text)


def said(root):
    """Each (file, line, reason, code) that the sources name."""
    for top in SOURCES:
        for path in sorted((root / top).rglob("*.[ch]pp")):
            text = path.read_text(encoding="utf-8")
            for pattern, code in SAID:
                for match in pattern.finditer(text):
                    line = text.count("\n", 0, match.start()) + 1
                    yield path.relative_to(root), line, match[2].upper(), code or match[1].upper()


def problems(root):
    reasons = reasons_of(root)
    named = {reason.name: reason for reason in reasons}
    for reason in reasons:
        yield from reason.problems()
    sent = sendable(root)
    if len(sent) < 10:
        yield f"{MAP}: it has no switch over the reasons any more, so nothing says what the server can send"
    for name, proto in sent:
        if name.upper() != proto:
            yield f"{MAP}: {name} is mapped to {PREFIX}{proto}"
        if proto not in named:
            yield f"{PROTO}: {PREFIX}{proto} is missing, and the server can send it"
    for name in sorted(set(named) - {proto for _, proto in sent}):
        yield f"{PROTO}: {PREFIX}{name}: the server never sends it"
    for path, line, name, code in said(root):
        if name == UNKNOWN or code in NO_ANSWER.get(name, ()):
            continue
        if name in named and code not in named[name].codes:
            yield f"{path}:{line}: {name} with {code}, and its comment names {', '.join(named[name].codes)}"
    shown = root / PAGE
    if not shown.exists() or shown.read_text(encoding="utf-8") != page(reasons):
        yield f"{PAGE} is not what the comments make: run tests/layout/check_errors.py --write"


def main(arguments):
    if arguments[:1] == ["--write"]:
        (ROOT / PAGE).write_text(page(reasons_of(ROOT)), encoding="utf-8")
    found = list(problems(ROOT))
    for problem in found:
        print(problem)
    print(f"errors: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
