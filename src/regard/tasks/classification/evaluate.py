"""Evaluate a classifier: on the user's files, on a folder of GLUE, or on the validation data of its run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import Field

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.columns import Columns
from regard.data.readers.glue import GlueTask, find_glue_task
from regard.data.readers.labeled import LabeledText, read_labeled
from regard.errors import DataError
from regard.metrics.classification import confusion_matrix
from regard.tasks.base import EvaluationRequest
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
from regard.tasks.run_settings import ReadingConfig, RunSettings, override_reading, read_run_settings, validation_of

MAX_ERRORS = 5  # errors shown


class TableReadingConfig(Columns, ReadingConfig):
    """How tables to be scored are read."""


class GlueReadingConfig(ReadingConfig):
    """How a folder of GLUE to be scored is read."""

    task: str | None = Field(None, description="which one it is; none: as the folder is called")


def evaluate(classifier: Classifier, request: EvaluationRequest) -> dict[str, Any]:
    """The task's own metrics, the confusion matrix and the worst errors; `limit` counts rows.

    Files are read as the run's settings say, unless the request's assignments say otherwise.
    """
    bad = BadRows()
    parts, metrics = _labeled_rows(classifier, request, bad)
    run = read_run_settings(request.folder)
    refuse_long = run is not None and run.settings["data"].get("too_long") == "stop"
    found: dict[str, Any] = {}
    for name, rows in parts.items():
        prefix = "" if len(parts) == 1 else f"{name}_"
        scores = _score_rows(classifier, rows[: request.limit], metrics, refuse_long)
        found |= {prefix + key: value for key, value in scores.items()}
    return found | ({"bad_lines" if bad.count else "left_out": lines} if (lines := bad.summary()) else {})


def _labeled_rows(
    classifier: Classifier, request: EvaluationRequest, bad: BadRows
) -> tuple[Mapping[str, Sequence[LabeledText]], Sequence[str]]:
    """The rows to score, by the part of the data they belong to, and the names of the metrics."""
    run, paths = read_run_settings(request.folder), request.paths
    if not paths:
        corpus = _validation(validation_of(request.folder))
        for rows in corpus.validation.values():
            _check(classifier, rows, "the validation data")
        return corpus.validation, corpus.metrics
    if len(paths) == 1 and paths[0].is_dir():
        glue = override_reading(GlueReadingConfig(), request.assignments)
        task = find_glue_task(paths[0], glue.task) if glue.task else _glue_task(paths[0], run)
        found = read_glue_validation(paths[0], task, glue.on_error, bad)
        if (task.labels is None) != (not classifier.labels):
            kinds = ("classes", "a score") if classifier.labels else ("a score", "classes")
            raise DataError(f"{task.name} has {kinds[1]}, but this model gives {kinds[0]}; wanted one trained for it")
        for part, rows in found.items():
            _check(classifier, rows, f"{task.name}, {part}")
        return found, task.metrics
    own = run.settings["data"] if run is not None and run.recipe == "classifier" else {}
    columns = TableReadingConfig(**{name: own.get(name) for name in Columns.model_fields})
    table = override_reading(columns, request.assignments)
    rows = list(read_labeled(paths, columns=table, on_error=table.on_error, report=bad))
    _check(classifier, rows, "the data to score")
    return {"rows": rows}, metrics_of(classifier.labels)


def _validation(run: RunSettings) -> Any:
    if run.recipe == "glue":
        return read_glue_corpus(run.data[0], GlueDataConfig.model_validate(run.settings["data"]))
    return read_corpus(run.data, LabeledDataConfig.model_validate(run.settings["data"]))


def _glue_task(folder: Path, run: RunSettings | None) -> GlueTask:
    """The GLUE task of a folder by its name, else the run's setting (data.task=…)."""
    try:
        return find_glue_task(folder)
    except DataError:
        name = run.settings["data"].get("task") if run is not None and run.recipe == "glue" else None
        return find_glue_task(folder, name)


def _check(classifier: Classifier, rows: Sequence[LabeledText], where: str) -> None:
    if classifier.labels:
        check_labels(rows, classifier.labels, where)
    else:
        check_scores(rows, where)


def _refuse_long_rows(classifier: Classifier, rows: Sequence[LabeledText], seconds: Sequence[str] | None) -> None:
    """DataError for a row that would be truncated."""
    for row, read in zip(rows, classifier.rows([row.text for row in rows], seconds), strict=True):
        if read.num_truncated:
            raise DataError(
                f"{row.location} has {read.num_truncated + classifier.max_length:,} tokens, this model reads "
                f"{classifier.max_length:,} and was trained with data.too_long=stop; shorten it"
            )


def _score_rows(
    classifier: Classifier, rows: Sequence[LabeledText], metrics: Sequence[str], refuse_long: bool
) -> dict[str, Any]:
    seconds = [row.second or "" for row in rows] if rows[0].second is not None else None
    if refuse_long:
        _refuse_long_rows(classifier, rows, seconds)
    truncated = classifier.truncated
    logits = classifier.logits([row.text for row in rows], seconds)
    found: dict[str, Any] = {"rows": len(rows)}
    if classifier.truncated > truncated:
        found["truncated"] = f"{classifier.truncated - truncated:,} rows were longer than the model reads"
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
    """The wrong predictions with the highest probability."""
    sure, chosen = logits.softmax(-1).max(-1)
    sure = sure.masked_fill(chosen == truth, -1.0)
    order = _worst_rows(rows, sure)
    return [
        {
            "text": rows[number].text,
            **({"second": rows[number].second} if rows[number].second is not None else {}),
            "label": rows[number].label,
            "predicted": classifier.labels[int(chosen[number])],
            "probability": round(sure[number].item(), 4),
        }
        for number in order
        if sure[number] >= 0
    ]


def _worst_rows(rows: Sequence[LabeledText], badness: torch.Tensor) -> list[int]:
    """The numbers of the worst rows; a row that occurs several times is listed once."""
    found: dict[tuple[str, str | None, str | None], int] = {}
    for number in badness.argsort(descending=True, stable=True).tolist():
        found.setdefault((rows[number].text, rows[number].second, rows[number].label), number)
        if len(found) == MAX_ERRORS:
            break
    return list(found.values())


def _worst_scores(rows: Sequence[LabeledText], logits: torch.Tensor, wanted: torch.Tensor) -> list[dict[str, Any]]:
    errors = (logits[:, 0] - wanted).abs()
    order = _worst_rows(rows, errors)
    return [
        {
            "text": rows[number].text,
            **({"second": rows[number].second} if rows[number].second is not None else {}),
            "label": rows[number].label,
            "predicted": f"{logits[number, 0].item():.3f}",
        }
        for number in order
    ]
