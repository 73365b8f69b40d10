"""Every recipe: found by its name, described, and its settings complete; old names are answered with the new ones."""

from pathlib import Path

import pytest

from regard import recipes, renamed
from regard.config import override
from regard.errors import ConfigError
from regard.models import kind_of
from regard.tasks.recipe import TrainingInputs, train_recipe


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_a_recipe_is_found_by_its_name_and_its_docstring_has_its_command(name):
    assert recipes.find(name).name == name
    text = recipes.describe()[name]
    assert f"    regard train {name} " in text
    assert text == text.strip()


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_settings_are_read_back_as_they_were(name):
    recipe = recipes.find(name)
    for paths in [(), (Path("data"),)] if recipe.accepts_files else [()]:
        run = recipe.settings(TrainingInputs(paths))
        assert override(run, ["training.steps=7"]).training.steps == 7
        assert set(run.model_dump(mode="json")) == {"model", "task", "data", "training"}
        assert set(run.model_dump(mode="json")["model"]) == set(type(run.model).model_fields)  # all, not the base's
        assert kind_of(run.model)


def test_an_unknown_recipe_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="no recipe is called 'groundin'; did you mean grounding"):
        recipes.find("groundin")


def test_no_key_of_a_recipe_has_an_old_name():
    """An old key would be answered with a new one that is not there, or never be answered."""
    settings = [recipes.find(name).settings(TrainingInputs()) for name in recipes.RECIPES]
    keys = {f"{section}.{key}" for run in settings for section, config in run for key in type(config).model_fields}
    data = {key: now for key, now in renamed.KEYS.items() if key.startswith("data.")}
    assert not keys & set(data)
    assert set(data.values()) <= keys


@pytest.mark.parametrize(
    ("ask", "recipe"),
    [("questions", "vqa"), ("statements", "statements"), ("phrases", "grounding"), ("captions", "retrieval")],
)
def test_what_vqa_trained_by_a_setting_is_a_recipe_of_its_own(ask, recipe, tmp_path):
    with pytest.raises(ConfigError, match=f"^data.ask is now a recipe of its own: regard train {recipe}$"):
        list(train_recipe(recipes.find("vqa"), TrainingInputs(), [f"data.ask={ask}"], tmp_path))
    old = {"ask": ask, "scenes": 5, "heldout": 3, "each": 2, "on_error": "stop"}
    model = {"vocabulary": 20, "labels": ["no", "yes"]}
    found = renamed.run({"recipe": "vqa", "settings": {"model": model, "data": old}})
    assert found["recipe"] == recipe
    run = recipes.find(recipe).settings(TrainingInputs())
    assert set(found["settings"]["data"]) == set(type(run.data).model_fields)
    assert set(found["settings"]["model"]) <= set(type(run.model).model_fields)
    assert found["settings"]["data"].get(f"{ask}_per_scene", 2) == 2
    assert old["each"] == 2  # what was read is not changed
