"""Translation: a text in one language in, the same text in another out."""

from typing import ClassVar

from pydantic import Field

from regard.tasks.base import Task
from regard.tasks.options import DecodingOptions, OutputOptions, RunOptions


class AlignmentOptions(RunOptions):
    """What the decoder attends to."""

    group: ClassVar[str | None] = "Translation"

    alignment: bool = Field(
        False, description="Show which source words each target word attends to.", json_schema_extra={"short": "-a"}
    )


class TranslationOptions(AlignmentOptions, OutputOptions, DecodingOptions):
    """The options of `regard run` for a translator."""


TASK = Task(
    name="translation",
    options=TranslationOptions,
    pipeline="regard.tasks.translation.pipeline:Translator",
    runner="regard.tasks.translation.run:run",
    tracer="regard.tasks.translation.trace:trace_inputs",
    tracer_takes=frozenset({"max_new_tokens", "target"}),
    evaluator="regard.tasks.translation.evaluate:evaluate",
    evaluation_takes=frozenset({"strategy", "gold", "alignments", "assignments"}),
    exporter="regard.tasks.translation.pipeline:export_settings",
)
