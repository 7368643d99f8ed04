#!/usr/bin/env python3
"""Writes tests/golden/dequantize/<type>.txt: random blocks of each GGUF tensor type and what the
Python package `gguf` de-quantises them to.

    python3 -m venv .venv && .venv/bin/pip install gguf==0.19.0
    .venv/bin/python tools/make_dequantize_goldens.py

Each file has two lines: the blocks and the float32 results, little-endian, in hexadecimal. NaN
results are written as the one NaN 7fc00000, since the sign and payload of a computed NaN are the
machine's own.
"""

import pathlib

import gguf
import numpy as np

BLOCKS = 24
# Half-precision scales that a random draw would miss: zeros, subnormals, the extremes, Inf and NaN.
SPECIAL_F16 = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00,
]
# Offsets of the half-precision numbers in a block of each type.
F16_AT = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
UNBLOCKED = ["F32", "F16", "BF16"]


def random_blocks(name, rng):
    kind = gguf.GGMLQuantizationType[name]
    _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    if name in UNBLOCKED:
        # Random bits reach every exponent; the special halves come on top.
        count = 512
        raw = rng.integers(0, 256, size=count * block_bytes, dtype=np.uint8)
        if name != "F32":
            raw.view(np.uint16)[: len(SPECIAL_F16)] = SPECIAL_F16
        return raw
    raw = rng.integers(0, 256, size=(BLOCKS, block_bytes), dtype=np.uint8)
    for at in F16_AT[name]:
        scales = rng.normal(0, 0.05, size=BLOCKS).astype(np.float16)
        scales.view(np.uint16)[: len(SPECIAL_F16)] = rng.permutation(SPECIAL_F16)
        raw[:, at : at + 2] = scales.view(np.uint8).reshape(BLOCKS, 2)
    return raw.reshape(-1)


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/dequantize"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20260101)
    for name in [*UNBLOCKED, *F16_AT]:
        blocks = random_blocks(name, rng)
        with np.errstate(all="ignore"):
            out = gguf.quants.dequantize(
                blocks.view(np.float32) if name == "F32" else blocks,
                gguf.GGMLQuantizationType[name],
            ).astype(np.float32)
        bits = out.reshape(-1).view(np.uint32).copy()
        bits[np.isnan(out.reshape(-1))] = 0x7FC00000
        (folder / f"{name}.txt").write_text(f"{blocks.tobytes().hex()}\n{bits.tobytes().hex()}\n")
        print(f"{name}: {len(blocks)} bytes, {len(bits)} weights, {np.isnan(out).sum()} NaN")


if __name__ == "__main__":
    main()
