"""A reader of a page: runs its commands in a folder that looks like a built checkout, and compares what they print."""

import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import page

ROOT = page.ROOT
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from programs import BIN, SLOWER, leaves_out, until  # noqa: E402

GRPC_CODES = ("INVALID_ARGUMENT RESOURCE_EXHAUSTED UNAVAILABLE FAILED_PRECONDITION UNAUTHENTICATED PERMISSION_DENIED NOT_FOUND "
              "UNIMPLEMENTED ABORTED DATA_LOSS").split()
SHOWN_IN_COMMENT = re.compile(r"[a-z]+ \d[\d.,]*|[A-Z_]{4,}")
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \w+ kilokvd ")
NOT_STARTED = " critical kilokvd cannot start "
COMMAND_SECONDS = 60  # the longest time that a command of a page may take here
PORT = re.compile(r"(?<=[\w\]]:)(\d{4,5})\b")  # after a host; not a number of JSON
DEFAULT_PORTS = {"KILOKV_LISTEN": "7070", "KILOKV_HTTP_LISTEN": "7071"}
ROOMS = ("client", "cmake", "deploy", "docs", "engine", "proto", "server", "tests", "tls")


class Difference(Exception):
    """A command did not do what the page says."""


def pattern(line, is_measured):
    """What a printed line has to match: all of it, but for what no two runs have in common."""
    text = re.sub("[0-9a-f]*…", ".*", re.escape(line))
    text = re.sub(r"\b[0-9a-f]{8}\b", "[0-9a-f]{8}", text)  # the begin of the id of a session
    text = re.sub(r'(boundary\\ |"batch":\\ )[\d,]+', r"\1[\\d,]+", text)
    if is_measured:
        text = re.sub(r"\d(?:[\d,]|\\\.\d)*(?:\\ (?:us|ms|s)\b)?", lambda _: r"[\d,.]+(?: (?:us|ms|s))?", text)
        text = re.sub(r"(?:\\-){4,}", "-+", text)
    return re.compile(re.sub(r"(?:\\ )+", r"\\s+", text))


def check_lines(expected, lines, is_measured):
    """Every line is expected, in any order, as a job in the background prints when it likes. A measurement prints more than
    the page shows."""
    left = list(lines)
    for line in filter(None, expected):
        if is_measured and "GUARD_FAILED" in line and leaves_out("failed guards, which come after many transactions"):
            continue
        matching = [at for at, printed in enumerate(left) if pattern(line, is_measured).fullmatch(printed)]
        if not matching:
            raise Difference(f"not printed: {line}\nbut: {lines}")
        del left[matching[0]]
    if left and not is_measured:
        raise Difference(f"printed, and not on the page: {left}")


