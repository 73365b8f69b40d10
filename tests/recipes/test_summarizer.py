"""The summarizer: a recipe over the translation task, with metrics and lengths of its own."""

import json

import pytest

import regard
from regard.errors import FolderError
from regard.metrics.rouge import RougeScorer
from regard.recipes import find
from regard.tasks.evaluation import evaluate_folders
from regard.tasks.recipe import TrainingInputs, train_recipe

TINY = [
    "model.width=16",
    "model.heads=2",
    "model.head_width=8",
    "model.layers=1",
    "model.feed_forward=16",
    "model.vocab_size=300",
    "data.validation=8",
    "training.steps=3",
    "training.max_tokens=2048",
    "training.evaluate_examples=4",
]


@pytest.fixture(scope="module")
def summaries(tmp_path_factory):
    """Documents of 300 words with short summaries, and a model trained on them for three steps."""
    folder = tmp_path_factory.mktemp("summarizer")
    words = [f"w{i}" for i in range(40)]
    rows = [
        {
            "source": f"document {n} " + " ".join(words[(n + i) % 40] for i in range(300)),
            "target": f"{words[n % 40]} {n}",
        }
        for n in range(120)
    ]
    (folder / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reports = list(train_recipe(find("summarizer"), TrainingInputs([folder / "articles.jsonl"]), TINY, folder / "run"))
    return folder / "run", reports


def test_training_and_evaluation_report_rouge(summaries):
    folder, reports = summaries
    validation = next(report.validation for report in reversed(reports) if report.validation)
    assert {"bleu", "rouge1", "rouge2", "rougeL"} <= set(validation)
    found = evaluate_folders([folder], limit=3)
    assert found["pairs"] == 3
    assert all(0 <= found[kind] <= 100 for kind in ("rouge1", "rouge2", "rougeL"))


def test_the_scores_are_those_of_what_it_writes(summaries, tmp_path):
    folder, _ = summaries
    pairs = [("w1 w2 w3 w4", "w1 w2"), ("w7 w8 w9", "w9")]
    (tmp_path / "test.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    scorer, summarizer = RougeScorer(), regard.load(folder)
    for source, target in pairs:
        scorer.add(summarizer.run(source).text, target)
    found = evaluate_folders([folder], [tmp_path / "test.tsv"])
    assert {kind: found[kind] for kind in scorer.scores()} == pytest.approx(scorer.scores())


def test_the_folder_says_how_it_is_scored_and_how_long_a_summary_may_be(summaries, tmp_path):
    folder, _ = summaries
    task = json.loads((folder / "config.json").read_text())["task"]
    assert task == {"name": "translation", "metrics": ["rouge"], "max_length_ratio": 0.5}
    summarizer = regard.load(folder)
    source = summarizer.task.encode(["w1 " * 100])
    assert summarizer.task.max_new_tokens(source) == [source.shape[1] // 2 + 10]


def test_a_metric_that_is_not_known_is_one_line(summaries):
    from regard.checkpoint import load
    from regard.tasks.translation.pipeline import Translator

    found = load(summaries[0])
    found.task["metrics"] = ["taste"]
    with pytest.raises(FolderError, match=r"config.json: task.metrics.0: Input should be 'rouge'$"):
        Translator.open(found)
