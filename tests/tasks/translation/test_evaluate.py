"""Scores of a test set: in pieces as in one, teacher-forced beside free-running, by length, with seeds, with gold."""

import json

import pytest
import torch

import regard
from regard.errors import DataError
from regard.generation import Greedy, Sample
from regard.metrics.translation import score_corpus
from regard.synthetic.translation.sentences import sentences
from regard.tasks.translation import evaluate as scoring
from regard.tasks.translation.evaluate import Item, score
from regard.tasks.translation.pipeline import TranslatedText, Translation
from regard.training.validation import validation_loss


@pytest.fixture(scope="module")
def translator(trained):
    return regard.load(trained)


@pytest.fixture(scope="module")
def items():
    return [Item(pair.source, pair.target) for pair in sentences(50, split="validation")]


@pytest.fixture
def pairs(items, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("".join(f"{item.source}\t{item.target}\n" for item in items))
    return path


def test_a_test_set_in_pieces_scores_as_in_one(translator, items, monkeypatch):
    whole = score(translator, iter(items), Greedy())
    monkeypatch.setattr(scoring, "CHUNK", 7)
    pieces = score(translator, iter(items), Greedy())
    assert pieces["bleu"] == pytest.approx(whole["bleu"])
    assert pieces["loss"] == pytest.approx(whole["loss"])
    assert pieces["by_length"] == whole["by_length"]


def test_translations_that_do_not_end_are_counted(translator, items, monkeypatch):
    monkeypatch.setattr(translator, "max_new_tokens", 1)
    found = score(translator, iter(items), Greedy())
    assert found["truncated"].startswith("50 translations reached the length limit without an end")


def test_scores_are_those_of_the_parts(translator, items):
    scores = score(translator, iter(items), Greedy())
    written = [answer.text for answer in translator.run_all([item.source for item in items])]
    assert scores["bleu"] == pytest.approx(score_corpus(written, [item.target for item in items]).bleu.value)
    assert scores["accuracy_gap"] == pytest.approx(scores["teacher_forced_accuracy"] - scores["free_running_accuracy"])
    assert sum(row["pairs"] for row in scores["by_length"]) == scores["pairs"] == 50
    names = translator.tokenizer
    batches = [
        scoring.collate_padded(
            [(names.encode(item.source), names.encode(item.target))], [0], names.bos_id, names.eos_id, names.pad_id
        )
        for item in items
    ]
    assert scores["loss"] == pytest.approx(validation_loss(translator.model, translator.task, batches), rel=1e-4)


def test_a_model_that_is_always_right_has_no_gap(translator, items, monkeypatch):
    answers = {item.source: item.target for item in items}
    names, model = translator.tokenizer, translator.model

    def knows(source, target):
        """Logits that name the true next token."""
        logits = torch.zeros(*target.shape, names.vocab_size)
        for row, ids in enumerate(source.tolist()):
            truth = [*names.encode(answers[names.decode(ids)]), names.eos_id]
            for place, token in enumerate(truth[: target.shape[1]]):
                logits[row, place, token] = 30.0
        return logits

    monkeypatch.setattr(type(model), "forward", lambda self, source, target: knows(source, target))
    monkeypatch.setattr(
        type(translator), "run_all", lambda self, texts, strategy, first: [_said(answers[text]) for text in texts]
    )
    scores = score(translator, iter(items))
    assert (scores["exact_match"], scores["teacher_forced_accuracy"]) == (1.0, 1.0)
    assert (scores["bleu"], scores["accuracy_gap"]) == (pytest.approx(100), pytest.approx(0))
    assert "truncated" not in scores


def _said(text):
    return Translation("", [TranslatedText(text, 0.0, 0.0, ended=True)])


def test_alignments_in_pharaohs_format_and_gold(here, trained, pairs, tmp_path):
    links = tmp_path / "found.pharaoh"
    done = here("evaluate", trained, pairs, "--limit", 10, "--alignments", links)
    assert done.returncode == 0, done.stderr
    lines = links.read_text().splitlines()
    assert len(lines) == 10
    for line, pair in zip(lines, pairs.read_text().splitlines(), strict=False):
        source, target = (side.split() for side in pair.split("\t"))
        for link in line.split():
            one, other = map(int, link.split("-"))
            assert one < len(source)
            assert other < len(target)
    # Against itself there is no error; against its sure links made possible ones, neither.
    done = here("evaluate", trained, pairs, "--limit", 10, "--gold", links, "--json")
    assert json.loads(done.stdout)["alignment_error_rate"] == 0
    links.write_text("0-0 99-1\n" * 10)
    assert "link 99-1, but there are" in here("evaluate", trained, pairs, "--limit", 10, "--gold", links).stderr
    links.write_text("0-0 nonsense\n" * 10)
    done = here("evaluate", trained, pairs, "--limit", 10, "--gold", links)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "'nonsense' is not a link" in done.stderr
    assert "more lines than there are pairs" in here("evaluate", trained, pairs, "--gold", _repeat(links, 51)).stderr
    links.write_text("0-0\n")
    assert "ends before line 2" in here("evaluate", trained, pairs, "--gold", links).stderr


def _repeat(path, count):
    path.write_text("0-0\n" * count)
    return path


def test_alignments_are_there_whole_or_as_before(here, trained, pairs, tmp_path):
    links = tmp_path / "found.pharaoh"
    links.write_text("precious")
    pairs.write_text(pairs.read_text() + "no tab\n")
    done = here("evaluate", trained, pairs, "--alignments", links)
    assert done.returncode == 2
    assert "no tab" in done.stderr
    assert links.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"found.pharaoh", "test.tsv"}


