"""The command that looks at word vectors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.app import AsJson, app
from regard.errors import InputError
from regard.printing import print_json, show_near, show_near_both
from regard.progress import note

if TYPE_CHECKING:
    from regard.data.readers.word_vectors import WordVectors
    from regard.inspection.neighbors import Neighbor

MAPPED = 2000  # words of a map that is of no words in particular
BY = ("cosine", "euclidean")
METHODS = ("pca", "tsne")


@app.command()
def words(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL_OR_VECTORS", help="Any model, or vectors: GloVe, word2vec's text or .bin; plain or .gz."
        ),
    ],
    asked: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="The words to look at.")] = None,
    analogy: Annotated[
        bool, typer.Option("--analogy", help="Of three words A B C: A is to B as C is to which?")
    ] = False,
    by: Annotated[str, typer.Option(help="What is near: cosine or euclidean.")] = "cosine",
    count: Annotated[int, typer.Option(min=1, help="How many neighbors.")] = 10,
    map_: Annotated[
        Path | None,
        typer.Option("--map", "-o", help="A map of the words and their neighbors: .html, .png, .svg or .pdf."),
    ] = None,
    method: Annotated[str, typer.Option(help="How the map is made: pca or tsne.")] = "pca",
    other: Annotated[
        Path | None, typer.Option("--with", help="Another model or file: what is near the words in each.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Read the first so many words of a file.")] = None,
    as_json: AsJson = False,
) -> None:
    """The neighbors of words in a table of word vectors: a model's own, or one from a file.

    Of a model these are the vectors by which it looks words up, of those tokens that are whole words.

    Examples:

    `regard words runs/demo boy bread`

    `regard words glove.6B.100d.txt.gz paris rome --most 50000 --map cities.html --method tsne`

    `regard words glove.6B.100d.txt --analogy man woman king`

    `regard words runs/demo boy bread --with glove.6B.100d.txt`

    `regard words runs/demo --map all.html`
    """
    asked = asked or []
    _check(asked, analogy, by, method, map_, other)
    if map_ is not None:
        from regard.inspection.map import check_map

        check_map(map_)
    vectors = _open(source, most)
    found = _found(vectors, asked, analogy, by, count)
    result: dict[str, Any] = {"vectors": len(vectors.words), "width": vectors.width, "by": by}
    if other is not None:
        second = _open(other, most)
        result |= _both(found, _found(second, asked, False, by, count), vectors, second)
    else:
        result["analogies" if analogy else "neighbors"] = _as_dict(found)
    if as_json:
        print_json(result)
    elif other is not None:
        show_near_both(result, str(source), str(other))
    else:
        show_near(found)
    if map_ is not None:
        _save_map(map_, vectors, asked, found, method, by)


def _check(asked: list[str], analogy: bool, by: str, method: str, map_: Path | None, other: Path | None) -> None:
    if by not in BY:
        raise InputError(f"--by {by}: wanted {' or '.join(BY)}")
    if method not in METHODS:
        raise InputError(f"--method {method}: wanted {' or '.join(METHODS)}")
    if analogy and len(asked) != 3:
        raise InputError(f"--analogy takes three words, got {len(asked)}; for example --analogy man woman king")
    if analogy and by != "cosine":
        raise InputError("--analogy goes by cosine; leave --by out")
    if analogy and other is not None:
        raise InputError("--analogy and --with are two questions; ask one")
    if not asked and (map_ is None or other is not None):
        raise InputError(
            "no words to look at; give some: regard words MODEL boy bread, or all on a map: --map all.html"
        )


def _open(source: Path, most: int | None) -> "WordVectors":
    from regard.tasks.word_vectors import open_words

    found = open_words(source, most)
    if found.repeated:
        note(f"{source}: {found.repeated:,} rows of words that had come before were left out")
    return found


def _found(vectors: "WordVectors", asked: list[str], analogy: bool, by: Any, count: int) -> "dict[str, list[Neighbor]]":
    """What lies near each word, or solves the analogy."""
    from regard.inspection import neighbors

    if analogy:
        a, b, c = asked
        return {f"{a} : {b} = {c} : ?": neighbors.analogy(vectors, a, b, c, count)}
    return {word: neighbors.nearest(vectors, word, count=count, by=by) for word in dict.fromkeys(asked)}


def _as_dict(found: "dict[str, list[Neighbor]]") -> dict[str, Any]:
    from dataclasses import asdict

    return {word: [asdict(one) for one in near] for word, near in found.items()}


def _both(
    found: "dict[str, list[Neighbor]]", others: "dict[str, list[Neighbor]]", one: "WordVectors", other: "WordVectors"
) -> dict[str, Any]:
    """The neighbors in each, how many of them are the same, and how alike the two are on the whole."""
    from regard.inspection.neighbors import shared

    same = {word: len({each.word for each in found[word]} & {each.word for each in others[word]}) for word in found}
    whole = shared(one, other)
    agreement = {"words": whole.words, "correlation": whole.correlation}
    return {"neighbors": _as_dict(found), "with": _as_dict(others), "same": same, "agreement": agreement}


def _save_map(
    path: Path, vectors: "WordVectors", asked: list[str], found: "dict[str, list[Neighbor]]", method: str, by: str
) -> None:
    from regard.inspection.map import pca, save_map, share_kept, tsne
    from regard.inspection.neighbors import units

    near = [each.word for one in found.values() for each in one]
    shown = list(dict.fromkeys([*asked, *near])) or vectors.words[:MAPPED]
    matrix = vectors.matrix[[vectors.rows[word] for word in shown]]
    matrix = units(matrix) if by == "cosine" else matrix  # so that what is near there is near here
    points = pca(matrix) if method == "pca" else tsne(matrix)
    kept = f"PCA, {share_kept(matrix, points):.0%} of the variance" if method == "pca" else "t-SNE"
    save_map(path, shown, points, asked, f"{len(shown):,} of {len(vectors.words):,} words; {kept}")
    note(f"wrote {path}")
