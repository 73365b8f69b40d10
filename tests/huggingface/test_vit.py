"""ViT folders: the numbers of `transformers`, both ways, every fault named, and a captioner that sees by one."""

import json

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from regard import huggingface, load
from regard.errors import ConfigError, FolderError
from regard.files import write_folder
from regard.huggingface.vit import read_vit_config, read_weights
from regard.images.preprocessing import normalize, renormalize
from regard.models.captioner import Captioner, CaptionerConfig

SHAPES = {
    "plain": {},
    "other": {
        "num_attention_heads": 3,
        "num_hidden_layers": 3,
        "intermediate_size": 50,
        "hidden_act": "relu",
        "layer_norm_eps": 1e-3,
        "qkv_bias": False,
        "image_size": 24,
        "patch_size": 4,
    },
    "gelu_new": {"hidden_act": "gelu_new", "num_hidden_layers": 1, "image_size": 16},
}
TINY = ["model.width=16", "model.heads=2", "model.feed_forward=16", "data.validation=4", "training.evaluate_examples=2"]
TINY += ["training.max_tokens=200", "training.warmup=1", "training.steps=2"]


def random_vit(architecture="ViTModel", **changes):
    facts = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
    facts |= {"image_size": 32, "patch_size": 8, "encoder_stride": 8} | changes
    extra = {"add_pooling_layer": False} if architecture == "ViTModel" else {}
    model = getattr(transformers, architecture)(transformers.ViTConfig(**facts), **extra).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(mean=float("norm" in name and name.endswith("weight")), std=0.2)
    return model


@pytest.fixture(scope="module", params=SHAPES)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("vit") / "m"
    random_vit(**SHAPES[request.param]).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("vit") / "plain"
    random_vit().save_pretrained(path)
    colors = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "rescale_factor": 1 / 255}
    (path / "preprocessor_config.json").write_text(json.dumps(colors))
    return path


def ours(folder):
    sight = read_vit_config(folder)
    found, notes = read_weights(folder, sight)
    model = sight.build().eval()
    model.load_state_dict(found)
    return model, sight, notes


@pytest.mark.parametrize("blocks", ["all", "one"])
@torch.no_grad()
def test_the_numbers_are_those_of_transformers(folder, blocks):
    model, sight, notes = ours(folder)
    theirs = transformers.ViTModel.from_pretrained(folder, add_pooling_layer=False).eval()
    pixels = torch.randn(3, 3, sight.side, sight.side, generator=torch.Generator().manual_seed(2))
    wanted = theirs(pixels, output_hidden_states=True)
    if blocks == "one":  # what the first block hands on, before any norm
        seen = []
        stop = model.blocks[0].hidden.watch(seen.append)
        model(pixels)
        stop()
        assert (seen[0] - wanted.hidden_states[1]).abs().max() <= 1e-5
    else:
        assert wanted.last_hidden_state.std() > 0.5
        assert (model(pixels) - wanted.last_hidden_state).abs().max() <= 1e-5
        assert notes == []


def captioner_of(folder):
    vit, side, cell = read_vit_config(folder)
    sizes = {"vocab_size": 40, "width": 16, "heads": 2, "feed_forward": 16}
    model = Captioner(CaptionerConfig(encoder="vit", vit=vit, image_size=side, cell_size=cell, **sizes)).eval()
    found, _ = read_weights(folder, read_vit_config(folder))
    model.encoder.transformer.load_state_dict(found)
    return model


def test_there_and_back_every_weight_is_the_same_to_the_bit(folder, tmp_path):
    files = huggingface.files("captioner", captioner_of(folder), None)
    write_folder(tmp_path / "back", files)
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    assert read_vit_config(tmp_path / "back") == read_vit_config(folder)
    # and theirs opens it
    pixels = torch.randn(1, 3, *2 * [read_vit_config(folder).side])
    one, other = (
        transformers.ViTModel.from_pretrained(path, add_pooling_layer=False).eval()
        for path in (folder, tmp_path / "back")
    )
    assert torch.equal(one(pixels).last_hidden_state, other(pixels).last_hidden_state)


def test_colors_are_as_the_folder_says(plain):
    assert read_vit_config(plain).vit.mean == (0.1, 0.2, 0.3)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3), np.uint8)
    wanted = (torch.tensor(pixels) / 255 - torch.tensor([0.1, 0.2, 0.3])) / torch.tensor([0.4, 0.5, 0.6])
    found = renormalize(normalize(pixels), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert (found - wanted.permute(0, 3, 1, 2)).abs().max() < 1e-5


@torch.no_grad()
def test_a_captioner_sees_the_cells_of_the_vit(plain):
    model, theirs = captioner_of(plain), transformers.ViTModel.from_pretrained(plain, add_pooling_layer=False).eval()
    pixels = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), np.uint8)
    colors = (torch.tensor(pixels) / 255 - torch.tensor([0.1, 0.2, 0.3])) / torch.tensor([0.4, 0.5, 0.6])
    cells = theirs(colors.permute(0, 3, 1, 2)).last_hidden_state[:, 1:]
    assert (model.encoder(normalize(pixels)) - model.encoder.project(cells)).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("architecture", "named"),
    [
        ("ViTForImageClassification", "classifier.bias, classifier.weight"),
        ("ViTForMaskedImageModeling", "decoder.0.bias, decoder.0.weight, embeddings.mask_token"),
    ],
)
def test_what_a_captioner_does_not_see_by_is_named_and_left_out(tmp_path, architecture, named):
    model = random_vit(architecture)
    model.save_pretrained(tmp_path)
    found, _, notes = ours(tmp_path)
    assert notes == [f"{tmp_path / 'model.safetensors'}: {named}: left out, a captioner does not use them"]
    pixels = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert (found(pixels) - model.vit(pixels).last_hidden_state).abs().max() <= 1e-5


