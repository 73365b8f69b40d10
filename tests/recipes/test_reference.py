"""Every setting is described, and docs/reference/settings.md is what the code says."""

import json
from pathlib import Path

import pytest

from regard import recipes
from regard.config import override
from regard.errors import ConfigError
from regard.models import MODELS, model_class
from regard.recipes.reference import page, settings_of_recipe
from regard.settings import settings_of
from regard.tasks.recipe import TrainingInputs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_every_setting_has_a_meaning_and_its_default_is_read_back(name):
    run = recipes.find(name).settings(TrainingInputs())
    for one in settings_of_recipe(name):
        assert one.meaning, f"{one.key} has no description"
        assert one.type, one.key
        if one.default:
            assert override(run, [f"{one.key}={one.default}"]) == run, one.key


@pytest.mark.parametrize("kind", MODELS)
def test_every_setting_of_a_model_has_a_meaning(kind):
    from regard.models import examples

    for config in examples(kind):
        assert [one.key for one in settings_of(config) if not one.meaning] == [], model_class(kind)


def test_type_default_and_range_are_those_of_the_field():
    found = {one.key: one for one in settings_of_recipe("gpt")}
    assert (found["training.steps"].type, found["training.steps"].default) == ("int", "2000")
    assert found["training.steps"].range == "≥ 1"
    assert found["model.dropout"].range == "≥ 0, < 1"
    assert found["model.activation"].type == "relu | swish | gelu | gelu_tanh"
    assert found["training.epochs"].type_and_range == "float or none > 0"
    assert found["data.word_vectors"].type == "path or none"
    run = recipes.find("gpt").settings(TrainingInputs())
    with pytest.raises(ConfigError, match="training.steps"):
        override(run, ["training.steps=0"])
    with pytest.raises(ConfigError, match="model.dropout"):
        override(run, ["model.dropout=1"])


def test_the_page_is_what_the_code_says():
    """`regard recipes --settings --markdown > docs/reference/settings.md` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_recipe_prints_its_settings(here):
    done = here("recipes", "gpt", "--settings")
    lines = done.stdout.splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("training.steps=2000 "))
    assert lines[row].split() == ["training.steps=2000", "int", "≥", "1"]
    assert lines[row + 1] == "    optimizer steps of the whole run, at most"
    found = json.loads(here("recipes", "gpt", "--settings", "--json").stdout)
    assert found[0] == {
        "key": "model.vocab_size",
        "meaning": "V; a new tokenizer is trained to at most this size",
        "type": "int",
        "default": "4096",
        "range": "≥ 2",
    }
    assert here("recipes", "--settings", "--markdown").stdout == page()


def test_settings_want_a_recipe(here):
    assert "--settings wants a recipe: regard recipes gpt --settings" in here("recipes", "--settings").stderr
    assert "did you mean gpt" in here("recipes", "gtp", "--settings").stderr


def test_a_recipe_of_a_file_is_described(here, tmp_path):
    path = tmp_path / "mine.py"
    here("new", "model", path)
    assert here("recipes", f"{path}:recipe").stdout.startswith("A small GPT with RMS norm")
    assert "model.width=128" in here("recipes", f"{path}:recipe", "--settings").stdout
