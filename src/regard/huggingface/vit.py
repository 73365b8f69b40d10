"""ViT, the Vision Transformer: a captioner can see by it.

A folder may hold more than a captioner sees by: a pooler, the classes of ImageNet, a word for hidden patches. Those are
named and left out. Files differ in whether the names begin with "vit.". Theirs keep queries, keys and values apart, and
the matrix of a patch in the shape of its pixels. Which mean and deviation its colors have, preprocessor_config.json
says.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.checkpoint import CONFIG, encode_tensors
from regard.errors import ConfigError, FolderError
from regard.files import encode_json, read_json
from regard.huggingface.folder import WEIGHTS, all_used, take, weights
from regard.huggingface.language import ACTIVATIONS, Activation, TextConfig, activation_name
from regard.huggingface.names import Names
from regard.layers.vision_transformer import VisionTransformer, ViTConfig
from regard.models.captioner import CaptionerConfig

logger = logging.getLogger(__name__)

KINDS = ("captioner",)
PREFIX = "vit."
COLORS = "preprocessor_config.json"
BYTE = 1 / 255  # what a color of a picture is multiplied by, before its mean is taken away
NAMES = Names(
    whole={
        "first": "embeddings.cls_token",
        "positions.weight": "embeddings.position_embeddings",
        "patch.weight": "embeddings.patch_embeddings.projection.weight",
        "patch.bias": "embeddings.patch_embeddings.projection.bias",
        "norm.weight": "layernorm.weight",
        "norm.bias": "layernorm.bias",
    },
    block="encoder.layer.{}.",
    parts={
        "norm_attention": ("layernorm_before",),
        "attention.project": ("attention.attention.query", "attention.attention.key", "attention.attention.value"),
        "attention.output": ("attention.output.dense",),
        "norm_feed_forward": ("layernorm_after",),
        "feed_forward.expand": ("intermediate.dense",),
        "feed_forward.contract": ("output.dense",),
    },
)
UNSEEN = ("pooler.", "classifier.", "decoder.", "embeddings.mask_token")  # of other uses than to see a picture's cells


class ViTFolderConfig(TextConfig):
    """config.json of a ViT folder; the defaults are those of `transformers`."""

    model_type: Literal["vit"]
    hidden_size: int = Field(768, ge=1)
    num_hidden_layers: int = Field(12, ge=1)
    num_attention_heads: int = Field(12, ge=1)
    intermediate_size: int = Field(3072, ge=1)
    hidden_act: Activation = "gelu"
    hidden_dropout_prob: float = Field(0.0, ge=0, lt=1)
    layer_norm_eps: float = Field(1e-12, gt=0)
    image_size: int = Field(224, ge=4)
    patch_size: int = Field(16, ge=2)
    qkv_bias: bool = True
    # Must be so: regard has no other.
    num_channels: Literal[3] = 3
    # What changes nothing once a model is trained, and what is said of parts that are left out.
    attention_probs_dropout_prob: float | None = None
    encoder_stride: int | None = None
    pooler_output_size: int | None = None
    pooler_act: str | None = None


class Sight(NamedTuple):
    """What a ViT is, and of which sides its pictures and cells are."""

    vit: ViTConfig
    side: int
    cell: int

    def build(self) -> VisionTransformer:
        return VisionTransformer(self.vit, image_size=self.side, cell_size=self.cell)


# ------------------------------------------------ theirs to ours


def load(folder: Path, config: Mapping[str, Any]) -> NoReturn:
    """What a whole model is made of, a ViT alone is not."""
    raise FolderError(
        f"{folder} is a ViT, which sees and says nothing; "
        f"to have it speak: regard train captioner PHOTOS/ CAPTIONS --from {folder}"
    )


def read_sight(folder: Path) -> Sight:
    """What the folder says of itself; FolderError if it is no ViT, or one that regard cannot follow."""
    path = folder / CONFIG
    if not path.is_file():
        raise FolderError(f"{folder} has no {CONFIG}; wanted a Hugging Face folder of a ViT")
    found = read_json(path)
    if found.get("model_type") != "vit":
        kind = found.get("model_type", found.get("kind"))
        raise FolderError(f"{folder} is a {kind}, wanted a Hugging Face folder of a ViT (model_type vit)")
    theirs = ViTFolderConfig.read(found, path)
    if theirs.image_size % theirs.patch_size:
        raise FolderError(f"{path}: image_size {theirs.image_size} is no multiple of patch_size {theirs.patch_size}")
    if theirs.hidden_size % theirs.num_attention_heads:
        raise FolderError(
            f"{path}: hidden_size {theirs.hidden_size} does not divide into {theirs.num_attention_heads} heads"
        )
    return Sight(to_ours(theirs, *_colors(folder)), theirs.image_size, theirs.patch_size)


def to_ours(theirs: ViTFolderConfig, mean: Any, deviation: Any) -> ViTConfig:
    return ViTConfig(
        width=theirs.hidden_size,
        heads=theirs.num_attention_heads,
        layers=theirs.num_hidden_layers,
        feed_forward=theirs.intermediate_size,
        activation=ACTIVATIONS[theirs.hidden_act],
        qkv_bias=theirs.qkv_bias,
        norm_epsilon=theirs.layer_norm_eps,
        dropout=theirs.hidden_dropout_prob,
        mean=mean,
        deviation=deviation,
    )


def _colors(folder: Path) -> tuple[Any, Any]:
    """Mean and deviation of the colors; where the folder says nothing, those of `transformers`."""
    path = folder / COLORS
    said = read_json(path) if path.is_file() else {}
    if not said.get("do_rescale", True) or abs(said.get("rescale_factor", BYTE) - BYTE) > 1e-9:
        raise FolderError(f"{path}: colors are not brought to 0 to 1 (rescale_factor 1/255); regard knows no other way")
    if not said.get("do_normalize", True):
        return (0.0,) * 3, (1.0,) * 3
    found = [said.get(key, [0.5] * 3) for key in ("image_mean", "image_std")]
    for key, three in zip(("image_mean", "image_std"), found, strict=True):
        numbers = isinstance(three, list) and len(three) == 3 and all(isinstance(one, int | float) for one in three)
        if not numbers or (key == "image_std" and min(three) <= 0):
            raise FolderError(f"{path}: {key} is {three!r}, wanted three numbers, of red, green and blue")
    return tuple(found[0]), tuple(found[1])


def read_weights(folder: Path, sight: Sight) -> tuple[dict[str, Tensor], list[str]]:
    """The weights under our names, each used; and what the folder has beside them, which is left out."""
    where = str(folder / WEIGHTS)
    found = weights(folder)
    found = {name.removeprefix(PREFIX): found[name] for name in found}
    left_out = sorted(name for name in found if name.startswith(UNSEEN))
    for name in left_out:
        del found[name]
    with torch.device("meta"):
        wanted = sight.build().state_dict()
    shapes = to_theirs(wanted, sight)
    taken = take(found, {name: name for name in shapes}, shapes, where)
    all_used(found, where)
    ours = {name: tensor.view(wanted[name].shape) for name, tensor in NAMES.to_ours(taken, wanted).items()}
    return ours, [f"{where}: {', '.join(left_out)}: left out, a captioner sees without"] if left_out else []


# ------------------------------------------------ ours to theirs


def files(model: nn.Module, tokenizer: Any) -> dict[str, bytes]:
    """The encoder of a captioner as the files of a ViT folder; what writes the captions has no counterpart there."""
    config = model.config
    assert isinstance(config, CaptionerConfig)
    if config.vit is None:
        raise ConfigError(
            f"a captioner that sees by {config.encoder} has no counterpart at Hugging Face; "
            "of one that began with --from a ViT, that ViT is written"
        )
    logger.warning("the ViT is written; what writes the captions is left out, it has no counterpart there")
    sight = Sight(config.vit, config.image_size, config.cell_size)
    tensors = to_theirs(model.encoder.transformer.state_dict(), sight)  # type: ignore[union-attr]
    return {
        CONFIG: encode_json(_config(sight)),
        COLORS: encode_json(_preprocessor(sight)),
        WEIGHTS: encode_tensors(tensors, {"format": "pt"}),
    }


def to_theirs(ours: Mapping[str, Tensor], sight: Sight) -> dict[str, Tensor]:
    """Weights under their names; on the meta device, the shapes a file must have."""
    found = NAMES.to_theirs(ours, {"attention.project": [sight.vit.width] * 3})
    shapes: dict[str, tuple[int, ...]] = {
        "first": (1, 1, -1),
        "positions.weight": (1, -1, sight.vit.width),
        "patch.weight": (-1, 3, sight.cell, sight.cell),
    }
    return found | {NAMES.whole[name]: ours[name].view(shape) for name, shape in shapes.items()}


def _config(sight: Sight) -> dict[str, Any]:
    vit = sight.vit
    return {
        "model_type": "vit",
        "architectures": ["ViTModel"],
        "hidden_size": vit.width,
        "num_hidden_layers": vit.layers,
        "num_attention_heads": vit.heads,
        "intermediate_size": vit.feed_forward,
        "hidden_act": activation_name(vit.activation),
        "hidden_dropout_prob": vit.dropout,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": vit.norm_epsilon,
        "image_size": sight.side,
        "patch_size": sight.cell,
        "num_channels": 3,
        "qkv_bias": vit.qkv_bias,
        "dtype": "float32",
    }


def _preprocessor(sight: Sight) -> dict[str, Any]:
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": sight.side, "width": sight.side},
        "resample": 3,  # bicubic, as here
        "do_rescale": True,
        "rescale_factor": BYTE,
        "do_normalize": True,
        "image_mean": list(sight.vit.mean),
        "image_std": list(sight.vit.deviation),
    }
