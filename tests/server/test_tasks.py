"""Our own routes: the answers of the pipelines, batched; the trace of any request; tokens and metrics."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from regard.generation import Beam
from regard.inspection.trace import Trace

SOURCES = ["we are eating bread", "the red house is big", "he sees a dog"]


def test_translations_are_the_pipelines(client, table):
    pipeline = table.get("demo").pipeline
    found = client.post("/api/translate", json={"model": "demo", "texts": SOURCES, "alignment": True}).json()
    assert [one["text"] for one in found["translations"]] == [one.text for one in pipeline.run_all(SOURCES)]
    assert found["translations"][0]["alignment"]["source"] == SOURCES[0].split()
    beam = client.post("/api/translate", json={"model": "demo", "texts": SOURCES, "num_beams": 3}).json()
    wanted = [one.text for one in pipeline.run_all(SOURCES, Beam(3))]
    assert [one["text"] for one in beam["translations"]] == wanted


def test_requests_at_once_are_batched_and_answered_apart(client, table):
    texts = [f"the {color} house is big" for color in ("red", "green", "blue", "old", "new")] * 4

    def ask(text):
        return client.post("/api/translate", json={"model": "demo", "texts": [text]}).json()["translations"][0]["text"]

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(ask, texts))
    assert found == [one.text for one in table.get("demo").pipeline.run_all(texts)]


def test_encoders_answer(client, table):
    filled = client.post("/api/fill", json={"model": "bert", "texts": ["the [MASK] ran"], "num_predictions": 3}).json()
    wanted = table.get("bert").pipeline.fill(["the [MASK] ran"], 3)[0]
    assert filled["filled"][0]["text"] == wanted.text
    assert len(filled["filled"][0]["masks"][0]) == 3
    classified = client.post("/api/classify", json={"model": "sentiment", "texts": ["the cat", "a dog"]}).json()
    wanted = table.get("sentiment").pipeline.run_all(["the cat", "a dog"])
    assert [one["label"] for one in classified["classified"]] == [one.label for one in wanted]
    assert classified["classified"][0]["score"] == pytest.approx(wanted[0].score)
    tagged = client.post("/api/tag", json={"model": "names", "texts": ["Ada ran"]}).json()
    assert [word["text"] for word in tagged["tagged"][0]["words"]] == ["Ada", "ran"]


def test_a_wrong_input_does_not_fail_its_neighbors(client):
    def ask(text):
        return client.post("/api/fill", json={"model": "bert", "texts": [text]})

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(ask, ["the [MASK] ran", "no mask here"] * 3))
    assert [one.status_code for one in found] == [200, 400] * 3
    assert "[MASK]" in found[1].json()["error"]["message"]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/completions", {"model": "llama", "prompt": "Once", "max_tokens": 3, "seed": 1}),
        ("/api/translate", {"model": "demo", "texts": ["he sees a dog"]}),
        ("/api/classify", {"model": "sentiment", "texts": ["the cat"]}),
    ],
)
def test_any_request_can_be_traced(client, tmp_path, route, body):
    name = client.post(route, json=body | {"trace": True}).json()["trace"]
    path = tmp_path / "trace.safetensors"
    path.write_bytes(client.get(f"/api/trace/{name}").content)
    trace = Trace.open(path)
    assert trace.attentions()
    if "prompt" in body:
        assert len(trace.info.axes["text"].tokens) == len("Once") + 3
    assert client.get("/api/trace/trace-0").status_code == 404


def test_tokens_and_metrics(client):
    found = client.post("/tokenize", json={"model": "llama", "prompt": "añ"}).json()
    assert found == {"tokens": [97, 195, 177], "count": 3, "max_model_len": 256}
    assert client.post("/detokenize", json={"model": "llama", "tokens": found["tokens"]}).json() == {"prompt": "añ"}
    client.post("/v1/completions", json={"model": "llama", "prompt": "Once", "max_tokens": 3})
    text = client.get("/metrics").text
    assert 'regard_kv_cache_slots_used{model="llama"} 0.0' in text
    assert "regard_time_to_first_token_seconds_bucket" in text
    assert 'regard_requests_total{route="/v1/completions",status="200"}' in text


def test_an_image_is_for_a_model_that_takes_one(client):
    answer = client.post("/api/caption", json={"model": "demo", "image": "aGk="})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "model"
