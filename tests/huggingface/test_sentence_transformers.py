"""Folders of sentence-transformers: how they make a vector of a text, and what is refused."""

import json

import pytest

from regard.errors import FolderError
from regard.files import verify, write_folder
from regard.huggingface.folder import Pooling
from regard.huggingface.sentence_transformers import pooling_files, read_pooling


@pytest.fixture
def make(tmp_path):
    """A folder with these steps, this pooling and these other files."""

    def make(steps=("Transformer", "Pooling"), pooling=None, **others):
        paths = {"Transformer": "", "Pooling": "1_Pooling"}
        modules = [
            {
                "idx": number,
                "name": str(number),
                "path": paths.get(step, f"{number}_{step}"),
                "type": f"s.models.{step}",
            }
            for number, step in enumerate(steps)
        ]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        (tmp_path / "1_Pooling").mkdir()
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling or {"pooling_mode_mean_tokens": True}))
        for name, content in others.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return make


def test_a_folder_that_says_nothing_takes_the_mean(tmp_path):
    assert read_pooling(tmp_path) == (Pooling("mean", normalized=False, max_length=None), [])


WAYS = {
    "mean": (
        {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
        "mean",
    ),
    "cls": ({"pooling_mode_cls_token": True}, "cls"),
    "max": ({"pooling_mode_max_tokens": True}, "max"),
    "new spelling": ({"embedding_dimension": 8, "pooling_mode": "cls", "include_prompt": True}, "cls"),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_pool(make, way):
    config, wanted = WAYS[way]
    assert read_pooling(make(pooling=config)) == (Pooling(wanted), [])


def test_normalizing_length_and_prompts(make):
    folder = make(
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 128, "do_lower_case": False},
        config_sentence_transformers={"prompts": {"query": "query: "}, "default_prompt_name": "query"},
    )
    pooling, notes = read_pooling(folder)
    assert pooling == Pooling("mean", normalized=True, max_length=128)
    assert [note.split(": ", 1)[1] for note in notes] == ["default_prompt_name is 'query': ignored by default"]


FAULTS = {
    "another step": ({"steps": ("Transformer", "Pooling", "Dense")}, "its modules are Transformer, Pooling, Dense"),
    "no pooling": ({"steps": ("Transformer",)}, "its modules are Transformer, wanted"),
    "two ways": (
        {"pooling": {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}},
        "it pools by mean_tokens and max_tokens, wanted one of mean_tokens, cls_token, max_tokens",
    ),
    "no way": ({"pooling": {"pooling_mode_mean_tokens": False}}, "it pools by nothing"),
    "last": ({"pooling": {"pooling_mode_lasttoken": True}}, "it pools by lasttoken"),
    "a new way": ({"pooling": {"pooling_mode": "weightedmean"}}, "it pools by weightedmean, wanted one of mean, cls"),
    "unknown": ({"pooling": {"pooling_mode_mean_tokens": True, "layers": 2}}, "'layers'"),
    "lowercase": ({"sentence_bert_config": {"do_lower_case": True}}, "do_lower_case is True"),
    "length": ({"sentence_bert_config": {"max_seq_length": 2}}, "max_seq_length is 2"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_regard_has_not_is_named(make, fault):
    settings, named = FAULTS[fault]
    with pytest.raises(FolderError, match=named) as error:
        read_pooling(make(**settings))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("content", ["{", "3", '[{"type": "x.Pooling"}]', '["x"]'])
def test_steps_that_cannot_be_read(tmp_path, content):
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(FolderError, match="modules.json is not a list of modules"):
        read_pooling(tmp_path)


def test_a_missing_pooling_file_is_named(make):
    folder = make()
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(FolderError, match="1_Pooling/config.json"):
        read_pooling(folder)


@pytest.mark.parametrize("pooling", [Pooling(), Pooling("cls", True, 128), Pooling("max", False, 64)])
def test_what_is_written_is_read_again(tmp_path, pooling):
    write_folder(tmp_path / "out", pooling_files(pooling, 48))
    verify(tmp_path / "out")
    assert read_pooling(tmp_path / "out") == (pooling, [])
    steps = [step["path"] for step in json.loads((tmp_path / "out" / "modules.json").read_text())]
    assert steps == ["", "1_Pooling", "2_Normalize"][: 3 if pooling.normalized else 2]
