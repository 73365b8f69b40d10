"""GPT2LMHeadModel, the family of GPT-2 and DistilGPT2: our GPT under other weight names.

Its matrices are stored (in, out), the transpose of ours. Names may or may not start with "transformer.", and old files
contain the causal mask of every layer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.checkpoint import CONFIG, assign_weights
from regard.errors import ConfigError, FolderError
from regard.huggingface.folder import WEIGHTS, Loaded, all_used, drop_copies, take, weights
from regard.huggingface.language import (
    ACTIVATIONS,
    TASK,
    Activation,
    TextConfig,
    activation_name,
    folder_files,
    read_tokenizer,
)
from regard.huggingface.names import Names
from regard.models.base import CausalLMIds
from regard.models.gpt import GPT, GPTConfig

KINDS = ("gpt",)
PREFIX = "transformer."
NAMES = Names(
    whole={
        "embedding.weight": f"{PREFIX}wte.weight",
        "positions.weight": f"{PREFIX}wpe.weight",
        "norm.weight": f"{PREFIX}ln_f.weight",
        "norm.bias": f"{PREFIX}ln_f.bias",
        "output.weight": "lm_head.weight",
    },
    block=f"{PREFIX}h.{{}}.",
    parts={
        "norm_attention": ("ln_1",),
        "attention.project": ("attn.c_attn",),
        "attention.output": ("attn.c_proj",),
        "norm_feed_forward": ("ln_2",),
        "feed_forward.expand": ("mlp.c_fc",),
        "feed_forward.contract": ("mlp.c_proj",),
    },
)
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # stored (in, out)


class GPT2Config(TextConfig):
    """config.json of a GPT-2 folder; the defaults are those of `transformers`."""

    model_type: Literal["gpt2"]
    vocab_size: int = Field(50257, ge=2)
    n_positions: int = Field(1024, ge=1)
    n_embd: int = Field(768, ge=1)
    n_layer: int = Field(12, ge=1)
    n_head: int = Field(12, ge=1)
    n_inner: int | None = Field(None, ge=1)
    activation_function: Activation = "gelu_new"
    layer_norm_epsilon: float = Field(1e-5, gt=0)
    resid_pdrop: float = Field(0.1, ge=0, lt=1)
    tie_word_embeddings: bool = True
    # Other values are not supported.
    scale_attn_weights: Literal[True] = True
    scale_attn_by_inverse_layer_idx: Literal[False] = False
    add_cross_attention: Literal[False] = False
    # Keys without effect on a trained model, and leftovers of older versions.
    reorder_and_upcast_attn: bool = False  # only the order of the same operations
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    n_ctx: int | None = None
    n_special: int | None = None
    predict_special_tokens: bool | None = None
    summary_type: str | None = None
    summary_use_proj: bool | None = None
    summary_activation: str | None = None
    summary_proj_to_labels: bool | None = None
    summary_first_dropout: float | None = None
    gradient_checkpointing: bool | None = None
    afn: str | None = None


def load(folder: Path, config: Mapping[str, Any]) -> Loaded:
    """Read a GPT-2 folder."""
    where = str(folder / WEIGHTS)
    theirs = GPT2Config.read(config, folder / CONFIG)
    text = read_tokenizer(folder, theirs, theirs.vocab_size)
    model_config = to_ours(theirs, folder / CONFIG, text.special_ids)
    with torch.device("meta"):
        model = GPT(model_config)
    wanted = _transpose(NAMES.to_theirs(model.state_dict(), {}))
    found = _add_prefix(weights(folder))
    _drop_masks(found, model_config, where)
    taken = _transpose(take(found, {name: name for name in wanted}, wanted, where))
    ours = NAMES.to_ours(taken, model.state_dict())
    if model_config.tie_embeddings:
        drop_copies(found, {"lm_head.weight": ours["embedding.weight"]}, where)
    all_used(found, where)
    assign_weights(model, ours, where)
    return Loaded("gpt", TASK, model.eval(), text.tokenizer, notes=text.notes)


def _add_prefix(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Files of GPT2Model, without the head, have no prefix."""
    if any(name.startswith(PREFIX) for name in found):
        return found
    return {name if name == "lm_head.weight" else PREFIX + name: found.pop(name) for name in list(found)}


def _drop_masks(found: dict[str, Tensor], model_config: GPTConfig, where: str) -> None:
    """Old files contain the causal mask of every layer, and the number used for minus infinity."""
    attentions = [f"{PREFIX}h.{number}.attn." for number in range(model_config.layers)]
    full = (1, 1, model_config.context, model_config.context)
    for name in attentions:
        mask = found.get(f"{name}bias")
        if mask is not None:  # sized by the file, whatever its config.json says
            side = model_config.context if mask.shape == full else 0
            triangle = torch.ones(side, side, dtype=torch.bool).tril()[None, None]
            drop_copies(found, {f"{name}bias": triangle}, where)
        found.pop(f"{name}masked_bias", None)


def _transpose(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """From (in, out) to (out, in) and back."""
    return {
        name: tensor.t().contiguous() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor
        for name, tensor in tensors.items()
    }


def to_ours(theirs: GPT2Config, path: Path, special_ids: CausalLMIds) -> GPTConfig:
    try:
        return GPTConfig(
            vocab_size=theirs.vocab_size,
            context=theirs.n_positions,
            width=theirs.n_embd,
            heads=theirs.n_head,
            layers=theirs.n_layer,
            feed_forward=theirs.n_inner,
            activation=ACTIVATIONS[theirs.activation_function],
            tie_embeddings=theirs.tie_word_embeddings,
            dropout=theirs.resid_pdrop,
            norm_epsilon=theirs.layer_norm_epsilon,
            special_ids=special_ids,
        )
    except ConfigError as error:
        raise FolderError(f"{path}: {error}") from error


def to_theirs(ours: GPTConfig) -> dict[str, Any]:
    """config.json for one of our models, without the ids of its tokenizer."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": ours.vocab_size,
        "n_positions": ours.context,
        "n_embd": ours.width,
        "n_layer": ours.layers,
        "n_head": ours.heads,
        "n_inner": ours.feed_forward,
        "activation_function": activation_name(ours.activation),
        "layer_norm_epsilon": ours.norm_epsilon,
        "resid_pdrop": ours.dropout,
        "embd_pdrop": ours.dropout,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": ours.tie_embeddings,
    }


def files(model: nn.Module, tokenizer: Any) -> dict[str, bytes]:
    """A GPT as the files of a GPT-2 folder."""
    assert isinstance(model, GPT)
    found = _transpose(NAMES.to_theirs(model.state_dict(), {}))
    return folder_files(to_theirs(model.config), found, tokenizer)
