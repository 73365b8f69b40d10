"""A tagger in use: texts in, a label for each word out, and the entities that the labels mark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.metrics.tagging import are_entity_labels, extract_entities
from regard.tasks.encoders.encoding import outputs_of
from regard.tasks.encoders.pipeline import EncoderPipeline
from regard.tokenizers.treebank import word_spans
from regard.tokenizers.wordpiece import encode_in_rows, first_token_positions


@dataclass(frozen=True)
class Word:
    """A word of a text with its label."""

    text: str
    label: str
    probability: float


@dataclass(frozen=True)
class NamedEntity:
    """A span of words that names one entity."""

    text: str
    type: str


@dataclass(frozen=True)
class TaggedText:
    """A text, its words, and its entities where the labels mark entities (B-PER, I-PER, …)."""

    text: str
    words: list[Word]
    entities: list[NamedEntity]


class Tagger(EncoderPipeline):
    """`run("Ada Lovelace lived in London").entities`; `.labels` are its tags."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.model.config.labels)

    def run(self, text: str, **options: Any) -> TaggedText:
        return self.run_all([text], **options)[0]

    def run_all(self, texts: Sequence[str]) -> list[TaggedText]:
        """Tag many texts, split into words by `word_spans`; each gets what it would get alone."""
        spans = [word_spans(text) for text in texts]
        found = self.tag([[text[a:b] for a, b in one] for text, one in zip(texts, spans, strict=True)])
        return [self._tagged(*one) for one in zip(texts, spans, found, strict=True)]

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[Word]]:
        """A label for each word of sentences that are split into words; a long sentence is read in parts."""
        rows = [
            (number, start, row)
            for number, words in enumerate(sentences)
            if words
            for start, row in encode_in_rows(self.tokenizer, words, self.max_length)
        ]
        outside = self.labels.index("O") if "O" in self.labels else 0
        found = [[Word(word, self.labels[outside], 0.0) for word in words] for words in sentences]
        outputs = outputs_of(self.model, [row for _, _, row in rows], self.model)
        for (number, start, row), logits in zip(rows, outputs, strict=True):
            best = torch.max(logits.float().cpu().softmax(-1), dim=-1)
            for word, position in first_token_positions(row).items():
                label, probability = self.labels[int(best.indices[position])], best.values[position].item()
                found[number][start + word] = Word(sentences[number][start + word], label, probability)
        return found

    def _tagged(self, text: str, spans: list[tuple[int, int]], words: list[Word]) -> TaggedText:
        labels = [word.label for word in words]
        marked = extract_entities(labels) if are_entity_labels(self.labels) else []
        named = [NamedEntity(text[spans[first][0] : spans[last][1]], kind) for kind, first, last in marked]
        return TaggedText(text, words, named)