def test_no_pairs_leave_the_file_of_alignments_as_it_was(translator, tmp_path):
    (tmp_path / "links").write_text("precious")
    with pytest.raises(DataError, match="no pairs to score"):
        score(translator, iter([]), alignments=tmp_path / "links")
    assert (tmp_path / "links").read_text() == "precious"


def test_bad_pairs_are_left_out_and_counted_or_stop_as_told(here, trained, pairs):
    pairs.write_text(pairs.read_text() + "no tab\n")
    done = here("evaluate", trained, pairs, "--json")
    assert json.loads(done.stdout)["bad_lines"][0] == "bad lines left out: 1 (wrong columns 1); the first:"
    assert json.loads(done.stdout)["pairs"] == 50
    stopped = here("evaluate", trained, pairs, "data.on_error=stop")
    assert stopped.returncode == 2
    assert stopped.stderr.endswith("fix it, or set data.on_error=skip to skip such lines\n")
    assert here("evaluate", trained, pairs, "data.on_error=skip").returncode == 0


@pytest.mark.parametrize("option", ["--gold", "--alignments"])
def test_beside_alignments_no_line_is_left_out(here, trained, pairs, tmp_path, option):
    pairs.write_text("no tab\n" + pairs.read_text())
    links = _repeat(tmp_path / "links", 51)
    for how in ([], ["data.on_error=stop"]):
        done = here("evaluate", trained, pairs, option, links, *how)
        assert done.returncode == 2
        assert done.stderr.endswith("wanted source<tab>target; correct it: with alignments no line can be skipped\n")
    done = here("evaluate", trained, pairs, option, links, "data.on_error=skip")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "data.on_error=skip: with --gold or --alignments no line is skipped" in done.stderr


def test_pairs_may_be_as_long_as_those_of_the_run(here, trained, tmp_path, tiny):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{'a ' * 300}{number}\tuna casa {number}\n" for number in range(40)))
    settings = [*tiny, "training.steps=1", "data.validation=2", "training.max_tokens=2048"]
    done = here("train", "translator", pairs, "-o", tmp_path / "long", *settings, "data.max_length=400")
    assert done.returncode == 0, done.stderr
    assert json.loads(here("evaluate", tmp_path / "long", pairs, "--json").stdout)["pairs"] == 40
    assert "no sentence pair" in here("evaluate", tmp_path / "long", pairs, "data.max_length=300").stderr
    assert "no sentence pair" in here("evaluate", trained, pairs).stderr


def test_long_targets_are_scored_in_smaller_batches(translator, items, monkeypatch):
    whole = score(translator, iter(items), Greedy())
    monkeypatch.setattr(scoring, "MAX_LOGITS", 400 * 30)
    assert score(translator, iter(items), Greedy())["loss"] == pytest.approx(whole["loss"])


def test_samples_do_not_depend_on_the_pieces(translator, items, monkeypatch):
    whole = score(translator, iter(items), Sample(seed=1))
    monkeypatch.setattr(scoring, "CHUNK", 7)
    assert score(translator, iter(items), Sample(seed=1))["chrf"] == pytest.approx(whole["chrf"])


def test_runs_on_different_data_are_not_averaged(here, trained, tmp_path, tiny, pairs):
    done = here("train", "translator", pairs, "-o", tmp_path / "other", *tiny, "training.steps=1")
    assert done.returncode == 0, done.stderr
    done = here("evaluate", trained, tmp_path / "other")
    assert done.returncode == 2
    assert "have different validation data" in done.stderr


def test_several_runs_or_seeds_give_mean_and_deviation(here, trained, pairs):
    done = here("evaluate", trained, trained, pairs, "--limit", 10, "--json")
    assert done.returncode == 0, done.stderr
    same = json.loads(done.stdout)
    assert (same["runs"], same["deviation"]["bleu"]) == (2, 0)
    done = here("evaluate", trained, pairs, "--limit", 10, "--seeds", 3, "--json")
    drawn = json.loads(done.stdout)
    assert drawn["runs"] == 3
    assert drawn["deviation"]["chrf"] > 0
    assert here("evaluate", trained, pairs, "--seeds", 3, "--num-beams", 2).returncode == 2
