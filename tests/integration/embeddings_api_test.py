"""Vectors and scores of prompts, over plain HTTP and the openai package."""

import base64
import json
import math
import socket
import struct
import unittest

from server import MODEL, ROOT, Server, openai_client, shared_server, wait_until

TEXT = "The lighthouse stood on the edge of the cliff, and nobody had lit it for years."
WIDTH = 576


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)


def leave_while_it_runs(server, path, body):
    """Asks, leaves as soon as it is being worked on, and waits until nothing of it is left."""
    server.wait_idle(20)
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                       % (path.encode(), len(body)) + body)
    wait_until(lambda: server.metric("vllm:num_requests_running") > 0, 20, "the request runs")
    connection.close()
    server.wait_idle(20)


class EmbeddingsApiTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def embed(self, value, **fields):
        reply = self.server.post("/v1/embeddings", {"model": MODEL, "input": value} | fields)
        self.assertEqual(reply.status, 200, reply.body[:500])
        answer = reply.json()
        self.assertEqual([entry["index"] for entry in answer["data"]],
                         list(range(len(answer["data"]))))
        return [entry["embedding"] for entry in answer["data"]]

    def refused(self, param, **fields):
        reply = self.server.post("/v1/embeddings", {"model": MODEL, "input": TEXT} | fields)
        self.assertEqual(reply.status, 400, reply.body[:300])
        self.assertEqual(reply.json()["error"]["param"], param)
        return reply.json()["error"]

    def tokens(self, text):
        return self.server.post("/tokenize", {"model": MODEL, "prompt": text}).json()["tokens"]

    def test_the_openai_package_gets_vectors_of_length_one(self):
        client = openai_client(self.server)
        answer = client.embeddings.create(model=MODEL, input=[TEXT, "A red car."])
        self.assertEqual(answer.object, "list")
        self.assertEqual(answer.model, MODEL)
        self.assertEqual(answer.usage.prompt_tokens,
                         len(self.tokens(TEXT)) + len(self.tokens("A red car.")))
        # The package asks for base64 by itself; what it decodes are the numbers of the other form.
        plain = self.embed([TEXT, "A red car."], encoding_format="float")
        for entry, numbers in zip(answer.data, plain):
            self.assertEqual(len(entry.embedding), WIDTH)
            self.assertAlmostEqual(math.hypot(*entry.embedding), 1, places=5)
            for a, b in zip(entry.embedding, numbers):
                self.assertEqual(struct.pack("<f", a), struct.pack("<f", b))

    def test_base64_has_the_same_floats(self):
        coded = self.embed(TEXT, encoding_format="base64")[0]
        numbers = struct.unpack(f"<{WIDTH}f", base64.b64decode(coded))
        self.assertEqual(struct.pack(f"<{WIDTH}f", *self.embed(TEXT)[0]),
                         struct.pack(f"<{WIDTH}f", *numbers))

    def test_a_vector_does_not_depend_on_company_order_form_or_cache(self):
        texts = [TEXT, "A red car.", "def add(a, b):\n    return a + b", TEXT + " " + TEXT]
        for pooling in ("mean", "last"):
            with self.subTest(pooling=pooling):
                alone = [self.embed(text, pooling=pooling)[0] for text in texts]
                self.assertEqual(self.embed(texts, pooling=pooling), alone)
                self.assertEqual(self.embed(texts[::-1], pooling=pooling), alone[::-1])
                self.assertEqual(self.embed([self.tokens(text) for text in texts],
                                            pooling=pooling), alone)
                self.server.complete(TEXT, max_tokens=1)  # now its prefix is cached
                self.assertEqual(self.embed(texts, pooling=pooling), alone)

    def test_the_mean_is_that_of_the_last_states_of_all_prefixes(self):
        tokens = self.tokens("The sea was calm that day.")
        prefixes = [tokens[:i + 1] for i in range(len(tokens))]
        lasts = self.embed(prefixes, pooling="last", normalize=False)
        mean = self.embed(tokens, normalize=False)[0]
        for i, value in enumerate(mean):
            self.assertAlmostEqual(value, sum(last[i] for last in lasts) / len(lasts), places=4)

    def test_vectors_have_the_direction_of_llama_cpps(self):
        known = json.loads((ROOT / "tests/golden/embeddings/llama_cpp.json").read_text("utf-8"))
        texts = [case["text"] for case in known["cases"]]
        for pooling in ("mean", "last"):
            for case, vector in zip(known["cases"], self.embed(texts, pooling=pooling)):
                self.assertGreater(cosine(vector, case[pooling]), 0.999, (pooling, case["text"]))
        wrong = self.embed(texts[0], pooling="last")[0]
        self.assertLess(cosine(wrong, known["cases"][0]["mean"]), 0.999)

    def test_near_texts_have_near_vectors(self):
        boat, ship, code = self.embed(["The boat sailed across the sea.",
                                       "The ship sailed over the ocean.",
                                       "for (int i = 0; i < n; ++i) sum += a[i];"])
        self.assertGreater(cosine(boat, ship), cosine(boat, code))

    def test_dimensions_cut_and_lengthen_to_one_again(self):
        whole = self.embed(TEXT)[0]
        short = self.embed(TEXT, dimensions=64)[0]
        self.assertEqual(len(short), 64)
        self.assertAlmostEqual(math.hypot(*short), 1, places=5)
        self.assertAlmostEqual(cosine(short, whole[:64]), 1, places=5)
        self.assertEqual(self.embed(TEXT, dimensions=WIDTH)[0], whole)
        for dimensions in (0, WIDTH + 1, 1.5, "64"):
            self.refused("dimensions", dimensions=dimensions)

    def test_a_long_input_is_cut_only_when_asked_for(self):
        tokens = self.tokens(TEXT)
        self.assertEqual(self.embed(TEXT, truncate_prompt_tokens=5)[0],
                         self.embed(tokens[-5:])[0])
        error = self.refused("input[1]", input=[[1], [1] * 8193])
        self.assertEqual(error["code"], "context_length_exceeded")

    def test_what_is_wrong_is_named_by_its_place(self):
        self.refused("input", input="")
        self.refused("input", input=[])
        self.refused("input[1]", input=["a", ""])
        self.refused("input[0][1]", input=[[1, 99999999]])
        self.refused("encoding_format", encoding_format="float16")
        self.refused("pooling", pooling="max")
        self.assertIn("did you mean", self.refused("dimension", dimension=5)["message"])
        self.assertEqual(self.refused("messages", messages=[{"role": "user", "content": "x"}])
                         ["code"], "unsupported_parameter")
        self.refused("input", input=["a"] * 2049)
        reply = self.server.post("/v1/embeddings", {"model": "other", "input": "a"})
        self.assertEqual(reply.status, 404)

    def test_chunks_and_threads_do_not_show(self):
        texts = [TEXT * 3, TEXT, "A red car."]
        expected = self.embed(texts)
        with Server("--threads", 1, "--max-step-tokens", 16) as server:
            reply = server.post("/v1/embeddings", {"model": MODEL, "input": texts})
            self.assertEqual([entry["embedding"] for entry in reply.json()["data"]], expected)

    def test_who_leaves_leaves_nothing_behind(self):
        body = (b'{"model":"%s","input":[' % MODEL.encode()
                + b",".join(b'"%s %d"' % (TEXT.encode() * 20, i) for i in range(40)) + b"]}")
        leave_while_it_runs(self.server, "/v1/embeddings", body)


class ScoreApiTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def score(self, prompt, continuations, **fields):
        reply = self.server.post("/v1/score", {"model": MODEL, "prompt": prompt,
                                               "continuations": continuations} | fields)
        self.assertEqual(reply.status, 200, reply.body[:500])
        return reply.json()

    def test_scores_are_those_of_the_echoed_prompt(self):
        prompt, endings = "The capital of France is", [" Paris.", " a quite small village."]
        answer = self.score(prompt, endings)
        for entry, ending in zip(answer["data"], endings):
            echoed = self.server.complete(prompt + ending, max_tokens=0, echo=True, logprobs=1)
            expected = echoed["choices"][0]["logprobs"]["token_logprobs"]
            count = entry["token_count"]
            self.assertEqual(len(entry["token_logprobs"]), count)
            self.assertEqual("".join(entry["tokens"]), ending)
            self.assertEqual(entry["token_logprobs"], expected[-count:])
            self.assertAlmostEqual(entry["logprob"], sum(expected[-count:]), places=4)
        self.assertGreater(answer["data"][0]["logprob"], answer["data"][1]["logprob"])

    def test_who_leaves_leaves_nothing_behind(self):
        endings = b",".join(b'" %s %d"' % (TEXT.encode() * 20, i) for i in range(40))
        body = (b'{"model":"%s","prompt":"%s","continuations":[%s]}'
                % (MODEL.encode(), TEXT.encode() * 10, endings))
        leave_while_it_runs(self.server, "/v1/score", body)
        answer = self.score("The capital of France is", [" Paris."])
        self.assertEqual(answer["data"][0]["token_count"], 2)

    def test_what_the_model_would_say_itself_is_greedy(self):
        prompt = "One, two, three, four,"
        said = self.server.complete(prompt, max_tokens=4, temperature=0, logprobs=0)
        text = said["choices"][0]["text"]
        ids = self.server.post("/tokenize", {"model": MODEL, "prompt": text}).json()["tokens"]
        first, second = self.score(prompt, [ids, " nineteen"])["data"]
        self.assertTrue(first["is_greedy"])
        self.assertFalse(second["is_greedy"])

    def test_the_prompt_of_many_is_computed_once(self):
        prompt = "A text that stands before a number of endings and is long enough to tell. " * 6
        answer = self.score(prompt, [f" ending number {i}" for i in range(12)])
        alone = [self.score(prompt, [f" ending number {i}"])["data"][0]["token_logprobs"]
                 for i in (0, 5)]
        self.assertEqual([answer["data"][i]["token_logprobs"] for i in (0, 5)], alone)
        again = self.score(prompt, [" x"])
        self.assertGreater(again["usage"]["prompt_tokens_details"]["cached_tokens"], 64)

    def test_what_is_wrong_is_named_by_its_place(self):
        for fields, param in (({"continuations": []}, "continuations"),
                              ({"continuations": ["a", ""]}, "continuations[1]"),
                              ({"prompt": ""}, "prompt"),
                              ({"text_1": "a"}, "text_1"),
                              ({"continuations": ["a"], "prompt": [1] * 8193},
                               "continuations[0]")):
            with self.subTest(param):
                body = {"model": MODEL, "prompt": "a", "continuations": ["b"]} | fields
                reply = self.server.post("/v1/score", body)
                self.assertEqual(reply.status, 400)
                self.assertEqual(reply.json()["error"]["param"], param)


if __name__ == "__main__":
    unittest.main()
