"""Small GGUF files for the tests: a model of one layer that loads, and ways to damage it.

A file is: magic "GGUF", u32 version, u64 tensor count, u64 pair count; the pairs (string key, u32 type, value); the
tensor rows (string name, u32 dimension count, u64 each, u32 type, u64 offset); zeros up to the alignment; the tensors.
A string is a u64 length and its bytes; an array is u32 element type, u64 count and the elements. All little-endian.
"""

import struct
from dataclasses import dataclass, field

U8, U32, I32, F32, STRING, ARRAY, U64 = 0, 4, 5, 6, 8, 9, 10
SCALAR_FORMAT = {U8: "<B", U32: "<I", I32: "<i", F32: "<f", U64: "<Q"}
TENSOR_F32, TENSOR_Q4_1 = 0, 3
ALIGNMENT = 32

VOCABULARY, WIDTH, HIDDEN, HEADS, KV_HEADS, CONTEXT = 96, 32, 48, 2, 1, 64


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        element, items = content
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, item) for item in items)
    return struct.pack(SCALAR_FORMAT[kind], content)


@dataclass
class Tensor:
    """One row of the tensor list; `offset` is computed unless a test sets it."""

    name: str
    dims: list[int]
    kind: int = TENSOR_F32
    offset: int | None = None
    data: bytes = b""


@dataclass
class Gguf:
    """What a file is made of; a test changes a part before `to_bytes`, or the bytes behind it."""

    pairs: dict[str, tuple] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    magic: bytes = b"GGUF"
    version: int = 3
    pair_count: int | None = None
    tensor_count: int | None = None
    raw_pairs: bytes = b""  # written behind the others, not counted

    def header(self):
        count = len(self.tensors) if self.tensor_count is None else self.tensor_count
        pairs = len(self.pairs) if self.pair_count is None else self.pair_count
        out = self.magic + struct.pack("<IQQ", self.version, count, pairs)
        out += b"".join(
            string(key) + struct.pack("<I", kind) + value(kind, it) for key, (kind, it) in self.pairs.items()
        )
        out += self.raw_pairs
        offset = 0
        for tensor in self.tensors:
            dims = b"".join(struct.pack("<Q", dim % 2**64) for dim in tensor.dims)
            at = offset if tensor.offset is None else tensor.offset
            out += (
                string(tensor.name) + struct.pack("<I", len(tensor.dims)) + dims + struct.pack("<IQ", tensor.kind, at)
            )
            offset += padded(len(tensor.data))
        return out + bytes(-len(out) % ALIGNMENT)

    def to_bytes(self):
        return self.header() + b"".join(tensor.data + bytes(-len(tensor.data) % ALIGNMENT) for tensor in self.tensors)

    def tensor(self, name):
        return next(tensor for tensor in self.tensors if tensor.name == name)


def padded(size):
    return size + -size % ALIGNMENT


def weights(dims, seed):
    """Some float32 values between -0.1 and 0.1."""
    count = 1
    for dim in dims:
        count *= dim
    return struct.pack(
        f"<{count}f", *[((index * 2654435761 + seed * 97) % 1009 - 504) / 5040 for index in range(count)]
    )


