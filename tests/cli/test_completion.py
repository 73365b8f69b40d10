"""What TAB completes: recipes, settings of the chosen recipe, model folders. Asked as the shells ask typer."""

import pytest
from typer.testing import CliRunner

from regard.cli import app, completion


@pytest.fixture
def complete(monkeypatch, tmp_path):
    """The completions of a command line whose last word is being typed, as bash asks for them."""
    monkeypatch.chdir(tmp_path)

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        asked = {"_REGARD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        done = CliRunner().invoke(app, [], prog_name="regard", env=asked)
        assert done.exit_code == 0, done.output
        return [line for line in done.stdout.splitlines() if line]

    return ask


def test_recipes(complete, tmp_path):
    assert complete("regard train gp") == ["gpt"]
    assert complete("regard train rnn-co") == ["rnn-context-translator"]
    assert complete("regard recipes transf") == ["transformer-translator"]
    (tmp_path / "mine.py").touch()
    (tmp_path / "mine.txt").touch()
    assert complete("regard train mi") == ["mine.py"]


def test_settings_of_the_chosen_recipe(complete):
    assert complete("regard train gpt training.se") == ["training.select=", "training.seed="]
    assert "model.dropout=" in complete("regard train gpt model.")
    assert "model.vision.grid=" in complete("regard train vilbert model.v")
    assert complete("regard train nothing model.") == []


def test_data_files(complete, tmp_path):
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "moby.txt").touch()
    assert complete("regard train gpt bo") == ["books/"]
    assert complete("regard train gpt books/mo") == ["books/moby.txt"]


@pytest.mark.parametrize("command", ["run", "evaluate", "show", "check", "export", "info", "cost", "trace"])
def test_model_folders(complete, tmp_path, command):
    for name in ("demo", "no-model"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / "demo" / "config.json").touch()
    assert complete(f"regard {command} ru") == ["runs/demo", "runs/"]


def test_the_other_shells_see_the_meaning(monkeypatch):
    asked = {"_REGARD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "regard train gpt training.steps"}
    done = CliRunner().invoke(app, [], prog_name="regard", env=asked)
    assert '"training.steps=":"optimizer steps of the whole run, at most"' in done.stdout


def test_settings_are_kept_so_that_torch_is_imported_once(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    first = completion.settings("gpt")
    (kept,) = (tmp_path / "completion").iterdir()
    kept.write_text('{"training.steps": "kept"}')
    assert completion.settings("gpt") == {"training.steps": "kept"}
    kept.write_text("damaged")
    assert completion.settings("gpt") == first
    monkeypatch.setattr(completion, "_newest_change", lambda: 7)
    assert completion.settings("gpt") == first
    assert [path.name for path in (tmp_path / "completion").iterdir()] == ["gpt-7.json"]
