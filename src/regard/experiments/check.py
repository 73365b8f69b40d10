"""The laws, held against a model folder or against a module of the user's own."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.errors import InputError, RegardError
from regard.experiments.adapters import Continuing, ModelAdapter, Reading, ReadingPictures, Seeing
from regard.experiments.laws import Finding, check
from regard.models.bert import BertConfig
from regard.models.captioner import CaptionerConfig
from regard.models.special_ids import CausalLMConfig
from regard.models.vilbert import ViLBERTConfig
from regard.tasks.loading import load


def check_model(model: Path) -> Iterator[Finding]:
    """Findings for a model folder, or for a Python file whose `adapter()` returns a ModelAdapter."""
    if model.suffix != ".py":
        yield from check(_from_folder(model))
        return
    try:
        yield from check(_from_file(model))
    except RegardError:
        raise
    except Exception as error:  # whatever the user's code does
        raise InputError(f"{model}: {type(error).__name__}: {error}") from error


def _from_folder(folder: Path) -> ModelAdapter:
    return adapter_of(load(folder).model)


def adapter_of(found: Any) -> ModelAdapter:
    """A model of ours under the laws of its kind."""
    config = found.config
    if isinstance(config, BertConfig):
        return Reading(
            found, vocab_size=config.vocab_size, special_ids=config.special_ids, num_segments=config.num_segments
        )
    if isinstance(config, ViLBERTConfig):
        return ReadingPictures(
            found,
            vocab_size=config.vocab_size,
            special_ids=config.special_ids,
            features=config.seeing.numbers,
            num_segments=config.num_segments,
        )
    if isinstance(config, CausalLMConfig):
        return Continuing(found, vocab_size=config.vocab_size, special_ids=config.special_ids)
    if isinstance(config, CaptionerConfig):
        return Seeing(
            found, vocab_size=config.vocab_size, special_ids=config.special_ids, side=config.side, cell=config.cell
        )
    return ModelAdapter(
        found, vocab_size=config.vocab_size, target_vocab_size=config.output_vocab_size, special_ids=config.special_ids
    )


def _from_file(path: Path) -> ModelAdapter:
    if not path.is_file():
        raise InputError(f"{path} is not a file; wanted a model folder, or a Python file with a function adapter()")
    sys.path.insert(0, str(path.absolute().parent))  # what it imports may stand beside it
    make = runpy.run_path(str(path)).get("adapter")
    made = make() if callable(make) else None
    if not isinstance(made, ModelAdapter):
        raise InputError(
            f"{path}: wanted a function adapter() that gives a ModelAdapter of regard.experiments.laws, "
            f"got {type(made).__name__}"
        )
    return made
