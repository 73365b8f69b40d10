"""A language model at work: prompts in, what comes next out, as a whole or as it is written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError, InputError
from regard.generation import Beam, Greedy, Hypothesis, Sample, Strategy, generate
from regard.generation.decode import Limits
from regard.huggingface.folder import Loaded
from regard.metrics.self_consistency import self_consistency
from regard.tokenizers.chat import apply_chat_template
from regard.tokenizers.streaming import StreamDecoder
from regard.tokenizers.text import TextTokenizer

BATCH = 16  # prompts written on side by side
TOKENS = 200  # new tokens at most, where the caller says nothing
OWN = Sample(temperature=0.8, top_p=0.95)  # how a model trained here writes where the caller says nothing
ROUND, DRAW = 2**40, 2**48  # chance goes by number: what a text draws when it is written on must differ

BestBy = Literal["likelihood", "mean", "consistency"]
Tell = Callable[[str], None]
Sees = Callable[[int, list[int]], bool]


@dataclass(frozen=True)
class Token:
    """One token of a text, and how likely the model found it there."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class GeneratedText:
    """One text the model wrote."""

    text: str
    tokens: list[int]
    log_probability: float
    score: float  # what it is ranked by
    ended: bool  # False: cut off at the limit
    forgot: bool = False  # it outgrew the context: its beginning was out of sight at its end


@dataclass(frozen=True)
class Generation:
    """What was written for one prompt, the best first; `text` and `score` are the best one's."""

    prompt: str
    ids: list[int]  # of the prompt, as the model was given it
    texts: list[GeneratedText]

    @property
    def text(self) -> str:
        return self.texts[0].text

    @property
    def score(self) -> float:
        return self.texts[0].score


