"""Sentences that are split into words, as rows a model can read whole: a long one is several."""

from collections.abc import Iterator, Sequence

from regard.tokenizers.wordpiece import Encoded, WordPieces


def rows_of_words(
    tokenizer: WordPieces, words: Sequence[str], longest: int, start: int = 0
) -> Iterator[tuple[int, Encoded]]:
    """Rows of at most `longest` positions, each with the number of its first word; halved until they fit."""
    found = tokenizer.encode_words(words, longest=longest)
    if not found.cut or len(words) == 1:  # a single word that is too long loses its end
        yield start, found
        return
    middle = len(words) // 2
    yield from rows_of_words(tokenizer, words[:middle], longest, start)
    yield from rows_of_words(tokenizer, words[middle:], longest, start + middle)


def first_pieces(row: Encoded) -> dict[int, int]:
    """The place of each word's first piece; a word of which nothing is left, such as a lone accent, has none."""
    found: dict[int, int] = {}
    for place, word in enumerate(row.words):
        if word is not None:
            found.setdefault(word, place)
    return found
