"""Tagged sentences, split: which tags there are, and what is wrong with them."""

import pytest

from regard.errors import DataError
from regard.tasks.tagging.data import TaggedDataConfig, read_tagged_corpus


@pytest.fixture
def conll(tmp_path):
    """A file of sentences, each "word/tag word/tag"."""

    def write(sentences, name="data.conll"):
        path = tmp_path / name
        blocks = ("\n".join(word.replace("/", " ") for word in sentence.split()) for sentence in sentences)
        path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
        return path

    return write


def some(count=60):
    return [f"Ada/B-PER {number}/O sleeps/I-PER" for number in range(count)]


def test_outside_comes_first_and_the_rest_by_the_alphabet(conll):
    found = read_tagged_corpus([conll(some())], TaggedDataConfig())
    assert found.labels == ("O", "B-PER", "I-PER")
    assert len(found.training) + len(found.validation) == 60
    assert found.notes == []


def test_a_sentence_is_on_one_side(conll):
    found = read_tagged_corpus([conll(some() * 3)], TaggedDataConfig(validation=0.3))
    assert not {one.words for one in found.training} & {one.words for one in found.validation}


def test_a_tag_that_is_held_out_alone_is_told_and_no_error(conll):
    found = read_tagged_corpus([conll([*some(), *(f"odd/B-X{n} {n}/O" for n in range(30))])], TaggedDataConfig())
    assert len(found.labels) == 33
    assert found.notes[0].startswith("nothing to train on for B-X")


def test_a_dev_file_is_found_again_from_another_folder(conll, tmp_path, monkeypatch):
    training, _ = conll(some()), conll(["Ada/B-PER"], "dev.conll")
    monkeypatch.chdir(tmp_path)
    written = TaggedDataConfig(dev="dev.conll").model_dump(mode="json")
    monkeypatch.chdir("/")
    assert len(read_tagged_corpus([training], TaggedDataConfig.model_validate(written)).validation) == 1


def test_mistakes_are_named(conll):
    dev = conll(["Ada/B-PER", "Ada/B-PER Rome/B-LOC"], "dev.conll")
    with pytest.raises(DataError, match=r"dev.conll: 'Rome' in sentence 2 has the tag 'B-LOC'.*one of O, B-PER, I-PER"):
        read_tagged_corpus([conll(some())], TaggedDataConfig(dev=str(dev)))
    with pytest.raises(DataError, match="all words have the label 'O'; wanted two tags"):
        read_tagged_corpus([conll([f"a/O {n}/O" for n in range(60)])], TaggedDataConfig())
    with pytest.raises(DataError, match="1 sentences to train on and 0 held out: too few"):
        read_tagged_corpus([conll(some(1))], TaggedDataConfig(validation=0.001))
