"""Small GLUE folders in the published layout of each task, with rules a tiny model can learn."""

import random
from pathlib import Path

from regard.data.readers.glue import GLUE, GlueTask, find_glue_task

GOOD, BAD = ("good", "fine", "lovely", "great"), ("bad", "poor", "awful", "dull")
NAMES = ("Ann", "Bob", "Eve", "Tom", "Sue", "Max")
ACTS = ("sings", "sleeps", "runs", "reads", "cooks")
PLACES = ("home", "school", "town", "work")
MNLI = (
    *("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse"),
    *("sentence1_parse", "sentence2_parse", "sentence1", "sentence2"),
)
AX = ("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge", "Domain")

Example = tuple[str, str, str]  # text, second, label; what a task does not have is empty


def write_glue(folder: Path, task: str, rows: int = 40, seed: int = 0) -> Path:
    """Make a folder of a task ("mrpc", "SST-2"): so many rows to train on, half as many in each other part."""
    found = find_glue_task(folder, task)
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(f"{seed} {found.name}")
    if found.training:
        _write(folder / found.training[0], found, _examples(found, rows, chance), "training")
    for part, files in found.validation.items():
        _write(folder / files[0], found, _examples(found, max(2, rows // 2), chance), part)
    for part, unlabeled in found.unlabeled.items():
        _write(folder / unlabeled.files[0], found, _examples(found, max(2, rows // 2), chance), part)
    return folder


def _examples(task: GlueTask, rows: int, chance: random.Random) -> list[Example]:
    labels = task.labels or tuple(f"{score}.000" for score in range(6))
    return [_example(task.name, labels[row % len(labels)], chance) for row in range(rows)]


def _example(task: str, label: str, chance: random.Random) -> Example:
    name, act, place = chance.choice(NAMES), chance.choice(ACTS), chance.choice(PLACES)
    match task:
        case "CoLA":  # the order of the words
            return (f"{name} {act} at {place}." if label == "1" else f"{act} at {name} {place}."), "", label
        case "SST-2":
            return f'the "{place}" film is {chance.choice(GOOD if label == "1" else BAD)}', "", label
        case "QNLI":
            who = name if label == "entailment" else _other(NAMES, name, chance)
            return f"Where is {name}?", f'{who} is at "{place}.', label
        case "STS-B":  # as many words in common as the score says
            same = [name, act, place, chance.choice(GOOD), chance.choice(BAD)]
            return " ".join(same), " ".join([*same[: int(float(label))], *["thing"] * (5 - int(float(label)))]), label
    premise = f'{name} {act} at {place}, "they say.'
    match label:
        case "1" | "entailment":
            return premise, f"{name} {act}.", label
        case "neutral":
            return premise, f"{name} is {chance.choice(GOOD)}.", label
    return premise, f"{name} never {act}.", label


def _other(words: tuple[str, ...], word: str, chance: random.Random) -> str:
    return chance.choice([other for other in words if other != word])


def _write(path: Path, task: GlueTask, examples: list[Example], part: str) -> None:
    lines = _lines(task, examples, part)
    # MRPC has a byte order mark before its header, as Microsoft published it.
    encoding = "utf-8-sig" if task.name == "MRPC" else "utf-8"
    path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding=encoding)


def _lines(task: GlueTask, examples: list[Example], part: str) -> list[tuple[str, ...]]:
    if part in task.unlabeled:
        return _unlabeled_lines(task, examples)
    rows = [(str(i), *example) for i, example in enumerate(examples)]
    match task.name:
        case "CoLA":
            return [("gj04", label, "" if label == "1" else "*", text) for _, text, _, label in rows]
        case "SST-2":
            return [("sentence", "label"), *((f"{text} ", label) for _, text, _, label in rows)]
        case "MRPC":
            header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
            return [header, *((label, f"70{i}", f"80{i}", text, second) for i, text, second, label in rows)]
        case "STS-B":
            header = ("index", "genre", "filename", "year", "old_index", "source1", "source2")
            before = ("main-captions", "MSRvid", "2012test", "0001", "none", "none")
            return [(*header, "sentence1", "sentence2", "score"), *((row[0], *before, *row[1:]) for row in rows)]
        case "QQP":
            header = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
            return [header, *((row[0], f"1{row[0]}", f"2{row[0]}", *row[1:]) for row in rows)]
        case "MNLI":
            votes = 1 if part == "training" else 5
            header = (*MNLI, *(f"label{vote}" for vote in range(1, votes + 1)), "gold_label")
            found = [(i, *_parses(i), text, second, *[label] * (votes + 1)) for i, text, second, label in rows]
            undecided = (str(len(rows)), *_parses("x"), "Who knows.", "Nobody.", *["neutral"] * votes, "-")
            return [header, *found, *([] if part == "training" else [undecided])]
        case "QNLI":
            return [("index", "question", "sentence", "label"), *rows]
        case "AX":
            return [
                (*AX, "Premise", "Hypothesis", "Label"),
                *(("", "", "Negation", "", "News", *row[1:]) for row in rows),
            ]
        case _:
            return [("index", "sentence1", "sentence2", "label"), *rows]


def _unlabeled_lines(task: GlueTask, examples: list[Example]) -> list[tuple[str, ...]]:
    rows = [(str(i), *example[: 1 if task.second is None else 2]) for i, example in enumerate(examples)]
    match task.name:
        case "CoLA" | "SST-2":
            return [("index", "sentence"), *rows]
        case "MRPC":
            return [("index", "#1 ID", "#2 ID", "#1 String", "#2 String"), *((i, "7", "8", *two) for i, *two in rows)]
        case "STS-B":
            before = ("main-captions", "MSRvid", "2012test", "0001", "none", "none")
            header = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2")
            return [header, *((i, *before, *two) for i, *two in rows)]
        case "QQP":
            return [("id", "question1", "question2"), *rows]
        case "MNLI":
            return [MNLI, *((i, *_parses(i), *two) for i, *two in rows)]
        case "QNLI":
            return [("index", "question", "sentence"), *rows]
        case _:
            return [("index", "sentence1", "sentence2"), *rows]


def _parses(index: str) -> tuple[str, ...]:
    return f"3{index}", f"3{index}n", "fiction", "( a b )", "( a b )", "(ROOT a)", "(ROOT b)"


assert {task.name for task in GLUE.values()} == {
    *("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI", "AX")
}
