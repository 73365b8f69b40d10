"""GGUF files, as llama.cpp writes them: one file with metadata, tokenizer and weights, mostly quantized.

Quantized blocks are kept (gguf_packed.py), or dequantized by the `gguf` package. Two conventions differ from Hugging
Face's: llama.cpp rotates neighboring dimensions of a head where we rotate those half a head apart, so the rows of its
Llama queries and keys are permuted; and the RoPE scaling of Llama 3 is stored as divisors of the frequencies.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from regard.checkpoint import assign_weights
from regard.errors import ConfigError, FolderError
from regard.huggingface import llama
from regard.huggingface.folder import Loaded, all_used, take
from regard.huggingface.gguf_header import MAGIC, read_header
from regard.huggingface.gguf_packed import keep_blocks
from regard.huggingface.gguf_tokenizer import read_tokenizer
from regard.huggingface.language import TASK, check_vocab_size, special_ids_of
from regard.huggingface.names import Names
from regard.layers.positions import RopeScaling, Rotary, scale_frequencies
from regard.models.base import CausalLMIds
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, LlamaConfig, RopeScalingConfig

TENSOR_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
ARCHITECTURES = ("llama", "qwen2", "gpt2")
ROPE_DIVISORS = "rope_freqs.weight"
KEYS = (
    *("vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length"),
    "attention.head_count",
)
PARTS = {
    "norm_attention": ("attn_norm",),
    "attention.output": ("attn_output",),
    "norm_feed_forward": ("ffn_norm",),
    "feed_forward.contract": ("ffn_down",),
}
TOP_LEVEL = {
    "embedding.weight": "token_embd.weight",
    "positions.weight": "position_embd.weight",
    "norm.weight": "output_norm.weight",
    "norm.bias": "output_norm.bias",
    "output.weight": "output.weight",
}
LLAMA = Names(
    TOP_LEVEL,
    "blk.{}.",
    {
        **PARTS,
        "attention.project": ("attn_q", "attn_k", "attn_v"),
        "feed_forward.expand": ("ffn_gate", "ffn_up"),
    },
)
GPT2 = Names(TOP_LEVEL, "blk.{}.", {**PARTS, "attention.project": ("attn_qkv",), "feed_forward.expand": ("ffn_up",)})


def is_gguf(path: Path) -> bool:
    """Whether a path is a GGUF file, by its suffix or its first bytes."""
    if not path.is_file():
        return False
    if path.suffix.lower() == ".gguf":
        return True
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def load(path: Path, *, packed: bool = False) -> Loaded:
    """Read a GGUF file; `packed` keeps its quantized blocks, else all weights are dequantized to float32."""
    file = GGUFFile(path)
    kind = file.value("general.architecture")
    if kind not in ARCHITECTURES:
        raise FolderError(f"{path}: general.architecture is {kind!r}, wanted one of {', '.join(ARCHITECTURES)}")
    if file.value("split.count", 1) not in (0, 1):
        raise FolderError(
            f"{path} is one of {file.value('split.count')} parts; join them with llama-gguf-split --merge"
        )
    tokenizer, notes = read_tokenizer(file.metadata, path)
    check_vocab_size(tokenizer, file.rows("token_embd.weight"), path)
    special_ids = special_ids_of(tokenizer)
    try:
        model = _gpt2(file, special_ids, packed) if kind == "gpt2" else _llama(file, kind, special_ids, packed)
    except ConfigError as error:
        raise FolderError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise FolderError(f"{path}: {first['loc'][0]} is {first['input']!r}: {first['msg']}") from error
    return Loaded("gpt" if kind == "gpt2" else "llama", TASK, model.eval(), tokenizer, notes=notes)


class GGUFFile:
    """An open GGUF file: its metadata, and its tensors, dequantized when they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        header = read_header(path)
        self.metadata, self.tensors = header.metadata, header.tensors
        for name, tensor in self.tensors.items():
            if tensor.tensor_type.name not in TENSOR_TYPES:
                wanted = ", ".join(TENSOR_TYPES)
                raise FolderError(f"{path}: weight {name} has type {tensor.tensor_type.name}, wanted one of {wanted}")

    def value(self, key: str, *default: Any) -> Any:
        """A value of the metadata; without a default it must be there."""
        if key not in self.metadata and not default:
            raise FolderError(f"{self.path} has no key {key}, which this model needs")
        return self.metadata.get(key, *default)

    def count(self, key: str, *default: int) -> int:
        """An integer from the metadata, 1 or more."""
        value = self.value(key, *default)
        if type(value) is not int or value < 1:
            raise FolderError(f"{self.path}: {key} is {value!r}, wanted an integer, 1 or more")
        return value

    def number(self, key: str, *default: float) -> float:
        """A positive number from the metadata."""
        value = self.value(key, *default)
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise FolderError(f"{self.path}: {key} is {value!r}, wanted a number above 0")
        return float(value)

    def check_keys(self, architecture: str, known: Iterable[str], required: dict[str, tuple[Any, ...]]) -> None:
        """FolderError for an unknown key of the architecture, or one that has not its required value."""
        names = {f"{architecture}.{key}" for key in known}
        values = {f"{architecture}.{key}": allowed for key, allowed in required.items()}
        for key, value in self.metadata.items():
            if key in values and value not in values[key]:
                wanted = " or ".join(repr(allowed) for allowed in values[key])
                raise FolderError(f"{self.path}: {key} is {value!r}, wanted {wanted}; regard has no other")
            if key.startswith(f"{architecture}.") and key not in names | values.keys():
                raise FolderError(f"{self.path} has a key {key!r} that regard does not know")

    def rows(self, name: str) -> int:
        """The number of rows of a matrix."""
        if name not in self.tensors:
            raise FolderError(f"{self.path} has no weight {name}, which this model needs")
        return int(self.tensors[name].shape[-1])

    def layers(self, architecture: str) -> int:
        """The number of blocks; the last must be in the file."""
        count = self.count(f"{architecture}.block_count")
        self.rows(f"blk.{count - 1}.attn_norm.weight")
        return count

    def take_all(self) -> dict[str, Tensor]:
        """All weights, dequantized; each is released from the file when it is read."""
        found = {}
        for name in list(self.tensors):
            found[name] = _dequantize(self.tensors.pop(name))
        return found


