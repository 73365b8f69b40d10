"""A table that begins with word vectors: the right rows, at the size the table had, and nothing else."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import regard
from regard.data.readers.word_vectors import WordVectors, write_vectors
from regard.errors import ConfigError, DataError
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.warm_start import init_embeddings, load_word_vectors, warm_start_embeddings

NAMES = [None, "walk", None, "Boy", "sing", "nowhere"]
VECTORS = WordVectors(
    ["boy", "sing", "walk", "Sing"], np.random.default_rng(5).normal(3, 7, size=(4, 8)).astype(np.float32)
)


def table():
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(1)) * 0.02


def test_rows_of_the_same_words_are_filled_at_the_deviation_they_had():
    weight, before = table(), table()
    assert init_embeddings(weight, NAMES, VECTORS) == 3
    filled = [1, 3, 4]
    given = torch.from_numpy(VECTORS.matrix[[2, 0, 1]])
    assert_close(weight[filled], given * (before[filled].std(correction=0) / given.std(correction=0)))
    assert_close(weight[filled].std(correction=0), before[filled].std(correction=0))
    assert torch.equal(weight[[0, 2, 5]], before[[0, 2, 5]])


def test_a_word_as_it_is_written_goes_before_its_small_letters():
    weight = torch.ones(1, 8).cumsum(1)
    init_embeddings(weight, ["Sing"], VECTORS)
    cosine = torch.cosine_similarity(weight[0], torch.from_numpy(VECTORS.matrix[3]), dim=0)
    assert float(cosine) == pytest.approx(1)


def test_no_word_in_common_leaves_the_table_as_it_is():
    weight = table()
    assert init_embeddings(weight, [None, "x", "y"], VECTORS) == 0
    assert torch.equal(weight, table())


def test_another_width_names_both():
    with pytest.raises(
        ConfigError, match="the word vectors have 8 dimensions and the model's width is 6; give model.width=8"
    ):
        init_embeddings(torch.zeros(6, 6), NAMES, VECTORS)


def test_vectors_without_a_difference_are_refused():
    with pytest.raises(ConfigError, match="all numbers in the vectors .* are equal"):
        init_embeddings(table(), NAMES, WordVectors(["walk"], np.ones((1, 8), np.float32)))


def test_a_parameter_that_learns_is_filled_and_goes_on_learning(tmp_path):
    write_vectors(tmp_path / "v.txt", VECTORS)
    model = Transformer(TransformerConfig(vocab_size=6, width=8, heads=2, layers=1))
    said = load_word_vectors(model, NAMES, tmp_path / "v.txt")
    assert said == "3 of 6 embeddings initialized with the vectors of v.txt"
    assert model.embedding.weight.requires_grad
    assert model.embedding.weight.is_leaf
    with pytest.raises(ConfigError, match="none of the 1 words"):
        load_word_vectors(model, ["x"], tmp_path / "v.txt")


def test_a_missing_file_is_said_before_any_training(tmp_path):
    assert warm_start_embeddings(None, None) is None
    with pytest.raises(DataError, match="no such file"):
        warm_start_embeddings(tmp_path / "v.txt", None)


def similarity(folder, one, other):
    runner = regard.load(folder)
    names = runner.tokenizer.single_token_words()
    rows = [runner.model.input_embeddings[names.index(word)] for word in (one, other)]
    return float(torch.cosine_similarity(*rows, dim=0).detach())


@pytest.mark.parametrize("recipe", ["translator", "gpt"])
def test_training_begins_with_them(here, tmp_path, tiny, story, tiny_text, recipe):
    one, other = ("the", "is") if recipe == "translator" else ("old", "captain")
    settings = tiny if recipe == "translator" else [story, *tiny_text]
    vectors = np.random.default_rng(1).normal(size=(2, 32)).astype(np.float32)
    vectors[1] = vectors[0]
    write_vectors(tmp_path / "glove.txt", WordVectors([one, other], vectors))
    run = ("train", recipe, *settings, "training.steps=1", "training.learning_rate=1e-5")
    done = here(*run, "-o", tmp_path / "with", f"data.word_vectors={tmp_path / 'glove.txt'}")
    assert done.returncode == 0, done.stderr
    assert "embeddings initialized with the vectors of glove.txt" in done.stderr
    assert similarity(tmp_path / "with", one, other) > 0.99


def test_vectors_of_another_width_are_refused_before_a_step(here, tmp_path, story, tiny_text):
    write_vectors(tmp_path / "v.txt", WordVectors(["old"], np.arange(8, dtype=np.float32)[None]))
    done = here("train", "gpt", story, *tiny_text, "-o", tmp_path / "r", f"data.word_vectors={tmp_path / 'v.txt'}")
    assert done.returncode == 2
    assert "the word vectors have 8 dimensions and the model's width is 32; give model.width=8" in done.stderr
    assert not (tmp_path / "r").exists()
