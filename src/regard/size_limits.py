"""Compare the sizes of a config with the header of the weights before a model is built of it.

A config.json that says a million layers, or a width of 10**18, would keep the machine busy building a model that its
weights cannot fill. Every size of a model is a dimension of one of its weights, and every layer has weights of its own.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.errors import ConfigError, FolderError

NOT_LAYERS = ("max_window_layers",)  # Qwen2: from which layer on windows would slide
MAX_LAYERS = 10_000
MAX_POSITIONS = 2**24  # of positions without weights: sinusoidal and rotary ones


def check_sizes(config: Mapping[str, Any], config_path: Path, weights: Sequence[Path]) -> None:
    """FolderError where a number in the config is larger than the weights in these safetensors files allow."""
    shapes = [shape for path in weights for shape in _shapes(path)]
    largest = max([math.prod(shape) for shape in shapes], default=0)
    for key, value in _numbers(config):
        name = key.rpartition(".")[2]
        if name.endswith(("layers", "n_layer")) and name not in NOT_LAYERS:
            if value > len(shapes):
                raise FolderError(
                    f"{config_path}: {key} is {value:,}, but there are only {len(shapes):,} weights; copy it again"
                )
        elif value > max(largest, MAX_POSITIONS):
            raise FolderError(
                f"{config_path}: {key} is {value:,}, but the largest weight has {largest:,} numbers; copy it again"
            )


def check_buildable(config: Mapping[str, Any]) -> None:
    """ConfigError where a number of a model's config is beyond what anyone trains."""
    for key, value in _numbers(config):
        limit = MAX_LAYERS if key.endswith("layers") else MAX_POSITIONS
        if value > limit:
            raise ConfigError(f"model.{key}={value}, at most {limit:,}; make it smaller")


def _numbers(config: Any, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Every integer of a config, by its dotted key."""
    pairs = config.items() if isinstance(config, Mapping) else enumerate(config) if isinstance(config, list) else ()
    for key, value in pairs:
        if isinstance(value, int) and not isinstance(value, bool):
            yield f"{prefix}{key}", value
        else:
            yield from _numbers(value, f"{prefix}{key}.")


def _shapes(path: Path) -> list[list[int]]:
    """The shapes of all weights of a file, read from its header alone."""
    import safetensors

    try:
        with safetensors.safe_open(path, "numpy") as file:
            return [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - no mapping
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        raise FolderError(f"{path} cannot be read as safetensors: {error}") from error
