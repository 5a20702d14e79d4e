#!/usr/bin/env python3
"""Checks what the compiler does not: that includes go one way, and what may stand where.

The layers, from the bottom: engine/{base, platform, table, txn, stm, exec}, then the facade (the files of engine/
itself), then engine/{referee, workloads, bench}. server/core stands on the facade, server/{storage, service} stand on
core, and the files of server/ itself stand on all of the server. Inside core, from the bottom: the plain types (the
files of core itself), then access and clients, then memory, sessions, waiting and reads, which do not know each other, then
pipeline, then checkpoint, then database, which wires them. The client stands on the protocol and on tls alone; the
service stands on tls, too. The simulator, engine/sim, stands on the engine, and nothing but tests stands on it.

The folders inside exec are no layers: they include each other. But one border inside stm and exec is held: only the
folders of exec that run the strategies of papers include engine/stm/papers and engine/exec/papers.

The facade is no hub: what engine/engine.hpp includes, directly or not, is plain types. Strategies (engine/stm) are
included in the engine and in its own tests alone.

Prints FILE:LINE: rule, one violation a line. Exit codes: 0 none, 1 some.
"""

import argparse
import os
import re
import sys

# "engine/*" are the files of the folder itself, without its rooms. So are "server/*".
ENGINE_ORDER = ["engine/base", "engine/platform", "engine/table", "engine/txn", "engine/stm", "engine/exec", "engine/*"]
REPORTS = ["engine/exec/run/execution_report.hpp", "engine/exec/run/stage_times.hpp"]
ENGINE_FACE = ["engine/base", "engine/txn", *REPORTS, "engine/engine.hpp", "engine/state_sum.hpp"]
CORE_TYPES = [f"server/core/{name}" for name in (
    "backup", "commit_log", "database_events", "database_status", "digest", "time_text", "environment", "fail_point", "hex", "histogram", "hot_keys", "log_reader", "metrics",
    "one_line", "options", "position", "request", "request_identity", "shown_key", "slow_transaction", "trace_parent", "unit_text",
    "threads", "bytes")]
CORE_ACCESS = "server/core/access"
CORE_CLIENTS = "server/core/clients"
CORE_ROOMS = ["server/core/memory", "server/core/sessions", "server/core/waiting", "server/core/reads"]
# What the server's other rooms see of core: the types that cross its border, and for the service the database itself.
CORE_FACE = [*CORE_TYPES, CORE_ACCESS, CORE_CLIENTS, "server/core/database", "server/core/reads/scan.hpp", "server/core/reads/watch_cursor.hpp",
             "server/core/sessions/session_info.hpp", "server/core/sessions/session_list.hpp",
             "server/core/sessions/upload.hpp",
             "server/core/waiting/parked_transaction.hpp"]
FACADE = "engine/engine.hpp"
# What the facade may not drag along, except REPORTS.
BEHIND_THE_FACADE = ["engine/stm", "engine/exec", "engine/sim"]
STRATEGIES, STRATEGY_USERS = "engine/stm", ["engine", "tests/unit/engine"]
PAPERS = ["engine/stm/papers", "engine/exec/papers"]
PAPERS_USERS = [*PAPERS, "engine/exec/strategies", "engine/sim", "tests/unit/engine"]
FOR_TESTS = "engine/engine_for_tests.hpp"
SIMULATOR, SIMULATOR_BUILD = "kilokv_sim", "engine/CMakeLists.txt"
PROTOCOL = "kilokv/v1"  # generated
GENERATED = {"kilokv_commit.hpp"}  # by the build: the commit that a program was built from
CLIENT_FACE = "client/lib/include"  # included as "kilokv/..."

