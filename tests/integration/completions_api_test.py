"""Completions, tokenisation and the other endpoints, over plain HTTP and the openai package."""

import math
import unittest

from server import MODEL, openai_client, shared_server

TEXT = "The lighthouse stood on the edge of the"


class CompletionsApiTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def tokens(self, text):
        return self.server.post("/tokenize", {"model": MODEL, "prompt": text}).json()["tokens"]

    def complete(self, prompt, **fields):
        return self.server.complete(prompt, **({"temperature": 0, "max_tokens": 12} | fields))

    def test_the_openai_package_completes_a_text(self):
        client = openai_client(self.server)
        answer = client.completions.create(model=MODEL, prompt=TEXT, max_tokens=8, temperature=0)
        self.assertEqual(answer.object, "text_completion")
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 8)
        streamed = "".join(chunk.choices[0].text for chunk in client.completions.create(
            model=MODEL, prompt=TEXT, max_tokens=8, temperature=0, stream=True))
        self.assertEqual(streamed, answer.choices[0].text)

    def test_token_ids_as_prompt_equal_the_text(self):
        by_text, by_ids = self.complete(TEXT), self.complete(self.tokens(TEXT))
        self.assertEqual(by_ids["choices"][0]["text"], by_text["choices"][0]["text"])
        self.assertEqual(by_ids["usage"]["prompt_tokens"], by_text["usage"]["prompt_tokens"])

    def test_a_batch_of_prompts_equals_them_one_by_one(self):
        prompts = [TEXT, "Once upon a time", "def add(a, b):\n", "1, 2, 3, 4,"]
        single = [self.complete(p)["choices"][0]["text"] for p in prompts]
        batch = self.complete(prompts)
        self.assertEqual([c["index"] for c in batch["choices"]], [0, 1, 2, 3])
        self.assertEqual([c["text"] for c in batch["choices"]], single)
        ids = self.complete([self.tokens(p) for p in prompts])
        self.assertEqual([c["text"] for c in ids["choices"]], single)
        self.assertEqual(batch["usage"]["prompt_tokens"], sum(len(self.tokens(p)) for p in prompts))
        two = self.complete(prompts[:2], n=2, temperature=1, seed=5)
        self.assertEqual([c["index"] for c in two["choices"]], [0, 1, 2, 3])
        self.assertEqual(len({c["text"] for c in two["choices"]}), 4)

    def test_only_allowed_tokens_come(self):
        allowed = self.tokens(" red green blue")
        answer = self.complete("The sky is", allowed_token_ids=allowed, max_tokens=8, logprobs=0,
                               temperature=1, seed=3)
        text = answer["choices"][0]["text"]
        self.assertTrue(set(text.split()) <= {"red", "green", "blue"}, text)
        self.assertEqual(answer["usage"]["completion_tokens"], 8)
        refused = self.server.post("/v1/completions", {
            "model": MODEL, "prompt": "x", "allowed_token_ids": allowed[:1], "max_tokens": 4,
            "bad_words": [self.server.post("/detokenize", {
                "model": MODEL, "tokens": allowed[:1]}).json()["prompt"]]})
        self.assertEqual((refused.status, refused.json()["error"]["param"]),
                         (400, "allowed_token_ids"))

    def test_bad_words_do_not_come(self):
        plain = self.complete("The capital of France is", max_tokens=4)["choices"][0]["text"]
        self.assertIn("Paris", plain)
        # In one token and in several, at the beginning and behind a space.
        for words in (["Paris"], ["  Paris", "Lyon"], ["Paris", "the", "a city"]):
            text = self.complete("The capital of France is", bad_words=words,
                                 max_tokens=20)["choices"][0]["text"]
            for word in words:
                self.assertNotIn(f" {word.strip()} ", text)
        longer = " ".join(plain.split()) + " " + self.complete(
            "The capital of France is" + plain, max_tokens=8)["choices"][0]["text"].split()[0]
        text = self.complete("The capital of France is", bad_words=[longer],
                             max_tokens=12)["choices"][0]["text"]
        self.assertNotIn(longer, text)

    def test_echo_with_no_new_token_scores_the_prompt(self):
        answer = self.complete("Hello world", max_tokens=0, echo=True, logprobs=1)
        choice = answer["choices"][0]
        self.assertEqual(choice["text"], "Hello world")
        self.assertEqual(answer["usage"]["completion_tokens"], 0)
        scores = choice["logprobs"]["token_logprobs"]
        self.assertEqual(len(scores), answer["usage"]["prompt_tokens"])
        self.assertIsNone(scores[0])
        self.assertTrue(all(score <= 0 and math.isfinite(score) for score in scores[1:]))
        self.assertEqual("".join(choice["logprobs"]["tokens"]), "Hello world")

    def test_echo_puts_the_prompt_before_the_answer(self):
        plain, echoed = self.complete(TEXT, logprobs=2), self.complete(TEXT, echo=True, logprobs=2)
        text = plain["choices"][0]["text"]
        self.assertEqual(echoed["choices"][0]["text"], TEXT + text)
        scores = echoed["choices"][0]["logprobs"]
        self.assertEqual(len(scores["tokens"]), echoed["usage"]["total_tokens"])
        self.assertEqual(scores["token_logprobs"][-12:],
                         plain["choices"][0]["logprobs"]["token_logprobs"])
        self.assertEqual(scores["text_offset"][0], 0)

    def test_prompt_scores_do_not_depend_on_the_cache(self):
        shared = "In the beginning there was a word, and the word was written down. " * 4
        tails = ["The end.", "Nobody read it."]

        def scores(tail):
            return self.complete(shared + tail, max_tokens=0, echo=True,
                                 logprobs=1)["choices"][0]["logprobs"]["token_logprobs"]
        cold = [scores(tail) for tail in tails]
        for _ in range(3):
            self.assertEqual([scores(tail) for tail in tails], cold)
            self.complete(shared, max_tokens=1)
            self.assertEqual([scores(tail) for tail in reversed(tails)], cold[::-1])

    def test_a_prompt_that_ends_inside_a_character_leaks_nothing(self):
        ids = self.tokens("Good night 🦦")
        for cut in (1, 2):
            with self.subTest(cut=cut):
                fields = {"max_tokens": 8, "temperature": 0}
                whole = self.server.complete(ids[:-cut], **fields)["choices"][0]["text"]
                events = self.server.stream("/v1/completions", {"prompt": ids[:-cut]} | fields)
                self.assertEqual("".join(e["choices"][0]["text"] for e in events if e["choices"]),
                                 whole)
                self.assertNotIn("Good night", whole)

    def test_stop_token_ids_end_the_text(self):
        reference = self.complete(TEXT, max_tokens=20, logprobs=0)["choices"][0]
        fifth = reference["logprobs"]["tokens"][5]
        ids = self.tokens(fifth)
        self.assertEqual(len(ids), 1)
        first = reference["logprobs"]["tokens"].index(fifth)
        stopped = self.complete(TEXT, max_tokens=20, stop_token_ids=ids)
        self.assertEqual(stopped["choices"][0]["finish_reason"], "stop")
        self.assertEqual(stopped["choices"][0]["text"],
                         "".join(reference["logprobs"]["tokens"][:first]))

    def test_penalties_change_a_repetitive_answer(self):
        prompt = "yes yes yes yes yes yes yes yes"
        plain = self.complete(prompt, max_tokens=16)["choices"][0]["text"]
        for penalty in ({"frequency_penalty": 2}, {"presence_penalty": 2},
                        {"repetition_penalty": 1.8}):
            with self.subTest(penalty):
                self.assertNotEqual(self.complete(prompt, max_tokens=16, **penalty)
                                    ["choices"][0]["text"], plain)

    def test_tiny_temperatures_and_narrow_filters_are_greedy(self):
        greedy = self.complete(TEXT)["choices"][0]["text"]
        for fields in ({"temperature": 1e-12}, {"temperature": 1e-38}, {"temperature": 1e-5},
                       {"temperature": 1, "top_k": 1}, {"temperature": 1, "top_p": 1e-9},
                       {"temperature": 2, "min_p": 1.0}):
            with self.subTest(fields):
                self.assertEqual(self.complete(TEXT, seed=1, **fields)["choices"][0]["text"],
                                 greedy)

    def test_text_survives_tokenisation_and_back(self):
        for text in ("Hello, world", "naïve café 🦦👩‍👩‍👧", "tabs\tand\r\nnewlines\n\n",
                     "日本語のテキスト", " leading", "trailing ", "12345678901", "<|im_start|>"):
            with self.subTest(text):
                reply = self.server.post("/tokenize", {"model": MODEL, "prompt": text}).json()
                self.assertEqual(reply["count"], len(reply["tokens"]))
                self.assertEqual(reply["max_model_len"], 8192)
                back = self.server.post("/detokenize", {"model": MODEL,
                                                        "tokens": reply["tokens"]}).json()
                self.assertEqual(back["prompt"], text)

    def test_a_repeated_prompt_is_found_in_the_cache(self):
        prompt = "A quite particular text that nobody else sends, number 4711. " * 6
        first, second = self.complete(prompt), self.complete(prompt)
        self.assertEqual(first["choices"], second["choices"])
        hit = second["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(hit, second["usage"]["prompt_tokens"] // 16 * 16 - 16)
        other = self.complete(prompt, cache_salt="another tenant")
        self.assertEqual(other["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(other["choices"][0]["text"], first["choices"][0]["text"])

    def test_health_answers_and_unknown_paths_are_404(self):
        self.assertEqual(self.server.get("/health").status, 200)
        self.assertEqual(self.server.request("HEAD", "/metrics").status, 200)
        missing = self.server.get("/v2/nothing")
        self.assertEqual(missing.status, 404)
        self.assertIn("error", missing.json())
        self.assertEqual(self.server.get("/v1/chat/completions").status, 405)


if __name__ == "__main__":
    unittest.main()
