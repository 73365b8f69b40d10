"""Names on the hub: which files are asked for, and what is said of those that are not there."""

from fnmatch import fnmatch

import huggingface_hub
import pytest

from regard.errors import FolderError
from regard.huggingface.hub import find

FILES = ["config.json", "tokenizer.json", "chat_template.jinja", "vocab.json", "merges.txt", "source.spm"]
WEIGHTS = ["model.safetensors", "pytorch_model.bin", "README.md"]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one model on it, of small files."""

    def download(name, allow_patterns):
        folder = tmp_path / "cache"
        folder.mkdir()
        for file in [*FILES, *WEIGHTS]:
            if any(fnmatch(file, pattern) for pattern in allow_patterns):
                (folder / file).write_text("{}")
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_a_model_is_fetched_with_all_that_its_tokenizer_needs_and_no_pickle(hub):
    assert names(find("someone/model")) == {*FILES, "model.safetensors"}


def test_a_tokenizer_is_fetched_without_the_weights(hub):
    assert names(find("someone/model", tokenizer_only=True)) == {*FILES}


def test_weights_in_a_pickle_are_refused(hub, monkeypatch):
    monkeypatch.setitem(globals(), "WEIGHTS", ["pytorch_model.bin"])
    with pytest.raises(FolderError, match=r"someone/model has its weights in pytorch_model.bin"):
        find("someone/model")


def test_the_tokenizer_of_such_a_model_is_fetched(hub, monkeypatch):
    monkeypatch.setitem(globals(), "WEIGHTS", ["pytorch_model.bin"])
    assert names(find("someone/model", tokenizer_only=True)) == {*FILES}
