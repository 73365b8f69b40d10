"""The built-in scenes made ready for ViLBERT: pictures with their captions, questions, statements and phrases."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from regard.config import Config
from regard.data.masking import PieceTable
from regard.data.regions import Regions
from regard.data.rows import RowData
from regard.models.vilbert import (
    ViLBERTConfig,
    ViLBERTForGroundingConfig,
    ViLBERTForPreTrainingConfig,
    ViLBERTForQuestionAnsweringConfig,
    ViLBERTForRetrievalConfig,
)
from regard.synthetic.scenes.captions import captions, false_caption
from regard.synthetic.scenes.questions import questions
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.statements import statements
from regard.synthetic.scenes.vocabulary import ANSWERS
from regard.tasks.fine_tuning import words_of
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.vision_language.fine_tuning import fitted, start_of, with_head
from regard.tasks.vision_language.pairs import ImageTextData, PairingConfig, PicturesWithTexts
from regard.tasks.vision_language.pretraining import ImageText, Matching
from regard.tasks.vision_language.questions import PictureQuestions, Pointing
from regard.tasks.vision_language.rows import PictureRows
from regard.tasks.vision_language.scene_questions import TRUTHS, Asking, asked_of, scenes_of, spoken
from regard.tasks.vision_language.scene_regions import KINDS, regions_of_scenes
from regard.tokenizers.wordpiece import WordPieceTokenizer

SAMPLE = 1000  # scenes that a tokenizer is made of: their words are few and soon all seen


class SceneDataConfig(Config):
    """How many scenes are drawn, and what is said of each."""

    scenes: int = Field(10_000, ge=2, description="scenes to learn from")
    validation: int = Field(500, ge=2, description="scenes to be measured on, with pairs of things that no other has")
    captions: int = Field(5, ge=1, le=9, description="true captions of each")
    near: int = Field(1, ge=0, le=20, description="false captions of each that miss the truth by a word")
    stated: int = Field(5, ge=0, le=10, description="true statements of each, and as many that miss it by a word")


class QuestionDataConfig(Config):
    """What is asked, and of how many scenes, where no folder of questions is given."""

    ask: Asking | Literal["captions"] = Field(
        "questions",
        description="what is learned: to answer, to tell true from false, to point, or to find by a caption",
    )
    scenes: int = Field(20_000, ge=1, description="scenes to learn from")
    validation: int = Field(500, ge=1, description="scenes to be measured on, with pairs of things that no other has")
    each: int = Field(6, ge=1, le=20, description="questions or statements of each scene; of phrases all")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad question of a folder: stop, or skip it")


def prepare_pairs(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """Captions of scenes, with hidden words and regions and near misses."""
    settings: SceneDataConfig = run.data  # type: ignore[assignment]
    pairing: PairingConfig = run.task  # type: ignore[assignment]
    config: ViLBERTForPreTrainingConfig = run.model  # type: ignore[assignment]
    tokenizer = words_of(given, sample(), config.vocab_size, tokenizer_file)
    config = fitted(config, given, tokenizer)
    classes = 0 if config.seeing.cells else len(KINDS)
    config = config.model_copy(update={"seeing": config.seeing.model_copy(update={"classes": classes})})
    data = _paired(settings, pairing, config, tokenizer)
    notes = [
        f"{settings.scenes:,} scenes to learn from, {settings.validation:,} held out; {tokenizer.vocab_size:,} pieces"
    ]
    return Prepared(ImageText(data), config, notes, start_of(given, config) if given.start else None)


def prepare_matching(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The same captions and near misses, all to be judged and nothing hidden: what retrieval needs."""
    settings: QuestionDataConfig = run.data  # type: ignore[assignment]
    config = with_head(ViLBERTForRetrievalConfig, run.model)  # type: ignore[arg-type]
    tokenizer = words_of(given, sample(), config.vocab_size, tokenizer_file)
    config = fitted(config, given, tokenizer)
    drawn = SceneDataConfig(scenes=settings.scenes, validation=settings.validation)
    data = _paired(drawn, PairingConfig(judged=1), config, tokenizer)
    notes = [f"captions of {settings.scenes:,} scenes, {settings.validation:,} held out"]
    return Prepared(Matching(data), config, notes, start_of(given, config))