def _dequantize(tensor: Any) -> Tensor:
    from gguf import quants

    weight = quants.dequantize(tensor.data, tensor.tensor_type)
    return torch.from_numpy(np.array(weight, dtype=np.float32, copy=None if weight.flags.writeable else True))


# ------------------------------------------------ the two models


def _llama(file: GGUFFile, architecture: str, special_ids: CausalLMIds, packed: bool) -> Llama:
    def count(key: str, *default: int) -> int:
        return file.count(f"{architecture}.{key}", *default)

    width, heads = count("embedding_length"), count("attention.head_count")
    head = width // heads
    file.check_keys(
        architecture,
        [
            *KEYS,
            *("attention.head_count_kv", "attention.layer_norm_rms_epsilon", "rope.freq_base"),
            *("rope.scaling.original_context_length", "rope.scaling.finetuned", "tensor_data_layout"),
        ],
        {
            **dict.fromkeys(["rope.dimension_count", "attention.key_length", "attention.value_length"], (head,)),
            "rope.scaling.type": ("none",),
            "rope.scaling.factor": (1.0,),
            "rope.scale_linear": (1.0,),
            "expert_count": (0,),
            "expert_used_count": (0,),
        },
    )
    theta = file.number(f"{architecture}.rope.freq_base", llama.DEFAULT_ROPE_THETA)
    config = LlamaConfig(
        vocab_size=file.rows("token_embd.weight"),
        context=count("context_length"),
        width=width,
        heads=heads,
        num_kv_heads=count("attention.head_count_kv", heads),
        layers=file.layers(architecture),
        feed_forward=count("feed_forward_length"),
        tie_embeddings="output.weight" not in file.tensors,
        qkv_bias=architecture == "qwen2",
        rope_theta=theta,
        rope_scaling=_rope_scaling(file, head, theta),
        norm_epsilon=_shortest(file.number(f"{architecture}.attention.layer_norm_rms_epsilon")),
        special_ids=special_ids,
    )
    with torch.device("meta"):
        model = Llama(config)
    heads_of = {"attn_q": config.heads, "attn_k": config.num_kv_heads} if architecture == "llama" else {}

    def order_rows(name: str, rows: Tensor) -> Tensor:
        part = name.removesuffix(".weight").rsplit(".", 1)[-1]
        return _unpermute_heads(rows, heads_of[part]) if part in heads_of else rows

    if packed:
        keep_blocks(model, file.tensors, LLAMA, order_rows)
    found = {name: order_rows(name, weight) for name, weight in file.take_all().items()}
    _assign(model, found, LLAMA, llama.rows(config), file)
    return model