def test_every_fault_of_a_folder_is_one_line(plain, copy, edit, edit_json):
    spoiled = copy(plain)

    def fault(pattern):
        with pytest.raises(FolderError, match=pattern) as error:
            ours(spoiled)
        assert "\n" not in str(error.value)

    edit(spoiled, lambda tensors: tensors.update(more=torch.zeros(3)))
    fault("has a weight more that this model does not use")
    edit(spoiled, lambda tensors: (tensors.pop("more"), tensors.pop("layernorm.bias")))
    fault(r"has no weight layernorm\.bias, which this model needs")
    edit(spoiled, lambda tensors: tensors.update({"layernorm.bias": torch.zeros(5)}))
    fault(r"layernorm\.bias has shape \(5,\), wanted \(24,\)")
    for changes, pattern in [
        ({"rope": 1}, "a key 'rope' that regard does not know"),
        ({"num_channels": 1}, "num_channels is 1"),
        ({"image_size": 30}, "image_size 30 is not a multiple of patch_size 8"),
        ({"num_attention_heads": 5}, "hidden_size 24 does not divide into 5 heads"),
        ({"model_type": "bert"}, r"is a bert, wanted a Hugging Face folder of a ViT"),
    ]:
        edit_json(spoiled / "config.json", **changes)
        fault(pattern)
        (spoiled / "config.json").write_bytes((plain / "config.json").read_bytes())
    for changes, pattern in [
        ({"image_std": [0.5, 0.0, 0.5]}, r"image_std is \[0\.5, 0\.0, 0\.5\], wanted three numbers"),
        ({"image_mean": 0.5}, r"image_mean is 0\.5, wanted three numbers"),
        ({"rescale_factor": 1.0}, "pixels are not rescaled to 0 to 1"),
    ]:
        edit_json(spoiled / "preprocessor_config.json", **changes)
        fault(pattern)
        (spoiled / "preprocessor_config.json").write_bytes((plain / "preprocessor_config.json").read_bytes())
    (spoiled / "model.safetensors").rename(spoiled / "pytorch_model.bin")
    fault(r"convert it once.*transformers\.ViTModel\.from_pretrained.*transformers\.AutoImageProcessor")
    (spoiled / "config.json").unlink()
    fault(r"has no config\.json")


# ------------------------------------------------ at the command


def test_a_captioner_learns_on_top_of_a_vit_and_gives_it_back(here, plain, tmp_path, caplog):
    here("scenes", tmp_path / "photos", "--count", 12)
    photos, captions = tmp_path / "photos", tmp_path / "photos" / "captions.jsonl"
    done = here("train", "captioner", photos, captions, "--from", plain, "-o", tmp_path / "run", *TINY)
    assert done.returncode == 0, done.stderr
    assert "30 pretrained weights loaded" in done.stderr
    done = here("run", tmp_path / "run", photos / "scene-1.png", "-o", tmp_path / "look.html")
    assert done.returncode == 0, done.stderr
    config = load(tmp_path / "run").model.config
    assert (config.encoder, config.image_size, config.cell_size, config.width) == ("vit", 32, 8, 16)
    done = here("export", tmp_path / "run", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "only the ViT is exported" in caplog.text
    learned = load(tmp_path / "run").model.encoder.transformer.state_dict()
    back, _ = read_weights(tmp_path / "out", read_vit_config(tmp_path / "out"))
    assert all(torch.equal(weight, learned[name]) for name, weight in back.items())
    before, _ = read_weights(plain, read_vit_config(plain))
    assert not torch.equal(back["patch.weight"], before["patch.weight"])  # it learned on
    assert (back["patch.weight"] - before["patch.weight"]).abs().max() < 1e-3  # slowly


def test_what_cannot_be_is_refused_in_a_line(here, plain, reader, tmp_path):
    for arguments, pattern in [
        (
            ("run", plain, "picture.png"),
            "is a ViT, an image encoder without a task; to train a captioner with it: regard train",
        ),
        (("train", "captioner", "--from", reader, "-o", tmp_path / "a"), "wanted a Hugging Face folder of a ViT"),
        (("train", "captioner", "--from", tmp_path / "none", "-o", tmp_path / "a"), "has no config.json"),
        (
            ("train", "captioner", "model.encoder=vit", "-o", tmp_path / "a"),
            "the config of a ViT comes with its folder",
        ),
        (("train", "captioner", "--from", plain, "model.encoder=cnn", "-o", tmp_path / "a"), "comes with its folder"),
        (
            ("train", "captioner", "--from", plain, "model.image_size=64", "-o", tmp_path / "a", *TINY),
            "leave out model.*",
        ),
    ]:
        done = here(*arguments)
        assert (done.returncode, pattern in done.stderr) == (2, True), done.stderr


def test_a_captioner_that_sees_otherwise_has_no_counterpart(tmp_path):
    sizes = {"vocab_size": 40, "width": 16, "heads": 2, "feed_forward": 16, "image_size": 32}
    with pytest.raises(ConfigError, match="a captioner with encoder=cnn cannot be exported"):
        huggingface.files("captioner", Captioner(CaptionerConfig(**sizes)), None)
