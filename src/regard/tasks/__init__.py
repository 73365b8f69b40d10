"""Tasks: one package = one thing that a model learns to do, with its data, training, pipeline and evaluation.

A new task is one package and one line here. The values are `regard.tasks.base.Task`; they are imported when they are
first used, and importing them does not import torch. Tasks of installed packages and of a user's file are found as
well: `regard.extensions`.
"""

from typing import TYPE_CHECKING

from regard import extensions

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
    from regard.tasks.base import Task, resolve

    location = extensions.locate("tasks", TASKS, name)
    if location is None:
        raise KeyError(name)
    task = resolve(location)
    if not isinstance(task, Task):
        raise TypeError(f"the task {name} is {location}: wanted module:attribute of a regard.tasks.base.Task")
    return task


def is_task(name: str) -> bool:
    """Whether there is a task of this name."""
    return extensions.locate("tasks", TASKS, name) is not None
