"""A folder of questions about pictures made ready for ViLBERT."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.data.readers.easy_vqa import Asked, read_easy_vqa
from regard.data.readers.pairs import BadLines
from regard.data.regions import Regions, grid
from regard.data.rows import RowData
from regard.errors import ConfigError, DataError
from regard.images.decoding import read_picture
from regard.models.vilbert import ViLBERTForQuestionAnsweringConfig
from regard.tasks.fine_tuning import words_of
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.vision_language.fine_tuning import fitted, start_of
from regard.tasks.vision_language.questions import PictureQuestions
from regard.tasks.vision_language.rows import PictureRows
from regard.tasks.vision_language.scene_data import QuestionDataConfig
from regard.tokenizers.wordpiece import WordPieceTokenizer


def prepare_folder(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The questions of a folder in the layout of easy-vqa; its pictures are seen as cells."""
    settings: QuestionDataConfig = run.data  # type: ignore[assignment]
    config: ViLBERTForQuestionAnsweringConfig = run.model  # type: ignore[assignment]
    _check(given, settings, config)
    bad = BadLines()
    found = read_easy_vqa(given.paths[0], on_error=settings.on_error, report=bad)
    tokenizer = words_of(given, [one.text for one in found.training], config.vocab_size, tokenizer_file)
    config = fitted(config, given, tokenizer).model_copy(update={"labels": found.answers})
    training, validation = (asked_rows(part, config, tokenizer) for part in (found.training, found.validation))
    notes = [
        *bad.summary(),
        f"{len(training):,} questions about {len(training.regions):,} pictures, {len(validation):,} held out; "
        f"{len(found.answers)} answers",
    ]
    return Prepared(
        PictureQuestions(RowData(training, validation), validation.kinds), config, notes, start_of(given, config)
    )


def _check(given: Given, settings: QuestionDataConfig, config: ViLBERTForQuestionAnsweringConfig) -> None:
    if len(given.paths) != 1:
        raise DataError(f"got {len(given.paths)} folders, wanted one, as the package easy-vqa has it")
    if settings.ask != "questions":
        raise ConfigError(f"data.ask={settings.ask} is of the built-in scenes; a folder has questions, leave it out")
    if not config.seeing.cells or config.seeing.patch is None:
        raise ConfigError(
            "pictures of a folder have no boxes: the model must see cells, such as model.seeing.cells=4 "
            "model.seeing.patch=16; a model to begin from must have learned so"
        )


def asked_rows(
    asked: Sequence[Asked], config: ViLBERTForQuestionAnsweringConfig, tokenizer: WordPieceTokenizer
) -> PictureRows:
    """The questions as rows, each picture read once."""
    assert config.seeing.patch is not None
    numbers = {path: number for number, path in enumerate(dict.fromkeys(one.picture for one in asked))}
    pictures = (np.asarray(read_picture(path)) for path in numbers)
    answers = {answer: number for number, answer in enumerate(config.labels)}
    return PictureRows(
        tokenizer.encode_batch([one.text for one in asked], max_length=config.context),
        np.array([answers[one.answer] for one in asked], np.int64),
        tokenizer.pad_id,
        pictures=[numbers[one.picture] for one in asked],
        regions=Regions(grid(pixels, config.seeing.cells, config.seeing.patch) for pixels in pictures),
        kinds=[one.kind for one in asked],
    )
