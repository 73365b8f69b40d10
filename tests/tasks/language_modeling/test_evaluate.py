"""Language models scored as they were trained: begin symbols, documents apart, the run's own field, exact bytes."""

import copy
import json
import math

import pytest
import torch
from tokenizers import processors

import regard
from regard.data.chunking import TextChunk
from regard.errors import ConfigError
from regard.tasks.base import EvaluationRequest
from regard.tasks.language_modeling import evaluate as text_scoring
from regard.tasks.language_modeling.evaluate import evaluate, score_text
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tokenizers.text import TextTokenizer

END = "<|endoftext|>"
TEXTS = ["The old captain. " * 9, "A small boy", "Nobody " * 30]


@pytest.fixture(scope="module")
def writer(novel):
    return regard.load(novel)


def with_begin(writer):
    """The same model, told that a token stands before every text."""
    core = copy.deepcopy(writer.tokenizer._core)
    core.post_processor = processors.TemplateProcessing(single=f"{END} $A", special_tokens=[(END, 0)])
    return TextGenerator(writer.kind, writer.model, TextTokenizer(core, bos_id=0, eos_ids=[0]))


def summed(writer, ids):
    with torch.no_grad():
        logits = writer.model(torch.tensor([ids[:-1]]))[0].double().log_softmax(-1)
    return -logits.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


def test_the_begin_symbol_is_given_and_not_asked_for(writer):
    writer = with_begin(writer)
    assert writer.tokenizer.prepended_bos_id == 0
    texts = ["A small boy", "Nobody"]
    one, other = (writer.tokenizer.encode(text) for text in texts)
    losses = summed(writer, [0, *one, 0, 0, *other, 0])
    asked = torch.ones(len(losses), dtype=torch.bool)
    asked[len(one) + 1] = False  # the second begin
    scores = score_text(writer, iter([TextChunk(text) for text in texts]))
    assert scores["tokens"] == int(asked.sum()) == len(one) + len(other) + 2
    assert scores["loss"] == pytest.approx(losses[asked].mean().item(), rel=1e-4)
    assert scores["bytes"] == len("".join(texts))


def test_documents_apart_are_scored_each_alone(writer):
    texts = ["A small boy", "Nobody sang", "My brother"]
    alone = [summed(writer, [*writer.tokenizer.encode(text), 0]) for text in texts]
    scores = score_text(writer, iter([TextChunk(text) for text in texts]), separate_documents=True)
    assert scores["tokens"] == sum(map(len, alone))
    assert scores["loss"] == pytest.approx(torch.cat(alone).mean().item(), rel=1e-4)


def test_bytes_of_a_tiny_text_are_those_of_what_was_foretold(writer):
    first = writer.tokenizer.encode("Nobody sang")[0]
    scores = score_text(writer, iter([TextChunk("Nobody sang")]))
    assert scores["bytes"] == len("Nobody sang") - len(writer.tokenizer.decode([first])) > 0
    assert scores["bits_per_byte"] == pytest.approx(scores["loss"] * scores["tokens"] / math.log(2) / scores["bytes"])
    assert "bits_per_byte" not in score_text(writer, iter([TextChunk("a")]))


def test_the_window_is_told_where_it_is_shorter_than_the_model_sees(writer, monkeypatch):
    monkeypatch.setattr(text_scoring, "MAX_WINDOW", 16)
    assert score_text(writer, iter([TextChunk(TEXTS[0])]))["window"] == 16


@pytest.mark.parametrize(("window", "stride"), [(8, 3), (8, 8), (5, 1), (16, 4), (32, 16), (32, 31)])
@pytest.mark.parametrize("limit", [None, 1, 7, 8, 9, 40])
def test_each_token_is_scored_once_with_the_context_that_its_window_has(writer, window, stride, limit):
    """As the guide of `transformers` on the perplexity of models of fixed length computes it, but weighed by tokens."""
    ids = [*writer.tokenizer.encode(TEXTS[0] + TEXTS[2]), writer.tokenizer.eos_id]
    ids = ids if limit is None else ids[: limit + 1]
    losses, scored = [], 0
    for start in range(0, len(ids), stride):
        part = ids[start : start + window + 1]
        new = start + len(part) - 1 - scored
        if new > 0:
            losses.append(summed(writer, part)[-new:])
            scored += new
    scores = score_text(
        writer, iter([TextChunk(TEXTS[0], is_last=False), TextChunk(TEXTS[2])]), window, stride, limit=limit
    )
    assert scores["tokens"] == scored == len(ids) - 1
    assert scores["loss"] == pytest.approx(torch.cat(losses).mean().item(), rel=1e-4)
    assert (scores["window"], scores["stride"]) == (window, stride)


def test_files_are_scored_in_overlapping_windows_and_windows_can_be_given(writer, novel, tmp_path):
    (tmp_path / "new.txt").write_text(TEXTS[2] * 5)

    def found(*assignments):
        return evaluate(writer, EvaluationRequest(novel, [tmp_path / "new.txt"], assignments=assignments))

    default, given = found(), found("data.window=16", "data.stride=4")
    assert (default["window"], default["stride"]) == (32, 16)
    assert (given["window"], given["stride"]) == (16, 4)
    assert default["tokens"] == given["tokens"]
    apart = found("data.stride=32")
    assert apart["loss"] > default["loss"]  # fewer tokens before each
    with pytest.raises(ConfigError, match="data.window=33: the model reads 32 tokens at once"):
        found("data.window=33")
    with pytest.raises(ConfigError, match="data.stride=17 is longer than the window of 16 tokens"):
        found("data.window=16", "data.stride=17")


def test_a_run_is_scored_as_it_was_trained(here, story, tiny_text, tmp_path):
    file = tmp_path / "stories.jsonl"
    lines = story.read_text().splitlines()
    file.write_text("".join(json.dumps({"body": line}) + "\n" for line in lines))
    run = tmp_path / "run"
    settings = [
        *tiny_text,
        "model.vocab_size=300",
        "training.steps=20",
        "data.field=body",
        "data.separate_documents=true",
    ]
    done = here("train", "gpt", file, "-o", run, *settings)
    assert done.returncode == 0, done.stderr
    log = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in log if "validation_loss" in line][-1]
    scores = evaluate(regard.load(run), EvaluationRequest(run))
    assert scores["loss"] == pytest.approx(trained["validation_loss"], rel=1e-4)
    whole = evaluate(regard.load(run), EvaluationRequest(run, [file]))
    assert whole["tokens"] > scores["tokens"]
    file.write_text(file.read_text().replace('"body"', '"words"'))
    assert (
        evaluate(regard.load(run), EvaluationRequest(run, [file], assignments=["data.field=words"]))["loss"]
        == whole["loss"]
    )


def test_a_begin_symbol_stands_in_training_too(here, writer, story, tiny_text, tmp_path):
    folder, run, file = tmp_path / "words", tmp_path / "run", tmp_path / "stories.jsonl"
    file.write_text("".join(json.dumps({"text": line}) + "\n" for line in story.read_text().splitlines()))
    folder.mkdir()
    for name, content in with_begin(writer).tokenizer.to_files().items():
        (folder / name).write_bytes(content)
    done = here("train", "gpt", file, "-o", run, *tiny_text, "training.steps=20", f"data.tokenizer={folder}")
    assert done.returncode == 0, done.stderr
    assert regard.load(run).tokenizer.prepended_bos_id == 0
    log = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in log if "validation_loss" in line][-1]
    assert evaluate(regard.load(run), EvaluationRequest(run))["loss"] == pytest.approx(
        trained["validation_loss"], rel=1e-4
    )
