"""A classifier at work: texts or pairs in, their classes or scores out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoint import CONFIG, ModelFolder
from regard.errors import FolderError, InputError
from regard.huggingface.folder import Pooling
from regard.tasks.embedding.pipeline import Embedder
from regard.tasks.reading import said_of
from regard.tokenizers.wordpiece import Encoding, WordPieceTokenizer

SHORTEST = 3  # the symbols of a pair


@dataclass(frozen=True)
class Classification:
    """What is thought of a text or a pair: a class, or a score."""

    text: str
    second: str | None
    label: str | None  # None: it has a score instead
    score: float  # of a class, its probability
    probabilities: dict[str, float]  # of all classes, the likeliest first


class Classifier(Embedder):
    """`run("a fine film").label`; `.labels` are its classes, none where it gives a score.

    `pairs` and `longest` are as it was trained: whether on pairs of texts (None: nobody knows), and on how many pieces.
    """

    def __init__(
        self,
        kind: str,
        model: nn.Module,
        tokenizer: WordPieceTokenizer,
        pooling: Pooling | None = None,
        *,
        pairs: bool | None = None,
        longest: int | None = None,
    ) -> None:
        super().__init__(kind, model, tokenizer, pooling)
        self.pairs = pairs
        self._longest = longest

    @classmethod
    def open(cls, folder: ModelFolder) -> "Classifier":
        plain = Embedder.open(folder)
        pairs, longest = folder.task.get("pairs"), folder.task.get("longest")
        if not isinstance(pairs, bool | None):
            raise FolderError(f"{folder.folder / CONFIG}: task.pairs is {pairs!r}, wanted true or false")
        if longest is not None and (type(longest) is not int or longest < SHORTEST):
            raise FolderError(f"{folder.folder / CONFIG}: task.longest is {longest!r}, wanted {SHORTEST} or more")
        return cls(plain.kind, plain.model, plain.tokenizer, pairs=pairs, longest=longest)

    @property
    def longest(self) -> int:
        """The most pieces of a text or a pair it reads, symbols counted."""
        return min(self._longest or super().longest, super().longest)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.model.config.labels)

    def run(self, text: str, second: str | None = None, **options: Any) -> Classification:  # type: ignore[override]
        return self.run_all([text], None if second is None else [second], **options)[0]

    def run_all(  # type: ignore[override]
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, truncate: bool = True
    ) -> list[Classification]:
        """Judge many; each gets what it would get alone. What is too long loses its end, or without `truncate` is an
        error."""
        logits = self.logits(texts, seconds, truncate=truncate)
        pairs = zip(texts, [None] * len(texts) if seconds is None else seconds, logits, strict=True)
        return [self._judged(*one) for one in pairs]

    def logits(self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, truncate: bool = True) -> Tensor:
        """What the model says of each: (N, C), of a score (N, 1)."""
        rows = self.rows(texts, seconds)
        long = [number for number, row in enumerate(rows, 1) if row.num_truncated]
        if long and not truncate:
            raise InputError(
                f"text {long[0]} has {rows[long[0] - 1].num_truncated + self.longest:,} pieces, this model reads "
                f"{self.longest:,}; shorten it, or let its end be cut"
            )
        self.cut += len(long)
        if not rows:
            return torch.empty(0, max(1, len(self.labels)))
        return torch.stack(said_of(self.model, rows, self.model))

    def rows(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[Encoding]:
        """Texts or pairs as the model reads them; InputError for what it was not trained on."""
        if isinstance(texts, str) or isinstance(seconds, str):
            raise InputError("got one text, wanted a list of texts: run_all([text])")
        if seconds is not None and (self.pairs is False or self.model.config.num_segments < 2):
            raise InputError("got pairs, but this model reads one text at a time; leave the second text out")
        if seconds is None and self.pairs and texts:
            raise InputError(
                "got single texts, but this model reads pairs; give a second text to each: "
                "--second, or a tab between the two"
            )
        return self.tokenizer.encode_batch(texts, seconds, max_length=self.longest)

    def _judged(self, text: str, second: str | None, logits: Tensor) -> Classification:
        if not self.labels:
            return Classification(text, second, None, logits.item(), {})
        likely = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
        likely = dict(sorted(likely.items(), key=lambda one: -one[1]))
        label, score = next(iter(likely.items()))
        return Classification(text, second, label, score, likely)
