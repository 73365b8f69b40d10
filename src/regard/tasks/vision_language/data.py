"""Data of ViLBERT: images with captions or questions from the user's files, or drawn scenes with texts about them.

Pretraining and retrieval read images with captions; questions, statements and grounding read one text and its target a
row.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field, field_validator
from torch import Tensor

from regard.config import Config, absolute_path
from regard.data.dev_files import DevFilesConfig
from regard.data.masking import MaskingVocab
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.caption_splits import read_split
from regard.data.readers.captions import CaptionedImage, split_validation
from regard.data.readers.easy_vqa import ImageQuestion, read_easy_vqa
from regard.data.readers.regions import read_regions
from regard.data.regions import ImageRegions, Regions, grid_regions
from regard.data.rows import RowSplits
from regard.errors import ConfigError, DataError
from regard.images.decoding import read_image
from regard.models.base import EncoderIds
from regard.models.vilbert import (
    StreamConfig,
    ViLBERTConfig,
    ViLBERTForGroundingConfig,
    ViLBERTForPreTrainingConfig,
    ViLBERTForQuestionAnsweringConfig,
    ViLBERTForRetrievalConfig,
    VisionConfig,
)
from regard.synthetic.scenes.captions import Caption, captions, false_caption
from regard.synthetic.scenes.questions import questions
from regard.synthetic.scenes.scene import Scene
from regard.synthetic.scenes.statements import statements
from regard.synthetic.scenes.vocabulary import ANSWERS
from regard.tasks.fine_tuning import encoder_tokenizer, fit_to_tokenizer, warm_start
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs
from regard.tasks.vision_language.dataset import ImageRows, ImagesWithTexts, ImageTextData, PairingConfig
from regard.tasks.vision_language.pretraining import ImageTextPretraining, RetrievalTraining
from regard.tasks.vision_language.questions import GroundingTraining, QuestionTraining, QuestionTrainingConfig
from regard.tasks.vision_language.scenes import (
    OBJECT_CLASSES,
    TRUTH_LABELS,
    QuestionForm,
    caption_text,
    first_scenes,
    named_regions,
    questions_about,
    regions_of_scenes,
)
from regard.tokenizers.wordpiece import WordPieceTokenizer

TOKENIZER_SCENES = 1000  # scenes a tokenizer is trained on: they have few words, and these contain all of them
NEEDS_CELLS = (
    "images of a folder have no boxes: the model must read cells, such as model.vision.grid=4 "
    "model.vision.patch_size=16"
)
SMALL: dict[str, Any] = {
    "vocab_size": 512,
    "context": 64,
    "text": StreamConfig(width=128, heads=4, layers=1, feed_forward=256),
    "regions": StreamConfig(width=128, heads=4, layers=1, feed_forward=256),
    "co_attention_layers": 3,
    "joint_width": 128,
    "vision": VisionConfig(patch_size=16, inner=256),
    "dropout": 0.0,
    "special_ids": EncoderIds(bos_id=2, eos_id=3, mask_id=4),
}


class SceneDataConfig(Config):
    """How many scenes are drawn for pretraining, and the texts of each."""

    scenes: int = Field(10_000, ge=2, description="scenes to train on")
    validation: int = Field(500, ge=2, description="held-out scenes, with pairs of objects that no other has")
    captions_per_scene: int = Field(5, ge=1, le=9, description="true captions of each")
    near_misses: int = Field(1, ge=0, le=20, description="false captions of each, wrong by one word")
    statements_per_scene: int = Field(5, ge=0, le=10, description="true statements of each, and as many near misses")


class ImageDataConfig(DevFilesConfig):
    """How the user's images with captions are read; their regions are all in memory."""

    regions: Path | None = Field(None, description="a .npz or .safetensors of features, boxes and names of the images")
    validation: int = Field(500, ge=2, description="images held out for validation, at most a tenth of all")
    images: Path | None = Field(None, description="a list of image names, one a line: train on these alone")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad caption: stop there, or skip it")

    _whole_path = field_validator("images")(absolute_path)


