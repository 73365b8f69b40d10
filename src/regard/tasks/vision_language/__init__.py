"""Texts about images (ViLBERT): pretraining, retrieval, visual question answering and grounding."""

from typing import ClassVar

from pydantic import Field

from regard.tasks.base import Task
from regard.tasks.options import BoxesOptions, RunOptions


class FindOptions(RunOptions):
    """Image retrieval."""

    group: ClassVar[str | None] = "Images"

    find: str | None = Field(None, description="Find the image that this text describes; INPUT are images.")


class RetrievalOptions(FindOptions, BoxesOptions):
    """The options of `regard run` for a model that matches texts and images."""


PRETRAINING = Task(
    name="image-text-pretraining",
    options=RetrievalOptions,
    pipeline="regard.tasks.vision_language.pipeline:ImageTextMatcher",
    runner="regard.tasks.vision_language.run:rank",
    tracer="regard.tasks.vision_language.trace:trace_inputs",
    tracer_takes=frozenset({"boxes"}),
    evaluator="regard.tasks.vision_language.evaluate:evaluate_retrieval",
    takes_images=True,
)

RETRIEVAL = Task(
    name="retrieval",
    options=RetrievalOptions,
    pipeline="regard.tasks.vision_language.pipeline:ImageTextMatcher",
    runner="regard.tasks.vision_language.run:rank",
    tracer="regard.tasks.vision_language.trace:trace_inputs",
    tracer_takes=frozenset({"boxes"}),
    evaluator="regard.tasks.vision_language.evaluate:evaluate_retrieval",
    takes_images=True,
)

QUESTION_ANSWERING = Task(
    name="visual-question-answering",
    options=BoxesOptions,
    pipeline="regard.tasks.vision_language.pipeline:VisualQuestionAnswering",
    runner="regard.tasks.vision_language.run:answer",
    tracer="regard.tasks.vision_language.trace:trace_inputs",
    tracer_takes=frozenset({"boxes"}),
    evaluator="regard.tasks.vision_language.evaluate:evaluate_answers",
    takes_images=True,
)

GROUNDING = Task(
    name="grounding",
    options=BoxesOptions,
    pipeline="regard.tasks.vision_language.pipeline:Pointer",
    runner="regard.tasks.vision_language.run:point",
    tracer="regard.tasks.vision_language.trace:trace_inputs",
    tracer_takes=frozenset({"boxes"}),
    evaluator="regard.tasks.vision_language.evaluate:evaluate_answers",
    takes_images=True,
)
