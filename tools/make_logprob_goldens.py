#!/usr/bin/env python3
"""Writes tests/golden/logprobs/: next-token log-probabilities of a shipped model in fp32 arithmetic.

    python3 -m venv venv && venv/bin/pip install xllamacpp gguf numpy
    venv/bin/python tools/make_logprob_goldens.py models/SmolLM2-135M-Instruct.Q4_1.gguf
    venv/bin/python tools/make_logprob_goldens.py models/gemma-3-270m-Q4_K_M.gguf

The model's weights are de-quantised into an F32 file, which llama.cpp runs with an F32 KV cache and
without flash attention, so that nothing in it is rounded to less than fp32. A float64 forward pass
in numpy (tools/independent_decoder.py) then scores the same tokens: the largest difference is stored
with the data, and one above 5e-4 is an error. llama.cpp looks gelu up in a table of half precision,
though: for Gemma the values are the float64 pass's, and llama.cpp's may be 0.05 off.
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
from independent_decoder import IndependentDecoder
from llama_server import LlamaServer, version

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"
ALTERNATIVES = 20


def chat(user, system="You are a helpful AI assistant named SmolLM, trained by Hugging Face"):
    turns = [("system", system), ("user", user)]
    told = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)
    return told + "<|im_start|>assistant\n"


SMOLLM2 = [
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

# No chat: it is the model before instruction tuning. The last one is longer than the window of 512
# tokens, and crosses it again while it is continued.
MIXED = (GOLDEN / "eval_text/mixed.txt").read_text(encoding="utf-8")
GEMMA3 = [*SMOLLM2[:9:2], ("long", MIXED[:2200])]

# Of each architecture: the file, positions per prompt, tokens that a prompt and its continuation
# take at most, prompts, how far llama.cpp may be from float64, whether its values are stored.
KINDS = {
    "llama": ("fp32.json", 64, 256, SMOLLM2, 5e-4, True),
    "gemma3": ("gemma3_fp32.json", 24, 1024, GEMMA3, 0.05, False),
}


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


def token_bytes(reader):
    """Of each token, its raw bytes."""
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    if reader.fields["tokenizer.ggml.model"].contents() == "llama":
        types = reader.fields["tokenizer.ggml.token_type"].contents()
        is_byte = [kind == gguf.TokenType.BYTE for kind in types]
        return [
            bytes([int(token[1:5], 16)]) if byte else token.replace("\u2581", " ").encode()
            for token, byte in zip(tokens, is_byte)
        ]
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + i): byte for i, byte in enumerate(others)})
    return [bytes(alphabet[c] for c in token) for token in tokens]


def begin_ids(reader):
    adds = reader.fields.get("tokenizer.ggml.add_bos_token")
    if adds is None or not adds.contents():
        return []
    return [int(reader.fields["tokenizer.ggml.bos_token_id"].contents())]


def generate(server, name, prompt, begin, positions):
    prompt_ids = begin + server.tokenize(prompt, True)
    answer = server.post(
        "/completion",
        {
            "prompt": prompt_ids,
            "n_predict": positions,
            "temperature": 0,
            "n_probs": ALTERNATIVES,
            "cache_prompt": False,
            "return_tokens": True,
            "ignore_eos": True,
            "samplers": ["temperature"],
        },
    )
    assert len(answer["tokens"]) == positions, f"{name}: {len(answer['tokens'])} positions"
    case = {"name": name, "prompt": prompt, "prompt_ids": prompt_ids, "ids": answer["tokens"]}
    return case, answer["completion_probabilities"]


def complete(case, steps, vocabulary, model, stores_steps):
    """Adds "top". llama.cpp reports no probabilities where a token leaves a character incomplete:
    there they are the float64 model's, as everywhere unless `stores_steps`. Elsewhere the two must
    agree."""
    tokens = case["prompt_ids"] + case["ids"]
    exact = model.logprobs(np.array(tokens[:-1]), len(case["prompt_ids"]) - 1)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    steps = iter(steps)
    case["top"], case["positions_from_fp64"], worst = [], [], 0.0
    for position, token in enumerate(case["ids"]):
        decoder.decode(vocabulary[token])
        order = np.argsort(-exact[position], kind="stable")[:ALTERNATIVES]
        top = [(int(i), float(exact[position, i])) for i in order]
        if decoder.getstate()[0]:
            case["positions_from_fp64"].append(position)
        else:
            step = next(steps)
            assert step["id"] == token, f"{case['name']}: position {position}"
            told = [(entry["id"], entry["logprob"]) for entry in step["top_logprobs"]]
            worst = max(worst, *(abs(exact[position, i] - logprob) for i, logprob in told))
            top = told if stores_steps else top
        assert len(top) == ALTERNATIVES
        case["top"].append([[i, round(logprob, 7)] for i, logprob in top])
    assert next(steps, None) is None
    case["max_difference_from_fp64"] = float(f"{worst:.2g}")


def main():
    reader = gguf.GGUFReader(sys.argv[1])
    architecture = reader.fields["general.architecture"].contents()
    name, positions, context, prompts, difference_max, stores_steps = KINDS[architecture]
    begin = begin_ids(reader)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "f32.gguf"
        write_f32(reader, str(path))
        server = LlamaServer(
            path,
            context=context,
            parallel=len(prompts),
            flash_attention=False,
            cache_type=xllamacpp.ggml_type.GGML_TYPE_F32,
        )
        # All at once: the weights are read once for every step of all prompts.
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
            answers = list(
                pool.map(lambda named: generate(server, *named, begin, positions), prompts)
            )
        del server
    model, vocabulary = IndependentDecoder(reader), token_bytes(reader)
    for case, steps in answers:
        complete(case, steps, vocabulary, model, stores_steps)
        print(case["name"], case["max_difference_from_fp64"], flush=True)
    cases = [case for case, _ in answers]
    worst = max(case["max_difference_from_fp64"] for case in cases)
    assert worst < difference_max, f"the arithmetic differs by {worst} from float64"
    head = json.dumps(
        {
            "made_by": version() + ", weights as F32, KV cache F32, no flash attention",
            "values_of": "llama.cpp" if stores_steps else "tools/independent_decoder.py, float64",
            "model": pathlib.Path(sys.argv[1]).name,
            "ids": "the most probable token at each position, without end tokens; fed back as given",
            "top": "per position the most probable tokens and their log-probabilities, unfiltered",
        }
    )[:-1]
    out = GOLDEN / "logprobs" / name
    out.parent.mkdir(parents=True, exist_ok=True)
    body = ",\n".join(json.dumps(case) for case in cases)
    out.write_text(f'{head}, "cases": [\n{body}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
