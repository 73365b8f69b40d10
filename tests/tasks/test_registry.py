"""Every task of the registry is complete: what it names exists, and its options fit those of the others."""

import inspect

import pytest

from regard.renamed import OPTIONS
from regard.renamed import TASKS as RENAMED_TASKS
from regard.tasks import TASKS, find_task
from regard.tasks.base import Answer, EvaluationRequest, Note, RunRequest, Task, resolve
from regard.tasks.options import RunOptions, option_name


@pytest.fixture(params=TASKS)
def task(request) -> Task:
    return find_task(request.param)


def test_a_task_has_the_name_it_is_registered_by():
    assert {name: find_task(name).name for name in TASKS} == {name: name for name in TASKS}
    assert set(RENAMED_TASKS.values()) <= TASKS.keys()


def test_all_that_a_task_names_exists(task):
    assert callable(task.pipeline_class.open)
    assert list(inspect.signature(resolve(task.runner)).parameters)[1:] == ["request"]
    if task.evaluator is not None:
        assert list(inspect.signature(resolve(task.evaluator)).parameters)[1:] == ["request"]
    if task.exporter is not None:
        assert callable(resolve(task.exporter))
    assert task.evaluation_takes <= {"strategy", "gold", "alignments", "assignments"}


def test_options_of_one_name_are_one_option(task):
    for other in map(find_task, TASKS):
        for name in task.options.model_fields.keys() & other.options.model_fields.keys():
            assert repr(task.options.model_fields[name]) == repr(other.options.model_fields[name])
            assert task.options.group_of(name) == other.options.group_of(name)


def test_an_option_that_was_not_given_is_none_or_false(task):
    options = task.options()
    assert all(getattr(options, name) in (None, False) for name in task.options.model_fields)


def test_new_names_of_options_are_options():
    known = {option_name(field) for name in TASKS for field in find_task(name).options.model_fields}
    assert set(OPTIONS.values()) <= known | {"--limit"}  # of `regard evaluate`


def test_an_old_option_is_answered_with_the_new_one(here):
    for old, new in OPTIONS.items():
        command = ["evaluate", "x"] if new == "--limit" else ["run", "x", "a text"]
        done = here(*command, old, 3)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {old} is now {new}\n")


class Toy(RunOptions):
    """No options."""


def answer(pipeline, request):
    yield from (Answer(text.upper(), {"text": text}) for text in request.inputs)
    yield Note(f"{len(request.inputs)} texts")


def count(pipeline, request):
    return {"limit": request.limit}


def test_a_task_is_run_and_evaluated_by_what_it_names(tmp_path):
    toy = Task("toy", Toy, "builtins:dict", f"{__name__}:answer", f"{__name__}:count")
    assert list(toy.run(None, RunRequest(["a"], Toy()))) == [Answer("A", {"text": "a"}), Note("1 texts")]
    assert toy.evaluate(None, EvaluationRequest(tmp_path, limit=3)) == {"limit": 3}
    with pytest.raises(Exception, match=r"--gold is not for .*, a model for toy; leave it out"):
        toy.evaluate(None, EvaluationRequest(tmp_path, gold=tmp_path))
    assert toy.export_settings(None) == {}
