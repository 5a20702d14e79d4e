#!/usr/bin/env python3
"""Mutations of the product, each of which some test has to find.

A mutation is a planted bug: one text of one file is replaced by another text. chosen.toml holds mutations that were
chosen, drawn.toml those that `draw` drew from the product's lines by a seed. found.toml says what found each of them.

  mutants.py check                     every mutation still applies, and has an area and a name of its own
  mutants.py draw --seed 1 --count 40  prints drawn.toml: conditions, constants, operators and calls, drawn by area
  mutants.py run [--only REGEX]        plants each mutation that has no result yet, builds, tests, and notes the result
  mutants.py table                     prints the table of all mutations and their results (docs of this folder)

`run` works in a checkout of its own, build/mutants/tree, so that the tree at hand is never changed. It can be ended and
started again at any time. A result is kept with the mutation that it is of: a mutation that changes is run again.

Exit codes: 0 all is well; 1 a mutation does not apply, or was not found; 2 wrong usage.
"""

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
TREE = os.path.join(ROOT, "build", "mutants", "tree")

# Area -> its sources, and the tests that are asked, in this order. The first that fails has found the mutation.
AREAS = {
    "table": (["engine/table"], ["engine_tombstone_queue_test", "engine_table_test", "engine_record_store_test",
                                 "engine_bulk_table_test", "engine_engine_test", "engine_ranges_test", "core_test"]),
    "txn": (["engine/txn", "server/service/decode_rows.cpp", "server/service/decode_columns.cpp"],
            ["engine_validate_test", "engine_columns_test", "engine_interpreter_test", "engine_serial_test",
             "engine_differential_test", "engine_ranges_test", "service_unit_test"]),
    "stm": (["engine/stm"], ["engine_serial_test", "engine_ordered_sim_test", "engine_prstm_sim_test",
                             "engine_lock_sim_test", "engine_gpustm_sim_test", "engine_kilo_sim_test",
                             "engine_local_sim_test", "engine_validator_sim_test", "engine_weak_orders_sim_test",
                             "engine_ordered_watchdog_test", "engine_any_order_test", "engine_epochs_test"]),
    "exec": (["engine/exec", "engine/engine.cpp"],
             ["engine_engine_test", "engine_delta_settling_test", "engine_record_store_test", "engine_device_loss_test",
              "engine_device_records_test", "engine_stage_plan_test", "engine_read_set_test",
              "engine_strategy_choice_test", "engine_contention_test", "engine_any_order_test",
              "engine_random_batch_test", "engine_allocation_test", "core_test"]),
    "referee": (["engine/referee"], ["engine_referee_test", "engine_differential_test"]),
    "core": (["server/core"], ["core_test", "storage_test"]),
    "storage": (["server/storage"], ["storage_test", "core_test"]),
}
DRAWN_FROM = ["table", "txn", "stm", "exec", "core", "storage"]

# What a drawn mutation does to a line: name, what it looks for, and what it puts there.
OPERATORS = [
    ("condition", re.compile(r"\bif \((?!constexpr)(.+)\)(?= [{\w]|$)"), lambda m: f"if (!({m[1]}))"),
    ("operator", re.compile(r" && "), lambda m: " || "),
    ("operator", re.compile(r" \|\| "), lambda m: " && "),
    ("operator", re.compile(r" < "), lambda m: " <= "),
    ("operator", re.compile(r" <= "), lambda m: " < "),
    ("operator", re.compile(r" > "), lambda m: " >= "),
    ("operator", re.compile(r" >= "), lambda m: " > "),
    ("operator", re.compile(r" == "), lambda m: " != "),
    ("operator", re.compile(r" != "), lambda m: " == "),
    ("operator", re.compile(r" \+ "), lambda m: " - "),
    ("operator", re.compile(r" - "), lambda m: " + "),
    ("constant", re.compile(r"(?<![\w.'])0(?![\w.'])"), lambda m: "1"),
    ("constant", re.compile(r"(?<![\w.'])1(?![\w.'])"), lambda m: "2"),
    ("constant", re.compile(r"\btrue\b"), lambda m: "false"),
    ("constant", re.compile(r"\bfalse\b"), lambda m: "true"),
    ("dropped call", re.compile(r"^(\s+)(?!return\b|throw\b|delete\b)[\w.>:\[\]()*-]+\([^{}]*\);$"), lambda m: m[1] + ";"),
]
# Lines whose change nobody can notice or compile: declarations, assertions, comments, templates.
NOT_DRAWN = re.compile(r"^\s*(//|#|template|static_assert|using|namespace|KILOKV_CHECK|public:|private:|}|case |friend)|"
                       r"operator|\bvirtual\b|= default|= delete|noexcept|std::function<|prefetch|reserve\(|probe\(|"
                       r"^\s+(?:static |constexpr |inline |const )*[\w:<>, ]+ \w+_? ?(?:= [\w{}.]+)?;")


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
    names = set()
    for mutant in mutants:
        name = mutant.get("id", "?")
        if name in names:
            yield f"{name}: two mutations have this name"
        names.add(name)
        if mutant.get("area") not in AREAS:
            yield f"{name}: area {mutant.get('area')}: one of {', '.join(AREAS)}"
            continue
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


def check(_):
    mutants = all_mutants()
    found = list(problems(mutants, ROOT))
    print("\n".join([*found, f"mutants: {len(mutants)} mutations, {len(found)} do not apply"]))
    return 1 if found or not mutants else 0


