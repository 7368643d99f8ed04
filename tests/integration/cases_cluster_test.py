"""Reports of users, tried where prompts are computed by one process and answers by another: the
same request has the same answer there, tenants stay apart, and who leaves leaves nothing behind."""

import unittest

from cluster import Cluster
from server import MODEL, Witness, shared_server, wait_until

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
STORY = "The old lighthouse keeper climbed the stairs every evening, counting each of them aloud. "

# One of each kind that was reported to differ.
REQUESTS = {
    "stop over tokens": {"prompt": STORY * 4, "stop": ["keeper", "e c"], "max_tokens": 24},
    "several choices": {"prompt": STORY * 2, "n": 3, "temperature": 1, "seed": 5},
    "scores of the prompt": {"prompt": STORY * 3, "echo": True, "logprobs": 3, "max_tokens": 0},
    "scores and more": {"prompt": STORY * 3 + "So", "echo": True, "logprobs": 2, "max_tokens": 4},
    "half a character": {"prompt": None, "max_tokens": 4},
    "biases and penalties": {"prompt": STORY, "logit_bias": {"260": -100, "281": 5},
                             "frequency_penalty": 1, "temperature": 0.7, "seed": 1},
    "a single token": {"prompt": [5], "max_tokens": 3},
    "nothing new": {"prompt": "Hello world", "max_tokens": 0},
    "a batch": {"prompt": [STORY, "One, two,", STORY * 2], "max_tokens": 5},
}


class ClusterCasesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(prefill=1, decode=1, worker_flags=(
            "--max-step-tokens", 64, "--max-running", 4)).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    def setUp(self):
        self.router = self.cluster.router
        self.decode, self.prefill = self.cluster.decode[0], self.cluster.prefill[0]

    def tearDown(self):
        self.cluster.wait_idle()
        self.cluster.assert_alive()

    def test_each_kind_of_request_is_answered_as_by_one_process_cold_and_cached(self):
        alone = shared_server()
        ids = alone.post("/tokenize", {"model": MODEL, "prompt": "Good night 🦦"}).json()["tokens"]
        with Witness(self.router):
            for name, fields in REQUESTS.items():
                body = {"temperature": 0, "max_tokens": 8} | fields
                body["prompt"] = body["prompt"] or ids[:-1]
                expected = alone.complete(**body)
                for turn in ("cold", "cached"):
                    with self.subTest(name, turn=turn):
                        found = self.router.complete(**body)
                        self.assertEqual(found["choices"], expected["choices"])
                        for count in ("prompt_tokens", "completion_tokens"):
                            self.assertEqual(found["usage"][count], expected["usage"][count])
                        if body["max_tokens"] == 0 or "n" in body or name == "a batch":
                            continue
                        events = self.router.stream(COMPLETIONS, body)
                        self.assertEqual("".join(e["choices"][0]["text"] for e in events),
                                         expected["choices"][0]["text"])

    def test_tenants_share_no_prefix_on_any_worker(self):
        # No other test begins like this: without a salt the first tokens may be shared.
        prompt = "Xylophone makers publish their annual report, chapter two. " * 36

        def cached(salt):
            answer = self.router.complete(prompt, max_tokens=2, temperature=0, cache_salt=salt)
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"], answer["choices"]
        first, expected = cached("a")
        self.assertEqual(first, 0)
        for salt in ("b", None):
            self.assertEqual(cached(salt), (0, expected))
        for salt in ("a", "b", None):
            hit, choices = cached(salt)
            self.assertGreater(hit, 300)
            self.assertEqual(choices, expected)

    def test_who_leaves_while_the_prompt_is_computed_stops_it(self):
        prompt = {"prompt": [9] * 4000, "max_tokens": 4, "ignore_eos": True}

        def computed():
            # The router may find that the decode worker is sooner done itself.
            return sum(worker.metric("vllm:iteration_tokens_total_sum")
                       for worker in (self.prefill, self.decode))
        began = computed()
        line = self.router.open_stream(prompt, path=COMPLETIONS)
        wait_until(lambda: computed() > began + 100, 20, "the prompt is being computed")
        line.close()
        self.cluster.wait_idle()
        self.assertLess(computed() - began, 3000)
        self.router.complete("And now", max_tokens=2)

    def test_who_leaves_while_waiting_is_never_computed(self):
        running = [self.router.open_stream({"prompt": f"Number {i}:", "max_tokens": 3000,
                                            "ignore_eos": True}, path=COMPLETIONS)
                   for i in range(4)]
        for line in running:
            line.recv(65536)
        began = self.decode.metric("vllm:generation_tokens_total")
        waiting = [self.router.open_stream({"prompt": STORY * 3 + str(i), "max_tokens": 50},
                                           path=COMPLETIONS) for i in range(6)]
        wait_until(lambda: self.decode.metric("vllm:num_requests_waiting") > 0, 20, "some wait")
        for line in waiting:
            line.close()
        wait_until(lambda: self.decode.metric("vllm:num_requests_waiting") == 0, 5,
                   "none waits although the others go on")
        self.assertGreaterEqual(self.decode.metric("vllm:generation_tokens_total"), began)
        for line in running:
            line.close()
        self.cluster.wait_idle()

    def test_one_id_for_two_requests_harms_neither(self):
        bodies = [{"prompt": STORY + str(i), "max_tokens": 10, "temperature": 0,
                   "ignore_eos": True} for i in range(2)]
        expected = [self.router.complete(**body)["choices"][0]["text"] for body in bodies]
        for _ in range(5):
            line = self.router.open_stream(bodies[0] | {"max_tokens": 2000}, path=COMPLETIONS,
                                           headers="X-Request-Id: same\r\n")
            for body, text in zip(bodies, expected):
                reply = self.router.post(COMPLETIONS, {"model": MODEL} | body,
                                         headers={"X-Request-Id": "same"})
                self.assertEqual(reply.json()["choices"][0]["text"], text)
            line.close()


if __name__ == "__main__":
    unittest.main()
