"""Warm starts: a new model's initial weights from a pretrained model, or its embeddings from word vectors.

Embeddings initialized with pretrained word vectors: Collobert 2011; Kim 2014.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.readers.lines import check_file
from regard.data.readers.word_vectors import WordVectors, read_vectors
from regard.errors import ConfigError


def warm_start_from(weights: Mapping[str, Tensor]) -> Callable[[nn.Module], str]:
    """A function that loads these weights into a new model; the others keep their random initialization."""
    return partial(load_pretrained, weights=weights)


def load_pretrained(model: nn.Module, weights: Mapping[str, Tensor]) -> str:
    """Load pretrained weights; a name or shape the model does not have is an error. Returns a note."""
    wanted = model.state_dict()
    for name, weight in weights.items():
        if name not in wanted or wanted[name].shape != weight.shape:
            here = f"the new one {tuple(wanted[name].shape)}" if name in wanted else "the new one has no such weight"
            raise ConfigError(
                f"the pretrained model has {name} of shape {tuple(weight.shape)}, {here}; "
                "leave out model.* settings that change its size"
            )
    model.load_state_dict(dict(weights), strict=False)
    new = [name for name in wanted if name not in weights]
    loaded = f"{len(wanted) - len(new)} pretrained weights loaded"
    return f"{loaded}; new: {', '.join(new)}" if new else loaded


@torch.no_grad()
def init_embeddings(weight: Tensor, words: Sequence[str | None], vectors: WordVectors) -> int:
    """Fill rows of an embedding matrix (V, D) with the vectors of the words they stand for; returns how many.

    A word without a vector takes that of its lowercase form. The vectors are scaled so that the rows keep their
    standard deviation: the model was designed for embeddings of that size.
    """
    if vectors.width != weight.shape[1]:
        raise ConfigError(
            f"the word vectors have {vectors.width} dimensions and the model's width is {weight.shape[1]}; "
            f"give model.width={vectors.width}, or vectors of that width"
        )
    found = [None if word is None else _row(word, vectors) for word in words]
    rows = [row for row, index in enumerate(found) if index is not None]
    if not rows:
        return 0
    chosen = torch.from_numpy(vectors.matrix[[index for index in found if index is not None]]).to(weight)
    deviation = chosen.std(correction=0)
    if not deviation > 0:
        raise ConfigError(f"all numbers in the vectors of this model's {len(rows):,} words are equal; give others")
    weight[rows] = chosen * (weight[rows].std(correction=0) / deviation)
    return len(rows)


def warm_start_embeddings(path: Path | None, tokenizer: Any) -> Callable[[nn.Module], str] | None:
    """A function that initializes a new model's embeddings with a file of word vectors (data.word_vectors)."""
    if path is None:
        return None
    check_file(path)
    return partial(load_word_vectors, words=tokenizer.single_token_words(), path=path)


def load_word_vectors(model: Any, words: Sequence[str | None], path: Path) -> str:
    """Initialize a model's embeddings with the vectors of a file, for the words both have. Returns a note."""
    wanted = {form for word in words if word is not None for form in (word, word.lower())}
    filled = init_embeddings(model.input_embeddings, words, read_vectors(path, only=wanted))
    if not filled:
        raise ConfigError(f"data.word_vectors={path} has a vector for none of the {len(wanted):,} words of this model")
    return f"{filled:,} of {len(words):,} embeddings initialized with the vectors of {path.name}"


def _row(word: str, vectors: WordVectors) -> int | None:
    return vectors.rows.get(word, vectors.rows.get(word.lower()))
