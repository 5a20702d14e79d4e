"""Reads what `strace -f -y -xx -s N` writes: system calls in the order in which they began and ended.

A call that another thread interrupts is printed in two lines, `<unfinished ...>` and `<... NAME resumed>`.
"""

import re

LINE = re.compile(r"^(\d+)\s+(.*)$")
CALL = re.compile(r"^(\w+)\((\d+)<((?:\\x[0-9a-f]{2}|[^>]|->)*)>(.*)$")
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
RESULT = re.compile(r"\)\s+= (-?\d+)")
DATA = re.compile(r'iov_base="((?:\\x[0-9a-f]{2})*)"')


class Call:
    """begin and end are line numbers; file is what the descriptor stands for; data what was sent or received."""

    def __init__(self, name, file, text, begin):
        self.name, self.file, self.text, self.begin = name, file, text, begin
        self.end, self.result = None, None

    def finish(self, text, end):
        self.text += text
        self.end = end
        match = RESULT.search(self.text)
        self.result = int(match[1]) if match else -1

    @property
    def data(self):
        joined = "".join(DATA.findall(self.text)).replace("\\x", "")
        return bytes.fromhex(joined)[:max(self.result or 0, 0)]


def plain(text):
    """Paths are printed in hexadecimal, too."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)


def calls(path):
    """All calls on descriptors that ended, in the order in which they began."""
    begun, open_calls = [], {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines):
            thread, text = LINE.match(line.rstrip("\n")).groups()
            resumed = RESUMED.match(text)
            if resumed:
                if thread in open_calls:
                    open_calls.pop(thread).finish(resumed[2], number)
                continue
            match = CALL.match(text)
            if not match:
                continue
            call = Call(match[1], plain(match[3]), match[4], number)
            begun.append(call)
            if "<unfinished ...>" in text:
                open_calls[thread] = call
            else:
                call.finish("", number)
    return [call for call in begun if call.end is not None]
