"""SmolLM2 end to end against test/data/smollm2 (see the README there): logits, greedy text, chat, tokens."""

import json

import numpy as np
import pytest
from conftest import ROOT, ids_option

DATA = ROOT / "test" / "data" / "smollm2"
LOGITS = np.load(DATA / "logits.npz")
PROMPTS = {prompt["name"]: prompt for prompt in json.loads((DATA / "prompts.json").read_text())}
CHATS = json.loads((DATA / "chat.json").read_text())
TOKENIZER_CASES = json.loads((DATA / "tokenizer.json").read_text())

END_TOKEN = 2
# What activations of 16 bits with a scale for each 32 are held to; golden logits given by their highest few are rounded
# to 1e-4.
MAX_LOGIT_ERROR = 0.02
ROUNDING = 1e-4


def by_name(cases):
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def last_logits(ember, model, tmp_path, *prompt):
    """The logits after a prompt, float32 [vocabulary]."""
    path = tmp_path / "logits.npy"
    ember.generate(model, *prompt, options=("--logits", path))
    logits = np.load(path)
    assert logits.dtype == np.float32
    assert logits.shape == (49152,)
    return logits


@by_name([PROMPTS[name] for name in LOGITS.files])
def test_logits_match(warm_ember, model, tmp_path, case):
    logits = last_logits(warm_ember, model, tmp_path, *ids_option(case["ids"]))
    assert np.abs(logits - LOGITS[case["name"]]).max() <= MAX_LOGIT_ERROR


@by_name([prompt for name, prompt in PROMPTS.items() if name not in LOGITS.files])
def test_highest_logits_match(warm_ember, model, tmp_path, case):
    logits = last_logits(warm_ember, model, tmp_path, *ids_option(case["ids"]))
    assert np.abs(logits[case["top_ids"]] - case["top_logits"]).max() <= MAX_LOGIT_ERROR + ROUNDING
    assert logits.argmax() == case["top_ids"][0]


@by_name([prompt for prompt in PROMPTS.values() if not prompt["parse_special"] and prompt["name"] != "long300"])
def test_text_prompt_equals_its_tokens(warm_ember, model, tmp_path, case):
    from_text = last_logits(warm_ember, model, tmp_path, "--prompt", case["text"])
    from_ids = last_logits(warm_ember, model, tmp_path, *ids_option(case["ids"]))
    assert np.array_equal(from_text, from_ids)


@by_name([prompt for prompt in PROMPTS.values() if "greedy_ids" in prompt])
def test_greedy_continuation(warm_ember, model, case):
    """Step by step from the reference's own prefix: after an end token, or a step that is as good as a tie, the run is
    started anew behind the reference's token."""
    expected, margins = case["greedy_ids"], case["greedy_margins"]
    done = 0
    while done < len(expected):
        prefix = case["ids"] + expected[:done]
        tokens = warm_ember.generate(model, *ids_option(prefix), max_tokens=len(expected) - done)["tokens"]
        assert tokens or expected[done] == END_TOKEN, f"no token at step {done}"
        for token in tokens:
            tie = margins[done] < 2 * MAX_LOGIT_ERROR
            assert token == expected[done] or tie, f"step {done}: {token} instead of {expected[done]}"
            done += 1
            if token != expected[done - 1]:
                break
        if done < len(expected) and expected[done] == END_TOKEN:
            done += 1


@by_name([chat for chat in CHATS if "prompt_ids" in chat])
def test_chat_prompt_is_the_template_s(warm_ember, model, tmp_path, case):
    """Equal logits to the last bit say that the ids are equal; the count says it once more."""
    chat = ("--chat", "-p", case["message"])
    assert warm_ember.generate(model, *chat)["prompt_tokens"] == len(case["prompt_ids"])
    from_chat = last_logits(warm_ember, model, tmp_path, *chat)
    from_ids = last_logits(warm_ember, model, tmp_path, *ids_option(case["prompt_ids"]))
    assert np.array_equal(from_chat, from_ids)


