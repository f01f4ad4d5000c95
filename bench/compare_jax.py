"""Ember against JAX on one model as a float32 graph: compile from nothing, and one call. Prints one JSON object.

    .venv/bin/pip install -r bench/requirements.txt
    .venv/bin/python bench/compare_jax.py [MODEL.gguf] [--layers 30] [--tokens 8] [--rounds 3]

Each figure is the least of `rounds` fresh processes, JAX's and Ember's in turn, so that both meet the same neighbours.
JAX's compile is lower + compile of the whole model with no compilation cache; ratios are Ember over JAX.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EMBER = Path(os.environ.get("EMBER_BIN", ROOT / "build" / "release" / "bin")) / "ember"
DEFAULT_MODEL = os.environ.get("EMBER_MODEL", ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf")
CALLS = 7


def load_model(path):
    """Sizes of a llama model, and its weights as float32 arrays by their names in the file."""
    import gguf

    reader = gguf.GGUFReader(path)
    number = {
        name.removeprefix("llama."): field.contents() for name, field in reader.fields.items() if "llama." in name
    }
    sizes = {
        "layers": number["block_count"],
        "heads": number["attention.head_count"],
        "kv_heads": number["attention.head_count_kv"],
        "head_dim": number["embedding_length"] // number["attention.head_count"],
        "rope_base": number["rope.freq_base"],
        "epsilon": number["attention.layer_norm_rms_epsilon"],
    }
    weights = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    return sizes, weights


def make_forward(sizes, layers):
    """The llama forward pass over a whole prompt, as one would write it: ids [n] to logits [n, vocabulary]."""
    import jax
    import jax.numpy as jnp

    heads, kv_heads, head_dim = sizes["heads"], sizes["kv_heads"], sizes["head_dim"]

    def normalize(x, gain):
        return gain * x / jnp.sqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + sizes["epsilon"])

    def rotate(x, cos, sin):
        """Turns each adjacent pair of the last axis by its position's angle; x is [n, heads, head_dim]."""
        pairs = x.reshape(*x.shape[:-1], head_dim // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        return jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)

    def attend(x, weight, cos, sin):
        n = x.shape[0]
        q = rotate((x @ weight("attn_q").T).reshape(n, heads, head_dim), cos, sin)
        k = rotate((x @ weight("attn_k").T).reshape(n, kv_heads, head_dim), cos, sin)
        v = (x @ weight("attn_v").T).reshape(n, kv_heads, head_dim)
        q = q.reshape(n, kv_heads, heads // kv_heads, head_dim)
        scores = jnp.einsum("nghd,mgd->ghnm", q, k) / head_dim**0.5
        causal = jnp.tril(jnp.ones((n, n), dtype=bool))
        shares = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
        return jnp.einsum("ghnm,mgd->nghd", shares, v).reshape(n, heads * head_dim) @ weight("attn_output").T

    def feed_forward(x, weight):
        return (jax.nn.silu(x @ weight("ffn_gate").T) * (x @ weight("ffn_up").T)) @ weight("ffn_down").T

    def forward(weights, ids):
        positions = jnp.arange(ids.shape[0], dtype=jnp.float32)
        rates = sizes["rope_base"] ** (-jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim)
        angles = jnp.outer(positions, rates)[:, None, :]
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        x = weights["token_embd.weight"][ids]
        for layer in range(layers):

            def weight(name, layer=layer):
                return weights[f"blk.{layer}.{name}.weight"]

            x = x + attend(normalize(x, weight("attn_norm")), weight, cos, sin)
            x = x + feed_forward(normalize(x, weight("ffn_norm")), weight)
        head = weights.get("output.weight", weights["token_embd.weight"])
        return normalize(x, weights["output_norm.weight"]) @ head.T

    return forward


def measure_jax(model, layers, tokens):
    """What one process of JAX takes; runs in a child."""
    import jax
    import numpy as np

    sizes, weights = load_model(model)
    weights = {name: jax.numpy.asarray(array) for name, array in weights.items()}
    ids = np.arange(100, 100 + tokens, dtype=np.int32)
    start = time.perf_counter()
    compiled = jax.jit(make_forward(sizes, layers)).lower(weights, ids).compile()
    compile_s = time.perf_counter() - start
    calls = []
    for _ in range(CALLS):
        start = time.perf_counter()
        compiled(weights, ids).block_until_ready()
        calls.append(time.perf_counter() - start)
    return {"compile_s": compile_s, "call_s": min(calls), "version": jax.__version__}


def run_jax(options):
    """A fresh process of this script; no compilation cache, no matter what the environment says."""
    arguments = [options.model, "--layers", options.layers, "--tokens", options.tokens, "--jax-only"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    return run_json([sys.executable, __file__, *arguments], environment | {"JAX_PLATFORMS": "cpu"})


def run_ember(options):
    """Ember's two figures, each in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"EMBER_CACHE_DIR": cache}
        bench = [EMBER, "bench"]
        common = [options.model, "--dtype", "f32", "--json"]
        compiled = run_json([*bench, "compile", *common, "--layers", options.layers], environment)
        called = run_json([*bench, "call", *common, "--tokens", options.tokens], environment)
    return compiled | {"call_s": call_seconds(called)}


def call_seconds(printed):
    """`ember bench call --json` prints the seconds of one call, alone or as `call_s`."""
    return printed["call_s"] if isinstance(printed, dict) else float(printed)


def run_json(command, environment):
    run = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"error: {Path(str(command[0])).name} ended with {run.returncode}:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def least(rounds):
    """The least of each number over the rounds; what is not a time is the same in all."""
    return rounds[0] | {name: min(round[name] for round in rounds) for name in ("compile_s", "call_s")}


def compare(options):
    peers, embers = [], []
    for _ in range(options.rounds):
        peers.append(run_jax(options))
        embers.append(run_ember(options))
    jax, ember = least(peers), least(embers)
    ratios = {name: round(ember[name] / jax[name], 3) for name in ("compile_s", "call_s")}
    return {"layers": options.layers, "tokens": options.tokens, "ember": ember, "jax": jax, "ember_over_jax": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=str(DEFAULT_MODEL))
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jax-only", action="store_true", help="one process of JAX alone")
    options = parser.parse_args()
    if options.jax_only:
        print(json.dumps(measure_jax(options.model, options.layers, options.tokens)))
    else:
        print(json.dumps(compare(options), indent=2))


if __name__ == "__main__":
    main()
