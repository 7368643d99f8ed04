"""tools/run_tests.py counts what ran, and never takes a crash or silence for a pass."""

import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("run_tests", ROOT / "tools/run_tests.py")
run_tests = importlib.util.module_from_spec(SPEC)
sys.modules["run_tests"] = run_tests
SPEC.loader.exec_module(run_tests)

REPORT = """<TestResult><TestSuite name="troupe" result="failed">
<TestSuite name="pool" result="failed"><TestCase name="frees" result="passed"/>
<TestCase name="leaks" result="failed"/><TestCase name="waits" result="skipped"/></TestSuite>
<TestCase name="ends" result="passed"/></TestSuite></TestResult>"""
ALL_PASS = REPORT.replace('"failed"', '"passed"').replace('"skipped"', '"passed"')


def shell(script, read=run_tests.read_boost, timeout_s=30.0):
    return run_tests.Job("job", ["bash", "-c", script, "bash", "{report}"], read,
                         timeout_s=timeout_s)


def results(job):
    return [(case.name, case.result) for case in run_tests.run(job)[0]]


def faults(job):
    return [case.detail for case in run_tests.run(job)[0] if case.result == "failed"]


class RunTestsTest(unittest.TestCase):
    def test_the_cases_of_a_program_are_counted_one_by_one(self):
        self.assertEqual(results(shell(f"echo '{REPORT}' > $1; exit 201")),
                         [("pool/frees", "passed"), ("pool/leaks", "failed"),
                          ("pool/waits", "skipped"), ("ends", "passed")])

    def test_a_crashed_program_counts_as_failed(self):
        self.assertEqual(faults(shell("kill -SEGV $$")), ["was ended by SIGSEGV"])
        self.assertEqual(faults(shell(f"echo '{ALL_PASS}' > $1; kill -ABRT $$")),
                         ["was ended by SIGABRT"])

    def test_a_bad_exit_counts_as_failed_though_every_case_passed(self):
        self.assertEqual(faults(shell(f"echo '{ALL_PASS}' > $1; exit 3")), ["ended with 3"])

    def test_a_program_that_reports_nothing_counts_as_failed(self):
        self.assertEqual(faults(shell("exit 0")), ["wrote no report"])
        self.assertEqual(faults(shell("echo '<TestResult/>' > $1")), ["no test ran"])
        self.assertEqual(faults(shell("echo '<TestRes' > $1")), ["wrote no report"])

    def test_a_program_that_hangs_is_ended_and_counts_as_failed(self):
        self.assertEqual(faults(shell("sleep 100", timeout_s=0.2)), ["was ended after 0 s"])

    def test_a_missing_program_counts_as_failed(self):
        job = run_tests.Job("job", ["/nonexistent/program"], run_tests.read_exit)
        self.assertEqual(len(faults(job)), 1)

    def test_the_last_input_of_a_corpus_that_crashed_is_the_culprit(self):
        good = shell("echo input a; echo input b; echo replayed 2 inputs", run_tests.read_corpus)
        self.assertEqual(results(good), [("a", "passed"), ("b", "passed")])
        bad = shell("echo input a; echo input b; kill -SEGV $$", run_tests.read_corpus)
        self.assertEqual(results(bad)[:2], [("a", "passed"), ("b", "failed")])
        self.assertEqual(faults(shell("exit 0", run_tests.read_corpus)), ["no test ran"])

    def test_python_cases_are_counted_with_their_failed_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some_test.py"
            path.write_text(
                "import unittest\n"
                "class A(unittest.TestCase):\n"
                " def test_good(self): pass\n"
                " def test_bad(self): self.assertEqual(1, 2)\n"
                " def test_error(self): raise KeyError(1)\n"
                " @unittest.skip('no reason')\n"
                " def test_skipped(self): pass\n"
                " def test_parts(self):\n"
                "  for i in range(3):\n"
                "   with self.subTest(i=i): self.assertNotEqual(i, 1)\n"
                "class B(unittest.TestCase):\n"
                " @classmethod\n"
                " def setUpClass(cls): raise OSError('no server')\n"
                " def test_never_runs(self): pass\n", encoding="utf-8")
            cases, _, _ = run_tests.run(run_tests.python_job("p", sys.executable, [path], []))
            self.assertEqual(sorted(case.result for case in cases),
                             ["failed"] * 4 + ["passed", "skipped"])
            self.assertTrue(any("no server" in case.detail for case in cases))
            only = run_tests.python_job("p", sys.executable, [path], ["A.test_good"])
            self.assertEqual([case.result for case in run_tests.run(only)[0]], ["passed"])

    def test_python_that_cannot_be_loaded_counts_as_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some_test.py"
            path.write_text("import no_such_module\n", encoding="utf-8")
            self.assertEqual(len(faults(run_tests.python_job("p", sys.executable, [path], []))), 1)

    def test_the_tally_counts_passed_failed_and_skipped(self):
        tally = run_tests.Tally()
        with contextlib.redirect_stdout(io.StringIO()):
            tally.take(shell(""), run_tests.run(shell(f"echo '{REPORT}' > $1; exit 201")))
            tally.take(shell(""), run_tests.run(shell(f"echo '{ALL_PASS}' > $1")))
        self.assertEqual((tally.passed, tally.failed, tally.skipped), (6, 1, 1))
        self.assertEqual(tally.failures, ["job: pool/leaks"])

    def test_the_closing_line_and_the_status_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            tests = Path(folder) / "CTestTestfile.cmake"
            for script, line, status in (("exit 0", "1 passed, 0 failed", 0),
                                         ("exit 1", "0 passed, 1 failed", 1)):
                with self.subTest(script):
                    tests.write_text(f'add_test(a_program "bash" "-c" "{script}")\n',
                                     encoding="utf-8")
                    run = subprocess.run([sys.executable, ROOT / "tools/run_tests.py", folder,
                                          "a_program"], capture_output=True, text=True, check=False)
                    self.assertEqual(run.stdout.splitlines()[-1:], [line], run.stderr)
                    self.assertEqual(run.returncode, status)

    def test_no_test_at_all_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, ROOT / "tools/run_tests.py", folder,
                                  "nothing_is_named_" + "like_this"],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertEqual(run.stdout.splitlines()[-1], "0 passed, 0 failed")


if __name__ == "__main__":
    unittest.main()
