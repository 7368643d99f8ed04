"""The same tokens from one process and from clusters of any shape: prompts computed where they are
decoded or by prefill workers, with cold and warm caches, one by one and side by side, by HTTP and
by RPC."""

import struct
import unittest

from cluster import Cluster
from rpc_client import Connection, run
from same_tokens_test import FIELDS, REQUESTS, one_by_one, together
from server import MODEL, Server, free_port

SHAPES = {"1 mixed": {"prefill": 0, "decode": 1, "role": "mixed"},
          "1 + 1": {"prefill": 1, "decode": 1},
          "2 + 2": {"prefill": 2, "decode": 2}}



def as_float(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def by_rpc(port):
    """(text, log-probabilities) of each request."""
    answers = []

    async def main():
        async with Connection(port) as line:
            for request in REQUESTS:
                fields = {"".join(part if i == 0 else part.title()
                                  for i, part in enumerate(name.split("_"))): value
                          for name, value in (FIELDS | request).items() if name != "prompt"}
                if "seed" in fields:
                    fields["seed"] = {"value": fields["seed"]}
                answer = (await line.complete(request["prompt"], **fields)).answer
                choice = answer.choices[0]
                answers.append((choice.text, [as_float(t.logprob) for t in choice.tokens]))
    run(main)
    return answers


def vectors_and_scores(server):
    """What is made of prompts without an output."""
    prompts = [request["prompt"] for request in REQUESTS]
    answers = [server.post("/v1/embeddings", {"model": MODEL, "input": prompts,
                                              "pooling": pooling}).json()["data"]
               for pooling in ("mean", "last")]
    scores = server.post("/v1/score", {"model": MODEL, "prompt": prompts[0],
                                       "continuations": [" yes", " no, not at all"]}).json()["data"]
    return [*answers, scores]


class ClusterTokensTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Server() as server:
            cls.reference = one_by_one(server)
            cls.vectors = vectors_and_scores(server)

    def assert_same(self, answers, what):
        for i, (found, expected) in enumerate(zip(answers, self.reference)):
            with self.subTest(what, prompt=i):
                self.assertEqual(found, expected)

    def assert_shape_gives_the_same(self, name):
        shape = SHAPES[name]
        rpc_port = free_port()
        with Cluster(**shape, router_flags=("--rpc-port", rpc_port)) as cluster:
            self.assert_same(one_by_one(cluster.router), f"{name}, cold")
            cluster.wait_idle()
            moved = sum(worker.metric("troupe_kv_imports_total", result="whole")
                        for worker in cluster.decode)
            self.assertEqual(moved > 0, shape["prefill"] > 0, "prompts moved between workers")
            self.assert_same(one_by_one(cluster.router), f"{name}, warm")
            self.assert_same(together(cluster.router), f"{name}, side by side")
            expected = [(answer["text"], [as_float(value) for value in answer["token_logprobs"]])
                        for answer in self.reference]
            self.assertEqual(by_rpc(rpc_port), expected, f"{name}, by RPC")
            self.assertEqual(vectors_and_scores(cluster.router), self.vectors, name)
            cluster.wait_idle()
            hits = sum(worker.metric("vllm:prefix_cache_hits_total") for worker in cluster.workers)
            self.assertGreater(hits, 0, "the warm run found nothing in the caches")
            cluster.assert_alive()

    def test_a_mixed_worker_gives_what_one_process_gives(self):
        self.assert_shape_gives_the_same("1 mixed")

    def test_1_prefill_and_1_decode_worker_give_what_one_process_gives(self):
        self.assert_shape_gives_the_same("1 + 1")

    def test_2_prefill_and_2_decode_workers_give_what_one_process_gives(self):
        self.assert_shape_gives_the_same("2 + 2")

    def test_the_comparison_sees_a_difference(self):
        self.assertEqual(len(self.reference), len(REQUESTS))
        for answer in self.reference:
            self.assertEqual(len(answer["token_logprobs"]), FIELDS["max_tokens"])
        self.assertEqual(len({str(answer) for answer in self.reference}), len(REQUESTS))


if __name__ == "__main__":
    unittest.main()
