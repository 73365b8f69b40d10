"""A captioner from training to looking: on drawn scenes, and on a folder of photographs in Flickr8k's layout."""

import io
import json
import random

import numpy as np
import pytest
import torch
from PIL import Image

from regard import load, recipes
from regard.checkpoint import CONFIG
from regard.errors import ConfigError, DataError, ImageError, InputError
from regard.experiments.check import adapter_of
from regard.files import read_json
from regard.generation import Beam, Sample
from regard.images.preprocessing import normalize
from regard.inspection.attention_overlay import overlay, save_overlay
from regard.metrics.attention_mass import cells_in_box
from regard.metrics.captions import bleu4, cider, exact_match
from regard.models import build
from regard.models.captioner import CaptionerConfig
from regard.synthetic.scenes.captions import caption
from regard.synthetic.scenes.objects import SHAPES
from regard.synthetic.scenes.scene import Scenes
from regard.tasks.captioning import evaluate as caption_scoring
from regard.tasks.captioning.pipeline import Captioner
from regard.tasks.evaluation import evaluate_folders
from regard.tasks.recipe import TrainingInputs, train_recipe
from regard.tokenizers.bpe import BPETokenizer

TINY = [
    "model.image_size=64",
    "model.cell_size=16",
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=16",
    "data.validation=12",
    "training.max_tokens=400",
    "training.warmup=2",
    "training.evaluate_examples=4",
]


def train(folder, paths=(), *changes):
    reports = list(train_recipe(recipes.find("captioner"), TrainingInputs(paths), [*TINY, *changes], folder))
    return [report.note for report in reports if report.note]


@pytest.fixture(scope="module")
def scenic(tmp_path_factory):
    """A folder trained on drawn scenes, and one with the other decoder."""
    folder = tmp_path_factory.mktemp("captioners")
    train(folder / "lstm", (), "training.steps=6")
    train(
        folder / "transformer",
        (),
        "training.steps=4",
        "model.decoder=transformer",
        "model.layers=2",
        "task.doubly_stochastic=0.1",
    )
    return folder


@pytest.fixture(scope="module")
def captioner(scenic):
    return load(scenic / "lstm")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Forty JPEGs with five captions each, as Flickr8k has them: name#number<tab>caption."""
    folder = tmp_path_factory.mktemp("flickr")
    (folder / "Images").mkdir()
    chance, lines = random.Random(5), []
    scenes = Scenes(seed=3)
    for number in range(40):
        scene = scenes[number]
        wide = Image.fromarray(scene.pixels()).resize((chance.randint(80, 200), chance.randint(80, 200)))
        wide.save(folder / "Images" / f"{number}_a.jpg", quality=90)
        shape, color = scene.things[0].shape, scene.things[0].color
        texts = ("A {c} {s} .", "There is a {s} .", "{c} and {s} ,", "One {s} , which is {c} .", "A picture of a {s} .")
        lines += [f"{number}_a.jpg#{k}\t{text.format(c=color, s=shape)}\n" for k, text in enumerate(texts)]
    (folder / "Flickr8k.token.txt").write_text("".join(lines), encoding="utf-8")
    return folder


# ------------------------------------------------ running


def test_a_picture_from_a_file_from_bytes_and_from_pixels_is_the_same(captioner, tmp_path):
    pixels = Scenes(0, "validation")[0].pixels()
    file, data = tmp_path / "scene.png", io.BytesIO()
    Image.fromarray(pixels).save(file)
    Image.fromarray(pixels).save(data, "PNG")
    found = [captioner.run(picture) for picture in (file, str(file), data.getvalue(), pixels)]
    for one in found:
        assert (one.text, one.score) == (found[0].text, pytest.approx(found[0].score, abs=1e-5))
        assert np.array_equal(one.pixels, pixels)


def test_a_word_has_a_look_that_sums_to_one(scenic):
    for name in ("lstm", "transformer"):
        found = load(scenic / name).run(Scenes(0, "validation")[1].pixels())
        assert "".join(found.words) == "".join(found.text.split())
        assert found.attention.shape == (len(found.words), 4, 4)
        assert found.attention.sum((1, 2)) == pytest.approx(np.ones(len(found.words)), abs=1e-4)