# Layer -> what it may include beside itself. A file belongs to the longest prefix that matches it.
MAY_INCLUDE = {
    **{layer: ENGINE_ORDER[:index] for index, layer in enumerate(ENGINE_ORDER)},
    "engine/referee": ENGINE_FACE,
    "engine/workloads": ENGINE_FACE,
    "engine/sim": ENGINE_ORDER,
    "engine/examples": ENGINE_FACE,
    "engine/bench": [*ENGINE_ORDER, "engine/referee", "engine/workloads"],
    "server/core": [*ENGINE_FACE, "engine/referee"],
    CORE_ACCESS: [*ENGINE_FACE, *CORE_TYPES],
    CORE_CLIENTS: [*ENGINE_FACE, *CORE_TYPES],
    **{room: [*ENGINE_FACE, *CORE_TYPES, CORE_CLIENTS] for room in CORE_ROOMS},
    "server/core/pipeline": [*ENGINE_FACE, "engine/referee", *CORE_TYPES, CORE_ACCESS, CORE_CLIENTS, *CORE_ROOMS],
    "server/core/checkpoint": [*ENGINE_FACE, *CORE_TYPES, CORE_ACCESS, CORE_CLIENTS, "server/core/memory", "server/core/sessions", "server/core/reads",
                               "server/core/pipeline"],
    "server/core/database": [*ENGINE_FACE, *CORE_TYPES, CORE_ACCESS, CORE_CLIENTS, *CORE_ROOMS, "server/core/pipeline",
                             "server/core/checkpoint"],
    "server/storage": [*ENGINE_FACE, *CORE_TYPES],
    "server/edge": ENGINE_FACE,
    "server/offline": [*ENGINE_FACE, "server/core", "server/storage"],
    "tls": [],
    "server/service": [*ENGINE_FACE, *CORE_FACE, "server/edge", "tls", PROTOCOL],
    "server/http": [*ENGINE_FACE, "server/edge", "tls"],
    "server/monitoring": [*ENGINE_FACE, *CORE_FACE, "server/edge", "server/http", "server/service"],
    "server/console": [*ENGINE_FACE, *CORE_FACE, "server/http", "server/monitoring", "server/service", "tls"],
    "server/*": [*ENGINE_FACE, "server/core", "server/storage", "server/edge", "server/http", "server/monitoring",
                 "server/console", "server/service"],
    "client/lib/include": [],
    "client/lib/src": [CLIENT_FACE, "tls", PROTOCOL],
    "client/command_line": [CLIENT_FACE],
    "client/cli": [CLIENT_FACE, "client/command_line", "client/cli/bulk", "client/measure", "server/offline", "engine/base"],
    "client/cli/bulk": [CLIENT_FACE, "client/command_line", "client/cli", "client/measure"],
    "client/examples": [CLIENT_FACE],
    "client/measure": [CLIENT_FACE],
    "client/own_server": [CLIENT_FACE, "client/measure"],
    "client/bench": [CLIENT_FACE, "client/command_line", "client/measure", "client/own_server", "engine/workloads", "engine/base",
                     "engine/txn/program.hpp"],
    "client/bank": [CLIENT_FACE, "client/command_line", "client/measure", "client/own_server", "engine/workloads"],
    "tests/unit/engine": ["engine"],
    "tests": ["engine", "server", "client", "tls", CLIENT_FACE, PROTOCOL],
}

# Header prefix of a library -> the only places that may include it (tests may include anything).
LIBRARIES = {
    "rocksdb/": ["server/storage"],
    "grpc": ["server/service", "client/lib/src"],
    "google/protobuf/": ["server/service", "client/lib/src"],
    "spdlog/": ["server/main.cpp", "server/event_log", "server/last_words", "server/log_format", "server/page_server",
                "server/text_log", "server/config", "server/service"],
    "toml++/": ["server/config", "server/config_file"],
    "CLI/": ["server/config", "client/command_line", "client/cli", "client/bank", "client/bench"],
    "boost/": ["server/http"],
    "prometheus/": ["server/monitoring"],
    "nlohmann/": ["server/service/channelz", "server/service/status_json", "server/monitoring/families", "server/console",
                  "server/log_format", "client/lib/src", "client/cli",
                  "client/bank", "client/bench"],
    "xxhash": ["server/core", "client/cli/bulk"],
    "csv.h": ["client/cli/bulk"],
    "isa-l": ["server/storage"],
    "openssl/": ["tls"],
    "absl/": ["server", "client/lib/src", "client/cli", "client/bank", "client/bench"],
    "gtest/": [],
    "gmock/": [],
}

# Clock, threads and randomness are parameters of core and of the strategies; the real ones are in server/core/threads.
REAL_WORLD = {"thread", "chrono", "random"}
WITHOUT_REAL_WORLD = ["engine/base", "engine/table", "engine/txn", "engine/stm", "engine/referee", "engine/workloads",
                      "server/core"]

# Text -> the places where it may (True) or may not (False) stand, and the rule.
WORDS = [
    (re.compile(r"__CUDA_ARCH__"), True, ["engine/platform", "tests/layout"], "__CUDA_ARCH__ is for engine/platform"),
    (re.compile(r"std::atomic"), False, ["engine/stm"], "strategies take their atomics from the Platform"),
    (re.compile(r"(?<![\w.~-])/(?:home|root|work|Users)/"), False, [""], "no path of somebody's machine"),
    (re.compile(r"\b(?:TO" r"DO|FIX" r"ME)\b"), False, [""], "nothing half done: finish it, or leave it out"),
]

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".h", ".cc")
SKIPPED = {".git", "build", ".cache", "__pycache__", ".venv", "node_modules"}


def inside(path, place):
    """Whether `path` is `place`, below it, or (for a place without an extension) a file of that stem. A place that ends
    with /* has only the files of the folder itself."""
    if place.endswith("/*"):
        return os.path.dirname(path) == place[:-len("/*")]
    return not place or path == place or path.startswith(place + "/") or path.startswith(place + ".")


def longest(path, places):
    return max((place for place in places if inside(path, place)), key=len, default=None)


