"""Classification: a text or a pair of texts in, its class or its score out."""

from regard.tasks.base import Task
from regard.tasks.options import EncoderOptions, TextPairOptions


class ClassifierOptions(TextPairOptions, EncoderOptions):
    """The options of `regard run` for a classifier."""


TASK = Task(
    name="classification",
    options=ClassifierOptions,
    pipeline="regard.tasks.classification.pipeline:Classifier",
    runner="regard.tasks.classification.run:run",
    tracer="regard.tasks.encoders.trace:trace_inputs",
    evaluator="regard.tasks.classification.evaluate:evaluate",
    evaluation_takes=frozenset({"assignments"}),
)
