"""Hostile T5 folders and SentencePiece models, each a change to a good folder with weights of zero."""

import json
import random
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.attack.harness import Case
from tests.attack.models import safetensors

RUN = ["run", "m", "a b", "--greedy"]
NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # kinds of tokens
PIECES = [("<pad>", CONTROL), ("</s>", CONTROL), ("<unk>", UNKNOWN), *((f"▁{one}", NORMAL) for one in "abc")]
VOCAB_SIZE, WIDTH, INNER, BUCKETS = 16, 8, 16, 32
EXTRA_IDS = VOCAB_SIZE - len(PIECES)


def t5_config(**changes: Any) -> dict[str, Any]:
    sizes = {"vocab_size": VOCAB_SIZE, "d_model": WIDTH, "d_kv": 4, "d_ff": INNER, "num_layers": 1, "num_heads": 2}
    return {"model_type": "t5", "feed_forward_proj": "relu", **sizes} | changes


@cache
def t5_files() -> dict[str, bytes]:
    return {
        "config.json": json.dumps(t5_config()).encode(),
        "model.safetensors": safetensors(t5_shapes()),
        "tokenizer_config.json": json.dumps({"extra_ids": EXTRA_IDS}).encode(),
        "spiece.model": spiece_model(),
    }


def t5_shapes() -> dict[str, list[int]]:
    shapes = {"shared.weight": [VOCAB_SIZE, WIDTH]}
    for side, attentions in {"encoder": ["SelfAttention"], "decoder": ["SelfAttention", "EncDecAttention"]}.items():
        block = f"{side}.block.0.layer."
        for number, attention in enumerate(attentions):
            shapes |= {f"{block}{number}.{attention}.{part}.weight": [WIDTH, WIDTH] for part in "qkvo"}
        shapes[f"{block}0.SelfAttention.relative_attention_bias.weight"] = [BUCKETS, 2]
        last = len(attentions)
        shapes |= {f"{block}{number}.layer_norm.weight": [WIDTH] for number in range(last + 1)}
        shapes[f"{block}{last}.DenseReluDense.wi.weight"] = [INNER, WIDTH]
        shapes[f"{block}{last}.DenseReluDense.wo.weight"] = [WIDTH, INNER]
        shapes[f"{side}.final_layer_norm.weight"] = [WIDTH]
    return shapes


# ------------------------------------------------ SentencePiece's protobuf


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def piece(text: str | bytes, kind: int = NORMAL, score: float = -1.0) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return field(1, field(1, raw) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, kind))


def spiece_model(pieces: bytes | None = None, *, trainer: bytes = field(3, 1), charsmap: bytes = b"") -> bytes:
    """A model file; `trainer` says that it is a Unigram model."""
    own = b"".join(piece(text, kind) for text, kind in PIECES) if pieces is None else pieces
    return own + field(2, trainer) + field(3, field(1, b"identity") + (field(2, charsmap) if charsmap else b""))


def _folder(changes: dict[str, bytes]) -> dict[str, bytes]:
    return {f"m/{name}": content for name, content in (t5_files() | changes).items()}


def t5_folders() -> Iterator[Case]:
    """Folders of T5 whose config.json, tokenizer_config.json or weights lie."""
    yield Case("a good one", RUN, _folder({}), accepted=True)
    for key in ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads"):
        for value in (0, -1, 10**6, 2**31, 2**62, 10**18, 1e300, "7", [1], float("nan")):
            yield Case(f"{key}={value}", RUN, _folder({"config.json": json.dumps(t5_config(**{key: value})).encode()}))
    for key, values in {
        "relative_attention_num_buckets": (0, 5, 2**31, 2**62),
        "relative_attention_max_distance": (0, -1, 2**62, 10**30),
        "feed_forward_proj": ("gated-", "x\x1b[2J", "", 7),
        "decoder_start_token_id": (-1, 16, 2**62),
        "eos_token_id": (-1, 15, 16, 2**62),
        "num_beams": (0, -1, 10**9),
        "max_length": (0, -1, 10**12),
        "length_penalty": (1e308, -1e308, float("nan")),
    }.items():
        for value in values:
            config = json.dumps(t5_config(**{key: value})).encode()
            legal = key in ("relative_attention_max_distance", "max_length", "length_penalty", "decoder_start_token_id")
            yield Case(f"{key}={value!r}", RUN, _folder({"config.json": config}), accepted=legal)
    for count in (-1, 5, 2**62, 10**30, "7", None, 1.5, [100]):
        settings = json.dumps({"extra_ids": count}).encode()
        yield Case(f"extra_ids={count}", RUN, _folder({"tokenizer_config.json": settings}), accepted=count == 5)
    for name in t5_shapes():
        shapes = {key: shape for key, shape in t5_shapes().items() if key != name}
        yield Case(f"without {name}", RUN, _folder({"model.safetensors": safetensors(shapes)}))
    for vocab in ([], [["a", 1e400]], [["</s>", 0.0], ["<pad>", 0.0]], [[1, 2]], [["a"]], "x", {"a": 0}):
        model = {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False}
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        content = json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": metaspace, "model": model})
        yield Case(f"tokenizer.json of {vocab}", RUN, _folder({"tokenizer.json": content.encode()}))


