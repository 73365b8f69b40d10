"""A text that is generated for a client: what it asks for, what it has so far, and the pieces it is sent."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from torch import Tensor

from regard.server.errors import APIError
from regard.server.slots import Slot
from regard.tasks.language_modeling.pipeline import TextStream


class Grammar(Protocol):
    """What the next token may be."""

    def mask(self) -> Tensor:
        """(V,) True: allowed."""

    def accept(self, token: int) -> None: ...

    @property
    def is_done(self) -> bool: ...


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; a temperature of 0 takes the most probable one."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0

    @property
    def changes_logits(self) -> bool:
        return bool(self.repetition_penalty != 1 or self.presence_penalty or self.frequency_penalty or self.logit_bias)


@dataclass(frozen=True)
class TokenScore:
    """A token, its log probability, and the most probable ones at its place. NaN: not computed."""

    token: int
    log_probability: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Piece:
    """What a client is sent: more of a text, or its end."""

    index: int  # of the text in its request
    text: str = ""
    scores: Sequence[TokenScore] = ()
    num_tokens: int = 0  # generated so far
    num_reused: int = 0  # of the prompt, that were not read again
    finish_reason: str | None = None  # stop, length
    error: APIError | None = None

    @property
    def is_last(self) -> bool:
        return self.finish_reason is not None or self.error is not None


Send = Callable[[Piece], None]


@dataclass(eq=False)
class Text:
    """One text while it waits and is generated; made by the event loop, then changed by its lane's thread alone."""

    index: int
    prompt: list[int]
    max_new_tokens: int
    sampling: Sampling
    send: Send
    stream: TextStream
    deadline: float  # of time.monotonic
    sample: int = 0  # its number among those of its prompt, for its random stream
    row: int = 0  # the number of its prompt in its request, likewise
    num_top: int | None = None  # log probabilities of the chosen tokens, and of so many others; None: none
    scores_prompt: bool = False
    grammar: Grammar | None = None
    streams: bool = True  # pieces are sent as they come
    is_cancelled: bool = False

    slot: Slot | None = None
    tokens: list[int] = field(default_factory=list)
    scores: list[TokenScore] = field(default_factory=list)  # not sent yet
    parts: list[str] = field(default_factory=list)  # of the text, not sent yet
    num_read: int = 0
    num_reused: int = 0
    submitted: float = field(default_factory=time.monotonic)
    first_token: float | None = None

    def __post_init__(self) -> None:
        self.random = np.random.Generator(
            np.random.Philox(key=[self.sampling.seed, self.row], counter=[0, 0, 0, self.sample])
        )

    @property
    def so_far(self) -> list[int]:
        """The prompt and the tokens."""
        return self.prompt + self.tokens if self.tokens else self.prompt

    def flush(self, finish_reason: str | None = None) -> None:
        """Send what there is; an unfinished text that is not streamed waits."""
        if finish_reason is None and not (self.streams and (self.parts or self.scores)):
            return
        text, scores = "".join(self.parts), tuple(self.scores)
        self.parts.clear()  # the stream adds to this list
        self.scores = []
        reused = self.num_reused
        self.send(Piece(self.index, text, scores, len(self.tokens), reused, finish_reason))

    def fail(self, error: APIError) -> None:
        self.send(Piece(self.index, num_tokens=len(self.tokens), error=error))
