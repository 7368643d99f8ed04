"""The tables of bench/engine/run and bench/server/run: medians, ratios, shares, kinds of machine."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
from support import project, results  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("bench_server", str(ROOT / "bench/server/run"))
bench_server = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("bench_server", LOADER))
LOADER.exec_module(bench_server)

RATE = results.Metric("rate", "decoding", "tokens/s", True)
TIME = results.Metric("time", "waiting", "ms", False)


def record(start_s, ttft_ms, gaps_ms, tokens):
    return {"start_s": start_s, "ttft_ms": ttft_ms, "itl_ms": gaps_ms, "output_tokens": tokens}


class BenchResultsTest(unittest.TestCase):
    def setUp(self):
        self.results = results.Results("server", "m.gguf", 2, [RATE, TIME])
        for ours, slow, fast in ((200, 10, 50), (220, 11, 55), (180, 9, 60)):
            self.results.add("slow", "1", {"rate": slow, "time": 400})
            self.results.add("fast", "2", {"rate": fast, "time": 100})
            self.results.add("Troupe", "this commit", {"rate": ours, "time": 50})

    def row(self, title):
        return next(line for line in self.results.table().splitlines() if title in line)

    def test_a_row_has_medians_with_their_spread_and_the_ratio_to_the_best_other(self):
        self.assertEqual(self.row("decoding"), "| decoding, tokens/s | 200 (180 to 220) | "
                         "10.0 (9.0 to 11.0) | 55.0 (50.0 to 60.0) | 3.64 (fast) |")
        self.assertIn("| 2.00 (fast) |", self.row("waiting"))

    def test_a_figure_is_shown_as_a_share_of_its_limit_where_it_has_one(self):
        self.results.limits["rate"] = 400.0
        self.assertTrue(self.row("decoding").endswith("| 50 % |"), self.row("decoding"))
        self.assertTrue(self.row("waiting").endswith("| – |"))

    def test_an_engine_that_was_not_measured_leaves_a_gap(self):
        del self.results.values["time"]["fast"]
        self.assertIn("| – | 8.00", self.row("waiting"))

    def test_the_number_of_rounds_is_that_of_the_values(self):
        self.assertEqual(self.results.rounds_text(), "3 alternating rounds")
        self.results.values["rate"]["slow"].pop()
        self.assertIn("Median of 2 to 3 alternating rounds (", self.results.section())

    def test_machines_of_one_kind_share_maker_instructions_and_cores(self):
        self.assertEqual(project.kind_of("AuthenticAMD", {"avx2", "avx512bw", "avx512_vnni"}, 8),
                         "amd-avx512vnni-8-cores")
        self.assertEqual(project.kind_of("GenuineIntel", {"avx2", "amx_int8", "avx512bw"}, 2),
                         "intel-amx-2-cores")
        self.assertEqual(project.kind_of("?", set(), 1), "other-scalar-1-cores")

    def test_the_steady_rate_counts_what_comes_while_all_decode(self):
        # From 2 s to 4 s both decode: 20 tokens of the one, 2 of the other.
        lines = [record(0.0, 1000.05, [100.0] * 40, 41), record(1.0, 1000.0, [1000.0] * 2, 3)]
        self.assertAlmostEqual(bench_server.steady_rate(lines), 11.0, delta=0.01)

    def test_the_steady_rate_counts_tokens_where_a_chunk_has_several(self):
        lines = [record(0.0, 0.0, [500.0, 500.0], 6)]
        self.assertAlmostEqual(bench_server.steady_rate(lines), 4.0)

    def test_streams_that_never_decode_together_have_no_steady_rate(self):
        lines = [record(0.0, 1.0, [1.0], 2), record(5.0, 1.0, [1.0], 2)]
        self.assertIsNone(bench_server.steady_rate(lines))


if __name__ == "__main__":
    unittest.main()
