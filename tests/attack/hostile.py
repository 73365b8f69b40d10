"""Hostile inputs, row by row of the table that `make attack` prints: each row is a generator of cases."""

import hashlib
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from tests.attack.harness import CANARY, Case
from tests.attack.models import (
    gguf,
    gguf_string,
    gpt2_config,
    gpt2_files,
    gpt2_shapes,
    llama_metadata,
    llama_tensors,
    safetensors,
    tokenizer,
)
from tests.attack.texts import blank_texts, terminal_escapes
from tests.attack.traces import traces
from tests.attack.translators import sentencepieces, t5_folders

RUN = ["run", "m", "abc", "--greedy"]
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
DEEP = b"[" * 200_000


def _folder(changes: dict[str, bytes]) -> dict[str, bytes]:
    return {f"m/{name}": content for name, content in (gpt2_files() | changes).items()}


def folders() -> Iterator[Case]:
    """Hugging Face folders whose config.json or weights lie."""
    for key in ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size"):
        for value in (0, -1, 10**6, 10**9, 2**31, 2**62, 10**18, 2**64, 1e300, "7", None, [1], {}, True, float("nan")):
            config = json.dumps(gpt2_config(**{key: value})).encode()
            yield Case(f"{key}={value}", RUN, _folder({"config.json": config}), accepted=value is True)
    for name, content in {
        "deep": DEEP,
        "deep object": b'{"a":' * 100_000,
        "empty": b"",
        "not UTF-8": b"\xff\xfe\x00",
        "a list": b"[]",
        "a number": b"1" * 10_000,
        "an endless number": b'{"model_type": ' + b"9" * 100_000 + b"}",
        "NUL": b'{"model_type": "gpt2\\u0000"}',
        "escapes": json.dumps({"model_type": ESCAPE}).encode(),
        "an unknown key with escapes": json.dumps(gpt2_config(**{ESCAPE: 1})).encode(),
        "an architecture that is a command": json.dumps(gpt2_config(architectures=[f"X$(touch {CANARY})"])).encode(),
    }.items():
        yield Case(f"config.json: {name}", RUN, _folder({"config.json": content}), accepted="architecture" in name)
    shell = json.dumps(gpt2_config(architectures=[f"X$(touch {CANARY})`touch {CANARY}`'\";touch {CANARY}"])).encode()
    files = _folder({"config.json": shell, "pytorch_model.bin": b"\x80\x04."})
    del files["m/model.safetensors"]
    yield Case("a pickle whose architecture is a command", RUN, files)
    for name, entry in {
        "offsets beyond the file": {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 2**62]}},
        "a shape of 2**62": {"transformer.wte.weight": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 8]}},
        "an escape in a name": {ESCAPE: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}},
        "an unknown type": {"x": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}},
    }.items():
        yield Case(f"weights: {name}", RUN, _folder({"model.safetensors": safetensors(gpt2_shapes(), entry)}))
    for name, content in {
        "a header of 2**63 bytes": struct.pack("<Q", 2**63) + b"{}",
        "cut": safetensors(gpt2_shapes())[:-100],
        "empty": b"",
        "a deep header": struct.pack("<Q", len(DEEP)) + DEEP,
        "no tensors": safetensors({}),
        "one missing": safetensors({k: v for k, v in gpt2_shapes().items() if "ln_f" not in k}),
    }.items():
        yield Case(f"weights: {name}", RUN, _folder({"model.safetensors": content}))
    index = json.dumps({"weight_map": {"a": "../../../etc/passwd", "b": "/etc/passwd"}}).encode()
    files = _folder({"model.safetensors.index.json": index})
    del files["m/model.safetensors"]
    yield Case("an index that points outside", RUN, files)


def our_folders() -> Iterator[Case]:
    """Folders in our own layout with hostile manifests and configs."""
    good = {"config.json": b"{}", "model.safetensors": safetensors({}), "tokenizer.json": b"{}"}
    for name, manifest in {
        "deep": DEEP,
        "a path outside": json.dumps({"files": {"../../etc/passwd": {"size": 1, "sha256": "0"}}}).encode(),
        "an absolute path": json.dumps({"files": {"/etc/passwd": {"size": 1, "sha256": "0"}}}).encode(),
        "escapes": json.dumps({"files": {ESCAPE: {"size": 1, "sha256": "0"}}}).encode(),
        "a huge size": json.dumps({"files": {"config.json": {"size": 10**30, "sha256": "0"}}}).encode(),
        "a list": b"[]",
        "not UTF-8": b"\xff",
    }.items():
        for command in (RUN, ["info", "m"]):
            files = {f"m/{path}": content for path, content in (good | {"MANIFEST.json": manifest}).items()}
            yield Case(f"MANIFEST.json: {name}, {command[0]}", command, files)


