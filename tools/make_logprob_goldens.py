#!/usr/bin/env python3
"""Writes tests/golden/logprobs/fp32.json: next-token log-probabilities in fp32 arithmetic.

    python3 -m venv venv && venv/bin/pip install xllamacpp gguf numpy
    venv/bin/python tools/make_logprob_goldens.py models/SmolLM2-135M-Instruct.Q4_1.gguf

The model's weights are de-quantised into an F32 file, which llama.cpp runs with an F32 KV cache and
without flash attention, so that nothing in it is rounded to less than fp32. A float64 forward pass
in numpy, below, then scores the same tokens: the largest difference is stored with the data, and
one above 5e-4 is an error.
"""

import codecs
import concurrent.futures
import json
import pathlib
import sys
import tempfile

import gguf
import numpy as np
import xllamacpp
from llama_server import LlamaServer, version

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/logprobs/fp32.json"
POSITIONS = 64
ALTERNATIVES = 20


def chat(user, system="You are a helpful AI assistant named SmolLM, trained by Hugging Face"):
    turns = [("system", system), ("user", user)]
    told = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)
    return told + "<|im_start|>assistant\n"


PROMPTS = [
    ("story", "Once upon a time, in a small village by the sea, there lived"),
    (
        "science",
        "Photosynthesis is the process by which plants turn light into energy. In the first step,",
    ),
    ("python", "def merge_sort(items):\n    if len(items) <= 1:\n        return items\n"),
    (
        "c++",
        "#include <iostream>\n#include <vector>\n"
        "int main() {\n  std::vector<int> values = {3, 1, 2};\n",
    ),
    ("german", "Die Hauptstadt von Deutschland ist Berlin. Die Stadt hat"),
    ("french", "Il était une fois un petit garçon qui habitait"),
    ("russian", "Москва — столица России. В городе"),
    ("chinese", "今天天气很好，我们去"),
    ("numbers", "1, 1, 2, 3, 5, 8, 13, 21, 34,"),
    ("chat facts", chat("Explain why the sky is blue, in detail.")),
    ("chat code", chat("Write a Python function that tells whether a string is a palindrome.")),
    ("chat list", chat("Ten ideas for a rainy Sunday? 😀", "Answer with a numbered list.")),
]