@by_name([chat for chat in CHATS if "answer_ids" in chat])
def test_chat_answer(warm_ember, model, case):
    expected = case["answer_ids"]
    more = 5 if case["stops"] else 0
    answer = warm_ember.generate(model, "--chat", "-p", case["message"], max_tokens=len(expected) + more)
    tokens = answer["tokens"]
    if case["stops"] and tokens[-1:] != [END_TOKEN]:  # whether the end token counts as generated is left open
        tokens = [*tokens, END_TOKEN]
    assert tokens == expected
    assert "<|im_end|>" not in answer["text"]


@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
def test_tokenizer(warm_ember, model, special):
    cases = [case for case in TOKENIZER_CASES if case["special"] == special]
    assert cases
    texts = [case["text"] * case.get("repeat", 1) for case in cases]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    options = ("--special",) if special else ()
    output = warm_ember("tokenize", model, "--json", *options, stdin=lines).stdout.splitlines()
    got = [json.loads(line) for line in output]
    expected = [case["ids"] * case.get("ids_repeat", 1) + case.get("ids_tail", []) for case in cases]
    wrong = [text[:80] for text, ids, right in zip(texts, got, expected, strict=True) if ids != right]
    assert wrong == []


def test_json_line_has_what_is_promised(warm_ember, model):
    run = warm_ember.generate(model, "--prompt", "The capital of France is", max_tokens=3)
    promised = {
        "text": str,
        "tokens": list,
        "prompt_tokens": int,
        "cache": dict,
        "compile_s": float,
        "load_s": float,
        "first_token_s": float,
        "prefill_tokens_per_s": float,
        "decode_tokens_per_s": float,
        "peak_bytes": int,
        "llvm_modules": int,
    }
    kinds = {name: type(run.get(name)) for name in promised}
    for name, kind in promised.items():
        assert isinstance(run.get(name), (int, float) if kind is float else kind), f"{name} is {kinds[name]}"
    assert {"hits", "misses"} <= run["cache"].keys()
    assert run["prompt_tokens"] == 5
    assert len(run["tokens"]) == 3


def test_no_tokens_asked_gives_none(warm_ember, model):
    assert warm_ember.generate(model, "--prompt", "Hello", max_tokens=0)["tokens"] == []


def test_sampling_follows_its_seed(warm_ember, model):
    def sample(seed):
        options = ("--prompt", "Once upon a time", "--max-tokens", 12, "--temperature", 1, "--seed", seed)
        return warm_ember.json("run", model, *options)["tokens"]

    assert sample(7) == sample(7)
    assert len({tuple(sample(seed)) for seed in (7, 8, 9)}) > 1


def assert_refused(run, *words):
    """Exit code 1 and one line on standard error that holds the words."""
    assert run.returncode == 1, run.stderr
    lines = run.stderr.splitlines()
    assert len(lines) == 1, run.stderr
    for word in words:
        assert str(word) in lines[0]


def test_prompt_longer_than_context_is_refused(warm_ember, model):
    run = warm_ember("run", model, "--prompt", "ab " * 8300, "--max-tokens", 1, check=False)
    assert_refused(run, 8192)


def test_empty_prompt_is_no_crash(warm_ember, model):
    run = warm_ember("run", model, "--prompt", "", "--max-tokens", 4, check=False)
    assert run.returncode == 0 or len(run.stderr.splitlines()) == 1 == run.returncode


@pytest.mark.parametrize("ids", ["49152", "-1", "1,,2", "x", "99999999999999999999"])
def test_prompt_token_that_is_none_is_refused(warm_ember, model, ids):
    run = warm_ember("run", model, f"--prompt-tokens={ids}", "--max-tokens", 1, check=False)
    assert run.returncode in (1, 2)
    assert run.stderr.strip()
