"""What `regard new` writes is right as it stands, and under the name that the user gives it."""

import json

import pytest

from regard.templates.test_model import (  # noqa: F401 - run here as the user runs them
    test_every_parameter_gets_a_gradient,
    test_it_keeps_the_laws,
    test_it_learns_one_batch_by_heart,
)


def test_it_writes_a_model_and_its_test(here, tmp_path):
    done = here("new", "model", tmp_path / "wide.py", "--json")
    assert json.loads(done.stdout) == {"files": [str(tmp_path / "wide.py"), str(tmp_path / "test_wide.py")]}
    model, test = ((tmp_path / name).read_text(encoding="utf-8") for name in ("wide.py", "test_wide.py"))
    assert "    regard train wide.py:recipe data.txt -o runs/wide\n" in model
    assert "from wide import TinyGPT, TinyGPTConfig" in test
    assert "`pytest test_wide.py`" in test
    assert "mine" not in model + test
    assert "templates" not in model + test


def test_it_says_what_to_try(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = here("new", "model", "mine.py")
    assert "  regard train mine.py:recipe novel.txt -o runs/mine\n" in done.stdout
    assert '  regard run runs/mine "Once upon a time" --trust\n' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "there.py"], "there.py exists; give another name"),
        (["model", "other.py"], "test_other.py exists; give another name"),
        (["model", "my-model.py"], "my-model.py: wanted a Python file whose name can be imported"),
        (["model", "mine"], "mine: wanted a Python file"),
        (["model", "no/mine.py"], "there is no folder no; make it first"),
        (["task", "mine.py"], "regard new task: wanted model"),
    ],
)
def test_it_overwrites_nothing(here, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.py").write_text("")
    (tmp_path / "test_other.py").write_text("")
    done = here("new", *arguments)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert message in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"there.py", "test_other.py"}
