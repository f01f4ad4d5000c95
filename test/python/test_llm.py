"""ember.load_llm: it says what `ember run` says, token by token, and its sequences, streams and errors."""

import json
import threading

import numpy as np
import pytest

PROMPT = "The capital of France is"
QUESTION = "Why is the sky blue?"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name a colour."}]


@pytest.fixture(scope="module")
def llm(model, tmp_path_factory, request):
    ember = pytest.importorskip("ember", reason="the Python package is not built, or not on PYTHONPATH")
    return ember.load_llm(model, context=512)


def test_tokens_are_those_of_the_program(llm, warm_ember, model):
    texts = ["Hello", "  two  spaces", "Käse & brød 🧀", "<|im_end|> as text", "a\nb\tc", ""]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    expected = [json.loads(line) for line in warm_ember("tokenize", model, stdin=lines).stdout.splitlines()]
    assert [llm.tokenize(text) for text in texts] == expected
    assert [llm.detokenize(ids) for ids in expected] == texts
    marked = warm_ember("tokenize", model, "--special", stdin=json.dumps("<|im_end|>") + "\n").stdout
    assert llm.tokenize("<|im_end|>", special=True) == json.loads(marked)
    assert len(json.loads(marked)) == 1
    assert llm.detokenize(json.loads(marked)) == ""
    assert llm.detokenize(json.loads(marked), special=True) == "<|im_end|>"


def test_greedy_text_is_that_of_the_program(llm, warm_ember, model):
    for options, arguments in (
        (("--prompt", PROMPT), {"prompt": PROMPT}),
        (("--prompt", QUESTION, "--chat"), {"prompt": QUESTION, "chat": True}),
        (
            ("--prompt", QUESTION, "--chat", "--system", "Answer in one word."),
            {"prompt": QUESTION, "chat": True, "system": "Answer in one word."},
        ),
    ):
        expected = warm_ember.generate(model, *options, max_tokens=12)
        stream = llm.stream(max_tokens=12, **arguments)
        assert "".join(stream) == expected["text"] == stream.text
        assert stream.tokens == expected["tokens"]
        assert len(stream.prompt_tokens) == expected["prompt_tokens"]
        assert llm.generate(max_tokens=12, **arguments) == expected["text"]


def test_drawn_text_is_that_of_the_program(llm, warm_ember, model):
    options = {"temperature": 0.8, "top_k": 40, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.1, "seed": 7}
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    expected = warm_ember.json("run", model, "--prompt", PROMPT, "--max-tokens", 12, *flags)
    assert llm.generate(PROMPT, 12, **options) == expected["text"]
    assert llm.generate(PROMPT, 12, **options) == expected["text"]


def test_chat_text_and_tokens(llm):
    text = llm.render(MESSAGES)
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nName a colour.<|im_end|>\n")
    assert text.endswith("<|im_start|>assistant\n")
    assert llm.render(MESSAGES, add_generation_prompt=False) == text.removesuffix("<|im_start|>assistant\n")
    assert llm.chat_tokens(MESSAGES) == llm.tokenize(text, special=True)
    assert llm.render([("user", "Hi")]) == llm.render("Hi")
    planted = llm.chat_tokens("<|im_end|>")
    assert planted.count(llm.tokenize("<|im_end|>", special=True)[0]) == llm.chat_tokens("x").count(
        llm.tokenize("<|im_end|>", special=True)[0]
    )


def test_logits_and_sequences(llm):
    ids = llm.tokenize(PROMPT)
    logits = llm.logits(ids)
    assert (logits.dtype, logits.shape) == (np.float32, (llm.config["vocabulary_size"],))
    assert llm.position == len(ids)
    llm.reset()
    assert llm.position == 0
    for k in ids:
        step = llm.evaluate([k])
    assert llm.position == len(ids)
    np.testing.assert_allclose(step, logits, rtol=0, atol=0.02)  # one by one, activations round otherwise
    assert np.array_equal(llm.logits(PROMPT), logits)
    assert np.array_equal(llm.logits(np.array(ids)), logits)
    kept = logits.copy()
    llm.logits("Something else")
    assert np.array_equal(logits, kept), "logits are the caller's own memory"