class Shell:
    """A terminal, in which every command knows the ones before it."""

    MARK = "--- end of the command: "

    def __init__(self, folder, environment):
        self._script = folder.with_suffix(".command")
        self._process = subprocess.Popen(["bash"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.run("set -o pipefail")

    def run(self, command):
        """The exit code, and the lines that were printed until then (also by jobs in the background)."""
        self._script.write_text(command + "\n")
        # From a file, so that a command that reads standard input does not read the next ones.
        self._process.stdin.write(f". {shlex.quote(str(self._script))} </dev/null; last=$?; echo '{self.MARK}'$last; "
                                  "(exit $last)\n")
        self._process.stdin.flush()
        lines = []
        watchdog = threading.Timer(COMMAND_SECONDS * SLOWER, self._kill)
        watchdog.start()
        try:
            for line in self._process.stdout:
                if line.startswith(self.MARK):
                    return int(line[len(self.MARK):]), lines
                lines.append(line.rstrip("\n"))
                if NOT_STARTED in line:
                    raise Difference(line)
        finally:
            watchdog.cancel()
        raise Difference(f"the shell ended in {command} (it may take {COMMAND_SECONDS * SLOWER} s): {lines}")

    def end(self):
        """Ends the shell and everything that it has started: its group of processes is the test's own."""
        self._kill()
        self._process.communicate()

    def _kill(self):
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Terminal:
    """Another terminal, in which a server runs until Ctrl-C."""

    def __init__(self, command, folder, environment):
        self._log = folder.with_suffix(".log")
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=environment,
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until(self._is_ready, "the server")
        except BaseException:
            self.kill()
            raise

    def _is_ready(self):
        if self._process.poll() is not None:
            raise Difference(f"kilokvd ended with {self._process.returncode}: {self._log.read_text()}")
        return " kilokvd ready " in self._log.read_text()

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)
        if self._process.wait(timeout=COMMAND_SECONDS * SLOWER) != 0:
            raise Difference(f"after Ctrl-C kilokvd ended with {self._process.returncode}: {self._log.read_text()}")

    def kill(self):
        self._process.kill()
        self._process.wait()


def free_port():
    """A free port below those that the system gives to sockets without a port, so that no other test gets it meanwhile."""
    while True:
        port = 10000 + int.from_bytes(os.urandom(2), "big") % 20000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return str(port)


class Place:
    """A folder as a reader has it, with its terminals. A port of a page is another one here: the page's may be taken."""

    def __init__(self, programs=BIN):
        self._temporary = tempfile.TemporaryDirectory(prefix="kilokv-page-")
        self.folder = pathlib.Path(self._temporary.name) / "kilokv"
        (self.folder / "build" / "release").mkdir(parents=True)
        (self.folder / "build" / "release" / "bin").symlink_to(programs)
        (self.folder / "build" / "release" / "tests").symlink_to(BIN.parent / "tests")
        for path in ROOT.iterdir():
            if path.name in ROOMS or path.is_file():
                (self.folder / path.name).symlink_to(path)
        self._ports = {}
        for port in DEFAULT_PORTS.values():
            self._port_for(port)
        self.environment = {name: value for name, value in os.environ.items()
                            if not re.match("KILOKV_(CLIENT_|ENDPOINT|LISTEN|HTTP_LISTEN|DATA_DIR|LOGIN)", name)}
        self.environment.update({name: f"127.0.0.1:{self._ports[port]}" for name, port in DEFAULT_PORTS.items()})
        self.environment["KILOKV_ENDPOINT"] = self.environment["KILOKV_LISTEN"]
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self.shell = Shell(self.folder, self.environment)
        self.terminal = None
        self._server_flags = None
        self.waiting = []  # process ids of programs in the background that wait for an answer

    def here(self, text):
        """The text with the ports of this place."""
        return PORT.sub(lambda match: self._port_for(match[1]), text)

    def _port_for(self, port):
        """The port of this place for a port of the page: another one for each."""
        while port not in self._ports:
            free = free_port()
            if free not in self._ports.values():
                self._ports[port] = free
        return self._ports[port]

    def serve(self, flags):
        """A server of the test; the one that runs already if it has the same flags."""
        if self._server_flags == flags:
            return
        self.open_terminal(f"kilokvd --data-dir given-data {self.here(flags)}")
        self._server_flags = flags

    def open_terminal(self, command):
        if self.terminal is not None:
            self.terminal.interrupt()
        self._server_flags = None
        self.terminal = Terminal(command, self.folder, self.environment)

    def close_terminal(self):
        self.terminal.interrupt()
        self.terminal = self._server_flags = None

    def parked(self):
        """How many transactions wait, and what jobs in the background have printed meanwhile."""
        code, lines = self.shell.run("kilokv parked list")
        if code != 0:
            raise Difference(f"kilokv parked list: {lines}")
        waiting = [line for line in lines if re.match(r"\d+ ", line)]
        return len(waiting), [line for line in lines if line not in waiting and not line.startswith("ID ")]

    def settle(self, command):
        """The reader is slower than the server: waits for what a command leaves in the background. Returns what is printed
        until then."""
        lines = []

        def is_parked():
            count, printed = self.parked()
            lines.extend(printed)
            return count > 0

        if re.search(r"(?<!&)&$", command) and not command.startswith("kilokvd"):
            self.waiting.append(self.shell.run("echo $!")[1][-1])
            until(is_parked, "the transaction waits")
        elif self.waiting and not is_parked():
            lines += self.shell.run(f"wait {' '.join(self.waiting)}")[1]
            self.waiting = []
        return lines

    def end(self):
        self.shell.end()
        if self.terminal is not None:
            self.terminal.kill()
        self._temporary.cleanup()


def expected_code(command):
    """The exit code that the page tells, in what it shows or says. None: any but 0."""
    told = re.search(r"exit code (\d+)", command.says)
    if told:
        return int(told[1])
    if any("refused:" in line or "GUARD_FAILED\"" in line for line in command.output):
        return 1
    return None if command.says.startswith(("refused", *GRPC_CODES)) else 0


def check_comment(command, lines):
    """A comment may show what a command prints: `refused: ...`, an error code, or parts such as `alice 97.66, bob 2.34`."""
    printed = "\n".join(lines)
    if command.says.startswith("refused"):
        parts = [command.says]
    else:
        parts = [part for part in re.split(r", |: .*", command.says) if SHOWN_IN_COMMENT.fullmatch(part)]
    for part in parts:
        if part not in printed:
            raise Difference(f"not printed: {part}\nbut: {lines}")


class Reader:
    """Goes through a page. After run(): how many blocks ran, and which were left out."""

    def __init__(self, programs=BIN):
        self._programs = programs
        self._place = None
        self.ran, self.changed, self.left_out = 0, 0, []

    def run(self, text):
        blocks = [block for block in page.blocks_of(text) if block.has_commands or block.all("file")]
        try:
            for block in blocks:
                if block.left_out:
                    self.left_out.append((block.line, block.left_out))
                    continue
                self._run_block(block)
                self.ran += block.has_commands
                self.changed += bool(block.all("instead"))
        finally:
            self._end()

    def _end(self):
        if self._place is not None:
            self._place.end()
            self._place = None

    def _run_block(self, block):
        if block.all("new folder"):
            self._end()
        if self._place is None:
            self._place = Place(self._programs)
        place = self._place
        for name in block.all("file"):
            (place.folder / name).write_text(block.text)
            return
        for flags in block.all("server"):
            place.serve(flags)
        for command in block.all("first"):
            self._run_aside(block, command)
        lines, expected = [], []
        for command in block.commands():
            try:
                lines += self._run_command(place, command)
                expected += command.output
            except (Difference, AssertionError) as error:
                raise Difference(f"line {block.line}: {command.text}\n{error}") from None
        if block.is_console or block.shown is not None:
            lines = [line for line in lines if not LOG_LINE.match(line)]
            if block.is_console and not block.commands()[0].text.startswith("kilokvd"):
                self._compare(block, expected, lines)
            if block.shown is not None:
                self._compare(block, block.shown, lines)
        for command in block.all("then"):
            self._run_aside(block, command)

    @staticmethod
    def _compare(block, expected, lines):
        try:
            check_lines(expected, lines, block.is_measured)
        except Difference as error:
            raise Difference(f"line {block.line}: {error}") from None

    def _run_aside(self, block, command):
        if command == "Ctrl-C":
            self._place.close_terminal()
            return
        code, lines = self._place.shell.run(self._place.here(command))
        if code != 0:
            raise Difference(f"line {block.line}: {command}\nexit code {code}: {lines}")

    @staticmethod
    def _run_command(place, command):
        text = place.here(command.text)
        in_foreground = not re.search(r"&$", text)
        if command.first_word == "kilokvd" and in_foreground and not re.search(r" --(check-config|help|version)\b", text):
            place.open_terminal(text)
            return []
        code, lines = place.shell.run(text)
        wanted = expected_code(command)
        if code != wanted and not (wanted is None and code != 0):
            raise Difference(f"exit code {code}, and not {'an error' if wanted is None else wanted}: {lines}")
        check_comment(command, lines)
        return lines + place.settle(text)
