#!/usr/bin/env python3
"""Mutations of the product, each of which some test has to find.

A mutation is a planted bug: one text of one file is replaced by another text. chosen.toml holds mutations that were
chosen, drawn.toml those that `draw` drew from the product's lines by a seed. found.toml says what found each of them,
and README.md is the table of all of them.

  mutants.py check                     every mutation still applies, every result is of its mutation, the table is up to
                                       date, and every mutation that has run was found, or is equivalent
  mutants.py draw --seed 1 --count 60  prints drawn.toml: conditions, constants, operators and calls, drawn by area
  mutants.py run [--only REGEX]        plants each mutation that has no result yet, builds, tests, and notes the result
  mutants.py table                     writes README.md

`run` works in a checkout of its own, build/mutants/tree, so that the tree at hand is never changed. It can be ended and
started again at any time. A result is kept with the mutation that it is of: a mutation that changes is run again.

The fields of a mutation: id, area, file, old, new. These are optional: kind (of a drawn one), tests (tests that are
asked before the area's others), equivalent (why the mutation gives the same results, so that no test can find it).

Exit codes: 0 all is well; 1 a rule does not hold, or a mutation was not found; 2 wrong usage.
"""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
TREE = os.path.join(ROOT, "build", "mutants", "tree")
TIMES = os.path.join(ROOT, "build", "mutants", "times.json")
MUTATIONS_MIN = 60
AREA_MUTATIONS_MIN = 8
EQUIVALENT_SHARE_MAX = 0.1
FOUND, NOT_FOUND, NOT_COMPILED, NOT_RUN = "found", "not found", "does not compile", "not run"
LINE_SHOWN_MAX = 90  # characters of a line, in the table
# The limits of a test that a mutation is planted under. They are for mutations that allocate or write without end.
MEMORY_BYTES_MAX = 12 << 30
FILE_BYTES_MAX = 4 << 30

# Area -> its sources, and the tests that are asked, in this order. The first that fails has found the mutation.
AREAS = {
    "table": (["engine/table"], ["engine_tombstone_queue_test", "engine_table_test", "engine_record_table_growth_test",
                                 "engine_ordered_index_test", "engine_expiry_table_test", "engine_expiries_test", "engine_record_store_test", "engine_bulk_table_test",
                                 "engine_engine_test", "engine_ranges_test", "core_test"]),
    "txn": (["engine/txn", "server/service/decode_rows.cpp", "server/service/decode_columns.cpp"],
            ["engine_validate_test", "engine_columns_test", "engine_interpreter_test", "engine_serial_test",
             "engine_differential_test", "engine_ranges_test", "service_unit_test"]),
    "stm": (["engine/stm"], ["engine_serial_test", "engine_block_ring_test", "engine_concurrency_limit_test",
                             "engine_ordered_watchdog_test", "engine_epochs_test", "engine_any_order_test",
                             "engine_lock_sim_test", "engine_gpustm_sim_test", "engine_validator_sim_test",
                             "engine_weak_orders_sim_test", "engine_ordered_sim_test", "engine_partitioned_sim_test", "engine_prstm_sim_test",
                             "engine_kilo_sim_test", "engine_local_sim_test", "engine_differential_test",
                             "engine_random_batch_test"]),
    "exec": (["engine/exec", "engine/engine.cpp"],
             ["engine_engine_test", "engine_expiries_test", "engine_delta_settling_test", "engine_record_store_test", "engine_device_loss_test",
              "engine_device_buffer_test", "engine_bound_columns_test", "engine_device_choice_test",
              "engine_device_records_test", "engine_stage_plan_test", "engine_read_set_test", "engine_rank_order_test",
              "engine_strategy_choice_test", "engine_chooser_test", "engine_cpu_pressure_test", "engine_contention_test",
              "engine_hint_finder_test",
              "engine_epochs_test", "engine_any_order_test", "engine_differential_test", "engine_random_batch_test", "engine_allocation_test",
              "engine_partitioned_sim_test", "core_test"]),
    "referee": (["engine/referee"], ["engine_referee_test", "engine_differential_test"]),
    "core": (["server/core"], ["core_test", "storage_test"]),
    "storage": (["server/storage"], ["storage_test", "core_test"]),
    "offline": (["server/offline"], ["offline_test"]),
    "edge": (["server/edge"], ["edge_test"]),
    "http": (["server/http"], ["http_test"]),
    "monitoring": (["server/monitoring"], ["monitoring_test", "service_unit_test"]),
    "console": (["server/console", "server/service/local_calls.cpp"], ["console_test"]),
    "service": (["server/service"], ["service_unit_test"]),
    "tls": (["tls", "server/service/tls_files.cpp", "server/service/client_certificates.cpp"],
            ["tls_unit_test", "service_unit_test"]),
    "client": (["client/lib"], ["client_unit_test"]),
    "packages": (["deploy/package", "deploy/container"], ["install_packages", "install_sandbox", "install_tree"]),
}
# What is built for tests that are no program. For each other test: the program of its name.
BUILT_FOR = {test: "installed" for test in AREAS["packages"][1]}
DRAWN_FROM = ["table", "txn", "stm", "exec", "core", "storage"]  # unless --areas names others