def check_own(path, included, root):
    """The rule that `path` breaks with #include "included", or None."""
    layer = longest(path, MAY_INCLUDE)
    target = included
    if included.startswith("kilokv/") and not inside(included, PROTOCOL):
        target = f"{CLIENT_FACE}/{included}"
    if included in GENERATED:
        return None
    if not inside(target, PROTOCOL) and not os.path.exists(os.path.join(root, target)):
        return f'"{included}" is no file below the root'
    if inside(target, STRATEGIES) and not any(inside(path, place) for place in STRATEGY_USERS):
        return f'"{included}" is for {" and ".join(STRATEGY_USERS)} alone'
    if any(inside(target, place) for place in PAPERS) and not any(inside(path, place) for place in PAPERS_USERS):
        return f'"{included}" is for {", ".join(PAPERS_USERS)} alone'
    if target == FOR_TESTS and not path.startswith("tests/") and path != "engine/engine.cpp":
        return f'"{included}" is for tests alone'
    target_layer = longest(target, MAY_INCLUDE)
    allowed = MAY_INCLUDE.get(layer, [])
    if layer is None:
        return f"{os.path.dirname(path)} is a room without a rule"
    if layer == target_layer or any(place == target_layer or inside(target, place) for place in allowed):
        return None
    return f'{layer} may not include "{included}"'


def check_library(path, included):
    """The rule that `path` breaks with #include <included>, or None."""
    if included in REAL_WORLD and longest(path, [*WITHOUT_REAL_WORLD, "server/core/threads"]) in WITHOUT_REAL_WORLD:
        return f"<{included}> belongs into no strategy and not into core: take it as a parameter"
    places = next((places for library, places in LIBRARIES.items() if included.startswith(library)), None)
    if places is None or path.startswith("tests/") or any(inside(path, place) for place in places):
        return None
    return f"<{included}> may be included only in {', '.join([*places, 'tests'])}"


def check_line(path, line, root):
    """Yields the rules that the line breaks."""
    for pattern, allowed_there, places, rule in WORDS:
        if pattern.search(line) and any(inside(path, place) for place in places) != allowed_there:
            yield rule
    match = INCLUDE.match(line) if path.endswith(SOURCES) else None
    if match:
        broken = check_own(path, match[1], root) if match[1] else check_library(path, match[2])
        if broken:
            yield broken


def included_files(root, path):
    """Yields the line and the path of what `path` includes of our own."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if match and match[1]:
                    yield number, match[1]
    except FileNotFoundError:
        pass  # check_own tells


def hub_violations(root):
    """Yields what the facade drags along, and through which file."""
    seen, to_look_at = {FACADE}, [FACADE]
    while to_look_at:
        path = to_look_at.pop(0)
        for number, target in included_files(root, path):
            if target in seen:
                continue
            seen.add(target)
            to_look_at.append(target)
            if any(inside(target, place) for place in BEHIND_THE_FACADE) and target not in REPORTS:
                yield f"{path}:{number}: {FACADE} may not drag {target} along"


def simulator_violations(root, path, lines):
    """Yields where a build file names the simulator, but for the test section of the engine's and for tests."""
    if os.path.basename(path) != "CMakeLists.txt" or path.startswith("tests/"):
        return
    depth, tests_from = 0, None
    for number, line in enumerate(lines, 1):
        code = line.split("#")[0]
        if re.match(r"\s*if\s*\(", code):
            depth += 1
            if tests_from is None and re.match(r"\s*if\s*\(\s*KILOKV_TESTS\s*\)", code):
                tests_from = depth
        elif re.match(r"\s*else", code) and tests_from == depth:
            tests_from = None
        elif re.match(r"\s*endif\s*\(", code):
            tests_from = None if tests_from == depth else tests_from
            depth -= 1
        if re.search(rf"\b{SIMULATOR}\b", code) and (path != SIMULATOR_BUILD or tests_from is None):
            yield f"{path}:{number}: {SIMULATOR} is for tests alone"


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(set(names) - SKIPPED):
            yield os.path.relpath(os.path.join(folder, name), root)


def violations(root):
    for path in files(root):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as lines:
                lines = list(lines)
            for number, line in enumerate(lines, 1):
                for rule in check_line(path, line, root):
                    yield f"{path}:{number}: {rule}"
            yield from simulator_violations(root, path, lines)
        except UnicodeDecodeError:
            pass  # not text
    yield from hub_violations(root)


def stale_rules(root):
    """Yields the rules that speak of a place which is not there (any more)."""
    places = set(MAY_INCLUDE) | {place for allowed in MAY_INCLUDE.values() for place in allowed} - {PROTOCOL}
    places |= {place for allowed in LIBRARIES.values() for place in allowed} | set(WITHOUT_REAL_WORLD)
    places |= {place for _, _, allowed, _ in WORDS for place in allowed}
    places |= {FACADE, FOR_TESTS, SIMULATOR_BUILD, *BEHIND_THE_FACADE, *REPORTS, *STRATEGY_USERS, *PAPERS_USERS}
    places = {place.removesuffix("/*") for place in places}
    stems = {os.path.splitext(path)[0] for path in files(root)}
    for place in sorted(places):
        if not os.path.exists(os.path.join(root, place)) and place not in stems:
            yield f"tests/layout/check_layout.py: a rule speaks of {place}, which is not there"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Checks the layers and what may stand where.")
    parser.add_argument("--root", default=os.path.join(here, "..", ".."), help="of the checkout (default: this one)")
    root = parser.parse_args().root
    found = 0
    for violation in [*stale_rules(root), *violations(root)]:
        print(violation)
        found += 1
    print(f"layout: {found} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
