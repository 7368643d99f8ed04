"""KV in 8 bits from the real server: half the memory, tokens of its own, and those the same however
they are computed, by one process or a cluster, whose workers have to agree on it."""

import json
import subprocess
import unittest

from cluster import Cluster
from gemma_test import GEMMA
from gemma_test import REQUESTS as LONG_REQUESTS
from instruction_sets import lacking
from same_tokens_test import REQUESTS, one_by_one, together
from server import MODEL_FILE, TROUPE, Server

INT8 = ("--kv-cache-dtype", "int8")


class KvDtypeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(*INT8).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.reference = one_by_one(cls.server)

    def assert_same(self, answers, what):
        for i, (found, expected) in enumerate(zip(answers, self.reference)):
            with self.subTest(what, prompt=i):
                self.assertEqual(found, expected)

    def test_a_warm_cache_and_a_batch_change_nothing(self):
        self.assert_same(one_by_one(self.server), "warm")
        self.assertGreater(self.server.metric("vllm:prefix_cache_hits_total"), 0)
        self.assert_same(together(self.server), "together")

    def test_it_is_what_was_asked_for_and_differs_from_binary16(self):
        self.assertIn("(int8, ", self.server.output())
        with Server() as server:
            self.assertIn("(f16, ", server.output())
            plain = one_by_one(server)
        texts = [answer["text"] for answer in plain]
        self.assertNotEqual(plain, self.reference, "log-probabilities to the bit")
        same = sum(a["text"] == text for a, text in zip(self.reference, texts))
        self.assertGreaterEqual(same, len(texts) // 2, "most texts are the same")

    def test_chunks_threads_and_preemption_change_nothing(self):
        # Each fits 17 blocks alone; together they outgrow them.
        for flags in (["--max-step-tokens", 7, "--threads", 3],
                      ["--max-step-tokens", 33, "--threads", 1, "--kv-blocks", 17]):
            with Server(*INT8, *flags) as server:
                self.assert_same(together(server), " ".join(map(str, flags)))
                if "--kv-blocks" in flags:
                    self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
                server.wait_idle()

    def test_instruction_sets_change_nothing(self):
        for isa in ("scalar", "avx2", "avx512", "avx512vnni"):
            if lacking(isa):
                continue
            # Scalar arithmetic is 50 times slower: not the long prompts.
            wanted = [i for i, request in enumerate(REQUESTS)
                      if isa != "scalar" or len(request["prompt"]) < 60]
            with Server(*INT8, "--cpu-features", isa) as server:
                answers = together(server, [REQUESTS[i] for i in wanted])
            for i, found in zip(wanted, answers):
                with self.subTest(isa, prompt=i):
                    self.assertEqual(found, self.reference[i])

    def test_a_cluster_of_1_and_1_gives_what_one_process_gives(self):
        with Cluster(prefill=1, decode=1, worker_flags=INT8) as cluster:
            self.assert_same(one_by_one(cluster.router), "one by one")
            cluster.wait_idle()
            moved = sum(worker.metric("troupe_kv_imports_total", result="whole")
                        for worker in cluster.decode)
            self.assertGreater(moved, 0, "prompts moved between workers")
            self.assert_same(together(cluster.router), "side by side")
            cluster.assert_alive()

    def test_a_worker_with_another_type_is_told_and_gets_no_requests(self):
        with Cluster(prefill=1, decode=1) as cluster:
            expected = one_by_one(cluster.router)
            worker = cluster.add(cluster.make_worker("troupe-decode", *INT8))
            worker.says(" in f16: start all workers of a model with the same --kv-cache-dtype")
            self.assertEqual(together(cluster.router), expected)
            self.assertEqual(worker.metric("vllm:prefix_cache_queries_total"), 0)
            listed = cluster.router.get("/cluster").json()["workers"]
            self.assertEqual(len(listed), 2)

    def test_sliding_windows_have_it_too(self):
        with Server(*INT8, model=GEMMA) as server:
            expected = one_by_one(server, LONG_REQUESTS)
            self.assertEqual(together(server, LONG_REQUESTS), expected)
        flags = ["--max-step-tokens", 64, "--kv-blocks", 400, "--kv-window-blocks", 45]
        with Server(*INT8, *flags, model=GEMMA) as server:
            self.assertEqual(together(server, LONG_REQUESTS), expected)
            server.wait_idle()

    def test_the_same_memory_holds_nearly_twice_as_many_tokens(self):
        def blocks(*flags):
            with Server(*flags, "--kv-memory-mib", 128) as server:
                info, = server.metrics()["vllm:cache_config_info"]
                return server.metric("troupe_kv_blocks_total"), dict(info)
        plain, plain_info = blocks()
        small, small_info = blocks(*INT8)
        self.assertGreater(small, 1.8 * plain)
        self.assertEqual((plain_info["cache_dtype"], small_info["cache_dtype"]), ("f16", "int8"))
        self.assertEqual(int(small_info["num_gpu_blocks"]), small)
        self.assertEqual(small_info["block_size"], "16")

    def test_other_names_and_the_reference_backend_are_refused_with_what_there_is(self):
        for flags, words in ((("--kv-cache-dtype", "fp8"), ("fp8", "auto", "f16", "int8")),
                             ((*INT8, "--backend", "reference"), ("int8", "reference", "fp32"))):
            run = subprocess.run([TROUPE, "serve", MODEL_FILE, *flags], capture_output=True,
                                 text=True, timeout=60, check=False)
            self.assertNotEqual(run.returncode, 0)
            for word in words:
                self.assertIn(word, run.stderr + run.stdout)

    def test_profile_measures_it(self):
        run = subprocess.run([TROUPE, "profile", MODEL_FILE, *INT8, "--phase", "1x1@100", "--steps",
                              "1", "--json"], capture_output=True, text=True, check=True)
        report = json.loads(run.stdout)
        self.assertEqual(report["kv_cache_dtype"], "int8")


if __name__ == "__main__":
    unittest.main()
