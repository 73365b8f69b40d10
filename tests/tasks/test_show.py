"""`regard show` on a small folder of every kind: every view in every format, and one line for every mistake."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from regard.cli.showing import to_data
from regard.errors import InputError
from regard.inspection.drawing import raster
from regard.inspection.drawing.scene import Figure, Matrix, Text, printable
from regard.inspection.drawing.terminal import to_terminal
from regard.inspection.trace import Trace
from regard.inspection.views import VIEWS, choose_view, find_view, views_of
from regard.inspection.views.base import Choices, View
from regard.tasks.base import TraceRequest
from regard.tasks.loading import load_with_task
from regard.tasks.show import describe, show, show_run, trace

FOLDERS = Path(__file__).parents[1] / "fixtures" / "format-1"
SCENES = FOLDERS / "scenes"
SCENE = str(min(SCENES.glob("*.png")))
TEXTS = {
    "transformer": ["the house"],
    "rnn": ["the house is big"],
    "conv": ["the house is big"],
    "gpt": ["the"],
    "gpt-characters": ["the old man"],
    "llama": ["the old man"],
    "bert-pretraining": ["the dog saw [MASK] today"],
    "bert-words": ["the dog saw [MASK] today"],
    "bert": ["the dog saw the cat"],
    "bert-classifier": ["a good film"],
    "bert-tagger": ["anna lives in rome"],
    "captioner": [SCENE],
    "vilbert-answerer": [SCENE, "what color is it"],
    "vilbert-matcher": [SCENE, "a red circle"],
    "vilbert-pointer": [SCENE, "the red circle"],
    "vilbert-pretraining": [SCENE, "a red circle"],
}
# The kinds on which a view is drawn as .png and .pdf too: every item of a scene is drawn the same way for every kind.
RASTER = {
    "gpt": (
        "heads",
        "head",
        "token",
        "qkv",
        "masks",
        "rollout",
        "next",
        "steps",
        "cache",
        "words",
        "architecture",
        "map",
    ),
    "transformer": ("alignment", "switches", "architecture"),
    "rnn": ("states",),
    "llama": ("positions", "lens"),
    "captioner": ("image",),
    "vilbert-answerer": ("coattention",),
    "bert-words": ("input",),
}


@pytest.fixture(scope="module", params=sorted(TEXTS))
def opened(request):
    boxes = SCENES / "boxes.json"
    task, pipeline = load_with_task(FOLDERS / request.param)
    new = 2 if "max_new_tokens" in task.tracer_takes else None
    given = TraceRequest(TEXTS[request.param], new, boxes=boxes if "boxes" in task.tracer_takes else None)
    return request.param, task, pipeline, given


def drawn(opened, view: View) -> Figure:
    """A view of the model of this folder."""
    _, task, pipeline, given = opened
    if view.several_inputs:
        given = replace(given, inputs=given.inputs * 2)
    if view.static:
        given = replace(given, max_new_tokens=None)
    if view.name == "map" and given.inputs == ["the"]:  # "thee", with what is generated: no token of its own
        given = replace(given, inputs=["the old man"])
    needs_token = view.name in ("token", "words") or "[MASK]" not in given.inputs[0]
    return show(task, pipeline, given, view.name, Choices(token="0" if needs_token and "token" in view.takes else None))


def test_every_view_that_applies_is_drawn_in_every_format(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(raster, "DPI", 20)  # a small picture takes the same path
    found = [view for view in views_of(describe(*opened[1:3])) if not view.of_a_run]
    assert found, f"{opened[0]} has no view"
    for view in found:
        figure = drawn(opened, view)
        for suffix in (".svg", ".html"):
            figure.save(tmp_path / f"{view.name}{suffix}")
        text = (tmp_path / f"{view.name}.html").read_text(encoding="utf-8")
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert len(text) < 15e6
        assert to_terminal(figure.scene).plain.startswith(printable(figure.scene.title))
        assert json.loads(json.dumps(to_data(figure), allow_nan=False))["title"] == figure.scene.title
        if view.name not in RASTER.get(opened[0], ()):
            continue
        for suffix, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
            figure.save(tmp_path / f"{view.name}{suffix}")
            assert (tmp_path / f"{view.name}{suffix}").read_bytes().startswith(magic)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_checkpoints_of_a_run_of_every_kind_are_drawn(name, tmp_path):
    for step in (5, 10):
        shutil.copytree(FOLDERS / name, tmp_path / "checkpoints" / f"step-{step}")
    boxes = SCENES / "boxes.json"
    given = TraceRequest(TEXTS[name], boxes=boxes if name.startswith("vilbert") and boxes.exists() else None)
    view = find_view("checkpoints")
    figure = show_run(tmp_path, given, view, Choices(), load_with_task)
    shown = {item.text.partition(":")[0] for item in figure.scene.items if isinstance(item, Text)}
    assert {"step 5", "step 10"} <= shown
    for suffix in (".png", ".svg", ".pdf", ".html"):
        figure.save(tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").stat().st_size > 1000


def test_a_folder_without_checkpoints_is_told_how_to_keep_them(here):
    done = here("show", FOLDERS / "gpt", "the old man", "--view", "checkpoints")
    assert done.returncode == 2
    assert "has 0 checkpoints; the view checkpoints needs two or more of a run" in done.stderr
    assert "checkpoints" not in json.loads(here("show", FOLDERS / "gpt", "--list", "--json").stdout)["views"]


@pytest.fixture(scope="module")
def infos():
    """What each folder says of itself."""
    return {name: describe(*load_with_task(FOLDERS / name)) for name in TEXTS}


def test_every_view_applies_to_some_kind(infos):
    assert {view.name for info in infos.values() for view in views_of(info)} == set(VIEWS)
    assert {view for views in RASTER.values() for view in views} | {"checkpoints"} == set(VIEWS)


def test_a_token_alone_opens_the_view_that_says_most_of_it(infos):
    chosen = {name: choose_view(None, info, Choices(token="it")).name for name, info in infos.items()}
    assert {name for name, view in chosen.items() if view != "token"} == {
        name for name, info in infos.items() if info.interface == "vision_language"
    }
    assert set(chosen.values()) == {"token", "coattention"}


def test_a_choice_that_does_not_change_a_view_is_refused(infos):
    for name, value in {"layer": 0, "head": 0, "token": "it", "attention": "*", "top_k": 3, "temperature": 0.5}.items():
        for info in infos.values():
            for view in views_of(info):
                chosen = Choices(**{name: value})
                if name in view.takes:
                    assert choose_view(view.name, info, chosen) is view
                else:
                    with pytest.raises(
                        InputError, match=f"the view {view.name} does not take --{name.replace('_', '-')}"
                    ):
                        choose_view(view.name, info, chosen)


def test_a_trace_has_every_value_and_comes_back_the_same(opened, tmp_path):
    _, task, pipeline, given = opened
    made = trace(task, pipeline, given, ["*"])
    made.save(tmp_path / "t.safetensors")
    again = Trace.open(tmp_path / "t.safetensors")
    assert again.info == made.info
    assert describe(task, pipeline).joined == made.info.joined
    assert set(again.values) == set(made.values)
    for path, value in made.values.items():
        np.testing.assert_array_equal(again.values[path], value)
    for one in made.attentions():
        weights = made.weights(one)
        sizes = [len(made.info.axes[name].tokens) for name in (one.queries, one.keys)]
        assert list(weights.shape[1:]) == sizes
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)


def test_traced_weights_are_those_of_the_model():
    task, pipeline = load_with_task(FOLDERS / "gpt")
    made = trace(task, pipeline, TraceRequest(["the old man"]), ["blocks.0.*"])
    queries, keys = (torch.from_numpy(made.value(f"blocks.0.attention.{name}")) for name in ("queries", "keys"))
    scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    wanted = scores.masked_fill(hidden, -torch.inf).softmax(-1).numpy()
    np.testing.assert_allclose(made.value("blocks.0.attention.weights"), wanted, atol=1e-6)


def test_spans_are_the_bytes_of_the_tokens():
    task, pipeline = load_with_task(FOLDERS / "gpt-characters")
    axis = trace(task, pipeline, TraceRequest(["the old"]), ["blocks.0.hidden"]).info.axes["text"]
    data = axis.text.encode()
    assert [data[span[0] : span[1]].decode() for span in axis.spans if span] == list("the old")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.safetensors"], "there is no folder or file"),
        ([], "nothing to show"),
        (["--example", "nothing"], "there is no example 'nothing'"),
        ([FOLDERS / "gpt", "a", "--view", "nothing"], "there is no view 'nothing'; wanted one of alignment"),
        ([FOLDERS / "gpt", "a", "--view", "nextt"], "there is no view 'nextt'; did you mean next? There are alignment"),
        ([FOLDERS / "gpt", "a", "--view", "alignment"], "has no meaning for this gpt"),
        ([FOLDERS / "gpt", "a", "-o", "a.gif"], "a figure ends in .png, .svg, .pdf, .html"),
        ([FOLDERS / "gpt", "a", "-o", "nowhere/a.png"], "there is no folder nowhere"),
        ([FOLDERS / "gpt", "a", "--off", "blocks.0.attention:99"], "has heads 0 to"),
        (
            [FOLDERS / "gpt", "a", "--off", "blocks.0.attenton:0"],
            "no attention blocks.0.attenton; the nearest are blocks.",
        ),
        ([FOLDERS / "gpt", "a", "--off", "everything"], "wanted PATH:HEAD"),
        ([FOLDERS / "gpt", SCENE], "is an image"),
        ([FOLDERS / "rnn", "the house", "--gold", "0-0 1:1"], "'1:1' is not a link, and there is no such file"),
        ([FOLDERS / "rnn", "the house", "--gold", " "], "--gold has no links"),
        ([FOLDERS / "rnn", "the house", "--gold", "7-0"], "the gold link 7-0 is not of this pair"),
        (
            [FOLDERS / "gpt", "the house", "--gold", "0-0"],
            "the view heads does not take --gold",
        ),
        ([FOLDERS / "gpt"], "nothing to look at"),
        ([FOLDERS / "gpt", "a", "b c", "--view", "masks"], "a language model pads nothing"),
        ([FOLDERS / "captioner", "a text"], "there is no image a text; a trace of a captioner is of one image file"),
        ([FOLDERS / "vilbert-answerer", "no.png", "what"], "there is no image no.png"),
        ([FOLDERS / "vilbert-answerer", SCENE], "a trace of a ViLBERT is of an image and a text about it"),
        ([FOLDERS / "bert", "the dog", "--token", "cow"], "there is no token 'cow'"),
        ([FOLDERS / "gpt", "a", "--top-k", "3"], "the view heads does not take --top-k; of this gpt next does"),
        (
            [FOLDERS / "gpt", "a", "--view", "lens", "--head", "1"],
            "qkv, masks, cache, checkpoints do",
        ),
        ([FOLDERS / "gpt", "a", "--target", "b"], "--target has no meaning for a model for language-modeling"),
        ([FOLDERS / "bert", "a", "--max-new-tokens", "3"], "--max-new-tokens has no meaning for a model for embedding"),
        ([FOLDERS / "gpt", "a", "--view", "positions", "--off", "blocks.0.attention:0"], "does not take --off"),
        ([FOLDERS / "gpt", "a", "--max-new-tokens", "100000"], "a view shows at most 256 new tokens"),
        ([FOLDERS / "gpt", ""], "got an empty input, ''"),
        ([FOLDERS / "bert", " "], "got an empty input, ' '"),
        ([FOLDERS / "transformer", ""], "got an empty input, ''"),
        ([FOLDERS / "captioner", ""], "got an empty input, ''"),
        (["--example", "mask", "--head", "1"], "--example mask takes -o and --json, nothing else"),
        ([FOLDERS / "gpt", "--list", "-o", "a.png"], "--list takes a model and --json, nothing else"),
        ([FOLDERS / "gpt" / "model.safetensors"], "has tensors, such as weights, but is not a trace"),
    ],
)
def test_a_mistake_is_one_line(here, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = here("show", *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_boxes_of_other_images_are_named(here, tmp_path):
    boxes = tmp_path / "boxes.json"
    boxes.write_text('{"other.png": [[0, 0, 8, 8]]}')
    done = here("show", FOLDERS / "vilbert-answerer", SCENE, "what color is it", "--boxes", boxes)
    assert done.returncode == 2
    assert f"--boxes has none of {Path(SCENE).name}; it has those of other.png" in done.stderr


def test_a_trace_file_is_shown_and_a_file_that_is_none_is_refused(here, tmp_path):
    path = tmp_path / "t.safetensors"
    assert here("trace", FOLDERS / "transformer", "the house is big", "-o", path).returncode == 0
    done = here("show", path, "--json")
    assert json.loads(done.stdout)["matrices"][0]["columns"]
    assert here("show", path, "--list").returncode == 0
    assert "embedding (source, then target)" in here("show", path, "--list").stdout
    values = {"a": np.zeros(1, np.float32)}
    (tmp_path / "damaged.safetensors").write_bytes(save(values, {"regard": '{"kind": 3}'}))
    assert "the metadata of this trace are damaged: kind: " in here("show", tmp_path / "damaged.safetensors").stderr
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(path.read_bytes()[:100])
    assert "is not a trace" in here("show", bad).stderr
    assert "there is no nothing" in here("trace", FOLDERS / "gpt", "a", "--taps", "nothing", "-o", path).stderr
    assert "a trace ends in .safetensors" in here("trace", FOLDERS / "gpt", "a", "-o", tmp_path / "t.bin").stderr


@pytest.mark.parametrize("name", ["bert", "bert-words", "bert-classifier", "transformer", "conv", "rnn"])
def test_texts_of_different_lengths_are_padded_and_the_padding_is_masked(name, tmp_path):
    task, pipeline = load_with_task(FOLDERS / name)
    short, long = "the [MASK]" if name == "bert-words" else "the house", "the old house is big today"
    if name in ("conv", "rnn"):  # their attention is one step a target word
        short, long = long, short
    figure = show(task, pipeline, TraceRequest([short, long]), "masks", Choices())
    for suffix in (".png", ".svg", ".pdf", ".html"):
        figure.save(tmp_path / f"figure{suffix}")
    padded = [frame.draw() for frame in figure.frames if "Padding mask" in frame.draw().caption]
    assert len(figure.frames) > len(padded) > 0  # of the longest text nothing is padding
    assert {scene.title.partition(":")[0] for scene in padded} == {"text 2" if name in ("conv", "rnn") else "text 1"}
    assert figure.scene.caption == padded[0].caption
    before = next(item for item in figure.scene.items if isinstance(item, Matrix))
    hidden = before.masked.all(0)
    assert [label.strip("[]<>").lower() == "pad" for label in before.columns] == hidden.tolist()


def test_padding_changes_nothing_that_is_shown():
    task, pipeline = load_with_task(FOLDERS / "bert")
    alone, padded = (
        trace(task, pipeline, TraceRequest(["the dog"], batch=batch), ["*.weights"])
        for batch in ((), ["the dog saw the cat"])
    )
    for path, weights in alone.values.items():
        size = weights.shape[-1]
        np.testing.assert_allclose(padded.value(path)[:, :size, :size], weights, atol=1e-6)
        assert not padded.value(path)[:, :, size:].any()


def test_gold_links_are_typed_or_stand_in_a_file(here, tmp_path):
    given = ["show", FOLDERS / "transformer", "the house is big", "--target", "la casa es grande", "--json", "--gold"]
    path = tmp_path / "gold.txt"
    path.write_text("0-0 1-1 2?2\n")
    typed, read = here(*given, "0-0 1-1 2?2"), here(*given, path)
    assert typed.stdout == read.stdout
    assert any(one["name"].startswith("AER") for one in json.loads(read.stdout)["matrices"])
    path.write_text("0-0\n1-1\n")
    assert "has 2 lines of links; wanted one" in here(*given, path).stderr


def test_a_pipeline_shows_itself_in_a_notebook():
    _, pipeline = load_with_task(FOLDERS / "gpt")
    text = pipeline.show("the old man")._repr_html_()
    assert text.startswith("<regard-figure>")
    with pytest.raises(InputError, match="there is no view"):
        pipeline.show("the old man", view="nothing")


def test_a_head_that_is_switched_off_changes_the_trace_and_is_named(tmp_path):
    task, pipeline = load_with_task(FOLDERS / "gpt")
    given = TraceRequest(["the old man"])
    off = TraceRequest(["the old man"], switched_off=["blocks.0.attention:0"])
    plain, changed = (trace(task, pipeline, one, ["*"]) for one in (given, off))
    assert changed.info.interventions == ("blocks.0.attention: head 0 switched off (zero)",)
    assert not changed.value("blocks.0.attention.head_outputs")[0].any()
    assert np.abs(changed.value("blocks.0.hidden") - plain.value("blocks.0.hidden")).max() > 1e-6
    assert find_view("heads").summary


def test_what_a_trace_file_cannot_show_is_said(here, tmp_path):
    path = tmp_path / "t.safetensors"
    assert here("trace", FOLDERS / "rnn", "the house is big", "--taps", "bridge.*", "-o", path).returncode == 0
    assert "this trace has no gates" in here("show", path, "--view", "states").stderr
    assert "need the model's folder" in here("show", path, "--off", "bridge:0").stderr
    assert "runs the model" in here("show", path, "--view", "next").stderr


def test_all_views_and_examples_are_listed_without_a_model(here):
    listed = json.loads(here("show", "--list", "--json").stdout)
    assert list(listed["views"]) == list(VIEWS)
    assert "thinking" in listed["examples"]
    assert "binary-positions" in here("show", "--list").stdout
