"""LlamaForCausalLM, the family of Llama and SmolLM2, and Qwen2ForCausalLM: our Llama under other weight names.

They have separate matrices for queries, keys and values, and for gate and up; ours are fused. Qwen2 differs from Llama
by the biases of queries, keys and values.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError
from torch import Tensor, nn

from regard.checkpoint import CONFIG, assign_weights
from regard.errors import ConfigError, FolderError
from regard.huggingface.folder import WEIGHTS, ForeignConfig, Loaded, all_used, drop_copies, take, weights
from regard.huggingface.language import TASK, TextConfig, folder_files, read_tokenizer
from regard.huggingface.names import Names, Rows
from regard.models.base import CausalLMIds
from regard.models.llama import Llama, LlamaConfig, RopeScalingConfig

KINDS = ("llama",)
DEFAULT_ROPE_THETA = 10_000.0  # as in `transformers`
NAMES = Names(
    whole={
        "embedding.weight": "model.embed_tokens.weight",
        "norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    },
    block="model.layers.{}.",
    parts={
        "norm_attention": ("input_layernorm",),
        "attention.project": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.output": ("self_attn.o_proj",),
        "norm_feed_forward": ("post_attention_layernorm",),
        "feed_forward.expand": ("mlp.gate_proj", "mlp.up_proj"),
        "feed_forward.contract": ("mlp.down_proj",),
    },
)


class PlainRope(ForeignConfig):
    """rope_parameters, or rope_scaling of older folders, without scaling."""

    rope_type: Literal["default"] = "default"
    rope_theta: float | None = Field(None, gt=0)
    partial_rotary_factor: Literal[1] | None = None


class Llama3Rope(PlainRope):
    """The RoPE scaling of Llama 3."""

    rope_type: Literal["llama3"]  # type: ignore[assignment]
    factor: float = Field(ge=1)
    low_freq_factor: float = Field(gt=0)
    high_freq_factor: float = Field(gt=0)
    original_max_position_embeddings: int = Field(ge=1)


ROPES: dict[str, type[PlainRope]] = {"default": PlainRope, "llama3": Llama3Rope}


class RotaryConfig(TextConfig):
    """Keys that config.json of both families has."""

    vocab_size: int = Field(ge=2)
    hidden_size: int = Field(ge=1)
    intermediate_size: int = Field(ge=1)
    num_hidden_layers: int = Field(ge=1)
    num_attention_heads: int = Field(ge=1)
    num_key_value_heads: int | None = Field(None, ge=1)
    head_dim: int | None = Field(None, ge=1)
    max_position_embeddings: int = Field(ge=1)
    rms_norm_eps: float = Field(1e-6, gt=0)
    tie_word_embeddings: bool = False
    rope_theta: float = Field(DEFAULT_ROPE_THETA, gt=0)
    rope_parameters: dict[str, Any] | None = None
    rope_scaling: dict[str, Any] | None = None
    # Other values are not supported.
    hidden_act: Literal["silu", "swish"] = "silu"
    rope_interleaved: Literal[False] = False
    # Keys without effect on a trained model.
    attention_dropout: float | None = None


class LlamaFolderConfig(RotaryConfig):
    """config.json of a Llama folder; the defaults are those of `transformers`."""

    model_type: Literal["llama"]
    vocab_size: int = Field(32000, ge=2)
    hidden_size: int = Field(4096, ge=1)
    intermediate_size: int = Field(11008, ge=1)
    num_hidden_layers: int = Field(32, ge=1)
    num_attention_heads: int = Field(32, ge=1)
    max_position_embeddings: int = Field(2048, ge=1)
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    pretraining_tp: int | None = None  # how matrix products are split, not their result
    is_llama_config: bool | None = None


class Qwen2FolderConfig(RotaryConfig):
    """config.json of a Qwen2 folder; the defaults are those of `transformers`."""

    model_type: Literal["qwen2"]
    vocab_size: int = Field(151936, ge=2)
    hidden_size: int = Field(4096, ge=1)
    intermediate_size: int = Field(22016, ge=1)
    num_hidden_layers: int = Field(32, ge=1)
    num_attention_heads: int = Field(32, ge=1)
    num_key_value_heads: int | None = Field(32, ge=1)
    max_position_embeddings: int = Field(32768, ge=1)
    use_sliding_window: Literal[False] = False
    layer_types: list[Literal["full_attention"]] | None = None
    use_mrope: Literal[False] | None = None
    # Without effect when use_sliding_window is false.
    sliding_window: int | None = None
    max_window_layers: int | None = None


CONFIGS: dict[str, type[LlamaFolderConfig] | type[Qwen2FolderConfig]] = {
    "llama": LlamaFolderConfig,
    "qwen2": Qwen2FolderConfig,
}


def load(folder: Path, config: Mapping[str, Any]) -> Loaded:
    """Read a Llama or Qwen2 folder."""
    where = str(folder / WEIGHTS)
    theirs = CONFIGS[config["model_type"]].read(config, folder / CONFIG)
    text = read_tokenizer(folder, theirs, theirs.vocab_size)
    model_config = to_ours(theirs, folder / CONFIG, text.special_ids)
    with torch.device("meta"):
        model = Llama(model_config)
    wanted = NAMES.to_theirs(model.state_dict(), rows(model_config))
    found = weights(folder)
    blocks = [NAMES.block.format(number) for number in range(model_config.layers)]
    rates: Tensor = model.positions.frequencies  # type: ignore[assignment]
    # Old files contain the rotary frequencies in every layer.
    drop_copies(found, {f"{block}self_attn.rotary_emb.inv_freq": rates for block in blocks}, where)
    ours = NAMES.to_ours(take(found, {name: name for name in wanted}, wanted, where), model.state_dict())
    if model_config.tie_embeddings:
        drop_copies(found, {"lm_head.weight": ours["embedding.weight"]}, where)
    all_used(found, where)
    assign_weights(model, ours, where)
    return Loaded("llama", TASK, model.eval(), text.tokenizer, notes=text.notes)


def rows(config: LlamaConfig) -> Rows:
    """The numbers of rows of our fused matrices: queries, keys and values; gate and up."""
    head = config.width // config.heads
    return {
        "attention.project": [config.heads * head, config.num_kv_heads * head, config.num_kv_heads * head],
        "feed_forward.expand": [config.feed_forward, config.feed_forward],
    }


def to_ours(theirs: LlamaFolderConfig | Qwen2FolderConfig, path: Path, special_ids: CausalLMIds) -> LlamaConfig:
    heads = theirs.num_attention_heads
    if theirs.head_dim not in (None, theirs.hidden_size // heads):
        raise FolderError(
            f"{path}: head_dim is {theirs.head_dim}, wanted hidden_size / num_attention_heads = "
            f"{theirs.hidden_size // heads}; regard has no other"
        )
    theta, rope_scaling = _rope(theirs, path)
    try:
        return LlamaConfig(
            vocab_size=theirs.vocab_size,
            context=theirs.max_position_embeddings,
            width=theirs.hidden_size,
            heads=heads,
            num_kv_heads=theirs.num_key_value_heads or heads,
            layers=theirs.num_hidden_layers,
            feed_forward=theirs.intermediate_size,
            tie_embeddings=theirs.tie_word_embeddings,
            qkv_bias=isinstance(theirs, Qwen2FolderConfig),
            rope_theta=theta,
            rope_scaling=rope_scaling,
            norm_epsilon=theirs.rms_norm_eps,
            special_ids=special_ids,
        )
    except ConfigError as error:
        raise FolderError(f"{path}: {error}") from error


def _rope(theirs: RotaryConfig, path: Path) -> tuple[float, RopeScalingConfig | None]:
    """rope_theta and the RoPE scaling. The older of the two keys takes precedence, as in `transformers`."""
    key = "rope_scaling" if theirs.rope_scaling else "rope_parameters"
    own = dict(getattr(theirs, key) or {})
    old = own.pop("type", "default")  # the oldest name of rope_type
    own.setdefault("rope_type", old)
    rope = ROPES.get(own["rope_type"]) if isinstance(own["rope_type"], str) else None
    if rope is None:
        raise FolderError(f"{path}: {key}.rope_type is {own['rope_type']!r}, wanted one of {', '.join(ROPES)}")
    try:
        found = rope.model_validate(own)
    except ValidationError as error:
        first = error.errors()[0]
        raise FolderError(f"{path}: {'.'.join(map(str, (key, *first['loc'])))}: {first['msg']}") from error
    theta = found.rope_theta or theirs.rope_theta
    if not isinstance(found, Llama3Rope):
        return theta, None
    return theta, RopeScalingConfig(
        factor=found.factor,
        low_freq_factor=found.low_freq_factor,
        high_freq_factor=found.high_freq_factor,
        original_context=found.original_max_position_embeddings,
    )


def to_theirs(ours: LlamaConfig) -> dict[str, Any]:
    """config.json for one of our models, without the ids of its tokenizer; RoPE keys as all versions read them."""
    rope_scaling = ours.rope_scaling and {
        "rope_type": "llama3",
        "factor": ours.rope_scaling.factor,
        "low_freq_factor": ours.rope_scaling.low_freq_factor,
        "high_freq_factor": ours.rope_scaling.high_freq_factor,
        "original_max_position_embeddings": ours.rope_scaling.original_context,
    }
    return {
        "model_type": "qwen2" if ours.qkv_bias else "llama",
        "architectures": ["Qwen2ForCausalLM" if ours.qkv_bias else "LlamaForCausalLM"],
        "vocab_size": ours.vocab_size,
        "hidden_size": ours.width,
        "intermediate_size": ours.feed_forward,
        "num_hidden_layers": ours.layers,
        "num_attention_heads": ours.heads,
        "num_key_value_heads": ours.num_kv_heads,
        "max_position_embeddings": ours.context,
        "hidden_act": "silu",
        "rms_norm_eps": ours.norm_epsilon,
        "rope_theta": ours.rope_theta,
        "rope_scaling": rope_scaling,
        "tie_word_embeddings": ours.tie_embeddings,
    }


def files(model: nn.Module, tokenizer: Any) -> dict[str, bytes]:
    """A Llama as the files of a Llama folder, or of a Qwen2 folder if it has biases."""
    assert isinstance(model, Llama)
    found = NAMES.to_theirs(model.state_dict(), rows(model.config))
    return folder_files(to_theirs(model.config), found, tokenizer)
