"""Overrides: typed, all at once, and every mistake is one line that helps."""

from pathlib import Path
from typing import Literal

import pydantic
import pytest
from pydantic import Field, field_validator, model_validator

from regard.config import Config, override
from regard.errors import ConfigError


class Model(Config):
    layers: int = Field(6, ge=1, le=100)
    width: int = 512
    heads: int = 8
    kernels: tuple[int, ...] = (3, 5)
    names: list[str] = Field(["a"])
    norm: Literal["before", "after"] = "after"
    bits: Literal[4, 8] = 8

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Model":
        if self.width % self.heads:
            raise ConfigError(f"width {self.width} does not divide into {self.heads} heads")
        return self


class Training(Config):
    steps: int = Field(1000, gt=0)
    rate: float = 1e-3
    compile: bool = False
    seed: int | None = None
    folder: Path = Path("runs")
    warmup: int = 10

    @field_validator("warmup")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"warmup {value}\nis odd")
        return value


class Run(Config):
    model: Model = Model()
    training: Training = Training()
    label: str = "x"
    none_is_a_word: str = "y"


def failure(*assignments: str) -> str:
    with pytest.raises(ConfigError) as caught:
        override(Run(), assignments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("assignment", "section", "key", "value"),
    [
        ("training.steps=200", "training", "steps", 200),
        ("training.rate=1e-4", "training", "rate", 1e-4),
        ("training.rate=3", "training", "rate", 3.0),
        ("training.compile=true", "training", "compile", True),
        ("training.compile=False", "training", "compile", False),
        ("training.seed=7", "training", "seed", 7),
        ("training.folder=a=b", "training", "folder", Path("a=b")),
        ("model.kernels=1,2", "model", "kernels", (1, 2)),
        ("model.kernels=(1, 2)", "model", "kernels", (1, 2)),
        ("model.kernels=", "model", "kernels", ()),
        ("model.names=x,y", "model", "names", ["x", "y"]),
        ("model.norm=before", "model", "norm", "before"),
        ("model.bits=4", "model", "bits", 4),
        (" model.layers = 2 ", "model", "layers", 2),
    ],
)
def test_value_takes_the_type_of_its_key(assignment, section, key, value):
    found = getattr(getattr(override(Run(), [assignment]), section), key)
    assert found == value
    assert type(found) is type(value)


def test_the_rest_and_the_original_stay():
    config = Run(label="mine", training=Training(rate=0.5))
    changed = override(config, ["training.steps=2"])
    assert changed == Run(label="mine", training=Training(rate=0.5, steps=2))
    assert config.training.steps == 1000


def test_a_top_level_key_and_no_assignment():
    assert override(Run(), ["label=z"]).label == "z"
    assert override(Run(), []) == Run()


@pytest.mark.parametrize("word", ["none", "None", "null"])
def test_none_only_where_it_may_be(word):
    config = Run(training=Training(seed=3))
    assert override(config, [f"training.seed={word}"]).training.seed is None
    assert override(config, [f"none_is_a_word={word}"]).none_is_a_word == word
    assert "training.steps" in failure(f"training.steps={word}")


def test_values_that_only_fit_together_in_any_order():
    for order in (["model.width=90", "model.heads=10"], ["model.heads=10", "model.width=90"]):
        assert override(Run(), order).model.width == 90


def test_last_of_the_same_key_counts():
    assert override(Run(), ["training.steps=2", "training.steps=3"]).training.steps == 3


@pytest.mark.parametrize(
    ("assignment", "suggestion"),
    [
        ("steps=200", "training.steps"),
        ("stepz=200", "training.steps"),
        ("trainin.steps=200", "training.steps"),
        ("training.stps=200", "training.steps"),
        ("model.steps=200", "training.steps"),
        ("training.steps.x=200", "training.steps"),
        ("model.layer=2", "model.layers"),
        ("model_config=2", ""),
        ("training.__class__=2", ""),
        (".=2", ""),
    ],
)
def test_unknown_key_names_the_nearest(assignment, suggestion):
    message = failure(assignment)
    assert message.startswith(f"unknown key {assignment.partition('=')[0]};")
    assert suggestion in message


def test_nearest_comes_first():
    assert failure("steps=200") == "unknown key steps; did you mean training.steps?"


def test_unlike_every_key_names_the_nearest_three():
    assert failure("qqqqq=1") == "unknown key qqqqq; the nearest are model.layers, model.width, model.heads"


def test_where_all_keys_are_listed_is_said():
    config = Run()
    with pytest.raises(ConfigError, match=r"; did you mean training.steps\? `regard recipes gpt --settings` lists all"):
        override(config, ["steps=1"], "regard recipes gpt --settings")
    with pytest.raises(ConfigError, match=", model.heads; `regard recipes gpt --settings` lists all"):
        override(config, ["qqqqq=1"], "regard recipes gpt --settings")


def test_wrong_value_says_key_got_wanted_and_example():
    message = failure("training.steps=many")
    assert message == "training.steps: got 'many', wanted a valid integer; for example training.steps=1000"
    assert "greater than 0" in failure("training.steps=0")
    assert "less than or equal to 100" in failure("model.layers=101")
    assert "'before' or 'after'" in failure("model.norm=middle")
    assert "for example training.compile=false" in failure("training.compile=maybe")
    assert "for example model.kernels=3,5" in failure("model.kernels=1,x")


@pytest.mark.parametrize("assignment", ["training.steps", "--steps", "", "=3"])
def test_no_key_or_no_equals(assignment):
    assert f"got {assignment!r}, wanted key=value" in failure(assignment)


def test_section_takes_no_value():
    message = failure("training=3")
    assert message.startswith("training is a section and takes no value")
    assert "training.steps, training.rate" in message


def test_validators_speak_in_one_line():
    assert failure("model.width=100") == "width 100 does not divide into 8 heads"
    assert failure("training.warmup=3") == "training.warmup: warmup 3 is odd"


def test_of_several_mistakes_the_first():
    assert "unknown key a;" in failure("a=1", "b=2")
    assert failure("training.steps=x", "training.rate=y").startswith("training.steps")


def test_facts_are_frozen_and_closed():
    with pytest.raises(pydantic.ValidationError):
        Training().steps = 3
    with pytest.raises(pydantic.ValidationError):
        Training(step=3)