def sources_of(area):
    for place in AREAS[area][0]:
        path = os.path.join(ROOT, place)
        if os.path.isfile(path):
            yield place
        for folder, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                if name.endswith((".cpp", ".hpp")) and not name.startswith("no_cuda"):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def candidates(area):
    """Every mutation that could be drawn from the area, where its line stands once in its file."""
    for path in sources_of(area):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        for number, line in enumerate(lines, 1):
            if NOT_DRAWN.search(line) or lines.count(line) != 1 or '"' in line:
                continue
            code = line.split("//")[0].rstrip()
            for kind, pattern, new in OPERATORS:
                for match in pattern.finditer(code):
                    changed = code[:match.start()] + new(match) + code[match.end():]
                    yield {"area": area, "file": path, "line": number, "kind": kind, "old": line + "\n",
                           "new": changed + "\n"}


def toml_text(text):
    return "'''\n" + text + "'''" if "'''" not in text else repr(text)


def draw(args):
    rng = random.Random(args.seed)
    print(f"# Drawn by: mutants.py draw --seed {args.seed} --count {args.count}\n")
    for index in range(args.count):
        area = DRAWN_FROM[index % len(DRAWN_FROM)]
        mutant = rng.choice(list(candidates(area)))
        print(f"[[mutant]]\nid = \"drawn-{args.seed}-{index + 1}\"\narea = \"{area}\"\nfile = \"{mutant['file']}\"")
        print(f"kind = \"{mutant['kind']}\"\nold = {toml_text(mutant['old'])}\nnew = {toml_text(mutant['new'])}\n")
    return 0


def shell(command, seconds, cwd=None):
    try:
        done = subprocess.run(command, cwd=cwd, timeout=seconds, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


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


def try_one(mutant):
    """Plants it; returns (result, test): found, not found, or does not compile."""
    path = os.path.join(TREE, mutant["file"])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changed = apply_to(text, mutant)
    if changed is None:
        return "does not apply", ""
    tests = mutant.get("tests") or AREAS[mutant["area"]][1]
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        for test in tests:
            code, output = shell(["cmake", "--build", "build/release", "--target", test], 1800, TREE)
            if code != 0:
                return "does not compile", output.strip().split("\n")[-1][:200]
            code, output = shell(["ctest", "--test-dir", "build/release", "-R", f"^{test}$", "--timeout", "120",
                                  "--output-on-failure"], 400, TREE)
            if code != 0:
                failed = re.search(r"\[  FAILED  \] ([\w./]+)|^FAILED (\w+)|not ok (\w+)", output, re.M)
                case = next(filter(None, failed.groups()), "") if failed else ""
                return "found", f"{test}{': ' + case if case else ''}"
        return "not found", ""
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def results():
    return {result["id"]: result for result in load("found.toml")}


def write_results(known):
    with open(os.path.join(HERE, "found.toml"), "w", encoding="utf-8") as file:
        file.write("# Written by mutants.py run. digest: of the mutation that the result is of.\n")
        for name in sorted(known):
            result = known[name]
            file.write(f"\n[[mutant]]\nid = \"{name}\"\ndigest = \"{result['digest']}\"\nresult = \"{result['result']}\"\n"
                       f"by = {toml_text(result['by']) if chr(39) in result['by'] else repr(result['by'])}\n")


def run(args):
    if list(problems(all_mutants(), ROOT)):
        return check(args)
    prepare_tree()
    known = results()
    for mutant in all_mutants():
        name = mutant["id"]
        if not re.search(args.only, name) or known.get(name, {}).get("digest") == digest(mutant):
            continue
        result, by = try_one(mutant)
        known[name] = {"digest": digest(mutant), "result": result, "by": by.replace("'", "")}
        print(f"{name}: {result} {by}", flush=True)
        write_results(known)
    missed = [name for name, result in known.items() if result["result"] != "found"]
    print(f"mutants: {len(known)} run, {len(missed)} not found")
    return 1 if missed else 0


def table(_):
    known = results()
    print("| mutation | area | file | result | first test that finds it |\n| --- | --- | --- | --- | --- |")
    for mutant in all_mutants():
        result = known.get(mutant["id"], {})
        if result.get("digest") != digest(mutant):
            result = {"result": "not run", "by": ""}
        equivalent = mutant.get("equivalent")
        outcome = f"equivalent: {equivalent}" if equivalent else result["result"]
        print(f"| {mutant['id']} | {mutant['area']} | `{mutant['file']}` | {outcome} | {result['by']} |")
    return 0


def main():
    parser = argparse.ArgumentParser(description="Mutations of the product, each of which some test has to find.")
    commands = parser.add_subparsers(required=True, metavar="check|draw|run|table")
    commands.add_parser("check", help="every mutation still applies").set_defaults(run=check)
    drawing = commands.add_parser("draw", help="draw mutations from the product's lines")
    drawing.add_argument("--seed", type=int, required=True)
    drawing.add_argument("--count", type=int, required=True)
    drawing.set_defaults(run=draw)
    running = commands.add_parser("run", help="plant, build and test those that have no result yet")
    running.add_argument("--only", default="", metavar="REGEX", help="mutations whose names match (default: all)")
    running.set_defaults(run=run)
    commands.add_parser("table", help="print the table").set_defaults(run=table)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
