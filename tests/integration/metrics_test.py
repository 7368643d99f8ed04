"""The names that dashboards made for vLLM read are there, and count what happened."""

import unittest

from server import shared_server

GAUGES = ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"]
COUNTERS = ["vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total",
            "vllm:num_preemptions_total", "vllm:prompt_tokens_total",
            "vllm:generation_tokens_total", "vllm:request_success_total"]
HISTOGRAMS = ["vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
              "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
              "vllm:request_inference_time_seconds", "vllm:request_prefill_time_seconds",
              "vllm:request_decode_time_seconds", "vllm:request_prompt_tokens",
              "vllm:request_generation_tokens", "vllm:iteration_tokens_total",
              "vllm:request_params_n", "vllm:request_params_max_tokens"]


class MetricsTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.server.complete("warm up", max_tokens=1)
        self.server.wait_idle()

    def test_every_name_is_there_with_its_labels(self):
        values = self.server.metrics()
        for name in GAUGES + COUNTERS + [f"{h}_count" for h in HISTOGRAMS] \
                + [f"{h}_bucket" for h in HISTOGRAMS] + [f"{h}_sum" for h in HISTOGRAMS]:
            with self.subTest(name):
                labels = dict(next(iter(values[name])))
                self.assertEqual(labels["model_name"], "smol")
                self.assertIn("engine", labels)

    def test_each_family_has_one_help_and_one_type_line(self):
        lines = self.server.get("/metrics").body.decode().splitlines()
        for kind in ("# HELP ", "# TYPE "):
            names = [line.split()[2] for line in lines if line.startswith(kind)]
            self.assertEqual(len(names), len(set(names)))
            self.assertGreater(len(names), 20)

    def test_the_counters_count_what_was_asked(self):
        before = self.server.metrics()
        answer = self.server.complete("Count these tokens, please.", max_tokens=7, temperature=0,
                                      ignore_eos=True)
        self.server.wait_idle()
        after = self.server.metrics()

        def grown(name, **labels):
            wanted = set(labels.items())
            return sum(value - before[name].get(found, 0) for found, value in after[name].items()
                       if wanted <= found)
        prompt = answer["usage"]["prompt_tokens"]
        self.assertEqual(grown("vllm:prompt_tokens_total"), prompt)
        self.assertEqual(grown("vllm:generation_tokens_total"), 7)
        self.assertEqual(grown("vllm:request_success_total", finished_reason="length"), 1)
        self.assertEqual(grown("vllm:time_to_first_token_seconds_count"), 1)
        self.assertEqual(grown("vllm:e2e_request_latency_seconds_count"), 1)
        self.assertEqual(grown("vllm:request_prompt_tokens_sum"), prompt)
        self.assertEqual(grown("vllm:request_generation_tokens_sum"), 7)
        self.assertEqual(grown("vllm:prefix_cache_queries_total"), prompt)
        self.assertEqual(grown("vllm:request_params_n_sum"), 1)
        self.assertEqual(grown("vllm:request_params_max_tokens_sum"), 7)
        self.assertGreater(grown("vllm:e2e_request_latency_seconds_sum"), 0)
        self.assertEqual(grown("vllm:request_queue_time_seconds_count"), 1)
        # Counted by the worker: every computed token once.
        self.assertEqual(grown("vllm:iteration_tokens_total_sum"),
                         prompt + 7 - 1 - answer["usage"]["prompt_tokens_details"]["cached_tokens"])

    def test_every_kv_block_is_accounted_for(self):
        self.server.complete("A prompt that fills more than one block. " * 4, max_tokens=1)
        self.server.wait_idle()
        values = {name: sum(samples.values()) for name, samples in self.server.metrics().items()}
        self.assertEqual(values["troupe_kv_blocks_free"] + values["troupe_kv_blocks_cached"]
                         + values["troupe_kv_blocks_held"], values["troupe_kv_blocks_total"])
        self.assertGreater(values["troupe_kv_blocks_cached"], 0)


if __name__ == "__main__":
    unittest.main()
