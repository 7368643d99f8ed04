"""bench/compare marks what became slower, and neither noise nor a slower machine."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
LOADER = importlib.machinery.SourceFileLoader("bench_compare", str(ROOT / "bench/compare"))
bench_compare = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("bench_compare", LOADER))
with mock.patch.object(sys, "path", list(sys.path)):
    LOADER.exec_module(bench_compare)

RATE = [100.0, 102.0, 98.0]


def results(ours, peer=None, more=True, version="1.0", kind="intel-avx2-2-cores"):
    """One figure; `peer` are the values of another engine."""
    values = {"Troupe": ours} | ({"other": peer} if peer else {})
    return {"bench": "server", "date": "2026-01-01", "commit": "abc", "model": "m.gguf",
            "threads": 2, "machine": {"kind": kind},
            "engines": {"Troupe": "this commit"} | ({"other": version} if peer else {}),
            "figures": [{"name": "decode", "title": "decoding", "unit": "tokens/s",
                         "more_is_better": more, "limit": None, "values": values}]}


def compare(old, new):
    """(exit code, what was printed)."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("old.json", "new.json")]
        for path, content in zip(paths, (old, new)):
            path.write_text(json.dumps(content), encoding="utf-8")
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["compare", *map(str, paths)]), \
                contextlib.redirect_stdout(said):
            return bench_compare.main(), said.getvalue()


def times(values, factor):
    return [value * factor for value in values]


class BenchCompareTest(unittest.TestCase):
    def test_the_same_values_are_no_regression(self):
        code, said = compare(results(RATE), results(RATE))
        self.assertEqual(code, 0, said)
        self.assertIn("1.00", said)
        self.assertNotIn("regression", said)

    def test_a_slower_rate_is_named_and_ends_with_1(self):
        code, said = compare(results(RATE), results(times(RATE, 0.8)))
        self.assertEqual(code, 1, said)
        self.assertIn("regression: decoding, tokens/s", said)
        self.assertIn("0.80", said)

    def test_a_longer_time_is_a_regression_and_a_shorter_one_is_better(self):
        slow, fast = results(times(RATE, 1.3), more=False), results(RATE, more=False)
        self.assertEqual(compare(fast, slow)[0], 1)
        code, said = compare(slow, fast)
        self.assertEqual(code, 0, said)
        self.assertIn("better", said)

    def test_what_lies_within_the_spread_is_noise(self):
        code, said = compare(results([100.0, 120.0, 85.0]), results([90.0, 88.0, 86.0]))
        self.assertEqual(code, 0, said)

    def test_a_few_percent_are_noise_however_small_the_spread(self):
        self.assertEqual(compare(results(RATE), results([97.9, 97.0, 96.0]))[0], 0)

    def test_where_others_became_as_slow_it_was_the_machine(self):
        old, slower = results(RATE, RATE), times(RATE, 0.7)
        code, said = compare(old, results(slower, slower))
        self.assertEqual(code, 0, said)
        self.assertIn("the machine", said)
        self.assertEqual(compare(old, results(slower, RATE))[0], 1)
        self.assertEqual(compare(old, results(slower, slower, version="2.0"))[0], 1)

    def test_too_few_rounds_are_not_judged(self):
        code, said = compare(results(RATE), results([50.0, 50.0]))
        self.assertEqual(code, 0, said)
        self.assertIn("too few rounds", said)

    def test_a_figure_that_was_not_measured_again_is_named(self):
        new = results(RATE)
        new["figures"] = []
        self.assertIn("missing", compare(results(RATE), new)[1])

    def test_other_machines_are_not_compared(self):
        code, said = compare(results(RATE), results(RATE, kind="amd-avx2-8-cores"))
        self.assertEqual(code, 2, said)
        self.assertIn("kind of machine", said)

    def test_a_file_that_is_no_result_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "broken.json"
            path.write_text("{", encoding="utf-8")
            with mock.patch.object(sys, "argv", ["compare", str(path), str(path)]), \
                    self.assertRaisesRegex(SystemExit, "broken.json"):
                bench_compare.main()


if __name__ == "__main__":
    unittest.main()
