"""The routes that take an image: the pipelines' own answers, and an image is nothing but base64 of a file."""

import base64
import io

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from regard.inspection.trace import Trace
from regard.layers.vision.regions import VisionConfig
from regard.models import build
from regard.models.captioner import CaptionerConfig
from regard.models.vilbert import TINY, ViLBERTForQuestionAnsweringConfig, ViLBERTForRetrievalConfig
from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.tasks import find_task
from regard.tokenizers.bpe import BPETokenizer
from tests.server.test_malformed import check_shape
from tests.server.tiny import loud

BOXES = [[0, 0, 12, 16], [8, 4, 30, 30]]


def file_of(kind: str) -> bytes:
    pixels = np.random.default_rng(3).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


PNG, JPEG = file_of("PNG"), file_of("JPEG")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def images(story_pieces):
    special_ids = {name: getattr(story_pieces, name) for name in ("pad_id", "bos_id", "eos_id", "mask_id")}
    sizes = TINY | {
        "vocab_size": story_pieces.vocab_size,
        "special_ids": special_ids,
        "vision": VisionConfig(patch_size=2, inner=12),
    }
    letters = BPETokenizer.train(["a red square"] * 20, 300)
    configs = {
        "captioning": CaptionerConfig(vocab_size=letters.vocab_size, image_size=32, width=16, heads=2),
        "visual-question-answering": ViLBERTForQuestionAnsweringConfig(**sizes, labels=("red", "two", "no")),
        "retrieval": ViLBERTForRetrievalConfig(**sizes),
    }
    made = {}
    for name, config in configs.items():
        task = find_task(name)
        tokenizer = letters if name == "captioning" else story_pieces
        made[name] = (task, task.pipeline_class(name, loud(build(config)), tokenizer))
    return ModelTable.of(made)


@pytest.fixture(scope="module")
def http(images):
    with TestClient(create_app(images), base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.mark.parametrize("beams", [None, 1, 3])
def test_a_caption_is_the_pipelines(http, images, beams):
    from regard.generation import Beam, Greedy

    strategy = None if beams is None else Greedy() if beams == 1 else Beam(beams)
    wanted = images.get("captioning").pipeline.run(JPEG, strategy)
    found = http.post("/api/caption", json={"model": "captioning", "image": encoded(JPEG), "num_beams": beams}).json()
    assert (found["text"], found["words"]) == (wanted.text, list(wanted.words))
    assert found["score"] == pytest.approx(wanted.score)
    np.testing.assert_allclose(found["attention"], wanted.attention, atol=1e-6)


@pytest.mark.parametrize("boxes", [None, BOXES])
def test_an_answer_is_the_pipelines(http, images, boxes):
    wanted = images.get("visual-question-answering").pipeline.run("is the cat red?", PNG, boxes)
    body = {"model": "visual-question-answering", "question": "is the cat red?", "image": encoded(PNG), "boxes": boxes}
    found = http.post("/api/answer", json=body).json()
    assert found["answer"] == wanted.answer
    assert found["probabilities"] == pytest.approx(wanted.probabilities, abs=1e-5)


@pytest.mark.parametrize("boxes", [None, BOXES])
def test_texts_are_ranked_as_the_pipeline_ranks_them(http, images, boxes):
    pipeline, texts = images.get("retrieval").pipeline, ["the cat", "a dog ran", "the end"]
    wanted = pipeline.rank_texts(pipeline.regions_of(PNG, boxes), texts)
    body = {"model": "retrieval", "texts": texts, "image": f"data:image/png;base64,{encoded(PNG)}", "boxes": boxes}
    found = http.post("/api/match", json=body).json()["matches"]
    assert [one["text"] for one in found] == [texts[one.number] for one in wanted]
    assert [one["score"] for one in found] == pytest.approx([one.score for one in wanted], abs=1e-5)


@pytest.mark.parametrize(
    ("route", "others"),
    [
        ("caption", {"model": "captioning"}),
        ("answer", {"model": "visual-question-answering", "question": "is it red?", "boxes": BOXES}),
        ("match", {"model": "retrieval", "texts": ["the cat", "a dog"]}),
    ],
)
def test_they_can_be_traced(http, tmp_path, route, others):
    answer = http.post(f"/api/{route}", json=others | {"image": encoded(PNG), "trace": True}).json()
    path = tmp_path / "trace.safetensors"
    path.write_bytes(http.get(f"/api/trace/{answer['trace']}").content)
    assert Trace.open(path).attentions()


BOMB = io.BytesIO()
Image.new("1", (30_000, 30_000)).save(BOMB, "PNG")
WRONG = {
    "a URL": "http://127.0.0.1:9/x.png",
    "a file": "/etc/passwd",
    "a file's URL": "file:///etc/passwd",
    "a data URL of another kind": f"data:text/html;base64,{encoded(PNG)}",
    "another format": encoded(b"GIF89a" + bytes(40)),
    "an SVG": encoded(b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "nothing": "",
    "half of a file": encoded(PNG[: len(PNG) // 2]),
    "a bomb": encoded(BOMB.getvalue()),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("route", ["caption", "answer", "match", "show"])
def test_what_is_no_image_is_refused(http, route, name):
    others = {
        "caption": {"model": "captioning"},
        "answer": {"model": "visual-question-answering", "question": "is it red?"},
        "match": {"model": "retrieval", "texts": ["the cat"]},
        "show": {"model": "captioning"},
    }
    check_shape(http.post(f"/api/{route}", json=others[route] | {"image": WRONG[name]}), 400, None)


@pytest.mark.parametrize("boxes", [[], [[0, 0, 0, 0]], [[5, 5, 1, 1]], [[0, 0, 1e308, 1e308]], [[-9, 0, 4, 4]]])
def test_boxes_outside_of_the_image_are_named(http, boxes):
    body = {"model": "retrieval", "texts": ["the cat"], "image": encoded(PNG), "boxes": boxes}
    answer = http.post("/api/match", json=body)
    if boxes:
        check_shape(answer, 400, None)
        assert "box" in answer.json()["error"]["message"]
    else:
        assert answer.status_code == 200
