"""`regard export` writes a whole folder, or says in a line why not and writes nothing."""

from pathlib import Path

import pytest
import torch

from regard import checkpoint
from regard.files import write_folder

GPT = Path(__file__).parents[1] / "fixtures" / "format-1" / "gpt"


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_not_finite_are_not_exported(here, tmp_path, value):
    folder = checkpoint.load(GPT)
    weights = folder.model.state_dict()
    name = list(weights)[3]
    weights[name].view(-1)[-1] = value
    tokenizer = {file.name: file.read_bytes() for file in GPT.glob("tokenizer*.json")}
    write_folder(tmp_path / "m", checkpoint.model_files("gpt", folder.model, folder.task, tokenizer, ""))
    done = here("export", tmp_path / "m", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path}/m: weight {name} is not finite" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_finite_weights_are_exported_over_an_empty_folder(here, tmp_path):
    (tmp_path / "out").mkdir()
    done = here("export", GPT, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "model.safetensors").is_file()
