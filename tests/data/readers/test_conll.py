"""CoNLL files: their kinds, what is left out of them, and every bad line."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.conll import TaggedSentence, read_tagged
from regard.data.readers.lines import MAX_LINE_BYTES
from regard.errors import DataError

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC

-DOCSTART- -X- -X- O

# # B-NP O
1 CD I-NP O
"""
EU = TaggedSentence(("EU", "rejects", "German"), ("B-ORG", "O", "B-MISC"))
CONLLU = """# newdoc id = x
# text = du pain
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\t_\t3\tdet\t_\t_
2.1\tx\tx\tX\t_\t_\t_\t_\t_\t_
3\t10 000\tpain\tNOUN\t_\t_\t0\troot\t_\t_

# text = oui
1\toui\toui\tINTJ\t_\t_\t0\troot\t_\t_
"""


def read(*paths, on_error="stop", report=None, **arguments):
    return list(read_tagged(paths, on_error=on_error, report=report or BadRows(), **arguments))


def failure(*paths, **arguments) -> str:
    with pytest.raises(DataError) as caught:
        read(*paths, **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(path, raw):
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return path


def test_conll_2003(tmp_path):
    path = write(tmp_path / "eng.train", CONLL_2003)
    assert read(path) == [EU, TaggedSentence(("#", "1"), ("O", "O"))]  # the sign # is a word there
    assert read(path, column=2)[0].labels == ("NNP", "VBZ", "JJ")
    assert read(path, word=2, column=3)[0] == TaggedSentence(("NNP", "VBZ", "JJ"), ("B-NP", "B-VP", "B-NP"))
    packed = write(tmp_path / "eng.train.gz", gzip.compress(CONLL_2003.encode()))
    assert read(packed, path) == read(path) * 2


def test_line_ends_marks_spaces_and_missing_last_ends(tmp_path):
    raw = "\ufeffEU  B-ORG \r\nrejects O\r\n \t\r\n\r\nGerman B-MISC"
    assert read(write(tmp_path / "a.conll", raw)) == [
        TaggedSentence(("EU", "rejects"), ("B-ORG", "O")),
        TaggedSentence(("German",), ("B-MISC",)),
    ]


def test_tabs_and_comments(tmp_path):
    raw = "# id 1\n#tag\tO\nNew York\tB-LOC\n\xa0\tO\n\n# 2\n#\tO\n"
    assert read(write(tmp_path / "a.tsv", raw)) == [
        TaggedSentence(("#tag", "New York", "\xa0"), ("O", "B-LOC", "O")),
        TaggedSentence(("#",), ("O",)),
    ]


def test_a_space_that_does_not_break_is_no_end_of_a_column(tmp_path):
    assert read(write(tmp_path / "a.conll", "10\xa0000 O\n")) == [TaggedSentence(("10\xa0000",), ("O",))]


def test_comments_of_files_with_spaces(tmp_path):
    raw = "# a comment here\nEU B-ORG\n\n# another comment\nGerman B-MISC\n"
    assert [sentence.words for sentence in read(write(tmp_path / "a.conll", raw))] == [("EU",), ("German",)]


def test_conllu_reads_forms_and_parts_of_speech(tmp_path):
    path = write(tmp_path / "a.conllu", CONLLU)
    assert read(path) == [
        TaggedSentence(("de", "le", "10 000"), ("ADP", "DET", "NOUN")),
        TaggedSentence(("oui",), ("INTJ",)),
    ]
    assert read(path, column=8)[0].labels == ("case", "det", "root")


def test_words_alone_where_labels_are_not_needed(tmp_path):
    path = write(tmp_path / "a.txt", "EU\nrejects\n\nGerman\n")
    assert read(path, labels_needed=False) == [
        TaggedSentence(("EU", "rejects"), None),
        TaggedSentence(("German",), None),
    ]
    assert "one column: got 'EU' alone" in failure(path)
    mixed = write(tmp_path / "b.txt", "EU\nrejects O\n\nGerman\n")
    assert "b.txt:2: wrong columns: got 2, wanted 1" in failure(mixed, labels_needed=False)
    labeled = write(tmp_path / "c.txt", "EU B-ORG\n")
    assert read(labeled, labels_needed=False) == [TaggedSentence(("EU",), ("B-ORG",))]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alone", "one column: got 'alone' alone, wanted a word and its label"),
        ("word\t", "empty label"),
        ("\tO", "empty word"),
        ("a\tb\tO", "wrong columns: got 3, wanted 2 as in the lines before"),
        (b"\xff\tO", "invalid UTF-8: byte 1 of the line is 0xff"),
        ("a\x07\tO", "control character: U+0007"),
        ("x" * (MAX_LINE_BYTES + 5) + "\tO", "too long"),
    ],
)
def test_a_bad_line_costs_its_sentence(tmp_path, line, said):
    raw = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path / "a.conll", b"EU\tB-ORG\n\ngood\tO\n" + raw + b"\nbad too\n\nGerman\tB-MISC\n")
    assert f"{path}:4: {said}" in failure(path)
    assert "data.on_error=skip" in failure(path)
    report = BadRows()
    assert [sentence.words for sentence in read(path, on_error="skip", report=report)] == [("EU",), ("German",)]
    assert [(bad.line, str(bad).endswith(said) or said in str(bad)) for bad in report.first] == [(4, True)]


def test_columns_that_are_not_there(tmp_path):
    assert "wrong columns: got 2, wanted at least 5" in failure(write(tmp_path / "a", "EU O\n"), column=5)
    assert "the word and its label are both column 2" in failure(write(tmp_path / "b", "O EU\n"), word=2)


def test_useless_files(tmp_path):
    assert "no such file" in failure(tmp_path / "no")
    assert "no sentence; the file has no words" in failure(write(tmp_path / "a", "\n-DOCSTART- O\n\n# x\n"))
    assert "no sentence; all 1 are bad" in failure(write(tmp_path / "b", "alone\n"), on_error="skip")
    good = write(tmp_path / "c", "EU O\n")
    assert f"{tmp_path / 'a'}: no sentence" in failure(good, tmp_path / "a")


WORD = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1).filter(lambda word: word != "-DOCSTART-")
SENTENCE = st.lists(st.tuples(WORD, st.sampled_from(["O", "B-X"])), min_size=1, max_size=5)


@settings(deadline=None)
@given(st.lists(SENTENCE, min_size=1, max_size=4), st.sampled_from(["\t", "\tx\t"]))
def test_what_is_written_is_read_back(tmp_path_factory, sentences, between):
    raw = "\n\n".join("\n".join(f"{word}{between}{label}" for word, label in sentence) for sentence in sentences)
    found = read(write(tmp_path_factory.mktemp("conll") / "a.conll", raw))
    assert [list(zip(one.words, one.labels, strict=True)) for one in found] == sentences
