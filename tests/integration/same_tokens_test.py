"""Same request, same tokens: alone or together, in chunks of any size, from a warm cache, after
preemption, with any number of threads and on every instruction set, bit for bit."""

import threading
import unittest

from instruction_sets import lacking
from server import Server

# Of unequal length, two with a common beginning; greedy and sampled.
STORY = "The old lighthouse keeper climbed the stairs every evening, counting each of them aloud. "
REQUESTS = [
    {"prompt": "Water boils at", "temperature": 0},
    {"prompt": "def fibonacci(n):\n    ", "temperature": 0},
    {"prompt": STORY * 5, "temperature": 0},
    {"prompt": STORY * 5 + "One night", "temperature": 0.8, "seed": 11},
    {"prompt": "Les étoiles 🌟 sont", "temperature": 1.0, "seed": 12, "top_k": 50},
    {"prompt": "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "temperature": 0},
    {"prompt": "Dear Sir or Madam,\n\n" + "I write to you about the garden. " * 9,
     "temperature": 0.7, "seed": 13, "top_p": 0.9, "frequency_penalty": 0.5},
    {"prompt": "Once upon a time", "temperature": 1.2, "seed": 14, "min_p": 0.05,
     "repetition_penalty": 1.1},
    {"prompt": STORY * 3, "temperature": 0.9, "seed": 15,
     "bad_words": ["the", "light", "lighthouse keeper", "a", "."]},
    {"prompt": "A number:", "temperature": 1.1, "seed": 16,
     "allowed_token_ids": list(range(20, 60))},
]
FIELDS = {"max_tokens": 20, "ignore_eos": True, "logprobs": 3}
ANSWER_S = 240  # scalar arithmetic on a busy machine
CHUNKS = (1024, 7, 16, 33, 64, 100, 256)  # 1024 holds every prompt whole


def answer(server, request):
    choice = server.complete(**(FIELDS | request), timeout=ANSWER_S)["choices"][0]
    return {"text": choice["text"], "finish": choice["finish_reason"]} | choice["logprobs"]


def one_by_one(server, requests=REQUESTS):
    return [answer(server, request) for request in requests]


def together(server, requests=REQUESTS):
    answers = [None] * len(requests)

    def ask(i):
        answers[i] = answer(server, requests[i])
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


class SameTokensTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Server() as server:
            cls.reference = one_by_one(server)
            cls.warm = one_by_one(server)
            cls.side_by_side = together(server)

    def assert_same(self, answers, what):
        for i, (found, expected) in enumerate(zip(answers, self.reference)):
            with self.subTest(what, prompt=i):
                self.assertEqual(found, expected)

    def test_the_reference_is_whole(self):
        for found in self.reference:
            self.assertEqual(len(found["tokens"]), FIELDS["max_tokens"])
        self.assertEqual(len({found["text"] for found in self.reference}), len(REQUESTS))

    def test_another_arithmetic_is_told_apart(self):
        # The same tokens from fp32, whose log-probabilities differ in late digits only.
        with Server("--backend", "reference") as server:
            found, expected = answer(server, REQUESTS[0]), self.reference[0]
        self.assertNotEqual(found["token_logprobs"], expected["token_logprobs"])
        for ours, exact in zip(expected["token_logprobs"][:4], found["token_logprobs"][:4]):
            self.assertAlmostEqual(ours, exact, delta=0.5)

    def test_a_warm_cache_changes_nothing(self):
        self.assert_same(self.warm, "warm")

    def test_a_batch_changes_nothing(self):
        self.assert_same(self.side_by_side, "together")

    def test_chunks_of_any_size_change_nothing(self):
        for size in CHUNKS:
            with Server("--max-step-tokens", size) as server:
                self.assert_same(together(server), f"in chunks of {size}")

    def test_preemption_changes_nothing(self):
        # Each of the long ones fits alone; all together do not.
        with Server("--kv-blocks", 16) as server:
            self.assert_same(together(server), "preempted")
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
            server.wait_idle()

    def test_the_number_of_threads_changes_nothing(self):
        for count in (1, 3):
            with Server("--threads", count) as server:
                self.assert_same(together(server), f"{count} threads")

    def assert_same_by(self, isa, requests=REQUESTS):
        if lacking(isa):
            self.skipTest(f"this machine lacks {', '.join(sorted(lacking(isa)))}")
        with Server(environment={"TROUPE_CPU_FEATURES": isa}) as server:
            for found, request in zip(together(server, requests), requests):
                with self.subTest(isa, prompt=request["prompt"]):
                    self.assertEqual(found, self.reference[REQUESTS.index(request)])
            self.assertRegex(server.output(), rf"\bon cpu\b[^;]*\b{isa}\b")

    def test_scalar_arithmetic_changes_nothing(self):
        # 50 times slower than the others: not the long prompts.
        self.assert_same_by("scalar", [r for r in REQUESTS if len(r["prompt"]) < 100])

    def test_avx2_changes_nothing(self):
        self.assert_same_by("avx2")

    def test_avx512_changes_nothing(self):
        self.assert_same_by("avx512")

    def test_avx512_with_vnni_changes_nothing(self):
        self.assert_same_by("avx512vnni")

    def test_amx_changes_nothing(self):
        self.assert_same_by("amx")


if __name__ == "__main__":
    unittest.main()
