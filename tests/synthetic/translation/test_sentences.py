"""What holds for every sentence the world makes."""

import re
import sys
from itertools import chain

import pytest

from regard.errors import ConfigError
from regard.synthetic.translation.dictionary import dictionary
from regard.synthetic.translation.lexicon import Noun, reserved
from regard.synthetic.translation.plans import Plan, combinations
from regard.synthetic.translation.sampling import plan
from regard.synthetic.translation.sentences import LEMMAS, Pair, main, sentence, sentences

WORDS = dictionary()


@pytest.fixture(scope="module")
def train() -> list[Pair]:
    return list(sentences(40_000, seed=1))


@pytest.fixture(scope="module")
def validation() -> list[Pair]:
    return list(sentences(8_000, seed=1, split="validation"))


def test_same_arguments_same_sentence() -> None:
    forward = [sentence(index, seed=3) for index in range(50)]
    backward = [sentence(index, seed=3) for index in reversed(range(50))]
    assert forward == backward[::-1]
    assert forward[20:30] == list(sentences(10, start=20, seed=3))


def test_seed_and_split_change_the_sentences() -> None:
    drawn = [[p.source for p in sentences(50, seed=seed)] for seed in (0, 1)]
    assert drawn[0] != drawn[1]
    assert drawn[0] != [p.source for p in sentences(50, split="validation")]


def test_sentences_are_the_same_in_every_process() -> None:
    """Pinned, so that neither Python's random hashes nor a new version can change the data unnoticed."""
    assert sentence(7).source == "she is hungry today"
    assert sentence(7, split="validation").source == "he is sending their white flowers to the farmer"


def test_unknown_split() -> None:
    with pytest.raises(ConfigError, match="train, validation"):
        sentence(0, split="test")  # type: ignore[arg-type]


def test_an_english_sentence_has_one_translation(train: list[Pair], validation: list[Pair]) -> None:
    known: dict[str, str] = {}
    for found in chain(train, validation, sentences(60_000, seed=2)):
        assert known.setdefault(found.source, found.target) == found.target


def test_text_is_the_words_as_one_types_them(train: list[Pair]) -> None:
    for found in train[:5000]:
        assert " ".join(found.source_words).replace(" ?", "?") == found.source
        assert " ".join(found.target_words).replace(" ?", "?").replace("¿ ", "¿") == found.target
        assert found.source == found.source.lower()
        assert found.source.endswith("?") == found.target.startswith("¿") == found.target.endswith("?")
        assert not set(found.source + found.target) & set(".,;:'\"!")


def test_spanish_contracts_and_keeps_el_agua(train: list[Pair]) -> None:
    for found in train:
        text = f" {found.target} "
        assert not re.search(r" (a|de) el ", text), text
        assert not re.search(r" (la|una) (agua|águila|aula) ", text), text
        assert not re.search(r" (el|un) (aguas|águilas|aulas) ", text), text
        assert not re.search(r" y h?i", text), text


def test_links_stay_inside_the_sentence(train: list[Pair], validation: list[Pair]) -> None:
    for found in train[:20_000] + validation:
        assert found.sure <= found.possible
        assert all(0 <= i < len(found.source_words) for i, _ in found.possible)
        assert all(0 <= j < len(found.target_words) for _, j in found.possible)


def test_every_word_is_linked(train: list[Pair]) -> None:
    for found in train[:20_000]:
        assert {i for i, _ in found.possible} == set(range(len(found.source_words))), found
        assert {j for _, j in found.possible} == set(range(len(found.target_words))), found


def test_sure_links_join_words_of_the_dictionary(train: list[Pair]) -> None:
    """Each noun and adjective is surely linked to a form of its own translation, and to nothing else."""
    meanings = _meanings()
    for found in train[:20_000]:
        for at, word in enumerate(found.source_words):
            linked = {found.target_words[j] for i, j in found.sure if i == at}
            if word in meanings:
                assert linked, (word, found)
                assert linked <= meanings[word], (word, found)


def _meanings() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for noun in WORDS.nouns.values():
        for number in (0, 1):
            found.setdefault(noun.english[number], set()).add(noun.spanish[number])
    for adjective in WORDS.adjectives.values():
        forms = {form.target[0] for form in adjective.forms}
        found.setdefault(adjective.lemma, set()).update(forms)
    for frame in (frames[0] for frames in WORDS.frames):
        verb = frame.verb
        for form in (*verb.present, *verb.past, *verb.base_present, *verb.base_past, verb.gerund):
            found.setdefault(form.source[0], set()).add(form.target[0])
    return found


def test_adjectives_cross_their_nouns(train: list[Pair]) -> None:
    crossing = [found for found in train[:2000] if _crosses(found)]
    assert len(crossing) > 500