def sentencepieces() -> Iterator[Case]:
    """SentencePiece models: cut, flipped, of lies about lengths, and of tables that point outside."""
    good = spiece_model()
    units = struct.pack("<4I", *[0xFFFFFFFF] * 4)
    for name, content in {
        "empty": b"",
        "noise": random.Random(0).randbytes(500),
        "a length of 2**62": b"\x0a" + varint(2**62) + b"a",
        "a varint without end": b"\x0a" + b"\xff" * 1000,
        "no tokens": spiece_model(b""),
        "a million empty tokens": spiece_model(b"\x0a\x00" * 1_000_000),
        "the same token twice": spiece_model(b"".join(piece(text, kind) for text, kind in PIECES) + piece("▁a")),
        "an empty token": spiece_model(b"".join(piece(text, kind) for text, kind in PIECES) + piece("")),
        "tokens not UTF-8": spiece_model(b"".join(piece(text, kind) for text, kind in PIECES) + piece(b"\xff\xfe")),
        "a token of 1 MB": spiece_model(b"".join(piece(text, kind) for text, kind in PIECES) + piece("a" * 10**6)),
        "a token with escapes": spiece_model(b"".join(piece(text, kind) for text, kind in PIECES) + piece("\x1b[2J")),
        "scores of NaN": spiece_model(b"".join(piece(text, kind, float("nan")) for text, kind in PIECES)),
        "scores of infinity": spiece_model(b"".join(piece(text, kind, float("inf")) for text, kind in PIECES)),
        "two unknown tokens": spiece_model(
            b"".join(piece(text, kind) for text, kind in PIECES) + piece("<u>", UNKNOWN)
        ),
        "only unknown tokens": spiece_model(piece("<unk>", UNKNOWN)),
        "kinds of 99": spiece_model(b"".join(piece(text, 99) for text, _ in PIECES)),
        **{f"a model of type {kind}": spiece_model(trainer=field(3, kind)) for kind in (0, 2, 3, 4, 99, 2**40)},
        "an unk id of 2**31": spiece_model(trainer=field(3, 1) + field(40, 2**31)),
        "a table of noise": spiece_model(charsmap=b"\xff" * 100),
        "a table longer than its file": spiece_model(charsmap=struct.pack("<I", 2**31) + units),
        "a table of no units": spiece_model(charsmap=struct.pack("<I", 0) + b"a\0"),
        "a table that points outside": spiece_model(charsmap=struct.pack("<I", 16) + units + b"a\0"),
        "a table of 1,024 units of noise": spiece_model(
            charsmap=struct.pack("<I", 4096) + random.Random(1).randbytes(4096) + b"a\0"
        ),
    }.items():
        yield Case(name, RUN, _folder({"spiece.model": content}), accepted=True)
    for cut in range(1, len(good), max(1, len(good) // 20)):
        yield Case(f"cut at byte {cut}", RUN, _folder({"spiece.model": good[:cut]}), accepted=True)
    chance = random.Random(2)
    for number in range(40):
        flipped = bytearray(good)
        flipped[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
        yield Case(f"flip {number}", RUN, _folder({"spiece.model": bytes(flipped)}), accepted=True)
