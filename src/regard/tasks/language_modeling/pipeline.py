"""A language model in use: prompts in, generated text out, at the end or streamed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import torch
from torch import nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError, InputError
from regard.generation import Beam, Greedy, Hypothesis, Sample, Strategy, generate
from regard.generation.decode import Limits
from regard.generation.engine import Engine, engine_for
from regard.huggingface.folder import Loaded
from regard.layers.tap import watched
from regard.metrics.self_consistency import self_consistency
from regard.runtime import runtime_of
from regard.tasks.show import Showable
from regard.tokenizers.chat import apply_chat_template
from regard.tokenizers.streaming import StreamDecoder
from regard.tokenizers.text import TextTokenizer

BATCH_SIZE = 16  # prompts decoded together
MAX_NEW_TOKENS = 200  # by default
DEFAULT_STRATEGY = Sample(temperature=0.8, top_p=0.95)  # of a model trained here
# A row's number seeds its samples: each continuation beyond the context, and each sample, has a number of its own.
ROUND_SEED, SAMPLE_SEED = 2**40, 2**48

BestBy = Literal["likelihood", "mean", "consistency"]
OnText = Callable[[str], None]
OnToken = Callable[[int, list[int]], bool]  # (sample, all its tokens so far) -> stop here


@dataclass(frozen=True)
class Token:
    """One token of a text and its log probability."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class GeneratedText:
    """One generated text."""

    text: str
    tokens: list[int]
    log_probability: float
    score: float  # what it is ranked by
    ended: bool  # False: cut off at the limit
    forgot: bool = False  # it outgrew the context: its end was generated without its beginning


@dataclass(frozen=True)
class Generation:
    """The texts generated for one prompt, the best first; `text` and `score` are the best one's."""

    prompt: str
    ids: list[int]  # of the prompt, special tokens included
    texts: list[GeneratedText]

    @property
    def text(self) -> str:
        return self.texts[0].text

    @property
    def score(self) -> float:
        return self.texts[0].score