def _crosses(found: Pair) -> bool:
    return any(i < k and j > m for i, j in found.sure for k, m in found.sure)


def test_length_has_a_tail(train: list[Pair]) -> None:
    lengths = [len(found.source_words) for found in train]
    assert 6 < sum(lengths) / len(lengths) < 9
    assert sum(3 <= length <= 12 for length in lengths) > 0.9 * len(lengths)
    assert 18 <= max(lengths) <= 32


def test_splits_share_no_sentence(train: list[Pair], validation: list[Pair]) -> None:
    assert not {found.source for found in train} & {found.source for found in validation}


def test_only_validation_plans_hold_reserved_combinations() -> None:
    for index in range(5000):
        assert not _reserved(plan(index, 5, "train"))
        assert _reserved(plan(index, 5, "validation"))


def _reserved(chosen: Plan) -> bool:
    return any(reserved(word, noun) for word, noun in combinations(chosen))


def test_a_plan_shows_itself_in_few_words() -> None:
    assert all(len(repr(plan(index, 5, "train"))) < 5000 for index in range(200))


def test_nobody_eats_bread_in_training(train: list[Pair], validation: list[Pair]) -> None:
    """Read off the text, so that a combination the plan forgot to name is found too."""
    eating = re.compile(r"\b(eat|eats|ate|eating)( (the|my|your|his|her|our|their|this|that))?( \w+)? bread\b")
    assert not any(eating.search(found.source) for found in train)
    assert any(eating.search(found.source) for found in validation)
    assert reserved("eat", "bread")


def test_the_lecture_sentence_is_validation(train: list[Pair]) -> None:
    assert reserved("eat", "bread")
    assert "we are eating bread" not in {each.source for each in train}


def test_every_word_of_validation_occurs_in_training(train: list[Pair], validation: list[Pair]) -> None:
    for side in ("source_words", "target_words"):
        known = {word for found in train for word in getattr(found, side)}
        assert {word for found in validation for word in getattr(found, side)} <= known


def test_every_lemma_occurs_in_training(train: list[Pair]) -> None:
    known = {word for found in train for word in found.source_words}
    assert {word for names in LEMMAS.values() for lemma in names for word in lemma.split()} <= known


def test_there_are_more_than_three_hundred_lemmas() -> None:
    assert len({lemma for names in LEMMAS.values() for lemma in names}) > 300
    assert len(LEMMAS["noun"]) > 150
    assert len(LEMMAS["verb"]) > 80
    assert len(LEMMAS["adjective"]) > 50


def test_there_are_millions_of_sentences() -> None:
    """Counts only `<noun> <verb> <noun>` in training: one person, one act, no adjective, place or question."""
    first_frames = {frames[0].verb.lemma.split()[0]: frames[0] for frames in WORDS.frames}
    count = sum(
        _phrases(frame.subjects, "subject") * _phrases(frame.objects[0], "object") * len(frame.verb.tenses)
        for frame in first_frames.values()
        if frame.human and not frame.verb.flags & {"new", "lay"} and frame.verb.preposition is None
    )
    assert count > 25_000_000


def _phrases(nouns: tuple[Noun, ...], role: str) -> int:
    return len({(noun, *choice) for noun in nouns for choice in noun.determiners[role]})


def test_sentences_hardly_repeat(train: list[Pair]) -> None:
    assert len({found.source for found in train}) > 0.9 * len(train)


def test_no_frame_is_empty_in_training() -> None:
    for frames in WORDS.frames:
        for frame in frames:
            assert bool(frame.objects[0]) or not frame.objects[1], frame.verb.lemma


def test_company_is_never_an_object_in_disguise() -> None:
    """`dances with the boy` has one plan only, or the split could leak (dance with, boy) into training."""
    verbs = {frames[0].verb.lemma for frames in WORDS.frames}
    alone = {frame.verb for frames in WORDS.frames for frame in frames if not frame.objects[0]}
    assert not [verb for verb in alone if "along" in verb.flags and f"{verb.lemma} with" in verbs]


def test_ambiguous_pasts_are_never_written(train: list[Pair]) -> None:
    """`i read` may be now or then, so `read`, `put` and `cut` stand in the progressive there."""
    for found in train:
        assert not re.search(r"\b(i|you|we|they) (read|put|cut)\b", re.sub(r"\b(do|did) (not )?\w+ ", "", found.source))


def test_sample_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sentences", "--count", "3", "--split", "validation"])
    main()
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == [found.source for found in sentences(3, split="validation")]
    assert all(re.fullmatch(r"(\d+[-~]\d+ ?)+", row[2]) for row in rows)
