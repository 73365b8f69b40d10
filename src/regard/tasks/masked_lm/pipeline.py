"""A BERT that fills in hidden words, and judges whether one text follows another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.errors import InputError
from regard.tasks.embedding.pipeline import Embedder, check_several
from regard.tasks.reading import said_of
from regard.tokenizers.wordpiece import Encoding

GUESSES = 5


@dataclass(frozen=True)
class Guess:
    """A piece that may have stood there."""

    piece: str  # "##ing": it goes on from the one before
    probability: float


@dataclass(frozen=True)
class FilledMask:
    """What may have stood at each hidden place of a text, the likeliest first; each judged with the others hidden."""

    source: str
    places: list[list[Guess]]
    text: str  # with the likeliest filled in
    second: str | None = None  # of a pair, the other text, filled in too; its places come last


class FillMask(Embedder):
    """`run("the cat [MASK] on the mat").text`; `follows(first, second)` is how likely one text follows another."""

    def run(self, text: str, **options: Any) -> FilledMask:  # type: ignore[override]
        return self.run_all([text], **options)[0]

    def run_all(self, texts: Sequence[str], **options: Any) -> list[FilledMask]:  # type: ignore[override]
        return self.fill(texts, **options)

    def fill(self, texts: Sequence[str], count: int = GUESSES, *, second: str | None = None) -> list[FilledMask]:
        """Guesses for every mask of each text; with a second text behind it, of both."""
        check_several(texts)
        mask = self.tokenizer.mask_id
        if mask is None:
            raise InputError("this model's vocabulary has no symbol for a hidden word")
        name = self.tokenizer.id_to_token(mask) or ""
        rows = [self._read(text, second, number, name) for number, text in enumerate(texts, 1)]
        with torch.inference_mode():
            logits = said_of(self.model, rows, lambda ids, segment_ids: self.model.read(ids, segment_ids).hidden)
            found = []
            for text, row, hidden in zip(texts, rows, logits, strict=True):
                places = [place for place, piece in enumerate(row.ids) if piece == mask]
                likely = self.model.word_logits(hidden[places])[:, : self.tokenizer.vocab_size].float()
                likely[:, list(self.tokenizer.special_ids)] = -torch.inf
                top = likely.softmax(-1).topk(min(count, self.tokenizer.vocab_size - len(self.tokenizer.special_ids)))
                guesses = [
                    [Guess(self.tokenizer.id_to_token(piece) or "", value) for piece, value in zip(*one, strict=True)]
                    for one in zip(top.indices.tolist(), top.values.tolist(), strict=True)
                ]
                first = _filled(text, name, guesses)
                other = None if second is None else _filled(second, name, guesses[text.count(name) :])
                found.append(FilledMask(text, guesses, first, other))
        return found

    def follows(self, first: str, second: str) -> float:
        """The probability that the second text comes behind the first; a mask in them is a hidden word."""
        if not hasattr(self.model, "next_logits"):
            raise InputError(f"this model, a {self.kind}, was not trained to judge what follows")
        row = self.tokenizer.encode(first, second, max_length=self.longest, parse_special_tokens=True)
        self.cut += bool(row.num_truncated)
        with torch.inference_mode():
            read = self.model.read(torch.tensor([row.ids]), torch.tensor([row.segment_ids]))
            return float(self.model.next_logits(read.whole).softmax(-1)[0, 0])

    def _read(self, text: str, second: str | None, number: int, name: str) -> Encoding:
        row = self.tokenizer.encode(text, second, max_length=self.longest, parse_special_tokens=True)
        masked = text.count(name) + (second or "").count(name)
        if not masked:
            raise InputError(f"text {number} hides no word: {text[:60]!r}; write {name} where one is to be filled in")
        if row.ids.count(self.tokenizer.mask_id or 0) != masked:
            raise InputError(f"text {number} has more than {self.longest} pieces, and a {name} beyond; shorten it")
        self.cut += row.num_truncated > 0
        return row


def _filled(text: str, name: str, guesses: list[list[Guess]]) -> str:
    parts = text.split(name)
    for number, one in enumerate(guesses[: len(parts) - 1]):
        piece = one[0].piece
        going_on = piece.startswith("##")
        parts[number] = (parts[number].rstrip() if going_on else parts[number]) + piece.removeprefix("##")
    return "".join(parts)