# What a drawn mutation does to a line: kind, what it looks for, and what it puts there. Negated conditions and dropped
# calls are made by functions below.
OPERATORS = [
    ("operator", re.compile(r" && "), " || "),
    ("operator", re.compile(r" \|\| "), " && "),
    ("operator", re.compile(r" < "), " <= "),
    ("operator", re.compile(r" <= "), " < "),
    ("operator", re.compile(r" > "), " >= "),
    ("operator", re.compile(r" >= "), " > "),
    ("operator", re.compile(r" == "), " != "),
    ("operator", re.compile(r" != "), " == "),
    ("operator", re.compile(r" \+ "), " - "),
    ("operator", re.compile(r" - "), " + "),
    ("constant", re.compile(r"(?<![\w.'])0(?![\w.'])"), "1"),
    ("constant", re.compile(r"(?<![\w.'])1(?![\w.'])"), "2"),
    ("constant", re.compile(r"\btrue\b"), "false"),
    ("constant", re.compile(r"\bfalse\b"), "true"),
]
CONDITION = re.compile(r"\bif \((?!constexpr)")
CALL = re.compile(r"\s+(?!return\b|throw\b|delete\b|[A-Z]\w*\()[\w.>:\[\]()*-]+\(")
QUOTED_LINES_MAX = 4

# What is never drawn. The rules hold for all lines alike. NOT_DRAWN_RULES puts them into words, for drawn.toml.
FILES_NOT_DRAWN = re.compile(r"/(no_cuda|cuda_|fail_point|fault_file_system)[^/]*$")
STATEMENTS_NOT_DRAWN = re.compile(
    r'"|KILOKV_CHECK|static_assert|\bprefetch\w*\(|\.reserve\(|shrink_to_fit|\bprobe\((?!ids|id\b)|\.?\bpause\(\)|'
    r"capacity\(\)|memory_bytes")
LINES_NOT_DRAWN = re.compile(
    r"^\s*(#|template|using|namespace|public:|private:|friend|case [^:]*:$)|\boperator\b|\bvirtual\b|= default|"
    r"= delete|\) (const )?= 0;|\bconstexpr\b.* k[A-Z]\w* =|"
    r"^\s*(?!return\b)(?:[\w:*&]|<[\w:<>, ]*>)+ \w+(?: = [\w.:']+|\{[\w.:']*\})?;$")
NOT_DRAWN_RULES = """\
# The rules of the drawing were fixed before it, and hold for all lines alike. These are left out:
# - files for CUDA only (*.cu, *.cuh, cuda_*, no_cuda_*), and files that only make faults for tests (fail_point*,
#   fault_file_system*);
# - lines with a comment, because comments are rewritten more often than code;
# - statements with a text in quotes (messages), KILOKV_CHECK and static_assert;
# - hints that change speed only: prefetch, .reserve(), shrink_to_fit(), pause(); probe(), which only simulators notice;
# - reckonings of memory: statements with capacity() or memory_bytes;
# - declarations without code, or with one literal or name as the first value; definitions of named constants;
#   templates; lines with `operator` or `virtual`.
# A line that its file has more than once is quoted with up to three lines before it. No two are drawn from one line.
# Nothing was left out or exchanged after the draw. Mutations that do not compile do not count.
"""


def load(name):
    path = os.path.join(HERE, name)
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return tomllib.load(file).get("mutant", [])


def all_mutants():
    return [*load("chosen.toml"), *load("drawn.toml")]