def tiny_model():
    """A llama model of one layer that every reader must take."""
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(chr(code) for code in range(33, 127) if code != 127)]
    tokens = tokens[:VOCABULARY]
    llama = {
        "block_count": (U32, 1),
        "context_length": (U32, CONTEXT),
        "embedding_length": (U32, WIDTH),
        "feed_forward_length": (U32, HIDDEN),
        "attention.head_count": (U32, HEADS),
        "attention.head_count_kv": (U32, KV_HEADS),
        "rope.freq_base": (F32, 10000.0),
        "attention.layer_norm_rms_epsilon": (F32, 1e-5),
        "vocab_size": (U32, VOCABULARY),
    }
    tokenizer = {
        "model": (STRING, "gpt2"),
        "pre": (STRING, "smollm"),
        "tokens": (ARRAY, (STRING, tokens)),
        "token_type": (ARRAY, (I32, [3] * 3 + [1] * (VOCABULARY - 3))),
        "merges": (ARRAY, (STRING, [])),
        "bos_token_id": (U32, 1),
        "eos_token_id": (U32, 2),
    }
    kv_width = WIDTH // HEADS * KV_HEADS
    shapes = {
        "token_embd": [WIDTH, VOCABULARY],
        "output_norm": [WIDTH],
        "blk.0.attn_norm": [WIDTH],
        "blk.0.attn_q": [WIDTH, WIDTH],
        "blk.0.attn_k": [WIDTH, kv_width],
        "blk.0.attn_v": [WIDTH, kv_width],
        "blk.0.attn_output": [WIDTH, WIDTH],
        "blk.0.ffn_norm": [WIDTH],
        "blk.0.ffn_gate": [WIDTH, HIDDEN],
        "blk.0.ffn_up": [WIDTH, HIDDEN],
        "blk.0.ffn_down": [HIDDEN, WIDTH],
    }
    tensors = [Tensor(f"{name}.weight", dims, data=weights(dims, i)) for i, (name, dims) in enumerate(shapes.items())]
    return Gguf(
        pairs={"general.architecture": (STRING, "llama"), "general.name": (STRING, "tiny")}
        | {f"llama.{key}": pair for key, pair in llama.items()}
        | {f"tokenizer.ggml.{key}": pair for key, pair in tokenizer.items()},
        tensors=tensors,
    )


DAMAGES = {}


def damage(words=""):
    """Registers a function that damages a tiny model in place, or returns the damaged bytes. `words` is a pattern that
    the one line of error must hold, so that it speaks of this fault and not of another."""

    def register(function):
        DAMAGES[function.__name__] = (function, words)
        return function

    return register


def damaged_bytes(name):
    model = tiny_model()
    changed = DAMAGES[name][0](model)
    return model.to_bytes() if changed is None else changed


def set_pair(key, kind, content, words=""):
    """A damage that is one pair replaced."""

    def change(model):
        model.pairs[key] = (kind, content)

    change.__name__ = f"{key.split('.', 1)[1].replace('.', '_')}_is_{str(content)[:20]}".replace(" ", "")
    damage(words)(change)


def set_first_tensor(fault, words=r"token_embd\.weight", **changes):
    """A damage of the row of the embedding."""

    def change(model):
        for key, content in changes.items():
            setattr(model.tensors[0], key, content)

    change.__name__ = fault
    damage(words)(change)


@damage()
def empty(model):
    return b""


@damage("(?i)magic|not a gguf")
def other_magic(model):
    model.magic = b"GGML"


@damage("(?i)version")
def unknown_version(model):
    model.version = 99


@damage("(?i)version|endian")
def big_endian(model):
    return b"GGUF" + struct.pack(">IQQ", 3, 0, 0)


