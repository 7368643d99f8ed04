"""Gemma 3 from the real server: the same tokens however they are computed, also where a prompt is
longer than the sliding window and from a cluster; its tokenizer, its end tokens, and what a model
without a chat template says."""

import subprocess
import unittest
from pathlib import Path

from cluster import Cluster
from same_tokens_test import STORY, one_by_one, together
from server import BUILD, ROOT, TROUPE, Server

GEMMA = ROOT / "models" / "gemma-3-270m-Q4_K_M.gguf"
END_OF_TURN = 106
FIELDS = {"max_tokens": 10}
# The long ones have about 600 and 1,500 tokens, of which a windowed layer sees 512, and a common
# beginning.
REQUESTS = [FIELDS | request for request in (
    {"prompt": "Water boils at", "temperature": 0},
    {"prompt": STORY * 36, "temperature": 0},
    {"prompt": STORY * 36 + "One night", "temperature": 0.8, "seed": 11},
    {"prompt": STORY * 90 + "At last", "temperature": 0},
    {"prompt": "Les étoiles 🌟 sont\n\n\n  belles", "temperature": 1.0, "seed": 12, "top_k": 50},
)]


def blocks(server, name, group=""):
    """Of the layers that see everything, or of the windowed ones."""
    return sum(value for labels, value in server.metrics()[name].items()
               if dict(labels).get("group", "") == group)


class GemmaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(model=GEMMA).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.reference = one_by_one(cls.server, REQUESTS)

    def assert_same(self, answers, what):
        for i, (found, expected) in enumerate(zip(answers, self.reference)):
            with self.subTest(what, prompt=i):
                self.assertEqual(found, expected)

    def test_the_reference_is_whole_and_sensible(self):
        for found in self.reference:
            self.assertEqual(len(found["tokens"]), FIELDS["max_tokens"])
        self.assertIn("100", self.reference[0]["text"])
        usage = self.server.complete(**REQUESTS[1])["usage"]
        self.assertGreater(usage["prompt_tokens"], 550)

    def test_a_warm_cache_and_a_batch_change_nothing(self):
        self.assert_same(one_by_one(self.server, REQUESTS), "warm")
        self.assert_same(together(self.server, REQUESTS), "together")
        self.assertGreater(self.server.metric("vllm:prefix_cache_hits_total"), 500)

    def test_chunks_threads_instructions_and_preemption_change_nothing(self):
        # 100 blocks hold the longest one alone.
        flags = ["--max-step-tokens", 100, "--threads", 1, "--kv-blocks", 100]
        if "avx2" in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            flags += ["--cpu-features", "avx2"]
        with Server(*flags, model=GEMMA) as server:
            self.assert_same(together(server, REQUESTS), "in chunks, with one thread")
            server.wait_idle()

    def test_a_cluster_of_1_and_1_gives_what_one_process_gives(self):
        with Cluster(prefill=1, decode=1, model=GEMMA) as cluster:
            self.assert_same(one_by_one(cluster.router, REQUESTS), "cold")
            cluster.wait_idle()
            moved = sum(worker.metric("troupe_kv_imports_total", result="whole")
                        for worker in cluster.decode)
            self.assertGreater(moved, 0, "prompts moved between workers")
            self.assert_same(together(cluster.router, REQUESTS), "side by side")
            cluster.assert_alive()

    def test_a_cluster_moves_only_what_is_still_seen_of_windowed_layers(self):
        with Cluster(prefill=1, decode=2, model=GEMMA) as cluster:
            for _ in range(2):  # the second time from whoever holds it, or computed anew
                self.assert_same(one_by_one(cluster.router, REQUESTS), "one by one")
            for worker in cluster.decode:
                held = blocks(worker, "troupe_kv_blocks_cached", "window")
                self.assertLess(held, blocks(worker, "troupe_kv_blocks_total", "window"))
            cluster.wait_idle()
            cluster.assert_alive()

    def test_what_is_behind_the_window_is_given_back_while_a_request_runs(self):
        with Server("--max-step-tokens", 256, model=GEMMA) as server:
            stream = server.open_stream({"prompt": STORY * 90, "max_tokens": 300,
                                         "ignore_eos": True}, path="/v1/completions")
            most = events = 0
            with stream, stream.makefile("rb") as lines:
                stream.settimeout(120)
                for line in lines:
                    events += line.startswith(b"data: {")
                    if not line.startswith(b"data: {") or events < 4:
                        continue  # what the prompt's last step filled may still be on its way back
                    held = {dict(labels).get("group", ""): value for labels, value
                            in server.metrics()["troupe_kv_blocks_held"].items()}
                    if held[""] == 0:
                        break  # it has ended, and this is read late
                    most = max(most, held["window"])
                    self.assertGreater(held[""], 90)
            # 512 tokens, the block that is begun, and the one that comes next.
            self.assertGreaterEqual(most, 32)
            self.assertLessEqual(most, 34)
            server.wait_idle()
            self.assertIn("windowed layers", server.output())

    def test_windowed_blocks_run_short_and_nothing_changes(self):
        # Both long ones fit the other blocks; their windowed blocks do only one after the other,
        # and of what is cached most is lost.
        flags = ["--max-step-tokens", 64, "--kv-blocks", 400, "--kv-window-blocks", 45]
        with Server(*flags, model=GEMMA) as server:
            self.assertEqual(blocks(server, "troupe_kv_blocks_total", "window"), 45)
            for _ in range(2):
                self.assert_same(together(server, REQUESTS), "with few windowed blocks")
            server.wait_idle()

    def test_preemption_changes_nothing(self):
        # Each fits alone; together they outgrow the pool while they decode.
        requests = [request | {"max_tokens": 60} for request in (
            {"prompt": STORY * 36, "temperature": 0, "ignore_eos": True},
            {"prompt": "Or else: " + STORY * 36, "temperature": 0, "ignore_eos": True})]
        expected = one_by_one(self.server, requests)
        flags = ["--max-step-tokens", 256, "--step-time-ms", 0, "--kv-blocks", 77,
                 "--kv-window-blocks", 150]
        with Server(*flags, model=GEMMA) as server:
            self.assertEqual(together(server, requests), expected)
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
            server.wait_idle()

    def test_the_end_of_a_turn_ends_the_answer(self):
        choice = self.server.complete(prompt="Hello", max_tokens=5, temperature=0,
                                      logit_bias={str(END_OF_TURN): 100})["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), ("", "stop"))

    def test_text_survives_its_way_through_the_tokenizer(self):
        for text in ("Hello,  world!\n\n\n\tx", "日本語 😀 é", "<h1>x</h1> \u0001"):
            tokens = self.server.request("POST", "/tokenize", {"prompt": text}).json()["tokens"]
            self.assertEqual(tokens[0], 2)  # <bos>
            self.assertNotIn(END_OF_TURN, tokens)
            back = self.server.request("POST", "/detokenize", {"tokens": tokens[1:]}).json()
            self.assertEqual(back["prompt"], text)

    def test_a_chat_is_refused_because_the_model_has_no_template(self):
        reply = self.server.request("POST", "/v1/chat/completions", {
            "model": "smol", "messages": [{"role": "user", "content": "Hi"}]})
        self.assertEqual(reply.status, 400, reply.body)
        self.assertIn("chat template", reply.json()["error"]["message"])

    @unittest.skipUnless(BUILD == ROOT / "build", "./serve runs the release build")
    def test_serve_takes_it_by_name_and_refuses_other_names(self):
        def serve(name):
            return subprocess.run([ROOT / "serve", "--model", name, "--print-config"], cwd="/",
                                  capture_output=True, text=True, timeout=300, check=False)
        run = serve("gemma3-270m")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("gemma-3-270m-Q4_K_M.gguf", run.stdout)
        run = serve("gemma9")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("smollm2-135m", run.stderr)

    def test_inspect_describes_it(self):
        text = subprocess.run([TROUPE, "inspect", GEMMA], capture_output=True, text=True,
                              check=True).stdout
        for word in ("gemma3", "262,144 tokens", "4 (1 for keys and values) of 256",
                     "512 tokens in 15 of 18 layers", "Q5_0", "Q6_K"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
