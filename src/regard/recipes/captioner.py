"""A captioner with attention over the image: on drawn scenes, or on your own images and captions.

    regard train captioner -o runs/captioner                                        drawn scenes, an LSTM decoder
    regard train captioner model.decoder=transformer model.layers=2 -o runs/c2      the same with a Transformer decoder
    regard train captioner photos/ captions.jsonl -o runs/mine                      your own images
    regard train captioner photos/ captions.jsonl --from path/to/vit -o runs/v      with a pretrained ViT as encoder

On scenes: 0.7 million parameters, at most ten minutes, and the learning-rate schedule follows the clock. With the LSTM
and training.minutes=5, 818 steps on two cores: 98.9 % of 1,000 held-out scenes, each with a pair of objects that no
training scene has, got exactly their caption, and the object that a word names got 3.7 times as much attention as by
chance. Ten minutes, 1,326 steps on a busy machine, gave 99.6 % and 5.3 times, before the windows of the halving
convolutions were two by two. The Transformer with training.minutes=none training.steps=1600, five steps a second on one
core: 99.1 % of them exactly, and 5.4 times as much attention as by chance, 3.8 times in the first layer and 6.9 in the
second.

The captions of your images are a file: .jsonl, .tsv, .csv, those of Flickr8k and Flickr30k, or COCO's .json.

--from takes a Hugging Face folder of a ViT. Images then have its size and grid, all of it is fine-tuned with a low
learning rate, and `regard export` writes the fine-tuned ViT.
"""

from pathlib import Path

from regard.huggingface.hub import find
from regard.huggingface.vit import read_vit_config
from regard.models.captioner import CaptionerConfig
from regard.tasks.captioning.data import DEFAULT_DATA, EXAMPLE, CaptionDataConfig, CaptioningRun, prepare
from regard.tasks.captioning.task import CaptioningConfig
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.training.config import TrainingConfig


def settings(inputs: TrainingInputs) -> CaptioningRun:
    run = on_images() if inputs.paths else on_scenes()
    return run if inputs.pretrained is None else with_vit(run, find(inputs.pretrained))


def on_scenes() -> CaptioningRun:
    """Ten minutes on two cores."""
    return CaptioningRun(
        model=CaptionerConfig(vocab_size=320, width=128, heads=4, feed_forward=256),
        task=CaptioningConfig(),
        # Whole words, so that each has its own attention weights.
        data=CaptionDataConfig(whole_word_tokens=60),
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


def on_images() -> CaptioningRun:
    """Some thousands of photographs, such as Flickr8k, on a laptop."""
    return CaptioningRun(
        model=CaptionerConfig(
            vocab_size=4000,
            image_size=128,
            cell_size=16,
            width=256,
            heads=4,
            encoder_blocks=1,
            feed_forward=512,
            dropout=0.3,
        ),
        task=CaptioningConfig(doubly_stochastic=0.1),
        data=CaptionDataConfig(whole_word_tokens=2500),
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


def with_vit(run: CaptioningRun, folder: Path) -> CaptioningRun:
    """The same with the ViT of a folder as encoder, and a low learning rate for it."""
    vit, side, cell = read_vit_config(folder)
    model = run.model.model_copy(update={"encoder": "vit", "vit": vit, "image_size": side, "cell_size": cell})
    slow = {"optimizer": "adamw", "learning_rate": 1e-4}
    return run.model_copy(update={"model": model, "training": run.training.model_copy(update=slow)})


RECIPE = Recipe(
    "captioner", settings, prepare, EXAMPLE, default_data=DEFAULT_DATA, accepts_pretrained=True, takes_image=True
)