def test_stops_and_lengths(llm):
    whole = llm.generate(PROMPT, 16)
    stop = whole[5:9]
    stream = llm.stream(PROMPT, 16, stop=["never said", stop])
    assert "".join(stream) == whole[: whole.index(stop)]
    assert stream.finish_reason == "stop"
    assert llm.generate(PROMPT, 16, stop=whole[-3:] + "no") == whole, "the beginning of a stop is text after all"
    limited = llm.stream(PROMPT, 3)
    list(limited)
    assert (limited.finish_reason, len(limited.tokens)) == ("length", 3)
    empty = llm.stream(PROMPT, 0)
    assert (list(empty), empty.finish_reason, empty.tokens) == ([], "length", [])


def test_context_is_full(model, llm):
    import ember

    small = ember.load_llm(model, context=8)
    assert small.context == 8
    stream = small.stream(PROMPT, 100)
    list(stream)
    assert stream.finish_reason == "context"
    assert len(stream.prompt_tokens) + len(stream.tokens) == 9, "the last token needs no room"
    with pytest.raises(ValueError, match="the prompt has 40 tokens, the context 8"):
        small.generate([1] * 40)
    with pytest.raises(ValueError, match="context"):
        small.evaluate([1] * 9)


def test_a_new_sequence_ends_the_stream_before_it(llm):
    first = llm.stream(PROMPT, 8)
    next(first)
    llm.generate(QUESTION, 2)
    with pytest.raises(ValueError, match="another sequence"):
        list(first)


def test_threads_take_turns(llm):
    """Other threads run while one evaluates, and the texts are those of one thread."""
    expected = [llm.generate(PROMPT, 4), llm.generate(QUESTION, 4)]
    lock, found, ticks, stop = threading.Lock(), [], [0], threading.Event()

    def generate(prompt, place):
        with lock:
            found.append((place, llm.generate(prompt, 4)))

    def tick():
        while not stop.wait(0.001):
            ticks[0] += 1

    ticker = threading.Thread(target=tick)
    workers = [threading.Thread(target=generate, args=(p, k)) for k, p in enumerate((PROMPT, QUESTION))]
    for thread in (ticker, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    ticker.join()
    assert [text for _, text in sorted(found)] == expected
    assert ticks[0] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 1.5}, "top"),
        ({"min_p": -0.5}, "min"),
        ({"repetition_penalty": 0.0}, "repetition"),
        ({"top_k": -3}, "top"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop": ""}, "stop"),
        ({"system": "x"}, "chat=True"),
    ],
)
def test_options_out_of_range(llm, options, said):
    with pytest.raises(ValueError, match=said):
        llm.generate(PROMPT, **options)


def test_wrong_prompts(llm):
    for prompt in ("", []):
        with pytest.raises(ValueError, match="the prompt is empty"):
            llm.generate(prompt)
    with pytest.raises((ValueError, IndexError), match="49152"):
        llm.generate([49152])
    with pytest.raises((ValueError, IndexError), match="49152"):
        llm.detokenize([49152])
    with pytest.raises(ValueError, match="role"):
        llm.render([{"content": "x"}])


def test_wrong_files(tmp_path, llm):
    import ember

    with pytest.raises(OSError, match="missing"):
        ember.load_llm(tmp_path / "missing.gguf")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ValueError, match=r"text\.gguf"):
        ember.load_llm(tmp_path / "text.gguf")
    with pytest.raises(ValueError, match="threads"):
        ember.load_llm(tmp_path / "text.gguf", threads=-1)


def test_what_it_says_about_itself(llm):
    assert llm.config["architecture"] == "llama"
    assert "30 blocks" in repr(llm)
    assert {origin["status"] for origin in llm.origins} <= {"hit", "miss"}
    assert all(len(origin["key"]) == 64 for origin in llm.origins)
