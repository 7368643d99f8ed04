#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/: token ids by llama.cpp, words by Python's `regex` module.

python3 -m venv venv && venv/bin/pip install xllamacpp regex
venv/bin/python tools/make_tokenizer_goldens.py models/SmolLM2-135M-Instruct.Q4_1.gguf
venv/bin/python tools/make_tokenizer_goldens.py models/gemma-3-270m-Q4_K_M.gguf
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


def ids_of(server, texts):
    cases = []
    for name, text in texts:
        for parse_special in (False, True):
            found = server.tokenize(text, parse_special)
            if parse_special and found == cases[-1]["ids"]:
                cases[-1]["parse_special"] = "either"
            else:
                cases.append(
                    {
                        "name": name,
                        "text": text,
                        "parse_special": "yes" if parse_special else "no",
                        "ids": found,
                    }
                )
    return cases


def splits_of(texts):
    cases = []
    for name, text in texts:
        ends = {}
        for rule, patterns in RULES.items():
            words = split(patterns, text)
            at, ends[rule] = 0, []
            for word in words:
                at += len(word.encode())
                ends[rule].append(at)
        cases.append({"name": name, "text": text, **ends})
    return cases


def main():
    model = pathlib.Path(sys.argv[1])
    scored = "gemma" in model.name
    texts = tokenizer_corpus.scored_texts() if scored else tokenizer_corpus.texts()
    OUT.mkdir(parents=True, exist_ok=True)
    ids = ids_of(LlamaServer(model), texts)
    write(
        "gemma3_ids.json" if scored else "smollm2_ids.json",
        {"made_by": version(), "model": model.name, "cases": ids},
    )
    print(len(ids), "cases of ids")
    if scored:  # such vocabularies know no words
        return
    write(
        "splits.json",
        {
            "made_by": "regex " + regex.__version__,
            "unit": "byte offset of each word's end",
            "cases": splits_of(texts),
        },
    )


if __name__ == "__main__":
    main()