def _gpt2(file: GGUFFile, special_ids: CausalLMIds, packed: bool) -> GPT:
    file.check_keys(
        "gpt2",
        [*KEYS, "attention.layer_norm_epsilon"],
        {"attention.head_count_kv": (file.value("gpt2.attention.head_count"),)},
    )
    config = GPTConfig(
        vocab_size=file.rows("token_embd.weight"),
        context=file.count("gpt2.context_length"),
        width=file.count("gpt2.embedding_length"),
        heads=file.count("gpt2.attention.head_count"),
        layers=file.layers("gpt2"),
        feed_forward=file.count("gpt2.feed_forward_length"),
        tie_embeddings="output.weight" not in file.tensors,
        norm_epsilon=_shortest(file.number("gpt2.attention.layer_norm_epsilon")),
        special_ids=special_ids,
    )
    with torch.device("meta"):
        model = GPT(config)
    if packed:
        keep_blocks(model, file.tensors, GPT2, lambda name, rows: rows)
    _assign(model, file.take_all(), GPT2, {}, file)
    return model


def _assign(model: nn.Module, found: dict[str, Tensor], names: Names, rows: Any, file: GGUFFile) -> None:
    where = str(file.path)
    wanted = names.to_theirs(model.state_dict(), rows)
    taken = take(found, {name: name for name in wanted}, wanted, where)
    all_used(found, where)
    assign_weights(model, names.to_ours(taken, model.state_dict()), where)


def _unpermute_heads(rows: Tensor, heads: int) -> Tensor:
    """Reorder the rows of each head: rotated pairs that were neighbors come to stand half a head apart."""
    if len(rows) % (2 * heads):
        return rows  # `take` says what is wrong
    return rows.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def _rope_scaling(file: GGUFFile, head: int, theta: float) -> RopeScalingConfig | None:
    """The RoPE scaling of Llama 3, recognized by the divisors that the converter computed from it."""
    if ROPE_DIVISORS not in file.tensors:
        return None
    divisors = _dequantize(file.tensors.pop(ROPE_DIVISORS))
    found = RopeScalingConfig(
        factor=max(1.0, divisors.max().item()), low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192
    )
    rates: Tensor = Rotary(head, theta).frequencies  # type: ignore[assignment]
    wanted = rates / scale_frequencies(rates, RopeScaling(**found.model_dump()))
    if divisors.shape != wanted.shape or not torch.allclose(divisors, wanted, rtol=1e-4):
        raise FolderError(f"{file.path}: {ROPE_DIVISORS} is not the RoPE scaling of Llama 3; regard has no other")
    return found


def _shortest(value: float) -> float:
    """The shortest decimal of a float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))
