"""Scenes of the built-in world as a model sees them."""

from collections.abc import Iterable
from itertools import product

from regard.data.regions import ImageRegions, Regions, crop_regions, grid_regions
from regard.errors import ConfigError
from regard.models.vilbert import VisionConfig
from regard.synthetic.scenes.objects import COLORS, SHAPES, SIZES, TEXTURES
from regard.synthetic.scenes.scene import Scene

# The kinds of region, which a hidden one is guessed among, and one that is seen told: all that can be said of a thing.
Traits = tuple[str, str, str, str]
KINDS: dict[Traits, int] = {traits: number for number, traits in enumerate(product(COLORS, SHAPES, SIZES, TEXTURES))}


def scene_regions(scene: Scene, vision: VisionConfig) -> ImageRegions:
    """The whole picture, then each thing in its box with its kind; or, where a model sees cells, those."""
    if vision.patch_size is None:
        raise ConfigError(
            f"model.vision.features={vision.features}: scenes are seen as pixels; give model.vision.patch_size=16"
        )
    if vision.grid:
        return grid_regions(scene.pixels(), vision.grid, vision.patch_size)
    kinds = [KINDS[thing.color, thing.shape, thing.size, thing.texture] for thing in scene.things]
    return crop_regions(scene.pixels(), [thing.box for thing in scene.things], vision.patch_size, kinds)


def regions_of_scenes(scenes: Iterable[Scene], vision: VisionConfig) -> Regions:
    return Regions(scene_regions(scene, vision) for scene in scenes)
