#!/usr/bin/env python3
"""Writes tests/golden/embeddings/llama_cpp.json: vectors of a shipped model by llama.cpp.

    tools/make_embedding_goldens.py LLAMA_SERVER models/SmolLM2-135M-Instruct.Q4_1.gguf

LLAMA_SERVER is llama.cpp's program llama-server. It rounds activations in its own way, so a vector
of ours has about its direction, not its bits.
"""

import json
import pathlib
import subprocess
import sys
import time
import urllib.request

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/embeddings/llama_cpp.json"
PORT = 18134
START_S = 60
TEXTS = [
    "The lighthouse stood on the edge of the cliff, and nobody had lit it for years.",
    "def merge_sort(items):\n    if len(items) <= 1:\n        return items\n",
    "Il était une fois un petit garçon qui habitait",
    "Photosynthesis is the process by which plants turn light into energy. " * 8,
]


def ask(path, body=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def wait_ready():
    deadline = time.monotonic() + START_S
    while True:
        try:
            return ask("/health")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def vectors(program, model, pooling):
    server = subprocess.Popen(
        [program, "-m", model, "--embeddings", "--pooling", pooling, "--port", str(PORT),
         "-c", "1024", "-b", "1024", "-ub", "1024"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        wait_ready()
        return [ask("/v1/embeddings", {"input": text})["data"][0]["embedding"] for text in TEXTS]
    finally:
        server.kill()
        server.wait()


def main():
    program, model = sys.argv[1:]
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    made_by = " ".join((version.stdout + version.stderr).split("\n")[0].split())
    found = {pooling: vectors(program, model, pooling) for pooling in ("mean", "last")}
    cases = [
        {"text": text, **{p: [round(value, 6) for value in found[p][i]] for p in found}}
        for i, text in enumerate(TEXTS)
    ]
    GOLDEN.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    head = json.dumps({"made_by": f"llama.cpp {made_by}", "model": pathlib.Path(model).name})
    GOLDEN.write_text(head[:-1] + ', "cases": [\n' + lines + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
