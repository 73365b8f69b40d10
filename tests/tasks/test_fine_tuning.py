"""An encoder made ready for a task: what it keeps, what is fresh, and what cannot be."""

import pytest
import torch

import regard
from regard.data.batches import IGNORE_INDEX
from regard.data.readers.conll import TaggedSentence
from regard.errors import ConfigError, InputError
from regard.models import build
from regard.models.bert import BertForSequenceClassificationConfig, BertForTokenClassificationConfig
from regard.tasks.fine_tuning import SMALL, check_lengths, config_with_head, encoder_weights, warm_start
from regard.tasks.recipe import TrainingInputs
from regard.tasks.tagging.data import rows_of


def test_a_score_begins_at_the_mean():
    config = BertForSequenceClassificationConfig(**{**SMALL, "width": 32})
    model = build(config)
    inputs = TrainingInputs()
    warm_start(inputs, encoder_weights(inputs, config, score=3.25))(model)
    assert model.head.bias.tolist() == [3.25]


def test_a_scorer_trained_by_nothing_gives_the_mean(train_here, tiny_reader, tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("text,score\n" + "".join(f"text {n},{n % 7 + 0.5}\n" for n in range(70)))
    still = [*tiny_reader, "model.vocab_size=100", "training.steps=1", "training.learning_rate=1e-9"]
    folder = train_here("classifier", *still, data=[table])
    scorer = regard.load(folder)
    assert scorer.labels == ()
    assert scorer.run("text 5").score == pytest.approx(3.5, abs=0.3)


def test_the_encoder_is_kept_and_the_head_is_fresh(reader):
    inputs = TrainingInputs(pretrained=reader)
    old = inputs.pipeline.model
    for kind, labels in (
        (BertForSequenceClassificationConfig, ("a", "b")),
        (BertForTokenClassificationConfig, ("O", "B-X")),
    ):
        config = config_with_head(kind, inputs).model_copy(update={"labels": labels})
        model = build(config)
        said = warm_start(inputs, encoder_weights(inputs, config))(model)
        assert said.endswith("new: head.weight, head.bias")
        kept = old.encoder.state_dict()
        for name, weight in model.encoder.state_dict().items():
            assert torch.equal(weight, kept[name]), name
        assert hasattr(model.encoder, "pooler") == (kind is BertForSequenceClassificationConfig)


def test_a_head_for_the_same_labels_is_kept_too(sentiment):
    inputs = TrainingInputs(pretrained=sentiment)
    config = config_with_head(BertForSequenceClassificationConfig, inputs)
    same = config.model_copy(update={"labels": ("bad", "good")})
    model = build(same)
    assert "new" not in warm_start(inputs, encoder_weights(inputs, same))(model)
    assert torch.equal(model.head.weight, inputs.pipeline.model.head.weight)
    other = config.model_copy(update={"labels": ("good", "bad")})
    assert "new: head.weight, head.bias" in warm_start(inputs, encoder_weights(inputs, other))(build(other))


def test_what_is_no_encoder_is_named(train_here, story, tiny_text):
    novel = train_here("gpt", *tiny_text, "model.vocab_size=300", "training.steps=1", data=[story])
    with pytest.raises(ConfigError, match=r"--from .*gpt is a gpt, wanted an encoder, such as a BERT"):
        config_with_head(BertForSequenceClassificationConfig, TrainingInputs(pretrained=novel))


def test_rows_that_are_cut_are_counted_or_an_error(story_pieces):
    rows = story_pieces.encode_batch(["the cat", "the cat was too tired to go", "the dog was too tired"], max_length=6)
    assert [row.num_truncated > 0 for row in rows] == [False, True, True]
    assert check_lengths(rows, 6, "cut", "to train on") == [
        "2 of 3 rows to train on have more than 6 tokens: truncated"
    ]
    whole = len(story_pieces.encode("the cat was too tired to go").ids)
    with pytest.raises(InputError, match=rf"row 2 of those held out has {whole} tokens, at most 6 .*1 more rows"):
        check_lengths(rows, 6, "stop", "held out")
    assert check_lengths(rows[:1], 6, "stop", "to train on") == []


# ------------------------------------------------ tagged words


def test_a_label_is_wanted_of_each_words_first_piece(story_pieces):
    sentence = TaggedSentence(("the", "qzx", "cat"), ("O", "B-X", "I-X"))
    rows, _ = rows_of([sentence], ("O", "B-X", "I-X"), story_pieces, 40)
    encoded = story_pieces.encode_words(sentence.words)
    assert len(encoded.ids) > 5
    wanted = [IGNORE_INDEX] * len(encoded.ids)
    for word, number in enumerate((0, 1, 2)):
        wanted[encoded.word_ids.index(word)] = number
    batch = rows.collate(torch.tensor([0]).numpy())
    assert batch.targets[0].tolist() == wanted
    assert batch.tokens == 3


def test_a_long_sentence_is_several_rows_with_all_its_words(story_pieces):
    words = tuple(["the", "tired", "cat", "slept"] * 25)
    labels = tuple(("O", "B-X", "I-X", "O") * 25)
    rows, sentences = rows_of(
        [TaggedSentence(("cat",), ("O",)), TaggedSentence(words, labels)], ("O", "B-X", "I-X"), story_pieces, 16
    )
    assert len(rows) > 7
    assert sentences == [0, *[1] * (len(rows) - 1)]
    assert rows.lengths.max() <= 16
    seen = [
        number for i in range(1, len(rows)) for number in rows.collate(torch.tensor([i]).numpy()).targets[0].tolist()
    ]
    assert [number for number in seen if number != IGNORE_INDEX] == [0, 1, 2, 0] * 25


def test_words_of_which_nothing_is_left_have_no_row(story_pieces):
    sentences = [TaggedSentence(("\u0301",), ("B-X",)), TaggedSentence(("\u0301", "cat"), ("B-X", "O"))]
    rows, owners = rows_of(sentences, ("O", "B-X"), story_pieces, 16)
    assert (len(rows), owners) == (1, [1])
    assert rows.collate(torch.tensor([0]).numpy()).tokens == 1
