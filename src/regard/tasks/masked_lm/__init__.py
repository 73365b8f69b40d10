"""Masked language modeling (BERT): a text with [MASK] in, the words that may stand there out."""

from typing import ClassVar

from pydantic import Field

from regard.tasks.base import Task
from regard.tasks.options import EncoderOptions, RunOptions, TextPairOptions


class PredictionOptions(RunOptions):
    """How many words are proposed."""

    group: ClassVar[str | None] = "Encoders (BERT)"

    num_predictions: int | None = Field(
        None, ge=1, description="How many predictions to show for a masked word.", json_schema_extra={"default": "5"}
    )


class FillMaskOptions(PredictionOptions, TextPairOptions, EncoderOptions):
    """The options of `regard run` for a masked language model."""


TASK = Task(
    name="masked-lm",
    options=FillMaskOptions,
    pipeline="regard.tasks.masked_lm.pipeline:FillMask",
    runner="regard.tasks.masked_lm.run:run",
    tracer="regard.tasks.masked_lm.trace:trace_inputs",
    evaluator="regard.tasks.masked_lm.evaluate:evaluate",
    evaluation_takes=frozenset({"assignments"}),
)
