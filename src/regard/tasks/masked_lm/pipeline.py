"""A masked language model in use: fills in [MASK], and predicts whether one text follows another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch

from regard.checkpoint import ModelFolder
from regard.errors import InputError
from regard.runtime import runtime_of
from regard.tasks.encoders.encoding import outputs_of
from regard.tasks.encoders.pipeline import EncoderPipeline, check_texts
from regard.tasks.masked_lm.kept_probe import PROBE, KeptProbe
from regard.tokenizers.wordpiece import Encoding

NUM_PREDICTIONS = 5


@dataclass(frozen=True)
class Prediction:
    """A token that may stand at a mask."""

    token: str  # "##ing": it continues the word before it
    probability: float


@dataclass(frozen=True)
class FilledMask:
    """The predictions for each mask of a text, the most probable first; each while the other masks stay masked."""

    source: str
    masks: list[list[Prediction]]
    text: str  # with the most probable predictions filled in
    second: str | None = None  # of a pair, the second text, filled in too; its masks come last


class FillMask(EncoderPipeline):
    """`run("the cat [MASK] on the mat").text`; `follows(first, second)` is the probability that one text follows.

    `probe` says what "it" refers to, if the model's folder has such a probe.
    """

    probe: KeptProbe | None = None

    @classmethod
    def open(cls, folder: ModelFolder) -> Self:
        pipeline = super().open(folder)
        if (folder.folder / PROBE).is_file():
            pipeline.probe = KeptProbe.open(folder.folder / PROBE)
        return pipeline

    def run(self, text: str, **options: Any) -> FilledMask:
        return self.run_all([text], **options)[0]

    def run_all(self, texts: Sequence[str], **options: Any) -> list[FilledMask]:
        return self.fill(texts, **options)

    def fill(
        self, texts: Sequence[str], num_predictions: int = NUM_PREDICTIONS, *, second: str | None = None
    ) -> list[FilledMask]:
        """Predictions for every mask of each text, and of the second text where there is one."""
        check_texts(texts)
        mask_id = self.tokenizer.mask_id
        if mask_id is None:
            raise InputError("this model's vocabulary has no mask token")
        mask = self.tokenizer.id_to_token(mask_id) or ""
        rows = [self._encode(text, second, number, mask) for number, text in enumerate(texts, 1)]
        with torch.inference_mode():
            outputs = outputs_of(self.model, rows, lambda ids, segment_ids: self.model.encode(ids, segment_ids).hidden)
            filled = []
            for text, row, hidden in zip(texts, rows, outputs, strict=True):
                positions = [position for position, token in enumerate(row.ids) if token == mask_id]
                predictions = self._predict(hidden[positions], num_predictions)
                first = _fill_in(text, mask, predictions)
                other = None if second is None else _fill_in(second, mask, predictions[text.count(mask) :])
                filled.append(FilledMask(text, predictions, first, other))
        return filled

    def _predict(self, hidden: torch.Tensor, num_predictions: int) -> list[list[Prediction]]:
        """The most probable tokens, special tokens excluded, for hidden states (N, D)."""
        logits = self.model.token_logits(hidden)[:, : self.tokenizer.vocab_size].float()
        logits[:, list(self.tokenizer.special_ids)] = -torch.inf
        top = logits.softmax(-1).topk(min(num_predictions, self.tokenizer.vocab_size - len(self.tokenizer.special_ids)))
        return [
            [Prediction(self.tokenizer.id_to_token(token) or "", value) for token, value in zip(*one, strict=True)]
            for one in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]

    def follows(self, first: str, second: str) -> float:
        """The probability that the second text follows the first; both may have masks."""
        if not hasattr(self.model, "next_sentence_logits"):
            raise InputError(f"this model, a {self.kind}, was not trained on next-sentence prediction")
        row = self.tokenizer.encode(first, second, max_length=self.max_length, parse_special_tokens=True)
        self.truncated += bool(row.num_truncated)
        with torch.inference_mode():
            ids, segment_ids = (
                torch.tensor([one], device=runtime_of(self.model).device) for one in (row.ids, row.segment_ids)
            )
            read = self.model.encode(ids, segment_ids)
            return float(self.model.next_sentence_logits(read.pooled).softmax(-1)[0, 0])

    def _encode(self, text: str, second: str | None, number: int, mask: str) -> Encoding:
        row = self.tokenizer.encode(text, second, max_length=self.max_length, parse_special_tokens=True)
        count = text.count(mask) + (second or "").count(mask)
        if not count:
            raise InputError(
                f"text {number} has no {mask}: {text[:60]!r}; write {mask} where a word is to be filled in"
            )
        if row.ids.count(self.tokenizer.mask_id or 0) != count:
            raise InputError(f"text {number} has more than {self.max_length} tokens, and a {mask} beyond; shorten it")
        self.truncated += row.num_truncated > 0
        return row


def _fill_in(text: str, mask: str, predictions: list[list[Prediction]]) -> str:
    parts = text.split(mask)
    for number, one in enumerate(predictions[: len(parts) - 1]):
        token = one[0].token
        continues = token.startswith("##")
        parts[number] = (parts[number].rstrip() if continues else parts[number]) + token.removeprefix("##")
    return "".join(parts)
