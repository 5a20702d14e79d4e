#!/usr/bin/env python3
"""The layout check finds planted violations, and lets through what is allowed."""

import os
import tempfile
import unittest
from unittest import mock

from check_layout import MAY_INCLUDE, stale_rules, violations


class LayoutTest(unittest.TestCase):
    def check(self, files):
        """Violations in a checkout of these files and of the headers below."""
        with tempfile.TemporaryDirectory() as root:
            headers = ["engine/base/types.hpp", "engine/table/table.hpp", "engine/txn/program.hpp",
                       "engine/stm/serial.hpp", "engine/engine.hpp", "engine/referee/referee.hpp",
                       "engine/workloads/workload.hpp",
                       "server/core/database.hpp", "server/core/options.hpp", "server/core/commit_log.hpp",
                       "server/core/clients/client.hpp", "server/core/sessions/session_table.hpp",
                       "server/core/waiting/waiting.hpp", "server/core/reads/reader.hpp",
                       "server/core/pipeline/batcher.hpp", "server/core/checkpoint/recovery.hpp",
                       "server/storage/rocksdb_log.hpp", "server/service/service.hpp",
                       "client/lib/include/kilokv/client.hpp", "client/bench/run.hpp"]
            for path, text in {**{header: "" for header in headers}, **files}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(violations(root))

    def assert_found(self, path, text, rule):
        self.assertEqual(self.check({path: text + "\n"}), [f"{path}:1: {rule}"])

    def test_allowed(self):
        self.assertEqual(self.check({
            "engine/stm/a.hpp": '#include "engine/table/table.hpp"\n#include <vector>\n',
            "engine/engine.cpp": '#include "engine/engine.hpp"\n#include "engine/stm/serial.hpp"\n',
            "engine/bench/main.cpp": '#include "engine/stm/serial.hpp"\n#include "engine/referee/referee.hpp"\n',
            "engine/bench/clock.cpp": "#include <chrono>\n",
            "server/core/a.cpp": '#include "engine/engine.hpp"\n#include "engine/base/types.hpp"\n',
            "server/core/threads.cpp": "#include <thread>\n",
            "server/storage/a.cpp": '#include <rocksdb/db.h>\n#include "server/core/commit_log.hpp"\n',
            "server/service/a.cpp": '#include <grpcpp/grpcpp.h>\n#include "kilokv/v1/kilokv.pb.h"\n',
            "server/main.cpp": '#include "server/storage/rocksdb_log.hpp"\n#include "server/service/service.hpp"\n',
            "server/config.cpp": '#include "server/config.hpp"\n#include "server/core/options.hpp"\n',
            "server/config.hpp": "#pragma once\n",
            "client/lib/src/a.cpp": '#include "kilokv/client.hpp"\n#include "kilokv/v1/kilokv.grpc.pb.h"\n',
            "client/bench/a.cpp": '#include "engine/workloads/workload.hpp"\n#include "kilokv/client.hpp"\n',
            "engine/platform/cuda.hpp": "#ifdef __CUDA_ARCH__\n#endif\n",
            "tests/unit/core/a_test.cpp": '#include <gtest/gtest.h>\n#include <thread>\n#include "engine/engine.hpp"\n',
            "docs/a.md": "kilokvd --data-dir ./data, homework/, ~/data\n",
        }), [])

    def test_stale_rules(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        self.assertEqual(list(stale_rules(root)), [])
        with mock.patch.dict(MAY_INCLUDE, {"engine/gone": []}):
            self.assertEqual(list(stale_rules(root)), [
                "tests/layout/check_layout.py: a rule speaks of engine/gone, which is not there"])

    def test_upward_includes(self):
        for path, included in [
                ("engine/base/a.hpp", "engine/txn/program.hpp"), ("engine/table/a.hpp", "engine/stm/serial.hpp"),
                ("engine/stm/a.hpp", "engine/engine.hpp"), ("engine/txn/a.cpp", "engine/referee/referee.hpp"),
                ("engine/base/a.hpp", "server/core/database.hpp"), ("server/core/a.cpp", "engine/table/table.hpp"),
                ("server/core/a.cpp", "server/storage/rocksdb_log.hpp"),
                ("server/core/a.cpp", "server/service/service.hpp"), ("server/core/a.cpp", "kilokv/v1/kilokv.pb.h"),
                ("server/storage/a.cpp", "server/service/service.hpp"),
                ("server/service/a.cpp", "server/storage/rocksdb_log.hpp"),
                ("client/cli/a.cpp", "kilokv/v1/kilokv.pb.h"), ("client/cli/a.cpp", "client/bench/run.hpp"),
                ("client/bank/a.cpp", "engine/engine.hpp"), ("client/lib/src/a.cpp", "server/core/database.hpp")]:
            layer = path.rsplit("/", 1)[0]
            with self.subTest(path=path, included=included):
                self.assert_found(path, f'#include "{included}"', f'{layer} may not include "{included}"')

    def test_the_facade_is_the_files_of_the_folder(self):
        sim, options = "engine/sim/lanes.hpp", "engine/bench/options.hpp"
        for path, included in [("engine/bench/a.cpp", sim), ("engine/sim/a.hpp", options),
                               ("engine/engine.cpp", sim), ("engine/workloads/a.cpp", sim)]:
            layer = "engine/*" if path == "engine/engine.cpp" else path.rsplit("/", 1)[0]
            with self.subTest(path=path, included=included):
                self.assertEqual(self.check({path: f'#include "{included}"\n', included: ""}),
                                 [f'{path}:1: {layer} may not include "{included}"'])

    def test_a_room_without_a_rule(self):
        for path in ["engine/fresh/a.hpp", "server/fresh/a.hpp", "client/fresh/a.hpp", "fresh/a.cpp"]:
            with self.subTest(path=path):
                self.assert_found(path, '#include "engine/base/types.hpp"',
                                  f"{path.rsplit('/', 1)[0]} is a room without a rule")

    def test_strategies_of_papers(self):
        users = "engine/stm/papers, engine/exec/papers, engine/exec/strategies, engine/sim, tests/unit/engine"
        for header in ["engine/stm/papers/kilo.hpp", "engine/exec/papers/local_inputs.hpp"]:
            for path in ["engine/stm/a.hpp", "engine/exec/run/a.cpp", "engine/engine.cpp", "engine/bench/a.cpp"]:
                with self.subTest(header=header, path=path):
                    self.assertEqual(self.check({path: f'#include "{header}"\n', header: ""}),
                                     [f'{path}:1: "{header}" is for {users} alone'])
        self.assertEqual(self.check({"engine/exec/strategies/a.cpp": '#include "engine/stm/papers/kilo.hpp"\n',
                                     "engine/stm/papers/kilo.hpp": ""}), [])

    def test_rooms_of_core(self):
        headers = {"types": "options.hpp", "clients": "clients/client.hpp", "sessions": "sessions/session_table.hpp", "waiting": "waiting/waiting.hpp",
                   "reads": "reads/reader.hpp", "pipeline": "pipeline/batcher.hpp",
                   "checkpoint": "checkpoint/recovery.hpp", "database": "database.hpp"}
        low = {"types", "clients"}
        allowed = {"types": {}, "clients": {"types"}, "sessions": low, "waiting": low, "reads": low,
                   "pipeline": {*low, "sessions", "waiting", "reads"},
                   "checkpoint": {*low, "sessions", "reads", "pipeline"},
                   "database": {*low, "sessions", "waiting", "reads", "pipeline", "checkpoint"}}
        for room, below in allowed.items():
            folder = {"types": "server/core", "database": "server/core"}.get(room, f"server/core/{room}")
            path = f"{folder}/database.cpp" if room == "database" else f"{folder}/a.cpp"
            layer = f"{folder}/database" if room == "database" else folder
            for other, header in headers.items():
                with self.subTest(room=room, other=other):
                    included = f"server/core/{header}"
                    rule = f'{path}:1: {layer} may not include "{included}"'
                    found = [] if other == room or other in below else [rule]
                    self.assertEqual(self.check({path: f'#include "{included}"\n'}), found)

    def test_the_server_sees_the_types_of_core(self):
        for path, included in [
                ("server/storage/a.cpp", "server/core/database.hpp"),
                ("server/storage/a.cpp", "server/core/sessions/session_table.hpp"),
                ("server/service/a.cpp", "server/core/waiting/waiting.hpp"),
                ("server/service/a.cpp", "server/core/pipeline/batcher.hpp")]:
            layer = path.rsplit("/", 1)[0]
            with self.subTest(path=path, included=included):
                self.assert_found(path, f'#include "{included}"', f'{layer} may not include "{included}"')
        self.assertEqual(self.check({"server/service/a.cpp": '#include "server/core/database.hpp"\n'}), [])

    def test_referee_is_for_the_pipeline_alone(self):
        for room in ["sessions", "waiting", "reads", "checkpoint"]:
            with self.subTest(room=room):
                self.assert_found(f"server/core/{room}/a.cpp", '#include "engine/referee/referee.hpp"',
                                  f'server/core/{room} may not include "engine/referee/referee.hpp"')

    def test_facade_is_no_hub(self):
        report = "engine/exec/run/execution_report.hpp"
        self.assertEqual(self.check({"engine/engine.hpp": f'#include "{report}"\n', report: ""}), [])
        for behind in ("engine/stm/serial.hpp", "engine/sim/lanes.hpp", "engine/exec/run/executor.hpp"):
            with self.subTest(behind=behind):
                found = self.check({"engine/engine.hpp": f'#include "{report}"\n',
                                    report: f'#pragma once\n#include "{behind}"\n', behind: "#pragma once\n"})
                self.assertIn(f"{report}:2: engine/engine.hpp may not drag {behind} along", found)

    def test_strategies_are_the_engines(self):
        serial, for_tests = "engine/stm/serial.hpp", "engine/engine_for_tests.hpp"
        for path in ("tests/unit/engine/a_test.cpp", "engine/bench/a.cpp", "engine/exec/a.hpp"):
            self.assertEqual(self.check({path: f'#include "{serial}"\n', "engine/exec/a.hpp": ""}), [])
        for path in ("tests/unit/core/a_test.cpp", "server/core/a.cpp", "client/bench/a.cpp"):
            with self.subTest(path=path):
                self.assert_found(path, f'#include "{serial}"', f'"{serial}" is for engine and tests/unit/engine alone')
        self.assertEqual(self.check({for_tests: "", "tests/unit/engine/a_test.cpp": f'#include "{for_tests}"\n'}), [])
        self.assertEqual(self.check({for_tests: "", "engine/bench/a.cpp": f'#include "{for_tests}"\n'}),
                         [f'engine/bench/a.cpp:1: "{for_tests}" is for tests alone'])

    def test_simulator_is_for_tests(self):
        rule = "kilokv_sim is for tests alone"
        build, tests = "engine/CMakeLists.txt", "if(KILOKV_TESTS)\n  if(A)\n  endif()\n  link(a kilokv_sim)\nendif()\n"
        self.assertEqual(self.check({build: tests, "tests/CMakeLists.txt": "link(a kilokv_sim)\n",
                                     "server/CMakeLists.txt": "link(a kilokv_simple)  # not kilokv_sim\n"}), [])
        self.assertEqual(self.check({build: tests + "link(a kilokv_sim)\n"}), [f"{build}:6: {rule}"])
        self.assertEqual(self.check({build: "if(KILOKV_TESTS)\nelse()\n link(a kilokv_sim)\nendif()\n"}),
                         [f"{build}:3: {rule}"])
        self.assertEqual(self.check({build: "if(NOT KILOKV_TESTS)\n link(a kilokv_sim)\nendif()\n"}),
                         [f"{build}:2: {rule}"])
        self.assertEqual(self.check({"server/CMakeLists.txt": tests}), [f"server/CMakeLists.txt:4: {rule}"])

    def test_public_header_of_the_client_has_no_protocol(self):
        self.assert_found("client/lib/include/kilokv/a.hpp", '#include "kilokv/v1/kilokv.pb.h"',
                          'client/lib/include may not include "kilokv/v1/kilokv.pb.h"')

    def test_unknown_header(self):
        self.assert_found("engine/base/a.hpp", '#include "types.hpp"', '"types.hpp" is no file below the root')

    def test_libraries(self):
        for path, included in [
                ("server/core/a.cpp", "rocksdb/db.h"), ("server/core/a.cpp", "grpcpp/grpcpp.h"),
                ("server/main.cpp", "grpcpp/server.h"), ("client/cli/a.cpp", "google/protobuf/message.h"),
                ("server/core/a.cpp", "spdlog/spdlog.h"), ("engine/base/a.cpp", "absl/strings/str_cat.h"),
                ("engine/base/a.cpp", "gtest/gtest.h")]:
            with self.subTest(path=path, included=included):
                found = self.check({path: f"// first\n#include <{included}>\n"})
                self.assertEqual(len(found), 1)
                self.assertIn(f"{path}:2: <{included}> may be included only in ", found[0])

    def test_real_world(self):
        for path, included in [("server/core/a.cpp", "chrono"), ("server/core/a.cpp", "thread"),
                               ("engine/stm/a.hpp", "random")]:
            with self.subTest(path=path, included=included):
                self.assert_found(path, f"#include <{included}>",
                                  f"<{included}> belongs into no strategy and not into core: take it as a parameter")

    def test_words(self):
        self.assert_found("engine/stm/a.hpp", "#ifdef __CUDA_ARCH__", "__CUDA_ARCH__ is for engine/platform")
        self.assert_found("engine/stm/a.hpp", "std::atomic<int> a;", "strategies take their atomics from the Platform")
        self.assert_found("docs/a.md", "see /ho" + "me/somebody/kilokv", "no path of somebody's machine")
        self.assert_found("server/core/a.cpp", "// TO" + "DO later", "nothing half done: finish it, or leave it out")


if __name__ == "__main__":
    unittest.main()
