"""Scenes of the built-in world as a model sees them."""

from collections.abc import Iterable
from itertools import product

from regard.data.regions import ImageRegions, Regions, crop_regions, grid_regions
from regard.errors import ConfigError
from regard.models.vilbert import SeeingConfig
from regard.synthetic.scenes.objects import COLORS, SHAPES, SIZES, TEXTURES
from regard.synthetic.scenes.scene import Scene

# The kinds of region, which a hidden one is guessed among, and one that is seen told: all that can be said of a thing.
Traits = tuple[str, str, str, str]
KINDS: dict[Traits, int] = {traits: number for number, traits in enumerate(product(COLORS, SHAPES, SIZES, TEXTURES))}


def scene_regions(scene: Scene, seeing: SeeingConfig) -> ImageRegions:
    """The whole picture, then each thing in its box with its kind; or, where a model sees cells, those."""
    if seeing.patch is None:
        raise ConfigError(
            f"model.seeing.features={seeing.features}: scenes are seen as pixels; give model.seeing.patch=16 instead"
        )
    if seeing.cells:
        return grid_regions(scene.pixels(), seeing.cells, seeing.patch)
    kinds = [KINDS[thing.color, thing.shape, thing.size, thing.texture] for thing in scene.things]
    return crop_regions(scene.pixels(), [thing.box for thing in scene.things], seeing.patch, kinds)


def regions_of_scenes(scenes: Iterable[Scene], seeing: SeeingConfig) -> Regions:
    return Regions(scene_regions(scene, seeing) for scene in scenes)