@torch.no_grad()
def test_a_look_is_of_the_moment_before_its_word(scenic):
    """Row t of the weights belongs to word t: it is what was seen with the words before it."""
    for name in ("lstm", "transformer"):
        captioner, pixels = load(scenic / name), Scenes()[2].pixels()
        tokens = captioner.tokenizer.encode("a small red star above a ring")
        begun = torch.tensor([[captioner.tokenizer.bos_id, *tokens]])
        weights = (
            captioner.model.forward_with_attention(normalize(pixels[None]), begun).weights[0].mean(0)
        )  # (T + 1, P)
        assert captioner.attention_of(pixels, tokens).reshape(7, 16) == pytest.approx(weights[:-1].numpy(), abs=1e-5)


def test_many_are_captioned_as_each_alone(captioner, monkeypatch):
    pictures = [Scenes(0, "validation")[number].pixels() for number in range(3)]
    monkeypatch.setattr("regard.tasks.captioning.pipeline.BATCH_SIZE", 2)
    monkeypatch.setattr("regard.tasks.captioning.pipeline.MAX_NEW_TOKENS", 12)
    together = captioner.run_all(pictures, Beam(2, num_return=2))
    for picture, found in zip(pictures, together, strict=True):
        alone = captioner.run(picture, Beam(2, num_return=2))
        assert (alone.text, [one.text for one in alone.others]) == (found.text, [one.text for one in found.others])
        assert len(found.others) == 1
        assert found.score >= found.others[0].score
    assert captioner.generate_texts(pictures, Beam(2)) == [found.text for found in together]
    drawn = captioner.run_all(pictures, Sample(seed=1))
    assert captioner.run_all(pictures[1:], Sample(seed=1), first=1)[1].text == drawn[2].text


def test_pixels_of_any_size_are_brought_to_the_models(captioner):
    wide = np.zeros((30, 90, 3), np.uint8)
    wide[:, 30:60] = 255
    assert (captioner.pixels_of(wide)[:, 1:-1] == 255).all()  # the square in its middle
    for wrong in (np.zeros((64, 64), np.uint8), np.zeros((64, 64, 3)), np.zeros((0, 4, 3), np.uint8)):
        with pytest.raises(InputError, match="wanted uint8"):
            captioner.run(wrong)


def test_what_is_no_picture_is_one_line(captioner, tmp_path):
    (tmp_path / "text.jpg").write_text("not a picture", encoding="utf-8")
    with pytest.raises(ImageError, match=r"text.jpg: is text, wanted a PNG or JPEG image"):
        captioner.run(tmp_path / "text.jpg")
    with pytest.raises(ImageError, match="cannot be read"):
        captioner.run(tmp_path / "none.png")


def test_a_caption_of_no_words_has_no_looks(captioner, monkeypatch):
    def mute(tokens, state):
        logits = torch.zeros(len(tokens), captioner.model.config.vocab_size)
        logits[:, captioner.tokenizer.eos_id] = 9.0
        return logits, state

    monkeypatch.setattr(captioner.model, "step", mute)
    found = captioner.run(Scenes()[0].pixels())
    assert (found.text, found.words, found.attention.shape, found.ended) == ("", [], (0, 4, 4), True)


def test_a_look_is_saved_as_a_strip(captioner, tmp_path):
    found = captioner.run(Scenes()[0].pixels())
    save_overlay(tmp_path / "look.html", found.pixels, found.words, found.attention)
    assert (tmp_path / "look.html").read_text(encoding="utf-8").count("<figure>") == 1 + len(found.words)


def test_in_int8_it_captions_too(scenic):
    assert isinstance(load(scenic / "lstm", precision="int8").run(Scenes()[0].pixels()).text, str)


def test_the_folder_says_what_it_is(scenic):
    config = read_json(scenic / "lstm" / CONFIG)
    assert (config["kind"], config["task"]) == ("captioner", {"name": "captioning"})
    assert adapter_of(load(scenic / "lstm").model).grid == 4


