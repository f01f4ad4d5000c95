#!/usr/bin/env python3
"""Writes dequantize.json: a few blocks of each tensor type of GGUF and the floats they stand for.

    python3 make_dequantize_data.py > dequantize.json      (needs numpy and gguf, the format's reference)

Quants are random bytes; the f16 scales and minima in each block are random numbers in [-2, 2), for random bytes would
often be NaN. The first scale is a subnormal number. Values are f32 as gguf.dequantize gives them, in hex.
"""

import json
import sys

import gguf
import numpy as np

BLOCKS = 3
# Where the f16 fields of a block stand.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}


def block_bytes(random, name, size):
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for offset in HALVES[name]:
        halves = random.uniform(-2, 2, BLOCKS).astype(np.float16)
        halves[0] = 3e-6
        blocks[:, offset : offset + 2] = halves.view(np.uint8).reshape(BLOCKS, 2)
    return blocks


def main():
    random = np.random.default_rng(20240131)
    data = {"source": "make_dequantize_data.py, by the gguf package"}
    for name in HALVES:
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        blocks = block_bytes(random, name, size)
        values = gguf.dequantize(blocks.reshape(-1), kind).astype("<f4")
        data[name.lower()] = {"blocks": blocks.tobytes().hex(), "values": values.tobytes().hex()}
    json.dump(data, sys.stdout, indent=1)
    print()


main()
