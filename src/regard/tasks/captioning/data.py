"""Pictures with captions made ready for a captioner: drawn scenes, or the user's own, prepared in the cache."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from regard.data.readers.captions import Captioned
from regard.data.readers.pairs import BadLines
from regard.data.stores.images import prepared_pictures
from regard.errors import DataError
from regard.files import write_file
from regard.huggingface.hub import find
from regard.huggingface.vit import read_sight, read_weights
from regard.images.decoding import read_picture
from regard.images.preparing import prepare as prepared
from regard.models.base import SpecialIds
from regard.models.captioner import CaptionerConfig
from regard.synthetic.scenes.captions import captions
from regard.synthetic.scenes.scene import Scenes
from regard.tasks.captioning.dataset import (
    CaptionDataConfig,
    CaptionedPart,
    CaptionedPictures,
    Closing,
    captioned_split,
)
from regard.tasks.captioning.scenes import CaptionedScenes
from regard.tasks.captioning.task import Captioning
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.warm_start import from_weights
from regard.tokenizers.bpe import BPETokenizer

EXAMPLE = "picture.png"
WITHOUT_DATA = "the built-in world of drawn scenes"
SAMPLE = 1_000  # scenes that a tokenizer is made of: their words are few and soon all seen


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The captioning task on the user's folder and file, or on drawn scenes when there are none."""
    config: CaptionerConfig = run.model  # type: ignore[assignment]
    settings: CaptionDataConfig = run.data  # type: ignore[assignment]
    if not given.paths:
        texts = _of_scenes(config, settings)
        tokenizer = _tokenizer(texts, config, settings, tokenizer_file)
        data: CaptionedScenes | CaptionedPictures = CaptionedScenes(
            tokenizer, side=config.side, cells=config.cells, validation=settings.validation, several=settings.captions
        )
        notes = [f"scenes are drawn as they are needed, {settings.validation:,} others are held out"]
    else:
        corpus = PictureCorpus(given.paths, settings)
        texts = (text for one in corpus.training for text in one.captions)
        tokenizer = _tokenizer(texts, config, settings, tokenizer_file)
        data, notes = corpus.prepared(tokenizer, config)
        if tokenizer.vocab_size < config.vocab_size:
            notes.append(
                f"the captions have words for a vocabulary of {tokenizer.vocab_size:,}, not {config.vocab_size:,}"
            )
    special_ids = SpecialIds(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    model = config.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids, longest=settings.longest)
    task = Captioning(tokenizer, run.task, data)  # type: ignore[arg-type]
    if given.start is None:
        return Prepared(task, model, notes)
    learned, left_out = _learned(find(given.start))
    return Prepared(task, model, [*notes, *left_out], from_weights(learned))


def _learned(folder: Path) -> tuple[dict[str, Tensor], list[str]]:
    """The weights that a captioner sees by, and what the folder has beside them."""
    found, left_out = read_weights(folder, read_sight(folder))
    return {f"encoder.transformer.{name}": weight for name, weight in found.items()}, left_out


def _of_scenes(config: CaptionerConfig, settings: CaptionDataConfig) -> Iterator[str]:
    scenes = Scenes(side=config.side)
    return (" ".join(one.words) for number in range(SAMPLE) for one in captions(scenes[number], settings.captions))


def _tokenizer(
    texts: Iterator[str], config: CaptionerConfig, settings: CaptionDataConfig, tokenizer_file: Path
) -> BPETokenizer:
    """The one that the run has kept, or a new one, kept from now on."""
    if tokenizer_file.exists():
        return BPETokenizer.load(tokenizer_file)
    tokenizer = BPETokenizer.train(texts, config.vocab_size, settings.whole_words)
    tokenizer_file.parent.mkdir(parents=True, exist_ok=True)
    write_file(tokenizer_file, tokenizer.to_json().encode())
    return tokenizer


class PictureCorpus:
    """The user's pictures and captions; a picture is on one side of the split with all its captions."""

    def __init__(self, paths: Sequence[Path], settings: CaptionDataConfig) -> None:
        self.settings = settings
        self.bad = BadLines()
        self.training, self.validation = captioned_split(paths, settings, self.bad)

    def prepared(self, tokenizer: BPETokenizer, config: CaptionerConfig) -> tuple[CaptionedPictures, list[str]]:
        """All pictures as pixels of the model's side; those that cannot be read are errors, or left out and named."""
        training, validation = (self._part(part, tokenizer, config.side) for part in (self.training, self.validation))
        closing = Closing(tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)
        notes = [
            *self.bad.summary(),
            f"{len(training.pictures):,} pictures with {len(training):,} captions to train on, "
            f"{len(validation.pictures):,} held out",
        ]
        return CaptionedPictures(training, validation, closing, config.cells), notes

    def _part(self, part: Sequence[Captioned], tokenizer: BPETokenizer, side: int) -> CaptionedPart:
        before = self.bad.count
        pictures = prepared_pictures(
            [one.picture for one in part],
            lambda path: pixels_of(path, side),
            side=side,
            settings={"crop": "center"},
            report=self.bad,
        )
        if self.settings.on_error == "stop" and self.bad.count > before:
            place, reason = next(iter(pictures.bad.items()))
            raise DataError(f"{part[place].picture}: {reason}; mend it, or data.on_error=skip to leave such ones out")
        kept = [part[place].captions for place in pictures.places.tolist()]
        ids = iter(tokenizer.encode_batch([text for several in kept for text in several]))
        return CaptionedPart(pictures, kept, [[next(ids) for _ in several] for several in kept])


def pixels_of(path: Path, side: int) -> np.ndarray:
    """A picture as a model of this side sees it: the largest square in its middle."""
    return prepared(read_picture(path), side)
