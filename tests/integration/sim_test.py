"""troupe sim: a cluster in virtual time from the command line."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from server import TROUPE


def sim(*arguments):
    return subprocess.run([TROUPE, "sim", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False)


def report(*arguments):
    run = sim("--json", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


class SimTest(unittest.TestCase):
    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self):
        first, again, other = (report("--requests", 200, "--seed", seed) for seed in (5, 5, 6))
        self.assertEqual(first, again)
        self.assertNotEqual(first["digest"], other["digest"])
        self.assertEqual(first["completed"], 200)
        self.assertEqual(len(first["workers"]), 8)

    def test_workers_of_their_own_for_prompts_move_kv(self):
        apart = report("--requests", 200, "--prefill", 2, "--decode", 2)
        self.assertEqual(apart["completed"], 200)
        self.assertGreater(apart["kv_imports_whole"], 100)
        self.assertGreater(apart["kv_moved_bytes"], 1e9)
        self.assertEqual([worker["role"] for worker in apart["workers"]],
                         ["prefill", "prefill", "decode", "decode"])

    def test_a_trace_is_replayed_at_its_speed_with_its_shared_prefixes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.jsonl"
            path.write_text("".join(
                json.dumps({"timestamp": 1000 * i, "input_length": 1300, "output_length": 20,
                            "hash_ids": [0, 1, 10 + i]}) + "\n" for i in range(50)),
                encoding="utf-8")
            normal = report("--workers", 1, "--trace", path)
            fast = report("--workers", 1, "--trace", path, "--speed", 10)
        self.assertEqual(normal["completed"], 50)
        self.assertGreater(normal["cache_hit_rate"], 0.7)
        self.assertAlmostEqual(normal["virtual_seconds"], 49, delta=2)
        self.assertAlmostEqual(fast["virtual_seconds"], 4.9, delta=2)
        self.assertLess(normal["ttft_seconds"]["p50"], fast["ttft_seconds"]["p99"])

    def test_a_bad_trace_is_named_by_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.csv"
            path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n",
                            encoding="utf-8")
            run = sim("--trace", path)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"{path}:2:", run.stderr)
        self.assertNotEqual(sim("--trace", "/nowhere").returncode, 0)

    def test_a_swarm_keeps_every_rule_and_a_planted_bug_breaks_one(self):
        clean = sim("--swarm", "--faults", "swarm", "--seeds", 20)
        self.assertEqual(clean.returncode, 0, clean.stdout)
        planted = sim("--swarm", "--seeds", 5, "--plant", "wrong-token")
        self.assertEqual(planted.returncode, 1)
        self.assertIn('breaks the rule "tokens"', planted.stdout)
        again = next(line for line in planted.stdout.splitlines() if line.startswith("again: "))
        replay = subprocess.run([TROUPE, *again.split()[2:]], capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertEqual(replay.returncode, 1)
        self.assertIn('breaks the rule "tokens"', replay.stdout)

    def test_a_cluster_with_faults_loses_no_request(self):
        faulty = report("--requests", 300, "--faults", "swarm", "--seed", 3, "--prefill", 2,
                        "--decode", 3)
        ended = sum(faulty[how] for how in ("completed", "failed", "refused", "left"))
        self.assertEqual(ended, 300)


if __name__ == "__main__":
    unittest.main()
