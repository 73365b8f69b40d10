"""ViLBERT on the built-in scenes: hidden words, hidden things, and captions that are true or false by a word.

    regard train vilbert -o runs/vilbert
    regard train vqa --from runs/vilbert -o runs/answers
    regard train vilbert -o runs/cells model.seeing.cells=8 model.seeing.patch=8

A thing is seen as the pixels of its box; with model.seeing.cells the picture is cut into so many by so many cells, and
no box needs to be known.
"""

from regard.data.image_text import PairingConfig
from regard.errors import ConfigError
from regard.models.vilbert import ViLBERTPretrainingConfig
from regard.recipes.run import Given, Recipe, Run
from regard.recipes.scene_text import SceneDataConfig, prepare_pairs
from regard.recipes.seeing import encoder_with
from regard.training.loop import TrainingConfig


def settings(given: Given) -> Run:
    if given.paths:
        raise ConfigError(f"vilbert learns from the built-in scenes; leave {given.paths[0]} out")
    fresh = given.start is None
    return Run(
        model=encoder_with(ViLBERTPretrainingConfig, given),
        task=PairingConfig(),
        data=SceneDataConfig(),
        training=TrainingConfig(
            steps=2000,
            batch_tokens=2048,
            optimizer="muon" if fresh else "adamw",
            learning_rate=3e-3 if fresh else 1e-4,
            warmup=100,
            schedule="linear",
            evaluate_every=500,
            evaluate_on=500,
            checkpoint_every=500,
        ),
    )


RECIPE = Recipe(
    "vilbert",
    settings,
    prepare_pairs,
    "a large red circle left of a small blue square",
    without_data="the built-in world of scenes",
    starts=True,
)
