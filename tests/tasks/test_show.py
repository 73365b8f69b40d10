"""`regard show` on a small folder of every kind: every view in every format, and one line for every mistake."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.trace import Trace
from regard.inspection.views import VIEWS, find_view, views_of
from regard.inspection.views.base import Choices
from regard.tasks.base import TraceRequest
from regard.tasks.loading import load_with_task
from regard.tasks.show import describe, show, trace

FOLDERS = Path(__file__).parents[1] / "fixtures" / "format-1"
SCENES = FOLDERS / "scenes"
SCENE = str(min(SCENES.glob("*.png")))
TEXTS = {
    "transformer": ["the house is big"],
    "rnn": ["the house is big"],
    "conv": ["the house is big"],
    "gpt": ["the old man"],
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


@pytest.fixture(scope="module", params=sorted(TEXTS))
def opened(request):
    boxes = SCENES / "boxes.json"
    given = TraceRequest(TEXTS[request.param], max_new_tokens=4, boxes=boxes if boxes.exists() else None)
    return request.param, *load_with_task(FOLDERS / request.param), given


def choices(view: str, given: TraceRequest) -> Choices:
    return Choices(token="0") if view in ("token", "words") or "[MASK]" not in given.inputs[0] else Choices()


def test_every_view_that_applies_is_drawn_in_every_format(opened, tmp_path):
    name, task, pipeline, given = opened
    found = views_of(describe(task, pipeline))
    assert found, f"{name} has no view"
    for view in found:
        inputs = given.inputs * 2 if view.several_inputs else given.inputs
        figure = show(task, pipeline, replace(given, inputs=inputs), view.name, choices(view.name, given))
        for suffix in (".svg", ".html"):
            figure.save(tmp_path / f"{view.name}{suffix}")
        text = (tmp_path / f"{view.name}.html").read_text(encoding="utf-8")
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert len(text) < 15e6
    for suffix in (".png", ".pdf"):
        figure.save(tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").stat().st_size > 1000


def test_every_view_applies_to_some_kind():
    seen = set()
    for name in TEXTS:
        seen |= {view.name for view in views_of(describe(*load_with_task(FOLDERS / name)))}
    assert seen == set(VIEWS)


def test_a_trace_has_every_value_and_comes_back_the_same(opened, tmp_path):
    _, task, pipeline, given = opened
    made = trace(task, pipeline, given, ["*"])
    made.save(tmp_path / "t.safetensors")
    again = Trace.open(tmp_path / "t.safetensors")
    assert again.info == made.info
    assert set(again.values) == set(made.values)
    for path, value in made.values.items():
        np.testing.assert_array_equal(again.values[path], value)
    for one in made.attentions():
        weights = made.weights(one)
        sizes = [len(made.info.axes[name].tokens) for name in (one.queries, one.keys)]
        if one.queries == one.keys == "image":  # a ViT has its class token besides
            sizes = list(weights.shape[1:])
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
        ([FOLDERS / "gpt", "a", "--view", "nothing"], "there is no view 'nothing'"),
        ([FOLDERS / "gpt", "a", "--view", "alignment"], "has no meaning for this gpt"),
        ([FOLDERS / "gpt", "a", "-o", "a.gif"], "a figure ends in .png, .svg, .pdf, .html"),
        ([FOLDERS / "gpt", "a", "-o", "nowhere/a.png"], "there is no folder nowhere"),
        ([FOLDERS / "gpt", "a", "--off", "blocks.0.attention:99"], "has heads 0 to"),
        ([FOLDERS / "gpt", "a", "--off", "blocks.0.attenton:0"], "the nearest are blocks.0.attention.head_outputs"),
        ([FOLDERS / "gpt", "a", "--off", "everything"], "wanted PATH:HEAD"),
        ([FOLDERS / "gpt", SCENE], "is an image"),
        ([FOLDERS / "gpt"], "nothing to look at"),
        ([FOLDERS / "captioner", "a text"], "one image file"),
        ([FOLDERS / "bert", "the dog", "--token", "cow"], "there is no token 'cow'"),
    ],
)
def test_a_mistake_is_one_line(here, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = here("show", *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_trace_file_is_shown_and_a_file_that_is_none_is_refused(here, tmp_path):
    path = tmp_path / "t.safetensors"
    assert here("trace", FOLDERS / "transformer", "the house is big", "-o", path).returncode == 0
    done = here("show", path, "--json")
    assert json.loads(done.stdout)["matrices"][0]["columns"]
    assert here("show", path, "--list").returncode == 0
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(path.read_bytes()[:100])
    assert "is not a trace" in here("show", bad).stderr
    assert "there is no nothing" in here("trace", FOLDERS / "gpt", "a", "--taps", "nothing", "-o", path).stderr
    assert "a trace ends in .safetensors" in here("trace", FOLDERS / "gpt", "a", "-o", tmp_path / "t.bin").stderr


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