def red_seeker() -> Captioner:
    """A captioner whose attention is known: a cell's key is how red it is, and every word attends to the reddest."""
    letters = BPETokenizer.train(["a red square"] * 20, 300)
    config = CaptionerConfig(
        vocab_size=letters.vocab_size, image_size=48, cell_size=8, width=16, heads=2, encoder="patches"
    )
    model = build(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("norm.weight") and "norm_" not in name:
                parameter.zero_()
        patch = model.encoder.patch.weight.view(16, 3, 8, 8)
        patch[0], patch[0, 0] = -0.5, 1.0  # red, less half of green and blue
        patch[1] = -patch[0]  # the norm subtracts the mean
        model.decoder.key.weight[0, 0] = 5.0
        model.decoder.similarity.score.weight[0, 0] = 20.0
    return Captioner("captioner", model, letters)


@pytest.mark.parametrize("cell", [(0, 0), (0, 5), (2, 3), (5, 1)])
def test_the_overlay_is_bright_where_a_planted_attention_looks(cell, tmp_path):
    captioner, pixels = red_seeker(), np.full((48, 48, 3), 128, np.uint8)
    where = tuple(slice(8 * at, 8 * at + 8) for at in cell)
    pixels[where] = (255, 0, 0)
    looks = captioner.attention_of(pixels, captioner.tokenizer.encode("a red square"))
    assert len(looks) == 3
    for weights in looks:
        assert weights[cell] > 0.99
        panel = overlay(pixels, weights).astype(int)
        outside = np.ones((48, 48), bool)
        outside[where] = False
        assert panel[where].min(axis=(0, 1)).max() > 200  # the red square, lit
        assert panel[outside].max() < 40  # grey, darkened


# ------------------------------------------------ scoring


def test_scores_on_the_scenes_held_out(scenic, captioner):
    scores = evaluate_folders([scenic / "lstm"], [], [None])
    scenes = [Scenes(0, "validation")[number] for number in range(12)]
    texts = [captioner.run(scene.pixels()).text for scene in scenes]
    references = [[" ".join(caption(scene).words)] for scene in scenes]
    assert scores["images"] == 12
    assert scores["exact_match"] == exact_match(texts, references)
    assert scores["bleu4"] == pytest.approx(bleu4(texts, references).value)
    assert scores["cider"] == pytest.approx(cider(texts, references).value)
    assert scores["perplexity"] == pytest.approx(np.exp(scores["loss"]))
    assert evaluate_folders([scenic / "lstm"], [], [None], limit=5)["images"] == 5
    json.dumps(scores)


def test_attention_on_the_true_thing_is_counted_for_each_head(scenic):
    scores = evaluate_folders([scenic / "transformer"], [], [None])
    assert [(row["layer"], row["head"]) for row in scores["by_head"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    mean = np.mean([row["on_object"] for row in scores["by_head"]])
    assert scores["attention_on_object"] == pytest.approx(mean)
    assert scores["attention_times_chance"] == pytest.approx(mean / scores["attention_chance"])


def test_the_words_of_a_thing_are_held_against_its_own_cells(captioner):
    scene = next(scene for scene in map(Scenes(0, "validation").__getitem__, range(9)) if len(scene.things) == 3)
    words = caption(scene).words
    tokens = captioner.tokenizer.encode(" ".join(words))
    covered = caption_scoring._covered(scene, captioner.tokenizer.word_ids(tokens), 8)
    for word, region, cells in zip(words, caption(scene).regions, covered, strict=True):
        if word in ("left", "of", "above"):
            assert cells is None
        else:
            assert np.array_equal(cells, cells_in_box(scene.things[region].box, 64, 8))
    nouns = caption_scoring._covered(scene, captioner.tokenizer.word_ids(tokens), 8, only=SHAPES)
    assert [cells is not None for cells in nouns] == [word in SHAPES for word in words]


def test_a_model_that_looks_at_the_thing_it_names_has_all_of_its_mass_there(captioner, monkeypatch):
    """Looks put in by hand: evenly over the cells of each word's thing."""
    items = list(caption_scoring._drawn(64, 3))
    wanted = []
    for item in items:
        tokens = captioner.tokenizer.encode(item.references[0])
        covered = caption_scoring._covered(item.scene, captioner.tokenizer.word_ids(tokens), 4)
        wanted.append(
            [np.full(16, 1 / 16) if cells is None or not cells.any() else cells / cells.sum() for cells in covered]
        )

    def looked(model, pixels, target):
        weights = torch.full((1, *target.shape[:1], 1, target.shape[1], 16), 1 / 16)
        for row, looks in enumerate(wanted):
            weights[0, row, 0, : len(looks)] = torch.tensor(np.array(looks))
        return weights

    monkeypatch.setattr(caption_scoring, "cross_attention_weights", looked)
    scores = caption_scoring.score_items(captioner, iter(items))
    assert scores["attention_on_object"] == pytest.approx(1.0, abs=1e-5)
    assert scores["attention_on_object_by_nouns"] == pytest.approx(1.0, abs=1e-5)
    assert scores["attention_times_chance"] == pytest.approx(1 / scores["attention_chance"], abs=1e-3)


def test_several_runs_give_mean_and_deviation(scenic):
    scores = evaluate_folders([scenic / "lstm", scenic / "lstm"], [], [None, Sample(seed=2)])
    assert scores["runs"] == 4
    assert scores["deviation"]["loss"] == pytest.approx(0.0, abs=1e-9)


def test_no_alignments_of_pictures(scenic, tmp_path):
    with pytest.raises(ConfigError, match="--alignments is not for .* a model for captioning"):
        evaluate_folders([scenic / "lstm"], [], [None], alignments=tmp_path / "links")


def test_pictures_are_read_in_one_way(scenic, tmp_path):
    with pytest.raises(ConfigError, match="data.label=x is not for .* a model for captioning"):
        evaluate_folders([scenic / "lstm"], [tmp_path], [None], assignments=["data.label=x"])


# ------------------------------------------------ the user's own pictures


@pytest.fixture(scope="module")
def own(tmp_path_factory, photos):
    folder = tmp_path_factory.mktemp("own") / "run"
    notes = train(
        folder,
        [photos / "Images", photos / "Flickr8k.token.txt"],
        "training.steps=5",
        "model.vocab_size=320",
        "data.whole_word_tokens=40",
    )
    return folder, notes


def test_a_folder_of_photographs_in_flickrs_layout_trains(own, photos):
    folder, notes = own
    (said,) = [note for note in notes if "images with" in note]
    assert said.endswith("held out")
    assert load(folder).run(photos / "Images" / "3_a.jpg").attention.shape[1:] == (4, 4)


def test_it_is_scored_on_what_it_held_out_and_on_named_files(own, photos):
    folder, _ = own
    validation = evaluate_folders([folder], [], [None])
    everything = evaluate_folders([folder], [photos / "Images", photos / "Flickr8k.token.txt"], [None])
    assert 1 <= validation["images"] <= 4
    assert everything["images"] == 40
    assert "by_head" not in validation


def test_scoring_names_the_pictures_it_cannot_read(own, photos, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut")
    Image.new("RGB", (20, 20)).save(tmp_path / "good.png")
    (tmp_path / "captions.tsv").write_text("bad.jpg\ta ring\ngood.png\ta star\nnone.png\ta dot\n", encoding="utf-8")
    scores = evaluate_folders([own[0]], [tmp_path, tmp_path / "captions.tsv"], [None])
    assert scores["images"] == 1
    assert scores["bad_lines"][0].startswith("bad lines left out: 2 (")


def test_a_bad_photograph_stops_the_run_or_is_left_out_and_named(photos, tmp_path):
    for file in (photos / "Images").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "7_a.jpg").write_bytes((tmp_path / "7_a.jpg").read_bytes()[:300])
    paths = [tmp_path, photos / "Flickr8k.token.txt"]
    changes = ["training.steps=1", "model.vocab_size=300", "data.whole_word_tokens=40"]
    with pytest.raises(DataError, match=r"7_a.jpg: is .*; fix it, or set data.on_error=skip to skip such images"):
        train(tmp_path / "stopped", paths, *changes)
    notes = train(tmp_path / "went-on", paths, *changes, "data.on_error=skip")
    assert any("bad lines left out: 1 (bad image 1)" in note for note in notes)
    assert any("7_a.jpg: bad image: is " in note for note in notes)


def test_what_is_no_folder_and_file_is_said(photos, tmp_path):
    with pytest.raises(DataError, match=r"wanted the folder of the images and the file of their captions"):
        train(tmp_path / "one", [photos / "Images"], "training.steps=1")


def test_stopped_and_gone_on_is_the_same_as_all_at_once(tmp_path):
    for name, steps in (("whole", 4), ("parts", 2), ("parts", 4)):
        train(
            tmp_path / name, (), f"training.steps={steps}", "training.schedule=constant", "training.evaluate_examples=1"
        )
    one, other = (load(tmp_path / name).model.state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_captioner_is_opened_by_its_task(captioner):
    assert isinstance(captioner, Captioner)
