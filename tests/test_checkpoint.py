"""Model folders: what goes in comes out, and what is wrong is named."""

import json
import shutil

import pytest
import torch

import regard
from regard.checkpoint import CONFIG, TOKENIZER, WEIGHTS, average, encode_tensors, load, model_files, read_tensors
from regard.errors import FolderError
from regard.files import write_folder
from regard.models.transformer import Transformer, TransformerConfig

TINY = TransformerConfig(vocab_size=300, width=16, heads=2, layers=1, feed_forward=16)


@pytest.fixture
def saved(tmp_path):
    model = Transformer(TINY)
    write_folder(
        tmp_path / "m", model_files("transformer", model, {"name": "translation"}, {TOKENIZER: b"{}"}, "# card")
    )
    return tmp_path / "m", model


def rewritten(folder, **changes):
    """The folder with some files changed, and a manifest that says they are right."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "MANIFEST.json"}
    write_folder(folder, files | {name.replace("_", "."): data for name, data in changes.items()})


def test_weights_come_back_bit_equal(saved):
    folder, model = saved
    found = load(folder)
    assert found.kind == "transformer"
    assert found.task == {"name": "translation"}
    assert not found.model.training
    for name, weight in model.state_dict().items():
        assert torch.equal(found.model.state_dict()[name], weight)


def test_no_pickle_is_in_the_folder(saved):
    folder, _ = saved
    assert sorted(path.name for path in folder.iterdir()) == [
        "MANIFEST.json",
        "card.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_a_missing_an_extra_and_a_misshapen_weight_are_named(saved):
    folder, model = saved
    weights = model.state_dict()
    name = "decoder.blocks.0.attention.query.weight"
    rewritten(folder, model_safetensors=encode_tensors({k: v for k, v in weights.items() if k != name}))
    with pytest.raises(FolderError, match=f"has no weight {name}"):
        load(folder)
    rewritten(folder, model_safetensors=encode_tensors(weights | {"foreign.weight": torch.zeros(2)}))
    with pytest.raises(FolderError, match="a weight foreign.weight that this model does not use"):
        load(folder)
    rewritten(folder, model_safetensors=encode_tensors(weights | {name: torch.zeros(16, 8)}))
    with pytest.raises(FolderError, match=rf"weight {name} has shape \(16, 8\), wanted \(16, 16\)"):
        load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "perceptron"}, "kind is 'perceptron', wanted one of rnn, conv, transformer"),
        ({"model": {**TINY.model_dump(), "depth": 3}}, "model.depth: Extra inputs are not permitted"),
        ({"model": {**TINY.model_dump(), "width": "wide"}}, "model.width: Input should be a valid integer"),
        ({"model": None}, "model: Input should be"),
    ],
)
def test_a_wrong_config_is_named(saved, change, message):
    folder, _ = saved
    config = json.loads((folder / CONFIG).read_text())
    rewritten(folder, config_json=json.dumps(config | change).encode())
    with pytest.raises(FolderError, match=message):
        load(folder)


def test_what_is_no_safetensors_is_named(saved):
    folder, _ = saved
    rewritten(folder, model_safetensors=b"not a safetensors file")
    with pytest.raises(FolderError, match="cannot be read as safetensors"):
        load(folder)


def test_a_folder_of_another_task_is_named(saved):
    folder, _ = saved
    config = json.loads((folder / CONFIG).read_text())
    rewritten(folder, config_json=json.dumps(config | {"task": {"name": "juggling"}}).encode())
    with pytest.raises(FolderError, match="its task is 'juggling', wanted one of translation"):
        regard.load(folder)


def test_no_folder_and_a_file_instead(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        if path.name == "file":
            path.write_text("")
        with pytest.raises(FolderError, match="is not a folder|there is no folder"):
            regard.load(path)


def test_the_mean_of_weights_is_their_mean():
    one, other = {"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}
    assert average([one, other])["w"].tolist() == [2.0, 4.0]


def test_read_tensors_are_aligned_for_the_matrix_kernels(saved):
    folder, _ = saved
    assert all(tensor.data_ptr() % 64 == 0 for tensor in read_tensors(folder / WEIGHTS).values())


def test_a_loaded_folder_translates(trained, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    translator = regard.load(copy)
    answer = translator.run("the boy eats bread", alignment=True)
    assert isinstance(answer.text, str)
    source = translator.task.encode(["the boy eats bread"])
    logits = translator.model(source, torch.tensor([[translator.tokenizer.bos_id]]))
    assert logits.shape == (1, 1, translator.tokenizer.vocab_size)
