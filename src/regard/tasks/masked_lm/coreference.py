"""What "it" refers to, asked of a reader that was never told: by a linear probe on its words, and by where it looks.

"The animal did not cross the street because it was too tired": the animal. "… too wide": the street. The probe sees the
words of one layer, nothing else, and of two nouns says which is meant: softmax of w · (it ⊙ noun) + u · noun, fitted on
other sentences. Only the sentence itself is read, so that the rest of its story gives nothing away. The words as they
go into the first block are layer 0: there "it" is the same in all sentences, and tells nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from regard.inspection.capture import watch
from regard.layers.tap import taps
from regard.synthetic.stories.story import Stories, Story

STRENGTH = 1.0  # of the probe's weights: the inverse of what holds them small
BATCH = 256  # sentences read side by side
FOLD = 5  # one in so many of the sentences it learns from chooses the layer


class Pieces(Protocol):
    """What is asked of a tokenizer here."""

    def encode_words(self, words: Sequence[str], *, max_length: int | None = None) -> Any: ...


@dataclass(frozen=True)
class Resolved:
    """How often the right noun is found, of sentences the model and the probe have not seen."""

    sentences: int
    by_layer: list[float]  # the probe on each layer's words, 0 first
    layer: int  # the best one, by sentences that are not counted
    attention: float  # the head whose "it" looks more at the right noun than at the other most often; chosen so, too
    attention_head: str

    @property
    def probe(self) -> float:
        return self.by_layer[self.layer]


@dataclass(frozen=True)
class _Seen:
    """What was seen of N sentences: the words of each layer at "it" and at the two nouns, and the attention of "it"."""

    hidden: Tensor  # (L + 1, N, 3, D)
    looks: dict[str, Tensor]  # path of a head's weights -> (N, H, 2): what "it" gives each noun
    answers: np.ndarray  # (N,) 0 or 1


def resolve(model: nn.Module, tokenizer: Pieces, *, learned: int = 8000, asked: int = 1000) -> Resolved:
    """Probe a model on the built-in stories."""
    known = _look(model, tokenizer, Stories(seed=1).stories(0, learned))
    new = _look(model, tokenizer, Stories(seed=1, part="validation").stories(0, asked))
    choosing = np.random.default_rng(0).permutation(len(known.answers)) % FOLD == 0  # sentences stand by length
    scores, chosen = [], []
    for layer in range(len(known.hidden)):
        features = _features(known.hidden[layer])
        first = _fit(features[~choosing], known.answers[~choosing])
        chosen.append(first.score(features[choosing], known.answers[choosing]))
        probe = _fit(features, known.answers)
        scores.append(float(probe.score(_features(new.hidden[layer]), new.answers)))
    heads = {name: _right(looks, known.answers) for name, looks in known.looks.items()}
    path = max(heads, key=lambda name: heads[name].max())
    head = int(heads[path].argmax())
    found = float(_right(new.looks[path], new.answers)[head])
    return Resolved(
        len(new.answers), scores, int(np.argmax(chosen)), found, f"{path.split('.weights')[0]}, head {head + 1}"
    )


def _fit(features: np.ndarray, answers: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, fit_intercept=False, max_iter=2000).fit(features, answers)


def _features(hidden: Tensor) -> np.ndarray:
    """(N, 2 D): what speaks for the second noun, less what speaks for the first."""
    it, first, second = hidden.unbind(1)
    return torch.cat([it * second - it * first, second - first], dim=1).numpy()


def _right(looks: Tensor, answers: np.ndarray) -> np.ndarray:
    """For each head the share of sentences in which "it" gives the right noun more."""
    chosen = looks.argmax(-1) == torch.from_numpy(answers)[:, None]
    return chosen.float().mean(0).numpy()


class _Question(NamedTuple):
    """A sentence as the model reads it; where "it" and the two nouns stand, and which noun is meant."""

    ids: list[int]
    places: list[int]
    answer: int


def _questions(tokenizer: Pieces, stories: Iterable[Story]) -> Iterator[_Question]:
    for story in stories:
        for one in story.coreferences:
            row = tokenizer.encode_words(story.sentences[one.sentence].split())
            places = [row.word_ids.index(word) for word in (one.it, *one.candidates)]
            yield _Question(row.ids, places, one.answer)


@torch.inference_mode()
def _look(model: Any, tokenizer: Pieces, stories: Iterable[Story]) -> _Seen:
    encoder = model.encoder
    weights = [path for path in taps(encoder) if path.endswith("attention.weights")]
    blocks = [path for path in taps(encoder) if path.endswith(".hidden")]
    hidden: list[Tensor] = []
    looks: dict[str, list[Tensor]] = {path: [] for path in weights}
    answers: list[int] = []
    questions = sorted(_questions(tokenizer, stories), key=lambda one: len(one.ids))  # of one length, side by side
    for _, alike in groupby(questions, key=lambda one: len(one.ids)):
        for several in _batched(alike, BATCH):
            ids = torch.tensor([one.ids for one in several])
            rows, places = torch.arange(len(ids)), torch.tensor([one.places for one in several])  # (B,), (B, 3)
            with watch(encoder, *weights, *blocks) as seen:
                encoder(ids)
            layers = [encoder.embedding(ids, None), *(seen[path][0] for path in blocks)]
            hidden.append(torch.stack([layer[rows[:, None], places] for layer in layers]))  # (L + 1, B, 3, D)
            for path in weights:
                of_it = seen[path][0][rows, :, places[:, 0]]  # (B, H, T)
                looks[path].append(of_it.gather(2, places[:, None, 1:].expand(-1, of_it.shape[1], -1)))
            answers += [one.answer for one in several]
    found = {path: torch.cat(several) for path, several in looks.items()}
    return _Seen(torch.cat(hidden, dim=1), found, np.array(answers))


def _batched(several: Iterable[_Question], size: int) -> Iterator[list[_Question]]:
    """So many at a time."""
    rest = iter(several)
    while some := list(islice(rest, size)):
        yield some
