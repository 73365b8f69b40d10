"""MarianMTModel, the family of OPUS-MT: our Transformer under other weight names.

Post-norm, sinusoidal positions with all sines first, embeddings scaled by √D, one embedding matrix shared by source,
target and output or one for each language, and a decoder that starts with the padding token, whose embedding is zero.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.checkpoint import CONFIG, TOKENIZER, assign_weights, encode_tensors
from regard.errors import ConfigError, FolderError
from regard.files import encode_json
from regard.huggingface.folder import (
    GENERATION,
    WEIGHTS,
    ForeignConfig,
    Loaded,
    all_used,
    drop_copies,
    take,
    weights,
)
from regard.huggingface.generation import generation_file, search_settings
from regard.layers.positions import sinusoidal_halves
from regard.models.base import SpecialIds
from regard.models.transformer import Transformer, TransformerConfig
from regard.tokenizers.bpe import EOS_TOKEN, PAD_TOKEN, UNK_TOKEN, BPETokenizer
from regard.tokenizers.sentencepiece import SOURCE, SentencePieceTokenizer

KINDS = ("transformer",)
TOKENIZER_CONFIG = "tokenizer_config.json"
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}


class MarianConfig(ForeignConfig):
    """config.json of a Marian folder; the defaults are those of `transformers`."""

    model_type: Literal["marian"]
    vocab_size: int = Field(58101, ge=4)
    decoder_vocab_size: int | None = Field(None, ge=4)
    d_model: int = Field(1024, ge=1)
    encoder_layers: int = Field(12, ge=1)
    decoder_layers: int = Field(12, ge=1)
    encoder_attention_heads: int = Field(16, ge=1)
    decoder_attention_heads: int = Field(16, ge=1)
    encoder_ffn_dim: int = Field(4096, ge=1)
    decoder_ffn_dim: int = Field(4096, ge=1)
    activation_function: Literal["swish", "silu", "relu", "gelu"] = "gelu"
    scale_embedding: bool = False
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    max_position_embeddings: int = Field(1024, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    pad_token_id: int = Field(58100, ge=0)
    eos_token_id: int = Field(0, ge=0)
    decoder_start_token_id: int = Field(58100, ge=0)
    # Other values are not supported.
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    add_final_layer_norm: Literal[False] = False
    add_final_layernorm: Literal[False] = False
    static_position_embeddings: Literal[True] = True
    is_encoder_decoder: Literal[True] = True
    is_decoder: Literal[False] = False
    # Decoding settings; generation_config.json takes precedence.
    num_beams: int | None = None
    max_length: int | None = None
    length_penalty: float | None = None
    bad_words_ids: list[list[int]] | None = None
    forced_eos_token_id: int | None = 0
    # Keys without effect on a trained model, repetitions of the above, and leftovers of older versions.
    extra_pos_embeddings: int | None = None
    tokenizer_class: str | None = None
    unk_token_id: int | None = None
    sep_token_id: int | None = None
    prefix: str | None = None
    problem_type: str | None = None
    task_specific_params: Any = None
    output_past: bool | None = None
    output_attentions: bool | None = None
    output_hidden_states: bool | None = None
    return_dict: bool | None = None
    do_blenderbot_90_layernorm: bool | None = None
    attn_implementation_autoset: bool | None = Field(None, alias="_attn_implementation_autoset")
    architectures: list[str] | None = None
    bos_token_id: int | None = None
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    encoder_layerdrop: float = 0.0
    decoder_layerdrop: float = 0.0
    init_std: float = 0.02
    num_hidden_layers: int | None = None
    add_bias_logits: bool = False
    use_cache: bool = True
    force_bos_token_to_be_generated: bool = False
    gradient_checkpointing: bool = False
    classifier_dropout: float = 0.0
    classif_dropout: float = 0.0
    id2label: dict[str, str] | None = None
    label2id: dict[str, int] | None = None
    num_labels: int | None = None
    dtype: str | None = None
    torch_dtype: str | None = None
    transformers_version: str | None = None
    name_or_path: str | None = Field(None, alias="_name_or_path")
    old_num_labels: int | None = Field(None, alias="_num_labels")


def load(folder: Path, config: Mapping[str, Any]) -> Loaded:
    """Read a Marian folder."""
    where = str(folder / WEIGHTS)
    theirs = MarianConfig.read(config, folder / CONFIG)
    found = weights(folder)
    bias = _bias(found, theirs, where)
    model_config = to_ours(theirs, folder / CONFIG, output_bias=bool(bias.any()))
    with torch.device("meta"):
        model = Transformer(model_config)
    ours = take(found, names(model_config), model.state_dict(), where)
    if model_config.output_bias:
        ours["output_bias"] = bias
    drop_copies(found, _copies(model_config, ours), where)
    all_used(found, where)
    assign_weights(model, ours, where)
    tokenizer = _tokenizer(folder)
    _check_tokenizer(tokenizer, model_config, folder)
    return Loaded("transformer", "translation", model.eval(), tokenizer, **search_settings(folder, theirs))


def _check_tokenizer(tokenizer: Any, config: TransformerConfig, folder: Path) -> None:
    """FolderError unless both sides of the tokenizer have the special ids of the model, and no more tokens."""
    ids = config.special_ids
    sizes = ((tokenizer, config.vocab_size), (tokenizer.target, config.target_vocab_size or config.vocab_size))
    for side, size in sizes:
        if side.vocab_size > size or (side.pad_id, side.eos_id) != (ids.pad_id, ids.eos_id):
            raise FolderError(
                f"{folder}: the tokenizer has {side.vocab_size} tokens, pad_id {side.pad_id}, eos_id {side.eos_id}; "
                f"the model {size}, {ids.pad_id}, {ids.eos_id}; copy it again"
            )


def _bias(found: dict[str, Tensor], config: MarianConfig, where: str) -> Tensor:
    """The bias of the logits (V,), zeros if the file has none; taken out of `found`."""
    targets = config.decoder_vocab_size or config.vocab_size
    bias = found.pop("final_logits_bias", torch.zeros(1, targets))
    if tuple(bias.shape) != (1, targets):
        raise FolderError(f"{where}: weight final_logits_bias has shape {tuple(bias.shape)}, wanted (1, {targets})")
    return bias.flatten().float()


def to_ours(theirs: MarianConfig, path: Path, *, output_bias: bool) -> TransformerConfig:
    if theirs.decoder_start_token_id != theirs.pad_token_id:
        raise FolderError(
            f"{path}: decoder_start_token_id is {theirs.decoder_start_token_id}, pad_token_id {theirs.pad_token_id}; "
            "wanted the same: a Marian decoder starts with padding"
        )
    shared = theirs.share_encoder_decoder_embeddings
    targets = theirs.decoder_vocab_size or theirs.vocab_size
    if shared and not theirs.tie_word_embeddings:
        raise FolderError(
            f"{path}: share_encoder_decoder_embeddings is true and tie_word_embeddings false; wanted both"
        )
    if shared and targets != theirs.vocab_size:
        raise FolderError(
            f"{path}: decoder_vocab_size {targets} differs from vocab_size {theirs.vocab_size}, but they are shared"
        )
    try:
        return TransformerConfig(
            vocab_size=theirs.vocab_size,
            target_vocab_size=None if shared else targets,
            tie_embeddings=theirs.tie_word_embeddings,
            scale_embeddings=theirs.scale_embedding,
            output_bias=output_bias,
            width=theirs.d_model,
            heads=theirs.encoder_attention_heads,
            layers=theirs.encoder_layers,
            decoder_layers=_differing(theirs.encoder_layers, theirs.decoder_layers),
            decoder_heads=_differing(theirs.encoder_attention_heads, theirs.decoder_attention_heads),
            feed_forward=theirs.encoder_ffn_dim,
            decoder_feed_forward=_differing(theirs.encoder_ffn_dim, theirs.decoder_ffn_dim),
            activation=ACTIVATIONS[theirs.activation_function],
            dropout=theirs.dropout,
            positions="halves",
            max_positions=theirs.max_position_embeddings,
            special_ids=SpecialIds(pad_id=theirs.pad_token_id, bos_id=theirs.pad_token_id, eos_id=theirs.eos_token_id),
        )
    except ConfigError as error:
        raise FolderError(f"{path}: {error}") from error


def _differing(encoder: int, decoder: int) -> int | None:
    """The decoder's size, where it is another than the encoder's."""
    return None if encoder == decoder else decoder


def to_theirs(ours: TransformerConfig) -> dict[str, Any]:
    """config.json for one of our models; ConfigError names what Marian does not have."""
    wanted = {"norm": "post", "positions": "halves", "combine_positions": "added"}
    other = [name for name, value in wanted.items() if getattr(ours, name) != value]
    if other:
        have = " and ".join(f"model.{name}={getattr(ours, name)}" for name in other)
        want = " ".join(f"model.{name}={wanted[name]}" for name in other)
        raise ConfigError(
            f"the model has {have}, which Marian models do not support; train it with {want} to export it"
        )
    if ours.special_ids.bos_id != ours.special_ids.pad_id:
        raise ConfigError("the model has a bos token, but a Marian decoder starts with padding")
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": ours.vocab_size,
        "decoder_vocab_size": ours.target_vocab_size or ours.vocab_size,
        "share_encoder_decoder_embeddings": ours.target_vocab_size is None and ours.tie_embeddings,
        "tie_word_embeddings": ours.tie_embeddings,
        "scale_embedding": ours.scale_embeddings,
        "d_model": ours.width,
        "encoder_layers": ours.layers,
        "decoder_layers": ours.decoder_layers or ours.layers,
        "encoder_attention_heads": ours.heads,
        "decoder_attention_heads": ours.decoder_heads or ours.heads,
        "encoder_ffn_dim": ours.feed_forward,
        "decoder_ffn_dim": ours.decoder_feed_forward or ours.feed_forward,
        "activation_function": ours.activation,
        "dropout": ours.dropout,
        "max_position_embeddings": ours.max_positions,
        "pad_token_id": ours.special_ids.pad_id,
        "decoder_start_token_id": ours.special_ids.pad_id,
        "eos_token_id": ours.special_ids.eos_id,
        "bos_token_id": None,
        "is_encoder_decoder": True,
        "dtype": "float32",
    }


def files(model: nn.Module, tokenizer: Any, **search: Any) -> dict[str, bytes]:
    """A Transformer as the files of a Marian folder; `search`: see `generation_file`."""
    assert isinstance(model, Transformer)
    ours = model.config
    # Written even if None: their default is to force eos.
    config = to_theirs(ours) | {"forced_eos_token_id": ours.special_ids.eos_id if search.get("force_eos") else None}
    tensors = model.state_dict()
    found = {theirs: tensors[name] for name, theirs in names(ours).items()}
    targets = ours.target_vocab_size or ours.vocab_size
    found["final_logits_bias"] = tensors.get("output_bias", torch.zeros(targets)).view(1, -1)
    if not ours.tie_embeddings and ours.target_vocab_size is None:  # `transformers` ties either all three or none
        found["model.decoder.embed_tokens.weight"] = tensors["embedding.weight"].clone()
    return {
        CONFIG: encode_json(config),
        GENERATION: generation_file(config, max_length=min(512, ours.max_positions), **search),
        WEIGHTS: encode_tensors(found, {"format": "pt"}),
        **_tokenizer_files(tokenizer, ours),
    }


# ------------------------------------------------ names

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
PARTS = {
    "feed_forward.expand": "fc1",
    "feed_forward.contract": "fc2",
    "norm_attention": "self_attn_layer_norm",
    "norm_feed_forward": "final_layer_norm",
    **{f"attention.{ours}": f"self_attn.{theirs}" for ours, theirs in ATTENTION.items()},
}
DECODER_PARTS = {
    "norm_cross_attention": "encoder_attn_layer_norm",
    **{f"cross_attention.{ours}": f"encoder_attn.{theirs}" for ours, theirs in ATTENTION.items()},
}


def names(config: TransformerConfig) -> dict[str, str]:
    """Our names and theirs of every weight except the bias of the logits."""
    return dict(_names(config))


def _names(config: TransformerConfig) -> Iterator[tuple[str, str]]:
    if config.target_vocab_size is None and config.tie_embeddings:
        yield "embedding.weight", "model.shared.weight"
    else:
        yield "embedding.weight", "model.encoder.embed_tokens.weight"
    if config.target_vocab_size is not None:
        yield "target_embedding.weight", "model.decoder.embed_tokens.weight"
    if not config.tie_embeddings:
        yield "output.weight", "lm_head.weight"
    sides = [
        ("encoder", config.layers, PARTS),
        ("decoder", config.decoder_layers or config.layers, PARTS | DECODER_PARTS),
    ]
    for side, layers, parts in sides:
        for number in range(layers):
            for ours, theirs in parts.items():
                for kind in ("weight", "bias"):
                    yield f"{side}.blocks.{number}.{ours}.{kind}", f"model.{side}.layers.{number}.{theirs}.{kind}"


def _copies(config: TransformerConfig, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies that a file may contain: tied embeddings under other names, and the sinusoidal positions."""
    positions = sinusoidal_halves(config.max_positions, config.width)
    copies = {f"model.{side}.embed_positions.weight": positions for side in ("encoder", "decoder")}
    if config.target_vocab_size is None:
        copies |= {f"model.{side}.embed_tokens.weight": ours["embedding.weight"] for side in ("encoder", "decoder")}
    if config.tie_embeddings:
        copies["lm_head.weight"] = ours["target_embedding.weight" if config.target_vocab_size else "embedding.weight"]
    return copies


# ------------------------------------------------ tokenizer


def _tokenizer(folder: Path) -> Any:
    """SentencePieceTokenizer in an OPUS-MT folder, our own BPETokenizer in one that regard exported."""
    if (folder / SOURCE).is_file() or not (folder / TOKENIZER).is_file():
        return SentencePieceTokenizer.from_folder(folder)
    return BPETokenizer.load(folder / TOKENIZER)


def _tokenizer_files(tokenizer: Any, config: TransformerConfig) -> dict[str, bytes]:
    settings: dict[str, Any] = {
        "eos_token": EOS_TOKEN,
        "unk_token": UNK_TOKEN,
        "pad_token": PAD_TOKEN,
        "model_max_length": min(512, config.max_positions),
    }
    if isinstance(tokenizer, SentencePieceTokenizer):
        settings |= {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": tokenizer.target.vocab != tokenizer.vocab,
        }
    else:
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    return {**tokenizer.to_files(), TOKENIZER_CONFIG: encode_json(settings)}