def folders_with_code() -> Iterator[Case]:
    """Folders that bring a Python file: it must not run unless the user trusts it, nor if it is another than named."""
    code = f"open({CANARY!r}, 'w').close()\nimport os; os.system('touch {CANARY}')\n".encode()
    sha256 = hashlib.sha256(code).hexdigest()
    reading = [["run", "m", "abc"], ["evaluate", "m"], ["check", "m"], ["show", "m", "abc"], ["show", "m", "--list"]]
    reading += [["trace", "m", "abc", "-o", "t.safetensors"], ["export", "m", "out"], ["cost", "m"], ["info", "m"]]
    reading += [["embeddings", "m", "abc"], ["train", "gpt", "m/tokenizer.json", "--from", "m", "-o", "out"]]
    for command in reading:
        yield Case(f"code, {command[0]}", command, _with_code(code, sha256), accepted=command[0] == "info")
    for name, named in {
        "another hash": {"mine.py": "0" * 64},
        "a path outside": {"../m/mine.py": sha256},
        "an absolute path": {"/tmp/mine.py": sha256},
        "an extension module": {"mine.so": sha256},
        "no hash": {"mine.py": None},
        "a list": ["mine.py"],
        "escapes": {f"{ESCAPE}.py": sha256},
    }.items():
        yield Case(f"code, trusted: {name}", [*RUN, "--trust"], _with_code(code, named))
        yield Case(f"code: {name}", RUN, _with_code(code, named))
    for kind in ("os:system", "subprocess:Popen", "mine:Evil", "mine.py:Evil", "m/mine.py:Evil"):
        yield Case(f"a kind that is code: {kind}", RUN, _with_code(code, {}, kind=kind))
        yield Case(f"a task that is code: {kind}", RUN, _with_code(code, {}, kind="gpt", task=kind))


def _with_code(
    code: bytes, named: Any, kind: str = "mine.py:Evil", task: str = "language-modeling"
) -> dict[str, bytes]:
    """A model folder of ours with a Python file, and a manifest that is right."""
    config = {"format": 2, "kind": kind, "model": {}, "task": {"name": task}, "versions": {}}
    config["code"] = {"mine.py": named} if isinstance(named, str) else named
    files = {
        "config.json": json.dumps(config).encode(),
        "model.safetensors": safetensors({"x": [1]}),
        "tokenizer.json": json.dumps(tokenizer()).encode(),
        "mine.py": code,
    }
    entries = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    return {f"m/{name}": data for name, data in (files | {"MANIFEST.json": json.dumps(entries).encode()}).items()}