class FineTuningDataConfig(Config):
    """How many scenes are drawn for fine-tuning: of phrases and captions all are used."""

    scenes: int = Field(20_000, ge=1, description="scenes to train on")
    validation: int = Field(500, ge=1, description="held-out scenes, with pairs of objects that no other has")


class QuestionDataConfig(FineTuningDataConfig):
    """Questions about scenes, or those of a folder."""

    questions_per_scene: int = Field(6, ge=1, le=20, description="questions about each scene")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad question of a folder: stop, or skip it")


class StatementDataConfig(FineTuningDataConfig):
    """True and false statements about scenes."""

    statements_per_scene: int = Field(6, ge=1, le=20, description="statements about each scene")


PretrainingRun = RunConfig[SceneDataConfig | ImageDataConfig, ViLBERTForPreTrainingConfig, PairingConfig]
QuestionRun = RunConfig[QuestionDataConfig, ViLBERTForQuestionAnsweringConfig, QuestionTrainingConfig]
StatementRun = RunConfig[StatementDataConfig, ViLBERTForQuestionAnsweringConfig, QuestionTrainingConfig]
GroundingRun = RunConfig[FineTuningDataConfig, ViLBERTForGroundingConfig, QuestionTrainingConfig]
RetrievalRun = RunConfig[FineTuningDataConfig, ViLBERTForRetrievalConfig, QuestionTrainingConfig]
Head = TypeVar("Head", bound=ViLBERTConfig)


# ------------------------------------------------ the model


def config_with_head(head: type[Head], inputs: TrainingInputs) -> Head:
    """The config of a model with this head on the pretrained encoder, or on a small new one."""
    if inputs.pretrained is None:
        return head(**SMALL)
    config = getattr(inputs.pipeline.model, "config", None)
    if not isinstance(config, ViLBERTConfig):
        raise ConfigError(f"--from {inputs.pretrained} is a {inputs.pipeline.kind}, wanted a ViLBERT")
    return head(**{name: getattr(config, name) for name in ViLBERTConfig.model_fields})


def _warm_start(inputs: TrainingInputs, config: ViLBERTConfig) -> Callable[[Any], str]:
    weights = {} if inputs.pretrained is None else _pretrained_weights(inputs.pipeline.model, config)
    return warm_start(inputs, weights, hint="a ViLBERT pretrained on images")


def _pretrained_weights(pretrained: Any, config: ViLBERTConfig) -> dict[str, Tensor]:
    """The encoder's weights for a model with a head; the head's too, where it has the same outputs."""
    found = {f"encoder.{name}": weight for name, weight in pretrained.encoder.state_dict().items()}
    if type(pretrained.config) is type(config) and _outputs(pretrained.config) == _outputs(config):
        found |= {name: weight for name, weight in pretrained.state_dict().items() if not name.startswith("encoder.")}
    return found


def _outputs(config: ViLBERTConfig) -> Any:
    return getattr(config, "labels", None), config.vision.classes


# ------------------------------------------------ pretraining and retrieval: images with captions


