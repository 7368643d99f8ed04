"""tools/tidy.py finds what it says it finds: every rule is broken once, in a tree made for it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# A project without a finding.
CLEAN = {
    "base/CMakeLists.txt": "troupe_library(troupe_base SOURCES clock.cc)\n",
    "base/clock.h": "#pragma once\nint now();\n",
    "base/clock.cc": '#include "base/clock.h"\n\nint now() {\n  return 1;\n}\n',
    "engine/CMakeLists.txt": "troupe_library(troupe_engine SOURCES run.cc)\n",
    "engine/run.cc": '#include "base/clock.h"\n\nint run() {\n  return now();\n}\n',
    "README.md": "A project.\n",
}
BODY = '#include "base/clock.h"\n\nint run() {{\n  {}\n}}\n'


class TidyTest(unittest.TestCase):
    def findings(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (CLEAN | changes).items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            run = subprocess.run([sys.executable, ROOT / "tools/tidy.py", folder],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "")
        lines = run.stdout.splitlines()[:-1]
        self.assertEqual(run.returncode, 1 if lines else 0)
        return lines

    def assert_finds(self, changes, rule):
        found = self.findings(changes)
        self.assertTrue(any(rule in line for line in found), f"{rule!r} is not in {found}")

    def assert_clean(self, changes):
        self.assertEqual(self.findings(changes), [])

    def test_a_clean_project_has_no_finding(self):
        self.assert_clean({})

    def test_every_banned_name_is_found_and_comes_with_a_replacement(self):
        for code in ("std::chrono::steady_clock::now();", "std::chrono::system_clock::now();",
                     "std::this_thread::sleep_for(x);", "return rand();", "std::random_device r;",
                     'getenv("HOME");', 'printf("x");', 'std::cout << "x";', "assert(1);",
                     "auto f = [=] { return 1; };", "time(nullptr);", 'atoi("1");'):
            with self.subTest(code):
                self.assert_finds({"engine/run.cc": BODY.format(code)}, "banned")

    def test_names_in_comments_and_strings_are_not_banned(self):
        for code in ("// rand() is banned", 'auto s = "rand()";', "/* getenv(x)\n rand() */",
                     "clock.steady_clock_now();", "strand();", 'auto s = R"(printf("x"))";'):
            with self.subTest(code):
                self.assert_clean({"engine/run.cc": BODY.format(code)})

    def test_the_operating_system_room_and_apps_may_look_at_the_clock(self):
        code = BODY.format("std::chrono::steady_clock::now();")
        self.assert_clean({"base/os/clock.cc": code,
                           "base/CMakeLists.txt": "SOURCES clock.cc os/clock.cc\n"})
        self.assert_clean({"apps/main.cc": code, "apps/CMakeLists.txt": "main.cc"})

    def test_a_layer_may_use_only_lower_ones(self):
        self.assert_finds({"base/clock.cc": '#include "base/clock.h"\n#include "engine/run.h"\n',
                           "engine/run.h": "#pragma once\n"}, "layer: base may not use engine")
        for user, used in (("engine", "transport"), ("kernels", "engine"), ("actors", "apps"),
                           ("base", "schema"), ("engine", "tests")):
            with self.subTest(user=user, used=used):
                self.assert_finds({f"{user}/a.cc": f'#include "{used}/b.h"\n',
                                   f"{user}/CMakeLists.txt": "a.cc run.cc clock.cc",
                                   f"{used}/b.h": "#pragma once\n"},
                                  f"layer: {user} may not use {used}")

    def test_foreign_libraries_stay_in_their_rooms(self):
        for path, name in (("actors/decode/decode_core.h", "caf/event_based_actor.hpp"),
                           ("engine/a.h", "kj/async-io.h"), ("actors/wire/a.h", "kj/async.h"),
                           ("transport/a.h", "capnp/message.h"), ("transport/a.h", "ucp/api/ucp.h"),
                           ("kernels/a.h", "cuda_runtime.h")):
            with self.subTest(path=path, name=name):
                self.assert_finds({path: f"#pragma once\n#include <{name}>\n"}, "wrong room")
        user = {"tests/CMakeLists.txt": "a_test.cc",
                "tests/a_test.cc": '#include "actors/decode/decode_actor.h"\n'}
        self.assert_clean(user | {"actors/decode/decode_actor.h":
                                  "#pragma once\n#include <caf/event_based_actor.hpp>\n"})

    def test_a_public_header_uses_the_standard_library_only(self):
        self.assert_finds({"include/troupe/a.h": "#pragma once\n#include <glog/logging.h>\n"},
                          "public header")

    def test_the_own_header_comes_first(self):
        self.assert_finds({"base/clock.cc": '#include <vector>\n#include "base/clock.h"\n'},
                          "own header first")

    def test_headers_begin_with_pragma_once(self):
        self.assert_finds({"base/clock.h": "int now();\n"}, "pragma once")

    def test_using_namespace_is_for_sources(self):
        line = "using namespace std::chrono_literals;\n"
        self.assert_finds({"base/clock.h": "#pragma once\n" + line}, "banned `using namespace`")
        self.assert_clean({"engine/run.cc": '#include "base/clock.h"\n' + line})

    def test_lines_files_and_functions_have_a_limit(self):
        self.assert_finds({"engine/run.cc": BODY.format("//" + "x" * 100)}, "line length")
        self.assert_finds({"engine/run.cc": CLEAN["engine/run.cc"] + "\n" * 800}, "file length")
        self.assert_finds({"base/clock.h": CLEAN["base/clock.h"] + "\n" * 300}, "file length")
        self.assert_clean({"engine/run.cc": BODY.format("\n" * 67)})
        self.assert_finds({"engine/run.cc": BODY.format("\n" * 68)}, "function length: 71 lines")

    def test_a_long_function_is_found_wherever_it_stands(self):
        body = "{{\n{}}}\n".format("  f({1});\n" * 70)
        for head in ("namespace a {\nint f(int x) ", "class A final : public B {\n void f() const ",
                     "A::A(int x)\n    : x_(x), y_(1) ", "struct A {\n bool operator==(int) ",
                     "static int f(std::function<void(int)> x,\n  int y) noexcept "):
            with self.subTest(head):
                self.assert_finds({"engine/run.cc": '#include "base/clock.h"\n' + head + body},
                                  "function length")

    def test_long_tables_and_classes_are_no_functions(self):
        rows = "  {1, 2},\n" * 90
        self.assert_clean({"engine/run.cc": '#include "base/clock.h"\nconst int k[][2] = {\n'
                           + rows + "};\n"})
        methods = "  void f() { g(1); }\n" * 90
        self.assert_clean({"engine/run.cc": '#include "base/clock.h"\nclass A {\n' + methods
                           + "};\n"})

    def test_a_todo_names_its_kind_and_now_is_none(self):
        for text in ("TODO: x", "TODO(now): x", "TODO(me): x", "FIXME", "XXX"):
            with self.subTest(text):
                self.assert_finds({"engine/run.cc": BODY.format("// " + text)}, "todo")
        self.assert_clean({"engine/run.cc": BODY.format("// TODO(perf): x")})

    def test_sources_and_tests_are_registered(self):
        self.assert_finds({"engine/CMakeLists.txt": "other_run.cc"}, "not registered")
        self.assert_finds({"tests/unit/a_test.cc": "int a;\n",
                           "tests/CMakeLists.txt": "troupe_test(b SOURCES b_test.cc)"},
                          "tests/unit/a_test.cc:1: not registered")
        for cmake in ("troupe_test(b SOURCES unit/a_test.cc)",
                      "add_library(b ${PROJECT_SOURCE_DIR}/tests/unit/a_test.cc)",
                      "add_library(b ../tests/unit/a_test.cc)"):
            with self.subTest(cmake):
                self.assert_clean({"tests/unit/a_test.cc": "int a;\n",
                                   "tests/CMakeLists.txt": cmake})

    def test_a_header_that_nobody_includes_is_dead(self):
        self.assert_finds({"base/old.h": "#pragma once\n"}, "base/old.h:1: dead header")

    def test_prose_names_files_that_exist(self):
        for text in ("see `engine/walk.cc`", "see [this](docs/none.md)", "in `engine/old`"):
            with self.subTest(text):
                self.assert_finds({"README.md": text + "\n"}, "dead reference")
        self.assert_clean({"README.md": "`engine/run.cc`, `engine/`, [it](base/clock.h), "
                                        "`build/bin/x`, `tests/x_test.cc`, `and/or`\n"})
        self.assert_finds({"docs/a.md": "[it](base/clock.h)\n"}, "dead reference")
        self.assert_clean({"docs/a.md": "[it](../base/clock.h)\n"})

    def test_the_project_speaks_of_itself_alone(self):
        for text in ("see iss" + "ue 12", "in /wo" + "rk/x", "written to /tm" + "p/x",
                     "from py" + "pi.org", "done in this sess" + "ion"):
            with self.subTest(text):
                self.assert_finds({"README.md": text + "\n"}, "foreign word")
        self.assert_clean({"README.md": "The temporary folder. An issue. A chat session.\n"})


if __name__ == "__main__":
    unittest.main()
