"""The readers that take bytes of strangers, each as a function that a fuzzer can call: only RegardError may come out.

Where a reader takes files of several formats, the first byte of the input chooses among them.
"""

import contextlib
import hashlib
import io
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from gzip import compress as gzip
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from PIL import Image

from regard import checkpoint, config, files, huggingface, recipes, size_limits
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import read_captions
from regard.data.readers.columns import Columns
from regard.data.readers.conll import read_tagged
from regard.data.readers.documents import read_documents
from regard.data.readers.easy_vqa import read_easy_vqa
from regard.data.readers.glue import GLUE, read_glue
from regard.data.readers.labeled import read_labeled
from regard.data.readers.pairs import read_pairs
from regard.data.readers.regions import read_regions
from regard.data.readers.word_vectors import read_vectors
from regard.errors import FolderError, RegardError
from regard.huggingface.gguf_header import read_header
from regard.images.decoding import read_image
from regard.models import MODELS, build, examples, model_class
from regard.tasks.loading import load_with_task
from regard.tasks.recipe import TrainingInputs
from regard.tasks.vision_language.pipeline import VisionLanguagePipeline
from regard.tokenizers import untrusted
from regard.tokenizers.chat import apply_chat_template
from tests.attack.models import gguf, gpt2_config, gpt2_files, gpt2_shapes, llama_metadata, llama_tensors, safetensors
from tests.attack.models import tokenizer as good_tokenizer

REFUSED = FolderError("uncommon: tried in a child process, which is not fuzzed")


@dataclass(frozen=True)
class Target:
    """A reader, and inputs from which a fuzzer starts."""

    read: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    json_at: int | None = None  # where the JSON begins in an input; None: it is none

    def survives(self, data: bytes) -> None:
        """Read these bytes; whatever comes out but RegardError is a finding."""
        with contextlib.suppress(RegardError):
            self.read(data)


@cache
def _scratch() -> Path:
    memory = Path("/dev/shm")  # a file system in memory: on a disk most of the time goes into writing files
    _keep.append(tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory if memory.is_dir() else None))
    return Path(_keep[-1].name)


_keep: list["tempfile.TemporaryDirectory[str]"] = []


def _file(name: str, data: bytes) -> Path:
    path = _scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _choose(data: bytes, choices: Iterable[Any]) -> tuple[Any, bytes]:
    some = list(choices)
    return some[data[0] % len(some)] if data else some[0], data[1:]


def _choices(*contents: bytes) -> list[bytes]:
    """The contents, each behind the byte that chooses its place in the list."""
    return [bytes([number]) + content for number, content in enumerate(contents)]


def _drain(rows: Iterable[Any]) -> None:
    for _ in rows:
        pass


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


# ------------------------------------------------ models


def _gguf(data: bytes) -> None:
    read_header(_file("m.gguf", data))


def _gguf_seeds() -> list[bytes]:
    return [gguf(llama_metadata(), llama_tensors()), gguf({"general.alignment": 64}, {"a": [2, 2]}), gguf({}, {})]


def _tokenizer(data: bytes) -> None:
    """A common tokenizer.json is used in this process; any other would go to a child process."""
    try:
        common = untrusted.is_common(json.loads(data.decode()))
    except (ValueError, RecursionError):
        common = True  # `read_tokenizer` must say so
    if not common:
        raise REFUSED
    found = untrusted.read_tokenizer(data)
    found.decode(found.encode("a b\n<|endoftext|>ß", "c").ids)


def _tokenizer_seeds() -> list[bytes]:
    wordpiece = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 9,
        "vocab": {"[UNK]": 0, "a": 1, "##b": 2},
    }
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"a": {"id": "a", "ids": [2], "tokens": ["a"]}},
    }
    strip = {"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return [
        _json(good_tokenizer()),
        _json(good_tokenizer(post_processor=template, decoder=strip, normalizer={"type": "NFC"})),
        _json(good_tokenizer(model=wordpiece, pre_tokenizer={"type": "BertPreTokenizer"}, decoder=None)),
    ]


FOREIGN_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "model.safetensors.index.json",
    "special_tokens_map.json",
)