class TextGenerator(Showable):
    """`run("Once upon a time").text`; `.model` is the nn.Module, `.tokenizer` its tokenizer.

    `strategy` is the default way to decode.
    """

    def __init__(
        self, kind: str, model: nn.Module, tokenizer: TextTokenizer, strategy: Strategy = DEFAULT_STRATEGY
    ) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.strategy = strategy
        self._engine: tuple[list[int], Engine | None] | None = None  # with the addresses of the weights it was made for

    @classmethod
    def open(cls, folder: ModelFolder) -> "TextGenerator":
        tokenizer = TextTokenizer.load_saved(folder.folder)
        vocab_size: int = folder.model.config.vocab_size  # type: ignore[union-attr, assignment]
        if tokenizer.vocab_size > vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {vocab_size}: not a pair"
            )
        return cls(folder.kind, folder.model, tokenizer)

    @classmethod
    def adopt(cls, found: Loaded) -> "TextGenerator":
        """A model in another format; greedy by default, as it is there."""
        return cls(found.kind, found.model, found.tokenizer, Greedy())

    @property
    def context(self) -> int:
        """The most tokens that the model attends to."""
        return int(self.model.config.context)

    def run(self, prompt: str, strategy: Strategy | None = None, **options: Any) -> Generation:
        """Continue one prompt; the options are those of `run_all`."""
        return self.run_all([prompt], strategy, **options)[0]

    def run_all(
        self,
        prompts: Sequence[str],
        strategy: Strategy | None = None,
        *,
        max_new_tokens: int = MAX_NEW_TOKENS,
        stop: Sequence[str] = (),
        best_by: BestBy = "likelihood",
        truncate: bool = False,
        specials: bool = False,
        on_text: OnText | None = None,
    ) -> list[Generation]:
        """Continue many prompts, in batches; each gets what it would get alone.

        At most `max_new_tokens`, or until one of the `stop` strings, which is left out. A prompt longer than the
        context is an error; with `truncate` it loses its beginning. With `specials`, "<|im_end|>" and the like in a
        prompt are special tokens. `on_text` streams: it is called with each new part of the text of a single prompt.
        """
        strategy = strategy or self.strategy
        if (stop or on_text) and isinstance(strategy, Beam):
            raise InputError(
                "beam search cannot stream or stop at a string: a beam's text is known only at the end; "
                "use strategy=Greedy() or Sample(), on the command line --greedy or --sample"
            )
        if on_text is not None and (len(prompts) != 1 or getattr(strategy, "num_samples", 1) != 1):
            raise InputError(f"only one text can be streamed at a time, got {len(prompts)} prompts")
        if any(not text for text in stop):
            raise InputError("a stop string is empty; it would stop before the first token")
        found: list[Generation] = []
        for start in range(0, len(prompts), BATCH_SIZE):
            several = prompts[start : start + BATCH_SIZE]
            ids = [self.encode(prompt, truncate=truncate, specials=specials) for prompt in several]
            streams = [TextStream(self.tokenizer, given, stop, on_text) for given in ids]
            texts = self._generate(ids, strategy, max_new_tokens, start, streams)
            found += [
                Generation(prompt, given, _ranked(each, best_by))
                for prompt, given, each in zip(several, ids, texts, strict=True)
            ]
        return found

    def chat(
        self, messages: Sequence[Mapping[str, str]], strategy: Strategy | None = None, **options: Any
    ) -> Generation:
        """The answer to a conversation: messages with a "role" (system, user, assistant) and their "content"."""
        if self.tokenizer.chat_template is None:
            raise InputError(
                "this model has no chat template: it continues texts and does not answer messages; "
                "use run(prompt), on the command line leave out --chat"
            )
        names = [
            None if n is None else self.tokenizer.id_to_token(n) for n in (self.tokenizer.bos_id, self.tokenizer.eos_id)
        ]
        prompt = apply_chat_template(self.tokenizer.chat_template, messages, bos_token=names[0], eos_token=names[1])
        return self.run(prompt, strategy, specials=True, **options)

    @overload
    def encode(self, prompt: str, *, truncate: bool = False, specials: bool = False) -> list[int]: ...  # type: ignore[overload-overlap]  # a str is a Sequence of str too

    @overload
    def encode(self, prompt: Sequence[str], *, truncate: bool = False, specials: bool = False) -> list[list[int]]: ...

    def encode(
        self, prompt: str | Sequence[str], *, truncate: bool = False, specials: bool = False
    ) -> list[int] | list[list[int]]:
        """The ids of a prompt, or of each of several, after the begin token where the model has one; else an empty
        prompt is the end token."""
        if not isinstance(prompt, str):
            return [self.encode(one, truncate=truncate, specials=specials) for one in prompt]
        ids = self.tokenizer.encode(prompt, parse_special_tokens=specials)
        first = self.tokenizer.prepended_bos_id
        if first is None and not ids:  # as if another text had ended here
            first = self.tokenizer.eos_id
        if first is not None and ids[:1] != [first]:  # a chat template may have put it there already
            ids = [first, *ids]
        if not ids:
            raise InputError("the prompt is empty and this model has no begin token; give it a first word")
        if len(ids) > self.context:
            if not truncate:
                raise InputError(
                    f"the prompt has {len(ids):,} tokens, this model's context is {self.context:,}; "
                    "shorten it, or drop its beginning with truncate=True, on the command line --truncate left"
                )
            ids = self._last(ids, self.context)
        return ids

    def log_probabilities(self, prompt: list[int], tokens: list[int]) -> list[Token]:
        """The log probability of each token of a text after a prompt, by one more forward pass."""
        if not tokens:
            return []
        ids = torch.tensor([[*prompt, *tokens]])[:, -self.context - 1 :]
        length = ids.shape[1] - 1
        scored = min(len(tokens), length)
        with torch.inference_mode():
            hidden = self.model.hidden_states(ids[:, :-1].to(self._device))[0, length - scored :]
            logits = self.model.logits(hidden).log_softmax(-1)  # not of the prompt: that could be large
        gains = logits.gather(1, ids[0, -scored:, None].to(self._device))[:, 0].tolist()
        unscored = [float("nan")] * (len(tokens) - scored)  # outside of the context
        names = self.tokenizer.token_labels(tokens)
        return [Token(name, gain) for name, gain in zip(names, [*unscored, *gains], strict=True)]

    # ------------------------------------------------ inside

    @property
    def _device(self) -> torch.device:
        return runtime_of(self.model).device

    def _last(self, ids: list[int], room: int) -> list[int]:
        """The last `room` ids; a begin token stays first, as in training."""
        first = self.tokenizer.prepended_bos_id
        if first is None or len(ids) <= room or room == 1:
            return ids[-room:]
        return [first, *ids[1 - room :]]

    def _generate(
        self, prompts: list[list[int]], strategy: Strategy, max_new_tokens: int, first: int, streams: list["TextStream"]
    ) -> list[list[GeneratedText]]:
        """The texts for each prompt. A text that fills the context is continued from its second half."""
        rooms, numbers = [max_new_tokens] * len(prompts), list(range(first, first + len(prompts)))
        found = self._round(strategy, prompts, rooms, numbers, [stream.on_token for stream in streams])
        drafts = [
            [Draft(stream, number, prompt, one) for one in several]
            for stream, number, prompt, several in zip(streams, numbers, prompts, found, strict=True)
        ]
        single = replace(strategy, num_samples=1) if isinstance(strategy, Sample) else strategy
        rounds = 0
        while unfinished := [draft for several in drafts for draft in several if draft.goes_on(max_new_tokens)]:
            rounds += 1
            kept = [self._last([*draft.prompt, *draft.tokens], max(1, self.context // 2)) for draft in unfinished]
            rooms = [max_new_tokens - len(draft.tokens) for draft in unfinished]
            numbers = [draft.number + rounds * ROUND_SEED + draft.draw * SAMPLE_SEED for draft in unfinished]
            found = self._round(single, kept, rooms, numbers, [draft.on_token for draft in unfinished])
            for draft, several in zip(unfinished, found, strict=True):
                draft.add(several[0])
        penalty = strategy.length_penalty if isinstance(strategy, Beam) else 0.0
        return [[draft.done(penalty) for draft in several] for several in drafts]

    def _round(
        self, strategy: Strategy, prompts: list[list[int]], rooms: list[int], numbers: list[int], watch: list[OnToken]
    ) -> list[list[Hypothesis]]:
        """Continue all prompts in one batch, each as far as its room and the context allow."""
        limits = Limits(
            [min(room, self.context - len(prompt) + 1) for room, prompt in zip(rooms, prompts, strict=True)],
            row_ids=numbers,
            stop_ids=self.tokenizer.eos_ids,
            vocab_size=self.tokenizer.vocab_size,
            prompts=prompts,
            on_token=lambda row, draw, tokens: watch[row](draw, tokens),
        )
        return generate(self._generator(), prompts, strategy, limits)

    def _generator(self) -> Any:
        """The recorded step of the model, or, where there is none, the model."""
        return self.engine() or self.model

    def engine(self) -> Engine | None:
        """The recorded step of the model; None where there is none."""
        addresses = [tensor.data_ptr() for tensor in (*self.model.parameters(), *self.model.buffers())]
        if watched(self.model):
            return None
        if self._engine is None or self._engine[0] != addresses:
            self._engine = (addresses, engine_for(self.model))
        return self._engine[1]


class Draft:
    """One text, generated round by round."""

    def __init__(self, stream: "TextStream", number: int, prompt: list[int], found: Hypothesis) -> None:
        self.stream, self.number, self.prompt, self.draw = stream, number, prompt, found.sample
        self.tokens, self.log_probability, self.ended = list(found.tokens), found.log_probability, found.ended
        self.score: float | None = found.score  # None: it has grown since

    def goes_on(self, max_new_tokens: int) -> bool:
        return not self.ended and len(self.tokens) < max_new_tokens

    def on_token(self, _draw: int, tokens: list[int]) -> bool:
        return self.stream.on_token(self.draw, tokens)

    def add(self, more: Hypothesis) -> None:
        self.tokens += more.tokens
        self.log_probability += more.log_probability
        self.ended, self.score = more.ended, None

    def done(self, length_penalty: float) -> GeneratedText:
        forgot, score = self.score is None, self.score
        if score is None:
            score = self.log_probability / (len(self.tokens) + self.ended) ** length_penalty
        text = self.stream.finish(self.tokens)
        return GeneratedText(text, self.tokens, self.log_probability, score, self.ended, forgot)


class TextStream:
    """The texts of one prompt while they are generated: finds stop strings, and streams what is final of the first.

    The end of a text is held back while it may be the beginning of a stop string.
    """

    def __init__(
        self, tokenizer: TextTokenizer, prompt: list[int], stop: Iterable[str], on_text: OnText | None
    ) -> None:
        self.tokenizer = tokenizer
        self.continuing = bool(tokenizer.decode(prompt))  # a begin token alone is no text to continue
        self.stop = list(stop)
        self.on_text = on_text
        self._decoders: dict[int, StreamDecoder] = {}
        self._texts: dict[int, str] = {}
        self._streamed = 0

    def on_token(self, draw: int, tokens: list[int]) -> bool:
        """One more token of a sample was generated; True: the text has a stop string."""
        if not self.stop and self.on_text is None:
            return False
        if draw not in self._decoders:
            self._decoders[draw] = StreamDecoder(self.tokenizer, continuing=self.continuing)
            self._texts[draw] = ""
        new = self._decoders[draw].add(tokens[-1])
        text = self._texts[draw] = self._texts[draw] + new
        stopped = any(stop in text[-(len(stop) + len(new)) :] for stop in self.stop)
        self._send(self._cut(text) if stopped else text[: len(text) - self._held_back(text)])
        return stopped

    def finish(self, tokens: list[int]) -> str:
        """The whole text, up to the first stop string; streams the rest of it."""
        text = self._cut(self.tokenizer.decode(tokens, continuing=self.continuing))
        self._send(text)
        return text

    def _cut(self, text: str) -> str:
        return text[: min((index for stop in self.stop if (index := text.find(stop)) >= 0), default=len(text))]

    def _held_back(self, text: str) -> int:
        """How many characters at the end of the text may be the beginning of a stop string."""
        return max((size for stop in self.stop for size in range(len(stop)) if text.endswith(stop[:size])), default=0)

    def _send(self, text: str) -> None:
        if self.on_text is not None and len(text) > self._streamed:
            self.on_text(text[self._streamed :])
            self._streamed = len(text)


def _ranked(texts: list[GeneratedText], best_by: BestBy) -> list[GeneratedText]:
    """The texts, the best first; what they are ranked by becomes their score."""
    if best_by == "consistency" and len(texts) > 1:
        scores = self_consistency([one.text for one in texts])
    elif best_by == "mean":
        scores = [one.log_probability / max(1, len(one.tokens) + one.ended) for one in texts]
    else:
        scores = [one.score for one in texts]
    ranked = [replace(one, score=score) for one, score in zip(texts, scores, strict=True)]
    return sorted(ranked, key=lambda one: -one.score)
