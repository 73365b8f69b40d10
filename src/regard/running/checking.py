"""The laws, held against a model folder or against a module of the user's own."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.errors import InputError, RegardError
from regard.evaluation.laws import Finding, check
from regard.evaluation.subjects import Continuing, Reading, ReadingPictures, Seeing, Subject
from regard.models.bert import BertConfig
from regard.models.captioner import CaptionerConfig
from regard.models.symbols import LanguageConfig
from regard.models.vilbert import ViLBERTConfig
from regard.running import load


def check_model(model: Path) -> Iterator[Finding]:
    """Findings for a model folder, or for a Python file whose `subject()` gives a Subject."""
    if model.suffix != ".py":
        yield from check(_from_folder(model))
        return
    try:
        yield from check(_from_file(model))
    except RegardError:
        raise
    except Exception as error:  # whatever the user's code does
        raise InputError(f"{model}: {type(error).__name__}: {error}") from error


def _from_folder(folder: Path) -> Subject:
    return subject_of(load(folder).model)


def subject_of(found: Any) -> Subject:
    """A model of ours under the laws of its kind."""
    config = found.config
    if isinstance(config, BertConfig):
        return Reading(found, vocabulary=config.vocabulary, symbols=config.symbols, sentences=config.sentences)
    if isinstance(config, ViLBERTConfig):
        return ReadingPictures(
            found,
            vocabulary=config.vocabulary,
            symbols=config.symbols,
            features=config.seeing.numbers,
            sentences=config.sentences,
        )
    if isinstance(config, LanguageConfig):
        return Continuing(found, vocabulary=config.vocabulary, symbols=config.symbols)
    if isinstance(config, CaptionerConfig):
        return Seeing(found, vocabulary=config.vocabulary, symbols=config.symbols, side=config.side, cell=config.cell)
    return Subject(found, vocabulary=config.vocabulary, target_vocabulary=config.written, symbols=config.symbols)


def _from_file(path: Path) -> Subject:
    if not path.is_file():
        raise InputError(f"{path} is not a file; wanted a model folder, or a Python file with a function subject()")
    sys.path.insert(0, str(path.absolute().parent))  # what it imports may stand beside it
    make = runpy.run_path(str(path)).get("subject")
    made = make() if callable(make) else None
    if not isinstance(made, Subject):
        raise InputError(
            f"{path}: wanted a function subject() that gives a Subject of regard.evaluation.laws, "
            f"got {type(made).__name__}"
        )
    return made
