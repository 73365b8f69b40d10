"""Scenes of the built-in world as a model sees them."""

from collections.abc import Iterable

from regard.data.regions import PictureRegions, Regions, boxed, grid
from regard.errors import ConfigError
from regard.models.vilbert import SeeingConfig
from regard.worlds.scene_things import COLORS, SHAPES
from regard.worlds.scenes import Scene

# The kinds of region, which a hidden one is guessed among.
KINDS = {(color, shape): number for number, (color, shape) in enumerate((c, s) for c in COLORS for s in SHAPES)}


def scene_regions(scene: Scene, seeing: SeeingConfig) -> PictureRegions:
    """The whole picture, then each thing in its box with its kind; or, where a model sees cells, those."""
    if seeing.patch is None:
        raise ConfigError(
            f"model.seeing.features={seeing.features}: scenes are seen as pixels; give model.seeing.patch=16 instead"
        )
    if seeing.cells:
        return grid(scene.pixels(), seeing.cells, seeing.patch)
    kinds = [KINDS[thing.kind] for thing in scene.things]
    return boxed(scene.pixels(), [thing.box for thing in scene.things], seeing.patch, kinds)


def regions_of_scenes(scenes: Iterable[Scene], seeing: SeeingConfig) -> Regions:
    return Regions(scene_regions(scene, seeing) for scene in scenes)