def digest(mutant):
    text = "\0".join([mutant["file"], mutant["old"], mutant["new"]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def apply_to(text, mutant):
    """The text with the mutation; None if the old text is not there, or there more than once."""
    return text.replace(mutant["old"], mutant["new"]) if text.count(mutant["old"]) == 1 else None


def problems(mutants, root):
    names, digests = set(), {}
    for mutant in mutants:
        name = mutant.get("id", "?")
        if name in names:
            yield f"{name}: two mutations have this name"
        names.add(name)
        if mutant.get("area") not in AREAS:
            yield f"{name}: area {mutant.get('area')}: one of {', '.join(AREAS)}"
            continue
        for test in mutant.get("tests", []):
            if test not in AREAS[mutant["area"]][1]:
                yield f"{name}: {test} is no test of the area {mutant['area']}"
        try:
            with open(os.path.join(root, mutant["file"]), encoding="utf-8") as file:
                text = file.read()
        except OSError:
            yield f"{name}: there is no {mutant['file']}"
            continue
        count = text.count(mutant["old"])
        if count != 1:
            yield f"{name}: {mutant['file']} has the old text {count} times, not once"
        elif mutant["old"] == mutant["new"]:
            yield f"{name}: the new text is the old one"
        other = digests.setdefault(digest(mutant), name)
        if other != name:
            yield f"{name}: the same mutation as {other}"


def counted(mutants, known):
    """Those which count: all but those that do not compile."""
    return [mutant for mutant in mutants if known.get(mutant["id"], {}).get("result") != NOT_COMPILED]


def problems_of_counts(mutants, known, is_drawn):
    """How many there must be of which kind. is_drawn: of a mutation's name."""
    mutants = [mutant for mutant in counted(mutants, known) if mutant["area"] != "packages"]  # none is drawn from these
    drawn = [mutant for mutant in mutants if is_drawn(mutant["id"])]
    equivalent = [mutant for mutant in mutants if "equivalent" in mutant]
    if len(mutants) < MUTATIONS_MIN:
        yield f"{len(mutants)} mutations: at least {MUTATIONS_MIN}"
    if 2 * len(drawn) < len(mutants):
        yield f"{len(drawn)} of {len(mutants)} mutations are drawn: at least half"
    for area in DRAWN_FROM:
        of_area = [mutant for mutant in mutants if mutant["area"] == area]
        if len(of_area) < AREA_MUTATIONS_MIN:
            yield f"area {area} has {len(of_area)} mutations: at least {AREA_MUTATIONS_MIN}"
    if len(equivalent) > EQUIVALENT_SHARE_MAX * len(mutants):
        yield f"{len(equivalent)} of {len(mutants)} mutations are equivalent: at most 1 in 10"


def problems_of_results(mutants, known):
    """Results of other mutations than these, and mutations that no test found, whether all have run or not."""
    by_name = {mutant["id"]: mutant for mutant in mutants}
    for name, result in known.items():
        if name not in by_name:
            yield f"{name}: found.toml has a result of it, but there is no such mutation"
        elif result["digest"] != digest(by_name[name]):
            yield f"{name}: the result in found.toml is of another text of this mutation"
    for name, mutant in by_name.items():
        result = known.get(name, {}).get("result")
        if result == FOUND and "equivalent" in mutant:
            yield f"{name}: is no equivalent: {known[name]['by']} finds it"
        elif result == NOT_FOUND and "equivalent" not in mutant:
            yield f"{name}: no test finds it"


def check(_):
    mutants, known = all_mutants(), results()
    drawn = {mutant["id"] for mutant in load("drawn.toml")}
    found = list(problems(mutants, ROOT))
    if not found:
        found += [*problems_of_counts(mutants, known, drawn.__contains__), *problems_of_results(mutants, known)]
        if read_page() != page_of(mutants, known):
            found.append("README.md is not up to date: run mutants.py table")
    not_run = sum(mutant["id"] not in known for mutant in mutants)
    print("\n".join([*found, f"mutants: {len(mutants)} mutations, {not_run} have not been run, {len(found)} problems"]))
    return 1 if found else 0


def sources_of(area):
    for place in AREAS[area][0]:
        path = os.path.join(ROOT, place)
        if os.path.isfile(path):
            yield place
        for folder, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                found = os.path.relpath(os.path.join(folder, name), ROOT)
                if name.endswith((".cpp", ".hpp")) and not FILES_NOT_DRAWN.search(found):
                    yield found


def end_of_brackets(code, begin):
    """The place after the bracket that closes the one before `begin`; None if another line closes it."""
    depth = 1
    for at in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return None


def begins_statement(before):
    """Whether a new statement begins after the line `before`."""
    return before == "" or before.endswith((";", "{", "}", ":")) or before.split()[-1] == "else" or bool(
        re.match(r"\s*(} else )?(if|for|while)\b.*\)$", before))


def changes_of(line, is_first):
    """Every (kind, changed line) of a line; is_first: a statement begins with it."""
    for kind, pattern, new in OPERATORS:
        for match in pattern.finditer(line):
            yield kind, line[:match.start()] + new + line[match.end():]
    for match in CONDITION.finditer(line):
        end = end_of_brackets(line, match.end())
        if end is None:
            continue
        begin = match.end()
        inside = line[begin:end - 1]
        if "; " in inside:  # if (auto a = f(); condition)
            begin += inside.rindex("; ") + 2
        elif " = " in inside:  # if (auto a = f())
            continue
        yield "condition", f"{line[:begin]}!({line[begin:end - 1]}){line[end - 1:]}"
    call = CALL.match(line)
    if call and is_first and end_of_brackets(line, call.end()) == len(line) - 1 and line.endswith(";"):
        yield "dropped call", re.match(r"\s*", line)[0] + ";"


def statements_of(lines):
    """For each line: (the statement that it belongs to, whether the statement begins with it)."""
    begins = []
    before = ""
    for line in lines:
        begins.append(begins_statement(before))
        code = line.split("//")[0].rstrip()
        before = code or before
    for number in range(len(lines)):
        first = number
        while not begins[first]:
            first -= 1
        last = number
        while last + 1 < len(lines) and not begins[last + 1]:
            last += 1
        yield "\n".join(lines[first:last + 1]), begins[number]


def candidates(area):
    """Every mutation that could be drawn from the area: a list for each line."""
    for path in sources_of(area):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.split("\n")
        for number, (line, (statement, is_first)) in enumerate(zip(lines, statements_of(lines))):
            if "//" in line or LINES_NOT_DRAWN.search(line) or STATEMENTS_NOT_DRAWN.search(statement):
                continue
            for first in range(number, max(number - QUOTED_LINES_MAX, -1), -1):
                quoted = "\n".join(lines[first:number])
                before = quoted + "\n" if first < number else ""
                if "//" in quoted or text.count(before + line + "\n") == 1:
                    break
            if "//" in quoted or text.count(before + line + "\n") != 1:
                continue
            of_line = [{"area": area, "file": path, "kind": kind, "old": before + line + "\n",
                        "new": before + changed + "\n"} for kind, changed in changes_of(line, is_first)]
            if of_line:
                yield of_line


def toml_text(text):
    return "'''\n" + text + "'''" if "'''" not in text else json.dumps(text)


def commit():
    _, output = shell(["git", "rev-parse", "--short", "HEAD"], 60, cwd=ROOT)
    return output.strip()


def draw(args):
    """Each area in turn: mutations are equally likely. Then the line that was drawn is out."""
    rng = random.Random(args.seed)
    drawn = {(mutant["file"], mutant["old"]) for mutant in load("drawn.toml")} if args.first > 1 else set()
    lines = {area: [of_line for of_line in candidates(area) if (of_line[0]["file"], of_line[0]["old"]) not in drawn]
             for area in args.areas}
    more = f" --areas {' '.join(args.areas)} --first {args.first}" if args.first > 1 else ""
    print(f"# Drawn by: mutants.py draw --seed {args.seed} --count {args.count}{more}, from the sources of commit {commit()}")
    if args.first == 1:
        print(f"#\n{NOT_DRAWN_RULES}")
    for index in range(args.first - 1, args.first - 1 + args.count):
        area = args.areas[index % len(args.areas)]
        of_line = rng.choices(lines[area], [len(of_line) for of_line in lines[area]])[0]
        lines[area].remove(of_line)
        mutant = rng.choice(of_line)
        print(f"[[mutant]]\nid = \"drawn-{index + 1}\"\narea = \"{area}\"\nfile = \"{mutant['file']}\"")
        print(f"kind = \"{mutant['kind']}\"\nold = {toml_text(mutant['old'])}\nnew = {toml_text(mutant['new'])}\n")
    return 0


def limit_resources():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))