def write_f32(reader, path):
    """The same model with every tensor stored as F32."""
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(path, architecture)
    for field in reader.fields.values():
        replaced = ("general.architecture", "general.file_type")
        if field.name.startswith("GGUF.") or field.name in replaced:
            continue
        element = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], element)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Float64Model:
    """The llama architecture, straight from its formulas, in float64."""

    def __init__(self, reader):
        number = lambda key: reader.fields["llama." + key].contents()
        self.layers = number("block_count")
        self.heads = number("attention.head_count")
        self.kv_heads = number("attention.head_count_kv")
        self.epsilon = number("attention.layer_norm_rms_epsilon")
        self.rope_base = number("rope.freq_base")
        self.weights = {
            t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors
        }

    def weight(self, name):
        return self.weights[name + ".weight"].astype(np.float64)

    def norm(self, x, name):
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.epsilon) * self.weight(name)

    def rope(self, x):
        """Rotates neighbours (0, 1), (2, 3), … of each head; x is [token, head, dim]."""
        dim = x.shape[-1]
        angles = np.arange(x.shape[0])[:, None] * self.rope_base ** (-np.arange(0, dim, 2) / dim)
        cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
        even, odd = x[..., 0::2], x[..., 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)

    def attention(self, x, block):
        count = x.shape[0]
        project = lambda name, heads: (x @ self.weight(block + name).T).reshape(count, heads, -1)
        q = self.rope(project("attn_q", self.heads))
        k = self.rope(project("attn_k", self.kv_heads)).repeat(self.heads // self.kv_heads, axis=1)
        v = project("attn_v", self.kv_heads).repeat(self.heads // self.kv_heads, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
        scores += np.triu(np.full((count, count), -np.inf), 1)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", scores, v).reshape(count, -1)
        return mixed @ self.weight(block + "attn_output").T

    def logprobs(self, tokens, first):
        """[token, vocabulary]: of what follows each token from the first-th on."""
        embedding = self.weights["token_embd.weight"].astype(np.float64)
        x = embedding[tokens]
        for layer in range(self.layers):
            block = f"blk.{layer}."
            x = x + self.attention(self.norm(x, block + "attn_norm"), block)
            h = self.norm(x, block + "ffn_norm")
            gate = h @ self.weight(block + "ffn_gate").T
            up = h @ self.weight(block + "ffn_up").T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self.weight(block + "ffn_down").T
        tied = self.weights["token_embd.weight"]
        output = self.weights.get("output.weight", tied).astype(np.float64)
        logits = self.norm(x[first:], "output_norm") @ output.T
        logits -= logits.max(axis=-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def token_bytes(reader):
    """Of each token of a byte-level vocabulary, its raw bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + i): byte for i, byte in enumerate(others)})
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    return [bytes(alphabet[c] for c in token) for token in tokens]


def generate(server, name, prompt):
    prompt_ids = server.tokenize(prompt, True)
    answer = server.post(
        "/completion",
        {
            "prompt": prompt_ids,
            "n_predict": POSITIONS,
            "temperature": 0,
            "n_probs": ALTERNATIVES,
            "cache_prompt": False,
            "return_tokens": True,
            "ignore_eos": True,
            "samplers": ["temperature"],
        },
    )
    assert len(answer["tokens"]) == POSITIONS, f"{name}: {len(answer['tokens'])} positions"
    case = {"name": name, "prompt": prompt, "prompt_ids": prompt_ids, "ids": answer["tokens"]}
    return case, answer["completion_probabilities"]


def complete(case, steps, vocabulary, model):
    """Adds "top". llama.cpp reports no probabilities where a token leaves a character incomplete:
    there they are the float64 model's. Elsewhere they must agree with it."""
    tokens = case["prompt_ids"] + case["ids"]
    exact = model.logprobs(np.array(tokens[:-1]), len(case["prompt_ids"]) - 1)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    steps = iter(steps)
    case["top"], case["positions_from_fp64"], worst = [], [], 0.0
    for position, token in enumerate(case["ids"]):
        decoder.decode(vocabulary[token])
        if decoder.getstate()[0]:
            order = np.argsort(-exact[position], kind="stable")[:ALTERNATIVES]
            top = [(int(i), float(exact[position, i])) for i in order]
            case["positions_from_fp64"].append(position)
        else:
            step = next(steps)
            assert step["id"] == token, f"{case['name']}: position {position}"
            top = [(entry["id"], entry["logprob"]) for entry in step["top_logprobs"]]
            worst = max(worst, *(abs(exact[position, i] - logprob) for i, logprob in top))
        assert len(top) == ALTERNATIVES
        case["top"].append([[i, round(logprob, 7)] for i, logprob in top])
    assert next(steps, None) is None
    case["max_difference_from_fp64"] = float(f"{worst:.2g}")


def main():
    reader = gguf.GGUFReader(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "f32.gguf"
        write_f32(reader, str(path))
        server = LlamaServer(
            path,
            context=256,
            parallel=len(PROMPTS),
            flash_attention=False,
            cache_type=xllamacpp.ggml_type.GGML_TYPE_F32,
        )
        # All at once: the weights are read once for every step of all prompts.
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            answers = list(pool.map(lambda named: generate(server, *named), PROMPTS))
        del server
    model, vocabulary = Float64Model(reader), token_bytes(reader)
    for case, steps in answers:
        complete(case, steps, vocabulary, model)
        print(case["name"], case["max_difference_from_fp64"], flush=True)
    cases = [case for case, _ in answers]
    worst = max(case["max_difference_from_fp64"] for case in cases)
    assert worst < 5e-4, f"the arithmetic was not fp32: it differs by {worst} from float64"
    head = json.dumps(
        {
            "made_by": version() + ", weights as F32, KV cache F32, no flash attention",
            "model": pathlib.Path(sys.argv[1]).name,
            "ids": "the most probable token at each position, without end tokens; fed back as given",
            "top": "per position the most probable tokens and their log-probabilities, unfiltered",
        }
    )[:-1]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    body = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f'{head}, "cases": [\n{body}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
