"""What a watch saw of a run, and the judge's word on the run."""

import contextlib
import json
import signal
import subprocess
import sys
import time

from programs import JUDGE, SLOWER, until

sys.path.insert(0, str(JUDGE.parent))
from history import expiry_line  # pylint: disable=wrong-import-position


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@contextlib.contextmanager
def watch(server, name, *flags):
    """`kilokv watch` in the background. Gives the process, and the file in the server's folder that its writes go to."""
    path = server.folder / name
    with open(path, "wb") as file:
        process = subprocess.Popen(server.command("kilokv", "--wait=60s", "--output", "json", "watch", *flags), stdout=file)
    try:
        yield process, path
    finally:
        process.kill()
        process.wait()


def all_expire(server):
    """Waits until no key is left that expires, and until all of it is durable."""
    time.sleep(0.3)  # the server counts ten times a second
    until(lambda: server.status()["expiring"] == 0, "all expiries", 60)
    # The count is of what is executed. This answer comes after all earlier batches are durable.
    server.transactions({"then": [{"op": "get", "key": "k0"}]})


def equal_to_the_log(server, process, path):
    """Ends a watch of all keys that ran all the time. What it gave is what another one reads from the log now: nothing is
    missing, nothing comes twice. Returns the writes."""
    last = server.status()["next_version"] - 1
    with watch(server, "again", "--after", "0", "--through", last) as (replay, again):
        assert replay.wait(timeout=120 * SLOWER) == 0
    logged = lines_of(again)
    until(lambda: len(path.read_text(encoding="utf-8").splitlines()) >= len(logged), "the watch is there")
    process.send_signal(signal.SIGTERM)
    process.wait()
    seen = lines_of(path)[:len(logged)]
    different = [pair for pair in zip(seen, logged) if pair[0] != pair[1]]
    assert not different, f"the watch gave {different[0][0]}, the log has {different[0][1]}"
    places = [(write["version"], write["batch"], write["rank"]) for write in logged]
    assert places == sorted(places), "the writes are not in their order"
    return logged


def nothing_left_to_expire(logged):
    """If all keys that expire are gone, the last write of each key has no expiry. Otherwise an expiry was lost."""
    last = {write["key"] if isinstance(write["key"], str) else json.dumps(write["key"]): write for write in logged}
    lost = [write for write in last.values() if write.get("expires_at_us")]
    assert not lost, f"the server has forgotten that this key expires: {lost[0]}"


def judge(server, answered, expired, kept):
    """The answers of new databases and the expiries have one order that explains them, and that leaves this state. If not,
    the history is kept under the name `kept`."""
    path, state = server.folder / "history.jsonl", server.folder / "state.jsonl"
    # Each program counts its times from its own start, so nothing is said about the order in real time.
    lines = [{**line, "invoke_us": 0, "return_us": None} for line in answered]
    with open(path, "w", encoding="utf-8") as file:
        for line in [{"format": "kilokv-history-2", "config": {}, "initial": []}, *lines, *map(expiry_line, expired)]:
            file.write(json.dumps(line) + "\n")
    server.scan_to(state)
    run = subprocess.run([sys.executable, JUDGE, path, "--final-state", state], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        with open(kept, "w", encoding="utf-8") as file:
            file.write(path.read_text(encoding="utf-8"))
        raise AssertionError(f"{run.stdout}{run.stderr}\nthe history is kept as {kept}")
    print(run.stdout.strip())