def shell(command, seconds, limits=None, cwd=None):
    """Returns (exit code, output). The code is None if the time was over: then all of its processes are ended."""
    with subprocess.Popen(command, cwd=cwd or TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                          preexec_fn=limits) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def build(test, jobs):
    return shell(["cmake", "--build", "build/release", "--target", BUILT_FOR.get(test, test), "-j", str(jobs)], 3600)


def run_test(test, seconds):
    return shell(["ctest", "--test-dir", "build/release", "-R", f"^{test}$", "--no-tests=error", "--output-on-failure"],
                 seconds, limit_resources)


def seconds_max(normal):
    """The time that a test has, in seconds, if it takes `normal` seconds without a mutation."""
    return max(10, 5 * normal + 5)


def prepare_tree():
    if not os.path.exists(TREE):
        os.makedirs(os.path.dirname(TREE), exist_ok=True)
        subprocess.run(["git", "worktree", "add", "--detach", TREE, "HEAD"], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach",
                    subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()],
                   cwd=TREE, check=True)
    if not os.path.exists(os.path.join(TREE, "build", "release", "build.ninja")):
        # A warning is no finding: a mutation counts only when a test finds it.
        subprocess.run(["cmake", "--preset", "release", "-Wno-dev", "-DKILOKV_CUDA=OFF", "-DCMAKE_CXX_FLAGS=-w"],
                       cwd=TREE, check=True)


