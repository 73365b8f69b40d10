"""T5ForConditionalGeneration, versions 1.0 (t5-small) and 1.1 (t5-v1_1-small, FLAN-T5): our T5 under other names.

They keep the gate and the rest of a gated feed-forward network apart, where we have one matrix; and they keep the
relative position bias, which all layers of a stack share, in the first layer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.checkpoint import CONFIG, TOKENIZER, assign_weights, encode_tensors
from regard.errors import ConfigError, FolderError
from regard.files import encode_json, read_json
from regard.huggingface.folder import GENERATION, WEIGHTS, ForeignConfig, Loaded, all_used, drop_copies, take, weights
from regard.huggingface.generation import generation_file, search_settings
from regard.models.base import SpecialIds
from regard.models.t5 import T5, T5Config
from regard.tokenizers.bpe import EOS_TOKEN, PAD_TOKEN, UNK_TOKEN, BPETokenizer
from regard.tokenizers.sentencepiece import MODEL, SentencePieceTokenizer
from regard.tokenizers.unigram import UnigramTokenizer

KINDS = ("t5",)
TOKENIZER_CONFIG = "tokenizer_config.json"
SENTINELS = 100  # <extra_id_0> to <extra_id_99>, the last tokens, counted from the end
MAX_LENGTH = 512  # tokens of an answer, where an exported model says nothing; the paper's training length
HEAD, SHARED = "lm_head.weight", "shared.weight"
# In the v1.0 files, and used by nobody: cross-attention has no positions.
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
ACTIVATIONS = {"relu": "relu", "silu": "swish", "swish": "swish", "gelu": "gelu", "gelu_new": "gelu_tanh"}
# feed_forward_proj -> our activation, and whether it is gated; "gated-gelu" means the tanh form.
FEED_FORWARD = {
    **{theirs: (ours, False) for theirs, ours in ACTIVATIONS.items()},
    **{f"gated-{theirs}": (ours, True) for theirs, ours in ACTIVATIONS.items()},
    "gated-gelu": ("gelu_tanh", True),
}


class T5FolderConfig(ForeignConfig):
    """config.json of a T5 folder; the defaults are those of `transformers`."""

    model_type: Literal["t5"]
    vocab_size: int = Field(32128, ge=4)
    d_model: int = Field(512, ge=1)
    d_kv: int = Field(64, ge=1)
    d_ff: int = Field(2048, ge=1)
    num_layers: int = Field(6, ge=1)
    num_decoder_layers: int | None = Field(None, ge=1)
    num_heads: int = Field(8, ge=1)
    relative_attention_num_buckets: int = Field(32, ge=4)
    relative_attention_max_distance: int = Field(128, ge=1)
    dropout_rate: float = Field(0.1, ge=0, lt=1)
    layer_norm_epsilon: float = Field(1e-6, gt=0)
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None  # of newer files; older ones scale where the embeddings are tied
    pad_token_id: int = Field(0, ge=0)
    eos_token_id: int = Field(1, ge=0)
    decoder_start_token_id: int = Field(0, ge=0)
    # Repeats of feed_forward_proj.
    dense_act_fn: str | None = None
    is_gated_act: bool | None = None
    # Must be so: regard has no other.
    is_encoder_decoder: Literal[True] = True
    is_decoder: Literal[False] = False
    # Search settings; generation_config.json goes first.
    num_beams: int | None = None
    max_length: int | None = None
    length_penalty: float | None = None
    forced_eos_token_id: int | None = None
    # What changes nothing once a model is trained, and what older versions left behind.
    architectures: list[str] | None = None
    bos_token_id: int | None = None
    n_positions: int | None = None
    initializer_factor: float | None = None
    classifier_dropout: float | None = None
    task_specific_params: Any = None
    tokenizer_class: str | None = None
    output_past: bool | None = None
    output_attentions: bool | None = None
    output_hidden_states: bool | None = None
    return_dict: bool | None = None
    use_cache: bool | None = None
    gradient_checkpointing: bool | None = None
    id2label: dict[str, str] | None = None
    label2id: dict[str, int] | None = None
    dtype: str | None = None
    torch_dtype: str | None = None
    transformers_version: str | None = None
    name_or_path: str | None = Field(None, alias="_name_or_path")


def load(folder: Path, config: Mapping[str, Any]) -> Loaded:
    """Read a T5 folder."""
    where = str(folder / WEIGHTS)
    theirs = T5FolderConfig.read(config, folder / CONFIG)
    found = weights(folder)
    ours = to_ours(theirs, folder / CONFIG, tie_embeddings=not _has_own_head(theirs, found))
    with torch.device("meta"):
        model = T5(ours)
    shapes = to_their_names(model.state_dict(), ours)
    theirs_taken = take(found, {name: name for name in shapes}, shapes, where)
    taken = {name: torch.cat([theirs_taken[part] for part in their_names(name, ours)]) for name in model.state_dict()}
    copies = [f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")] + [HEAD] * ours.tie_embeddings
    drop_copies(found, dict.fromkeys(copies, taken["embedding.weight"]), where)
    found.pop(UNUSED, None)
    all_used(found, where)
    assign_weights(model, taken, where)
    tokenizer = _tokenizer(folder, ours.vocab_size)
    if tokenizer.vocab_size > ours.vocab_size or (tokenizer.pad_id, tokenizer.eos_id) != (
        ours.special_ids.pad_id,
        ours.special_ids.eos_id,
    ):
        raise FolderError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} tokens, pad_id {tokenizer.pad_id} and eos_id "
            f"{tokenizer.eos_id}; the model {ours.vocab_size}, {ours.special_ids.pad_id} and "
            f"{ours.special_ids.eos_id}: not a pair"
        )
    return Loaded("t5", "translation", model.eval(), tokenizer, **search_settings(folder, theirs))


def _has_own_head(theirs: T5FolderConfig, found: Mapping[str, Tensor]) -> bool:
    """Older folders say so by tie_word_embeddings; newer ones always say true, and keep a head that differs."""
    if not theirs.tie_word_embeddings:
        return True
    is_new = theirs.scale_decoder_outputs is not None and {HEAD, SHARED} <= found.keys()
    return is_new and not torch.equal(found[HEAD], found[SHARED])


def to_ours(theirs: T5FolderConfig, path: Path, *, tie_embeddings: bool) -> T5Config:
    if theirs.feed_forward_proj not in FEED_FORWARD:
        raise FolderError(
            f"{path}: feed_forward_proj is {theirs.feed_forward_proj!r}, wanted one of {', '.join(FEED_FORWARD)}"
        )
    activation, gated = FEED_FORWARD[theirs.feed_forward_proj]
    repeated = activation if theirs.dense_act_fn is None else ACTIVATIONS.get(theirs.dense_act_fn)
    if repeated != activation or theirs.is_gated_act not in (None, gated):
        raise FolderError(
            f"{path}: feed_forward_proj is {theirs.feed_forward_proj!r}, but dense_act_fn is {theirs.dense_act_fn!r} "
            f"and is_gated_act {theirs.is_gated_act}; wanted the same in all three"
        )
    if theirs.decoder_start_token_id != theirs.pad_token_id:
        raise FolderError(
            f"{path}: decoder_start_token_id is {theirs.decoder_start_token_id}, pad_token_id {theirs.pad_token_id}; "
            "wanted the same: a T5 decoder starts with padding"
        )
    scaled = theirs.scale_decoder_outputs
    try:
        return T5Config(
            vocab_size=theirs.vocab_size,
            tie_embeddings=tie_embeddings,
            scale_output=theirs.tie_word_embeddings if scaled is None else scaled,
            width=theirs.d_model,
            heads=theirs.num_heads,
            head_width=theirs.d_kv,
            layers=theirs.num_layers,
            decoder_layers=None if theirs.num_decoder_layers == theirs.num_layers else theirs.num_decoder_layers,
            feed_forward=theirs.d_ff,
            activation=activation,
            gated=gated,
            num_buckets=theirs.relative_attention_num_buckets,
            max_distance=theirs.relative_attention_max_distance,
            dropout=theirs.dropout_rate,
            norm_epsilon=theirs.layer_norm_epsilon,
            special_ids=SpecialIds(
                pad_id=theirs.pad_token_id, bos_id=theirs.decoder_start_token_id, eos_id=theirs.eos_token_id
            ),
        )
    except ConfigError as error:
        raise FolderError(f"{path}: {error}") from error


def to_theirs(ours: T5Config) -> dict[str, Any]:
    """config.json for one of our models; ConfigError names what T5 folders do not have."""
    spelled = [name for name, meant in FEED_FORWARD.items() if meant == (ours.activation, ours.gated)]
    if not spelled:
        raise ConfigError("the model has model.gated=true and model.activation=gelu, which T5 folders cannot say")
    feed_forward = "gated-gelu" if "gated-gelu" in spelled else spelled[0]
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": ours.vocab_size,
        # Older versions of `transformers` read whether to scale from tie_word_embeddings.
        "tie_word_embeddings": ours.tie_embeddings,
        "scale_decoder_outputs": ours.scale_output,
        "d_model": ours.width,
        "d_kv": ours.head_width,
        "d_ff": ours.feed_forward,
        "num_layers": ours.layers,
        "num_decoder_layers": ours.decoder_layers or ours.layers,
        "num_heads": ours.heads,
        "relative_attention_num_buckets": ours.num_buckets,
        "relative_attention_max_distance": ours.max_distance,
        "dropout_rate": ours.dropout,
        "layer_norm_epsilon": ours.norm_epsilon,
        "feed_forward_proj": feed_forward,
        "dense_act_fn": next(name for name, meant in ACTIVATIONS.items() if meant == ours.activation),
        "is_gated_act": ours.gated,
        "is_encoder_decoder": True,
        "pad_token_id": ours.special_ids.pad_id,
        "eos_token_id": ours.special_ids.eos_id,
        "decoder_start_token_id": ours.special_ids.bos_id,
        "dtype": "float32",
    }


def files(model: nn.Module, tokenizer: Any, **search: Any) -> dict[str, bytes]:
    """A T5 as the files of a T5 folder; `search`: see `generation_file`."""
    assert isinstance(model, T5)
    config = to_theirs(model.config)
    return {
        CONFIG: encode_json(config),
        GENERATION: generation_file(config, max_length=MAX_LENGTH, **search),
        WEIGHTS: encode_tensors(to_their_names(model.state_dict(), model.config), {"format": "pt"}),
        **_tokenizer_files(tokenizer),
    }


# ------------------------------------------------ names

TOP_LEVEL = {
    "embedding.weight": SHARED,
    "output.weight": HEAD,
    **{f"{side}.norm.weight": f"{side}.final_layer_norm.weight" for side in ("encoder", "decoder")},
    **{
        f"{side}.position_bias.weight": f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for side in ("encoder", "decoder")
    },
}
SUBLAYERS = {
    "encoder": {"attention": "SelfAttention", "feed_forward": "DenseReluDense"},
    "decoder": {"attention": "SelfAttention", "cross_attention": "EncDecAttention", "feed_forward": "DenseReluDense"},
}
PARTS = {"query": "q", "key": "k", "value": "v", "output": "o", "expand": "wi", "contract": "wo"}
GATED = ("wi_0", "wi_1")  # the gate and the rest: the two halves of our `expand`


def their_names(ours: str, config: T5Config) -> list[str]:
    """Their names for one of our weights: two for the joined matrix of a gated feed-forward network."""
    if ours in TOP_LEVEL:
        return [TOP_LEVEL[ours]]
    side, _, number, module, *rest = ours.split(".")  # encoder.blocks.3.attention.query.weight
    sublayer = module.removeprefix("norm_")
    block = f"{side}.block.{number}.layer.{[*SUBLAYERS[side]].index(sublayer)}"
    if module != sublayer:
        return [f"{block}.layer_norm.weight"]
    parts = GATED if config.gated and rest[0] == "expand" else (PARTS[rest[0]],)
    return [f"{block}.{SUBLAYERS[side][sublayer]}.{part}.weight" for part in parts]


def to_their_names(tensors: Mapping[str, Tensor], config: T5Config) -> dict[str, Tensor]:
    """Our weights under their names; on the meta device, the shapes a file must have."""
    found: dict[str, Tensor] = {}
    for ours, tensor in tensors.items():
        names = their_names(ours, config)
        found.update(zip(names, tensor.chunk(len(names)), strict=True))
    return found


# ------------------------------------------------ tokenizer


def _tokenizer(folder: Path, vocab_size: int) -> Any:
    """tokenizer.json where there is one: Unigram, or the BPE of a model that regard trained. Otherwise spiece.model."""
    path = folder / TOKENIZER
    if path.is_file():
        model = read_json(path).get("model")
        is_bpe = isinstance(model, dict) and model.get("type") == "BPE"
        return BPETokenizer.load(path) if is_bpe else UnigramTokenizer.load(path)
    settings = folder / TOKENIZER_CONFIG
    count = read_json(settings).get("extra_ids", SENTINELS) if settings.is_file() else SENTINELS
    if type(count) is not int or not 0 <= count < vocab_size:
        raise FolderError(f"{settings}: extra_ids is {count!r}, wanted the number of sentinel tokens")
    return SentencePieceTokenizer.load_model(folder / MODEL, [f"<extra_id_{n}>" for n in reversed(range(count))])


def _tokenizer_files(tokenizer: Any) -> dict[str, bytes]:
    config: dict[str, Any] = {
        "eos_token": EOS_TOKEN,
        "unk_token": UNK_TOKEN,
        "pad_token": PAD_TOKEN,
        "model_max_length": MAX_LENGTH,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    if isinstance(tokenizer, SentencePieceTokenizer):
        config |= {"tokenizer_class": "T5Tokenizer", "extra_ids": len(tokenizer.extra_tokens)}
    return {**tokenizer.to_files(), TOKENIZER_CONFIG: encode_json(config)}
