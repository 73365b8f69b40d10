"""ViLBERT from the recipes: trained on scenes, begun from, asked; and folders of questions."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.config import override
from regard.data.batches import DataPosition
from regard.errors import ConfigError, DataError, InputError
from regard.models import build
from regard.recipes import find
from regard.synthetic.scenes.captions import caption
from regard.synthetic.scenes.vocabulary import ANSWERS
from regard.tasks.evaluation import evaluate_folders
from regard.tasks.recipe import Recipe, RunConfig, TrainingInputs, train_recipe
from regard.tasks.vision_language.evaluate_scenes import score_attention, score_questions, score_retrieval
from regard.tasks.vision_language.pipeline import ImageTextMatcher, Pointer, VisualQuestionAnswering
from regard.tasks.vision_language.scenes import (
    OBJECT_CLASSES,
    caption_text,
    first_scenes,
    named_regions,
    questions_about,
    scene_regions,
)
from regard.tokenizers.wordpiece import WordPieceTokenizer

STREAM = ["width=16", "heads=2", "layers=0", "feed_forward=16"]
TINY = [
    *(f"model.{stream}.{fact}" for stream in ("text", "regions") for fact in STREAM),
    "model.co_attention_layers=1",
    "model.joint_width=16",
    "model.vision.patch_size=4",
    "model.vision.inner=16",
]
SHORT = [
    "training.steps=3",
    "training.max_tokens=400",
    "training.gradient_accumulation=1",
    "training.evaluate_examples=20",
    "training.warmup=1",
    "data.scenes=30",
    "data.validation=6",
]


def trained(recipe: str, inputs: TrainingInputs, settings: list[str], folder: Path) -> list[str]:
    """The notes of a short run."""
    return [report.note for report in train_recipe(find(recipe), inputs, settings, folder) if report.note]


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("vilbert")
    trained("vilbert", TrainingInputs(), TINY + SHORT, folder)
    return folder


RECIPE_OF = {"questions": "vqa", "statements": "statements", "phrases": "grounding"}


@pytest.fixture(scope="module", params=["questions", "statements", "phrases"])
def asked(request, pretrained, tmp_path_factory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    several = [] if request.param == "phrases" else [f"data.{request.param}_per_scene=3"]
    trained(RECIPE_OF[request.param], TrainingInputs(pretrained=pretrained), [*SHORT, *several], folder)
    return request.param, folder


def prepared(recipe: Recipe, inputs: TrainingInputs, settings: list[str], folder: Path):
    run: RunConfig = override(recipe.settings(inputs), settings)
    return recipe.prepare(run, inputs, folder / "tokenizer.json")


# ------------------------------------------------ pretraining


def test_what_was_trained_ranks_pictures_and_texts(pretrained):
    matcher = regard.load(pretrained)
    assert type(matcher) is ImageTextMatcher
    assert matcher.model.config.vision.classes == len(OBJECT_CLASSES) == 8 * 8 * 2 * 3
    scenes = first_scenes("validation", 5)
    pictures = [scene_regions(scene, matcher.model.config.vision) for scene in scenes]
    texts = [caption_text(caption(scene)) for scene in scenes]
    scores = matcher.scores(texts, pictures)
    for number, text in enumerate(texts):
        ranked = matcher.rank_images(text, pictures)
        assert [one.number for one in ranked] == np.argsort(-scores[number], kind="stable").tolist()
        assert [one.score for one in ranked] == pytest.approx(sorted(scores[number], reverse=True), abs=1e-5)
    ranked = matcher.rank_texts(pictures[2], texts)
    assert [one.score for one in ranked] == pytest.approx(sorted(scores[:, 2], reverse=True), abs=1e-5)
    found = matcher.match(texts[1], scenes[3].pixels(), [thing.box for thing in scenes[3].things])
    assert found.score == pytest.approx(scores[1, 3], abs=1e-5)
    assert found.probability == pytest.approx(1 / (1 + np.exp(-scores[1, 3])), abs=1e-5)


def test_a_picture_is_a_file_its_bytes_its_pixels_or_its_regions(pretrained, tmp_path):
    matcher, scene = regard.load(pretrained), first_scenes("validation", 1)[0]
    Image.fromarray(scene.pixels()).save(tmp_path / "scene.png")
    boxes = [thing.box for thing in scene.things]
    ways = [tmp_path / "scene.png", str(tmp_path / "scene.png"), (tmp_path / "scene.png").read_bytes(), scene.pixels()]
    wanted = matcher.regions_of(scene_regions(scene, matcher.model.config.vision))
    for way in ways:
        found = matcher.regions_of(way, boxes)
        assert np.array_equal(found.features, wanted.features)
        assert np.array_equal(found.boxes, wanted.boxes)


def test_what_cannot_be_seen_is_one_line(pretrained):
    matcher, pixels = regard.load(pretrained), np.zeros((20, 30, 3), np.uint8)
    assert len(matcher.regions_of(pixels).boxes) == 17  # without boxes the image, and a grid of it
    for box in [(0, 0, 31, 5), (5, 5, 5, 9), (0, 0, 3), (-1, 0, 3, 3)]:
        with pytest.raises(InputError, match=r"^box 1 is .* inside the image of 30 × 20 pixels$"):
            matcher.regions_of(pixels, [(0, 0, 2, 2), box])
    with pytest.raises(InputError, match=r"^the image is float64 \(3, 3\), wanted uint8"):
        matcher.regions_of(np.zeros((3, 3)), [(0, 0, 1, 1)])
    other = scene_regions(first_scenes("validation", 1)[0], matcher.model.config.vision)
    with pytest.raises(InputError, match=r"^the regions are \(\d, 47\), wanted \(R, 48\)"):
        matcher.regions_of(other._replace(features=other.features[:, :47]))
    with pytest.raises(InputError, match=r"^the boxes are "):
        matcher.regions_of(other._replace(boxes=other.boxes[:1]))
    with pytest.raises(InputError, match="got one text, wanted a list"):
        matcher.scores("a star", [other])


def test_scores_are_those_of_held_out_scenes(pretrained):
    matcher = regard.load(pretrained)
    found = score_retrieval(matcher, 12)
    assert found["images"] == 12
    for side in ("text_to_image", "image_to_text"):
        assert 0 <= found[f"{side}_r@1"] <= found[f"{side}_r@5"] <= found[f"{side}_r@10"] <= 1
    looks = score_attention(matcher, 8)
    assert [(one.co_attention, one.head) for one in looks] == [(0, 0), (0, 1)]
    assert all(0 < one.mass < 1 and 0.15 < one.chance < 0.4 for one in looks)


def test_regard_evaluate_scores_them_on_what_they_held_out(pretrained, asked):
    found = evaluate_folders([pretrained], [], [None], limit=7)
    assert found["images"] == 7
    assert [(one["layer"], one["head"]) for one in found["by_head"]] == [(1, 1), (1, 2)]
    mean = np.mean([one["on_object"] for one in found["by_head"]])
    assert found["attention_on_object"] == pytest.approx(mean)
    assert found["attention_times_chance"] == pytest.approx(mean / found["attention_chance"])
    ask, folder = asked
    assert evaluate_folders([folder], [], [None]) == score_questions(regard.load(folder), ask, count=6, each=3)


def test_words_that_look_at_their_region_alone_have_all_the_mass(pretrained):
    """With every weight on region 1, the words of the first thing have all of it and the others none."""
    matcher = regard.load(pretrained)
    scenes = first_scenes("validation", 8)
    tap = next(
        one for path, one in matcher.model.named_modules() if path.endswith("text_co_attention.attention.weights")
    )
    whole = type(tap).forward
    tap.forward = lambda weights: whole(tap, torch.zeros_like(weights).index_fill(-1, torch.tensor([1]), 1.0))
    words = [thing for scene in scenes for thing in caption(scene).regions if thing is not None]
    first, second = (np.mean([thing == number for thing in words]) for number in range(2))
    assert abs(first - second) > 1e-3
    found = score_attention(matcher, 8)[0]
    assert (found.mass, found.whole) == pytest.approx((first, 0), abs=1e-6)  # every word is one piece


def test_for_every_near_miss_there_is_a_true_text_of_its_form(tmp_path):
    """So that no text is known to be false by how it is written."""
    ready = prepared(find("vilbert"), TrainingInputs(), ["data.scenes=20", "data.validation=4"], tmp_path)
    told, begins = ready.task.data.training, WordPieceTokenizer.load_saved(tmp_path).encode_ids("the there")
    stated = lambda texts: sum(text[0] in begins for text in texts)  # noqa: E731
    assert told.alike == 6
    for true, near, scene in zip(told.texts, told.near, first_scenes("training", 20), strict=True):
        assert len(near) == told.alike
        assert stated(near) == stated(true[: told.alike]) == 5
        assert true[0] == WordPieceTokenizer.load_saved(tmp_path).encode_ids(caption_text(caption(scene)))


def test_cells_need_no_boxes(tmp_path):
    notes = trained("vilbert", TrainingInputs(), [*TINY, *SHORT, "model.vision.grid=3"], tmp_path)
    assert notes
    matcher = regard.load(tmp_path)
    assert matcher.model.config.vision.classes == 0  # a hidden cell is guessed by its pixels
    assert len(matcher.regions_of(np.zeros((20, 30, 3), np.uint8)).features) == 10
    with pytest.raises(InputError, match="takes 3 × 3 cells of an image; leave the boxes out"):
        matcher.regions_of(np.zeros((20, 30, 3), np.uint8), [(0, 0, 1, 1)])
    assert all(0 < one.mass < 1 for one in score_attention(matcher, 4))


# ------------------------------------------------ questions


def test_what_was_asked_is_answered(asked):
    ask, folder = asked
    runner = regard.load(folder)
    assert type(runner) is (Pointer if ask == "phrases" else VisualQuestionAnswering)
    scene = first_scenes("validation", 1)[0]
    boxes = [thing.box for thing in scene.things]
    some = questions_about(scene, ask, 4)
    found = [runner.run(one.text, scene.pixels(), boxes) for one in some]
    if ask == "phrases":
        assert all(sum(one.probabilities) == pytest.approx(1) for one in found)
        assert all(len(one.probabilities) == 1 + len(boxes) for one in found)
        assert all(one.probability == max(one.probabilities) == one.probabilities[one.region] for one in found)
    else:
        assert runner.labels == (ANSWERS if ask == "questions" else ("false", "true"))
        assert all(sum(one.probabilities.values()) == pytest.approx(1) for one in found)
        assert all(one.probabilities[one.answer] == one.probability for one in found)


def test_scores_count_right_answers_by_kind(asked):
    ask, folder = asked
    runner = regard.load(folder)
    found = score_questions(runner, ask, count=4, each=3)
    right, scenes = [], first_scenes("validation", 4)
    for scene in scenes:
        for one in questions_about(scene, ask, 3):
            said = runner.run(one.text, scene.pixels(), [thing.box for thing in scene.things])
            right.append((said.region if ask == "phrases" else runner.labels.index(said.answer)) == one.target)
    assert found["questions"] == len(right)
    assert found["accuracy"] == pytest.approx(np.mean(right))
    with pytest.raises(InputError, match="was not trained on"):
        score_questions(runner, "phrases" if ask != "phrases" else "questions", count=2)


def test_a_model_begins_with_the_encoder_it_is_begun_from(pretrained, tmp_path):
    for name in ("vqa", "grounding"):
        inputs = TrainingInputs(pretrained=pretrained)
        ready = prepared(find(name), inputs, ["data.scenes=4", "data.validation=4"], tmp_path / name)
        model = build(ready.model)
        note = ready.warm_start(model)
        wanted = regard.load(pretrained).model.encoder.state_dict()
        assert all(torch.equal(value, wanted[name]) for name, value in model.encoder.state_dict().items())
        assert note.startswith(f"{len(wanted)} pretrained weights loaded; new: ")


def test_more_pretraining_begins_with_the_heads_too(pretrained, tmp_path):
    ready = prepared(
        find("vilbert"), TrainingInputs(pretrained=pretrained), ["data.scenes=4", "data.validation=4"], tmp_path
    )
    model = build(ready.model)
    assert "new" not in ready.warm_start(model)
    wanted = regard.load(pretrained).model.state_dict()
    assert all(torch.equal(value, wanted[name]) for name, value in model.state_dict().items())


def test_retrieval_is_learned_with_pretraining_and_without(pretrained, tmp_path):
    """The same head on the same captions; scored together, as runs of other seeds are."""
    for name, start in (("with", pretrained), ("without", None)):
        settings = SHORT if start else TINY + SHORT
        notes = trained("retrieval", TrainingInputs(pretrained=start), settings, tmp_path / name)
        assert notes[0] == "captions of 30 scenes, 6 held out"
        assert notes[1].endswith("new: matching.weight, matching.bias" if start else "a ViLBERT pretrained on images")
        assert regard.load(tmp_path / name).kind == "vilbert-retrieval"
    found = evaluate_folders([tmp_path / "with", tmp_path / "without"], [], [None], limit=5)
    one = [score_retrieval(regard.load(tmp_path / name), 5)["text_to_image_r@1"] for name in ("with", "without")]
    assert found["text_to_image_r@1"] == pytest.approx(np.mean(one))
    assert found["deviation"]["text_to_image_r@1"] == pytest.approx(np.std(one, ddof=1))


def test_what_cannot_be_begun_is_one_line(pretrained, tmp_path):
    settings = [*TINY, *SHORT, "model.vision.patch_size=none", "model.vision.features=7"]
    with pytest.raises(ConfigError, match=r"model.vision.features=7: scenes have pixels, no features"):
        trained("vilbert", TrainingInputs(), settings, tmp_path / "run2")


# ------------------------------------------------ the user's pictures


@pytest.fixture
def photos(tmp_path) -> list[Path]:
    """Eighty pictures of one color with two captions each, and the file of the captions."""
    folder = tmp_path / "photos"
    folder.mkdir()
    colors = ("red", "green", "blue", "white", "black")
    rows = []
    for number in range(80):
        color = colors[number % 5]
        Image.new("RGB", (16, 12), color).save(folder / f"{number}.png")
        rows.append({"image": f"{number}.png", "captions": [f"all {color} {number}", f"number {number} is {color}"]})
    (tmp_path / "captions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return [folder, tmp_path / "captions.jsonl"]


def test_pictures_with_captions_are_seen_as_cells(photos, tmp_path):
    settings = [*TINY, *SHORT[:5], "model.vision.grid=2", "data.validation=4"]
    notes = trained("vilbert", TrainingInputs(photos), settings, tmp_path / "run")
    assert "images to train on" in notes[0]
    matcher = regard.load(tmp_path / "run")
    pictures = [matcher.regions_of(photos[0] / f"{number}.png") for number in range(3)]
    assert [len(one.features) for one in pictures] == [5, 5, 5]
    assert len(matcher.rank_images("all red 0", pictures)) == 3
    texts = [f"all {color} {number}" for number, color in enumerate(("red", "green", "blue"))]
    scores = matcher.scores(texts, pictures)
    found = evaluate_folders([tmp_path / "run"], photos, [None], limit=3)
    assert found["images"] == 3
    assert found["image_to_text_r@1"] == pytest.approx(np.mean(scores.argmax(0) == np.arange(3)))
    assert evaluate_folders([tmp_path / "run"], [], [None])["images"] == 4  # those held out


def test_regions_of_a_file_are_seen_as_they_are(photos, tmp_path):
    rng = np.random.default_rng(0)
    boxes = np.tile(np.array([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]], np.float32), (80, 1, 1))
    facts = {"features": rng.random((80, 2, 7)), "boxes": boxes, "classes": rng.integers(0, 9, (80, 2))}
    names = [f"{number}.png" for number in range(80)]
    np.savez(tmp_path / "regions.npz", **facts, names=np.array(names))
    settings = [*TINY[:-2], *SHORT[:5], "data.validation=4", f"data.regions={tmp_path / 'regions.npz'}"]
    trained("vilbert", TrainingInputs(photos), settings, tmp_path / "run")
    matcher = regard.load(tmp_path / "run")
    assert (matcher.model.config.vision.features, matcher.model.config.vision.classes) == (
        7,
        1 + facts["classes"].max(),
    )
    with pytest.raises(InputError, match="takes features of regions, not pixels"):
        matcher.regions_of(photos[0] / "0.png")
    np.savez(tmp_path / "regions.npz", **facts, names=np.array([f"other {name}" for name in names]))
    with pytest.raises(DataError, match=r"regions.npz: has no regions of .*png; its names must be"):
        trained("vilbert", TrainingInputs(photos), settings, tmp_path / "other")


def test_pictures_that_cannot_be_learned_are_one_line(photos, pretrained, tmp_path):
    with pytest.raises(DataError, match="got .*photos; wanted the folder of the images and the file of their captions"):
        trained("vilbert", TrainingInputs(photos[:1]), [], tmp_path / "one")
    with pytest.raises(ConfigError, match="the model must read cells"):
        trained("vilbert", TrainingInputs(photos, pretrained), [], tmp_path / "two")


# ------------------------------------------------ folders


@pytest.fixture
def folder(tmp_path) -> Path:
    """Red and blue pictures, and what color each is."""
    for part in ("train", "test"):
        (tmp_path / "data" / part / "images").mkdir(parents=True)
        rows = []
        for number in range(6):
            color = ("red", "blue")[number % 2]
            Image.new("RGB", (16, 16), color).save(tmp_path / "data" / part / "images" / f"{number}.png")
            rows += [["what color is it?", color, number], ["is it red?", "yes" if color == "red" else "no", number]]
        (tmp_path / "data" / part / "questions.json").write_text(json.dumps(rows))
    (tmp_path / "data" / "answers.txt").write_text("red\nblue\nyes\nno\n")
    return tmp_path / "data"


def test_questions_of_a_folder_are_learned(folder, tmp_path):
    settings = [
        *TINY,
        "model.vision.grid=2",
        "training.steps=80",
        "training.gradient_accumulation=1",
        "training.warmup=5",
        "training.learning_rate=0.01",
    ]
    notes = trained("vqa", TrainingInputs([folder]), settings, tmp_path / "run")
    assert notes[0] == "12 questions about 6 images, 12 held out; 4 answers"
    runner = regard.load(tmp_path / "run")
    assert runner.labels == ("red", "blue", "yes", "no")
    for number, color in enumerate(["red", "blue"]):
        picture = folder / "test" / "images" / f"{number}.png"
        assert runner.run("what color is it?", picture).answer == color
        assert runner.run("is it red?", picture).answer == ("yes" if color == "red" else "no")
    wanted = {"questions": 12, "accuracy": 1.0, "accuracy_what": 1.0, "accuracy_yes_no": 1.0}
    assert (
        evaluate_folders([tmp_path / "run"], [], [None])
        == evaluate_folders([tmp_path / "run"], [folder], [None])
        == wanted
    )
    rows = [["what color is it?", "red", 1], ["is it red?", "yes", 0], ["is it red?", "green", 0]]  # wrong; right; bad
    (folder / "test" / "questions.json").write_text(json.dumps(rows))
    with pytest.raises(DataError, match="data has changed since .*; name a folder in the format of easy-vqa"):
        evaluate_folders([tmp_path / "run"], [], [None])
    found = evaluate_folders([tmp_path / "run"], [folder], [None])
    assert (found["accuracy_what"], found["accuracy_yes_no"], found["accuracy"]) == (0.0, 1.0, 0.5)
    assert "unknown answer" in found["bad_lines"][0]


def test_a_folder_that_cannot_be_learned_is_one_line(folder, pretrained, tmp_path):
    with pytest.raises(ConfigError, match="images of a folder have no boxes: the model must read cells"):
        trained("vqa", TrainingInputs([folder], pretrained), [], tmp_path / "one")
    with pytest.raises(ConfigError, match="data.ask is now a recipe of its own: regard train grounding$"):
        trained("vqa", TrainingInputs([folder]), ["data.ask=phrases"], tmp_path / "two")
    with pytest.raises(ConfigError, match="grounding trains on referring phrases .* only; leave files out"):
        trained("grounding", TrainingInputs([folder]), [], tmp_path / "four")
    with pytest.raises(DataError, match="got 2 folders, wanted one"):
        trained("vqa", TrainingInputs([folder, folder]), [], tmp_path / "three")


def test_the_words_of_a_caption_point_to_the_regions_of_their_objects():
    lengths = {"striped": 2}
    for scene in first_scenes("training", 5):
        one = caption(scene)
        found = named_regions(one, lambda word: lengths.get(word, 1))
        assert len(found) == len(one.words) + one.words.count("striped")
        words = [word for word in one.words for _ in range(lengths.get(word, 1))]
        for word, region in zip(words, found, strict=True):
            if word in ("left", "of", "above"):
                assert region == 0
            else:
                thing = scene.things[region - 1]
                assert word in ("a", thing.color, thing.shape, thing.size, thing.texture)


def test_the_recipe_guides_attention_on_boxes_but_not_on_cells(pretrained, tmp_path):
    recipe = find("vilbert")
    for grid, is_known in ((0, True), (2, False)):
        inputs = TrainingInputs()
        run = override(recipe.settings(inputs), [*TINY, *SHORT, f"model.vision.grid={grid}"])
        prepared = recipe.prepare(run, inputs, tmp_path / f"{grid}.json")
        batch = next(prepared.task.training_batches(max_tokens=400, seed=1, start=DataPosition(0, 0)))[1]
        assert run.task.guided_attention == 1
        assert (len(batch.naming) > 0) == is_known
