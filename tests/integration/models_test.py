"""One process that serves several models, each under several names."""

import tempfile
import unittest
from pathlib import Path

from server import MODEL_FILE, TROUPE, Server

import subprocess


def other_model(folder):
    """The same model with one bit of one weight changed: it loads, and is another file."""
    path = Path(folder) / "other.gguf"
    content = bytearray(MODEL_FILE.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    return path


class ModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.other = other_model(cls.folder.name)
        cls.server = Server("--kv-memory-mib", 64, models=[MODEL_FILE, cls.other],
                            names=[f"{MODEL_FILE.stem}=smol,{MODEL_FILE.stem}=chat", "other=o"])
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def tearDown(self):
        self.server.wait_idle(10)

    def ask(self, model, **fields):
        return self.server.post("/v1/completions", {"model": model, "prompt": "The sky is",
                                                    "max_tokens": 4, "temperature": 0} | fields)

    def test_every_name_is_listed_with_the_first_one_as_its_root(self):
        listed = {model["id"]: model for model in self.server.get("/v1/models").json()["data"]}
        self.assertEqual({name: model["root"] for name, model in listed.items()},
                         {"smol": "smol", "chat": "smol", "o": "o"})
        self.assertEqual(self.server.get("/v1/models/chat").json()["id"], "chat")

    def test_an_answer_says_the_name_that_its_request_used(self):
        texts = set()
        for name in ("smol", "chat"):
            answer = self.ask(name).json()
            self.assertEqual(answer["model"], name)
            texts.add(answer["choices"][0]["text"])
        self.assertEqual(len(texts), 1)
        events = self.server.stream("/v1/completions", {"model": "chat", "prompt": "x",
                                                        "max_tokens": 2})
        self.assertEqual({event["model"] for event in events}, {"chat"})

    def test_an_unknown_name_is_a_404_that_lists_the_known(self):
        for path, field in (("/v1/completions", "prompt"), ("/v1/chat/completions", "messages"),
                            ("/tokenize", "prompt"), ("/v1/embeddings", "input")):
            reply = self.server.post(path, {"model": "gpt", field: "x"})
            error = reply.json()["error"]
            self.assertEqual((reply.status, error["code"], error["param"]),
                             (404, "model_not_found", "model"))
            for name in ("smol", "chat", "o"):
                self.assertIn(f'"{name}"', error["message"])

    def test_without_a_name_the_server_cannot_know_which_model_is_meant(self):
        self.assertEqual(self.server.post("/tokenize", {"prompt": "x"}).status, 400)

    def test_a_prefix_of_one_model_is_no_hit_for_the_other(self):
        prompt = "A prompt that fills more than one block, and then some more. " * 8

        def cached(name):
            answer = self.ask(name, prompt=prompt).json()
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual(cached("smol"), 0)
        self.assertGreater(cached("chat"), 0)  # another name of the same model
        self.assertEqual(cached("o"), 0)
        self.assertGreater(cached("o"), 0)

    def test_metrics_are_told_apart_by_the_models_first_name(self):
        before = {name: self.server.metric("vllm:request_success_total", model_name=name)
                  for name in ("smol", "o")}
        self.ask("chat")
        after = {name: self.server.metric("vllm:request_success_total", model_name=name)
                 for name in ("smol", "o")}
        self.assertEqual(after, before | {"smol": before["smol"] + 1})
        self.assertEqual(self.server.metric("troupe_kv_blocks_total", model_name="smol"),
                         self.server.metric("troupe_kv_blocks_total", model_name="o"))


class ModelNamesTest(unittest.TestCase):
    def refusal(self, *arguments):
        done = subprocess.run([TROUPE, "serve", *map(str, arguments), "--port", "0"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_a_name_of_no_model_and_a_name_of_two_are_refused_before_anything_is_loaded(self):
        two = [MODEL_FILE, "/nonexistent/other.gguf"]
        self.assertIn("FILE=NAME", self.refusal(*two, "--served-model-name", "x"))
        self.assertIn("two models", self.refusal(*two, "--served-model-name", "other=x",
                                                 "--served-model-name", f"{MODEL_FILE.stem}=x"))
        self.assertIn("two models", self.refusal(MODEL_FILE, MODEL_FILE))


if __name__ == "__main__":
    unittest.main()
