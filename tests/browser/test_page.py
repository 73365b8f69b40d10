"""The page in a real browser: every view opens on every model it is for, with the numbers that torch computes."""

import json
import threading

import numpy as np
import pytest

from regard.tasks.base import TraceRequest
from regard.tasks.show import trace
from tests.browser.conftest import MODELS, serving

SENTENCE = "we are eating bread"


def test_a_fresh_page_without_models_opens_on_a_lesson(plain_page):
    plain_page.open("#/")
    plain_page.check()
    assert plain_page.tab.locator("article.card h3").inner_text()
    assert plain_page.tab.locator("regard-figure").count() == 1


def test_a_page_that_is_opened_before_the_models_are_waits_for_them(browser, pipelines, tmp_path):
    from regard.server.models import ModelTable

    go_on = threading.Event()

    def open_slowly(path):
        go_on.wait(60)
        return pipelines["gpt"]

    with serving(ModelTable([tmp_path], open_slowly)) as address:
        tab = browser.new_context().new_page()
        tab.goto(address)
        tab.locator("#view .message", has_text="being opened").wait_for()
        assert tab.locator("h2#title").count() == 0
        go_on.set()
        tab.locator("h2#title").wait_for()
        assert tab.locator("h2#title").inner_text() == "Where it looks"
        tab.context.close()


def test_a_fresh_page_opens_on_where_the_model_looks_and_the_numbers_are_torchs(page, pipelines):
    page.open("#/")
    page.check()
    assert page.tab.locator("h2#title").inner_text() == "Where it looks"
    task, pipeline = pipelines["transformer"]
    found = trace(task, pipeline, TraceRequest([SENTENCE]), ["decoder.*.cross_attention.weights"])
    weights = found.value("decoder.blocks.0.cross_attention.weights")
    page.open("#/heads?model=transformer&attention=decoder.blocks.0.cross_attention&head=1")
    shown = page.tab.evaluate(
        "() => { const one = document.querySelector('regard-figure').matrices[0]; "
        "return { shape: one.shape, numbers: [...one.numbers], said: one.say(0, 1) }; }"
    )
    assert shown["shape"] == list(weights[1].shape)
    np.testing.assert_allclose(np.float32(shown["numbers"]).reshape(weights[1].shape), weights[1], rtol=1e-5)
    assert float(shown["said"].rpartition(": ")[2]) == pytest.approx(float(weights[1, 0, 1]), rel=1e-5)
    assert page.tab.locator("button.head").count() == weights.shape[0] * sum(
        one.queries != one.keys for one in found.info.attentions
    )


# Those that differ from another one in their head alone are opened by `make prove`.
ALIKE = ("bert", "vilbert-judge", "vilbert-matcher", "vilbert-pointer")
ALL = [pytest.param(name, marks=[pytest.mark.prove] * (name in ALIKE)) for name in MODELS]


@pytest.mark.parametrize("name", ALL)
def test_every_view_of_every_model_opens(page, pipelines, name):
    views = page.tab.evaluate("fetch('/api/models').then((one) => one.json())")
    (model,) = [one for one in views if one["id"] == name]
    text = "it [MASK] on" if "masked" in model["task"] or "pretraining" in model["task"] else "it was on"
    for view in [one["name"] for one in model["views"] if not one["of_a_run"]]:
        choice = "&token=0" if view in ("words", "token") else ""
        given = "" if model["takes_images"] and "pretraining" not in model["task"] else f"&text={text}"
        given += f"|{text} it" if view == "words" else ""
        page.open(f"#/show?model={name}&of={view}{choice}{given}")
        page.check()
        assert page.tab.locator("regard-figure").count() == 1, view


def test_lecture_figures_are_shown(plain_page):
    for name in json.loads(plain_page.tab.evaluate("fetch('/api/views').then((one) => one.text())"))["examples"]:
        plain_page.open(f"#/lecture?example={name}")
        plain_page.check()
        assert plain_page.tab.locator("regard-figure").count() == 1


def test_the_policy_lets_the_page_reach_its_server_alone(page):
    response = page.tab.request.get(page.address)
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert all("http" not in sources and "*" not in sources for sources in policy.values())
    blocked = page.tab.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)")
    assert blocked == "TypeError"
    assert any("Content Security Policy" in said or "violates" in said for said in page.errors)


@pytest.mark.parametrize("path", ["page/../app.py", "page/%2e%2e/app.py", "page/views/../../app.py", "page/nothing.js"])
def test_files_beside_the_page_are_not_served(page, path):
    assert page.tab.request.get(page.address + path).status == 404