def prepare_questions(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """Questions, statements or phrases of scenes."""
    settings: QuestionDataConfig = run.data  # type: ignore[assignment]
    if settings.ask == "captions":
        return prepare_matching(run, given, tokenizer_file)
    config: ViLBERTConfig = run.model  # type: ignore[assignment]
    tokenizer = words_of(given, sample(), config.vocab_size, tokenizer_file)
    config = fitted(_for(settings.ask, config), given, tokenizer)
    training = asked_rows(scenes_of("training", settings.scenes), settings, config, tokenizer)
    validation = asked_rows(scenes_of("validation", settings.validation), settings, config, tokenizer)
    kind = Pointing if settings.ask == "phrases" else PictureQuestions
    task = kind(RowData(training, validation), validation.kinds)
    notes = [f"{len(training):,} {settings.ask} of {settings.scenes:,} scenes, {len(validation):,} held out"]
    return Prepared(task, config, notes, start_of(given, config))


def _for(ask: str, config: ViLBERTConfig) -> ViLBERTConfig:
    """The config with the head that answers what is asked."""
    if ask == "phrases":
        return with_head(ViLBERTForGroundingConfig, config)
    labels = ANSWERS if ask == "questions" else TRUTHS
    return with_head(ViLBERTForQuestionAnsweringConfig, config).model_copy(update={"labels": labels})


def sample() -> Iterator[str]:
    """Texts of every sort, to make a tokenizer of."""
    for scene in scenes_of("training", SAMPLE):
        yield from (spoken(one) for one in captions(scene, 5))
        yield from (one.text for one in questions(scene, 3))
        yield from (one.text for one in statements(scene, 2))


def asked_rows(
    scenes: Sequence[Scene], settings: QuestionDataConfig, config: ViLBERTConfig, tokenizer: WordPieceTokenizer
) -> PictureRows:
    """All that is asked of these scenes as rows."""
    assert settings.ask != "captions", "these are pairs, and no rows"
    wanted, each = settings.ask, settings.each
    every = [(picture, ask) for picture, scene in enumerate(scenes) for ask in asked_of(scene, wanted, each)]
    encoded = tokenizer.encode_batch([ask.text for _, ask in every], max_length=config.context)
    return PictureRows(
        encoded,
        np.array([ask.target for _, ask in every], np.int64),
        tokenizer.pad_id,
        pictures=[picture for picture, _ in every],
        regions=regions_of_scenes(scenes, config.seeing),
        kinds=[ask.kind for _, ask in every],
    )


def _paired(
    settings: SceneDataConfig, pairing: PairingConfig, config: ViLBERTConfig, tokenizer: WordPieceTokenizer
) -> ImageTextData:
    training = _pictures(scenes_of("training", settings.scenes), settings, config, tokenizer)
    validation = _pictures(scenes_of("validation", settings.validation), settings, config, tokenizer)
    return ImageTextData(training, validation, PieceTable.of(tokenizer), pairing, config.context)


def _pictures(
    scenes: Sequence[Scene], settings: SceneDataConfig, config: ViLBERTConfig, tokenizer: WordPieceTokenizer
) -> PicturesWithTexts:
    regions: Regions = regions_of_scenes(scenes, config.seeing)
    true = _pieces(scenes, partial(_true, settings=settings), tokenizer)
    near = _pieces(scenes, partial(_near, settings=settings), tokenizer)
    return PicturesWithTexts(regions, true, near, alike=max(1, settings.near) + settings.stated)


def _true(scene: Scene, settings: SceneDataConfig) -> list[str]:
    """For each near miss a text that is written alike and true; then the other captions."""
    whole, *others = (spoken(one) for one in captions(scene, settings.captions))
    stated = [one.text for one in statements(scene, 2 * settings.stated) if one.true]
    return [whole] * max(1, settings.near) + stated + others


def _near(scene: Scene, settings: SceneDataConfig) -> list[str]:
    stated = [one.text for one in statements(scene, 2 * settings.stated) if not one.true]
    return [spoken(false_caption(scene, index)) for index in range(settings.near)] + stated


def _pieces(
    scenes: Sequence[Scene], say: Callable[[Scene], list[str]], tokenizer: WordPieceTokenizer
) -> list[list[list[int]]]:
    """The pieces of all texts of each scene."""
    said = [say(scene) for scene in scenes]
    every = iter(tokenizer.encode_ids_batch([text for texts in said for text in texts]))
    return [[next(every) for _ in texts] for texts in said]
