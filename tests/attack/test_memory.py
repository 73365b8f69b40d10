"""Memory does not grow with the input: `make prove` gives four commands much of it and prints what each took.

Measured is the anonymous memory of the process and its children (RssAnon), every INTERVAL seconds: pages of
memory-mapped files are the system's to take back. Growth is the maximum less the maximum of the same command over a
tenth of the input: when it has imported all it needs is not seen from outside, and depends on the machine. Of steps of
training, which a log shows, the first fifth is warm-up, and growth is the maximum of the last tenth less the median of
the first tenth after the warm-up.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

MAX_GROWTH = 20  # MB
INTERVAL = 0.2  # seconds
LINES, PAIRS, TEXT_BYTES, IMAGES = 100_000, 100_000, 2**30, 20_000
TINY = ["model.width=16", "model.heads=2", "training.warmup=2"]
TINY_STACK = [*TINY, "model.layers=1", "model.feed_forward=16"]

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]


@dataclass(frozen=True)
class Phase:
    """Megabytes, sample by sample, of one phase of a command."""

    name: str
    megabytes: list[float]
    tenth: float | None = None  # the maximum over a tenth of the input

    @property
    def growth(self) -> float:
        if self.tenth is not None:
            return max(self.megabytes) - self.tenth
        warm = self.megabytes[len(self.megabytes) // 5 :]
        tenth = max(1, len(warm) // 10)
        return max(warm[-tenth:]) - statistics.median(warm[:tenth])

    def show(self) -> str:
        seconds = len(self.megabytes) * INTERVAL
        return f"{self.name:38}{seconds:>7.0f} s{max(self.megabytes):>8.0f} MB{self.growth:>+9.1f} MB"


def measure(
    name: str, *arguments: object, stdin: Path | None = None, begins: Callable[[], bool] = lambda: True
) -> Phase:
    """Run `regard …` and sample its memory from the moment that `begins` holds."""
    words = [sys.executable, "-m", "regard", *map(str, arguments)]
    samples = []
    with (stdin or Path(os.devnull)).open("rb") as given, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdin=given, stdout=subprocess.DEVNULL, stderr=errors)
        while process.poll() is None:
            if samples or begins():
                samples.append(sum(map(anonymous_megabytes, family(process.pid))))
            time.sleep(INTERVAL)
        errors.seek(0)
        assert process.returncode == 0, errors.read()
    return Phase(name, samples)


def measure_and_a_tenth(
    name: str, arguments: Sequence[object], tenth: Sequence[object], stdin: Path | None = None, few: Path | None = None
) -> Phase:
    """Run `regard …` over the whole input, and first over a tenth of it."""
    before = measure(name, *tenth, stdin=few)
    return Phase(name, measure(name, *arguments, stdin=stdin).megabytes, max(before.megabytes))


def first_tenth(path: Path) -> Path:
    """A file beside this one with the first tenth of its lines."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    few = path.with_stem(f"{path.stem}-few")
    few.write_text("".join(lines[: len(lines) // 10]), encoding="utf-8")
    return few


def family(process: int) -> Iterator[int]:
    """The process and all its descendants."""
    yield process
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield from family(int(child))


def anonymous_megabytes(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:"))


@pytest.fixture(scope="module", autouse=True)
def table(request):
    """The phases that the tests measured, printed at the end."""
    phases: list[Phase] = []
    yield phases
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{'command':38}{'time':>9}{'largest':>11}{'growth':>12}")
        for phase in phases:
            print(phase.show())


def check(table: list[Phase], *phases: Phase) -> None:
    table += phases
    for phase in phases:
        assert phase.growth < MAX_GROWTH, phase.show()


# ------------------------------------------------ the inputs


@pytest.fixture(scope="module")
def words() -> list[str]:
    chance = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(chance.choices(letters, k=chance.randint(2, 8))) for _ in range(2000)]


def sentences(words: list[str], count: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        yield " ".join(chance.choices(words, k=chance.randint(2, 6)))


@pytest.fixture(scope="module")
def translator(tmp_path_factory, words, command):
    """A folder of the smallest translator that there can be."""
    folder = tmp_path_factory.mktemp("translator")
    pairs = [f"{one}\t{one}\n" for one in sentences(words, 500, seed=1)]
    (folder / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    few = ["model.vocab_size=400", "training.steps=3", "training.max_tokens=512", "task.max_length_ratio=1"]
    done = command("train", "translator", folder / "pairs.tsv", "-o", folder / "run", *TINY_STACK, *few)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def images(tmp_path_factory, words):
    """A folder of small images, the file of their captions, and a folder of the first tenth of the images."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "images").mkdir()
    (folder / "few").mkdir()
    chance = np.random.default_rng(0)
    captions = []
    for number, caption in enumerate(sentences(words[:50], IMAGES, seed=3)):
        Image.fromarray(chance.integers(0, 256, (24, 24, 3), np.uint8)).save(folder / f"images/{number}.png")
        captions.append(f"{number}.png\t{caption}\n")
        if number < IMAGES // 10:
            (folder / f"few/{number}.png").hardlink_to(folder / f"images/{number}.png")
    (folder / "captions.tsv").write_text("".join(captions), encoding="utf-8")
    return folder / "images", folder / "captions.tsv", folder / "few"


# ------------------------------------------------ the bounds


def test_run_over_many_lines(translator, words, tmp_path, table):
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{one}\n" for one in sentences(words, LINES, seed=2)), encoding="utf-8")
    words_of_run = ("run", translator)
    name = f"run, {LINES:,} lines"
    check(table, measure_and_a_tenth(name, words_of_run, words_of_run, lines, first_tenth(lines)))


def test_evaluate_over_many_pairs(translator, words, tmp_path, table):
    pairs = tmp_path / "pairs.tsv"
    both = zip(sentences(words, PAIRS, seed=4), sentences(words, PAIRS, seed=5), strict=True)
    pairs.write_text("".join(f"{one}\t{other}\n" for one, other in both), encoding="utf-8")
    whole, few = (("evaluate", translator, path) for path in (pairs, first_tenth(pairs)))
    check(table, measure_and_a_tenth(f"evaluate, {PAIRS:,} pairs", whole, few))


def test_train_on_a_gigabyte_of_text(words, tmp_path, table):
    """Once to tokenize it, and once more for the steps, with the tokens from the cache."""
    text, few, run = tmp_path / "text.txt", tmp_path / "few.txt", tmp_path / "run"
    write_text(text, words, TEXT_BYTES)
    write_text(few, words, TEXT_BYTES // 10)
    settings = ["model.context=32", "model.vocab_size=300", "training.max_tokens=512", "data.validation_tokens=10000"]
    settings += [*TINY, "model.layers=1", "training.minutes=none"]
    train, tenth = (
        ["train", "gpt", path, "-o", out, *settings] for path, out in ((text, run), (few, tmp_path / "few"))
    )
    one = "training.steps=1"
    tokenizing = measure_and_a_tenth("train gpt, 1 GB of text: tokens", [*train, one], [*tenth, one])
    log = run / "metrics.jsonl"
    before = log.stat().st_size
    steps = measure(
        "train gpt, 1 GB of text: steps", *train, "training.steps=3000", begins=lambda: log.stat().st_size > before
    )
    check(table, tokenizing, steps)


def write_text(path: Path, words: list[str], size: int) -> None:
    chance, written = random.Random(6), 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            page = "".join(" ".join(chance.choices(words, k=12)) + "\n" for _ in range(2000)) * 10
            written += file.write(page)


def test_train_run_and_evaluate_on_many_images(images, tmp_path, table):
    run = tmp_path / "run"
    folder, captions, few = images
    settings = ["model.image_size=32", "model.cell_size=16", "model.feed_forward=16", "model.vocab_size=300"]
    settings += ["data.whole_word_tokens=0", "data.validation=50", "training.max_tokens=512", "training.steps=1000"]
    log = run / "metrics.jsonl"
    train = measure(
        f"train captioner, {IMAGES:,} images",
        *("train", "captioner", folder, captions, "-o", run, *TINY, *settings),
        begins=lambda: log.exists() and log.stat().st_size > 0,
    )
    written = measure_and_a_tenth(f"run a captioner, {IMAGES:,} images", ("run", run, folder), ("run", run, few))
    whole, tenth = (("evaluate", run, folder, path) for path in (captions, first_tenth(captions)))
    check(table, train, written, measure_and_a_tenth(f"evaluate a captioner, {IMAGES:,} images", whole, tenth))
