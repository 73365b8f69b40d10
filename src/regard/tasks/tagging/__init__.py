"""Tagging (token classification): a text in, a label for each word out, and the entities that the labels mark."""

from regard.tasks.base import Task
from regard.tasks.options import EncoderOptions

TASK = Task(
    name="tagging",
    options=EncoderOptions,
    pipeline="regard.tasks.tagging.pipeline:Tagger",
    runner="regard.tasks.tagging.run:run",
    tracer="regard.tasks.encoders.trace:trace_inputs",
    evaluator="regard.tasks.tagging.evaluate:evaluate",
    evaluation_takes=frozenset({"assignments"}),
)
