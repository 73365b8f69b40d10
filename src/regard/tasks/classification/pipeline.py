"""A classifier in use: texts or pairs in, their classes or scores out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoint import CONFIG, ModelFolder
from regard.errors import FolderError, InputError
from regard.huggingface.folder import Pooling
from regard.tasks.encoders.encoding import outputs_of
from regard.tasks.encoders.pipeline import EncoderPipeline, open_tokenizer
from regard.tokenizers.wordpiece import Encoding, WordPieceTokenizer

MIN_LENGTH = 3  # the special tokens of a pair


@dataclass(frozen=True)
class Classification:
    """The class of a text or a pair, or its score."""

    text: str
    second: str | None
    label: str | None  # None: a score was learned instead
    score: float  # where there are classes, the probability of the label
    probabilities: dict[str, float]  # of all classes, the most probable first


class Classifier(EncoderPipeline):
    """`run("a fine film").label`; `.labels` are its classes, empty where it predicts a score.

    `pairs`: it was trained on pairs of texts (None: not known). `max_length`: in tokens, as in training.
    """

    def __init__(
        self,
        kind: str,
        model: nn.Module,
        tokenizer: WordPieceTokenizer,
        pooling: Pooling | None = None,
        *,
        pairs: bool | None = None,
        max_length: int | None = None,
    ) -> None:
        super().__init__(kind, model, tokenizer, pooling)
        self.pairs = pairs
        self._max_length = max_length

    @classmethod
    def open(cls, folder: ModelFolder) -> "Classifier":
        tokenizer = open_tokenizer(folder)
        pairs, max_length = folder.task.get("pairs"), folder.task.get("max_length")
        if not isinstance(pairs, bool | None):
            raise FolderError(f"{folder.folder / CONFIG}: task.pairs is {pairs!r}, wanted true or false")
        if max_length is not None and (type(max_length) is not int or max_length < MIN_LENGTH):
            raise FolderError(
                f"{folder.folder / CONFIG}: task.max_length is {max_length!r}, wanted {MIN_LENGTH} or more"
            )
        return cls(folder.kind, folder.model, tokenizer, pairs=pairs, max_length=max_length)

    @property
    def max_length(self) -> int:
        """The most tokens of a text or a pair that it reads, special tokens included."""
        return min(self._max_length or super().max_length, super().max_length)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.model.config.labels)

    def run(self, text: str, second: str | None = None, **options: Any) -> Classification:
        return self.run_all([text], None if second is None else [second], **options)[0]

    def run_all(
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, truncate: bool = True
    ) -> list[Classification]:
        """Classify many; each gets what it would get alone. A text that is too long loses its end; without `truncate`
        it is an error."""
        logits = self.logits(texts, seconds, truncate=truncate)
        pairs = zip(texts, [None] * len(texts) if seconds is None else seconds, logits, strict=True)
        return [self._classify(*one) for one in pairs]

    def logits(self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, truncate: bool = True) -> Tensor:
        """The model's logits: (N, C), of a score (N, 1)."""
        rows = self.rows(texts, seconds)
        long = [number for number, row in enumerate(rows, 1) if row.num_truncated]
        if long and not truncate:
            raise InputError(
                f"text {long[0]} has {rows[long[0] - 1].num_truncated + self.max_length:,} tokens, this model reads "
                f"{self.max_length:,}; shorten it, or allow truncation"
            )
        self.truncated += len(long)
        if not rows:
            return torch.empty(0, max(1, len(self.labels)))
        return torch.stack(outputs_of(self.model, rows, self.model)).float().cpu()

    def rows(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[Encoding]:
        """Texts or pairs as rows of ids; InputError for pairs where it takes single texts, and the other way round."""
        if isinstance(texts, str) or isinstance(seconds, str):
            raise InputError("got one text, wanted a list of texts: run_all([text])")
        if seconds is not None and (self.pairs is False or self.model.config.num_segments < 2):
            raise InputError("got pairs, but this model reads one text at a time; leave the second text out")
        if seconds is None and self.pairs and texts:
            raise InputError(
                "got single texts, but this model reads pairs; give a second text to each: "
                "seconds=[…], on the command line --second, or a tab between the two"
            )
        return self.tokenizer.encode_batch(texts, seconds, max_length=self.max_length)

    def _classify(self, text: str, second: str | None, logits: Tensor) -> Classification:
        if not self.labels:
            return Classification(text, second, None, logits.item(), {})
        probabilities = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
        probabilities = dict(sorted(probabilities.items(), key=lambda one: -one[1]))
        label, score = next(iter(probabilities.items()))
        return Classification(text, second, label, score, probabilities)
