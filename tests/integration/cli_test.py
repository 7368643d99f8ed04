"""The command line: generate, chat and inspect, and the same tokens on every instruction set."""

import json
import subprocess
import unittest
from pathlib import Path

from instruction_sets import NEEDED_FLAGS, lacking
from server import MODEL, MODEL_FILE, TROUPE, shared_server


def troupe(*arguments, text=None, timeout=120):
    return subprocess.run([TROUPE, *map(str, arguments)], input=text, capture_output=True,
                          text=True, timeout=timeout, check=False)


class CliTest(unittest.TestCase):
    def generate(self, prompt, *flags):
        run = troupe("generate", MODEL_FILE, "--prompt", prompt, *flags)
        self.assertEqual(run.returncode, 0, run.stderr[-2000:])
        return run.stdout

    def test_generate_continues_a_text(self):
        text = self.generate("The capital of France is", "--max-tokens", 8, "--temperature", 0)
        self.assertIn("Paris", text)

    def test_generate_reads_a_prompt_from_standard_input(self):
        by_flag = self.generate("One, two,", "--max-tokens", 6, "--temperature", 0)
        run = troupe("generate", MODEL_FILE, "--prompt", "-", "--max-tokens", 6, "--temperature", 0,
                     text="One, two,")
        self.assertEqual(run.stdout, by_flag)

    def test_a_seed_repeats_a_sample(self):
        flags = ("--max-tokens", 12, "--temperature", 1)
        first = self.generate("Once upon a time", *flags, "--seed", 1)
        self.assertEqual(self.generate("Once upon a time", *flags, "--seed", 1), first)
        self.assertNotEqual(self.generate("Once upon a time", *flags, "--seed", 2), first)

    def test_every_instruction_set_gives_the_same_tokens_and_logprobs(self):
        able = [isa for isa in NEEDED_FLAGS if not lacking(isa)]
        self.assertIn("scalar", able)
        prompt = "The lighthouse stood on the edge of the cliff, and every night"
        answers = {}
        for isa in able:
            out = self.generate(prompt, "--cpu-features", isa, "--max-tokens", 10,
                                "--temperature", 0.9, "--seed", 5, "--json")
            answers[isa] = json.loads(out)
        for isa, found in answers.items():
            with self.subTest(isa):
                self.assertEqual(found, answers["scalar"])

    def test_a_profile_shows_each_operation_with_what_it_reads_and_multiplies(self):
        run = troupe("profile", MODEL_FILE, "--phase", "2x3@20", "--steps", 2, "--threads", 2,
                     "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual(report["threads"], 2)
        [phase] = report["phases"]
        self.assertEqual((phase["phase"], phase["tokens"], phase["steps"]), ("2x3@20", 6, 2))
        operations = {one["name"]: one for one in phase["operations"]}
        layers, width, ffn, heads, kv_heads, head, vocab = 30, 576, 1536, 9, 3, 64, 49152
        gated = operations["gated_linear ffn_gate ffn_up"]
        self.assertEqual(gated["calls"], 2 * layers)
        self.assertEqual(gated["operations"], 2 * layers * 6 * 2 * 2 * width * ffn)
        self.assertGreaterEqual(gated["bytes"], 2 * layers * 2 * width * ffn * 5 / 8)
        seen = sum(20 + row for row in (1, 2, 3))
        self.assertEqual(operations["attention"]["operations"],
                         2 * layers * 2 * 4 * heads * head * seen)
        self.assertGreaterEqual(operations["attention"]["bytes"],
                                2 * layers * 2 * 23 * 2 * 2 * kv_heads * head)
        self.assertEqual(operations["linear token_embd"]["operations"], 2 * 2 * 2 * width * vocab)
        for name, one in operations.items():
            with self.subTest(name):
                self.assertLessEqual(one["busy_seconds"], 2 * one["seconds"] + 0.01)
        self.assertLessEqual(sum(one["seconds"] for one in operations.values()), phase["seconds"])
        self.assertIn("gated_linear", troupe("profile", MODEL_FILE, "--phase", "1x1@0",
                                             "--steps", 1).stdout)

    def test_a_phase_that_cannot_be_profiled_is_refused(self):
        for phase, why in (("8", "cannot be read"), ("8x1@", "cannot be read"),
                           ("8x1@128 ", "cannot be read"), ("0x1@1", "computes nothing"),
                           ("2000x1@1", "is larger than 1024 sequences"),
                           ("1024x64@8000", "of memory are available; take fewer"),
                           ("1x1@9000", "needs a context of 9001 tokens, the model has 8192")):
            with self.subTest(phase):
                run = troupe("profile", MODEL_FILE, "--phase", phase)
                self.assertEqual(run.returncode, 1)
                self.assertIn(why, run.stderr)

    def test_an_instruction_set_that_the_machine_lacks_is_refused(self):
        for isa in NEEDED_FLAGS:
            if not lacking(isa):
                continue
            with self.subTest(isa):
                run = troupe("generate", MODEL_FILE, "--prompt", "x", "--cpu-features", isa)
                self.assertEqual(run.returncode, 1, run.stderr)
                for name in {isa, "lacks", "auto"} | lacking(isa):
                    self.assertIn(name, run.stderr)

    def test_the_reference_backend_agrees_on_plain_text(self):
        flags = ("--max-tokens", 6, "--temperature", 0)
        prompt = "The capital of France is"
        self.assertEqual(self.generate(prompt, *flags, "--backend", "reference"),
                         self.generate(prompt, *flags))

    def test_chat_answers_and_keeps_the_history(self):
        lines = ["Name a fruit.", "Name another one."]
        run = troupe("chat", MODEL_FILE, "--temperature", 0, "--max-tokens", 30,
                     text="".join(line + "\n" for line in lines))
        self.assertEqual(run.returncode, 0, run.stderr[-2000:])
        # What the server answers when the client sends the history.
        messages, answers = [], []
        for line in lines:
            messages.append({"role": "user", "content": line})
            answers.append(shared_server().post("/v1/chat/completions", {
                "model": MODEL, "messages": messages, "temperature": 0, "max_tokens": 30})
                .json()["choices"][0]["message"]["content"])
            messages.append({"role": "assistant", "content": answers[-1]})
        self.assertEqual(run.stdout, "".join(answer + "\n" for answer in answers))

    def test_chat_without_a_line_ends_quietly(self):
        run = troupe("chat", MODEL_FILE, text="")
        self.assertEqual(run.returncode, 0, run.stderr[-2000:])

    def test_inspect_tells_metadata_tensors_and_memory(self):
        run = troupe("inspect", MODEL_FILE)
        self.assertEqual(run.returncode, 0, run.stderr)
        for word in ("llama", "general.architecture", "token_embd.weight", "Q4_1", "8192", "MiB"):
            self.assertIn(word, run.stdout)

    def test_mistakes_are_named(self):
        for arguments, word in ((["inspect", "/nonexistent.gguf"], "/nonexistent.gguf"),
                                (["generate", MODEL_FILE], "--prompt"),
                                (["generate", MODEL_FILE, "-p", "x", "--temperature", "9"],
                                 "--temperature"),
                                (["generate", MODEL_FILE, "-p", "word " * 9000], "8192"),
                                (["generate", MODEL_FILE, "-p", "\udcff"], "UTF-8")):
            with self.subTest(str(arguments)[:60]):
                run = troupe(*[a if isinstance(a, Path) else a.encode("utf-8", "surrogateescape")
                               .decode("utf-8", "surrogateescape") for a in arguments])
                self.assertGreater(run.returncode, 0)
                self.assertIn(word, run.stderr + run.stdout)


if __name__ == "__main__":
    unittest.main()
