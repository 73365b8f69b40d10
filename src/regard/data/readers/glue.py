"""Read the folders of the GLUE benchmark as published (Wang 2019): files, columns, labels and metrics of each task.

All files are tab-separated; quotes are ordinary characters. The labels of the test sets and of "diagnostic.tsv" are not
published; "diagnostic-full.tsv" has labels.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from regard.data.readers.bad_rows import BadRows, OnError, RowProblem
from regard.data.readers.labeled import LabeledText, good_rows, parse_labeled
from regard.data.readers.tables import Cells, Row, column_names, read_rows
from regard.errors import DataError

MAX_SCORE = 5.0  # of STS-B
TRAINING = "training"
ENTAILMENT = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Unlabeled:
    """A published split without labels; all have a header."""

    files: tuple[str, ...]
    text: str
    second: str | None = None


@dataclass(frozen=True)
class GlueTask:
    """One task. Columns are names, or numbers from 1 without a header; without `labels` the target is a score, 0 to 5.

    If a task is published in several layouts, `training` and each of `validation` have one file name a layout, in the
    same order. Layouts are never mixed, since MRPC's dev.tsv is a part of msr_paraphrase_train.txt. Of two labels the
    second is the positive one, whose F1 counts.
    """

    name: str
    text: str
    second: str | None
    label: str
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    training: tuple[str, ...] = ("train.tsv",)
    validation: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"dev": ("dev.tsv",)})
    unlabeled: Mapping[str, Unlabeled] = field(default_factory=dict)
    header: bool = True
    undecided: str | None = None  # label of rows without agreement between annotators; they are left out

    @property
    def parts(self) -> list[str]:
        return [*([TRAINING] if self.training else []), *self.validation, *self.unlabeled]


def _test(text: str, second: str | None = None) -> dict[str, Unlabeled]:
    return {"test": Unlabeled(("test.tsv",), text, second)}


GLUE: dict[str, GlueTask] = {
    "cola": GlueTask(
        name="CoLA",
        text="4",
        second=None,
        label="2",
        labels=("0", "1"),
        metrics=("matthews",),
        unlabeled=_test("sentence"),
        header=False,
    ),
    "sst2": GlueTask(
        name="SST-2",
        text="sentence",
        second=None,
        label="label",
        labels=("0", "1"),
        metrics=("accuracy",),
        unlabeled=_test("sentence"),
    ),
    "mrpc": GlueTask(
        name="MRPC",
        text="#1 String",
        second="#2 String",
        label="Quality",
        labels=("0", "1"),
        metrics=("f1", "accuracy"),
        training=("train.tsv", "msr_paraphrase_train.txt"),
        validation={"dev": ("dev.tsv", "msr_paraphrase_test.txt")},
        unlabeled=_test("#1 String", "#2 String"),
    ),
    "stsb": GlueTask(
        name="STS-B",
        text="sentence1",
        second="sentence2",
        label="score",
        labels=None,
        metrics=("pearson", "spearman"),
        unlabeled=_test("sentence1", "sentence2"),
    ),
    "qqp": GlueTask(
        name="QQP",
        text="question1",
        second="question2",
        label="is_duplicate",
        labels=("0", "1"),
        metrics=("f1", "accuracy"),
        unlabeled=_test("question1", "question2"),
    ),
    "mnli": GlueTask(
        name="MNLI",
        text="sentence1",
        second="sentence2",
        label="gold_label",
        labels=ENTAILMENT,
        metrics=("accuracy",),
        validation={"matched": ("dev_matched.tsv",), "mismatched": ("dev_mismatched.tsv",)},
        unlabeled={
            "test_matched": Unlabeled(("test_matched.tsv",), "sentence1", "sentence2"),
            "test_mismatched": Unlabeled(("test_mismatched.tsv",), "sentence1", "sentence2"),
        },
        undecided="-",
    ),
    "qnli": GlueTask(
        name="QNLI",
        text="question",
        second="sentence",
        label="label",
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        unlabeled=_test("question", "sentence"),
    ),
    "rte": GlueTask(
        name="RTE",
        text="sentence1",
        second="sentence2",
        label="label",
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        unlabeled=_test("sentence1", "sentence2"),
    ),
    "wnli": GlueTask(
        name="WNLI",
        text="sentence1",
        second="sentence2",
        label="label",
        labels=("0", "1"),
        metrics=("accuracy",),
        unlabeled=_test("sentence1", "sentence2"),
    ),
    "ax": GlueTask(  # has no training set: models trained on MNLI are scored
        name="AX",
        text="Premise",
        second="Hypothesis",
        label="Label",
        labels=ENTAILMENT,
        metrics=("matthews",),
        training=(),
        validation={"dev": ("diagnostic-full.tsv",)},
        unlabeled={"test": Unlabeled(("diagnostic.tsv", "AX.tsv"), "sentence1", "sentence2")},
    ),
}
OTHER_NAMES = {"sst": "sst2", "sts": "stsb", "multinli": "mnli", "diagnostic": "ax", "diagnostics": "ax"}


def find_glue_task(folder: Path, name: str | None = None) -> GlueTask:
    """The task of a folder: by `name` (data.task=…), else by the folder's name ("SST-2", "sst2", "sts-b")."""
    given = name or folder.absolute().name
    plain = re.sub("[^a-z0-9]", "", given.casefold())
    if task := GLUE.get(OTHER_NAMES.get(plain, plain)):
        return task
    known = ", ".join(task.name for task in GLUE.values())
    where = f"data.task={given}" if name else f"{folder}: the name of the folder"
    raise DataError(f"{where} is not a GLUE task, wanted {known}; set data.task=…")