@damage()
def cut_in_metadata(model):
    return model.to_bytes()[: len(model.header()) // 2]


@damage()
def cut_in_tensor_list(model):
    return model.to_bytes()[: len(model.header()) - 80]


@damage(r"\.weight")
def cut_in_data(model):
    content, header = model.to_bytes(), len(model.header())
    return content[: header + (len(content) - header) // 2]


@damage(r"\.weight")
def no_data(model):
    return model.header()


@damage()
def pair_count_huge(model):
    model.pair_count = 2**63 - 1


@damage()
def tensor_count_huge(model):
    model.tensor_count = 2**62


@damage()
def string_length_huge(model):
    model.raw_pairs = struct.pack("<Q", 2**63 - 5) + b"general"
    model.pair_count = len(model.pairs) + 1


@damage()
def array_length_huge(model):
    model.raw_pairs = string("x.y") + struct.pack("<IIQ", ARRAY, U32, 2**61)
    model.pair_count = len(model.pairs) + 1


@damage()
def arrays_nested_deep(model):
    model.raw_pairs = string("x.y") + struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 200000
    model.pair_count = len(model.pairs) + 1


@damage("(?i)type")
def value_type_unknown(model):
    model.raw_pairs = string("x.y") + struct.pack("<I", 77)
    model.pair_count = len(model.pairs) + 1


@damage()
def key_empty(model):
    model.raw_pairs = string("") + struct.pack("<II", U32, 1)
    model.pair_count = len(model.pairs) + 1


@damage("block_count")
def key_twice(model):
    model.raw_pairs = string("llama.block_count") + struct.pack("<II", U32, 1)
    model.pair_count = len(model.pairs) + 1


set_first_tensor("dimension_zero", dims=[WIDTH, 0])
set_first_tensor("dimension_negative", dims=[WIDTH, -VOCABULARY])
set_first_tensor("dimension_product_wraps", dims=[WIDTH, 2**42 + 1, 2**20])
set_first_tensor("no_dimensions", dims=[])
set_first_tensor("five_dimensions", dims=[WIDTH, VOCABULARY, 1, 1, 1])
set_first_tensor("offset_past_end", offset=2**40)
set_first_tensor("offset_wraps", offset=2**64 - 32)
set_first_tensor("offset_unaligned", offset=3)
set_first_tensor("tensor_type_unknown", kind=250)
set_first_tensor("blocks_do_not_fill_rows", kind=TENSOR_Q4_1, dims=[16, 2 * VOCABULARY])
set_first_tensor("tensor_name_empty", words="", name="")


@damage("(?i)overlap")
def tensors_overlap(model):
    model.tensors[1].offset = 0


@damage(r"token_embd\.weight")
def tensor_twice(model):
    model.tensors[1].name = model.tensors[0].name


@damage(r"blk\.0\.ffn_down\.weight")
def tensor_missing(model):
    model.tensors.pop()


@damage(r"blk\.0\.attn_k\.weight")
def tensor_of_another_shape(model):
    tensor = model.tensor("blk.0.attn_k.weight")
    tensor.dims = [WIDTH, WIDTH]
    tensor.data = weights(tensor.dims, 1)


@damage("tokens")
def vocabulary_missing(model):
    del model.pairs["tokenizer.ggml.tokens"]


@damage("architecture")
def architecture_missing(model):
    del model.pairs["general.architecture"]


set_pair("general.architecture", STRING, "nosuch", "nosuch")
set_pair("general.architecture", U32, 5, "architecture")
set_pair("general.alignment", U32, 0, "alignment")
set_pair("general.alignment", U32, 3, "alignment")
set_pair("llama.block_count", U32, 100000, r"block_count|blk\.")
set_pair("llama.block_count", U32, 0, "block_count")
set_pair("llama.block_count", STRING, "one", "block_count")
set_pair("llama.context_length", U32, 0, "context_length")
set_pair("llama.embedding_length", U32, 0, "embedding_length|head_count")
set_pair("llama.attention.head_count", U32, 0, "head_count")
set_pair("llama.attention.head_count", U32, 5, "head_count")
set_pair("llama.attention.head_count_kv", U32, 0, "head_count_kv")
set_pair("llama.attention.layer_norm_rms_epsilon", F32, float("nan"), "epsilon")
set_pair("llama.rope.freq_base", F32, -1.0, "freq_base")
set_pair("tokenizer.ggml.eos_token_id", U32, 2**31, "eos_token_id")
set_pair("tokenizer.ggml.tokens", ARRAY, (STRING, ["a"] * 3), "tokens|token_embd|token_type")
set_pair("tokenizer.ggml.token_type", ARRAY, (I32, [3, 3]), "token_type")
set_pair("tokenizer.ggml.token_type", ARRAY, (U8, [3] * 3 + [1] * (VOCABULARY - 3)), "token_type")
set_pair("tokenizer.ggml.model", STRING, "nosuch", "tokenizer|nosuch")
