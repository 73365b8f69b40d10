"""Hostile trace files, which `regard show FILE` reads: lies about sizes and shapes, and markup in every text."""

import json
import struct
from collections.abc import Iterator
from typing import Any

from tests.attack.harness import Case
from tests.attack.models import safetensors

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x00"
# Ends every context that a text can stand in, and then begins an element or an attribute named "owned".
MARKUP = "</text></title></style></script>--> ]]> \"' onload=owned <owned owned='1'>\u2028&#x3c;owned>"
TOKENS = ["a", "·b", "c"]
ATTENTION = "blocks.0.attention"
ROOT = {"path": "", "kind": "GPT", "parameters": 7}
MODULES = [
    ROOT,
    {"path": "embedding", "kind": "TextEmbedding", "parameters": 3, "shape": [3, 1]},
    {"path": "blocks", "kind": "ModuleList", "parameters": 4},
    {"path": "blocks.0", "kind": "Block", "parameters": 4},
    {"path": ATTENTION, "kind": "SelfAttention", "parameters": 4, "shape": [8, 8]},
]
CLASS_TOKEN = {f"{ATTENTION}.weights": [2, 4, 4]}  # as a ViT has it before the cells of its grid
SHAPES = {f"{ATTENTION}.weights": [2, 3, 3], "blocks.0.output": [3, 8]}


def info(**changes: Any) -> dict[str, Any]:
    """What a good trace of a language model of two heads says."""
    return {
        "format": 1,
        "kind": "gpt",
        "task": "language-modeling",
        "interface": "causal_lm",
        "config": {"layers": 1, "heads": 2},
        "axes": {"tokens": axis()},
        "attentions": [{"path": ATTENTION, "queries": "tokens", "keys": "tokens"}],
        "modules": MODULES,
        "answer": {"text": "a b"},
    } | changes


def axis(**changes: Any) -> dict[str, Any]:
    return {"tokens": TOKENS, "text": "a bc", "spans": [[0, 1], [2, 3], [3, 4]]} | changes


def trace(shapes: dict[str, list[int]] = SHAPES, header: dict[str, Any] | None = None, **changes: Any) -> bytes:
    metadata = {"__metadata__": {"regard": json.dumps(info(**changes))}}
    return safetensors(shapes, metadata | (header or {}))


def traces() -> Iterator[Case]:
    """Shown in the terminal, as a page, as a figure, as JSON and as a list."""
    yield from _case("a good one", trace(), accepted=True)
    for name, changes in {
        "an axis that is not there": {"attentions": [{"path": ATTENTION, "queries": "x", "keys": "tokens"}]},
        "fewer tokens than positions": {"axes": {"tokens": axis(tokens=["a"], spans=[])}},
        "more tokens than positions": {"axes": {"tokens": axis(tokens=["a"] * 100_000, spans=[])}},
        "no axes": {"axes": {}},
        "an interface of its own": {"interface": "owned"},
        "an interface of pictures": {"interface": "image_to_seq"},
        "spans outside": {"axes": {"tokens": axis(spans=[[5, -7], [2**62, 2**63], None])}},
        "more prompt than tokens": {"axes": {"tokens": axis(num_prompt=2**62)}},
        "a grid of 2**62": {"axes": {"tokens": axis(grid=[2**31, 2**31])}},
        "a grid of -1": {"axes": {"tokens": axis(grid=[-1, -3])}},
        "a class token that the grid has not": {"axes": {"tokens": axis(grid=[1, 3])}, "shapes": CLASS_TOKEN},
        "a class token": {"axes": {"tokens": axis(tokens=["[CLS]", *TOKENS], spans=[])}, "shapes": CLASS_TOKEN},
        "boxes of NaN": {"axes": {"tokens": axis(boxes=[[float("nan"), 1e308, -1e308, 0]])}},
        "a format of the future": {"format": 10**30},
        "9,000 modules": {
            "modules": [ROOT, *({"path": f"m{n}", "kind": "K", "parameters": 1} for n in range(100_000))]
        },
        "modules 2,000 deep": {"modules": [ROOT, {"path": ".".join("m" * 2000), "kind": "K", "parameters": 1}]},
        "a module of a huge shape": {
            "modules": [ROOT, {"path": "m", "kind": "K", "parameters": 2**80, "shape": [2**80]}]
        },
        "an attention 9,000 times": {"attentions": [info()["attentions"][0]] * 9_000},
        "no attentions": {"attentions": []},
    }.items():
        yield from _case(name, trace(**changes), accepted=True)
    for name, shapes in {
        "weights of two axes": {f"{ATTENTION}.weights": [3, 3]},
        "weights of no head": {f"{ATTENTION}.weights": [0, 3, 3]},
        "weights of no query": {f"{ATTENTION}.weights": [2, 0, 0]},
        "weights that are not square": {f"{ATTENTION}.weights": [2, 3, 7]},
        "weights of a token more than the axis": {f"{ATTENTION}.weights": [2, 4, 4]},
        "weights of 500 heads": {f"{ATTENTION}.weights": [500, 3, 3]},
        "weights of many queries": {f"{ATTENTION}.weights": [1, 3000, 3]},
        "an image of one axis": SHAPES | {"image": [7]},
        "no tensors": {},
    }.items():
        yield from _case(name, trace(shapes), accepted=True)
    yield from _raw()
    yield from _texts()


