"""Hidden words filled in: every piece has its share, many at once as each alone."""

import pytest
import torch

import regard
from regard.errors import InputError
from regard.synthetic.stories.story import Stories
from regard.tasks.masked_lm.pipeline import FillMask
from regard.tokenizers.wordpiece import WordPieceTokenizer

TEXTS = [
    "the [MASK] was too tired .",
    "[MASK]",
    "the cat did not cross the road because it was too [MASK] .",
    "a [MASK] and a [MASK], [MASK]!",
]


@pytest.fixture(scope="module", params=["bert-pretraining", "bert-masked-lm"])
def filler(request, make_reader):
    return make_reader(request.param)


def test_run_fills_in(reader):
    filler = regard.load(reader)
    assert isinstance(filler, FillMask)
    found = filler.run(TEXTS[0])
    assert len(found.masks) == 1
    assert len(found.masks[0]) == 5
    assert "[MASK]" not in found.text
    assert filler.run_all(TEXTS, num_predictions=2)[3].text.count("!") == 1


def test_the_shares_of_all_pieces_are_those_of_the_model_without_its_symbols(filler):
    tokenizer = filler.tokenizer
    (place,) = filler.fill([TEXTS[2]], tokenizer.vocab_size)[0].masks
    assert len(place) == tokenizer.vocab_size - len(tokenizer.special_ids)
    assert sum(guess.probability for guess in place) == pytest.approx(1.0, abs=1e-5)
    assert [guess.probability for guess in place] == sorted((guess.probability for guess in place), reverse=True)
    row = tokenizer.encode(TEXTS[2], parse_special_tokens=True)
    with torch.no_grad():
        said = filler.model(torch.tensor([row.ids]), torch.tensor([row.segment_ids]))
    logits = (said[0] if isinstance(said, tuple) else said)[0, row.ids.index(tokenizer.mask_id)]
    words = [number for number in range(tokenizer.vocab_size) if number not in tokenizer.special_ids]
    wanted = dict(
        zip((tokenizer.id_to_token(number) for number in words), logits[words].softmax(-1).tolist(), strict=True)
    )
    assert {guess.token: guess.probability for guess in place} == pytest.approx(wanted, abs=1e-5)


def test_every_mask_has_its_guesses_and_the_likeliest_stand_in_the_text(filler):
    found = filler.fill([TEXTS[3]], 3)[0]
    assert [len(place) for place in found.masks] == [3, 3, 3]
    rest = found.text
    for place in found.masks:
        piece = place[0].token.removeprefix("##")
        assert piece in rest
        rest = rest[rest.index(piece) + len(piece) :]
    assert rest == "!"


def test_a_piece_that_goes_on_stands_at_the_word_before(make_reader):
    filler = make_reader("bert-masked-lm")
    going_on = next(number for number, inside in enumerate(filler.tokenizer.is_continuation) if inside)
    with torch.no_grad():
        filler.model.head.bias[going_on] = 1000.0
    name = filler.tokenizer.id_to_token(going_on)
    found = filler.run("walk [MASK] home")
    assert found.masks[0][0].token == name
    assert found.text == f"walk{name.removeprefix('##')} home"


def test_many_at_once_are_as_each_alone(filler):
    texts = TEXTS * 5
    for text, found in zip(texts, filler.fill(texts), strict=True):
        (alone,) = filler.fill([text])
        assert (found.source, found.text) == (text, alone.text)
        for one, other in zip(found.masks, alone.masks, strict=True):
            assert [guess.token for guess in one] == [guess.token for guess in other]
            assert [guess.probability for guess in one] == pytest.approx(
                [guess.probability for guess in other], abs=1e-5
            )


def test_no_mask_and_one_out_of_reach_are_named(filler):
    with pytest.raises(InputError, match=r"text 2 has no \[MASK\]: 'the cat'; write \[MASK\] where"):
        filler.fill(["a [MASK]", "the cat"])
    with pytest.raises(InputError, match=r"text 1 has more than 40 tokens, and a \[MASK\] beyond"):
        filler.fill(["the cat " * 30 + "[MASK]"])
    assert filler.run("[MASK] " + "the cat " * 30).masks


def test_a_cased_vocabulary_with_other_names(make_reader, tmp_path):
    """Pieces as a vocab.txt has them, whose mask is called <mask>."""
    plain = WordPieceTokenizer.train([story.text.title() for story in Stories().stories(0, 50)], 200, cased=True)
    lines = [plain.id_to_token(number) for number in range(plain.vocab_size)]
    (tmp_path / "vocab.txt").write_text("\n".join("<mask>" if line == "[MASK]" else line for line in lines) + "\n")
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": "<mask>", "do_lower_case": false}')
    filler = make_reader("bert-masked-lm", WordPieceTokenizer.from_folder(tmp_path))
    assert filler.tokenizer.cased
    found = filler.run("The <mask> was Tired")
    assert len(found.masks) == 1
    assert (
        found.text == f"The {found.masks[0][0].token.removeprefix('##')} was Tired" or "##" in found.masks[0][0].token
    )
    with pytest.raises(InputError, match="write <mask> where"):
        filler.run("The [MASK] was Tired")


def test_whether_one_text_follows_another(make_reader):
    filler = make_reader("bert-pretraining")
    found = filler.follows("the cat was tired .", "it slept .")
    row = filler.tokenizer.encode("the cat was tired .", "it slept .")
    with torch.no_grad():
        logits = filler.model(torch.tensor([row.ids]), torch.tensor([row.segment_ids])).next[0]
    assert 0 < found < 1
    assert found == pytest.approx(1 / (1 + torch.exp(logits[1] - logits[0]).item()), abs=1e-6)
    assert found != filler.follows("it slept .", "the cat was tired .")
    assert filler.truncated == 0
    filler.follows("the cat " * 30, "it slept .")
    assert filler.truncated == 1


def test_hidden_words_alone_tell_nothing_of_what_follows(make_reader):
    with pytest.raises(InputError, match="a bert-masked-lm, was not trained on next-sentence prediction"):
        make_reader("bert-masked-lm").follows("a", "b")
