"""The page's own views in a real browser: their numbers are torch's, and what a reader does has its effect."""

import base64
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from regard.inspection.decoding import CacheSize
from regard.inspection.interventions import intervene, parse_switches
from regard.inspection.predictions import token_logits
from regard.layers.attention import SCALED_DOT, Additive, Dot, attend_written_out
from regard.layers.positions import sinusoidal
from regard.layers.sampling import kept_ids
from regard.synthetic.scenes.scene import Scenes
from regard.tasks.base import TraceRequest
from regard.tasks.show import trace
from tests.browser.test_page import ALIKE


def numbers(page, script: str):
    return page.tab.evaluate(f"async () => {{ {script} }}")


# ------------------------------------------------ next token, filling in, generating


def test_next_token_has_the_probabilities_of_torch_and_goes_on(page, pipelines):
    task, pipeline = pipelines["gpt"]
    page.open("#/next?model=gpt&text=it was")
    inputs = task.trace_inputs(pipeline, TraceRequest(["it was"]))
    expected = token_logits(inputs, pipeline.tokenizer.vocab_size)[-1].softmax(-1).topk(14)
    values = [float(text.split()[0]) for text in page.tab.locator(".bars .value").all_inner_texts()]
    assert values == pytest.approx(expected.values.tolist(), abs=6e-5)
    first = pipeline.tokenizer.decode([*pipeline.encode("it was"), int(expected.indices[0])])
    page.tab.locator(".bars button").first.click()
    page.tab.wait_for_function(f"() => document.querySelector('.sofar strong')?.textContent === {json.dumps(first)}")
    page.check()


def test_sampling_keeps_what_it_keeps_in_python(page):
    logits = torch.randn(200, generator=torch.Generator().manual_seed(0))
    for temperature, top_k, top_p in [(1.0, 0, 0.9), (0.5, 12, 0.7), (2.0, 30, 1.0), (1.0, 0, 0.05), (1.3, 1, 1.0)]:
        kept = len(kept_ids(logits, temperature, top_k or None, top_p))
        found = numbers(
            page,
            "const { keptCount } = await import('/page/views/next.js');"
            "const { softmax } = await import('/page/numbers.js');"
            f"const all = softmax({logits.tolist()}, {temperature}).sort((a, b) => b - a);"
            f"return keptCount(all, {top_k}, {top_p});",
        )
        assert found == kept, (temperature, top_k, top_p)


def test_filling_in_has_the_probabilities_of_torch(page, pipelines):
    task, pipeline = pipelines["bert-words"]
    page.open("#/fill?model=bert-words&text=it was [MASK] on")
    inputs = task.trace_inputs(pipeline, TraceRequest(["it was [MASK] on"]))
    at = inputs.axes["text"].tokens.index("[MASK]")
    expected = token_logits(inputs, pipeline.tokenizer.vocab_size)[at].softmax(-1).topk(10).values
    values = [float(text) for text in page.tab.locator(".bars .value").all_inner_texts()]
    assert values == pytest.approx(expected.tolist(), abs=6e-5)
    page.tab.locator(".strip button", has_text="was").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.token.masked').length === 2")
    page.check()


@pytest.mark.parametrize("name", ["gpt", "llama", "transformer", "rnn", "captioner"])
def test_generating_with_and_without_the_cache_is_the_same(page, pipelines, name):
    page.open(f"#/generate?model={name}&steps=6")
    page.tab.locator("button.primary", has_text="generate").click()
    page.tab.wait_for_function("() => document.querySelector('.body').dataset.done === '1'")
    assert "the text is the same" in page.tab.locator(".sofar").inner_text()
    page.check()


# ------------------------------------------------ heads, switches, traces


def test_a_head_that_is_switched_off_changes_the_answer_as_it_does_in_python(page, pipelines):
    task, pipeline = pipelines["transformer"]
    info = trace(task, pipeline, TraceRequest(["we are eating bread"]), ["*.weights"]).info
    off = [f"{one.path}:{head}" for one in info.attentions for head in range(2)]
    request = TraceRequest(["we are eating bread"], switched_off=off)
    with intervene(pipeline.model, parse_switches(off, pipeline.model)):
        expected = task.trace_inputs(pipeline, request).answer["text"]
    page.open(f"#/switches?model=transformer&text=we are eating bread&off={','.join(off)}")
    answers = page.tab.locator(".columns .sofar strong").all_inner_texts()
    assert answers[1].split() == (expected or "—").split()
    page.check()


def test_a_trace_file_that_is_dropped_opens(page, pipelines, tmp_path):
    task, pipeline = pipelines["bert"]
    found = trace(task, pipeline, TraceRequest(["it was on"]), ["*.weights"])
    found.save(tmp_path / "trace.safetensors")
    drop(page, "trace.safetensors", (tmp_path / "trace.safetensors").read_bytes())
    page.tab.wait_for_function("() => location.hash.includes('trace=') && document.querySelector('regard-figure')")
    page.tab.wait_for_function("() => !document.querySelector('[aria-busy]')")
    name = page.tab.evaluate("document.querySelector('regard-figure').matrices[0].name")
    path, _, head = name.rpartition(", head ")
    shown = page.tab.evaluate("[...document.querySelector('regard-figure').matrices[0].numbers]")
    assert np.allclose(shown, found.value(f"{path}.weights")[int(head)].ravel(), rtol=1e-5)
    page.check()


