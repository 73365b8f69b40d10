"""Score classifiers and taggers: on the user's files, on a folder of GLUE, or on what a run held out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import Field

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.columns import Columns
from regard.data.readers.conll import TaggedSentence, read_tagged
from regard.data.readers.glue import GlueTask, find_glue_task
from regard.data.readers.labeled import LabeledText, read_labeled
from regard.errors import DataError
from regard.metrics.classification import confusion_matrix
from regard.metrics.tagging import tagging_metrics
from regard.tasks.classification.data import (
    GlueDataConfig,
    LabeledDataConfig,
    check_labels,
    check_scores,
    metrics_of,
    read_corpus,
    read_glue_corpus,
    read_glue_validation,
)
from regard.tasks.classification.pipeline import Classifier
from regard.tasks.classification.task import score_logits
from regard.tasks.run_settings import Reading, RunSettings, held_out_of, settings_of, told
from regard.tasks.tagging.data import TaggedDataConfig, check_tags, read_tagged_corpus
from regard.tasks.tagging.pipeline import Tagger

WORST = 5  # errors shown


class TableReading(Columns, Reading):
    """How tables to be scored are read."""


class GlueReading(Reading):
    """How a folder of GLUE to be scored is read."""

    task: str | None = Field(None, description="which one it is; none: as the folder is called")


class TaggedReading(Reading):
    """How tagged sentences to be scored are read."""

    word_column: int | None = Field(None, ge=1, description="of the word; none: the first (.conllu: the second)")
    label_column: int | None = Field(None, ge=1, description="of the label; none: the last (.conllu: the fourth)")


def score_labels(
    classifier: Classifier,
    folder: Path,
    paths: Sequence[Path],
    *,
    most: int | None = None,
    assignments: Sequence[str] = (),
) -> dict[str, Any]:
    """The task's own metrics, a table of confusions and the worst errors; of `most` only the first so many rows.

    The run's own settings say how the files are read, unless the assignments do.
    """
    bad = BadRows()
    parts, metrics = _labeled(classifier, folder, paths, bad, assignments)
    run = settings_of(folder)
    whole = run is not None and run.settings["data"].get("too_long") == "stop"
    found: dict[str, Any] = {}
    for name, rows in parts.items():
        before = "" if len(parts) == 1 else f"{name}_"
        scores = _score_rows(classifier, rows[:most], metrics, whole)
        found |= {before + key: value for key, value in scores.items()}
    return found | ({"bad_lines" if bad.count else "left_out": said} if (said := bad.summary()) else {})


def _labeled(
    classifier: Classifier, folder: Path, paths: Sequence[Path], bad: BadRows, assignments: Sequence[str]
) -> tuple[Mapping[str, Sequence[LabeledText]], Sequence[str]]:
    """The rows to score by the part they belong to, and by which metrics."""
    run = settings_of(folder)
    if not paths:
        corpus = _validation(held_out_of(folder))
        for rows in corpus.validation.values():
            _check(classifier, rows, "what was held out, as it is now")
        return corpus.validation, corpus.metrics
    if len(paths) == 1 and paths[0].is_dir():
        glue = told(GlueReading(), assignments)
        task = find_glue_task(paths[0], glue.task) if glue.task else _glue_task(paths[0], run)
        found = read_glue_validation(paths[0], task, glue.on_error, bad)
        if (task.labels is None) != (not classifier.labels):
            kinds = ("classes", "a score") if classifier.labels else ("a score", "classes")
            raise DataError(f"{task.name} has {kinds[1]}, but this model gives {kinds[0]}; wanted one trained for it")
        for part, rows in found.items():
            _check(classifier, rows, f"{task.name}, {part}")
        return found, task.metrics
    own = run.settings["data"] if run is not None and run.recipe == "classifier" else {}
    table = told(TableReading(**{name: own.get(name) for name in Columns.model_fields}), assignments)
    rows = list(read_labeled(paths, columns=table, on_error=table.on_error, report=bad))
    _check(classifier, rows, "what is to be scored")
    return {"rows": rows}, metrics_of(classifier.labels)


def _validation(run: RunSettings) -> Any:
    if run.recipe == "glue":
        return read_glue_corpus(run.data[0], GlueDataConfig.model_validate(run.settings["data"]))
    return read_corpus(run.data, LabeledDataConfig.model_validate(run.settings["data"]))


def _glue_task(folder: Path, run: RunSettings | None) -> GlueTask:
    """The task of a folder by its name, else the one that the run was told (data.task=…)."""
    try:
        return find_glue_task(folder)
    except DataError:
        said = run.settings["data"].get("task") if run is not None and run.recipe == "glue" else None
        return find_glue_task(folder, said)


def _check(classifier: Classifier, rows: Sequence[LabeledText], where: str) -> None:
    if classifier.labels:
        check_labels(rows, classifier.labels, where)
    else:
        check_scores(rows, where)


def _check_whole(classifier: Classifier, rows: Sequence[LabeledText], seconds: Sequence[str] | None) -> None:
    """DataError: a row that would lose its end."""
    for row, read in zip(rows, classifier.rows([row.text for row in rows], seconds), strict=True):
        if read.num_truncated:
            raise DataError(
                f"{row.location} has {read.num_truncated + classifier.longest:,} pieces, this model "
                f"reads {classifier.longest:,} and was trained with data.too_long=stop; shorten it"
            )


def _score_rows(
    classifier: Classifier, rows: Sequence[LabeledText], metrics: Sequence[str], whole: bool
) -> dict[str, Any]:
    """`whole`: a row that is too long is an error."""
    seconds = [row.second or "" for row in rows] if rows[0].second is not None else None
    if whole:
        _check_whole(classifier, rows, seconds)
    cut = classifier.cut
    logits = classifier.logits([row.text for row in rows], seconds)
    found: dict[str, Any] = {"rows": len(rows)}
    if classifier.cut > cut:
        found["cut"] = f"{classifier.cut - cut:,} rows were longer than the model reads, and lost their ends"
    if not classifier.labels:
        wanted = torch.tensor([float(row.label or 0) for row in rows])
        return found | score_logits(logits, wanted, (), metrics) | {"worst": _worst_scores(rows, logits, wanted)}
    labels = classifier.labels
    truth = torch.tensor([labels.index(row.label or "") for row in rows])
    chosen = [labels[number] for number in logits.argmax(-1)]
    return (
        found
        | score_logits(logits, truth, labels, metrics)
        | {
            "confusion": confusion_matrix(chosen, [row.label or "" for row in rows], labels).table(),
            "worst": _worst(classifier, rows, logits, truth),
        }
    )


def _worst(
    classifier: Classifier, rows: Sequence[LabeledText], logits: torch.Tensor, truth: torch.Tensor
) -> list[dict[str, Any]]:
    """The errors it was surest of."""
    likely = logits.softmax(-1)
    sure, chosen = likely.max(-1)
    sure = sure.masked_fill(chosen == truth, -1.0)
    order = _first_of_each(rows, sure)
    return [
        {
            "text": rows[number].text,
            **({"second": rows[number].second} if rows[number].second is not None else {}),
            "wanted": rows[number].label,
            "found": classifier.labels[int(chosen[number])],
            "probability": round(sure[number].item(), 4),
        }
        for number in order
        if sure[number] >= 0
    ]


def _first_of_each(rows: Sequence[LabeledText], bad: torch.Tensor) -> list[int]:
    """The numbers of the rows that are worst; a row that the data repeat is told once."""
    found: dict[tuple[str, str | None, str | None], int] = {}
    for number in bad.argsort(descending=True, stable=True).tolist():
        found.setdefault((rows[number].text, rows[number].second, rows[number].label), number)
        if len(found) == WORST:
            break
    return list(found.values())


def _worst_scores(rows: Sequence[LabeledText], logits: torch.Tensor, wanted: torch.Tensor) -> list[dict[str, Any]]:
    apart = (logits[:, 0] - wanted).abs()
    order = _first_of_each(rows, apart)
    return [
        {
            "text": rows[number].text,
            **({"second": rows[number].second} if rows[number].second is not None else {}),
            "wanted": rows[number].label,
            "found": f"{logits[number, 0].item():.3f}",
        }
        for number in order
    ]


def score_tags(
    tagger: Tagger, folder: Path, paths: Sequence[Path], *, most: int | None = None, assignments: Sequence[str] = ()
) -> dict[str, Any]:
    """Entity F1, precision and recall in all and by type, and the accuracy of words; of `most` the first sentences."""
    bad = BadRows()
    sentences = _tagged(folder, paths, bad, assignments)[:most]
    check_tags(sentences, tagger.labels, ", ".join(map(str, paths)) or "what is held out")
    found = [[word.label for word in words] for words in tagger.tag([one.words for one in sentences])]
    scores = tagging_metrics(found, [one.labels or () for one in sentences])
    return {
        "sentences": len(sentences),
        **scores.metrics(),
        **{f"f1_{kind}": counts.f1 for kind, counts in sorted(scores.by_type.items())},
        **({"bad_lines": bad.summary()} if bad.count else {}),
    }


def _tagged(folder: Path, paths: Sequence[Path], bad: BadRows, assignments: Sequence[str]) -> list[TaggedSentence]:
    run = settings_of(folder)
    own = TaggedDataConfig()
    if run is not None and run.recipe == "tagger":
        own = TaggedDataConfig.model_validate(run.settings["data"])
    if not paths:
        return read_tagged_corpus(held_out_of(folder).data, own).validation
    reading = told(TaggedReading(word_column=own.word_column, label_column=own.label_column), assignments)
    return list(
        read_tagged(paths, on_error=reading.on_error, report=bad, word=reading.word_column, column=reading.label_column)
    )
