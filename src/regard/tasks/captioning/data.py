"""Data of a captioner: the user's images with captions, prepared in the cache, or drawn scenes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, field_validator
from torch import Tensor

from regard.config import absolute_path
from regard.data.dev_files import DevFilesConfig
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.caption_splits import read_split
from regard.data.readers.captions import BadImage, CaptionedImage, split_validation
from regard.data.stores.images import prepare_images
from regard.errors import DataError
from regard.huggingface.hub import find
from regard.huggingface.vit import read_vit_config, read_weights
from regard.images.decoding import read_image
from regard.images.preprocessing import preprocess as prepared
from regard.models.base import SpecialIds
from regard.models.captioner import CaptionerConfig
from regard.synthetic.scenes.captions import captions
from regard.synthetic.scenes.scene import Scenes
from regard.tasks.captioning.dataset import CaptionCollator, CaptionedImages, CaptionedPart, CaptionedScenes
from regard.tasks.captioning.task import CaptioningConfig, CaptionTraining
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs, load_or_make_tokenizer
from regard.tasks.warm_start import warm_start_from
from regard.tokenizers.bpe import BPETokenizer

EXAMPLE = "image.png"
DEFAULT_DATA = "drawn scenes"
TOKENIZER_SCENES = 1_000  # scenes a tokenizer is trained on: they have few words, and these contain all of them


class CaptionDataConfig(DevFilesConfig):
    """How the user's images and captions are read, or scenes drawn when there are none."""

    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad line: stop there, or skip it")
    max_length: int = Field(60, ge=1, description="words of a caption; longer ones are left out")
    validation: int = Field(1000, ge=1, description="images held out for validation; of the user's at most a tenth")
    whole_word_tokens: int = Field(
        0, ge=0, description="tokens of the vocabulary that are the commonest words, unsplit"
    )
    images: Path | None = Field(None, description="a list of image names, one a line: train on these alone")
    captions_per_scene: int = Field(1, ge=1, le=9, description="true captions of a drawn scene; 1: the complete one")

    _whole_path = field_validator("images")(absolute_path)


CaptioningRun = RunConfig[CaptionDataConfig, CaptionerConfig, CaptioningConfig]


def prepare(run: CaptioningRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """The captioning task on the user's folder and file, or on drawn scenes when there are none."""
    config, settings = run.model, run.data
    settings.check_has_files(bool(inputs.paths))
    corpus = ImageCorpus(inputs.paths, settings) if inputs.paths else None
    tokenizer = load_or_make_tokenizer(
        BPETokenizer,
        tokenizer_file,
        lambda: BPETokenizer.train(
            corpus.captions() if corpus else _scene_captions(config, settings),
            config.vocab_size,
            settings.whole_word_tokens,
        ),
    )
    if corpus is None:
        data: CaptionedScenes | CaptionedImages = CaptionedScenes(
            tokenizer,
            side=config.image_size,
            cells=config.num_cells,
            validation=settings.validation,
            captions_per_scene=settings.captions_per_scene,
        )
        notes = [f"scenes are drawn as they are needed, {settings.validation:,} others are held out"]
    else:
        data, notes = corpus.prepared(tokenizer, config)
        if tokenizer.vocab_size < config.vocab_size:
            notes.append(f"the captions give a vocabulary of {tokenizer.vocab_size:,}, not {config.vocab_size:,}")
    special_ids = SpecialIds(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    model = config.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids, longest=settings.max_length)
    task = CaptionTraining(tokenizer, run.task, data)
    if inputs.pretrained is None:
        return PreparedTask(task, model, notes)
    weights, unused = _vit_weights(find(inputs.pretrained))
    return PreparedTask(task, model, [*notes, *unused], warm_start_from(weights))


def _vit_weights(folder: Path) -> tuple[dict[str, Tensor], list[str]]:
    """The weights of the image encoder, and notes on weights of the folder that are not used."""
    found, unused = read_weights(folder, read_vit_config(folder))
    return {f"encoder.transformer.{name}": weight for name, weight in found.items()}, unused


def _scene_captions(config: CaptionerConfig, settings: CaptionDataConfig) -> Iterator[str]:
    scenes = Scenes(side=config.image_size)
    drawn = (scenes[number] for number in range(TOKENIZER_SCENES))
    return (" ".join(one.words) for scene in drawn for one in captions(scene, settings.captions_per_scene))


class ImageCorpus:
    """The user's images and captions; an image is on one side of the split with all its captions."""

    def __init__(self, paths: Sequence[Path], settings: CaptionDataConfig) -> None:
        self.settings = settings
        self.bad = BadRows()
        self.training, self.validation = captioned_split(paths, settings, self.bad)

    def captions(self) -> Iterator[str]:
        """Captions to train a tokenizer on."""
        return (text for one in self.training for text in one.captions)

    def prepared(self, tokenizer: BPETokenizer, config: CaptionerConfig) -> tuple[CaptionedImages, list[str]]:
        """All images as pixels of the model's size; those that cannot be read are errors, or left out and named."""
        training, validation = (
            self._part(part, tokenizer, config.image_size) for part in (self.training, self.validation)
        )
        collator = CaptionCollator(tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)
        notes = [
            *self.bad.summary(),
            f"{len(training.images):,} images with {len(training):,} captions to train on, "
            f"{len(validation.images):,} held out",
        ]
        return CaptionedImages(training, validation, collator, config.num_cells), notes

    def _part(self, part: Sequence[CaptionedImage], tokenizer: BPETokenizer, side: int) -> CaptionedPart:
        before = self.bad.count
        images = prepare_images(
            [one.image for one in part],
            lambda path: pixels_of(path, side),
            side=side,
            settings={"crop": "center"},
            report=self.bad,
        )
        if self.settings.on_error == "stop" and self.bad.count > before:
            index, reason = next(iter(images.bad.items()))
            raise DataError(f"{part[index].image}: {reason}; fix it, or set data.on_error=skip to skip such images")
        kept = [part[index].captions for index in images.path_indices.tolist()]
        ids = iter(tokenizer.encode_batch([text for several in kept for text in several]))
        return CaptionedPart(images, kept, [[next(ids) for _ in several] for several in kept])


def captioned_split(
    paths: Sequence[Path], settings: CaptionDataConfig, report: BadRows
) -> tuple[list[CaptionedImage], list[CaptionedImage]]:
    """The images to train on and the held-out ones; captions that are too long are counted in `report`."""
    training, validation = read_split(
        paths, settings.dev, images=settings.images, on_error=settings.on_error, report=report
    )
    training = _short_enough(training, settings.max_length, report)
    if validation is None:
        return split_validation(training, settings.validation)
    return training, _short_enough(validation, settings.max_length, report)


def _short_enough(found: Sequence[CaptionedImage], max_length: int, report: BadRows) -> list[CaptionedImage]:
    kept = []
    for one in found:
        short = tuple(text for text in one.captions if len(text.split()) <= max_length)
        for _ in range(len(one.captions) - len(short)):
            report.add(BadImage(one.image, 0, "long caption", f"more than {max_length} words; raise data.max_length"))
        if short:
            kept.append(replace(one, captions=short))
    if not kept:
        raise DataError(f"no caption has {max_length} words or less; raise data.max_length")
    return kept


def pixels_of(path: Path, side: int) -> np.ndarray:
    """An image as a model of this size reads it: the largest square in its middle."""
    return prepared(read_image(path), side)
