"""A language model's text made ready: what a tokenizer says of begin and end stays said."""

import json

import pytest

import regard
from regard.data.text_corpus import TextCorpus, TextDataConfig
from regard.tasks.language_modeling.data import _tokenized
from regard.tokenizers.text import TextTokenizer

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.fixture
def chatty(story, tmp_path):
    """A tokenizer's folder that names another end than <|endoftext|>, a begin and a chat template."""
    core = TextTokenizer.train([story.read_text()], 290)._core
    core.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    begin, end = (core.token_to_id(name) for name in ("<|im_start|>", "<|im_end|>"))
    tokenizer = TextTokenizer(core, bos_id=begin, eos_ids=[end, 0], chat_template=TEMPLATE)
    folder = tmp_path / "chatty"
    folder.mkdir()
    for name, content in tokenizer.to_files().items():
        (folder / name).write_bytes(content)
    return folder, tokenizer


def facts(tokenizer):
    return tokenizer.bos_id, tokenizer.eos_ids, tokenizer.chat_template


def test_begin_ends_and_template_stay_over_sittings(here, chatty, story, tiny_text, tmp_path):
    folder, tokenizer = chatty
    run = tmp_path / "run"
    for steps in (2, 4):
        done = here("train", "gpt", story, "-o", run, *tiny_text, f"data.tokenizer={folder}", f"training.steps={steps}")
        assert done.returncode == 0, done.stderr
        writer = regard.load(run)
        assert facts(writer.tokenizer) == facts(tokenizer)
        assert writer.model.config.special_ids.eos_id == tokenizer.eos_id
        assert "tokenizer_config.json" in json.loads((run / "MANIFEST.json").read_text())
        assert (run / "checkpoints" / f"step-{steps}" / "tokenizer_config.json").is_file()


def test_the_cache_tells_ends_apart(chatty, story):
    _, tokenizer = chatty
    corpus = TextCorpus([story], TextDataConfig())
    for end in (tokenizer.eos_id, 0, tokenizer.eos_id):
        found = _tokenized(corpus, "validation", TextTokenizer(tokenizer._core, eos_ids=[end]))
        assert found.tokens(0, len(found))[-1] == end


def test_an_evaluation_in_training_looks_at_a_part_and_says_so(here, novel, story, tiny_text, tmp_path):
    settings = [*tiny_text, "model.vocab_size=300", "training.steps=1"]
    whole = here("train", "gpt", story, "-o", tmp_path / "whole", *settings)
    part = here("train", "gpt", story, "-o", tmp_path / "part", *settings, "data.validation_tokens=100")
    assert "evaluations in training look at" not in whole.stderr
    assert "training evaluates on the first 100 of" in part.stderr
    everything = [json.loads(here("evaluate", tmp_path / name, "--json").stdout) for name in ("whole", "part")]
    assert everything[0]["tokens"] == everything[1]["tokens"] > 1000


def test_a_folder_of_before_still_loads_and_goes_on(here, story, tiny_text, tmp_path):
    run = tmp_path / "run"
    settings = [*tiny_text, "model.vocab_size=300"]
    assert here("train", "gpt", story, "-o", run, *settings, "training.steps=2").returncode == 0
    for folder in (run, *(run / "checkpoints").iterdir()):
        (folder / "tokenizer_config.json").unlink()
        manifest = json.loads((folder / "MANIFEST.json").read_text())
        del manifest["tokenizer_config.json"]
        (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    assert regard.load(run).tokenizer.eos_ids == (0,)
    done = here("train", "gpt", story, "-o", run, *settings, "training.steps=4")
    assert done.returncode == 0, done.stderr
    assert regard.load(run).tokenizer.eos_ids == (0,)
