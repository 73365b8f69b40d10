"""What several tests share: tiny trained folders, made once, and commands run as a user runs them."""

import io
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from regard.cli import main
from tests.forks import Forks

# One thread a process: two tests run side by side, and two threads each would wait for one another on two cores.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
# The same examples each time, and no bound on time: a test must not depend on chance or on how busy the machine is.
settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("chance", settings.get_profile("suite"), derandomize=False)  # HYPOTHESIS_PROFILE=chance
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# A model small enough to train in seconds; the same settings as a user would give them.
TINY = [
    "model.width=32",
    "model.heads=2",
    "model.layers=1",
    "model.feed_forward=64",
    "model.vocab_size=400",
    "data.num_pairs=2000",
    "data.whole_word_tokens=100",
    "data.validation=40",
    "training.max_tokens=512",
    "training.evaluate_examples=20",
    "training.warmup=5",
]


@pytest.fixture(scope="session")
def tiny() -> list[str]:
    return TINY


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """The tokenized data of all tests, away from the user's own cache."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("REGARD_CACHE")
    os.environ["REGARD_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["REGARD_CACHE"]
    else:
        os.environ["REGARD_CACHE"] = before


@pytest.fixture(scope="session")
def forks(cache):
    """Starts `regard …` in processes of their own."""
    found = Forks()
    yield found
    found.close()


@pytest.fixture(scope="session")
def command(forks):
    """Run `regard …` in a process of its own."""
    return forks.run


@pytest.fixture
def here(monkeypatch, capsys):
    """The same in this process: ten times as fast, since torch is there already."""

    def run(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess:
        words = list(map(str, arguments))
        monkeypatch.setattr(sys, "argv", ["regard", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        monkeypatch.setenv("REGARD_DEBUG", "")  # --debug sets it; undone after the test, also where it was not set
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main()
        output = capsys.readouterr()
        return subprocess.CompletedProcess(words, leaving.value.code or 0, output.out, output.err)

    return run


@pytest.fixture(scope="session")
def train_here(tmp_path_factory):
    """Train a recipe in this process into a new folder."""
    from regard import recipes
    from regard.tasks.recipe import TrainingInputs, train_recipe

    def train(recipe, *settings, data=(), start=None, folder=None):
        folder = folder or tmp_path_factory.mktemp("runs") / Path(recipe).name
        inputs = TrainingInputs([Path(one) for one in data], start)
        for report in train_recipe(recipes.find(recipe), inputs, settings, folder):
            train.notes.append(report.note)
        return folder

    train.notes = []
    return train


@pytest.fixture(scope="session")
def trained(train_here):
    """A translator of the built-in sentences."""
    return train_here("translator", "training.steps=60", "training.evaluate_every=15", *TINY)


# The same for a language model.
TINY_TEXT = [
    "model.width=32",
    "model.heads=2",
    "model.layers=1",
    "model.context=32",
    "training.max_tokens=512",
    "training.warmup=5",
    "training.evaluate_every=40",
]
PEOPLE = ["the old captain", "a small boy", "the queen of the hill", "my brother", "nobody", "señora Núñez"]
DEEDS = ["walked home", "opened the door", "sang of the sea", "waited for the rain", "read a long letter"]
MANNERS = ["before dawn", "in the winter", "while the dogs slept", "and laughed", "without a word — twice"]


@pytest.fixture(scope="session")
def story(tmp_path_factory) -> Path:
    """A text file of 600 sentences, five a line."""
    chance = random.Random(3)
    sentences = [" ".join(map(chance.choice, (PEOPLE, DEEDS, MANNERS))).capitalize() + "." for _ in range(600)]
    path = tmp_path_factory.mktemp("texts") / "story.txt"
    lines = (" ".join(sentences[start : start + 5]) for start in range(0, len(sentences), 5))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def novel(train_here, story):
    """A language model of the story: byte-level BPE, a context of 32 tokens."""
    return train_here("gpt", *TINY_TEXT, "model.vocab_size=300", "training.steps=120", data=[story])


@pytest.fixture(scope="session")
def letters(train_here, story):
    """The same with a token a character."""
    return train_here("gpt", *TINY_TEXT, "data.tokenizer=characters", "training.steps=120", data=[story])


@pytest.fixture(scope="session")
def tiny_text() -> list[str]:
    return TINY_TEXT


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


# The same for models that read: small enough to train in a second.
TINY_READER = ["model.width=32", "model.heads=2", "model.layers=1", "model.context=48", "training.warmup=2"]
FEW_STORIES = ["model.vocab_size=300", "data.stories=100", "training.max_tokens=512", "training.evaluate_every=100"]
GOOD, BAD = ("good", "fine", "lovely", "great"), ("bad", "poor", "awful", "dull")


@pytest.fixture(scope="session")
def tiny_reader() -> list[str]:
    return TINY_READER


@pytest.fixture(scope="session")
def reader(train_here):
    """A folder that `regard train bert` made of some stories."""
    return train_here("bert", *TINY_READER, *FEW_STORIES, "training.steps=12")


@pytest.fixture(scope="session")
def reviews(tmp_path_factory) -> Path:
    """A table of 200 short texts that are bad or good."""
    chance = random.Random(5)
    path = tmp_path_factory.mktemp("texts") / "reviews.csv"
    rows = [
        f"the {chance.choice(['film', 'play', 'song'])} number {row} was {chance.choice((BAD, GOOD)[row % 2])},"
        f"{('bad', 'good')[row % 2]}\n"
        for row in range(200)
    ]
    path.write_text("".join(["text,label\n", *rows]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def sentiment(train_here, reader, reviews):
    """A folder that `regard train classifier reviews.csv --from READER` made."""
    return train_here("classifier", "training.steps=6", data=[reviews], start=reader)


@pytest.fixture(scope="session")
def duplicates(train_here, reader, tmp_path_factory):
    """A folder of a classifier of pairs that was trained on rows of at most 12 pieces, none of them longer."""
    path = tmp_path_factory.mktemp("texts") / "pairs.csv"
    rows = [
        f"the cat {row % 9},the {('dog', 'cat')[row % 2]} {row % 9},{('no', 'yes')[row % 2]}\n" for row in range(120)
    ]
    path.write_text("".join(["text,second,label\n", *rows]), encoding="utf-8")
    short = ("data.max_length=12", "data.too_long=stop")
    return train_here("classifier", "training.steps=2", *short, data=[path], start=reader)


@pytest.fixture(scope="session")
def people(tmp_path_factory) -> Path:
    """A CoNLL file of 120 sentences with names."""
    chance = random.Random(6)
    path = tmp_path_factory.mktemp("texts") / "people.conll"
    sentences = [
        f"{chance.choice(['Ada', 'Bob', 'Eve'])} B-PER\n{chance.choice(['Lovelace', 'Byron'])} I-PER\nlived O\nin O\n"
        f"{chance.choice(['London', 'Paris'])} B-LOC\nin O\n{1800 + row} O\n. O\n\n"
        for row in range(120)
    ]
    path.write_text("".join(sentences), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def names(train_here, people):
    """A folder that `regard train tagger people.conll` made."""
    return train_here("tagger", *TINY_READER, "model.vocab_size=300", "training.steps=40", data=[people])


@pytest.fixture(scope="session")
def story_pieces():
    """Pieces of the words of the stories."""
    from regard.synthetic.stories.story import Stories
    from regard.tokenizers.wordpiece import WordPieceTokenizer

    return WordPieceTokenizer.train([story.text for story in Stories().stories(0, 200)], 300)


@pytest.fixture(scope="session")
def make_reader(story_pieces):
    """What runs a model of this kind whose weights are large and random, so that differences show."""
    from regard.models import model_class
    from regard.tasks import find_task

    tasks = {"bert-pretraining": "masked-lm", "bert-masked-lm": "masked-lm", "bert-token-classification": "tagging"}

    def make(kind, tokenizer=story_pieces, **facts):
        torch.manual_seed(2)
        model = model_class(kind)
        special_ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id", "mask_id")}
        sizes = {"vocab_size": tokenizer.vocab_size, "context": 40, "width": 32, "heads": 2, "layers": 2}
        built = model(model.config_class(**(sizes | {"special_ids": special_ids} | facts))).eval()
        with torch.no_grad():
            for name, weight in built.named_parameters():
                if weight.dim() > 1:
                    weight.normal_(std=1.0 if "embedding.tokens" in name else 0.3)
                else:
                    weight.normal_(mean=float("norm" in name and name.endswith("weight")), std=0.05)
        return find_task(tasks.get(kind, "classification")).pipeline_class(kind, built, tokenizer)

    return make
