"""The commands on language models, as a user gives them."""

import json
import math

import pytest
import torch

import regard
from regard.data.chunking import TextChunk
from regard.errors import DataError
from regard.tasks.language_modeling import evaluate as text_scoring
from regard.tasks.language_modeling.evaluate import score_text


def last_line(done):
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def strict_json(text):
    """JSON as others read it: no NaN."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


# ------------------------------------------------ train


def test_train_leaves_a_model_folder_and_a_card(novel):
    assert {"MANIFEST.json", "config.json", "model.safetensors", "tokenizer.json", "card.md", "metrics.jsonl"} <= {
        path.name for path in novel.iterdir()
    }
    card = (novel / "card.md").read_text()
    assert "bits_per_byte" in card
    assert "trained with regard on story.txt" in card


def test_what_to_try_fits_what_was_trained(here, novel, story, tiny_text, trained, tiny):
    settings = [*tiny_text, "model.vocab_size=300", "training.steps=120"]
    done = here("train", "gpt", story, "-o", novel, *settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'{novel}: trained. Try: regard run {novel} "Once upon a time"\n'
    done = here("train", "translator", "-o", trained, "training.steps=60", "training.evaluate_every=15", *tiny)
    assert done.stdout.endswith('"we are eating bread"\n')


def test_utilization_is_written_down(novel, trained):
    for folder in (novel, trained):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        shares = [line["utilization"] for line in lines if "loss" in line]
        assert shares
        assert all(0 < share < 1.5 for share in shares)


def test_the_loss_falls_and_its_measures_are_the_same_in_other_units(novel):
    lines = [json.loads(line) for line in (novel / "metrics.jsonl").read_text().splitlines()]
    validation = [line for line in lines if "validation_loss" in line]
    assert validation[-1]["validation_loss"] < validation[0]["validation_loss"] < math.log(300)
    for line in validation:
        assert line["validation_perplexity"] == pytest.approx(math.exp(line["validation_loss"]))


def test_train_goes_on_from_a_model_that_is_there(here, novel, story, tmp_path):
    """Its words, its sizes and its weights: one tiny step from them, the loss is what it was."""
    one = ["training.steps=1", "training.learning_rate=1e-9", "--json"]
    done = here("train", "gpt", story, "--from", novel, "-o", tmp_path / "on", *one)
    assert done.returncode == 0, done.stderr
    before = strict_json(here("evaluate", novel, "--json").stdout)["loss"]
    assert strict_json(done.stdout)["validation"]["loss"] == pytest.approx(before, rel=1e-3)
    assert (tmp_path / "on" / "tokenizer.json").read_bytes() == (novel / "tokenizer.json").read_bytes()
    done = here("train", "gpt", story, "--from", novel, "-o", tmp_path / "wider", "model.width=64")
    assert (done.returncode, "leave out model.* settings" in last_line(done)) == (2, True)


def test_what_cannot_be_begun_from_is_said(here, novel, story, trained, tmp_path):
    done = here("train", "gpt", story, "--from", trained, "-o", tmp_path / "a")
    assert (done.returncode, "wanted a language model" in last_line(done)) == (2, True)
    done = here("train", "translator", "--from", trained, "-o", tmp_path / "b")
    assert (done.returncode, "takes no pretrained model" in last_line(done)) == (2, True)
    done = here("train", "gpt", story, "--seeds", 2, "training.seed=4", "-o", tmp_path / "c")
    assert (done.returncode, "leave training.seed out" in last_line(done)) == (2, True)


def test_several_seeds_give_mean_and_deviation(here, story, tiny_text, tmp_path):
    settings = [*tiny_text, "model.vocab_size=300", "training.steps=3"]
    done = here("train", "gpt", story, "--seeds", 2, "-o", tmp_path / "two", "--json", *settings)
    assert done.returncode == 0, done.stderr
    found = strict_json(done.stdout)["scores"]
    alone = [
        strict_json(here("evaluate", tmp_path / "two" / f"seed-{seed}", "--json").stdout)["loss"] for seed in (1, 2)
    ]
    assert alone[0] != alone[1]
    assert found["loss"] == pytest.approx(sum(alone) / 2)
    assert found["deviation"]["loss"] == pytest.approx(abs(alone[0] - alone[1]) / math.sqrt(2))


# ------------------------------------------------ run


def test_run_writes_on_behind_the_prompt(here, novel):
    done = here("run", novel, "The old captain", "--max-new-tokens", 10)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written = regard.load(novel).run("The old captain", max_new_tokens=10)
    assert done.stdout == f"The old captain{written.text}\n"
    assert here("run", novel, "The old captain", "--max-new-tokens", 10, "--seed", 9).stdout != done.stdout


def test_run_greedy_and_by_beam(here, novel):
    writer = regard.load(novel)
    for words, strategy in (
        (["--greedy"], regard.Greedy()),
        (["--num-beams", 1], regard.Greedy()),
        (["--greedy", "--repetition-penalty", 1.4], regard.Greedy(repetition_penalty=1.4)),
        (["--num-beams", 3, "--length-penalty", 0.5], regard.Beam(3, 0.5)),
        (["--sample", "--temperature", 0.3], regard.Sample(temperature=0.3, top_p=0.95)),
        (["--top-k", 3], regard.Sample(temperature=0.8, top_p=0.95, top_k=3)),
        (["--min-p", 0.2, "--top-p", 1], regard.Sample(temperature=0.8, top_p=1.0, min_p=0.2)),
    ):
        done = here("run", novel, "The", "--max-new-tokens", 12, *words)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"The{writer.run('The', strategy, max_new_tokens=12).text}\n"


def test_run_ranks_samples(here, novel):
    for best_by in ("likelihood", "mean", "consistency"):
        done = here("run", novel, "The", "--num-samples", 3, "--best-by", best_by, "--max-new-tokens", 8)
        assert done.returncode == 0, done.stderr
        heads = [line for line in done.stdout.splitlines() if line.startswith("# ")]
        assert [head.split(":")[0] for head in heads] == ["# 1 of 3", "# 2 of 3", "# 3 of 3"]
        scores = [float(head.split("score ")[1].split(",")[0]) for head in heads]
        assert scores == sorted(scores, reverse=True)


def test_run_as_json(here, novel):
    done = here("run", novel, "The", "A", "--num-samples", 2, "--max-new-tokens", 50, "--json", "--log-probabilities")
    assert done.returncode == 0, done.stderr
    found = [strict_json(line) for line in done.stdout.splitlines()]
    assert [one["prompt"] for one in found] == ["The", "A"]
    for one in found:
        assert len(one["texts"]) == 2
        for text in one["texts"]:
            assert {"text", "tokens", "score", "log_probability", "ended", "forgot", "log_probabilities"} == text.keys()
            assert len(text["log_probabilities"]) == len(text["tokens"])
            # Of what is out of the context's sight there is none.
            known = [likely for _, likely in text["log_probabilities"] if likely is not None]
            assert len(known) == min(32, len(text["tokens"]))
            assert all(likely <= 0 for likely in known)


def test_run_stops_at_a_text(here, novel):
    whole = regard.load(novel).run("The", max_new_tokens=40).text
    stop = whole[10:14]
    done = here("run", novel, "The", "--max-new-tokens", 40, "--stop", "☃", "--stop", stop)
    assert done.stdout == f"The{whole[: whole.find(stop)]}\n"


def test_run_shows_how_likely_each_token_was(here, novel):
    done = here("run", novel, "The", "--greedy", "--max-new-tokens", 5, "--log-probabilities")
    lines = done.stdout.split("\n")
    likely = [line for line in lines if line.startswith("  ")]
    assert len(likely) == 5
    assert all(float(line.split()[0]) <= 0 for line in likely)


def test_run_reads_lines_or_all_of_standard_input(here, novel):
    writer = regard.load(novel)
    one = here("run", novel, "-", "--greedy", "--max-new-tokens", 6, stdin="The old\ncaptain\n")
    assert (
        one.stdout
        == f"The old\ncaptain{writer.run('The old' + chr(10) + 'captain', regard.Greedy(), max_new_tokens=6).text}\n"
    )
    two = here("run", novel, "--greedy", "--max-new-tokens", 6, "--json", stdin="The old\ncaptain\n")
    assert [json.loads(line)["prompt"] for line in two.stdout.splitlines()] == ["The old", "captain"]
    nothing = here("run", novel, "-", "--greedy", "--max-new-tokens", 6, stdin="")
    assert nothing.stdout == f"{writer.run('', regard.Greedy(), max_new_tokens=6).text}\n"


def test_run_takes_prompts_as_they_are(here, novel):
    """White space and nothing at all are prompts; of a line only its end goes."""
    for prompt in ("\n", "", " The "):
        done = here("run", novel, prompt, "--greedy", "--max-new-tokens", 6, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["prompt"] == prompt
    lines = here("run", novel, "--greedy", "--max-new-tokens", 6, "--json", stdin="  The \n\n\tcaptain\r\n")
    assert [json.loads(line)["prompt"] for line in lines.stdout.splitlines()] == ["  The ", "", "\tcaptain"]
    assert "standard input is empty" in here("run", novel, stdin="").stderr


def test_run_says_when_the_beginning_went_out_of_sight(here, novel):
    done = here("run", novel, "The", "--greedy", "--repetition-penalty", 1.3, "--max-new-tokens", 60)
    assert "outgrew the context of 32 tokens" in last_line(done)


def test_run_lets_go_of_the_beginning_of_a_long_prompt(here, novel, story):
    prompt = story.read_text()[:500]
    done = here("run", novel, prompt, "--truncate", "left", "--max-new-tokens", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(prompt)


# ------------------------------------------------ measure


def test_evaluate_gives_what_training_gave(here, novel):
    scores = json.loads(here("evaluate", novel, "--json").stdout)
    lines = [json.loads(line) for line in (novel / "metrics.jsonl").read_text().splitlines()]
    validation = [line for line in lines if "validation_loss" in line][-1]
    for name, close in (("loss", 1e-4), ("perplexity", 1e-4), ("bits_per_byte", 2e-3)):  # of a byte or two
        assert scores[name] == pytest.approx(validation[f"validation_{name}"], rel=close)


def plain_loss(writer, ids):
    """Every window by itself: a token is foretold from those before it in its window."""
    total = 0.0
    for start in range(0, len(ids) - 1, writer.context):
        window = torch.tensor([ids[start : start + writer.context + 1]])
        with torch.no_grad():
            logits = writer.model(window[:, :-1])[0].double().log_softmax(-1)
        total -= logits.gather(1, window[0, 1:, None]).sum().item()
    return total


def test_evaluate_on_a_file_is_a_plain_sum_over_its_windows(here, novel, story, tmp_path):
    writer = regard.load(novel)
    text = story.read_text()[:6000]
    file = tmp_path / "some.txt"
    file.write_text(text)
    ids = [*writer.tokenizer.encode(text), writer.tokenizer.eos_id]
    assert len(ids) > 8 * writer.context  # more than one batch, and a rest
    scores = json.loads(here("evaluate", novel, file, "data.stride=32", "--json").stdout)
    total = plain_loss(writer, ids)
    assert scores["tokens"] == len(ids) - 1
    foretold = len(text.encode()) - len(writer.tokenizer.decode(ids[:1]).encode())
    assert scores["bytes"] == foretold
    assert (scores["window"], scores["stride"]) == (32, 32)
    assert scores["loss"] == pytest.approx(total / (len(ids) - 1), rel=1e-4)
    assert scores["perplexity"] == pytest.approx(math.exp(total / (len(ids) - 1)), rel=1e-3)
    assert scores["bits_per_byte"] == pytest.approx(total / math.log(2) / foretold, rel=1e-4)
    for most in (1, 31, 32, 33, 256, 257, 700):
        some = json.loads(here("evaluate", novel, file, "data.stride=32", "--limit", most, "--json").stdout)
        assert some["tokens"] == most
        assert some["loss"] == pytest.approx(plain_loss(writer, ids[: most + 1]) / most, rel=1e-4)
        assert some["bits_per_byte"] == pytest.approx(some["loss"] * most / math.log(2) / some["bytes"])
        assert some["bytes"] == sum(len(writer.tokenizer.token_bytes.of(number)) for number in ids[1 : most + 1])


def test_documents_follow_one_another_with_the_end_between_them(novel):
    writer = regard.load(novel)
    texts = ["The old captain. " * 9, "A small boy", "Nobody " * 30]
    pieces = [
        TextChunk(texts[0][:40], is_last=False),
        TextChunk(texts[0][40:]),
        TextChunk(texts[1]),
        TextChunk(texts[2]),
    ]
    encode, end = writer.tokenizer.encode, writer.tokenizer.eos_id
    ids = [*encode(texts[0][:40]), *encode(texts[0][40:]), end, *encode(texts[1]), end, *encode(texts[2]), end]
    scores = score_text(writer, iter(pieces))
    assert scores["tokens"] == len(ids) - 1
    assert scores["loss"] == pytest.approx(plain_loss(writer, ids) / (len(ids) - 1), rel=1e-4)


def test_scores_do_not_depend_on_how_many_windows_stand_side_by_side(novel, story, monkeypatch):
    writer = regard.load(novel)
    found = []
    for rows, logits in ((8, 2**24), (1, 1000), (3, 300)):
        monkeypatch.setattr(text_scoring, "BATCH_SIZE", rows)
        monkeypatch.setattr(text_scoring, "MAX_LOGITS", logits)
        found.append(score_text(writer, iter([TextChunk(story.read_text()[:3000])])))
    assert found[1]["loss"] == pytest.approx(found[0]["loss"], rel=1e-5)
    assert found[2]["loss"] == pytest.approx(found[0]["loss"], rel=1e-5)
    assert len({one["tokens"] for one in found}) == 1


def test_one_token_foretells_nothing(novel):
    writer = regard.load(novel)
    with pytest.raises(DataError, match="wanted at least two"):
        score_text(writer, iter([TextChunk("a", is_last=False)]))
    assert score_text(writer, iter([TextChunk("a")]))["tokens"] == 1  # the end behind it


def test_several_runs_are_averaged(here, novel, story, tmp_path):
    scores = json.loads(here("evaluate", novel, novel, story, "--limit", 100, "--json").stdout)
    assert scores["runs"] == 2
    assert scores["deviation"]["loss"] == 0


def test_a_second_gguf_is_a_model_and_no_text(here, novel, story, tmp_path):
    file = tmp_path / "b.gguf"
    file.write_bytes(b"GGUF, but broken")
    done = here("evaluate", novel, file, story)
    assert done.returncode == 2
    assert "b.gguf is damaged or cut short" in last_line(done)


def test_evaluate_in_int8(here, novel, story):
    exact, rounded = (
        json.loads(here("evaluate", novel, story, "--limit", 200, "--json", *words).stdout)
        for words in ([], ["--precision", "int8"])
    )
    assert rounded["loss"] != exact["loss"]
    assert rounded["loss"] == pytest.approx(exact["loss"], rel=0.05)
    done = here("evaluate", novel, story, "--precision", "int7")
    assert done.returncode == 2
    assert "precision is 'int7'" in last_line(done)


def test_help_names_what_language_models_take(here):
    train, evaluate = (
        " ".join(here(name, "--help").stdout.replace("│", " ").split()) for name in ("train", "evaluate")
    )
    for words in (".parquet", "regard train gpt novel.txt", "data.tokenizer=characters", "Python documentation"):
        assert words in train
    for words in ("bits per byte", "pairs, tokens, rows or images", "--precision", "regard evaluate runs/novel"):
        assert words in evaluate


def test_check_cost_info_and_recipes(here, novel):
    done = here("check", novel)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()].count("ok") == 10
    for words in ([], ["--source", 20, "--target", 12], ["--source", 30], ["--target", 16]):
        done = here("cost", novel, *words, "--json")
        assert done.returncode == 0, done.stderr
        assert all(row["formula"] in (None, row["measured"]) for row in json.loads(done.stdout))
    facts = json.loads(here("info", novel, "--json").stdout)
    assert (facts["kind"], facts["task"], facts["verified"]) == ("gpt", "language-modeling", True)
    assert facts["model"]["context"] == 32
    assert {"gpt", "shakespeare-char"} <= json.loads(here("recipes", "--json").stdout).keys()
    assert "regard train gpt" in here("recipes", "gpt").stdout


# ------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "gpt", "empty.txt"], "empty.txt: no text at all"),
        (["train", "gpt", "binary.txt"], "binary.txt"),
        (["train", "gpt", "nowhere.txt"], "nowhere.txt"),
        (["train", "gpt", "short.txt"], "wanted more than the 128 of a window"),
        (["train", "gpt", "{story}", "model.vocab_size=100"], "wanted at least 257"),
        (["train", "gpt", "{story}", "data.tokenizer=nowhere.json"], "nowhere.json"),
        (["train", "gpt", "{story}", "training.schedule=wds"], "training.schedule"),
        (["train", "shakespeare-char"], "shakespeare-char needs data"),
        (["run", "{novel}", "{long}"], "tokens, this model's context is 32"),
        (["run", "{novel}", "{long}", "short", "--json"], "tokens, this model's context is 32"),
        (["run", "{novel}", "{long}", "--truncate", "right"], "--truncate right: wanted left"),
        (["run", "{novel}", "The", "--alignment"], "--alignment is not for"),
        (["run", "{novel}", "The", "-o", "x.png"], "--output is not for"),
        (["run", "{novel}", "The", "--chat"], "has no chat template"),
        (["run", "{novel}", "The", "--sample", "--num-beams", "3"], "two strategies"),
        (["run", "{novel}", "The", "--num-samples", "3", "--greedy"], "two strategies"),
        (["run", "{novel}", "The", "--n-best", "3", "--sample"], "--num-samples 3"),
        (
            ["run", "{novel}", "The", "--num-samples", "3", "--best-by", "luck"],
            "--best-by luck: wanted likelihood, mean",
        ),
        (["run", "{novel}", "The", "--best-by", "mean"], "--best-by mean"),
        (["run", "{novel}", "The", "--num-beams", "3", "--stop", "."], "beam search cannot stream or stop at a string"),
        (["run", "{novel}", "The", "--num-beams", "3", "--repetition-penalty", "2"], "not for beam search"),
        (["run", "{novel}", "The", "--stop", ""], "a stop string is empty"),
        (["run", "{novel}", "The", "--max-new-tokens", "0"], "--max-new-tokens"),
        (["run", "{novel}", "The", "--min-p", "2"], "min_p is 2.0"),
        (["run", "{novel}", "The", "--repetition-penalty", "0"], "repetition_penalty is 0.0"),
        (["run", "{novel}", "The", "--precision", "int7"], "precision is 'int7'"),
        (["run", "{trained}", "the boy", "--max-new-tokens", "5"], "--max-new-tokens is not for"),
        (["run", "{trained}", "the boy", "--num-samples", "2"], "--num-samples is not for"),
        (["run", "{trained}", "the boy", "--chat"], "--chat is not for"),
        (["evaluate", "{novel}", "empty.txt"], "empty.txt: no text at all"),
        (["evaluate", "{novel}", "binary.txt"], "binary.txt"),
        (["evaluate", "{novel}", "--num-beams", "3"], "--num-beams or --seeds is not for"),
        (["evaluate", "{novel}", "{trained}", "{story}"], "story.txt"),
        (["cost", "{novel}", "--source", "100"], "101 tokens, but this model learned positions for 32"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_2(here, novel, trained, story, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "short.txt").write_text("It was night.\n")
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 20)
    names = {"{novel}": novel, "{trained}": trained, "{story}": story, "{long}": "The sea and the rain. " * 20}

    def filled(word):
        for name, value in names.items():
            word = word.replace(name, str(value))
        return word

    done = here(*map(filled, arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    errors = done.stderr.strip().splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert filled(message) in errors[0]
    assert done.stdout == ""
    assert not list(tmp_path.rglob("*.safetensors"))
    assert not list(tmp_path.rglob("x.*"))
