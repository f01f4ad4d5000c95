#!/usr/bin/env python3
"""Writes pre_tokenizer_cases.json: texts and the pieces that each pre-tokenizer cuts them into.

    python3 make_pre_tokenizer_data.py > pre_tokenizer_cases.json      (needs the tokenizers package)

The expressions are those of the models' own tokenizer.json files, run by the tokenizers package. Texts are random
strings over characters that the expressions tell apart. A case is [text, [length of each piece in UTF-8 bytes]].
"""

import json
import random

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

GPT2 = ByteLevel(add_prefix_space=False, use_regex=True)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PRE_TOKENIZERS = {
    "smollm": Sequence([Digits(individual_digits=True), GPT2]),
    "gpt-2": GPT2,
    "llama-bpe": Split(Regex(LLAMA3), "isolated"),
    "qwen2": Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
}
SPACES = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b", "\u00ad"]
LETTERS = [
    "a",
    "Z",
    "\u00e9",
    "e\u0301",
    "\u00df",
    "\u044f",
    "\u4e2d",
    "\ud55c",
    "\u0e01",
    "\u0e33",
    "\u02b0",
    "\U0001d4b3",
]
NUMBERS = ["0", "7", "12", "2024", "\u0663", "\u2167", "\u00bd", "\u00b2", "\U0001d7d7"]
APOSTROPHES = ["'", "'s", "'S", "'ll", "'LL", "'re", "'v", "''", "\u2019s"]
OTHERS = [".", "...", "-", "$", "\u20ac", "_", "<|", "\U0001f642", "\u200d", "\0"]
UNITS = SPACES + LETTERS + NUMBERS + APOSTROPHES + OTHERS


def make_text(source):
    return "".join(source.choices(UNITS, k=source.randint(1, 12)))


def piece_lengths(pre_tokenizer, text):
    return [len(text[start:end].encode()) for _, (start, end) in pre_tokenizer.pre_tokenize_str(text)]


def main():
    source = random.Random(20240131)
    data = {"source": "make_pre_tokenizer_data.py, by the tokenizers package"}
    for name, pre_tokenizer in PRE_TOKENIZERS.items():
        texts = [make_text(source) for _ in range(200)]
        data[name] = [[text, piece_lengths(pre_tokenizer, text)] for text in texts]
    print("{")
    rows = [f' "{key}": {json.dumps(value)}' for key, value in data.items()]
    print(",\n".join(rows))
    print("}")


main()