def read_glue(folder: Path, task: GlueTask, part: str, *, on_error: OnError, report: BadRows) -> Iterator[LabeledText]:
    """Stream the rows of a part: "training", one of `task.validation` or one of `task.unlabeled`.

    DataError: a folder, file or column is missing (raised at once), or a row is bad, for example has an unknown label,
    unless `on_error` is "skip". Rows with the label `task.undecided` are left out and counted in the report.
    """
    if part not in task.parts:
        raise DataError(f"{task.name} has no part {part!r}, only {', '.join(task.parts)}")
    if found := task.unlabeled.get(part):
        path, header = _unlabeled_file(folder, task, found.files), True
        wanted = [column for column in (found.text, found.second) if column]
    else:
        path, header = _file(folder, task, part), task.header
        wanted = [column for column in (task.text, task.second, task.label) if column]
    make = partial(_checked, task=task, labeled=found is None)
    rows = _rows(path, wanted, header)
    if found is None and task.undecided is not None:
        rows = _decided(rows, task.undecided, report)
    return good_rows(path, rows, make, on_error, report)


def _file(folder: Path, task: GlueTask, part: str) -> Path:
    """The file of the first layout that the folder has."""
    parts = {TRAINING: task.training, **task.validation} if task.training else dict(task.validation)
    _check_folder(folder)
    for layout, name in enumerate(parts[part]):
        if any((folder / files[layout]).is_file() for files in parts.values()):
            if not (folder / name).is_file():
                break
            return folder / name
    raise DataError(f"{folder}: has no {' or '.join(parts[part])}, the {part} part of {task.name} as published")


def _unlabeled_file(folder: Path, task: GlueTask, files: tuple[str, ...]) -> Path:
    _check_folder(folder)
    for name in files:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder}: has no {' or '.join(files)}, the part of {task.name} without labels")


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise DataError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}, wanted a GLUE folder")


def _rows(path: Path, wanted: list[str], header: bool) -> Iterator[Row]:
    names = column_names(path, header=header, form=".tsv")
    if missing := [column for column in wanted if column not in names]:
        raise DataError(
            f"{path}: has no column {', '.join(missing)}, only {', '.join(names[:16])[:200]}; "
            "wanted the published file, or data.task=… for another task"
        )
    return read_rows(path, [names.index(column) for column in wanted], header=header, form=".tsv")


def _decided(rows: Iterator[Row], undecided: str, report: BadRows) -> Iterator[Row]:
    for line, cells in rows:
        if not isinstance(cells, RowProblem) and cells[-1] == undecided:
            report.excluded[f"with the label {undecided!r}, without agreement between annotators"] += 1
        else:
            yield line, cells


def _checked(cells: Cells, *, task: GlueTask, labeled: bool) -> LabeledText | RowProblem:
    found = parse_labeled(cells, pair=task.second is not None, label=labeled, labels_needed=labeled)
    if isinstance(found, RowProblem) or found.label is None:
        return found
    if task.labels is None:
        fine, wanted = _is_score(found.label), f"a score from 0 to {MAX_SCORE:g}"
    else:
        fine, wanted = found.label in task.labels, " or ".join(task.labels)
    return found if fine else RowProblem("wrong label", f"got {found.label!r}, wanted {wanted}")


def _is_score(text: str) -> bool:
    try:
        return 0 <= float(text) <= MAX_SCORE
    except ValueError:
        return False
