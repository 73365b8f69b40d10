"""ViT, the Vision Transformer, as the image encoder of a captioner.

A folder may contain parts that a captioner does not use: a pooler, an ImageNet classifier, a mask token. They are named
and left out. Names may or may not start with "vit.". The folder has separate matrices for queries, keys and values, and
the patch embedding as a convolution. preprocessor_config.json has the mean and standard deviation of the pixels.
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
from regard.layers.vision.vision_transformer import VisionTransformer, ViTConfig
from regard.models.captioner import CaptionerConfig

logger = logging.getLogger(__name__)

KINDS = ("captioner",)
PREFIX = "vit."
PREPROCESSOR = "preprocessor_config.json"
RESCALE_FACTOR = 1 / 255  # of pixels, before normalization
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
UNUSED = ("pooler.", "classifier.", "decoder.", "embeddings.mask_token")


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
    # Other values are not supported.
    num_channels: Literal[3] = 3
    # Keys without effect on a trained model, and keys of parts that are left out.
    attention_probs_dropout_prob: float | None = None
    encoder_stride: int | None = None
    pooler_output_size: int | None = None
    pooler_act: str | None = None


class ViTSpec(NamedTuple):
    """The config of a ViT with the sides of its images and patches, in pixels."""

    vit: ViTConfig
    side: int
    cell: int

    def build(self) -> VisionTransformer:
        return VisionTransformer(self.vit, image_size=self.side, cell_size=self.cell)


# ------------------------------------------------ theirs to ours


def load(folder: Path, config: Mapping[str, Any]) -> NoReturn:
    """FolderError: a ViT alone is not a model with a task."""
    raise FolderError(
        f"{folder} is a ViT, an image encoder without a task; "
        f"to train a captioner with it: regard train captioner PHOTOS/ CAPTIONS --from {folder}"
    )


def read_vit_config(folder: Path) -> ViTSpec:
    """Read config.json and preprocessor_config.json of a ViT folder."""
    path = folder / CONFIG
    if not path.is_file():
        raise FolderError(f"{folder} has no {CONFIG}; wanted a Hugging Face folder of a ViT")
    found = read_json(path)
    if found.get("model_type") != "vit":
        kind = found.get("model_type", found.get("kind"))
        raise FolderError(f"{folder} is a {kind}, wanted a Hugging Face folder of a ViT (model_type vit)")
    theirs = ViTFolderConfig.read(found, path)
    if theirs.image_size % theirs.patch_size:
        raise FolderError(f"{path}: image_size {theirs.image_size} is not a multiple of patch_size {theirs.patch_size}")
    if theirs.hidden_size % theirs.num_attention_heads:
        raise FolderError(
            f"{path}: hidden_size {theirs.hidden_size} does not divide into {theirs.num_attention_heads} heads"
        )
    return ViTSpec(to_ours(theirs, *_normalization(folder)), theirs.image_size, theirs.patch_size)


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


def _normalization(folder: Path) -> tuple[Any, Any]:
    """Mean and standard deviation of the pixels; by default those of `transformers`."""
    path = folder / PREPROCESSOR
    said = read_json(path) if path.is_file() else {}
    if not said.get("do_rescale", True) or abs(said.get("rescale_factor", RESCALE_FACTOR) - RESCALE_FACTOR) > 1e-9:
        raise FolderError(f"{path}: pixels are not rescaled to 0 to 1 (rescale_factor 1/255); regard supports no other")
    if not said.get("do_normalize", True):
        return (0.0,) * 3, (1.0,) * 3
    found = [said.get(key, [0.5] * 3) for key in ("image_mean", "image_std")]
    for key, three in zip(("image_mean", "image_std"), found, strict=True):
        numbers = isinstance(three, list) and len(three) == 3 and all(isinstance(one, int | float) for one in three)
        if not numbers or (key == "image_std" and min(three) <= 0):
            raise FolderError(f"{path}: {key} is {three!r}, wanted three numbers, for red, green and blue")
    return tuple(found[0]), tuple(found[1])


def read_weights(folder: Path, spec: ViTSpec) -> tuple[dict[str, Tensor], list[str]]:
    """The weights under our names, and notes on those that are left out."""
    where = str(folder / WEIGHTS)
    found = weights(folder)
    found = {name.removeprefix(PREFIX): found[name] for name in found}
    unused = sorted(name for name in found if name.startswith(UNUSED))
    for name in unused:
        del found[name]
    with torch.device("meta"):
        wanted = spec.build().state_dict()
    shapes = to_theirs(wanted, spec)
    taken = take(found, {name: name for name in shapes}, shapes, where)
    all_used(found, where)
    ours = {name: tensor.view(wanted[name].shape) for name, tensor in NAMES.to_ours(taken, wanted).items()}
    return ours, [f"{where}: {', '.join(unused)}: left out, a captioner does not use them"] if unused else []


# ------------------------------------------------ ours to theirs


def files(model: nn.Module, tokenizer: Any) -> dict[str, bytes]:
    """The image encoder of a captioner as the files of a ViT folder, without the decoder."""
    config = model.config
    assert isinstance(config, CaptionerConfig)
    if config.vit is None:
        raise ConfigError(
            f"a captioner with encoder={config.encoder} cannot be exported to Hugging Face; "
            "only the ViT of a captioner trained with --from a ViT can"
        )
    logger.warning("only the ViT is exported; the caption decoder has no counterpart at Hugging Face")
    spec = ViTSpec(config.vit, config.image_size, config.cell_size)
    tensors = to_theirs(model.encoder.transformer.state_dict(), spec)  # type: ignore[union-attr]
    return {
        CONFIG: encode_json(_config(spec)),
        PREPROCESSOR: encode_json(_preprocessor(spec)),
        WEIGHTS: encode_tensors(tensors, {"format": "pt"}),
    }


def to_theirs(ours: Mapping[str, Tensor], spec: ViTSpec) -> dict[str, Tensor]:
    """Weights under their names; on the meta device, the shapes a file must have."""
    found = NAMES.to_theirs(ours, {"attention.project": [spec.vit.width] * 3})
    shapes: dict[str, tuple[int, ...]] = {
        "first": (1, 1, -1),
        "positions.weight": (1, -1, spec.vit.width),
        "patch.weight": (-1, 3, spec.cell, spec.cell),
    }
    return found | {NAMES.whole[name]: ours[name].view(shape) for name, shape in shapes.items()}


def _config(spec: ViTSpec) -> dict[str, Any]:
    vit = spec.vit
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
        "image_size": spec.side,
        "patch_size": spec.cell,
        "num_channels": 3,
        "qkv_bias": vit.qkv_bias,
        "dtype": "float32",
    }


def _preprocessor(spec: ViTSpec) -> dict[str, Any]:
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": spec.side, "width": spec.side},
        "resample": 3,  # bicubic, as in training
        "do_rescale": True,
        "rescale_factor": RESCALE_FACTOR,
        "do_normalize": True,
        "image_mean": list(spec.vit.mean),
        "image_std": list(spec.vit.deviation),
    }
