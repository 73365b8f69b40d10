"""Small good folders that the hostile ones are made of, by one change each."""

import json
import struct
from functools import cache
from typing import Any

WIDTH, LAYERS, HEADS, CONTEXT = 8, 2, 2, 16
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
VOCABULARY = {token: number for number, token in enumerate(["<|endoftext|>", "Ġ", *LETTERS])}


@cache
def gpt2_files() -> dict[str, bytes]:
    """A GPT-2 folder as Hugging Face has it, with weights of zero."""
    return {
        "config.json": json.dumps(gpt2_config()).encode(),
        "model.safetensors": safetensors(gpt2_shapes()),
        "tokenizer.json": json.dumps(tokenizer()).encode(),
    }


def gpt2_config(**changes: Any) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": len(VOCABULARY),
        "n_positions": CONTEXT,
        "n_embd": WIDTH,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "bos_token_id": 0,
        "eos_token_id": 0,
    } | changes


def gpt2_shapes() -> dict[str, list[int]]:
    shapes = {"transformer.wte.weight": [len(VOCABULARY), WIDTH], "transformer.wpe.weight": [CONTEXT, WIDTH]}
    for layer in range(LAYERS):
        block = f"transformer.h.{layer}."
        for name, rows, columns in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ):
            shapes |= {f"{block}{name}.weight": [rows, columns], f"{block}{name}.bias": [columns]}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"{block}{name}.weight": [WIDTH], f"{block}{name}.bias": [WIDTH]}
    return shapes | {"transformer.ln_f.weight": [WIDTH], "transformer.ln_f.bias": [WIDTH]}


def tokenizer(**changes: Any) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 0,
                "content": "<|endoftext|>",
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": VOCABULARY,
            "merges": [],
        },
    } | changes


def safetensors(shapes: dict[str, list[int]], header: dict[str, Any] | None = None) -> bytes:
    """A file of float32 zeros of these shapes; `header` adds or replaces entries."""
    entries: dict[str, Any] = {}
    size = 0
    for name, shape in shapes.items():
        count = 4
        for length in shape:
            count *= length
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [size, size + count]}
        size += count
    text = json.dumps(entries | (header or {})).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(size)


# ------------------------------------------------ GGUF

UINT32, FLOAT32, STRING, ARRAY, UINT64 = 4, 6, 8, 9, 10


def gguf_string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def gguf_value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", STRING) + gguf_string(value.encode())
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    if isinstance(value, list):
        inner = STRING if value and isinstance(value[0], str) else UINT32
        body = b"".join(gguf_string(one.encode()) if inner == STRING else struct.pack("<I", one) for one in value)
        return struct.pack("<IIQ", ARRAY, inner, len(value)) + body
    return struct.pack("<II", UINT32, value)


def gguf(metadata: dict[str, Any], tensors: dict[str, list[int]], *, tensor_type: int = 0, offset: int = 0) -> bytes:
    """A GGUF file of float32 zeros; `tensor_type` and `offset` lie about them."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(gguf_string(key.encode()) + gguf_value(value) for key, value in metadata.items())
    size = 0
    for name, shape in tensors.items():
        head += (
            gguf_string(name.encode())
            + struct.pack("<I", len(shape))
            + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        )
        head += struct.pack("<IQ", tensor_type, (size + offset) % 2**64)
        count = 4
        for length in shape:
            count *= length
        size += -(-count // 32) * 32
    return head + bytes(-len(head) % 32) + bytes(size)


def llama_metadata(**changes: Any) -> dict[str, Any]:
    found = {
        "general.architecture": "llama",
        "llama.context_length": CONTEXT,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": 16,
        "llama.attention.head_count": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [*VOCABULARY, "ab"],
        "tokenizer.ggml.token_type": [3] + [1] * len(VOCABULARY),
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 0,
    }
    return found | {key.replace("__", "."): value for key, value in changes.items()}


def llama_tensors() -> dict[str, list[int]]:
    shapes = {"token_embd.weight": [len(VOCABULARY) + 1, WIDTH], "output_norm.weight": [WIDTH]}
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {f"{block}{name}.weight": [WIDTH, WIDTH] for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        shapes |= {
            f"{block}ffn_gate.weight": [16, WIDTH],
            f"{block}ffn_up.weight": [16, WIDTH],
            f"{block}ffn_down.weight": [WIDTH, 16],
        }
        shapes |= {f"{block}attn_norm.weight": [WIDTH], f"{block}ffn_norm.weight": [WIDTH]}
    return shapes
