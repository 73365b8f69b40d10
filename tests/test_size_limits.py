"""Sizes of a config are compared with the header of the weights before a model is built."""

import json

import pytest
import torch
from safetensors.torch import save_file

from regard import huggingface
from regard.errors import FolderError, escape_controls
from regard.size_limits import check_sizes
from tests.attack.models import gpt2_config, gpt2_files


@pytest.fixture
def weights(tmp_path):
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(2)}, tmp_path / "w.safetensors")
    return [tmp_path / "w.safetensors"]


def test_sizes_that_the_weights_can_have_pass(tmp_path, weights):
    check_sizes({"n_layer": 2, "width": 5, "heads": 1, "names": ["x"], "scale": 1e30}, tmp_path / "c.json", weights)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"n_layer": 3}, "n_layer is 3, but there are only 2 weights"),
        ({"text": {"layers": 10**6}}, "text.layers is 1,000,000, but there are only 2 weights"),
        ({"width": 10**18}, "width is 1,000,000,000,000,000,000, but the largest weight has 15 numbers"),
        ({"sizes": [1, 2**64]}, "sizes.1 is 18,446,744,073,709,551,616"),
    ],
)
def test_sizes_that_they_cannot_have_are_named(tmp_path, weights, config, said):
    with pytest.raises(FolderError) as caught:
        check_sizes(config, tmp_path / "c.json", weights)
    assert said in str(caught.value)


def test_the_command_that_converts_a_pickle_carries_nothing_of_the_folder_unquoted(tmp_path):
    folder = tmp_path / "a b;touch PWNED"
    folder.mkdir()
    config = {"model_type": "gpt2", "architectures": ["X$(touch PWNED)"], "vocab_size": 4}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(FolderError) as caught:
        huggingface.load(folder)
    command = str(caught.value).partition("installed: ")[2]
    assert "$(" not in command
    assert "transformers.AutoModel.from_pretrained" in command
    assert f"'{folder}'" in command


def test_escape_sequences_are_written_out():
    assert escape_controls("a\x1b[2J\x07é\u202e\nb\tc") == "a\\x1b[2J\\x07é\\u202e\nb\tc"


@pytest.mark.parametrize("layers", ["2", 2.0, 3.0, True])
def test_a_size_that_is_no_integer_cannot_slip_past_the_comparison(tmp_path, layers):
    for name, content in gpt2_files().items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "config.json").write_text(json.dumps(gpt2_config(n_layer=layers)))
    with pytest.raises(FolderError, match=r"config.json: n_layer is .*: Input should be a valid integer"):
        huggingface.load(tmp_path)
