"""The user's pictures with captions made ready for ViLBERT; what another program found in them may come in a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from regard.config import Config
from regard.data.masking import PieceTable
from regard.data.readers.captions import Captioned, read_captions, split_validation
from regard.data.readers.pairs import BadLines
from regard.data.readers.regions import read_regions
from regard.data.regions import PictureRegions, Regions, grid
from regard.errors import ConfigError, DataError
from regard.images.decoding import read_picture
from regard.models.vilbert import SeeingConfig, ViLBERTForPreTrainingConfig
from regard.tasks.fine_tuning import words_of
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.vision_language.fine_tuning import fitted, start_of
from regard.tasks.vision_language.pairs import ImageTextData, PairingConfig, PicturesWithTexts
from regard.tasks.vision_language.pretraining import ImageText
from regard.tokenizers.wordpiece import WordPieceTokenizer


class PictureDataConfig(Config):
    """How the user's pictures are read; their regions are all in memory."""

    regions: Path | None = Field(
        None, description="a .npz or .safetensors of features, boxes and names of the pictures"
    )
    validation: int = Field(500, ge=2, description="pictures kept out of training, at most a tenth of all")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad caption: stop there, or skip it")


def prepare_pictures(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """Captions of pictures in a folder, with hidden words and regions, and captions of other pictures."""
    settings: PictureDataConfig = run.data  # type: ignore[assignment]
    pairing: PairingConfig = run.task  # type: ignore[assignment]
    config: ViLBERTForPreTrainingConfig = run.model  # type: ignore[assignment]
    if len(given.paths) != 2:
        raise DataError(
            f"got {len(given.paths)} paths, wanted two: the folder of the pictures and the file of captions"
        )
    bad = BadLines()
    captioned = read_captions(given.paths[0], given.paths[1], on_error=settings.on_error, report=bad)
    training, validation = split_validation(captioned, settings.validation)
    texts = [text for one in training for text in one.captions]
    tokenizer = words_of(given, texts, config.vocab_size, tokenizer_file)
    config = fitted(config, given, tokenizer)
    seen = _Seen(settings.regions, config)
    config = config.model_copy(update={"seeing": seen.seeing})
    parts = [_with_texts(part, seen, tokenizer) for part in (training, validation)]
    data = ImageTextData(parts[0], parts[1], PieceTable.of(tokenizer), pairing, config.context)
    notes = [
        *bad.summary(),
        f"{len(training):,} pictures to learn from, {len(validation):,} held out; {tokenizer.vocab_size:,} pieces",
    ]
    return Prepared(ImageText(data), config, notes, start_of(given, config) if given.start else None)


class _Seen:
    """What is seen of a picture: the regions of the user's file, or cells of its pixels."""

    def __init__(self, file: Path | None, config: ViLBERTForPreTrainingConfig) -> None:
        self.seeing = config.seeing
        self.file = file
        if file is None:
            if not self.seeing.cells or self.seeing.patch is None:
                raise ConfigError(
                    "pictures of a folder have no boxes: the model must see cells, such as model.seeing.cells=4 "
                    "model.seeing.patch=16; or give data.regions=FILE"
                )
            return
        found = read_regions(file, features=None if self.seeing.cells else self.seeing.features)
        self.regions = found.regions
        self.numbers = {name: number for number, name in enumerate(found.names)}
        kinds = [one.classes for one in map(self.regions.__getitem__, range(len(self.regions)))]
        classes = 0 if kinds[0] is None else 1 + max(int(each.max()) for each in kinds if each is not None)
        self.seeing = SeeingConfig(features=self.regions.width, classes=classes)

    def __call__(self, one: Captioned) -> PictureRegions:
        if self.file is None:
            assert self.seeing.patch is not None
            return grid(np.asarray(read_picture(one.picture)), self.seeing.cells, self.seeing.patch)
        if one.name not in self.numbers:
            raise DataError(f"{self.file}: has no regions of {one.name}; its names must be those of the pictures")
        return self.regions[self.numbers[one.name]]


def _with_texts(captioned: Sequence[Captioned], seen: _Seen, tokenizer: WordPieceTokenizer) -> PicturesWithTexts:
    every = iter(tokenizer.encode_ids_batch([text for one in captioned for text in one.captions]))
    texts = [[next(every) for _ in one.captions] for one in captioned]
    return PicturesWithTexts(Regions(map(seen, captioned)), texts)
