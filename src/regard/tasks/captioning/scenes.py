"""Drawn scenes with their captions, to learn from: made when they are asked for, never stored, never twice the same."""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.data.batches import Position, num_samples
from regard.synthetic.scenes.captions import captions
from regard.synthetic.scenes.scene import Scenes
from regard.tasks.captioning.dataset import CaptionBatch, Closing
from regard.tasks.translation.task import TargetTokenizer

WORLD = 0  # the seed of the scenes kept out, the same for every run
POSITIONS = {1: 27}  # of the longest canonical caption, its end counted: four things and three relations
MORE = 48  # of the longest paraphrase


class CaptionedScenes:
    """Scenes of the training part without end, and so many of the held-out part; `cells` are a picture's positions."""

    def __init__(self, tokenizer: TargetTokenizer, *, side: int, cells: int, validation: int, several: int = 1) -> None:
        self.tokenizer, self.side, self.cells, self.several = tokenizer, side, cells, several
        self.validation = validation
        self.closing = Closing(tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)

    def training_batches(
        self, *, max_tokens: int, seed: int, start: Position
    ) -> Iterator[tuple[Position, CaptionBatch]]:
        """Scenes of its own for each step: which, and which of their captions, is a pure function of (seed, step)."""
        scenes, rows, step = Scenes(seed, "training", self.side), self._rows(max_tokens), start.index
        while True:
            chosen = num_samples(rows, seed, step, 0) % np.uint64(self.several)
            batch = self._batch(scenes, range(step * rows, (step + 1) * rows), chosen.tolist())
            step += 1
            yield Position(start.epoch, step), batch

    def batches_an_epoch(self, *, max_tokens: int, seed: int) -> None:
        """Scenes are drawn without end."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[CaptionBatch]:
        """The held-out scenes, or the first `most`; what is asked for is the caption that says it all."""
        scenes, rows = Scenes(WORLD, "validation", self.side), self._rows(max_tokens)
        count = self.validation if most is None else min(most, self.validation)
        for start in range(0, count, rows):
            indices = range(start, min(start + rows, count))
            yield self._batch(scenes, indices, [0] * len(indices))

    def _rows(self, max_tokens: int) -> int:
        return max(1, max_tokens // (self.cells + POSITIONS.get(self.several, MORE)))

    def _batch(self, scenes: Scenes, indices: Sequence[int], chosen: Sequence[int]) -> CaptionBatch:
        drawn = [scenes[index] for index in indices]
        said = [[" ".join(one.words) for one in captions(scene, self.several)] for scene in drawn]
        ids = self.tokenizer.encode_batch([texts[number] for texts, number in zip(said, chosen, strict=True)])
        return self.closing.batch(np.stack([scene.pixels() for scene in drawn]), ids, said)
