"""Score captioners: on the user's pictures, on what a run held out, or on drawn scenes.

Of a scene it is known which thing each word speaks of, so it is measured too where the model looks: how much of the
attention for the words of a thing falls on the cells that the thing covers, against the share of all cells that they
are, which is chance.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import BadImage, CaptionedImage, folder_and_file, read_captions
from regard.errors import DataError, ImageError
from regard.generation import Strategy
from regard.inspection.alignment import cross_attention_weights
from regard.metrics.attention_mass import AttentionMass, cells_in_box
from regard.metrics.captions import bleu4, cider_d
from regard.synthetic.scenes.captions import caption
from regard.synthetic.scenes.scene import Scene, Scenes
from regard.tasks.captioning.data import CaptionDataConfig, captioned_split
from regard.tasks.captioning.dataset import VALIDATION_SEED, CaptionCollator
from regard.tasks.captioning.pipeline import BATCH, Captioner
from regard.tasks.captioning.task import score_captions
from regard.tasks.run_settings import held_out_of


@dataclass(frozen=True)
class Item:
    """A picture as the model sees it, its true captions, and the scene where it is drawn."""

    pixels: np.ndarray
    references: list[str]
    scene: Scene | None = None


@dataclass
class Tested:
    """Pictures to be scored, read once, and what was wrong with their files."""

    items: Iterator[Item]
    bad: BadRows = field(default_factory=BadRows)


def score_pictures(
    captioner: Captioner, folder: Path, paths: Sequence[Path], strategy: Strategy | None, *, most: int | None = None
) -> dict[str, Any]:
    """Exact match, BLEU-4, CIDEr and loss on a folder of pictures and a file of captions, or on what was held out."""
    tests = test_pictures(captioner, folder, paths)
    scores = score_items(captioner, islice(tests.items, most), strategy)
    return scores | ({"bad_lines": tests.bad.summary()} if tests.bad.count else {})


def test_pictures(captioner: Captioner, folder: Path, paths: Sequence[Path]) -> Tested:
    """The user's, all of them; else what the run of this folder held out."""
    bad = BadRows()
    if paths:
        return Tested(_read(captioner, read_captions(*folder_and_file(paths), on_error="skip", report=bad), bad), bad)
    run = held_out_of(folder, "the folder of the pictures and the captions' file")
    settings = CaptionDataConfig.model_validate(run.settings["data"])
    if run.data:
        _, validation = captioned_split(run.data, settings, bad)
        return Tested(_read(captioner, validation, bad), bad)
    return Tested(_drawn(captioner.model.config.side, settings.validation), bad)


def _read(captioner: Captioner, captioned: Sequence[CaptionedImage], bad: BadRows) -> Iterator[Item]:
    for one in captioned:
        try:
            pixels = captioner.see(one.image)
        except ImageError as error:
            bad.add(BadImage(one.image, 0, "bad image", str(error).removeprefix(f"{one.image}: ")))
        else:
            yield Item(pixels, list(one.captions))


def _drawn(side: int, count: int) -> Iterator[Item]:
    scenes = Scenes(VALIDATION_SEED, "validation", side)
    for number in range(count):
        scene = scenes[number]
        yield Item(scene.pixels(), [" ".join(caption(scene).words)], scene)


def score_items(captioner: Captioner, items: Iterator[Item], strategy: Strategy | None = None) -> dict[str, Any]:
    """The scores of what the model writes on its own, its loss on the true captions, and its attention on scenes."""
    predictions: list[str] = []
    references: list[list[str]] = []
    surprise, tokens, seconds, mass = 0.0, 0, 0.0, AttentionMass()
    while several := list(islice(items, BATCH)):
        begun = time.perf_counter()
        predictions += captioner.texts([item.pixels for item in several], strategy, first=len(predictions))
        seconds += time.perf_counter() - begun
        references += [item.references for item in several]
        found = _true(captioner, several, mass)
        surprise, tokens = surprise + found[0], tokens + found[1]
    if not predictions:
        raise DataError("no pictures to score")
    return {
        "pictures": len(predictions),
        "loss": surprise / tokens,
        "perplexity": math.exp(min(surprise / tokens, 700.0)),
        **score_captions(predictions, references),
        "cider_d": cider_d(predictions, references).value,
        "pictures_per_second": len(predictions) / seconds,
        **(_attention(mass) if mass.words else {}),
        "bleu_signature": bleu4(predictions, references).signature,
    }


@torch.inference_mode()
def _true(captioner: Captioner, items: Sequence[Item], mass: AttentionMass) -> tuple[float, int]:
    """The summed surprise at each picture's first caption and its tokens; `mass` gets where the model looked."""
    names = captioner.tokenizer
    ids = names.encode_batch([item.references[0] for item in items])
    collator = CaptionCollator(names.bos_id, names.eos_id, names.pad_id)
    batch = collator.batch(np.stack([item.pixels for item in items]), ids, [item.references for item in items])
    surprise = captioner.task.loss(captioner.model, batch).item()
    if items[0].scene is not None:
        looks = cross_attention_weights(captioner.model, captioner.task.read(batch.pixels.numpy()), batch.target_in)
        for row, (item, tokens) in enumerate(zip(items, ids, strict=True)):
            assert item.scene is not None
            mass.add(looks[:, row].numpy(), _covered(item.scene, names.word_ids(tokens), captioner.model.config.grid))
    return surprise, batch.tokens


def _covered(scene: Scene, words: Sequence[int], grid: int) -> list[np.ndarray | None]:
    """For each token the cells of the thing its word speaks of, if it speaks of one."""
    regions = caption(scene).regions
    cells = [cells_in_box(thing.box, scene.side, grid) for thing in scene.things]
    things = [regions[word] if word >= 0 else None for word in words]
    return [None if thing is None else cells[thing] for thing in things]


def _attention(mass: AttentionMass) -> dict[str, Any]:
    """Mass on the true thing against chance: of the mean over all heads, as a look is shown, and of each head."""
    heads = mass.mean  # (layers, heads)
    return {
        "attention_on_thing": float(heads.mean()),
        "attention_by_chance": mass.chance,
        "attention_times_chance": float(heads.mean() / mass.chance),
        "by_head": [
            {"layer": layer + 1, "head": head + 1, "on_thing": float(on), "times_chance": float(on / mass.chance)}
            for (layer, head), on in np.ndenumerate(heads)
        ],
    }
