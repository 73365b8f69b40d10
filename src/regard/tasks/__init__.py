"""Tasks: one package = one thing that a model learns to do, with its data, training, pipeline and evaluation.

A new task is one package and one line here. The values are `regard.tasks.base.Task`; they are imported when they are
first used, and importing them does not import torch.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.base import Task

# The name of a task in config.json -> where its value is.
TASKS = {
    "translation": "regard.tasks.translation:TASK",
    "language-modeling": "regard.tasks.language_modeling:TASK",
    "masked-lm": "regard.tasks.masked_lm:TASK",
    "classification": "regard.tasks.classification:TASK",
    "tagging": "regard.tasks.tagging:TASK",
    "embedding": "regard.tasks.embedding:TASK",
    "captioning": "regard.tasks.captioning:TASK",
    "image-text-pretraining": "regard.tasks.vision_language:PRETRAINING",
    "retrieval": "regard.tasks.vision_language:RETRIEVAL",
    "visual-question-answering": "regard.tasks.vision_language:QUESTION_ANSWERING",
    "grounding": "regard.tasks.vision_language:GROUNDING",
}


def find_task(name: str) -> "Task":
    """The task of this name; KeyError where there is none."""
    from regard.tasks.base import resolve

    task: Task = resolve(TASKS[name])
    return task
