"""Sentence pairs made ready: the settings they are read by, and the split, which is the same for training and test."""

import pytest

from regard.data.splits import validation_fraction
from regard.errors import ConfigError
from regard.tasks.translation.data import PairFiles, SyntheticPairs, TranslationDataConfig, open_corpus


def test_defaults():
    config = TranslationDataConfig()
    assert (config.on_error, config.max_length, config.validation) == ("stop", 250, 2000)


def test_every_pair_is_on_one_side_and_no_source_on_both(tmp_path):
    file = tmp_path / "pairs.tsv"
    pairs = [(f"source {n // 2}", f"target {n}") for n in range(400)]
    file.write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    corpus = PairFiles([file], TranslationDataConfig(validation=1000))
    training, validation = list(corpus.training()), list(corpus.validation())
    assert sorted(training + validation) == sorted(pairs)
    assert 10 < len(validation) < 80  # about a tenth, however many are wanted
    assert not {source for source, _ in training} & {source for source, _ in validation}


def test_synthetic_pairs_are_as_many_as_wanted():
    corpus = SyntheticPairs(TranslationDataConfig(num_pairs=30, validation=7, max_sentences=2))
    assert len(list(corpus.training())) == 30
    validation = list(corpus.validation())
    assert len(validation) == 7
    assert not set(validation) & set(corpus.training())


def test_a_file_of_the_users_own_is_the_validation_part(tmp_path):
    for name, pairs in (("train", 40), ("val", 6)):
        (tmp_path / f"{name}.de").write_text("".join(f"{name} Satz {n}\n" for n in range(pairs)))
        (tmp_path / f"{name}.en").write_text("".join(f"{name} sentence {n}\n" for n in range(pairs)))
    dev = (tmp_path / "val.de", tmp_path / "val.en")
    corpus = PairFiles([tmp_path / "train.de", tmp_path / "train.en"], TranslationDataConfig(dev=dev))
    assert list(corpus.validation()) == [(f"val Satz {n}", f"val sentence {n}") for n in range(6)]
    assert len(list(corpus.training())) == 40
    assert {*dev} <= {*corpus.files}  # the cache is keyed by them
    with pytest.raises(ConfigError, match=r"data.dev=.*val.de needs training data of yours beside it"):
        open_corpus([], TranslationDataConfig(dev=dev))


@pytest.mark.parametrize(("pairs", "held_out"), [(200, 20), (1000, 100), (29_000, 1450), (125_000, 2000)])
def test_the_share_held_out_fits_the_size(pairs, held_out):
    assert round(validation_fraction(pairs, None) * pairs) == held_out
