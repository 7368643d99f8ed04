"""bench/engine/run and bench/server/run in their short forms, beside a peer: what they measure is
whole, what is missing is named, and an interrupted run goes on."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server import BUILD, ROOT, TROUPE, Server

# As bench/support/engines.py starts it; computes by our own server.
LLAMA_SERVER = f"""#!/bin/bash
[[ $1 == --version ]] && echo "version: pretended" && exit
while [[ $# -gt 0 ]]; do
  case $1 in
    -m) model=$2;; --port) port=$2;; -np) streams=$2;;
  esac
  shift
done
exec "{TROUPE}" serve "$model" --port "$port" --max-running "$streams" --served-model-name model
"""
FIGURES = {
    "server": ["start", "memory", "private", "decode_1", "decode_2", "ttft_cold", "ttft_warm",
               "requests", "ttft_p50", "ttft_p99", "itl_p50", "itl_p99"],
    "engine": ["decode", "decode_long", "prefill", "prefill_long", "ttft", "start", "memory",
               "private"],
}
LIMITED = {"server": ["decode_1", "decode_2"],
           "engine": ["decode", "decode_long", "prefill", "prefill_long"]}


class BenchRunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.json = self.folder / "results.json"
        program = self.folder / "peers/llama.cpp/bin/llama-server"
        program.parent.mkdir(parents=True)
        program.write_text(LLAMA_SERVER, encoding="utf-8")
        program.chmod(0o755)

    def run_bench(self, name, *flags, expect=0):
        run = subprocess.run([sys.executable, ROOT / "bench" / name / "run", "--short", "--build",
                              BUILD, "--json", self.json, *flags],
                             capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(run.returncode, expect, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def check(self, name, said, rounds, peers=("llama.cpp",)):
        found = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual(found["engines"], {"Troupe": "this commit"} | {
            peer: "version: pretended" for peer in peers})
        self.assertEqual([figure["name"] for figure in found["figures"]], FIGURES[name])
        for figure in found["figures"]:
            with self.subTest(figure["name"]):
                self.assertEqual(set(figure["values"]), {"Troupe", *peers})
                for values in figure["values"].values():
                    self.assertEqual(len(values), rounds)
                    self.assertTrue(all(value > 0 for value in values), values)
                self.assertIn(f"| {figure['title']}, {figure['unit']} |", said)
                self.assertEqual(figure["limit"] is not None,
                                 figure["name"] in LIMITED[name])
        self.assertIn("| ratio to the best other | of the limit |", said)

    def test_the_engine_is_measured_beside_its_peer(self):
        said = self.run_bench("engine", "--rounds", "1", "--peers", self.folder / "peers")
        self.check("engine", said, 1, ("llama.cpp", "llama.cpp -fa off"))

    def test_the_server_is_measured_beside_its_peers_and_goes_on(self):
        flags = ("--peers", self.folder / "peers")
        said = self.run_bench("server", "--rounds", "1", *flags)
        self.check("server", said, 1)
        for name, path in (("vLLM", "vllm/bin/vllm"), ("OpenVINO", "openvino/bin/python")):
            self.assertRegex(said, rf"{name} left out: \S*peers/{path}.* missing")
        said = self.run_bench("server", "--rounds", "1", "--resume", *flags)
        self.assertNotIn("round 1, ", said)
        self.check("server", said, 1)
        self.run_bench("server", "--rounds", "2", "--resume", "--workload", "shared",
                       "--only", "Troupe")
        found = json.loads(self.json.read_text(encoding="utf-8"))
        counts = {figure["name"]: len(figure["values"]["Troupe"]) for figure in found["figures"]}
        self.assertEqual((counts["ttft_cold"], counts["ttft_warm"], counts["requests"]), (2, 2, 1))

    def test_a_server_that_is_up_already_is_measured_as_it_is(self):
        with Server(names=("model",)) as server:
            said = self.run_bench("server", "--rounds", "1", "--only", "other", "--running",
                                  f"other={server.port}", "--workload", "start", "--workload",
                                  "shared")
            self.assertEqual(server.get("/health").status, 200)
        found = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual([figure["name"] for figure in found["figures"]],
                         ["ttft_cold", "ttft_warm"], said)
        said = self.run_bench("server", "--rounds", "1", "--only", "other", "--running",
                              f"other={server.port}", "--workload", "shared")
        self.assertIn("other is left out from here on: other: nobody answers", said)

    def test_short_runs_are_not_kept(self):
        for name in FIGURES:
            self.assertIn("--keep", self.run_bench(name, "--keep", expect=2))


if __name__ == "__main__":
    unittest.main()