def _foreign_folder(data: bytes) -> None:
    """A folder of GPT-2 in which one file of JSON is the input."""
    name, content = _choose(data, FOREIGN_FILES)
    folder = _scratch() / "foreign"
    for each in FOREIGN_FILES:
        (folder / each).unlink(missing_ok=True)
    for each, good in gpt2_files().items():
        _file(f"foreign/{each}", good)
    if "index" in name:
        (folder / "model.safetensors").rename(folder / "shard.safetensors")
    _file(f"foreign/{name}", content)
    if huggingface.is_foreign(folder):
        huggingface.load(folder)


def _foreign_seeds() -> list[bytes]:
    families = [
        {"model_type": "llama", "vocab_size": 28, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2}
        | {"num_attention_heads": 2, "max_position_embeddings": 16, "rope_scaling": {"rope_type": "default"}},
        {"model_type": "qwen2", "vocab_size": 28, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2}
        | {"num_attention_heads": 2, "max_position_embeddings": 16},
        {"model_type": "bert", "vocab_size": 28, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
        {"model_type": "marian", "vocab_size": 28, "d_model": 8, "encoder_layers": 1, "pad_token_id": 1},
        {"model_type": "t5", "vocab_size": 28, "d_model": 8, "num_layers": 1, "num_heads": 2, "d_kv": 4, "d_ff": 16},
        {"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8},
    ]
    one_each = _choices(
        _json(gpt2_config()),
        _json({"eos_token_id": [0, 1], "bos_token_id": 0, "max_length": 5, "num_beams": 2}),
        _json(
            {"bos_token": "a", "eos_token": {"content": "b"}, "chat_template": [{"name": "default", "template": ""}]}
        ),
        _json({"weight_map": dict.fromkeys(gpt2_shapes(), "shard.safetensors")}),
        _json({"eos_token": "a"}),
    )
    return one_each + [b"\0" + _json(family) for family in families]


def _our_folder(data: bytes) -> None:
    """A folder of ours whose config.json is the input, and whose manifest is right."""
    folder = _scratch() / "ours"
    if not folder.exists():
        folder.mkdir()
        files.write_files(folder, _our_files())
    manifest = dict(_our_manifest())
    manifest["config.json"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "config.json").write_bytes(data)
    (folder / "MANIFEST.json").write_bytes(_json(manifest))
    load_with_task(folder)


@cache
def _our_files() -> dict[str, bytes]:
    model_config = model_class("gpt").config_class(vocab_size=28, context=16, width=8, heads=2, layers=1)
    tokenizer = {"tokenizer.json": _json(good_tokenizer())}
    return checkpoint.model_files("gpt", build(model_config), {"name": "language-modeling"}, tokenizer, "")


@cache
def _our_manifest() -> dict[str, Any]:
    return {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in _our_files().items()
    }


def _our_seeds() -> list[bytes]:
    good = _our_files()["config.json"]
    kinds = [
        {"format": 2, "kind": kind, "model": example.model_dump(mode="json"), "task": {"name": "tagging"}}
        for kind in MODELS
        for example in islice(examples(kind), 1)
    ]
    return [good, *map(_json, kinds), _json({"kind": "gpt", "model": {"width": 8}, "task": {"name": "gpt"}})]


def _manifest(data: bytes) -> None:
    _file("manifest/config.json", b"{}")
    _file("manifest/MANIFEST.json", data)
    files.verify(_scratch() / "manifest")


def _manifest_seeds() -> list[bytes]:
    right = {"size": 2, "sha256": hashlib.sha256(b"{}").hexdigest()}
    return [
        _json({"config.json": right}),
        _json({"../config.json": right}),
        _json({"config.json": right | {"size": 3}}),
    ]


def _safetensors(data: bytes) -> None:
    path = _file("m.safetensors", data)
    size_limits.check_sizes({"width": [8, {"a": 3}]}, path, [path])
    checkpoint.read_tensors(path)


def _safetensors_seeds() -> list[bytes]:
    kinds = {"F16": 2, "BF16": 2, "I64": 8, "BOOL": 1, "F8_E4M3": 1, "U16": 2}
    headers = [_json({"x": {"dtype": name, "shape": [1], "data_offsets": [0, size]}}) for name, size in kinds.items()]
    typed = [
        struct.pack("<Q", len(header)) + header + bytes(size)
        for header, size in zip(headers, kinds.values(), strict=True)
    ]
    return [safetensors({"a": [2, 3], "b": []}), safetensors({}, {"__metadata__": {"format": "pt"}}), *typed]


def _template(data: bytes) -> None:
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": None}]
    apply_chat_template(data.decode("utf-8", "replace"), messages, bos_token="<s>", eos_token="</s>")


def _template_seeds() -> list[bytes]:
    return [
        b"{% for m in messages %}{{ m.role }}: {{ m['content'] | trim }}\n{% endfor %}",
        b"{{ bos_token }}{% if add_generation_prompt %}{{ raise_exception('no') }}{% endif %}",
        b"{% set x = namespace(a=1) %}{% macro f(y) %}{{ y | tojson }}{% endmacro %}{{ f(x.a) }}",
        b"{{ strftime_now('%Y') }}",
    ]


# ------------------------------------------------ data


def _documents(data: bytes) -> None:
    name, content = _choose(data, ("a.txt", "a.txt.gz", "a.txt.zst", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst"))
    for blank_lines in (False, True):
        _drain(read_documents([_file(name, content)], on_error="skip", report=BadRows(), blank_lines=blank_lines))


def _document_seeds() -> list[bytes]:
    text, lines = b"\xef\xbb\xbfa b\r\n\r\nc\n", b'{"text": "a b"}\n\n{"text": 1}\n[]\n'
    zst = zstandard.ZstdCompressor().compress
    return _choices(text, gzip(text, mtime=0), zst(text), lines, gzip(lines, mtime=0), zst(lines) * 2)


def _tables(data: bytes) -> None:
    name, content = _choose(data, ("a.csv", "a.tsv", "a.jsonl", "a.csv.gz"))
    path = _file(name, content)
    for columns in (Columns(), Columns(text="1", label="2")):
        for needed in (True, False):
            try:
                _drain(read_labeled([path], columns=columns, on_error="skip", report=BadRows(), labels_needed=needed))
            except RegardError:
                continue


def _table_seeds() -> list[bytes]:
    csv = b'text,label\n"a, ""b""\nc",1\nd,2\n'
    return _choices(
        csv, b"sentence1\tsentence2\tlabel\na\tb\t1\n", b'{"text": "a", "label": 1.0}\n', gzip(csv, mtime=0)
    )


def _pairs(data: bytes) -> None:
    names, content = _choose(data, (["a.tsv"], ["a.jsonl"], ["a.en", "a.es"]))
    parts = content.split(b"\0", 1) if len(names) == 2 else [content]
    paths = [_file(name, part) for name, part in zip(names, [*parts, b""], strict=False)]
    _drain(read_pairs(paths, on_error="skip", report=BadRows(), longest=10))


def _pair_seeds() -> list[bytes]:
    return _choices(b"a b\tc\nd\te f\tg\n", b'{"source": "a", "target": "b"}\n', b"a\nb\n\0c\nd\n")


def _conll(data: bytes) -> None:
    name, content = _choose(data, ("a.conll", "a.conllu", "a.tsv.gz"))
    path = _file(name, content)
    for needed in (True, False):
        try:
            _drain(read_tagged([path], on_error="skip", report=BadRows(), labels_needed=needed))
        except RegardError:
            continue


def _conll_seeds() -> list[bytes]:
    plain = b"-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n"
    universal = b"# text = a b\n1\ta\ta\tDET\n2-3\tbc\t_\t_\n2\tb\tb\tNOUN\n\n"
    return _choices(plain, universal, gzip(plain, mtime=0))


def _glue(data: bytes) -> None:
    name, content = _choose(data, GLUE)
    task = GLUE[name]
    folder = _file("glue/train.tsv", content).parent
    for file in ("dev.tsv", "test.tsv", "dev_matched.tsv", "diagnostic-full.tsv"):
        _file(f"glue/{file}", content)
    for part in task.parts:
        try:
            _drain(read_glue(folder, task, part, on_error="skip", report=BadRows()))
        except RegardError:
            continue


def _glue_seeds() -> list[bytes]:
    def table(task: Any) -> bytes:
        columns = [column for column in (task.text, task.second, task.label) if column]
        label = task.labels[0] if task.labels else "2.5"
        if not task.header:
            return b"x\t1\t*\ta b\n"
        return ("\t".join(columns) + "\n" + "\t".join(["a b", *(["c"] if task.second else []), label]) + "\n").encode()

    return _choices(*(table(task) for task in GLUE.values()))


def _captions(data: bytes) -> None:
    name, content = _choose(data, ("c.jsonl", "c.json", "c.tsv", "c.csv", "c.txt", "c.json.gz"))
    _file("pictures/a.png", b"")
    read_captions(_scratch() / "pictures", _file(name, content), on_error="skip", report=BadRows())


def _caption_seeds() -> list[bytes]:
    coco = _json({"images": [{"id": 1, "file_name": "a.png"}], "annotations": [{"image_id": 1, "caption": "a"}]})
    return _choices(
        b'{"image": "a.png", "captions": ["a", "b"]}\n',
        coco,
        b"a.png#0\ta cat\n",
        b'image,caption\na.png,"a, b"\n',
        b"image_name| comment_number| comment\na.png| 0| a | b\n",
        gzip(coco, mtime=0),
    )


def _easy_vqa(data: bytes) -> None:
    name, content = _choose(data, ("answers.txt", "train/questions.json"))
    good = _json([["is it a circle?", "yes", 0]])
    for path, text in {"answers.txt": b"yes\nno\n", "train/questions.json": good, "test/questions.json": good}.items():
        _file(f"vqa/{path}", content if path == name else text)
    for part in ("train", "test"):
        _file(f"vqa/{part}/images/0.png", b"")
    read_easy_vqa(_scratch() / "vqa", on_error="skip", report=BadRows())


def _easy_vqa_seeds() -> list[bytes]:
    return _choices(b"yes\nblue\n", _json([["is it?", "no", 0], ["what?", 1, None]]))


def _vectors(data: bytes) -> None:
    name, content = _choose(data, ("v.txt", "v.bin", "v.vec.gz"))
    read_vectors(_file(name, content))


def _vector_seeds() -> list[bytes]:
    text = b"2 3\nthe 0.1 -2e3 .5\nof a 1 2 3\n"
    return _choices(text, b"1 2\nthe " + struct.pack("<2f", 1, 2) + b"\n", gzip(text, mtime=0))


def _regions(data: bytes) -> None:
    """An archive, or the bytes of its features or boxes: the checksums of an archive keep a fuzzer out."""
    name, content = _choose(data, ("r.npz", "r.safetensors", "features", "boxes"))
    if name in ("features", "boxes"):
        name, content = "r.npz", _archive(**{name: content})
    read_regions(_file(name, content))


def _archive(**changes: bytes) -> bytes:
    arrays = {
        "features": _npy(np.ones((1, 2, 3), np.float32)),
        "boxes": _npy(np.array([[[0, 0, 1, 1], [0, 0, 0.5, 1]]])),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in (arrays | changes).items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _region_seeds() -> list[bytes]:
    features, boxes = np.ones((1, 2, 3), np.float32), np.array([[[0, 0, 1, 1], [0, 0, 0.5, 0.5]]], np.float32)
    found = []
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, features=features, boxes=boxes, classes=np.array([[0, 1]]), names=np.array(["a"]))
        found.append(b"\0" + stream.getvalue())
    tensors = {"features": [1, 2, 3], "boxes": [1, 2, 4]}
    zeros = safetensors(tensors, {"__metadata__": {"names": '["a"]'}})
    ones = zeros[: -(6 + 8) * 4] + features.tobytes() + boxes.tobytes()
    return [*found, b"\1" + ones, b"\2" + _npy(features), b"\3" + _npy(boxes)]


def _image(data: bytes) -> None:
    """The bytes as they are, or a PNG with its checksums put right."""
    repair, content = _choose(data, (False, True))
    read_image(_with_checksums(content) if repair else content)


def _with_checksums(data: bytes) -> bytes:
    at, found = 8, data[:8]
    while at + 12 <= len(data):
        length = min(int.from_bytes(data[at : at + 4], "big"), len(data) - at - 12)
        chunk = data[at + 4 : at + 8 + length]
        found += data[at : at + 4] + chunk + struct.pack(">I", zlib.crc32(chunk))
        at += 12 + length
    return found + data[at:]


def _image_seeds() -> list[bytes]:
    found = []
    for mode, form in (("RGB", "PNG"), ("P", "PNG"), ("I;16", "PNG"), ("LA", "PNG"), ("RGB", "JPEG"), ("CMYK", "JPEG")):
        stream = io.BytesIO()
        Image.new(mode, (3, 2)).save(stream, form)
        found.append(stream.getvalue())
    exif = b"eXIf" + b"MM\0*" + struct.pack(">IHHHIHH", 8, 1, 0x0112, 3, 1, 6, 0)
    chunk = struct.pack(">I", len(exif) - 4) + exif + struct.pack(">I", zlib.crc32(exif))
    upright = found[0][:33] + chunk + found[0][33:]
    return [*(b"\0" + one for one in (*found, upright)), *(b"\1" + one for one in found[:4])]


# ------------------------------------------------ what the user writes


def _overrides(data: bytes) -> None:
    name, content = _choose(data, ("gpt", "translator", "classifier", "vilbert"))
    config.override(_settings(name), content.decode("utf-8", "surrogateescape").split("\n"))


@cache
def _settings(recipe: str) -> Any:
    return recipes.find(recipe).settings(TrainingInputs([Path("a.txt")]))


def _override_seeds() -> list[bytes]:
    return [
        *_choices(
            b"training.steps=200\nmodel.width=96\nmodel.heads=6",
            b"training.learning_rate=1e-3\ntraining.minutes=none",
            b"data.text=1\ndata.on_error=skip",
            b"model.vision.grid=8\nmodel.vision.patch_size=4",
        ),
        b"\0training.optimizer=muon\ntraining.schedule=linear\nmodel.tie_embeddings=true\nmodel.dropout=0.1",
    ]


def _boxes(data: bytes) -> None:
    """What `--boxes FILE.json` gives for an image, as the run command reads it."""
    found = files.read_json(_file("boxes.json", data))
    _vilbert().regions_of(np.zeros((4, 6, 3), np.uint8), found.get("a.png"))


@cache
def _vilbert() -> VisionLanguagePipeline:
    class Shape:
        class config:  # noqa: N801 - as a model has it
            class vision:  # noqa: N801
                grid, patch_size = 0, 2

    return VisionLanguagePipeline("vilbert", Shape(), None)  # type: ignore[arg-type]


def _box_seeds() -> list[bytes]:
    return [_json({"a.png": [[0, 0, 6, 4], [1, 1.5, 2, 3]]}), _json({"a.png": [[0, 0, 9, 9]]}), _json({"b.png": []})]


TARGETS: dict[str, Target] = {
    "gguf header": Target(_gguf, _gguf_seeds),
    "tokenizer.json": Target(_tokenizer, _tokenizer_seeds, json_at=0),
    "Hugging Face folder": Target(_foreign_folder, _foreign_seeds, json_at=1),
    "config.json": Target(_our_folder, _our_seeds, json_at=0),
    "MANIFEST.json": Target(_manifest, _manifest_seeds, json_at=0),
    "safetensors": Target(_safetensors, _safetensors_seeds, json_at=8),
    "chat template": Target(_template, _template_seeds),
    "documents": Target(_documents, _document_seeds),
    "tables": Target(_tables, _table_seeds),
    "pairs": Target(_pairs, _pair_seeds),
    "conll": Target(_conll, _conll_seeds),
    "glue": Target(_glue, _glue_seeds),
    "captions": Target(_captions, _caption_seeds, json_at=1),
    "easy-vqa": Target(_easy_vqa, _easy_vqa_seeds, json_at=1),
    "word vectors": Target(_vectors, _vector_seeds),
    "regions": Target(_regions, _region_seeds),
    "image": Target(_image, _image_seeds),
    "settings": Target(_overrides, _override_seeds),
    "boxes": Target(_boxes, _box_seeds, json_at=0),
}
