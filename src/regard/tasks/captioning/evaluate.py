"""Evaluate a captioner: on the user's images, on the validation data of its run, or on synthetic scenes.

In a scene it is known which object each word names, so attention is scored too: how much of the attention for the words
of an object falls on the cells that the object covers, and of its noun alone. Chance is the share of all cells that it
covers.
"""

import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.caption_splits import read_listed
from regard.data.readers.captions import BadImage, CaptionedImage
from regard.errors import DataError, ImageError
from regard.generation import Strategy
from regard.inspection.alignment import cross_attention_weights
from regard.metrics.attention_mass import AttentionMass, cells_in_box
from regard.metrics.captions import bleu4_signature, cider_d
from regard.runtime import runtime_of
from regard.synthetic.scenes.captions import caption
from regard.synthetic.scenes.objects import SHAPES
from regard.synthetic.scenes.scene import Scene, Scenes
from regard.tasks.base import EvaluationRequest
from regard.tasks.captioning.data import CaptionDataConfig, captioned_split
from regard.tasks.captioning.dataset import VALIDATION_SEED, CaptionCollator
from regard.tasks.captioning.pipeline import BATCH_SIZE, Captioner
from regard.tasks.captioning.task import score_captions
from regard.tasks.run_settings import validation_of


@dataclass(frozen=True)
class Item:
    """The pixels of an image, its reference captions, and its scene where it is synthetic."""

    pixels: np.ndarray
    references: list[str]
    scene: Scene | None = None


@dataclass
class TestSet:
    """Images to be scored, read once, and the bad lines and images."""

    items: Iterator[Item]
    bad: BadRows = field(default_factory=BadRows)


def evaluate(captioner: Captioner, request: EvaluationRequest) -> dict[str, Any]:
    """Exact match, BLEU-4, CIDEr and loss; `limit` counts images."""
    tests = test_images(captioner, request.folder, request.paths)
    scores = score_items(captioner, islice(tests.items, request.limit), request.strategy)
    return scores | ({"bad_lines": tests.bad.summary()} if tests.bad.count else {})


def test_images(captioner: Captioner, folder: Path, paths: Sequence[Path]) -> TestSet:
    """The images of the user's folder with their captions, of a third file those that it lists; or the validation
    data of the run."""
    bad = BadRows()
    if paths:
        return TestSet(_read(captioner, read_listed(paths, bad), bad), bad)
    run = validation_of(folder, "the folder of images and the file of captions")
    settings = CaptionDataConfig.model_validate(run.settings["data"])
    if run.data:
        _, validation = captioned_split(run.data, settings, bad)
        return TestSet(_read(captioner, validation, bad), bad)
    return TestSet(_drawn(captioner.model.config.image_size, settings.validation), bad)


def _read(captioner: Captioner, captioned: Sequence[CaptionedImage], bad: BadRows) -> Iterator[Item]:
    for one in captioned:
        try:
            pixels = captioner.pixels_of(one.image)
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
    """The scores of generated captions, the loss of the references, and the attention on scenes."""
    predictions: list[str] = []
    references: list[list[str]] = []
    surprise, tokens, seconds, mass, nouns = 0.0, 0, 0.0, AttentionMass(), AttentionMass()
    while several := list(islice(items, BATCH_SIZE)):
        start = time.perf_counter()
        predictions += captioner.generate_texts([item.pixels for item in several], strategy, first=len(predictions))
        seconds += time.perf_counter() - start
        references += [item.references for item in several]
        found = _score_references(captioner, several, mass, nouns)
        surprise, tokens = surprise + found[0], tokens + found[1]
    if not predictions:
        raise DataError("no images to score")
    return {
        "images": len(predictions),
        "loss": surprise / tokens,
        "perplexity": math.exp(min(surprise / tokens, 700.0)),
        **score_captions(predictions, references),
        "cider_d": cider_d(predictions, references).value,
        "images_per_second": len(predictions) / seconds,
        **(_attention(mass, nouns) if mass.words else {}),
        "bleu_signature": bleu4_signature(references),
    }


@torch.inference_mode()
def _score_references(
    captioner: Captioner, items: Sequence[Item], mass: AttentionMass, nouns: AttentionMass
) -> tuple[float, int]:
    """The summed cross-entropy of each image's first caption, and its tokens; adds to `mass` and `nouns`."""
    names = captioner.tokenizer
    ids = names.encode_batch([item.references[0] for item in items])
    collator = CaptionCollator(names.bos_id, names.eos_id, names.pad_id)
    batch = collator.batch(np.stack([item.pixels for item in items]), ids, [item.references for item in items])
    pixels = batch.pixels.numpy()
    batch = runtime_of(captioner.model).move(batch)
    surprise = captioner.task.loss(captioner.model, batch).item()
    if items[0].scene is not None:
        shown = runtime_of(captioner.model).move(captioner.task.read(pixels))
        weights = cross_attention_weights(captioner.model, shown, batch.target_in).float().cpu()
        for row, (item, tokens) in enumerate(zip(items, ids, strict=True)):
            assert item.scene is not None
            looks, words = weights[:, row].numpy(), names.word_ids(tokens)
            mass.add(looks, _covered(item.scene, words, captioner.model.config.grid))
            nouns.add(looks, _covered(item.scene, words, captioner.model.config.grid, only=SHAPES))
    return surprise, batch.tokens


def _covered(
    scene: Scene, words: Sequence[int], grid: int, only: Collection[str] | None = None
) -> list[np.ndarray | None]:
    """For each token the cells of the object that its word names, if it names one, and is one of `only`."""
    said, regions = caption(scene).words, caption(scene).regions
    cells = [cells_in_box(thing.box, scene.side, grid) for thing in scene.things]
    things = [regions[word] if word >= 0 and (only is None or said[word] in only) else None for word in words]
    return [None if thing is None else cells[thing] for thing in things]


def _attention(mass: AttentionMass, nouns: AttentionMass) -> dict[str, Any]:
    """Attention on the named object against chance: the mean of all heads, and each head."""
    heads = mass.mean  # (layers, heads)
    return {
        "attention_on_object": float(heads.mean()),
        "attention_on_object_by_nouns": float(nouns.mean.mean()),
        "attention_of_best_head_by_nouns": float(nouns.mean.max()),
        "attention_chance": mass.chance,
        "attention_times_chance": float(heads.mean() / mass.chance),
        "by_head": [
            {"layer": layer + 1, "head": head + 1, "on_object": float(on), "times_chance": float(on / mass.chance)}
            for (layer, head), on in np.ndenumerate(heads)
        ],
    }