def ggufs() -> Iterator[Case]:
    """GGUF files whose lengths, counts, types and offsets lie."""
    run = ["run", "m.gguf", "abc", "--greedy"]
    bomb = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_string(b"a") + struct.pack("<IIQ", 9, 0, 2**62)
    nested = b"".join(struct.pack("<IQ", 9, 1) for _ in range(50_000))
    raw = {
        "an array of 2**62 entries": bomb,
        "an array of 2**62 strings": bomb[:-12] + struct.pack("<IQ", 8, 2**62),
        "an array of arrays of arrays": b"GGUF"
        + struct.pack("<IQQ", 3, 0, 1)
        + gguf_string(b"a")
        + struct.pack("<I", 9)
        + nested,
        "a string of 2**63 bytes": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63) + b"a",
        "2**62 keys": b"GGUF" + struct.pack("<IQQ", 3, 0, 2**62),
        "2**62 tensors": b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0),
        "a tensor of 2**31 dimensions": b"GGUF"
        + struct.pack("<IQQ", 3, 1, 0)
        + gguf_string(b"a")
        + struct.pack("<I", 2**31),
        "version 10**9": b"GGUF" + struct.pack("<IQQ", 10**9, 0, 0),
        "only the magic": b"GGUF",
        "empty": b"",
    }
    for name, content in raw.items():
        yield Case(name, run, {"m.gguf": content})
    good = gguf(llama_metadata(), llama_tensors())
    yield Case("a good one", run, {"m.gguf": good}, accepted=True)
    for offset in (2**64 - 64, 2**63, 2**40, 1):
        yield Case(f"offsets plus {offset}", run, {"m.gguf": gguf(llama_metadata(), llama_tensors(), offset=offset)})
    for kind in (2, 3, 8, 12, 14, 99, 2**31):
        yield Case(
            f"tensors of type {kind}", run, {"m.gguf": gguf(llama_metadata(), llama_tensors(), tensor_type=kind)}
        )
    for key in (
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.attention.head_count",
        "llama.feed_forward_length",
        "tokenizer.ggml.bos_token_id",
    ):
        for value in (0, 10**6, 2**32 - 1, "x", [1, 2], -1.0):
            metadata = llama_metadata() | {key: value}
            yield Case(
                f"{key}={value}",
                run,
                {"m.gguf": gguf(metadata, llama_tensors())},
                accepted="context" in key or "bos" in key,
            )
    huge = {name: [2**31, 2**31] if name == "token_embd.weight" else shape for name, shape in llama_tensors().items()}
    head = gguf(llama_metadata(), {name: [1] for name in huge})
    yield Case(
        "a tensor of 2**62 numbers",
        run,
        {"m.gguf": head.replace(struct.pack("<IQ", 1, 1), struct.pack("<IQ", 1, 2**62), 1)},
    )
    for cut in range(0, len(good), max(1, len(good) // 40)):
        yield Case(f"cut at byte {cut}", run, {"m.gguf": good[:cut]})
    for template in _templates():
        metadata = llama_metadata() | {"tokenizer.chat_template": template}
        yield Case(
            f"template {template[:30]!r}",
            [*run, "--chat"],
            {"m.gguf": gguf(metadata, llama_tensors())},
            accepted=template in _HARMLESS,
        )


_HARMLESS = ("{{ messages[0].content }}", "{{ 9 ** 9 ** 9 }}")


def _templates() -> Iterator[str]:
    yield from _HARMLESS
    yield "{% for a in range(99999) %}" * 3 + "x" + "{% endfor %}" * 3
    yield "{{ '%0999999999d' % 1 }}"
    yield "{{ messages | tojson(indent=10**9) }}"
    yield "{{ 'x' * 10**10 }}"
    yield "{{ 'x'.ljust(10**10) }}"
    yield "{{ ('x' * 10**6) | center(10**10) }}"
    yield "{{ '{:>9999999999}'.format(1) }}"
    yield "{% set ns = namespace(s='x') %}{% for a in range(200) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}"
    yield "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"
    yield "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    yield "{{ cycler.__init__.__globals__.os.system('touch " + CANARY + "') }}"
    yield "{{ raise_exception('\x1b[2J\x07') }}"
    yield "{{ messages | batch(10**9) | list }}"
    yield "{{ lipsum(n=10**7) }}"
    yield "{% include '/etc/passwd' %}"
    yield "{{ messages | list | slice(10**9) | list }}"
    yield "{{ '\x1b[2J' }}{% bad %}"
    yield "{% for k in [1] recursive %}{{ loop([1]) }}{% endfor %}"
    yield "{{ 'a' | replace('a', 'a' * 10**5) | replace('a', 'a' * 10**5) }}"
    yield "{{ 'a' | indent(10**10) }}{{ 'a\nb' | indent(10**10) }}"
    yield "{{ 'a b' | wordwrap(1, wrapstring='x' * 10**9) }}"


def templates() -> Iterator[Case]:
    """Chat templates that never end, grow without bound, or reach for the system."""
    for template in _templates():
        for name, content in {
            "chat_template.jinja": template.encode(),
            "tokenizer_config.json": json.dumps({"chat_template": template}).encode(),
        }.items():
            yield Case(
                f"{name}: {template[:40]!r}", [*RUN, "--chat"], _folder({name: content}), accepted=template in _HARMLESS
            )
    for name, content in {"not UTF-8": b"\xff\xfe", "empty": b""}.items():
        yield Case(
            f"chat_template.jinja: {name}",
            [*RUN, "--chat"],
            _folder({"chat_template.jinja": content}),
            accepted=name == "empty",
        )
    for value in ([], [1], [{"name": "default"}], {"a": 1}, 7, [{"name": 1, "template": 2}]):
        yield Case(
            f"chat_template={value}",
            [*RUN, "--chat"],
            _folder({"tokenizer_config.json": json.dumps({"chat_template": value}).encode()}),
        )


def tokenizers() -> Iterator[Case]:
    """tokenizer.json files that make the tokenizer library panic, loop or allocate."""
    changes: dict[str, Any] = {
        "FixedLength of 0": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        "FixedLength of 2**62": {"pre_tokenizer": {"type": "FixedLength", "length": 2**62}},
        "truncation to 0, stride 5": {
            "truncation": {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 5}
        },
        "padding to 2**40": {
            "padding": {
                "strategy": {"Fixed": 2**40},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "a",
            }
        },
        "padding to a multiple of 0": {
            "padding": {
                "strategy": "BatchLongest",
                "direction": "Right",
                "pad_to_multiple_of": 0,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "a",
            }
        },
        "padding to a multiple of 2**40": {
            "padding": {
                "strategy": "BatchLongest",
                "direction": "Right",
                "pad_to_multiple_of": 2**40,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "a",
            }
        },
        "a template without tokens": {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [],
                "special_tokens": {},
            }
        },
        "an evil regular expression": {
            "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Removed", "invert": False}
        },
        "a broken regular expression": {
            "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Removed", "invert": False}
        },
        "ids that do not follow": {"model": tokenizer()["model"] | {"vocab": {"a": 2**31, "b": 0}}},
        "an id of 2**32 - 1": {"model": tokenizer()["model"] | {"vocab": {"a": 2**32 - 1}}},
        "merges of nothing": {"model": tokenizer()["model"] | {"merges": ["a", "b c d", ""]}},
        "merges of unknown tokens": {"model": tokenizer()["model"] | {"merges": ["zz yy"]}},
        "an empty vocabulary": {"model": tokenizer()["model"] | {"vocab": {}}},
        "a word piece without unk": {
            "model": {
                "type": "WordPiece",
                "unk_token": "[X]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 0,
                "vocab": {"a": 0},
            }
        },
        "a unigram without pieces": {"model": {"type": "Unigram", "unk_id": 5, "vocab": [], "byte_fallback": True}},
        "a unigram of NaN": {
            "model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", 1e400], ["b", -1e400]], "byte_fallback": False}
        },
        "a BPE dropout of 7": {"model": tokenizer()["model"] | {"dropout": 7.0}},
        "a deep normalizer": {"normalizer": _nested(5_000)},
        "a replacing normalizer that grows": {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}] * 6,
            }
        },
        "a precompiled normalizer of noise": {
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}
        },
        "a decoder that strips 2**62": {"decoder": {"type": "Strip", "content": "a", "start": 2**62, "stop": 2**62}},
        "an added token of nothing": {
            "added_tokens": [
                {
                    "id": 0,
                    "content": "",
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
            ]
        },
        "an added token with an escape": {
            "added_tokens": [
                {
                    "id": 99,
                    "content": ESCAPE,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
            ]
        },
    }
    legal = {
        "an evil regular expression",
        "a BPE dropout of 7",
        "ids that do not follow",
        "FixedLength of 2**62",
        "an empty vocabulary",
        "a deep normalizer",
        "an added token of nothing",
    }
    for name, change in changes.items():
        files = _folder({"tokenizer.json": json.dumps(tokenizer(**change)).encode()})
        yield Case(
            name,
            ["run", "m", "abc " + "a" * 30, "--greedy", "--truncate", "left"],
            files,
            accepted=name in legal or "truncation" in name or "template" in name or "padding" in name,
        )
    for name, content in {"deep": DEEP, "empty": b"", "not UTF-8": b"\xff", "a list": b"[]"}.items():
        yield Case(f"tokenizer.json: {name}", RUN, _folder({"tokenizer.json": content}))


def _nested(depth: int) -> Any:
    found: Any = {"type": "Lowercase"}
    for _ in range(depth // 100):
        found = {"type": "Sequence", "normalizers": [found]}
    return found


def data() -> Iterator[Case]:
    """Data files: bombs, broken encodings, endless lines, hostile tables."""
    steps = ["training.steps=1", "training.minutes=none"]

    def train(recipe: str, name: str, content: bytes, *more: str, accepted: bool = False) -> Case:
        return Case(
            f"{recipe} {name} {' '.join(more)}".strip(),
            ["train", recipe, name, "-o", "r", *steps, *more],
            {name: content},
            accepted=accepted,
        )

    bomb = zstandard.ZstdCompressor(level=19).compress(b"a\n" * 200_000)
    yield Case(
        "a .zst bomb of lines",
        ["evaluate", "m", "bomb.tsv.zst", "--limit", "100"],
        {**_folder({}), "bomb.tsv.zst": bomb},
        accepted=True,
    )
    yield train("translator", "bomb.tsv.zst", bomb, "data.on_error=skip")
    yield train("translator", "long.tsv.zst", zstandard.ZstdCompressor().compress(b"a" * 100_000_000))
    for name, content in {
        "empty.tsv": b"",
        "binary.tsv": bytes(range(256)) * 100,
        "nul.tsv": b"a\0b\tc\n" * 200,
        "cut.tsv.gz": b"\x1f\x8b\x08\x00",
        "noise.tsv.zst": b"\x28\xb5\x2f\xfd" + random.Random(0).randbytes(100),
        "escapes.tsv": f"{ESCAPE}\n".encode() * 10,
    }.items():
        yield train("translator", name, content)
        yield train("gpt", name.replace(".tsv", ".jsonl"), content)
    quotes = b"text,label\n" + b'a","b\n' * 20_000
    yield train("classifier", "quotes.csv", quotes, "data.on_error=skip")
    yield train("classifier", "deep.jsonl", DEEP + b"\n")
    yield train("classifier", "wide.csv", b",".join(b"c" for _ in range(200_000)) + b"\n")
    yield train("gpt", "spaces.txt", b" " * 1_000)
    names = [f"{number}.png" for number in range(40)]
    captions = b"".join(b'{"image": "%s", "caption": "a cat on a mat"}\n' % name.encode() for name in names)
    broken = bytearray(_npz(4))
    broken[80:100] = b"\xff" * 20
    for name, archive in {
        "huge.npz": _npz(2**40),
        "a huge header.npz": _npz(4, padding=1_000_000),
        "cut.npz": _npz(4)[:-30],
        "broken deflate.npz": bytes(broken),
        "bomb.npz": _npz(12_500_000, content=bytes(50_000_000)),
        "noise.npz": b"PK\x03\x04" + bytes(100),
    }.items():
        yield Case(
            f"regions {name}",
            ["train", "vilbert", "pics", "captions.jsonl", "-o", "r", f"data.regions={name}", *steps],
            {name: archive, "captions.jsonl": captions, **{f"pics/{one}": b"x" for one in names}},
        )


def _npz(count: int, *, padding: int = 0, content: bytes = bytes(16)) -> bytes:
    """An archive whose arrays say that they have so many numbers, in a header with so much white space."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}".encode().ljust(117 + padding) + b"\n"
    array = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + content
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("features.npy", "boxes.npy", "names.npy"):
            archive.writestr(name, array)
    return stream.getvalue()


def arguments() -> Iterator[Case]:
    """Options and settings far beyond reason, and escapes in them."""
    files = _folder({})
    for options in (
        ["--num-beams", "1000000000"],
        ["--num-samples", "1000000000"],
        ["--max-new-tokens", "10000000000000"],
        ["--temperature", "nan"],
        ["--top-p", "-1"],
        ["--seed", str(2**80)],
    ):
        yield Case(
            " ".join(options),
            ["run", "m", "abc", *options],
            files,
            accepted=options[0] in ("--seed", "--max-new-tokens"),
        )
    yield Case("an escape in a prompt's error", ["run", "m", f"{ESCAPE}" * 50], files, accepted=True)
    yield Case("an escape in a path", ["run", f"no{ESCAPE}", "a"], files)
    yield Case("an escape in a setting", ["train", "gpt", f"training.{ESCAPE}=1"], files)
    for setting in (
        "model.width=10000000000000",
        "model.layers=1000000000",
        "training.max_tokens=1000000000000000",
        "training.seed=1e400",
        "model.width=nan",
    ):
        yield Case(
            setting,
            ["train", "gpt", "t.txt", "-o", "r", setting, "training.steps=1", "training.minutes=none"],
            {"t.txt": b"some words to learn from. " * 400},
        )
    yield Case("a text of 1 MB of one word", ["run", "m", "-"], files, stdin=b"a" * 1_000_000, accepted=True)
    yield Case(
        "boxes nested deep",
        ["run", "m", "a.png", "what?", "--boxes", "b.json"],
        {**files, "b.json": DEEP, "a.png": b"x"},
    )


ROWS: dict[str, Callable[[], Iterator[Case]]] = {
    "hostile Hugging Face folders": folders,
    "hostile model folders": our_folders,
    "model folders with code": folders_with_code,
    "hostile GGUF files": ggufs,
    "hostile chat templates": templates,
    "hostile tokenizers": tokenizers,
    "hostile data files": data,
    "hostile options and settings": arguments,
    "nothing but white space": blank_texts,
    "terminal escapes": terminal_escapes,
    "hostile traces": traces,
    "hostile T5 folders": t5_folders,
    "hostile SentencePiece models": sentencepieces,
}