def _raw() -> Iterator[Case]:
    weights = f"{ATTENTION}.weights"
    for name, metadata in {
        "no metadata": None,
        "not JSON": "{",
        "a list": "[]",
        "deep JSON": "[" * 100_000,
        "a deep answer": json.dumps(info()).replace('{"text": "a b"}', "[" * 5_000 + "]" * 5_000),
        "a number of 100,000 digits": json.dumps(info()).replace('"format": 1', '"format": ' + "9" * 100_000),
        "half of a surrogate pair": json.dumps(info(kind="\ud800")),
        "an unknown key of escapes": json.dumps(info(**{ESCAPE: 1})),
        "escapes for a number": json.dumps(info(format=ESCAPE)),
    }.items():
        header = {"__metadata__": {"regard": metadata}} if metadata is not None else {}
        yield from _case(name, safetensors(SHAPES, header), accepted="deep answer" in name)
    for name, entry in {
        "a tensor of 2**62 numbers": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 72]},
        "a tensor beyond the file": {"dtype": "F32", "shape": [2, 3, 3], "data_offsets": [0, 2**62]},
        "bfloat16": {"dtype": "BF16", "shape": [2, 3, 6], "data_offsets": [0, 72]},
        "booleans": {"dtype": "BOOL", "shape": [2, 3, 12], "data_offsets": [0, 72]},
        "eight bits of a float": {"dtype": "F8_E4M3", "shape": [2, 3, 12], "data_offsets": [0, 72]},
    }.items():
        yield from _case(name, trace(header={weights: entry}), accepted=True)
    nan = bytearray(trace())
    nan[-168:] = b"\xff" * 168
    good = trace()
    for name, content in {
        "NaN everywhere": bytes(nan),
        "empty": b"",
        "cut": good[:-40],
        "a header of 2**63 bytes": struct.pack("<Q", 2**63) + good[8:],
    }.items():
        yield from _case(name, content, accepted=name.startswith("NaN"))


def _texts() -> Iterator[Case]:
    """Markup and escapes wherever a trace has a text: none may become an element, or reach the terminal."""
    for name, text in (("markup", MARKUP), ("escapes", ESCAPE), ("line breaks", "\r\n\v\f\x85\u2028\u202e" * 3)):
        for field, changes in {
            "tokens": {"axes": {"tokens": axis(tokens=[text] * 3, spans=[])}},
            "a text": {"axes": {"tokens": axis(text=text)}},
            "next tokens": {"axes": {"tokens": axis(next_tokens=[text] * 3)}},
            "the kind": {"kind": text, "task": text, "strategy": text},
            "a config": {"config": {text: text, "layers": text}},
            "an axis": {"axes": {text: axis()}, "attentions": [{"path": ATTENTION, "queries": text, "keys": text}]},
            "modules": {"modules": [*MODULES, {"path": f"m{text}", "kind": text, "parameters": 1}]},
            "an answer": {"answer": {"text": text}, "interventions": [text], "versions": {text: text}},
        }.items():
            yield from _case(f"{name} in {field}", trace(**changes), accepted=True)
        path = f"blocks.0.{text}"
        attention = {"attentions": [{"path": path, "queries": "tokens", "keys": "tokens"}]}
        yield from _case(f"{name} in a path", trace({f"{path}.weights": [2, 3, 3]}, **attention), accepted=True)


def _case(name: str, content: bytes, *, accepted: bool) -> Iterator[Case]:
    show, files = ["show", "t.safetensors"], {"t.safetensors": content}
    yield Case(f"{name}, terminal", show, files, accepted=accepted, terminal=True)
    yield Case(f"{name}, list", [*show, "--list"], files, accepted=accepted, terminal=True)
    yield Case(f"{name}, json", [*show, "--json"], files, accepted=accepted)
    for view, page in (("heads", "o.html"), ("token", "o.svg"), ("architecture", "o.html")):
        options = ["--view", view, "-o", page] + ["--token", "0"] * (view == "token")
        yield Case(f"{name}, {view} as {page}", [*show, *options], files, accepted=accepted, page=page)