def drop(page, name: str, data: bytes) -> None:
    """Drop a file on the page."""
    page.tab.evaluate(
        """([name, data]) => {
            const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name));
            dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        [name, base64.b64encode(data).decode()],
    )


HUGE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff\xff\0\0\xff\xff\x08\x02\0\0\0" + b"\0" * 40


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("notes.png", b"this is a text, not a picture", "PNG"),
        ("huge.png", HUGE, ""),
        ("broken.safetensors", b"\xff" * 64, "not a trace"),
        ("empty.md", b"no card at all", "no card"),
        ("cut.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", ""),
    ],
    ids=["text", "huge", "trace", "lesson", "cut"],
)
def test_a_hostile_file_gets_one_clear_message(page, name, data, says):
    page.open("#/picture?model=captioner")
    drop(page, name, data)
    page.tab.locator(".message.error").wait_for()
    (message,) = page.tab.locator(".message.error").all_inner_texts()
    assert says in message
    assert "\n" not in message.strip()
    assert "/tmp" not in message
    assert "Traceback" not in message
    assert page.outside == []


# ------------------------------------------------ pictures


def test_a_picture_of_ones_own_gets_its_caption_and_shows_where_each_word_looks(page, pipelines):
    _, pipeline = pipelines["captioner"]
    stream = io.BytesIO()
    Image.fromarray(Scenes(7, "validation")[3].pixels()).save(stream, "PNG")
    page.open("#/picture?model=captioner")
    drop(page, "mine.png", stream.getvalue())
    page.tab.wait_for_function("() => location.hash.includes('mine.png') && document.querySelector('.panel strong')")
    assert page.tab.locator(".panel strong").first.inner_text() == " ".join(
        pipeline.run(stream.getvalue()).text.split()
    )
    page.tab.locator("button", has_text="top left").click()
    page.tab.locator("h3", has_text="with that part hidden").wait_for()
    page.check()


def test_a_question_about_a_scene_is_answered_as_in_python(page, pipelines, tmp_path):
    task, pipeline = pipelines["vilbert-answerer"]
    page.open("#/picture?model=vilbert-answerer&scene=2")
    scene = page.tab.evaluate("fetch('/api/page/scene/2').then((one) => one.json())")
    picture, boxes = tmp_path / "scene.png", tmp_path / "boxes.json"
    picture.write_bytes(base64.b64decode(scene["image"]))
    boxes.write_text(json.dumps({"scene.png": scene["boxes"]}))
    request = TraceRequest([str(picture), scene["questions"][0]["text"]], boxes=boxes)
    expected = task.trace_inputs(pipeline, request).answer
    assert page.tab.locator(".panel .sofar strong").first.inner_text() == expected["answer"]
    values = [float(one) for one in page.tab.locator(".panel .bars .value").all_inner_texts()]
    assert values == pytest.approx(sorted(expected["probabilities"].values(), reverse=True)[: len(values)], abs=6e-4)
    page.check()


# ------------------------------------------------ the sheet


@pytest.mark.parametrize("preset", ["lecture", "thinking", "xxt", "additive", "masked"])
def test_the_sheet_has_the_numbers_of_torch(plain_page, preset):
    found = numbers(
        plain_page,
        "const { presets, computed } = await import('/page/sheet_math.js');"
        f"const {{ sheet }} = presets()['{preset}'], steps = computed(sheet);"
        "return { sheet, weights: steps.weights, output: steps.output, scores: steps.scores };",
    )
    sheet = found["sheet"]
    hidden = torch.tensor(sheet["hidden"])
    value = torch.tensor(sheet["V"], dtype=torch.float64)
    if sheet["given"] == "scores":
        scaled = torch.tensor(sheet["scores"], dtype=torch.float64) / sheet["scale"]
        weights = scaled.masked_fill(hidden, -torch.inf).softmax(-1)
        output = weights @ value
    else:
        query, key = (torch.tensor(sheet[name], dtype=torch.float64) for name in "QK")
        similarity = {"scaled": SCALED_DOT, "dot": Dot()}.get(sheet["similarity"])
        if similarity is None:
            similarity = Additive(query.shape[-1]).double()
            similarity.score.weight.data[:] = torch.tensor([sheet["v"]])
        steps = attend_written_out(query, key, value, ~hidden, similarity=similarity)
        weights, output = steps.weights, steps.output
        np.testing.assert_allclose(found["scores"], steps.scores.detach(), rtol=1e-9)
    np.testing.assert_allclose(found["weights"], weights.detach(), atol=1e-12)
    np.testing.assert_allclose(found["output"], output.detach(), atol=1e-12)


def test_a_changed_score_moves_the_weights(plain_page):
    plain_page.open("#/sheet?preset=lecture")
    cell = plain_page.tab.locator("table[data-step=scores] input").nth(1)
    cell.fill("112")
    cell.press("Enter")
    plain_page.tab.locator("body").click()
    weights = plain_page.tab.locator("table[data-step=weights] tbody td").all_inner_texts()
    assert weights == ["0.50", "0.50", "0.00", "0.00"]
    plain_page.tab.locator("table[data-step=masked] button").nth(1).click()
    weights = plain_page.tab.locator("table[data-step=weights] tbody td").all_inner_texts()
    assert weights == ["1.00", "0.00", "0.00", "0.00"]
    plain_page.check()


@pytest.mark.parametrize(
    ("answers", "right", "says"),
    [
        (["0.88", "0.12", "0", "0"], 4, "Well done"),
        (["0.483", "0.12", "0", "0"], 3, "divided by the sum"),
        (["1", "0.12", "0", "0"], 3, "before they were divided"),
        (["0.25", "0.12", "0", "0"], 3, "the same share"),
        (["0.12", "0.12", "0", "0"], 3, "the weight of k₂"),
        (["0,88", "x", "0", ""], 2, "not a number"),
    ],
)
def test_the_sheet_marks_a_student_and_names_the_mistake(plain_page, answers, right, says):
    plain_page.open("#/sheet?preset=lecture&ask=weights")
    for place, answer in enumerate(answers):
        plain_page.tab.locator("input[data-blank]").nth(place).fill(answer)
    plain_page.tab.locator("button", has_text="mark it").click()
    told = plain_page.tab.locator("div.message").inner_text()
    assert told.startswith(f"{right} of 4 right")
    assert says in told


def test_every_wrong_answer_of_the_quizzes_is_explained(plain_page):
    plain_page.open("#/quiz")
    told = plain_page.tab.evaluate(
        """() => {
            const click = (card) => (one) => { one.click(); return card.querySelector(".message").textContent; };
            const cards = [...document.querySelectorAll(".quiz")];
            return cards.map((card) => [...card.querySelectorAll(".choice")].map(click(card)));
        }"""
    )
    assert len(told) >= 6
    for explained in told:
        assert all(len(one) > 40 for one in explained)
        assert sum(one.startswith("Right") for one in explained) == 1
    assert plain_page.errors == []


def test_positions_and_masks_are_those_of_the_package(plain_page):
    found = numbers(
        plain_page,
        "const { sinusoid } = await import('/page/views/positions.js');"
        "return Array.from({ length: 20 }, (_, at) => sinusoid(at, 16));",
    )
    np.testing.assert_allclose(found, sinusoidal(20, 16), atol=1e-5)
    plain_page.open("#/positions?order=2,1,0")
    told = plain_page.tab.locator(".panel .message").all_inner_texts()
    assert "the very same output" in told[0]
    assert "changed by up to" in told[1]
    plain_page.open("#/masks?way=zero")
    assert plain_page.tab.locator("td.leak").count() >= 2
    plain_page.open("#/masks")
    assert plain_page.tab.locator("td.leak").count() == 0


def test_the_memory_of_the_cache_is_what_python_counts(plain_page, pipelines):
    found = numbers(
        plain_page,
        "const { cacheBytes } = await import('/page/views/generate.js');"
        "return cacheBytes({ layers: 12, heads: 12, width: 64, positions: 1024, texts: 1, bytes: 4 });",
    )
    assert found == CacheSize(12, 12, 12, 64, 4).bytes_of(1024) == 72 * 2**20


# ------------------------------------------------ every view, every model


def test_every_view_of_the_page_opens_on_every_model_it_is_for(page):
    places = numbers(
        page,
        "const { VIEWS } = await import('/page/views/index.js');"
        "const models = await (await fetch('/api/models')).json();"
        "const start = await (await fetch('/api/page/start')).json();"
        "return VIEWS.flatMap((view) => view.takesModel "
        "  ? models.filter((one) => view.applies(one, start) === true).map((one) => [view.id, one.id]) "
        "  : view.applies(null, start) === true ? [[view.id, null]] : []);",
    )
    assert {view for view, _ in places} >= {"heads", "alignment", "map", "picture", "fill", "next", "space", "switches"}
    for view, model in places:
        if view == "show" or model in ALIKE:
            continue  # test_page.py opens all of their figures
        page.open(f"#/{view}" + (f"?model={model}" if model else ""))
        page.check()
        assert page.tab.locator("main .body > *").count(), (view, model)


def test_views_say_why_they_are_not_for_a_model(page):
    for state in ("#/fill?model=gpt", "#/picture?model=bert", "#/alignment?model=gpt", "#/next?model=bert"):
        page.open(state)
        assert "open" in page.tab.locator(".message.note").first.inner_text()
        assert page.errors == []
