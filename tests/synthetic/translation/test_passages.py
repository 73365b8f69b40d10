"""Passages: several sentences in one pair."""

from regard.synthetic.translation.passages import joined, passages
from regard.synthetic.translation.sentences import sentence, sentences


def test_one_sentence_is_the_sentence_itself():
    assert list(passages(20, most=1)) == list(sentences(20))


def test_passages_have_one_to_most_sentences_and_share_none():
    found = list(passages(40, most=4, split="validation"))
    used = [sentence(4 * index + place, split="validation") for index in range(40) for place in range(index % 4 + 1)]
    words = [word for pair in found for word in pair.source_words if word != "."]
    assert words == [word for pair in used for word in pair.source_words]
    assert found[10:13] == list(passages(3, most=4, start=10, split="validation"))


def test_the_links_move_with_their_sentence():
    one, other = sentence(0), sentence(1)
    both = joined([one, other])
    source, target = both.source_words, both.target_words
    assert {(source[i], target[j]) for i, j in both.sure} == {
        (pair.source_words[i], pair.target_words[j]) for pair in (one, other) for i, j in pair.sure
    } | ({(".", ".")} if one.source_words[-1] != "?" else set())
    assert both.sure <= both.possible


def test_a_question_needs_no_full_stop():
    question = next(pair for pair in sentences(200) if pair.source_words[-1] == "?")
    plain = next(pair for pair in sentences(200) if pair.source_words[-1] != "?")
    assert joined([question, plain]).source == f"{question.source} {plain.source}"
    assert joined([plain, question]).source == f"{plain.source}. {question.source}"
    assert joined([plain, question]).target == f"{plain.target}. {question.target}"
