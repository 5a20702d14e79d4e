"""What the examples in Python share: the command line and the connection.

    PROGRAM [--endpoint HOST:PORT] VERB ARGUMENT...   runs one command
    PROGRAM [--endpoint HOST:PORT]                    runs the commands that standard input has, one in each line

Each command prints one line. Each command may be sent again, also by another process, after any crash: docs/recipes.md
says why. The exit code is 0 if no command ended with an error, 1 if one did or no server was there, and 2 if the flags
are wrong.
"""

import sys

import kilokv


def wrong_command():
    return ValueError("no such command, or wrong arguments: see --help")


def integer(word, least=kilokv.INTEGER_MIN):
    """The integer of a word. Raises ValueError if the word is no integer of 64 bits, or if it is less than `least`."""
    try:
        number = int(word)
    except ValueError:
        raise wrong_command() from None
    if not least <= number <= kilokv.INTEGER_MAX:
        raise wrong_command()
    return number


def end_of(prefix):
    """The end of the range of all keys that begin with `prefix`, which ends with a slash."""
    return prefix[:-1] + chr(ord("/") + 1)


class Runner:
    """Runs commands: command(session, words) returns the line to print. The server applies each request of the session
    once, also if the connection breaks or the server restarts."""

    def __init__(self, db, command):
        self._db, self._command = db, command
        self._session = db.session()

    def run(self, words):
        """Runs a command and prints its line. Returns whether it ended without an error."""
        try:
            line, is_good = self._run(words), True
        except kilokv.Error as error:
            line, is_good = f"error {error.code}: {error.message}", False
        except ValueError as error:
            line, is_good = f"error INVALID_ARGUMENT: {error}", False
        print(line, flush=True)
        return is_good

    def close(self):
        self._session.close()

    def _run(self, words):
        # A slash ends each part of a key. Names with slashes could give the keys of other names.
        for word in words:
            if "/" in word:
                raise ValueError(f"a name has no slash: {word}")
        try:
            return self._command(self._session, words)
        except kilokv.SessionUnknownError:
            # A program that slept for longer than the lease of its session has lost it. The command may have run
            # before. It may be sent again, because keys in the database tell whether it ran, and not only the session.
            self._session = self._db.session()
            return self._command(self._session, words)


def main(usage, command):
    """Runs what the command line says, and returns the exit code."""
    words, endpoint = sys.argv[1:], None
    if words[:1] == ["--help"]:
        print(usage, end="")
        return 0
    if words and words[0].startswith("--"):
        if words[0] != "--endpoint" or len(words) < 2:
            print(usage, end="", file=sys.stderr)
            return 2
        endpoint, words = words[1], words[2:]
    with kilokv.Client(endpoint, wait_for_server=30) as db:  # the server may be starting again
        try:
            runner = Runner(db, command)
        except kilokv.Error as error:
            print(f"no server: {error.code}: {error.message}", file=sys.stderr)
            return 1
        commands = [words] if words else filter(None, map(str.split, sys.stdin))
        is_good = True
        for words in commands:
            is_good = runner.run(words) and is_good
        runner.close()
    return 0 if is_good else 1
