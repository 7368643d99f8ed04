#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/: token ids by llama.cpp, words by Python's `regex` module.

python3 -m venv venv && venv/bin/pip install xllamacpp regex
venv/bin/python tools/make_tokenizer_goldens.py models/SmolLM2-135M-Instruct.Q4_1.gguf
"""

import json
import pathlib
import sys

import regex
import tokenizer_corpus
from llama_server import LlamaServer, version

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/tokenizer"

# As in llama.cpp's src/llama-vocab.cpp, with \s spelled as the property that it stands for there.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CASELESS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
RULES = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [CASELESS + r"\p{N}{1,3}" + TAIL],
    "qwen2": [CASELESS + r"\p{N}" + TAIL],
}


def split(patterns, text):
    """Words: what each pattern in turn matches within the words before it, and the gaps."""
    words = [text] if text else []
    for pattern in patterns:
        compiled = regex.compile(
            pattern.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}")
        )
        finer = []
        for word in words:
            at = 0
            for match in compiled.finditer(word):
                finer += [word[at : match.start()], match.group()]
                at = match.end()
            finer.append(word[at:])
        words = [word for word in finer if word]
    return words


def write(name, document):
    # One case a line: a change of one shows as one line.
    cases = ",\n".join(json.dumps(case, ensure_ascii=True) for case in document.pop("cases"))
    head = json.dumps(document)[:-1]
    (OUT / name).write_text(f'{head}, "cases": [\n{cases}\n]}}\n', encoding="utf-8")


def main():
    server = LlamaServer(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    ids, splits = [], []
    for name, text in tokenizer_corpus.texts():
        for parse_special in (False, True):
            found = server.tokenize(text, parse_special)
            if parse_special and found == ids[-1]["ids"]:
                ids[-1]["parse_special"] = "either"
            else:
                ids.append(
                    {
                        "name": name,
                        "text": text,
                        "parse_special": "yes" if parse_special else "no",
                        "ids": found,
                    }
                )
        ends = {}
        for rule, patterns in RULES.items():
            words = split(patterns, text)
            at, ends[rule] = 0, []
            for word in words:
                at += len(word.encode())
                ends[rule].append(at)
        splits.append({"name": name, "text": text, **ends})
    write(
        "smollm2_ids.json",
        {"made_by": version(), "model": pathlib.Path(sys.argv[1]).name, "cases": ids},
    )
    write(
        "splits.json",
        {
            "made_by": "regex " + regex.__version__,
            "unit": "byte offset of each word's end",
            "cases": splits,
        },
    )
    print(len(ids), "cases of ids,", len(splits), "texts split")


if __name__ == "__main__":
    main()
