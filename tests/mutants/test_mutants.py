#!/usr/bin/env python3
"""The script of the mutations finds each wrong mutation and each wrong result, and draws by its rules."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from unittest import mock

import mutants

SOURCE = "int a = 1;\nint b = 2;\nint c = 1;\n"


def mutant(name, old="int a = 1;", new="int a = 2;", area="table", **more):
    return {"id": name, "area": area, "file": "engine/a.cpp", "old": old, "new": new, **more}


def result(of, outcome=mutants.FOUND, by="engine_table_test"):
    return {"id": of["id"], "digest": mutants.digest(of), "result": outcome, "by": by}


def known(*results):
    return {one["id"]: one for one in results}


class ProblemsTest(unittest.TestCase):
    def problems(self, *of):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "engine"))
            with open(os.path.join(root, "engine", "a.cpp"), "w", encoding="utf-8") as file:
                file.write(SOURCE)
            return list(mutants.problems(of, root))

    def test_good_ones_have_none(self):
        self.assertEqual(self.problems(mutant("one"), mutant("two", "int b = 2;", ""),
                                       mutant("three", "int c = 1;", "int c = 2;", tests=["engine_table_test"])), [])

    def test_two_of_one_name(self):
        self.assertEqual(self.problems(mutant("one"), mutant("one", "int b = 2;")),
                         ["one: two mutations have this name"])

    def test_an_unknown_area(self):
        self.assertIn("one: area shoes: one of", self.problems(mutant("one", area="shoes"))[0])

    def test_a_test_of_another_area(self):
        self.assertEqual(self.problems(mutant("one", tests=["storage_test"])),
                         ["one: storage_test is no test of the area table"])

    def test_a_missing_file(self):
        self.assertEqual(self.problems({**mutant("one"), "file": "engine/b.cpp"}), ["one: there is no engine/b.cpp"])

    def test_an_old_text_that_is_not_there_once(self):
        for old, times in {"int d": 0, " = 1;": 2}.items():
            self.assertEqual(self.problems(mutant("one", old)),
                             [f"one: engine/a.cpp has the old text {times} times, not once"])

    def test_a_new_text_that_is_the_old_one(self):
        self.assertEqual(self.problems(mutant("one", new="int a = 1;")), ["one: the new text is the old one"])

    def test_one_mutation_twice(self):
        self.assertEqual(self.problems(mutant("one"), mutant("two")), ["two: the same mutation as one"])


class CountsTest(unittest.TestCase):
    @staticmethod
    def problems(all_mutants, results=()):
        return list(mutants.problems_of_counts(all_mutants, known(*results), lambda name: name.startswith("drawn")))

    @staticmethod
    def enough():
        """Twelve of each area, half of them drawn."""
        return [mutant(f"{'drawn' if i % 2 else 'chosen'}-{area}-{i}", new=f"{area} {i}", area=area)
                for area in mutants.DRAWN_FROM for i in range(12)]

    def test_enough(self):
        self.assertEqual(self.problems(self.enough()), [])

    def test_too_few(self):
        few = self.enough()[:59]
        self.assertIn("59 mutations: at least 60", self.problems(few))

    def test_too_few_of_an_area(self):
        few = [one for one in self.enough() if one["area"] != "stm"]
        self.assertIn("area stm has 0 mutations: at least 8", self.problems(few))

    def test_too_few_drawn(self):
        few = [one for one in self.enough() if one["id"] != "drawn-txn-1"]
        self.assertEqual(self.problems(few), ["35 of 71 mutations are drawn: at least half"])

    def test_those_that_do_not_compile_do_not_count(self):
        every = self.enough()
        broken = [result(one, mutants.NOT_COMPILED, "") for one in every if one["area"] == "core"][:5]
        self.assertIn("area core has 7 mutations: at least 8", self.problems(every, broken))

    def test_too_many_equivalent(self):
        every = self.enough()
        for one in every[:7]:
            one["equivalent"] = "It is the same."
        self.assertEqual(self.problems(every), [])
        every[7]["equivalent"] = "It is the same."
        self.assertEqual(self.problems(every), ["8 of 72 mutations are equivalent: at most 1 in 10"])


class ResultsTest(unittest.TestCase):
    one = mutant("one")
    two = mutant("two", "int b = 2;")

    def problems(self, *results, of=None):
        return list(mutants.problems_of_results(of or [self.one, self.two], known(*results)))

    def test_missing_results_are_no_problem(self):
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(result(self.one)), [])

    def test_one_that_was_not_found(self):
        missed = result(self.two, mutants.NOT_FOUND, "")
        self.assertEqual(self.problems(result(self.one), missed), ["two: no test finds it"])
        self.assertEqual(self.problems(missed), ["two: no test finds it"])  # though the other one has not run

    def test_an_equivalent_one_need_not_be_found_and_must_not_be(self):
        same = {**self.two, "equivalent": "It is the same."}
        self.assertEqual(self.problems(result(self.one), result(same, mutants.NOT_FOUND, ""), of=[self.one, same]), [])
        self.assertEqual(self.problems(result(self.one), result(same), of=[self.one, same]),
                         ["two: is no equivalent: engine_table_test finds it"])

    def test_a_result_of_another_text(self):
        self.assertEqual(self.problems(result(mutant("one", new="int a = 3;"))),
                         ["one: the result in found.toml is of another text of this mutation"])

    def test_a_result_of_no_mutation(self):
        self.assertEqual(self.problems(result(mutant("three"))),
                         ["three: found.toml has a result of it, but there is no such mutation"])


class FolderTest(unittest.TestCase):
    """With a folder of its own: mutations, results and the page of both."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("engine/a.cpp", SOURCE)
        for name, value in {"HERE": self.root, "ROOT": self.root, "MUTATIONS_MIN": 1, "AREA_MUTATIONS_MIN": 0}.items():
            patch = mock.patch.object(mutants, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.write("drawn.toml", '[[mutant]]\nid = "one"\narea = "table"\nfile = "engine/a.cpp"\nkind = "constant"\n'
                                 "old = '''\nint a = 1;\n'''\nnew = '''\nint a = 2;\n'''\n")

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def check(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = mutants.check(None)
        return code, output.getvalue()

    def test_the_page_must_be_up_to_date(self):
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn("README.md is not up to date", output)
        mutants.table(None)
        self.assertEqual(self.check(), (0, "mutants: 1 mutations, 1 have not been run, 0 problems\n"))
        mutants.write_results(known(result(mutants.all_mutants()[0])))
        self.assertEqual(self.check()[0], 1)
        mutants.table(None)
        self.assertEqual(self.check(), (0, "mutants: 1 mutations, 0 have not been run, 0 problems\n"))

    def test_results_are_read_as_they_were_written(self):
        results = known(result(mutants.all_mutants()[0], by="core_test: A.B"))
        mutants.write_results(results)
        self.assertEqual(mutants.results(), results)

    def test_the_page_names_the_change_and_the_test(self):
        self.write("engine/a.cpp", "if (a || b) c();\n")
        page = mutants.page_of([mutant("one", "if (a || b) c();", "", kind="condition")],
                               known(result(mutant("one", "if (a || b) c();", ""))))
        self.assertIn("| one | table | `engine/a.cpp` | condition: `if (a \\|\\| b) c();` | found | ", page)
        self.assertIn(" | engine_table_test |", page)

    def test_a_change_of_a_mutation_is_found(self):
        mutants.write_results(known(result(mutants.all_mutants()[0])))
        mutants.table(None)
        self.write("engine/a.cpp", "int a = 7;\n")
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn("has the old text 0 times", output)

    def test_a_command_that_hangs_is_ended_with_all_of_its_processes(self):
        with mock.patch.object(mutants, "TREE", self.root):
            code, output = mutants.shell(["sh", "-c", "echo $$; sleep 1000"], 0.3, mutants.limit_resources)
        self.assertIsNone(code)
        self.assertFalse(os.path.exists(f"/proc/{output.strip()}"))


class TryTest(unittest.TestCase):
    """Plants a mutation in a tree whose tests are played."""

    def try_one(self, one, outcomes, builds=True):
        """outcomes: of each test in turn, (exit code, output). Returns the result and how many tests were asked."""
        asked = []

        def run_test(test, seconds):
            with open(os.path.join(tree, "engine", "a.cpp"), encoding="utf-8") as file:
                self.assertNotEqual(file.read(), SOURCE)
            asked.append((test, seconds))
            return outcomes[len(asked) - 1]

        with tempfile.TemporaryDirectory() as tree, mock.patch.object(mutants, "TREE", tree), \
                mock.patch.object(mutants, "build", lambda test, jobs: (0 if builds else 1, "")), \
                mock.patch.object(mutants, "run_test", run_test):
            path = os.path.join(tree, "engine", "a.cpp")
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(SOURCE)
            tried = mutants.try_one(one, {test: 3 for test in mutants.AREAS["table"][1]}, 1)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), SOURCE)
        self.assertEqual([test for test, _ in asked], mutants.tests_of(one)[:len(asked)])
        self.assertTrue(all(seconds == 20 for _, seconds in asked))
        return tried, len(asked)

    def test_the_first_test_that_fails_finds_it(self):
        output = "ok     one\nFAILED another\n2 tests, 1 failed\n"
        self.assertEqual(self.try_one(mutant("one"), [(0, ""), (8, output)]),
                         ((mutants.FOUND, "engine_table_test: another"), 2))

    def test_the_case_of_the_other_kind_of_test(self):
        output = "[ RUN      ] A.B\n[  FAILED  ] A.B (0 ms)\n[  FAILED  ] 1 test, listed below:\n"
        self.assertEqual(self.try_one(mutant("one"), [(8, output)])[0],
                         (mutants.FOUND, "engine_tombstone_queue_test: A.B"))

    def test_a_test_that_hangs_has_found_it(self):
        self.assertEqual(self.try_one(mutant("one"), [(None, "")])[0],
                         (mutants.FOUND, "engine_tombstone_queue_test: timeout"))

    def test_none_finds_it(self):
        tests = len(mutants.AREAS["table"][1])
        self.assertEqual(self.try_one(mutant("one"), [(0, "")] * tests), ((mutants.NOT_FOUND, ""), tests))

    def test_one_that_does_not_compile_asks_no_test(self):
        self.assertEqual(self.try_one(mutant("one"), [], builds=False), ((mutants.NOT_COMPILED, ""), 0))

    def test_one_that_does_not_apply_has_no_result(self):
        self.assertIsNone(self.try_one(mutant("one", "int d = 1;"), [])[0][0])