def prepare_pretraining(run: PretrainingRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Masked words, masked regions and image-text matching, on the user's images or on drawn scenes."""
    if isinstance(run.data, ImageDataConfig):
        data, config, notes = _captioned_images(run.data, run, inputs, tokenizer_file)
    else:
        data, config, notes = _captioned_scenes(run.data, run, inputs, tokenizer_file)
    start = _warm_start(inputs, config) if inputs.pretrained else None
    return PreparedTask(ImageTextPretraining(data), config, notes, start)


def _captioned_scenes(
    settings: SceneDataConfig, run: PretrainingRun, inputs: TrainingInputs, tokenizer_file: Path
) -> tuple[ImageTextData, ViLBERTForPreTrainingConfig, list[str]]:
    tokenizer = encoder_tokenizer(inputs, _scene_texts(), run.model.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(run.model, inputs, tokenizer)
    classes = 0 if config.vision.grid else len(OBJECT_CLASSES)
    config = config.model_copy(update={"vision": config.vision.model_copy(update={"classes": classes})})
    data = _paired(settings, run.task, config, tokenizer)
    notes = [
        f"{settings.scenes:,} scenes to train on, {settings.validation:,} held out; {tokenizer.vocab_size:,} tokens"
    ]
    return data, config, notes


def _captioned_images(
    settings: ImageDataConfig, run: PretrainingRun, inputs: TrainingInputs, tokenizer_file: Path
) -> tuple[ImageTextData, ViLBERTForPreTrainingConfig, list[str]]:
    bad = BadRows()
    training, validation = captioned_split(inputs.paths, settings, bad)
    texts = [text for one in training for text in one.captions]
    tokenizer = encoder_tokenizer(inputs, texts, run.model.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(run.model, inputs, tokenizer)
    regions = _RegionReader(settings.regions, config)
    config = config.model_copy(update={"vision": regions.vision})
    parts = [_with_captions(part, regions, tokenizer) for part in (training, validation)]
    data = ImageTextData(parts[0], parts[1], MaskingVocab.from_tokenizer(tokenizer), run.task, config.context)
    notes = [
        *bad.summary(),
        f"{len(training):,} images to train on, {len(validation):,} held out; {tokenizer.vocab_size:,} tokens",
    ]
    return data, config, notes


def captioned_split(
    paths: Sequence[Path], settings: ImageDataConfig, report: BadRows
) -> tuple[list[CaptionedImage], list[CaptionedImage]]:
    """The images to train on and the held-out ones."""
    training, validation = read_split(
        paths, settings.dev, images=settings.images, on_error=settings.on_error, report=report
    )
    return split_validation(training, settings.validation) if validation is None else (training, validation)


class _RegionReader:
    """The regions of an image: those of the user's file, or cells of its pixels."""

    def __init__(self, file: Path | None, config: ViLBERTForPreTrainingConfig) -> None:
        self.vision = config.vision
        self.file = file
        if file is None:
            if not self.vision.grid or self.vision.patch_size is None:
                raise ConfigError(f"{NEEDS_CELLS}; or give data.regions=FILE")
            return
        found = read_regions(file, features=None if self.vision.grid else self.vision.features)
        self.regions = found.regions
        self.numbers = {name: number for number, name in enumerate(found.names)}
        kinds = [one.classes for one in map(self.regions.__getitem__, range(len(self.regions)))]
        classes = 0 if kinds[0] is None else 1 + max(int(each.max()) for each in kinds if each is not None)
        self.vision = VisionConfig(features=self.regions.width, classes=classes)

    def __call__(self, one: CaptionedImage) -> ImageRegions:
        if self.file is None:
            assert self.vision.patch_size is not None
            return grid_regions(np.asarray(read_image(one.image)), self.vision.grid, self.vision.patch_size)
        if one.name not in self.numbers:
            raise DataError(f"{self.file}: has no regions of {one.name}; its names must be those of the images")
        return self.regions[self.numbers[one.name]]


def _with_captions(
    captioned: Sequence[CaptionedImage], regions: _RegionReader, tokenizer: WordPieceTokenizer
) -> ImagesWithTexts:
    ids = iter(tokenizer.encode_ids_batch([text for one in captioned for text in one.captions]))
    texts = [[next(ids) for _ in one.captions] for one in captioned]
    return ImagesWithTexts(Regions(map(regions, captioned)), texts)


def prepare_retrieval(run: RetrievalRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Image-text matching alone, on captions and near misses of drawn scenes, for retrieval."""
    tokenizer = encoder_tokenizer(inputs, _scene_texts(), run.model.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(run.model, inputs, tokenizer)
    settings = SceneDataConfig(scenes=run.data.scenes, validation=run.data.validation)
    data = _paired(settings, PairingConfig(matching_share=1), config, tokenizer)
    notes = [f"captions of {settings.scenes:,} scenes, {settings.validation:,} held out"]
    return PreparedTask(RetrievalTraining(data), config, notes, _warm_start(inputs, config))


def _paired(
    settings: SceneDataConfig, pairing: PairingConfig, config: ViLBERTConfig, tokenizer: WordPieceTokenizer
) -> ImageTextData:
    training = _with_texts(first_scenes("training", settings.scenes), settings, config, tokenizer)
    validation = _with_texts(first_scenes("validation", settings.validation), settings, config, tokenizer)
    return ImageTextData(training, validation, MaskingVocab.from_tokenizer(tokenizer), pairing, config.context)


def _with_texts(
    scenes: Sequence[Scene], settings: SceneDataConfig, config: ViLBERTConfig, tokenizer: WordPieceTokenizer
) -> ImagesWithTexts:
    regions: Regions = regions_of_scenes(scenes, config.vision)
    described = [_true_texts(scene, settings) for scene in scenes]
    true = _ids_of_texts([[caption_text(one) for one in some] for some in described], tokenizer)
    near = _ids_of_texts([_near_misses(scene, settings) for scene in scenes], tokenizer)
    alike = max(1, settings.near_misses) + settings.statements_per_scene
    if config.vision.grid:  # an object is not one region
        return ImagesWithTexts(regions, true, near, alike)
    tokens = cache(lambda word: len(tokenizer.encode_ids(word)))
    named = [[named_regions(one, tokens) for one in some] for some in described]
    return ImagesWithTexts(regions, true, near, alike, named)


def _true_texts(scene: Scene, settings: SceneDataConfig) -> list[Caption]:
    """For each near miss a true text of the same form; then the other captions. What statements name is not known."""
    complete, *others = captions(scene, settings.captions_per_scene)
    words = [one.text.split() for one in statements(scene, 2 * settings.statements_per_scene) if one.true]
    stated = [Caption(tuple(some), (None,) * len(some)) for some in words]
    return [complete] * max(1, settings.near_misses) + stated + others


def _near_misses(scene: Scene, settings: SceneDataConfig) -> list[str]:
    stated = [one.text for one in statements(scene, 2 * settings.statements_per_scene) if not one.true]
    return [caption_text(false_caption(scene, index)) for index in range(settings.near_misses)] + stated


def _ids_of_texts(texts: Sequence[Sequence[str]], tokenizer: WordPieceTokenizer) -> list[list[list[int]]]:
    """The ids of all texts of each scene."""
    ids = iter(tokenizer.encode_ids_batch([text for some in texts for text in some]))
    return [[next(ids) for _ in some] for some in texts]


def _scene_texts() -> Iterator[str]:
    """Texts of every kind, to train a tokenizer on."""
    for scene in first_scenes("training", TOKENIZER_SCENES):
        yield from (caption_text(one) for one in captions(scene, 5))
        yield from (one.text for one in questions(scene, 3))
        yield from (one.text for one in statements(scene, 2))


# ------------------------------------------------ questions, statements and grounding: a text and its target a row


def prepare_questions(run: QuestionRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Questions about drawn scenes, or those of a folder."""
    if inputs.paths:
        return _prepare_question_folder(run, inputs, tokenizer_file)
    config = run.model.model_copy(update={"labels": ANSWERS})
    return _prepare_rows("questions", run.data, run.data.questions_per_scene, config, inputs, tokenizer_file)


def prepare_statements(run: StatementRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Statements about drawn scenes, true or false."""
    config = run.model.model_copy(update={"labels": TRUTH_LABELS})
    return _prepare_rows("statements", run.data, run.data.statements_per_scene, config, inputs, tokenizer_file)


def prepare_grounding(run: GroundingRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Referring phrases for objects of drawn scenes; the target is the object's region."""
    return _prepare_rows("phrases", run.data, 0, run.model, inputs, tokenizer_file)


def _prepare_rows(
    ask: QuestionForm,
    settings: FineTuningDataConfig,
    per_scene: int,
    config: ViLBERTConfig,
    inputs: TrainingInputs,
    tokenizer_file: Path,
) -> PreparedTask:
    tokenizer = encoder_tokenizer(inputs, _scene_texts(), config.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(config, inputs, tokenizer)
    training = scene_rows(first_scenes("training", settings.scenes), ask, per_scene, config, tokenizer)
    validation = scene_rows(first_scenes("validation", settings.validation), ask, per_scene, config, tokenizer)
    task = (GroundingTraining if ask == "phrases" else QuestionTraining)(
        RowSplits(training, validation), validation.kinds
    )
    notes = [f"{len(training):,} {ask} about {settings.scenes:,} scenes, {len(validation):,} held out"]
    return PreparedTask(task, config, notes, _warm_start(inputs, config))


def scene_rows(
    scenes: Sequence[Scene], ask: QuestionForm, per_scene: int, config: ViLBERTConfig, tokenizer: WordPieceTokenizer
) -> ImageRows:
    """Texts about these scenes as rows; all phrases of a scene, `per_scene` questions or statements."""
    rows = [(number, one) for number, scene in enumerate(scenes) for one in questions_about(scene, ask, per_scene)]
    return ImageRows(
        tokenizer.encode_batch([one.text for _, one in rows], max_length=config.context),
        np.array([one.target for _, one in rows], np.int64),
        tokenizer.pad_id,
        images=[number for number, _ in rows],
        regions=regions_of_scenes(scenes, config.vision),
        kinds=[one.kind for _, one in rows],
    )


def _prepare_question_folder(run: QuestionRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """The questions of a folder in the layout of easy-vqa; its images are read as cells."""
    if len(inputs.paths) != 1:
        raise DataError(f"got {len(inputs.paths)} folders, wanted one, as the package easy-vqa has it")
    if not run.model.vision.grid or run.model.vision.patch_size is None:
        raise ConfigError(f"{NEEDS_CELLS}; a pretrained model must have been trained with cells")
    bad = BadRows()
    found = read_easy_vqa(inputs.paths[0], on_error=run.data.on_error, report=bad)
    texts = [one.text for one in found.training]
    tokenizer = encoder_tokenizer(inputs, texts, run.model.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(run.model, inputs, tokenizer).model_copy(update={"labels": found.answers})
    training, validation = (question_rows(part, config, tokenizer) for part in (found.training, found.validation))
    notes = [
        *bad.summary(),
        f"{len(training):,} questions about {len(training.regions):,} images, {len(validation):,} held out; "
        f"{len(found.answers)} answers",
    ]
    task = QuestionTraining(RowSplits(training, validation), validation.kinds)
    return PreparedTask(task, config, notes, _warm_start(inputs, config))


def question_rows(
    asked: Sequence[ImageQuestion], config: ViLBERTForQuestionAnsweringConfig, tokenizer: WordPieceTokenizer
) -> ImageRows:
    """Questions of a folder as rows, each image read once."""
    assert config.vision.patch_size is not None
    numbers = {path: number for number, path in enumerate(dict.fromkeys(one.image for one in asked))}
    images = (np.asarray(read_image(path)) for path in numbers)
    answers = {answer: number for number, answer in enumerate(config.labels)}
    return ImageRows(
        tokenizer.encode_batch([one.text for one in asked], max_length=config.context),
        np.array([answers[one.answer] for one in asked], np.int64),
        tokenizer.pad_id,
        images=[numbers[one.image] for one in asked],
        regions=Regions(grid_regions(pixels, config.vision.grid, config.vision.patch_size) for pixels in images),
        kinds=[one.kind for one in asked],
    )