class TextGenerator:
    """`run("Once upon a time").text`; `.model` is the nn.Module, `.tokenizer` its words.

    `strategy` is how it writes where the caller says nothing.
    """

    def __init__(self, kind: str, model: nn.Module, tokenizer: TextTokenizer, strategy: Strategy = OWN) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.strategy = strategy

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
        """A model from elsewhere writes the likeliest token, as it does there."""
        return cls(found.kind, found.model, found.tokenizer, Greedy())

    @property
    def context(self) -> int:
        """The most tokens it sees at once."""
        return int(self.model.config.context)

    def run(self, prompt: str, strategy: Strategy | None = None, **options: Any) -> Generation:
        """Write on from one prompt; the options are those of `run_all`."""
        return self.run_all([prompt], strategy, **options)[0]

    def run_all(
        self,
        prompts: Sequence[str],
        strategy: Strategy | None = None,
        *,
        tokens: int = TOKENS,
        stop: Sequence[str] = (),
        best_by: BestBy = "likelihood",
        truncate: bool = False,
        specials: bool = False,
        tell: Tell | None = None,
    ) -> list[Generation]:
        """Write on from many prompts, in batches; each gets what it would get alone.

        At most `tokens` new tokens, or until one of the `stop` strings, which is left out. A prompt longer than the
        context is an error, or loses its beginning where `truncate` says so. With `specials` names such as
        "<|im_end|>" in a prompt are those tokens. `tell` is given the text of a single prompt as it is written.
        """
        strategy = strategy or self.strategy
        if (stop or tell) and isinstance(strategy, Beam):
            raise InputError("a beam settles on a text only at its end: it can neither stop at a string nor be told")
        if tell is not None and (len(prompts) != 1 or getattr(strategy, "num_samples", 1) != 1):
            raise InputError(f"only one text at a time can be told, got {len(prompts)} prompts")
        if any(not text for text in stop):
            raise InputError("a stop string is empty; it would stop before the first word")
        found: list[Generation] = []
        for start in range(0, len(prompts), BATCH):
            several = prompts[start : start + BATCH]
            ids = [self.encode(prompt, truncate=truncate, specials=specials) for prompt in several]
            pages = [Page(self.tokenizer, given, stop, tell) for given in ids]
            texts = self._write(ids, strategy, tokens, start, pages)
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
                "this model has no chat template: it continues texts, it does not answer; leave out --chat"
            )
        names = [
            None if n is None else self.tokenizer.id_to_token(n) for n in (self.tokenizer.bos_id, self.tokenizer.eos_id)
        ]
        prompt = apply_chat_template(self.tokenizer.chat_template, messages, bos_token=names[0], eos_token=names[1])
        return self.run(prompt, strategy, specials=True, **options)

    def encode(self, prompt: str, *, truncate: bool = False, specials: bool = False) -> list[int]:
        """The ids of a prompt: the begin symbol first where the model wants it; else for an empty one the end."""
        ids = self.tokenizer.encode(prompt, parse_special_tokens=specials)
        first = self.tokenizer.prepended_bos_id
        if first is None and not ids:  # as if another text had ended here
            first = self.tokenizer.eos_id
        if first is not None and ids[:1] != [first]:  # a chat template may have put it there already
            ids = [first, *ids]
        if not ids:
            raise InputError("the prompt is empty and this model has no symbol to begin with; give it a first word")
        if len(ids) > self.context:
            if not truncate:
                raise InputError(
                    f"the prompt has {len(ids):,} tokens, this model sees {self.context:,} at once; "
                    "shorten it, or let go of its beginning with --truncate left"
                )
            ids = self._last(ids, self.context)
        return ids

    def log_probabilities(self, prompt: list[int], tokens: list[int]) -> list[Token]:
        """How likely the model finds each token of a text behind a prompt, by one more look at all of it."""
        if not tokens:
            return []
        ids = torch.tensor([[*prompt, *tokens]])[:, -self.context - 1 :]
        places = ids.shape[1] - 1
        seen = min(len(tokens), places)
        with torch.inference_mode():
            hidden = self.model.read(ids[:, :-1].to(self._device))[0, places - seen :]
            logits = self.model.logits(hidden).log_softmax(-1)  # of the text alone: a long prompt's would be large
        gains = logits.gather(1, ids[0, -seen:, None].to(self._device))[:, 0].tolist()
        unseen = [float("nan")] * (len(tokens) - seen)  # its context is gone
        names = self.tokenizer.token_labels(tokens)
        return [Token(name, gain) for name, gain in zip(names, [*unseen, *gains], strict=True)]

    # ------------------------------------------------ inside

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _last(self, ids: list[int], room: int) -> list[int]:
        """The last ids, `room` of them; a model that wants a begin symbol keeps it first, as it was trained."""
        first = self.tokenizer.prepended_bos_id
        if first is None or len(ids) <= room or room == 1:
            return ids[-room:]
        return [first, *ids[1 - room :]]

    def _write(
        self, prompts: list[list[int]], strategy: Strategy, tokens: int, first: int, pages: list["Page"]
    ) -> list[list[GeneratedText]]:
        """What the strategy finds for each prompt; a text that fills the context is written on from its second half."""
        rooms, numbers = [tokens] * len(prompts), list(range(first, first + len(prompts)))
        found = self._round(strategy, prompts, rooms, numbers, [page.sees for page in pages])
        drafts = [
            [Draft(page, number, prompt, one) for one in several]
            for page, number, prompt, several in zip(pages, numbers, prompts, found, strict=True)
        ]
        alone = replace(strategy, num_samples=1) if isinstance(strategy, Sample) else strategy
        rounds = 0
        while going := [draft for several in drafts for draft in several if draft.goes_on(tokens)]:
            rounds += 1
            kept = [self._last([*draft.prompt, *draft.tokens], max(1, self.context // 2)) for draft in going]
            rooms = [tokens - len(draft.tokens) for draft in going]
            numbers = [draft.number + rounds * ROUND + draft.draw * DRAW for draft in going]
            found = self._round(alone, kept, rooms, numbers, [draft.sees for draft in going])
            for draft, several in zip(going, found, strict=True):
                draft.add(several[0])
        penalty = strategy.length_penalty if isinstance(strategy, Beam) else 0.0
        return [[draft.done(penalty) for draft in several] for several in drafts]

    def _round(
        self, strategy: Strategy, prompts: list[list[int]], rooms: list[int], numbers: list[int], sees: list[Sees]
    ) -> list[list[Hypothesis]]:
        """Write all prompts on side by side, each as far as its room and the context go."""
        limits = Limits(
            [min(room, self.context - len(prompt) + 1) for room, prompt in zip(rooms, prompts, strict=True)],
            row_ids=numbers,
            stop_ids=self.tokenizer.eos_ids,
            vocab_size=self.tokenizer.vocab_size,
            prompts=prompts,
            on_token=lambda row, draw, written: sees[row](draw, written),
        )
        return generate(self.model, prompts, strategy, limits)


class Draft:
    """One text as it is written round by round."""

    def __init__(self, page: "Page", number: int, prompt: list[int], found: Hypothesis) -> None:
        self.page, self.number, self.prompt, self.draw = page, number, prompt, found.sample
        self.tokens, self.log_probability, self.ended = list(found.tokens), found.log_probability, found.ended
        self.score: float | None = found.score  # none: it has grown since

    def goes_on(self, tokens: int) -> bool:
        return not self.ended and len(self.tokens) < tokens

    def sees(self, _draw: int, written: list[int]) -> bool:
        return self.page.sees(self.draw, written)

    def add(self, more: Hypothesis) -> None:
        self.tokens += more.tokens
        self.log_probability += more.log_probability
        self.ended, self.score = more.ended, None

    def done(self, length_penalty: float) -> GeneratedText:
        forgot, score = self.score is None, self.score
        if score is None:
            score = self.log_probability / (len(self.tokens) + self.ended) ** length_penalty
        return GeneratedText(self.page.text(self.tokens), self.tokens, self.log_probability, score, self.ended, forgot)


class Page:
    """The texts of one prompt while they are written: sees stop strings, and tells what is certain of the first."""

    def __init__(self, tokenizer: TextTokenizer, prompt: list[int], stop: Iterable[str], tell: Tell | None) -> None:
        self.tokenizer = tokenizer
        self.continuing = bool(tokenizer.decode(prompt))  # a begin symbol alone is no text to go on from
        self.stop = list(stop)
        self.tell = tell
        self._decoders: dict[int, StreamDecoder] = {}
        self._texts: dict[int, str] = {}
        self._told = 0

    def sees(self, draw: int, written: list[int]) -> bool:
        """One more token was written; True: a stop string stands there."""
        if not self.stop and self.tell is None:
            return False
        if draw not in self._decoders:
            self._decoders[draw] = StreamDecoder(self.tokenizer, continuing=self.continuing)
            self._texts[draw] = ""
        new = self._decoders[draw].add(written[-1])
        text = self._texts[draw] = self._texts[draw] + new
        stopped = any(stop in text[-(len(stop) + len(new)) :] for stop in self.stop)
        self._say(self._cut(text) if stopped else text[: len(text) - self._uncertain(text)])
        return stopped

    def text(self, written: list[int]) -> str:
        """The whole text, up to the first stop string; what was not told yet is told."""
        whole = self._cut(self.tokenizer.decode(written, continuing=self.continuing))
        self._say(whole)
        return whole

    def _cut(self, text: str) -> str:
        return text[: min((place for stop in self.stop if (place := text.find(stop)) >= 0), default=len(text))]

    def _uncertain(self, text: str) -> int:
        """How much of the text's end may be the beginning of a stop string."""
        return max((size for stop in self.stop for size in range(len(stop)) if text.endswith(stop[:size])), default=0)

    def _say(self, text: str) -> None:
        if self.tell is not None and len(text) > self._told:
            self.tell(text[self._told :])
            self._told = len(text)


def _ranked(texts: list[GeneratedText], best_by: BestBy) -> list[GeneratedText]:
    """The texts, the best first, each with what it is ranked by as its score."""
    if best_by == "consistency" and len(texts) > 1:
        scores = self_consistency([one.text for one in texts])
    elif best_by == "mean":
        scores = [one.log_probability / max(1, len(one.tokens) + one.ended) for one in texts]
    else:
        scores = [one.score for one in texts]
    ranked = [replace(one, score=score) for one, score in zip(texts, scores, strict=True)]
    return sorted(ranked, key=lambda one: -one.score)