class DrawTest(unittest.TestCase):
    LINES = """\
bool f(int a, int b) {
  if (a < b && b > 0) return true;
  g(a);
  if (const Status s = h(a); s != kNone) return false;
  throw_away(a)  // with a comment: a < b
      .of(b);
  message("a < b" + a,
          a < b);
  KILOKV_CHECK(a < b);
  keys.reserve(a + b);
  int found = 0;
  Named(a);
  return a + b;
}
"""

    def candidates(self, lines=LINES):
        with tempfile.TemporaryDirectory() as root, mock.patch.object(mutants, "ROOT", root):
            os.makedirs(os.path.join(root, "engine", "table"))
            with open(os.path.join(root, "engine", "table", "a.cpp"), "w", encoding="utf-8") as file:
                file.write(lines)
            return [one for of_line in mutants.candidates("table") for one in of_line]

    def new_lines(self, lines=LINES):
        return [one["new"].rstrip("\n").split("\n")[-1].strip() for one in self.candidates(lines)]

    def test_what_is_drawn(self):
        self.assertEqual(self.new_lines(), [
            "if (a < b || b > 0) return true;",
            "if (a <= b && b > 0) return true;",
            "if (a < b && b >= 0) return true;",
            "if (a < b && b > 1) return true;",
            "if (a < b && b > 0) return false;",
            "if (!(a < b && b > 0)) return true;",
            ";",
            "if (const Status s = h(a); s == kNone) return false;",
            "if (const Status s = h(a); s != kNone) return true;",
            "if (const Status s = h(a); !(s != kNone)) return false;",
            "return a - b;",
        ])

    def test_a_line_that_is_there_twice_is_quoted_with_those_before_it(self):
        found = self.candidates("a = 1;\nreturn true;\nb = 1;\nreturn true;\n")
        self.assertEqual([one["old"] for one in found if "return" in one["old"]],
                         ["a = 1;\nreturn true;\n", "b = 1;\nreturn true;\n"])

    def test_each_old_text_is_there_once(self):
        for area in mutants.DRAWN_FROM:
            for of_line in list(mutants.candidates(area))[::25]:
                with open(os.path.join(mutants.ROOT, of_line[0]["file"]), encoding="utf-8") as file:
                    text = file.read()
                for one in of_line:
                    self.assertIsNotNone(mutants.apply_to(text, one))
                    self.assertNotIn("//", one["old"])

    def test_a_draw_is_the_same_again_and_draws_no_line_twice(self):
        lines = [f"  a{i} = b{i} + c{i} - {i % 2};" for i in range(20)]
        candidates = [[{"area": "table", "file": "a.cpp", "kind": "operator", "old": line + "\n",
                        "new": line.replace("+", "-") + "\n"}] for line in lines]
        drawn = []
        for _ in range(2):
            output = io.StringIO()
            with mock.patch.object(mutants, "candidates", lambda area: candidates), \
                    contextlib.redirect_stdout(output):
                mutants.draw(mock.Mock(seed=1, count=20, areas=["table"], first=1))
            drawn.append(output.getvalue())
        self.assertEqual(drawn[0], drawn[1])
        olds = re.findall(r"^old = '''\n(.*)$", drawn[0], re.M)
        self.assertEqual(sorted(olds), sorted(lines))

    def test_a_later_draw_goes_on_with_the_lines_that_are_left(self):
        candidates = [[{"area": "table", "file": "a.cpp", "kind": "operator", "old": f"  a{i} + b;\n",
                        "new": f"  a{i} - b;\n"}] for i in range(4)]
        output = io.StringIO()
        with mock.patch.object(mutants, "candidates", lambda area: candidates), \
                mock.patch.object(mutants, "load", lambda _: [candidates[1][0], candidates[3][0]]), \
                contextlib.redirect_stdout(output):
            mutants.draw(mock.Mock(seed=1, count=2, areas=["table"], first=3))
        self.assertEqual(sorted(re.findall(r"^old = '''\n  (a.) ", output.getvalue(), re.M)), ["a0", "a2"])
        self.assertEqual(re.findall(r"^id = (.*)$", output.getvalue(), re.M), ['"drawn-3"', '"drawn-4"'])


class RunTest(unittest.TestCase):
    def test_a_name_that_no_mutation_has(self):
        told = io.StringIO()
        with mock.patch.object(mutants, "all_mutants", lambda: [mutant("one")]), \
                mock.patch.object(mutants, "problems", lambda *_: []), contextlib.redirect_stderr(told):
            self.assertEqual(mutants.run(mock.Mock(only="^one$")), 2)
        self.assertEqual(told.getvalue(), "mutants: no AREA/NAME matches ^one$\n")


class TimesTest(unittest.TestCase):
    def test_a_test_has_five_times_its_time_and_some_more(self):
        self.assertEqual(mutants.seconds_max(0.1), 10)
        self.assertEqual(mutants.seconds_max(2), 15)

    def test_the_tests_of_a_mutation_come_first_and_once(self):
        first = mutants.AREAS["table"][1][3]
        tests = mutants.tests_of(mutant("one", tests=[first]))
        self.assertEqual(tests[0], first)
        self.assertEqual(sorted(tests), sorted(mutants.AREAS["table"][1]))


if __name__ == "__main__":
    unittest.main()