def tests_of(mutant):
    """In the order in which they are asked: those of the mutation, then the others of its area."""
    first = mutant.get("tests", [])
    return [*first, *(test for test in AREAS[mutant["area"]][1] if test not in first)]


def measure(mutants, jobs):
    """Returns the seconds of each test without a mutation. Measures those that no earlier run measured."""
    times = {}
    if os.path.exists(TIMES):
        with open(TIMES, encoding="utf-8") as file:
            times = json.load(file)
    wanted = dict.fromkeys(test for mutant in mutants for test in tests_of(mutant))
    missing = [test for test in wanted if test not in times]
    for number, test in enumerate(missing, 1):
        code, output = build(test, jobs)
        if code != 0:
            sys.exit(f"mutants: {test} does not build without a mutation:\n{output[-2000:]}")
        begin = time.monotonic()
        code, output = run_test(test, 900)
        if code != 0:
            sys.exit(f"mutants: {test} fails without a mutation:\n{output[-2000:]}")
        times[test] = round(time.monotonic() - begin, 2)
        print(f"[{number}/{len(missing)}] {test} takes {times[test]} s without a mutation", flush=True)
        with open(TIMES, "w", encoding="utf-8") as file:
            json.dump(times, file, indent=1)
    return times


def try_one(mutant, times, jobs):
    """Plants it; returns (result, what found it). The result is None if the mutation does not apply to the tree."""
    path = os.path.join(TREE, mutant["file"])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changed = apply_to(text, mutant)
    if changed is None:
        return None, "does not apply to the last commit"
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        for test in tests_of(mutant):
            code, output = build(test, jobs)
            if code != 0:
                return NOT_COMPILED, ""
            code, output = run_test(test, seconds_max(times[test]))
            if code is None:
                return FOUND, f"{test}: timeout"
            if code != 0:
                failed = re.search(r"\[  FAILED  \] ([\w./]+)|^FAILED (\w+)|^(?:FAIL|ERROR): (\w+) ", output, re.M)
                case = next(filter(None, failed.groups()), "") if failed else ""
                return FOUND, f"{test}{': ' + case if case else ''}"
        return NOT_FOUND, ""
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def results():
    return {result["id"]: result for result in load("found.toml")}


def write_results(known):
    with open(os.path.join(HERE, "found.toml"), "w", encoding="utf-8") as file:
        file.write("# Written by mutants.py run. digest: of the mutation that the result is of.\n")
        for mutant in all_mutants():
            result = known.get(mutant["id"])
            if result is not None:
                file.write(f"\n[[mutant]]\nid = \"{mutant['id']}\"\ndigest = \"{result['digest']}\"\n"
                           f"result = \"{result['result']}\"\nby = \"{result['by']}\"\n")


