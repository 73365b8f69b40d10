"""Write a GPT or a Llama as a GGUF file, which llama.cpp and what is built on it open, and regard too.

Matrices are F32, F16, Q8_0 or Q4_0; in a Q4_0 file the embedding and the output layer, where rounding costs most, are
Q8_0. A matrix whose rows do not divide into blocks is F16 there. The conventions are those of gguf.py, turned around.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.files import atomic_write
from regard.huggingface import llama
from regard.huggingface.gguf import GPT2, LLAMA, ROPE_DIVISORS
from regard.huggingface.gguf_tokenizer import CONTROL, PRE_TOKENIZERS, USER_DEFINED
from regard.layers.positions import RopeScaling, Rotary, scale_frequencies
from regard.models.gpt import GPT
from regard.models.llama import Llama

NORMAL, UNUSED = 1, 5  # token types
TYPES = {"float32": "F32", "float16": "F16", "int8": "Q8_0", "int4": "Q4_0"}
FILE_TYPES = {"F32": "ALL_F32", "F16": "MOSTLY_F16", "Q8_0": "MOSTLY_Q8_0", "Q4_0": "MOSTLY_Q4_0"}
VOCABULARY_MATRICES = ("token_embd.weight", "output.weight")
POSITIONS = "position_embd.weight"


def write_gguf(model: nn.Module, tokenizer: Any, path: Path, precision: str) -> None:
    """Write a model and its tokenizer as one file, completely or not at all."""
    from gguf import GGUFWriter

    if precision not in TYPES:
        raise ConfigError(f"precision is {precision!r}, wanted one of {', '.join(TYPES)}")
    if not isinstance(model, GPT | Llama):
        raise ConfigError(f"a {type(model).__name__} is no model that llama.cpp has; wanted a gpt or a llama")
    architecture, weights = _gpt2(model) if isinstance(model, GPT) else _llama(model)
    vocabulary = _vocabulary(tokenizer, model.config.vocab_size)
    with atomic_write(path) as file:
        writer = GGUFWriter(None, architecture)
        _add_sizes(writer, model)
        _add_tokenizer(writer, tokenizer, vocabulary)
        _add_weights(writer, weights, TYPES[precision])
        writer.write_header_to_file(Path(file.name))
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


# ------------------------------------------------ the two models


def _gpt2(model: GPT) -> tuple[str, dict[str, Tensor]]:
    if model.config.activation != "gelu_tanh":
        raise ConfigError(
            f"its activation is {model.config.activation}, and llama.cpp's GPT-2 has gelu_tanh only; "
            "export --to huggingface"
        )
    return "gpt2", GPT2.to_theirs(model.state_dict(), {})


def _llama(model: Llama) -> tuple[str, dict[str, Tensor]]:
    config = model.config
    architecture = "qwen2" if config.qkv_bias else "llama"
    weights = LLAMA.to_theirs(model.state_dict(), llama.rows(config))
    if architecture == "llama":
        for part, heads in (("attn_q", config.heads), ("attn_k", config.num_kv_heads)):
            for name in [name for name in weights if name.endswith(f"{part}.weight")]:
                weights[name] = _permute_heads(weights[name], heads)
    if config.rope_scaling is not None:
        rates: Tensor = Rotary(config.width // config.heads, config.rope_theta).frequencies  # type: ignore[assignment]
        weights[ROPE_DIVISORS] = rates / scale_frequencies(rates, RopeScaling(**config.rope_scaling.model_dump()))
    return architecture, weights


def _permute_heads(rows: Tensor, heads: int) -> Tensor:
    """Reorder the rows of each head: rotated pairs that stood half a head apart become neighbors."""
    return rows.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def _add_sizes(writer: Any, model: GPT | Llama) -> None:
    config = model.config
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.feed_forward or 4 * config.width)
    writer.add_head_count(config.heads)
    writer.add_vocab_size(config.vocab_size)
    if isinstance(model, GPT):
        writer.add_layer_norm_eps(config.norm_epsilon)
    else:
        writer.add_head_count_kv(model.config.num_kv_heads)
        writer.add_layer_norm_rms_eps(config.norm_epsilon)
        writer.add_rope_freq_base(model.config.rope_theta)
        writer.add_rope_dimension_count(config.width // config.heads)


# ------------------------------------------------ weights


def _add_weights(writer: Any, weights: dict[str, Tensor], kind: str) -> None:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType, quants

    writer.add_file_type(LlamaFileType[FILE_TYPES[kind]])
    writer.add_quantization_version(2)
    for name, weight in weights.items():
        numbers = weight.detach().float().contiguous().numpy()
        own = "Q8_0" if kind == "Q4_0" and name in VOCABULARY_MATRICES else kind
        if numbers.ndim == 1 or name == POSITIONS:
            own = "F32"
        elif numbers.shape[1] % GGML_QUANT_SIZES[GGMLQuantizationType[own]][0]:
            own = "F16"
        found = GGMLQuantizationType[own]
        writer.add_tensor(name, np.ascontiguousarray(quants.quantize(numbers, found)), raw_dtype=found)


# ------------------------------------------------ the tokenizer


def _vocabulary(tokenizer: Any, count: int) -> dict[str, Any]:
    """Tokens, their types and merges, for an embedding matrix of `count` rows, and how texts are split."""
    described = json.loads(tokenizer.to_json())
    model = described["model"]
    split = _pre_tokenizer(described)
    if model["type"] != "BPE" or split is None or not model["merges"]:
        raise ConfigError(
            "its tokenizer is not one that llama.cpp has: wanted byte-level BPE with the splitting of "
            f"{', '.join(name for name in PRE_TOKENIZERS if name != 'default')}; export --to huggingface"
        )
    tokens, types = [f"[UNUSED{number}]" for number in range(count)], [UNUSED] * count
    for token, number in model["vocab"].items():
        tokens[number], types[number] = token, NORMAL
    for added in described["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return {"split": split, "tokens": tokens, "types": types, "merges": merges}


def _pre_tokenizer(described: dict[str, Any]) -> str | None:
    """The name of the splitting into words; None for one that llama.cpp does not have."""
    for name, make in PRE_TOKENIZERS.items():
        known = tokenizers.Tokenizer(tokenizers.models.BPE())
        known.pre_tokenizer = make()
        same = _steps(json.loads(known.to_str())["pre_tokenizer"]) == _steps(described["pre_tokenizer"])
        normalized = described["normalizer"] is not None
        if name != "default" and same and normalized == (name == "qwen2"):
            return name
    return None


def _steps(described: Any) -> list[Any]:
    """The steps of a pre-tokenizer, without what does not change the tokens."""
    steps: Iterable[Any] = described["pretokenizers"] if described and "pretokenizers" in described else [described]
    return [{key: value for key, value in (step or {}).items() if key != "trim_offsets"} for step in steps]


def _add_tokenizer(writer: Any, tokenizer: Any, vocabulary: dict[str, Any]) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(vocabulary["split"])
    writer.add_token_list(vocabulary["tokens"])
    writer.add_token_types(vocabulary["types"])
    writer.add_token_merges(vocabulary["merges"])
    writer.add_add_bos_token(tokenizer.prepended_bos_id is not None)
    if tokenizer.bos_id is not None:
        writer.add_bos_token_id(tokenizer.bos_id)
    for number, add in zip(tokenizer.eos_ids, (writer.add_eos_token_id, writer.add_eot_token_id), strict=False):
        add(number)
    if tokenizer.chat_template is not None:
        writer.add_chat_template(tokenizer.chat_template)
