#!/usr/bin/env python3
"""Writes tests/golden/decoder/: log-probabilities of small random models, one of each family, by
tools/independent_decoder.py in float64.

    python3 -m venv venv && venv/bin/pip install gguf numpy
    ninja -C build make_tiny_models && build/bin/make_tiny_models FOLDER
    venv/bin/python tools/make_decoder_goldens.py FOLDER
"""

import json
import pathlib
import sys

import gguf
import numpy as np
from independent_decoder import IndependentDecoder

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/decoder"
TOKENS = 90
ALTERNATIVES = 3


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.gguf")):
        model = IndependentDecoder(gguf.GGUFReader(path))
        vocabulary = model.packed["token_embd.weight"].shape[1]
        tokens = np.random.default_rng(7).integers(0, vocabulary, TOKENS)
        logprobs = model.logprobs(tokens)
        lines = []
        for position in range(TOKENS - 1):
            top = np.argsort(-logprobs[position], kind="stable")[:ALTERNATIVES]
            wanted = [int(tokens[position + 1]), *(int(i) for i in top)]
            lines.append(json.dumps([[i, round(float(logprobs[position, i]), 7)] for i in wanted]))
        head = {
            "made_by": "tools/make_decoder_goldens.py, float64",
            "tokens": [int(token) for token in tokens],
            "what": "per position the next token's log-probability, then the most probable ones",
        }
        body = ",\n".join(lines)
        text = json.dumps(head)[:-1] + f', "positions": [\n{body}\n]}}\n'
        (OUT / f"{path.stem}.json").write_text(text, encoding="utf-8")
        print(path.stem, TOKENS, "tokens")


if __name__ == "__main__":
    main()