def run(args):
    mutants = all_mutants()
    if list(problems(mutants, ROOT)):
        return check(args)
    known = results()
    meant = [mutant for mutant in mutants if re.search(args.only, f"{mutant['area']}/{mutant['id']}")]
    if not meant:
        print(f"mutants: no AREA/NAME matches {args.only}", file=sys.stderr)
        return 2
    wanted = []
    for mutant in meant:
        old = known.get(mutant["id"], {})
        if old.get("digest") != digest(mutant) or (args.missed and old["result"] == NOT_FOUND):
            wanted.append(mutant)
    prepare_tree()
    times = measure(wanted, args.j)
    for number, mutant in enumerate(wanted, 1):
        begin = time.monotonic()
        result, by = try_one(mutant, times, args.j)
        seconds = round(time.monotonic() - begin)
        print(f"[{number}/{len(wanted)}] {mutant['id']}: {result or ''} {by} ({seconds} s)", flush=True)
        if result is not None:
            known[mutant["id"]] = {"digest": digest(mutant), "result": result, "by": by}
            write_results(known)
            write_page()
    missed = [mutant["id"] for mutant in mutants
              if known.get(mutant["id"], {}).get("result") == NOT_FOUND and "equivalent" not in mutant]
    not_run = sum(mutant["id"] not in known for mutant in mutants)
    print(f"mutants: {len(mutants)} mutations, {not_run} have not been run, {len(missed)} were not found: "
          f"{' '.join(missed)}")
    return 1 if missed else 0


def change_of(mutant):
    """The change in one line of a Markdown table."""
    new = mutant["new"].strip()
    kind = mutant.get("kind") or ("dropped" if new in ("", ";") else "changed")
    line = mutant["old"].strip().split("\n")[-1].strip()
    line = line if len(line) <= LINE_SHOWN_MAX else line[:LINE_SHOWN_MAX - 3] + "..."
    return f"{kind}: `{line}`".replace("|", "\\|")


def page_of(mutants, known):
    by_result = {FOUND: 0, NOT_FOUND: 0, NOT_COMPILED: 0, "equivalent": 0, NOT_RUN: 0}
    rows, arguments = [], []
    for mutant in mutants:
        result = known.get(mutant["id"], {"result": NOT_RUN, "by": ""})
        outcome = result["result"]
        if "equivalent" in mutant and outcome in (NOT_FOUND, NOT_RUN):
            outcome = "equivalent"
            arguments.append(f"- {mutant['id']}: {mutant['equivalent']}\n")
        by_result[outcome] += 1
        rows.append(f"| {mutant['id']} | {mutant['area']} | `{mutant['file']}` | {change_of(mutant)} | {outcome} | "
                    f"{result['by']} |\n")
    by_area = "".join(
        f"| {area} | {sum(mutant['area'] == area for mutant in mutants)} | "
        f"{sum(mutant['area'] == area for mutant in counted(mutants, known))} |\n" for area in AREAS)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in by_result.items() if count > 0)
    return f"""\
# Mutations

A mutation is a planted bug that some test has to find. `chosen.toml` holds those that were chosen, `drawn.toml` those
that were drawn by a seed. The script `mutants.py` plants and runs them, and writes this page.

{len(mutants)} mutations: {counts}. Mutations that do not compile do not count.

| area | mutations | that count |
| --- | --- | --- |
{by_area}
## Equivalent mutations

They give the same results as the code without them, so no test can find them.

{''.join(arguments) or "There are none." + chr(10)}
## All mutations

| mutation | area | file | change | result | first test that finds it |
| --- | --- | --- | --- | --- | --- |
{''.join(rows)}"""


def read_page():
    path = os.path.join(HERE, "README.md")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_page():
    with open(os.path.join(HERE, "README.md"), "w", encoding="utf-8") as file:
        file.write(page_of(all_mutants(), results()))


def table(_):
    write_page()
    return 0


def main():
    parser = argparse.ArgumentParser(description="Mutations of the product, each of which some test has to find.")
    commands = parser.add_subparsers(required=True, metavar="check|draw|run|table")
    commands.add_parser("check", help="every mutation still applies, and every result holds").set_defaults(run=check)
    drawing = commands.add_parser("draw", help="draw mutations from the product's lines")
    drawing.add_argument("--seed", type=int, required=True)
    drawing.add_argument("--count", type=int, required=True)
    drawing.add_argument("--areas", nargs="+", choices=AREAS, default=DRAWN_FROM, metavar="AREA")
    drawing.add_argument("--first", type=int, default=1, help="number of the first; those before it stay as they are")
    drawing.set_defaults(run=draw)
    running = commands.add_parser("run", help="plant, build and test those that have no result yet")
    running.add_argument("--only", default="", metavar="REGEX", help="mutations whose AREA/NAME matches, such as ^core/ (default: all)")
    running.add_argument("--missed", action="store_true", help="also run those again that no test found")
    running.add_argument("-j", type=int, default=os.cpu_count(), metavar="N",
                         help="compilers at a time (default: as many as there are cores)")
    running.set_defaults(run=run)
    commands.add_parser("table", help="write README.md, the table of all mutations").set_defaults(run=table)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
