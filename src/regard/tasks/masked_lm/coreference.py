"""Coreference of "it" in a model that was not trained on it: by a linear probe on hidden states, and by attention.

"The animal did not cross the street because it was too tired": the animal. "… too wide": the street. The probe gets the
hidden states of one layer and says which of two nouns is meant: softmax of w · (it ⊙ noun) + u · noun, fitted on other
sentences. The model reads the sentence alone, so that the rest of its story gives nothing away. Layer 0 is the
embeddings: there "it" is the same in all sentences, so the probe cannot do better than chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from regard.inspection.capture import capture
from regard.layers.tap import taps
from regard.runtime import runtime_of
from regard.synthetic.stories.story import Stories, Story

INVERSE_REGULARIZATION = 1.0  # of the probe, as scikit-learn's C
BATCH_SIZE = 256  # sentences
NUM_FOLDS = 5  # of the probe's training sentences; one of them chooses the layer


class WordTokenizer(Protocol):
    """What the probe needs of a tokenizer."""

    def encode_words(self, words: Sequence[str], *, max_length: int | None = None) -> Any: ...


@dataclass(frozen=True)
class Activations:
    """Of N sentences the hidden states of each layer at "it" and at the two nouns, and the attention of "it"."""

    hidden: Tensor  # (L + 1, N, 3, D)
    attention: dict[str, Tensor]  # path of a layer's weights -> (N, H, 2): the attention of "it" on each noun
    answers: np.ndarray  # (N,) 0 or 1


@dataclass(frozen=True)
class Probe:
    """A linear classifier on the hidden states of one layer."""

    layer: int
    classifier: LogisticRegression

    def accuracy(self, seen: Activations) -> float:
        """How often it finds the right noun."""
        return float(self.classifier.score(_features(seen.hidden[self.layer]), seen.answers))


@dataclass(frozen=True)
class CoreferenceAccuracy:
    """How often the right noun is found, in sentences that neither the model nor the probe was trained on."""

    sentences: int
    by_layer: list[float]  # the probe on the hidden states of each layer, 0 first
    best: Probe  # chosen on training sentences
    attention: float  # how often "it" attends more to the right noun, in the best head, chosen on training sentences
    attention_head: str  # as `regard show --off` takes it: encoder.blocks.3.attention:1

    @property
    def probe(self) -> float:
        return self.by_layer[self.best.layer]


def probe_coreference(
    model: nn.Module, tokenizer: WordTokenizer, *, num_training: int = 8000, num_test: int = 1000
) -> CoreferenceAccuracy:
    """Probe a model on the built-in stories; the numbers count stories."""
    known = activations(model, tokenizer, Stories(seed=1).stories(0, num_training))
    new = activations(model, tokenizer, Stories(seed=1, part="validation").stories(0, num_test))
    probes, layer = fit_probes(known)
    scores = [probe.accuracy(new) for probe in probes]
    heads = {name: _accuracy_by_head(weights, known.answers) for name, weights in known.attention.items()}
    path = max(heads, key=lambda name: heads[name].max())
    head = int(heads[path].argmax())
    found = float(_accuracy_by_head(new.attention[path], new.answers)[head])
    return CoreferenceAccuracy(
        len(new.answers), scores, probes[layer], found, f"encoder.{path.removesuffix('.weights')}:{head}"
    )


def fit_probes(known: Activations) -> tuple[list[Probe], int]:
    """A probe for each layer, and the layer whose probe does best on a fifth of the sentences, held out for that."""
    # The sentences are sorted by length: a random fold.
    choosing = np.random.default_rng(0).permutation(len(known.answers)) % NUM_FOLDS == 0
    probes, scores = [], []
    for layer in range(len(known.hidden)):
        features = _features(known.hidden[layer])
        first = _fit(features[~choosing], known.answers[~choosing])
        scores.append(first.score(features[choosing], known.answers[choosing]))
        probes.append(Probe(layer, _fit(features, known.answers)))
    return probes, int(np.argmax(scores))


def _fit(features: np.ndarray, answers: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=INVERSE_REGULARIZATION, fit_intercept=False, max_iter=2000).fit(features, answers)


def _features(hidden: Tensor) -> np.ndarray:
    """(N, 2 D): the features of the second noun minus those of the first."""
    it, first, second = hidden.unbind(1)
    return torch.cat([it * second - it * first, second - first], dim=1).numpy()


def _accuracy_by_head(attention: Tensor, answers: np.ndarray) -> np.ndarray:
    """For each head the share of sentences in which "it" attends more to the right noun."""
    correct = attention.argmax(-1) == torch.from_numpy(answers)[:, None]
    return correct.float().mean(0).numpy()


class _Question(NamedTuple):
    """The ids of a sentence, the positions of "it" and of the two nouns, and which noun is meant."""

    ids: list[int]
    positions: list[int]
    answer: int


def _questions(tokenizer: WordTokenizer, stories: Iterable[Story]) -> Iterator[_Question]:
    for story in stories:
        for one in story.coreferences:
            row = tokenizer.encode_words(story.sentences[one.sentence].split())
            positions = [row.word_ids.index(word) for word in (one.it, *one.candidates)]
            yield _Question(row.ids, positions, one.answer)


@torch.inference_mode()
def activations(model: Any, tokenizer: WordTokenizer, stories: Iterable[Story]) -> Activations:
    encoder = model.encoder
    device = runtime_of(model).device
    weights = [path for path in taps(encoder) if path.endswith("attention.weights")]
    blocks = [path for path in taps(encoder) if path.endswith(".hidden")]
    hidden: list[Tensor] = []
    attention: dict[str, list[Tensor]] = {path: [] for path in weights}
    answers: list[int] = []
    questions = sorted(_questions(tokenizer, stories), key=lambda one: len(one.ids))
    for _, of_one_length in groupby(questions, key=lambda one: len(one.ids)):  # nothing is padded
        for several in _batched(of_one_length, BATCH_SIZE):
            ids = torch.tensor([one.ids for one in several], device=device)
            positions = torch.tensor([one.positions for one in several], device=device)  # (B, 3)
            rows = torch.arange(len(ids), device=device)
            with capture(encoder, *weights, *blocks) as captured:
                encoder(ids)
            layers = [encoder.embedding(ids, None), *(captured[path][0] for path in blocks)]
            found_hidden = torch.stack([layer[rows[:, None], positions] for layer in layers])
            hidden.append(found_hidden.float().cpu())  # (L + 1, B, 3, D)
            for path in weights:
                of_it = captured[path][0][rows, :, positions[:, 0]]  # (B, H, T)
                of_nouns = of_it.gather(2, positions[:, None, 1:].expand(-1, of_it.shape[1], -1))
                attention[path].append(of_nouns.float().cpu())
            answers += [one.answer for one in several]
    found = {path: torch.cat(several) for path, several in attention.items()}
    return Activations(torch.cat(hidden, dim=1), found, np.array(answers))


def _batched(several: Iterable[_Question], size: int) -> Iterator[list[_Question]]:
    rest = iter(several)
    while some := list(islice(rest, size)):
        yield some
