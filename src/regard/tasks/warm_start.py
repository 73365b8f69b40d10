"""How a model begins, if not by chance: with the weights of another model, or with vectors of words.

Vectors that somebody else has learned begin the table of words (Collobert 2011; Kim 2014).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.readers.lines import check_file
from regard.data.readers.word_vectors import Vectors, read_vectors
from regard.errors import ConfigError


def from_weights(weights: Mapping[str, Tensor]) -> Callable[[nn.Module], str]:
    """What begins a new model with the weights of another; what they leave out begins by chance."""
    return partial(start_weights, weights=weights)


def start_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> str:
    """Give a model those weights, each at its place and of its shape, or an error names it; says what is fresh."""
    wanted = model.state_dict()
    for name, weight in weights.items():
        if name not in wanted or wanted[name].shape != weight.shape:
            there = tuple(wanted[name].shape) if name in wanted else "no place for it"
            raise ConfigError(
                f"the model to begin from has {name} of shape {tuple(weight.shape)}, the new one {there}; "
                "leave model.* settings that change its size out"
            )
    model.load_state_dict(dict(weights), strict=False)
    fresh = [name for name in wanted if name not in weights]
    known = f"{len(wanted) - len(fresh)} weights begin as they were learned"
    return f"{known}; fresh: {', '.join(fresh)}" if fresh else known


@torch.no_grad()
def start_table(weight: Tensor, names: Sequence[str | None], vectors: Vectors) -> int:
    """Fill the rows of a table (V, D) by the vectors of the words they stand for; how many rows there were.

    A word that has no vector as it is written takes that of its small letters. The vectors are scaled so that the
    rows deviate as they did before: a model is built for words of that size.
    """
    if vectors.width != weight.shape[1]:
        raise ConfigError(
            f"the vectors have {vectors.width} numbers and the model's width is {weight.shape[1]}; "
            f"give model.width={vectors.width}, or vectors of that width"
        )
    places = [None if name is None else _place(name, vectors) for name in names]
    rows = [row for row, place in enumerate(places) if place is not None]
    if not rows:
        return 0
    given = torch.from_numpy(vectors.matrix[[place for place in places if place is not None]]).to(weight)
    deviation = given.std(correction=0)
    if not deviation > 0:
        raise ConfigError(f"the vectors of the {len(rows):,} words of this model are all the same number; give others")
    weight[rows] = given * (weight[rows].std(correction=0) / deviation)
    return len(rows)


def starting(path: Path | None, tokenizer: Any) -> Callable[[nn.Module], str] | None:
    """What begins a new model with the vectors of a file, where one is named (data.vectors)."""
    if path is None:
        return None
    check_file(path)
    return partial(start_words, names=tokenizer.single_token_words(), path=path)


def start_words(model: Any, names: Sequence[str | None], path: Path) -> str:
    """Begin a model's table with the vectors of a file, as far as they have the same words; says how far."""
    wanted = {form for name in names if name is not None for form in (name, name.lower())}
    filled = start_table(model.input_embeddings, names, read_vectors(path, only=wanted))
    if not filled:
        raise ConfigError(f"data.vectors={path} has a vector for none of the {len(wanted):,} words of this model")
    return f"{filled:,} of {len(names):,} rows of the table begin with the vectors of {path.name}"


def _place(name: str, vectors: Vectors) -> int | None:
    return vectors.places.get(name, vectors.places.get(name.lower()))
