"""What is done with every model: its inputs by interface, its loss, its decoding."""

from typing import Any

import torch
from torch import Tensor

from regard.generation.decode import Limits
from regard.layers.vision.regions import BOX_NUMBERS
from regard.runtime import Runtime
from tests.contracts.examples import Example

ROWS, LENGTH = 3, 6


def inputs(example: Example, runtime: Runtime) -> tuple[Any, ...]:
    """The inputs of a forward pass, the last one padded in its first row."""
    generator = torch.Generator().manual_seed(1)
    config = example.config
    ids = torch.randint(3, 20, (ROWS, LENGTH), generator=generator)
    if example.interface == "causal_lm":
        documents = torch.ones_like(ids)
        documents[:, 3:] = 2
        return runtime.move(ids), runtime.move(documents)
    ids[0, -2:] = config.special_ids.pad_id
    if example.interface == "seq2seq":
        return runtime.move(ids), runtime.move(ids)
    if example.interface == "captioner":
        pixels = torch.randn(ROWS, 3, config.image_size, config.image_size, generator=generator)
        return runtime.move(pixels), runtime.move(ids)
    segments = torch.zeros_like(ids)
    segments[:, 3:] = config.num_segments - 1
    if example.interface == "encoder":
        return runtime.move(ids), runtime.move(segments)
    regions = torch.randn(ROWS, 4, config.vision.feature_size, generator=generator)
    boxes = torch.rand(ROWS, 4, BOX_NUMBERS, generator=generator)
    return tuple(map(runtime.move, (ids, segments, regions, boxes)))


def outputs(model: Any, given: tuple[Any, ...]) -> list[Tensor]:
    """Everything that a forward pass returns."""
    found = model(*given)
    return [one for one in (found if isinstance(found, tuple) else [found]) if one is not None]


def prompts(example: Example, runtime: Runtime) -> Any:
    """What `start` takes."""
    if example.interface == "causal_lm":
        return [[5, 6, 7, 8], [9], [3, 4]]
    return inputs(example, runtime)[0]


def limits() -> Limits:
    return Limits([4] * ROWS, min_new_tokens=2, prompts=[[5]] * ROWS)
