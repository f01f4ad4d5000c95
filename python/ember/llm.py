"""Language models from GGUF files, by the same functions as `ember run`.

llm = ember.load_llm("model.gguf")
llm.generate("The capital of France is", max_tokens=16)
for piece in llm.stream("Why is the sky blue?", chat=True, max_tokens=64):
    print(piece, end="", flush=True)
"""

import os

from . import _core

__all__ = ["LLM", "Stream", "load_llm"]


def load_llm(path, context=0, threads=0):
    """Opens a GGUF file, and compiles its two functions or finds them compiled.

    context: most positions of a sequence, 0: what the model was trained with (never more than that). threads: of the
    whole process, 0: leaves the number as it is, at first one for each CPU. Weights stay in the file's memory and
    types. Raises OSError for a file that cannot be read, ValueError or UnsupportedOp for one that Ember cannot run;
    the message names the file and the place in it.
    """
    return LLM(_core.Llm.load(os.fspath(path), int(context), int(threads)))


class LLM:
    """A model with one sequence. Any thread may call, but there is one sequence: what begins a new one ends the streams
    before it.
    """

    def __init__(self, native):
        self._native = native
        self.config = native.config

    # --- tokens
    def tokenize(self, text, *, special=False, bos=False):
        """Token ids of a text. special: control tokens written out in it count as such. bos: as a prompt begins, with
        the beginning-of-text token where the file asks for it.
        """
        return self._native.tokenize(text, special, bos)

    def detokenize(self, ids, *, special=False):
        """The text of token ids; bytes that are no UTF-8 become U+FFFD. special: shows control tokens by their names.
        IndexError or ValueError for an id outside the vocabulary.
        """
        return self._native.detokenize(_ids(ids), special)

    # --- chats
    def render(self, messages, *, add_generation_prompt=True):
        """The chat template's text for messages: a string (the user's), or dicts or pairs of role and content."""
        return self._native.render(_messages(messages), add_generation_prompt)

    def chat_tokens(self, messages, *, add_generation_prompt=True):
        """Token ids of the same; what a message says is never a control token."""
        return self._native.chat_tokens(_messages(messages), add_generation_prompt)

    # --- evaluation
    @property
    def context(self):
        """The most positions of a sequence."""
        return self._native.context

    @property
    def position(self):
        """How many tokens the sequence has."""
        return self._native.position

    @property
    def origins(self):
        """How the compiled functions came about, a dict each: status, reason, key, compile_s, load_s, llvm_modules."""
        return self._native.origins

    def reset(self):
        """Begins a new sequence."""
        self._native.reset()

    def evaluate(self, ids):
        """Appends tokens to the sequence; the logits after the last one, float32, shape (vocabulary,)."""
        return self._native.evaluate(_ids(ids), None)

    def logits(self, tokens):
        """The logits after a prompt, float32, shape (vocabulary,), in a new sequence. tokens: token ids, or a text."""
        ids = self.tokenize(tokens, bos=True) if isinstance(tokens, str) else _ids(tokens)
        self._check_prompt(ids)
        return self._native.evaluate(ids, self._native.reset())

    # --- generation
    def stream(self, prompt, max_tokens=128, *, chat=False, system=None, special=False, stop=(), **sampling):
        """An iterator over pieces of the generated text, each valid by itself; see generate() for the arguments."""
        return Stream(self._native, self._prompt(prompt, chat, system, special), max_tokens, stop, **sampling)

    def generate(self, prompt, max_tokens=128, **options):
        """The text that the model goes on with.

        prompt: a text, token ids, or with chat=True the user's message or a list of messages. chat: puts it into the
        model's chat template, with `system` as system message. special: control tokens written out in a text prompt
        count as such. stop: a text or texts at which generation ends; they are left out.

        Sampling, in this order: repetition_penalty (1: none), top_k (0: all), top_p (1: all), min_p (0: all),
        temperature (0: the likeliest token), draw with seed. The same seed and logits give the same tokens.

        ValueError for an option out of its range and for a prompt that is empty or has no room in the context.
        """
        return "".join(self.stream(prompt, max_tokens, **options))

    def _prompt(self, prompt, chat, system, special):
        if chat:
            messages = _messages(prompt)
            if system:
                messages.insert(0, ("system", system))
            return self._check_prompt(self._native.chat_tokens(messages, True))
        if system:
            raise ValueError("a system message belongs to a chat: chat=True")
        ids = self.tokenize(prompt, special=special, bos=True) if isinstance(prompt, str) else _ids(prompt)
        return self._check_prompt(ids)

    def _check_prompt(self, ids):
        if not ids:
            raise ValueError("the prompt is empty")
        if len(ids) > self.context:
            raise ValueError(f"the prompt has {len(ids)} tokens, the context {self.context}")
        return ids

    def __repr__(self):
        c = self.config
        return f"<ember.LLM {c['architecture']}, {c['block_count']} blocks, context {self.context}>"


class Stream:
    """Pieces of text as they are generated.

    text: all so far. tokens: their ids. finish_reason: None while it goes on, then "end" (the model's own), "stop",
    "length" (max_tokens) or "context".
    """

    def __init__(
        self,
        native,
        prompt,
        max_tokens,
        stop,
        *,
        temperature=0.0,
        top_k=0,
        top_p=1.0,
        min_p=0.0,
        repetition_penalty=1.0,
        seed=0,
    ):
        if max_tokens < 0:
            raise ValueError(f"max_tokens: {max_tokens} is negative")
        self.prompt_tokens = prompt
        self.tokens = []
        self.text = ""
        self.finish_reason = None
        self._max_tokens = max_tokens
        self._stops = [stop] if isinstance(stop, str) else list(stop)
        if not all(isinstance(s, str) and s for s in self._stops):
            raise ValueError("stop: texts that are not empty")
        self._waiting = ""  # text that may be the beginning of a stop
        self._native = _core.generation(
            native,
            prompt,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
        )

    def __iter__(self):
        return self

    def __next__(self):
        while self.finish_reason is None:
            piece = self._step()
            if piece:
                self.text += piece
                return piece
        raise StopIteration

    def _step(self):
        if len(self.tokens) >= self._max_tokens:
            return self._finish("length")
        if self.tokens and not self._native.has_room():
            return self._finish("context")
        step = self._native.next()
        if step is None:
            return self._finish("end")
        token, piece = step
        self.tokens.append(token)
        return self._past_stops(self._waiting + piece)

    def _finish(self, reason):
        self.finish_reason = reason
        rest = self._past_stops(self._waiting + self._native.finish(), whole=True)
        self._waiting = ""
        return rest

    def _past_stops(self, text, whole=False):
        """What may be shown of `text`: up to a stop, and nothing that the beginning of one ends."""
        found = [at for at in (text.find(s) for s in self._stops) if at >= 0]
        if found:
            self.finish_reason = "stop"
            self._waiting = ""
            return text[: min(found)]
        kept = 0 if whole else max((_overlap(text, s) for s in self._stops), default=0)
        self._waiting = text[len(text) - kept :]
        return text[: len(text) - kept]


def _overlap(text, stop):
    """The length of the longest end of `text` that `stop` begins with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)


def _ids(ids):
    """Token ids as a list of ints; any sequence or integer array."""
    return [int(i) for i in ids]


def _messages(messages):
    """(role, content) pairs."""
    if isinstance(messages, str):
        return [("user", messages)]
    pairs = []
    for message in messages:
        if isinstance(message, dict):
            try:
                message = message["role"], message["content"]
            except KeyError as missing:
                raise ValueError(f"a message without {missing}") from None
        role, content = message
        pairs.append((str(role), str(content)))
    return pairs
