"""A captioner that looks where it speaks of: on drawn scenes, or on your own pictures and captions.

    regard train captioner -o runs/captioner                                        drawn scenes, an LSTM that looks
    regard train captioner model.decoder=transformer model.layers=2 -o runs/c2      the same with a Transformer
    regard train captioner photos/ captions.jsonl -o runs/mine                      your own
    regard train captioner photos/ captions.jsonl --from path/to/vit -o runs/v      seeing by a ViT that has learned to

On scenes: 0.7 million parameters, at most ten minutes, the schedule with them. With the LSTM and training.minutes=5,
818 steps on two cores: 98.9 % of 1,000 held-out scenes, each with a pair of things that no training scene has, got
exactly their caption, and 3.7 times as much attention as by chance fell on the thing a word speaks of. Ten minutes,
1,326 steps on a busy machine, gave 99.6 % and 5.3 times, before the windows of the halving convolutions were two by
two. The Transformer with training.minutes=none training.steps=1600, of which one core did five a second: 99.1 % of them
exactly, and 5.4 times as much attention as by chance, 3.8 times in the first layer and 6.9 in the second.

The captions of your pictures are a file: .jsonl, .tsv, .csv, Flickr8k's and Flickr30k's own, or COCO's .json.

--from takes a Hugging Face folder of a ViT. Pictures have its side and cells then, all of it learns on, slowly, and
`regard export` writes it again as it is after that.
"""

from pathlib import Path

from regard.huggingface.hub import find
from regard.huggingface.vit import read_sight
from regard.models.captioner import CaptionerConfig
from regard.tasks.captioning.data import EXAMPLE, WITHOUT_DATA, prepare
from regard.tasks.captioning.dataset import CaptionDataConfig
from regard.tasks.captioning.task import CaptioningConfig
from regard.tasks.recipe import Given, Recipe, Run
from regard.training.loop import TrainingConfig


def settings(given: Given) -> Run:
    run = on_pictures() if given.paths else on_scenes()
    return run if given.start is None else with_vit(run, find(given.start))


def on_scenes() -> Run:
    """Ten minutes on two cores."""
    return Run(
        model=CaptionerConfig(vocab_size=320, width=128, heads=4, feed_forward=256),
        task=CaptioningConfig(),
        # Whole words, so that each has a look of its own.
        data=CaptionDataConfig(whole_words=60),
        training=TrainingConfig(
            steps=3000,
            minutes=10,
            max_tokens=32 * (64 + 27),  # 32 scenes
            optimizer="muon",
            learning_rate=1e-2,
            warmup=50,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )


def on_pictures() -> Run:
    """Some thousands of photographs, such as Flickr8k, on a laptop."""
    return Run(
        model=CaptionerConfig(
            vocab_size=4000, side=128, cell=16, width=256, heads=4, blocks=1, feed_forward=512, dropout=0.3
        ),
        task=CaptioningConfig(doubly_stochastic=0.1),
        data=CaptionDataConfig(whole_words=2500),
        training=TrainingConfig(
            steps=6000,
            minutes=60,
            max_tokens=4096,
            optimizer="muon",
            learning_rate=3e-3,
            warmup=100,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
            patience=6,
        ),
    )


def with_vit(run: Run, folder: Path) -> Run:
    """The same, seeing by the ViT of a folder; what was learned before changes slowly."""
    vit, side, cell = read_sight(folder)
    model = run.model.model_copy(update={"encoder": "vit", "vit": vit, "side": side, "cell": cell})
    slowly = {"optimizer": "adamw", "learning_rate": 1e-4}
    return run.model_copy(update={"model": model, "training": run.training.model_copy(update=slowly)})


RECIPE = Recipe("captioner", settings, prepare, EXAMPLE, without_data=WITHOUT_DATA, starts=True)
