"""A new task is one package and one line in TASKS: train, run, evaluate and info find it there, with no other edit."""

import json
from pathlib import Path

import pytest

from tests.forks import Forks

# A task that is not in regard: count digits, 0 1 2 … 9 0 1 …; a small GPT predicts the digit after each.
PACKAGE = {
    "__init__.py": """
from pydantic import Field

from regard.tasks.base import Task
from regard.tasks.options import RunOptions


class CountingOptions(RunOptions):
    twice: bool = Field(False, description="Count on by two digits.")


TASK = Task(
    name="counting",
    options=CountingOptions,
    pipeline="counting.pipeline:Counter",
    runner="counting.run:run",
    evaluator="counting.evaluate:evaluate",
)
""",
    "task.py": """
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.data.batches import DataPosition


class Batch(NamedTuple):
    ids: torch.Tensor  # (B, T)
    targets: torch.Tensor  # (B, T)
    tokens: int


def digits(starts, length):
    ids = (torch.tensor(starts)[:, None] + torch.arange(length + 1)) % 10
    return Batch(ids[:, :-1], ids[:, 1:], len(starts) * length)


class Counting:
    name = "counting"
    unit = "digits"

    def __init__(self, length):
        self.length = length

    def batches_per_epoch(self, *, max_tokens, seed):
        return None

    def training_batches(self, *, max_tokens, seed, start):
        step = start.index
        while True:
            step += 1
            yield DataPosition(start.epoch, step), digits([(seed + step + row) % 10 for row in range(8)], self.length)

    def validation_batches(self, *, max_tokens, most=None):
        yield digits(list(range(10))[:most], self.length)

    def loss(self, model, batch):
        return F.cross_entropy(model(batch.ids).flatten(0, 1), batch.targets.flatten(), reduction="sum")

    def metrics(self, model, loss, batches, generate):
        right = [(model(batch.ids).argmax(-1) == batch.targets).float().mean().item() for batch in batches]
        return {"accuracy": sum(right) / len(right)}
""",
    "data.py": """
from pydantic import Field

from counting.task import Counting
from regard.config import Config
from regard.models.base import CausalLMConfig, CausalLMIds
from regard.tasks.recipe import PreparedTask, RunConfig, load_or_make_tokenizer
from regard.tokenizers.text import TextTokenizer


class CountingConfig(Config):
    pass


class DigitsConfig(Config):
    length: int = Field(12, ge=2, description="digits in a row")


CountingRun = RunConfig[DigitsConfig, CausalLMConfig, CountingConfig]


def prepare(run, inputs, tokenizer_file):
    tokenizer = load_or_make_tokenizer(
        TextTokenizer, tokenizer_file, lambda: TextTokenizer.characters(["0123456789"])
    )
    ids = CausalLMIds(eos_id=tokenizer.eos_id)
    model = run.model.fitted(vocab_size=tokenizer.vocab_size, special_ids=ids)
    return PreparedTask(Counting(run.data.length), model, ["it counts"], facts={"base": 10})
""",
    "recipe.py": '''"""Count digits.

    regard train counter -o runs/counter
"""

from counting.data import CountingConfig, CountingRun, DigitsConfig, prepare
from regard.models.gpt import GPTConfig
from regard.tasks.recipe import Recipe
from regard.training.config import TrainingConfig


def settings(inputs):
    return CountingRun(
        model=GPTConfig(context=16, width=32, heads=2, layers=1, dropout=0.0),
        task=CountingConfig(),
        data=DigitsConfig(),
        training=TrainingConfig(steps=60, max_tokens=96, learning_rate=1e-2, warmup=5, evaluate_every=30),
    )


RECIPE = Recipe("counter", settings, prepare, "123", default_data="digits", evaluate_at_end=True)
''',
    "pipeline.py": """
import torch

from regard.tokenizers.text import TextTokenizer


class Counter:
    def __init__(self, kind, model, tokenizer):
        self.kind, self.model, self.tokenizer = kind, model, tokenizer

    @classmethod
    def open(cls, folder):
        assert folder.task["base"] == 10
        return cls(folder.kind, folder.model, TextTokenizer.load_saved(folder.folder))

    @torch.inference_mode()
    def run(self, text):
        ids = [int(digit) for digit in text]
        return str(int(self.model(torch.tensor([ids]))[0, -1, :10].argmax()))
""",
    "run.py": """
from regard.tasks.base import Answer, Note


def run(pipeline, request):
    yield Note("counting on")
    for text in request.inputs:
        found = pipeline.run(text)
        found += pipeline.run(text + found) if request.options.twice else ""
        yield Answer(found, {"text": text, "next": found})
""",
    "evaluate.py": """
import torch

from counting.task import Counting


@torch.inference_mode()
def evaluate(pipeline, request):
    task = Counting(12)
    batches = list(task.validation_batches(max_tokens=100, most=request.limit))
    return {"rows": len(batches[0].ids), **task.metrics(pipeline.model, 0.0, batches, None)}
""",
}
# One line in TASKS and one in RECIPES.
REGISTER = """
import regard.recipes, regard.tasks
regard.tasks.TASKS["counting"] = "counting:TASK"
regard.recipes.RECIPES["counter"] = "counting.recipe"
"""


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """`regard …` with the task, and the folder of a trained model."""
    folder = tmp_path_factory.mktemp("counting")
    (folder / "counting").mkdir()
    for name, content in PACKAGE.items():
        (folder / "counting" / name).write_text(content)
    forks = Forks(REGISTER, folder)
    run = forks.run
    done = run("train", "counter", "-o", "run", "--json")
    assert done.returncode == 0, done.stderr
    yield run, folder / "run", done
    forks.close()


def test_it_is_trained_and_evaluated_at_the_end(counting):
    _, folder, done = counting
    result = json.loads(done.stdout)
    assert result["step"] == 60
    assert result["scores"] == {"rows": 10, "accuracy": 1.0}
    assert "it counts" in done.stderr
    assert json.loads((folder / "config.json").read_text())["task"] == {"name": "counting", "base": 10}
    assert json.loads((folder / "run.json").read_text())["recipe"] == "counter"


def test_it_is_resumed(counting):
    run, folder, _ = counting
    done = run("train", "counter", "-o", folder, "training.steps=70", "--json")
    assert json.loads(done.stdout)["step"] == 70
    assert run("train", "counter", "-o", folder, "data.length=9").returncode == 2


def test_it_runs_with_options_of_its_own(counting):
    run, folder, _ = counting
    assert run("run", folder, "0123", "789").stdout == "4\n0\n"
    done = run("run", folder, "0123", "--twice", "--json")
    assert json.loads(done.stdout) == {"text": "0123", "next": "45"}
    assert "counting on" in done.stderr
    refused = run("run", folder, "0123", "--num-beams", "4")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "--num-beams" in refused.stderr
    assert "--twice" in run("run", "--help").stdout


def test_it_is_evaluated_described_and_listed(counting):
    run, folder, _ = counting
    assert json.loads(run("evaluate", folder, "--json").stdout) == {"rows": 10, "accuracy": 1.0}
    refused = run("evaluate", folder, "--gold", "links")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    facts = json.loads(run("info", folder, "--json").stdout)
    assert (facts["kind"], facts["task"]) == ("gpt", "counting")
    assert "counter" in run("recipes").stdout
    assert run("recipes", "counter").stdout.startswith("Count digits.")


def test_without_the_line_it_is_unknown(counting, here):
    _, folder, _ = counting
    done = here("run", Path(folder), "0123")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "its task is 'counting', wanted one of translation, " in done.stderr
