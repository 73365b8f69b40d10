"""Evaluate a tagger: on the user's files, or on the validation data of its run."""

from typing import Any

from pydantic import Field

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.conll import TaggedSentence, read_tagged
from regard.metrics.tagging import tagging_metrics
from regard.tasks.base import EvaluationRequest
from regard.tasks.run_settings import ReadingConfig, override_reading, read_run_settings, validation_of
from regard.tasks.tagging.data import TaggedDataConfig, check_tags, read_tagged_corpus
from regard.tasks.tagging.pipeline import Tagger


class TaggedReadingConfig(ReadingConfig):
    """How tagged sentences to be scored are read."""

    word_column: int | None = Field(None, ge=1, description="of the word; none: the first (.conllu: the second)")
    label_column: int | None = Field(None, ge=1, description="of the label; none: the last (.conllu: the fourth)")


def evaluate(tagger: Tagger, request: EvaluationRequest) -> dict[str, Any]:
    """Entity F1, precision and recall, overall and by type, and word accuracy; `limit` counts sentences."""
    bad = BadRows()
    sentences = _sentences(request, bad)[: request.limit]
    check_tags(sentences, tagger.labels, ", ".join(map(str, request.paths)) or "the validation data")
    predicted = [[word.label for word in words] for words in tagger.tag([one.words for one in sentences])]
    scores = tagging_metrics(predicted, [one.labels or () for one in sentences])
    return {
        "sentences": len(sentences),
        **scores.metrics(),
        **{f"f1_{kind}": counts.f1 for kind, counts in sorted(scores.by_type.items())},
        **({"bad_lines": bad.summary()} if bad.count else {}),
    }


def _sentences(request: EvaluationRequest, bad: BadRows) -> list[TaggedSentence]:
    run = read_run_settings(request.folder)
    own = TaggedDataConfig()
    if run is not None and run.recipe == "tagger":
        own = TaggedDataConfig.model_validate(run.settings["data"])
    if not request.paths:
        return read_tagged_corpus(validation_of(request.folder).data, own).validation
    own_columns = TaggedReadingConfig(word_column=own.word_column, label_column=own.label_column)
    reading = override_reading(own_columns, request.assignments)
    word, label = reading.word_column, reading.label_column
    return list(read_tagged(request.paths, on_error=reading.on_error, report=bad, word=word, column=label))
