"""`regard embeddings`: on files of vectors, on models, on both."""

import json

import numpy as np
import pytest

from regard.data.readers.word_vectors import WordVectors, write_vectors

WORDS = ["man", "woman", "king", "queen", "apple", "pear"]
MATRIX = np.array([[1, 0, 1], [1, 1, 1], [4, 0, 1], [4, 1.1, 1], [0, 0, 9], [0.1, 0, 3]], np.float32)


@pytest.fixture
def royal(tmp_path):
    write_vectors(tmp_path / "royal.txt", WordVectors(WORDS, MATRIX))
    return tmp_path / "royal.txt"


def test_neighbors_as_lines(here, royal):
    done = here("embeddings", royal, "king", "apple", "--count", 2)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["king", "queen", "man", "apple", "pear", "man"]
    assert lines[0][1:] == ["cosine", "distance"]
    assert lines[1][1:] == ["0.966", "1.100"]


def test_neighbors_by_distance_are_in_another_order(here, royal):
    found = json.loads(here("embeddings", royal, "pear", "--by", "euclidean", "--count", 2, "--json").stdout)
    assert [one["word"] for one in found["neighbors"]["pear"]] == ["man", "woman"]
    assert found["neighbors"]["pear"][0]["distance"] == pytest.approx(4.81**0.5)
    assert (found["vectors"], found["width"], found["by"]) == (6, 3, "euclidean")
    by_angle = json.loads(here("embeddings", royal, "pear", "--count", 1, "--json").stdout)
    assert by_angle["neighbors"]["pear"][0]["word"] == "apple"


def test_an_analogy(here, royal):
    done = here("embeddings", royal, "--analogy", "man", "woman", "king", "--count", 1)
    assert "man : woman = king : ?" in done.stdout
    assert done.stdout.splitlines()[1].split()[0] == "queen"


@pytest.mark.parametrize("name", ["map.html", "map.svg"])
def test_a_map_of_the_words_and_their_neighbors(here, royal, tmp_path, name):
    done = here("embeddings", royal, "king", "--count", 3, "--map", tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert f"wrote {tmp_path / name}" in done.stderr
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "4 of 6 words; PCA, " in text
    assert "queen" in text
    assert "pear" not in text


def test_a_map_of_all_words_by_tsne(here, royal, tmp_path):
    done = here("embeddings", royal, "-o", tmp_path / "all.html", "--method", "tsne")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert all(f"<th scope=row>{word}</th>" in text for word in WORDS)


def test_only_the_first_words_are_read_and_repeated_ones_left_out(here, royal, tmp_path):
    done = here("embeddings", royal, "king", "--most", 3, "--json")
    assert json.loads(done.stdout)["vectors"] == 3
    (tmp_path / "twice.txt").write_text("a 1 2\nb 2 1\na 3 4\n")
    assert "1 repeated words were left out" in here("embeddings", tmp_path / "twice.txt", "a").stderr


def test_the_input_embeddings_of_a_translator_and_of_a_language_model(here, trained, novel):
    for folder in (trained, novel):
        done = here("embeddings", folder, "the", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["width"] == 32
        assert len(found["neighbors"]["the"]) == 10
        assert "the" not in {one["word"] for one in found["neighbors"]["the"]}


def test_two_embedding_matrices_side_by_side(here, royal, tmp_path):
    turned = MATRIX[:, [2, 0, 1]] * 2
    write_vectors(tmp_path / "other.txt", WordVectors(WORDS, turned))
    compared = ("embeddings", royal, "king", "--with", tmp_path / "other.txt", "--count", 3)
    found = json.loads(here(*compared, "--json").stdout)
    assert found["same"] == {"king": 3}
    assert found["agreement"]["words"] == 6
    assert found["agreement"]["correlation"] == pytest.approx(1, abs=1e-5)
    assert [one["cosine"] for one in found["with"]["king"]] == pytest.approx(
        [one["cosine"] for one in found["neighbors"]["king"]], abs=1e-6
    )
    shown = here(*compared).stdout
    assert "king: 3 of 3 neighbors are the same" in shown
    assert "agreement over 6 words that both have: correlation 1.000" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{royal}", "kign"], "'kign' is not among the 6 words; did you mean king?"),
        (["{royal}"], "no words given"),
        (["{royal}", "--analogy", "man", "woman"], "--analogy takes three words, got 2"),
        (["{royal}", "--analogy", "man", "woman", "king", "--by", "euclidean"], "--analogy uses cosine"),
        (["{royal}", "--analogy", "man", "woman", "king", "--with", "{royal}"], "exclude each other"),
        (["{royal}", "king", "--by", "taste"], "--by taste: wanted cosine or euclidean"),
        (["{royal}", "king", "--map", "x.html", "--method", "lda"], "--method lda: wanted pca or tsne"),
        (["{royal}", "king", "--map", "x.gif"], "a figure ends in .png, .svg, .pdf, .html; got '.gif'"),
        (["{royal}", "king", "--map", "no/x.html"], "there is no folder no"),
        (["{royal}", "king", "--map", "x.html", "--method", "tsne", "--count", "2"], "t-SNE of 3 words"),
        (["{royal}", "king", "--with", "nowhere.txt"], "there is no folder or file nowhere.txt"),
        (["nowhere", "king"], "there is no folder or file nowhere"),
        (["{royal}", "king", "--count", "0"], "--count"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_2(here, royal, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = here("embeddings", *(word.replace("{royal}", str(royal)) for word in arguments))
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [royal]


def test_a_file_that_holds_no_vectors_is_named_with_its_line(here, tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 1\n")
    done = here("embeddings", tmp_path / "v.txt", "a")
    assert done.returncode == 2
    assert "v.txt:2: got 1 columns after the word, wanted 2 numbers" in done.stderr


def test_the_old_name_of_the_command_is_answered_with_the_new_one(here, royal):
    done = here("words", royal, "king")
    assert done.returncode == 2
    assert done.stderr == "error: regard words is now regard embeddings\n"
