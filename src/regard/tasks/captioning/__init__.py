"""Captioning: an image in, a caption out, and what the model attends to for each word."""

from regard.tasks.base import Task
from regard.tasks.options import DecodingOptions, NumSamplesOptions, OutputOptions


class CaptionOptions(OutputOptions, NumSamplesOptions, DecodingOptions):
    """The options of `regard run` for a captioner."""


TASK = Task(
    name="captioning",
    options=CaptionOptions,
    pipeline="regard.tasks.captioning.pipeline:Captioner",
    runner="regard.tasks.captioning.run:run",
    tracer="regard.tasks.captioning.trace:trace_inputs",
    tracer_takes=frozenset({"max_new_tokens", "target"}),
    evaluator="regard.tasks.captioning.evaluate:evaluate",
    evaluation_takes=frozenset({"strategy"}),
    takes_images=True,
)
