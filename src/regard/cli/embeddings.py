"""`regard embeddings`: nearest neighbors, analogies and maps of word embeddings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.app import AsJson, Trust, app, trust_code
from regard.errors import InputError
from regard.printing import print_json, show_near, show_near_both
from regard.progress import note

if TYPE_CHECKING:
    from regard.data.readers.word_vectors import WordVectors
    from regard.inspection.maps.neighbors import Neighbor

MAX_MAPPED = 2000  # words on a map when no words are given
MEASURES = ("cosine", "euclidean")
METHODS = ("pca", "tsne")


@app.command()
def embeddings(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL_OR_VECTORS",
            help="A model, or word vectors: GloVe, word2vec text or .bin; plain or .gz.",
        ),
    ],
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="The words.")] = None,
    analogy: Annotated[
        bool, typer.Option("--analogy", help="With three words A B C: A is to B as C is to which?")
    ] = False,
    by: Annotated[str, typer.Option(help="The similarity: cosine or euclidean.")] = "cosine",
    count: Annotated[int, typer.Option(min=1, help="Number of neighbors.")] = 10,
    map_: Annotated[
        Path | None,
        typer.Option("--map", "-o", help="Draw a map of the words and their neighbors: .html, .png, .svg or .pdf."),
    ] = None,
    method: Annotated[str, typer.Option(help="The projection of the map: pca or tsne.")] = "pca",
    other: Annotated[
        Path | None, typer.Option("--with", help="Another model or file, to compare the neighbors.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Read only the first words of a file.")] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Show the nearest neighbors of words in an embedding matrix: of a model, or of a file of word vectors.

    Of a model these are its input embeddings, for the tokens that are whole words.

    Examples:

    `regard embeddings runs/demo boy bread`

    `regard embeddings glove.6B.100d.txt.gz paris rome --most 50000 --map cities.html --method tsne`

    `regard embeddings glove.6B.100d.txt --analogy man woman king`

    `regard embeddings runs/demo boy bread --with glove.6B.100d.txt`

    `regard embeddings runs/demo --map all.html`
    """
    words = words or []
    _check(words, analogy, by, method, map_, other)
    if map_ is not None:
        from regard.inspection.maps.map import check_map

        check_map(map_)
    trust_code(trust, source, *([] if other is None else [other]))
    vectors = _open(source, most)
    found = _neighbors(vectors, words, analogy, by, count)
    result: dict[str, Any] = {"vectors": len(vectors.words), "width": vectors.width, "by": by}
    if other is not None:
        second = _open(other, most)
        result |= _both(found, _neighbors(second, words, False, by, count), vectors, second)
    else:
        result["analogies" if analogy else "neighbors"] = _as_dict(found)
    if as_json:
        print_json(result)
    elif other is not None:
        show_near_both(result, str(source), str(other))
    else:
        show_near(found)
    if map_ is not None:
        _save_map(map_, vectors, words, found, method, by)


def _check(words: list[str], analogy: bool, by: str, method: str, map_: Path | None, other: Path | None) -> None:
    if by not in MEASURES:
        raise InputError(f"--by {by}: wanted {' or '.join(MEASURES)}")
    if method not in METHODS:
        raise InputError(f"--method {method}: wanted {' or '.join(METHODS)}")
    if analogy and len(words) != 3:
        raise InputError(f"--analogy takes three words, got {len(words)}; for example --analogy man woman king")
    if analogy and by != "cosine":
        raise InputError("--analogy uses cosine similarity; leave --by out")
    if analogy and other is not None:
        raise InputError("--analogy and --with exclude each other; give one of them")
    if not words and (map_ is None or other is not None):
        raise InputError(
            "no words given; for example: regard embeddings MODEL boy bread, or all words on a map: --map all.html"
        )


def _open(source: Path, most: int | None) -> "WordVectors":
    from regard.tasks.word_vectors import read_embeddings

    found = read_embeddings(source, most)
    if found.repeated:
        note(f"{source}: {found.repeated:,} repeated words were left out")
    return found


def _neighbors(
    vectors: "WordVectors", words: list[str], analogy: bool, by: Any, count: int
) -> "dict[str, list[Neighbor]]":
    """The neighbors of each word, or the solutions of the analogy."""
    from regard.inspection.maps import neighbors

    if analogy:
        a, b, c = words
        return {f"{a} : {b} = {c} : ?": neighbors.analogy(vectors, a, b, c, count)}
    return {word: neighbors.nearest(vectors, word, count=count, by=by) for word in dict.fromkeys(words)}


def _as_dict(found: "dict[str, list[Neighbor]]") -> dict[str, Any]:
    from dataclasses import asdict

    return {word: [asdict(one) for one in near] for word, near in found.items()}


def _both(
    found: "dict[str, list[Neighbor]]", others: "dict[str, list[Neighbor]]", one: "WordVectors", other: "WordVectors"
) -> dict[str, Any]:
    """The neighbors in both, how many of them are the same, and how well the two sets of vectors agree."""
    from regard.inspection.maps.neighbors import agreement

    same = {word: len({each.word for each in found[word]} & {each.word for each in others[word]}) for word in found}
    whole = agreement(one, other)
    agree = {"words": whole.words, "correlation": whole.correlation}
    return {"neighbors": _as_dict(found), "with": _as_dict(others), "same": same, "agreement": agree}


def _save_map(
    path: Path, vectors: "WordVectors", words: list[str], found: "dict[str, list[Neighbor]]", method: str, by: str
) -> None:
    from regard.inspection.maps.map import explained_variance, pca, save_map, tsne
    from regard.inspection.maps.neighbors import units

    near = [each.word for one in found.values() for each in one]
    shown = list(dict.fromkeys([*words, *near])) or vectors.words[:MAX_MAPPED]
    matrix = vectors.matrix[[vectors.rows[word] for word in shown]]
    matrix = units(matrix) if by == "cosine" else matrix  # so that neighbors by cosine are near on the map
    points = pca(matrix) if method == "pca" else tsne(matrix)
    kept = f"PCA, {explained_variance(matrix, points):.0%} of the variance" if method == "pca" else "t-SNE"
    save_map(path, shown, points, words, f"{len(shown):,} of {len(vectors.words):,} words; {kept}")
    note(f"wrote {path}")
