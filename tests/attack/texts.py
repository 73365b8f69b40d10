"""Hostile texts: nothing but white space for every reader of text, and control characters on a terminal."""

import json
from collections.abc import Iterator

from tests.attack.harness import Case
from tests.attack.models import VOCABULARY, gpt2_config, gpt2_files, tokenizer

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b1m\x7f"
BLANKS = {"spaces": b" " * 1_000, "lines": b"\n" * 1_000, "a bit of all": b" \t\r\n\x0b\xc2\xa0\xe3\x80\x80\n" * 100}
STEPS = ["training.steps=1", "training.minutes=none"]
READERS = {  # recipe -> the endings that it reads
    "gpt": ("txt", "jsonl", "txt.gz"),
    "shakespeare-char": ("txt",),
    "bert": ("txt", "jsonl"),
    "translator": ("tsv", "jsonl"),
    "summarizer": ("tsv", "jsonl"),
    "classifier": ("csv", "tsv", "jsonl"),
    "tagger": ("conll", "conllu"),
}


def _folder(**changes: bytes) -> dict[str, bytes]:
    return {f"m/{name}": content for name, content in (gpt2_files() | changes).items()}


def blank_texts() -> Iterator[Case]:
    """White space alone has nothing to learn from, to run on or to score."""
    for kind, content in BLANKS.items():
        for recipe, endings in READERS.items():
            for ending in endings:
                name = f"blank.{ending}"
                yield Case(f"{recipe} {name}: {kind}", ["train", recipe, name, "-o", "r", *STEPS], {name: content})
        two = {"a.en": content, "a.es": content}
        yield Case(f"translator, two files: {kind}", ["train", "translator", *two, "-o", "r", *STEPS], two)
        glue = {"SST-2/train.tsv": content, "SST-2/dev.tsv": content}
        yield Case(f"glue: {kind}", ["train", "glue", "SST-2", "-o", "r", *STEPS], glue)
        for ending in ("txt", "jsonl", "tsv"):
            files = _folder() | {f"blank.{ending}": content}
            yield Case(f"evaluate blank.{ending}: {kind}", ["evaluate", "m", f"blank.{ending}"], files)
        pictures = {"pics/a.png": b"x", "c.jsonl": content, "c.tsv": content}
        for name in ("c.jsonl", "c.tsv"):
            yield Case(f"captions {name}: {kind}", ["train", "captioner", "pics", name, "-o", "r", *STEPS], pictures)
        yield Case(f"run on lines: {kind}", ["run", "m", "--greedy"], _folder(), stdin=content, accepted=True)
        yield Case(f"run on all of it: {kind}", ["run", "m", "-", "--greedy"], _folder(), stdin=content, accepted=True)
    yield Case("run on a space", ["run", "m", " ", "--greedy"], _folder(), accepted=True)


def terminal_escapes() -> Iterator[Case]:
    """Text of folders and models, printed on a terminal."""
    versioned = json.dumps(gpt2_config(transformers_version=ESCAPE)).encode()
    named = _folder() | {f"m/a{ESCAPE.replace('/', '')}.txt": b""}
    for option in ([], ["--json"]):
        said = " ".join(["info", *option])
        yield Case(
            f"{said}: a version",
            ["info", "m", *option],
            _folder(**{"config.json": versioned}),
            terminal=True,
            accepted=True,
        )
        yield Case(f"{said}: the name of a file", ["info", "m", *option], named, terminal=True, accepted=True)
        for prompt in ("abc", ESCAPE):
            arguments = ["run", "m", prompt, "--temperature", "1", "--max-new-tokens", "12", *option]
            for seed in ("1", "2"):
                yield Case(
                    f"{' '.join(['run', *option])} {prompt!r}, seed {seed}",
                    [*arguments, "--seed", seed],
                    _folder(**{"tokenizer.json": _controls()}),
                    terminal=True,
                    accepted=True,
                )
    yield Case("a path that is not there", ["info", f"no{ESCAPE}"], terminal=True)


def _controls() -> bytes:
    """A tokenizer whose tokens are control characters, but for the letters of the prompt."""
    known = [token for token, number in VOCABULARY.items() if number < 5]
    controls = [chr(256 + code) for code in range(32 - len(VOCABULARY) + len(known), 32)]  # as GPT-2 writes these bytes
    vocabulary = {token: number for number, token in enumerate([*known, *controls])}
    model = tokenizer()["model"] | {"vocab": vocabulary}
    return json.dumps(tokenizer(model=model)).encode()
