"""The commands as a user gives them: what they print, and one clear line for every mistake."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import takewhile

import pytest

from regard import recipes
from regard.tasks.recipe import TrainingInputs, train_recipe

NUMBERED = "".join(f"the number {n} is here\tel número {n} está aquí\n" for n in range(300))


def last_line(done):
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def test_train_leaves_a_model_folder_and_says_what_to_try(trained):
    assert {
        "MANIFEST.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "card.md",
        "metrics.jsonl",
        "run.json",
    } <= {path.name for path in trained.iterdir()}
    card = (trained / "card.md").read_text()
    assert "exact_match" in card
    assert "seed 1" in card
    assert f"`regard train translator -o {trained} training.steps=60 training.evaluate_every=15 " in card
    vocab_size = json.loads((trained / "config.json").read_text())["model"]["vocab_size"]
    assert f'"vocab_size": {vocab_size},' in card


def test_training_again_finds_it_trained(here, trained, tiny):
    done = here("train", "translator", "-o", trained, "training.steps=60", "training.evaluate_every=15", *tiny)
    assert done.returncode == 0
    assert "is trained already" in done.stderr


def test_other_settings_in_the_same_folder_are_refused(here, trained, tiny):
    done = here("train", "translator", "-o", trained, "training.steps=60", *tiny, "model.width=64")
    assert done.returncode == 2
    assert "was started with model.width=32, now it is 64" in last_line(done)


def test_a_run_from_before_a_setting_was_there_had_its_default(here, trained, tiny, tmp_path):
    folder = tmp_path / "older"
    shutil.copytree(trained, folder)
    written = json.loads((folder / "run.json").read_text())
    del written["settings"]["data"]["max_sentences"], written["settings"]["task"]["scheduled_sampling"]
    (folder / "run.json").write_text(json.dumps(written))
    same = ("train", "translator", "-o", folder, "training.steps=60", "training.evaluate_every=15", *tiny)
    assert "is trained already" in here(*same).stderr
    (folder / "run.json").write_text(json.dumps(written))
    assert "was started with data.max_sentences=1, now it is 2" in here(*same, "data.max_sentences=2").stderr


@pytest.fixture
def on_pairs(here, tmp_path, tiny):
    """A file of pairs, the folder of a run on it, and the command that goes on there."""
    pairs, folder = tmp_path / "pairs.tsv", tmp_path / "run"
    pairs.write_text(NUMBERED)
    train = ("train", "translator", pairs, "-o", folder, *tiny)
    assert here(*train, "training.steps=2").returncode == 0
    return pairs, folder, train


def test_data_that_has_changed_is_neither_gone_on_with_nor_scored(here, on_pairs):
    pairs, folder, train = on_pairs
    pairs.write_text(NUMBERED + "one more\tuno más\n")
    done = here(*train, "training.steps=4")
    assert done.returncode == 2
    assert f"pairs.tsv has changed since {folder} was started; restore it" in last_line(done)
    done = here("evaluate", folder)
    assert done.returncode == 2
    assert "so its validation data cannot be found again; name the test data: regard evaluate" in last_line(done)
    assert here("evaluate", folder, pairs, "--limit", 2).returncode == 0
    pairs.write_text(NUMBERED)
    assert here("evaluate", folder, "--limit", 2).returncode == 0
    assert here(*train, "training.steps=4").returncode == 0
    pairs.unlink()
    gone = last_line(here("evaluate", folder))
    assert "pairs.tsv, which" in gone
    assert f"is gone; name the test data: regard evaluate {folder} DATA" in gone


def test_a_run_from_before_a_default_changed_keeps_the_one_it_had(here, tmp_path, tiny):
    pairs, folder = tmp_path / "pairs.tsv", tmp_path / "run"
    pairs.write_text(NUMBERED)
    settings = ["training.steps=2", *(one for one in tiny if not one.startswith("data.validation"))]
    train = ("train", "translator", pairs, "-o", folder, *settings)
    assert here(*train).returncode == 0
    written = json.loads((folder / "run.json").read_text())
    assert written["settings"]["data"]["validation"] is None
    written["settings"]["data"]["validation"] = 2000  # the default of `regard train translator PAIRS` until then
    (folder / "run.json").write_text(json.dumps(written))
    assert "is trained already" in here(*train, "training.timeout=900").stderr
    assert json.loads((folder / "run.json").read_text())["settings"]["data"]["validation"] == 2000
    done = here(*train, "data.validation=none")
    assert "was started with data.validation=2000, now it is None" in last_line(done)


def test_a_trained_model_outlives_a_mistake_about_its_data(here, on_pairs):
    pairs, folder, train = on_pairs
    written = json.loads((folder / "run.json").read_text())
    del written["contents"]  # as in a run of before, which goes on with whatever the file holds now
    (folder / "run.json").write_text(json.dumps(written))
    pairs.write_text(NUMBERED + "no tab\n")
    assert "pairs.tsv:301" in last_line(here(*train, "training.steps=4"))
    assert json.loads(here("info", folder, "--json").stdout)["verified"] is True
    pairs.write_text(NUMBERED + "one more\tuno más\n")
    assert here("evaluate", folder, "--limit", 2).returncode == 0
    assert here(*train, "training.steps=4").returncode == 0


def test_a_trained_model_outlives_a_mistake_about_its_settings(here, story, tiny_text, tmp_path):
    train = ("train", "gpt", story, "-o", tmp_path / "run", *tiny_text, "model.vocab_size=300")
    assert here(*train, "training.steps=2").returncode == 0
    done = here(*train, "training.steps=4", "training.epochs=1")
    assert "training.epochs: this task samples its batches without end" in last_line(done)
    assert json.loads(here("info", tmp_path / "run", "--json").stdout)["verified"] is True


def test_a_trained_model_does_not_pass_for_one_trained_longer(train_here, story, tiny_text, tmp_path):
    """Left between the last step and the model's files: the old model's are still there."""
    settings = [*tiny_text, "model.vocab_size=300"]
    folder = train_here("gpt", *settings, "training.steps=2", data=[story], folder=tmp_path / "run")
    old = (folder / "model.safetensors").read_bytes()
    more = train_recipe(recipes.find("gpt"), TrainingInputs([story]), [*settings, "training.steps=3"], folder)
    for _ in takewhile(lambda report: report.step < 3, more):
        pass
    more.close()
    assert (folder / "model.safetensors").read_bytes() == old
    assert not (folder / "MANIFEST.json").exists()
    train_here("gpt", *settings, "training.steps=3", data=[story], folder=folder)
    assert (folder / "model.safetensors").read_bytes() != old
    assert (folder / "MANIFEST.json").exists()


def test_more_steps_go_on(command, trained, tiny, tmp_path):
    folder = tmp_path / "longer"
    shutil.copytree(trained, folder)
    done = command("train", "translator", "-o", folder, "training.steps=62", *tiny, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"] == 62
    assert "resuming from" in done.stderr


def test_run_translates_arguments_and_lines(here, trained):
    one = here("run", trained, "the boy eats bread", "the girl sings")
    assert one.returncode == 0
    assert len(one.stdout.splitlines()) == 2
    assert "standard input is empty" in here("run", trained, stdin=" \n\n").stderr
    lines = here("run", trained, stdin="the boy eats bread \n \nthe girl sings\n")
    assert [line for line in lines.stdout.split("\n")[:3] if line] == one.stdout.splitlines()
    assert lines.stdout.split("\n")[1] == ""


def test_run_as_json_has_scores_and_alignment(here, trained):
    done = here("run", trained, "the boy eats bread", "--num-beams", 3, "--n-best", 2, "--json")
    answer = json.loads(done.stdout)
    assert answer["source"] == "the boy eats bread"
    assert len(answer["translations"]) == 2
    first = answer["translations"][0]
    assert {"text", "score", "log_probability", "ended", "alignment"} == first.keys()
    if first["alignment"] is not None:
        assert first["alignment"]["source"][-1] == "</s>"
        assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in first["alignment"]["weights"])


def test_cost_of_layers_and_of_a_model(here, trained, tmp_path):
    done = here("cost", "--width", 16, "--heads", 2, "--longest", 128, "-o", tmp_path / "cost.svg")
    assert done.returncode == 0, done.stderr
    assert "grows with n to the power" in done.stdout
    assert (tmp_path / "cost.svg").read_text().startswith("<?xml")
    found = json.loads(here("cost", "--width", 16, "--heads", 2, "--longest", 128, "--json").stdout)
    assert [one["length"] for one in found["measured"] if one["kind"] == "recurrence"] == [32, 64, 128]
    rows = json.loads(here("cost", trained, "--source", 9, "--target", 5, "--json").stdout)
    assert all(row["formula"] in (None, row["measured"]) for row in rows)


def test_run_draws_a_picture(here, trained, tmp_path):
    done = here("run", trained, "the boy eats bread", "-o", tmp_path / "look.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_scores_what_was_held_out_and_the_users_file(here, trained, tmp_path):
    scores = json.loads(here("evaluate", trained, "--json").stdout)
    assert scores["pairs"] == 40
    assert 0 <= scores["alignment_error_rate"] <= 1
    assert scores["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    file = tmp_path / "test.tsv"
    file.write_text("the boy eats bread\tel niño come pan\n", encoding="utf-8")
    assert json.loads(here("evaluate", trained, file, "--json").stdout)["pairs"] == 1


def test_info_verifies_and_counts(here, trained):
    facts = json.loads(here("info", trained, "--json").stdout)
    assert facts["kind"] == "transformer"
    assert facts["verified"] is True
    assert facts["model"]["width"] == 32
    assert facts["parameters"] > 10_000
    lines = here("info", trained).stdout.splitlines()
    assert "model" in lines  # what stands in it follows, a fact a line
    assert ["width", "32"] in [line.split() for line in lines if line.startswith("  ")]
    assert not any("{" in line for line in lines)
    sizes = lines[lines.index("files") + 1 : -1]
    assert len({line.rindex(" ") for line in sizes}) == 1  # one column, however long the names


def test_the_versions_are_told(here):
    done = here("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"regard [\d.]+, torch [\w.+]+, Python [\d.]+\n", done.stdout), done.stdout


def test_recipes_lists_and_shows(here):
    assert "translator" in here("recipes").stdout
    assert "translator" in json.loads(here("recipes", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "tranlator"], "no recipe is called 'tranlator'; did you mean translator?"),
        (["train", "translator", "training.step=5"], "unknown key training.step; did you mean training.steps"),
        (["train", "translator", "training.steps=many"], "training.steps: got 'many', wanted a valid integer"),
        (["train", "translator", "training.steps=0"], "training.steps: got '0', wanted greater than or equal to 1"),
        (["train", "translator", "model.heads=3"], "does not divide into model.heads=3"),
        (["train", "translator", "nowhere.tsv"], "nowhere.tsv"),
        (["train", "translator", "model.target_vocab_size=500"], "one tokenizer serves both sides"),
        (["train", "translator", "model.vocab_size=500"], "fewer data.whole_word_tokens"),
        (["train", "translator", "-o", "/dev/null/x"], "cannot write to /dev/null/x"),
        (["run", "nowhere", "hello"], "there is no folder or file nowhere"),
        (["run", "nowhere.gguf", "hello"], "there is no folder or file nowhere.gguf"),
        (["run", "{trained}", "hello", "--num-beams", "0"], "num_beams is 0, wanted 1 to 100,000"),
        (["run", "{trained}", "hello", "--sample", "--temperature", "0"], "temperature is 0.0, wanted more than 0"),
        (["run", "{trained}", "hello", "--sample", "--num-beams", "4"], "two strategies"),
        (
            ["run", "{trained}", "hello", "--temperature", "2", "--num-beams", "3"],
            "--temperature samples",
        ),
        (["run", "{trained}", "hello", "--length-penalty", "2"], "belong to --num-beams"),
        (["run", "{trained}", "hello", "--num-beams", "2", "--length-penalty", "1000"], "length_penalty is 1000.0"),
        (["evaluate", "{trained}", "--limit", "0"], "--limit"),
        (["train", "translator", "-o", "{trained}/checkpoints/.."], "was started with"),
        (["run", "{trained}", ""], "'' has no words; wanted a text"),
        (["run", "{trained}", "the boy", "\n"], "has no words; wanted a text"),
        (["run", "{trained}"], "standard input is empty"),
        (["run", "{trained}", "a", "b", "-o", "x.png"], "a figure shows one text, got 2"),
        (["run", "{trained}", "the boy", "-o", "x.txt"], "x.txt"),
        (["run", "{trained}", "the boy", "-o", "no/where/x.png"], "no/where"),
        (["evaluate", "{trained}", "nowhere.tsv"], "nowhere.tsv"),
        (["evaluate", "{trained}", "data.label=x"], "data.label=x says how files are read, and none is named"),
        (["evaluate", "{trained}", "test.tsv", "data.label=x"], "unknown key data.label"),
        (["info", "{trained}/checkpoints"], "has no MANIFEST.json"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["run", "--beem", "3", "x"], "No such option: --beem"),
        (["run", "--beem", "3", "x"], "See `regard run --help`."),
        (["--beem"], "See `regard --help`."),
    ],
)
def test_a_mistake_gets_one_line_and_exit_2(here, trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    words = [word.replace("{trained}", str(trained)) for word in arguments]
    done = here(*words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    errors = done.stderr.strip().splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert done.stdout == ""
    assert not list(tmp_path.rglob("*.safetensors"))
    assert not list(tmp_path.rglob("x.*"))


def test_bad_lines_are_counted_shown_and_left_out_by_choice(command, tmp_path, tiny):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(NUMBERED.encode() + b"no tab\n\xff\xfe\tbad\n\tempty\n" + NUMBERED.encode())
    stopped = command("train", "translator", file, "-o", tmp_path / "a", *tiny)
    assert stopped.returncode == 2
    assert "pairs.tsv:301: wrong columns" in last_line(stopped)
    assert "data.on_error=skip" in last_line(stopped)
    assert not (tmp_path / "a").exists()  # nothing is left of a run that could not begin
    settings = [word for word in tiny if "sentences" not in word]
    done = command(
        "train", "translator", file, "-o", tmp_path / "a", *settings, "data.on_error=skip", "training.steps=2"
    )
    assert done.returncode == 0, done.stderr
    assert "bad lines left out: 3" in done.stderr
    assert "pairs.tsv:302: invalid UTF-8" in done.stderr


@pytest.mark.parametrize(
    "place", ["tasks.language_modeling.data._tokenized", "tasks.recipe.build", "training.loop.take_parallel_step"]
)
@pytest.mark.parametrize(("broken", "code"), [(KeyboardInterrupt, 130), (OSError("no room"), 2), (MemoryError, 1)])
def test_a_run_that_breaks_off_before_its_first_step_leaves_nothing(
    here, story, tiny_text, tmp_path, monkeypatch, place, broken, code
):
    def breaking(*arguments, **named):
        assert (tmp_path / "run" / "run.json").exists()
        raise broken

    monkeypatch.setattr(f"regard.{place}", breaking)
    done = here("train", "gpt", story, "-o", tmp_path / "run", *tiny_text, "model.vocab_size=300")
    assert done.returncode == code, done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_that_left_the_road_keeps_its_metrics(here, story, tiny_text, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.training.loop.take_parallel_step", lambda *arguments: (math.nan, math.nan))
    done = here("train", "gpt", story, "-o", tmp_path / "run", *tiny_text, "model.vocab_size=300")
    assert "the fifth in a row; there is no checkpoint yet" in last_line(done)
    assert done.returncode == 1
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("skipped") == 5


def test_weights_that_are_not_finite_are_never_saved(here, story, tiny_text, tmp_path):
    rates = ["training.learning_rate=1e38", "training.optimizer=adamw", "training.warmup=0"]
    ends = ["training.checkpoint_every=1", "training.steps=3", "training.minutes=none"]
    done = here("train", "gpt", story, "-o", tmp_path / "run", *tiny_text, "model.vocab_size=300", *rates, *ends)
    assert done.returncode == 1, done.stderr
    assert "are not finite; there is no checkpoint yet" in last_line(done)
    assert not (tmp_path / "run" / "MANIFEST.json").exists()
    assert not list((tmp_path / "run" / "checkpoints").glob("step-*"))


def test_two_parallel_files_train(command, tmp_path, tiny):
    (tmp_path / "train.en").write_text("".join(f"the number {n} is here\n" for n in range(300)))
    (tmp_path / "train.es").write_text("".join(f"el número {n} está aquí\n" for n in range(300)))
    done = command("train", "translator", "train.en", "train.es", "-o", "r", *tiny, "training.steps=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_damaged_folder_is_named(here, trained, tmp_path):
    import shutil

    folder = tmp_path / "damaged"
    shutil.copytree(trained, folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(1000)
    done = here("run", folder, "the boy eats bread")
    assert done.returncode == 2
    assert "model.safetensors is damaged: 1000 bytes" in last_line(done)


def test_debug_shows_the_traceback(here):
    done = here("--debug", "run", "nowhere", "hello")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "there is no folder or file nowhere" in last_line(done)


def test_sigterm_saves_says_so_and_leaves_with_143(tmp_path, tiny):
    words = ["train", "translator", "-o", "r", *tiny, "training.steps=100000", "training.checkpoint_every=2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not list((tmp_path / "r/checkpoints").glob("step-*")) and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 143, errors
    assert "and saved; the same command resumes the run" in errors
    assert list((tmp_path / "r/checkpoints").glob("step-*"))


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (["train", "gpt", "x.txt", "--steps", "10"], "--steps; it is a setting: training.steps=10"),
        (["train", "gpt", "x.txt", "--steps=10"], "--steps; it is a setting: training.steps=10"),
        (["train", "gpt", "x.txt", "--training.steps", "10"], "--training.steps; it is a setting: training.steps=10"),
        (["train", "gpt", "--learning-rate", "1e-3"], "--learning-rate; it is a setting: training.learning_rate=1e-3"),
        (["train", "gpt", "--learning-rat", "1e-3"], "--learning-rat; it is a setting: training.learning_rate=1e-3"),
        (["train", "gpt", "--layers"], "--layers; it is a setting: model.layers=4"),
        (["train", "captioner", "--dropout", "0.2"], "--dropout; it is a setting: model.dropout=0.2"),
        (["train", "gpt", "--lr", "1e-3"], "--lr; it is a setting: training.learning_rate=1e-3"),
        (["train", "--seed", "3"], "--seed; it is a setting: training.seed=3"),
        (["demo", "--steps", "5"], "--steps; it is a setting: training.steps=5"),
    ],
)
def test_an_option_that_is_a_setting_is_led_to_it(here, arguments, setting):
    done = here(*arguments)
    assert (done.returncode, done.stderr) == (2, f"error: there is no option {setting}\n")


@pytest.mark.parametrize("arguments", [["train", "gpt", "--nonsense", "1"], ["run", "m", "--steps", "1"]])
def test_another_unknown_option_stays_one(here, arguments):
    assert "No such option: --" in here(*arguments).stderr


def test_a_wrong_key_names_three_and_where_all_are(here, tmp_path):
    done = here("train", "gpt", "model.colour=3", "-o", tmp_path / "run")
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown key model.colour; ")
    assert done.stderr.count("model.") + done.stderr.count("training.") + done.stderr.count("data.") <= 4
    assert "`regard recipes gpt --settings` lists all" in done.stderr
    done = here("train", "gpt", "training=3", "-o", tmp_path / "run")
    assert "training is a section and takes no value; it has 25 keys, such as training.steps, " in done.stderr
