"""Reports of users, tried: numbers at the edge of what sampling can take, biases for tokens that do
not exist, choices that should differ, log-probabilities that JSON cannot hold."""

import json
import math
import threading
import unittest

from server import MODEL, Witness, chat, shared_server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
QUESTION = chat("What is the capital of France?", max_tokens=8)
STORY = chat("Tell me a story about a lighthouse.", max_tokens=12)


def strict_json(body):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")
    return json.loads(body.decode("utf-8"), parse_constant=refuse)


class SamplingCasesTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def post(self, body, path=CHAT):
        return self.server.post(path, {"model": MODEL} | body)

    def answer(self, body, path=CHAT):
        reply = self.post(body, path)
        self.assertEqual(reply.status, 200, reply.body[:500])
        return strict_json(reply.body)

    def texts(self, body):
        return [choice["message"]["content"] for choice in self.answer(body)["choices"]]

    def vocabulary(self):
        """Its size, as the server itself names it."""
        reply = self.post(QUESTION | {"logit_bias": {"99999999": 1}})
        words = reply.json()["error"]["message"].replace("]", " ").replace(",", " ").split()
        return max(int(word) for word in words if word.isdigit() and word != "99999999") + 1

    def test_temperatures_at_the_edge_are_greedy_or_refused_and_harm_no_neighbour(self):
        with Witness(self.server):
            greedy = self.texts(QUESTION | {"temperature": 0})
            for value in (1e-5, 1e-12, 1e-38, 1e-45, 5e-324, -0.0):
                self.assertEqual(self.texts(QUESTION | {"temperature": value, "seed": 1}), greedy,
                                 value)
            for fields in ({"top_p": 1e-9}, {"top_p": 1e-45}, {"top_k": 1}, {"min_p": 1}):
                self.assertEqual(self.texts(QUESTION | {"temperature": 1, "seed": 1} | fields),
                                 greedy, fields)
            sampled = self.texts(QUESTION | {"temperature": 1, "seed": 1})
            for fields in ({"temperature": None}, {"top_k": -1}, {"top_k": 0},
                           {"top_k": 10 * self.vocabulary()}, {"top_p": 1}, {"min_p": 0},
                           {"top_p": None}, {"repetition_penalty": 1}, {"presence_penalty": 0}):
                self.assertEqual(self.texts(QUESTION | {"temperature": 1, "seed": 1} | fields),
                                 sampled, fields)

    def test_a_number_out_of_range_is_refused_with_the_range(self):
        cases = [("temperature", text, "[0, 2]") for text in ("-0.1", "2.5", '"0.7"', "-1e-9")]
        cases += [("top_p", text, "(0, 1]") for text in ("0", "1.1", "-1", '"1"', "1e-400")]
        cases += [("min_p", text, "[0, 1]") for text in ("-0.5", "2")]
        cases += [("frequency_penalty", text, "[-2, 2]") for text in ("2.01", "-3", "true")]
        cases += [("repetition_penalty", text, "(0, 10]") for text in ("0", "-1", "11")]
        for path, rest in ((CHAT, '"messages":[{"role":"user","content":"x"}]'),
                           (COMPLETIONS, '"prompt":"x"')):
            for name, text, range_text in cases:
                with self.subTest(path=path, name=name, text=text):
                    body = f'{{"model":"{MODEL}",{rest},"{name}":{text}}}'
                    reply = self.server.post(path, body.encode())
                    self.assertEqual(reply.status, 400, reply.body[:300])
                    error = reply.json()["error"]
                    self.assertEqual(error["param"], name)
                    self.assertIn(range_text, error["message"])
            for name in ("temperature", "top_p", "seed", "max_tokens", "presence_penalty"):
                for text in ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0x1", "1.", ".5",
                             "+1", "01", "1e", "١"):
                    with self.subTest(path=path, name=name, text=text):
                        body = f'{{"model":"{MODEL}",{rest},"{name}":{text}}}'.encode()
                        self.assertEqual(self.server.post(path, body).status, 400)

    def test_a_bias_outside_the_vocabulary_names_the_key_and_the_range(self):
        last = self.vocabulary() - 1
        with Witness(self.server):
            for key in ("99999999", "-1", "abc", "1.0", "01", "", " 1", "+1", "1e1", str(2**32),
                        str(2**64 + 5), str(last + 1)):
                for path, body in ((CHAT, QUESTION), (COMPLETIONS, {"prompt": "x"})):
                    with self.subTest(key=key, path=path):
                        error = self.post(body | {"logit_bias": {key: 5}}, path).json()["error"]
                        self.assertEqual(error["param"], "logit_bias")
                        self.assertIn(f'"{key}"', error["message"])
                        self.assertIn(f"[0, {last}]", error["message"])
            for bias in (101, -100.5, None, "5", [1], True):
                error = self.post(QUESTION | {"logit_bias": {"5": bias}}).json()["error"]
                self.assertEqual(error["param"], "logit_bias")
                self.assertIn("[-100, 100]", error["message"])
            self.answer(QUESTION | {"logit_bias": {"0": 1, str(last): -100}, "max_tokens": 2})

    def test_a_bias_for_every_token_is_as_none(self):
        everything = {str(token): 3 for token in range(self.vocabulary())}
        for fields in ({"temperature": 0}, {"temperature": 1, "seed": 3}):
            body = QUESTION | fields | {"max_tokens": 6}
            self.assertEqual(self.texts(body | {"logit_bias": everything}), self.texts(body))
        banned = {token: -100 for token in everything}
        self.answer(QUESTION | {"logit_bias": banned, "max_tokens": 2})

    def test_other_ids_in_requests_are_checked_too(self):
        size = self.vocabulary()
        for path, body, param in (
                (CHAT, QUESTION | {"stop_token_ids": [size]}, "stop_token_ids[0]"),
                (CHAT, QUESTION | {"stop_token_ids": [1, -1]}, "stop_token_ids[1]"),
                (COMPLETIONS, {"prompt": [1, size]}, "prompt[1]"),
                (COMPLETIONS, {"prompt": [[1], [2, 2**40]]}, "prompt[1][1]"),
                ("/detokenize", {"tokens": [size]}, "tokens[0]")):
            error = self.post(body, path).json()["error"]
            self.assertEqual(error["param"], param)
            self.assertIn(f"[0, {size - 1}]", error["message"])

    def test_choices_differ_from_each_other_and_are_fixed_by_the_seed(self):
        body = STORY | {"temperature": 1, "seed": 7}
        four = self.texts(body | {"n": 4})
        self.assertEqual(len(set(four)), 4)
        self.assertEqual(self.texts(body | {"n": 4}), four)
        self.assertEqual(self.texts(body | {"n": 2}), four[:2])
        self.assertEqual(self.texts(body), four[:1])
        unseeded = self.texts(STORY | {"temperature": 1, "n": 4})
        self.assertEqual(len(set(unseeded)), 4)
        self.assertNotEqual(self.texts(STORY | {"temperature": 1, "n": 4}), unseeded)
        alone = [self.texts(STORY | {"temperature": 1, "seed": seed})[0] for seed in range(1, 6)]
        self.assertEqual(len(set(alone)), 5)
        together = [None] * 5

        def ask(i):
            together[i] = self.texts(STORY | {"temperature": 1, "seed": i + 1})[0]
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)
        for seed in (-1, 0, 2**63 - 1, -2**63, 2**64 - 1):
            self.texts(STORY | {"temperature": 1, "seed": seed, "max_tokens": 1})
        self.assertEqual(self.post(STORY | {"seed": 2**64}).status, 400)

    def test_log_probabilities_are_the_models_own_and_numbers(self):
        def top(body):
            choice = self.answer(body | {"logprobs": True, "top_logprobs": 5})["choices"][0]
            return choice["logprobs"]["content"]
        greedy = top(QUESTION | {"temperature": 0})
        for token in greedy:
            values = [entry["logprob"] for entry in token["top_logprobs"]]
            self.assertEqual(len(set(values)), 5)
            self.assertLessEqual(sum(math.exp(value) for value in values), 1 + 1e-4)
            self.assertEqual(bytes(token["bytes"]).decode("utf-8", "replace"), token["token"])
        hot = top(QUESTION | {"temperature": 2, "seed": 1, "max_tokens": 1})
        self.assertEqual(hot[0]["top_logprobs"], greedy[0]["top_logprobs"])
        # Ban the best one: the numbers stay, and stay numbers.
        best = self.server.post("/tokenize", {"model": MODEL, "prompt": greedy[0]["token"]}).json()
        banned = top(QUESTION | {"temperature": 0, "logit_bias": {
            str(token): -100 for token in best["tokens"]}})
        self.assertNotEqual(banned[0]["token"], greedy[0]["token"])
        for token in banned:
            for entry in [token, *token["top_logprobs"]]:
                self.assertTrue(-10000 <= entry["logprob"] <= 0, entry)
        old = self.answer({"prompt": "The", "temperature": 0, "max_tokens": 3, "logprobs": 20,
                           "logit_bias": {"5": -100}}, COMPLETIONS)["choices"][0]["logprobs"]
        self.assertTrue(all(len(entry) == 20 for entry in old["top_logprobs"]))

    def test_prompt_scores_are_the_same_bit_for_bit_in_any_order_and_under_load(self):
        shared = "It was a dark and stormy night; the rain fell in torrents, except at times. " * 4
        tails = ["The wind checked it.", "A candle burnt."]

        def scores(tail, salt=None):
            answer = self.answer({"prompt": shared + tail, "max_tokens": 0, "echo": True,
                                  "logprobs": 2, "cache_salt": salt}, COMPLETIONS)
            self.assertEqual(len(answer["choices"][0]["logprobs"]["token_logprobs"]),
                             answer["usage"]["prompt_tokens"])
            return answer["choices"][0]["logprobs"]
        cold = [scores(tail, salt) for salt, tail in zip(("a", "b"), tails)]
        self.answer({"prompt": shared, "max_tokens": 1}, COMPLETIONS)
        found, lock = [], threading.Lock()

        def ask(i):
            got = scores(tails[i % 2])
            with lock:
                found.append((i % 2, got))
        with Witness(self.server):
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(found), 20)
        for which, got in found:
            self.assertEqual(got, cold[which])


if __name__ == "__main__":
    unittest.main()
