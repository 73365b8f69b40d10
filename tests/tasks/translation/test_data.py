"""Sentence pairs made ready: the settings they are read by, and the split, which is the same for training and test."""

from regard.tasks.translation.data import PairFiles, SyntheticPairs, TranslationDataConfig


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
