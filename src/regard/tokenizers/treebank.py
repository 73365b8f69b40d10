"""Where the words of a written text are, cut much as the Penn Treebank and with it the CoNLL files have them.

White space parts words, and at the two ends of a word each sign is a word of its own: ( Paris ) . Signs inside stay:
O'Brien, Jean-Luc, 3.5, AT&T. Further:

    U.S.  J.  Dr.      the period of initials and of common short forms stays, at the end of a sentence, too
    -3.5  +7  .5       so does the sign before a number
    ...  --            periods or dashes in a row are one word; dashes and "…" part words without a space as well
    do n't   Ada 's    what is drawn together is taken apart: n't, and 's 're 've 'll 'd 'm
    東 京               each Chinese character is a word, as for the tokenizer
"""

import re
import unicodedata

CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
CHUNK = re.compile(rf"[{CHINESE}]|--+|[—…]|(?:(?!--)[^\s—…{CHINESE}])+")
IN_A_ROW = re.compile(r"\.{2,}|-{2,}")
TOGETHER = r"['’](?:s|re|ve|ll|d|m)"
DRAWN_TOGETHER = re.compile(rf".(n['’]t|{TOGETHER})$", re.IGNORECASE | re.DOTALL)
BEGINS_SO = re.compile(rf"[-+]?\.?\d|{TOGETHER}$", re.IGNORECASE)  # the sign in front belongs to it
INITIALS = re.compile(r"[^\W\d_a-z]\.|(?:[^\W\d_]\.-?)+[^\W\d_]\.")
SHORT_FORMS = {
    *("mr.", "mrs.", "ms.", "dr.", "prof.", "rev.", "gen.", "gov.", "sen.", "rep.", "lt.", "col.", "capt.", "sgt."),
    *("st.", "mt.", "jr.", "sr.", "inc.", "corp.", "co.", "ltd.", "bros.", "vs.", "etc.", "ph.d."),
    *("jan.", "feb.", "aug.", "sept.", "oct.", "nov.", "dec."),
}

Span = tuple[int, int]


def word_spans(text: str) -> list[Span]:
    """Where the words begin and end, in their order; they leave out white space, and what cannot be seen by itself."""
    return [span for chunk in CHUNK.finditer(text) for span in _spans(text, *chunk.span()) if _is_seen(text, span)]


def _spans(text: str, start: int, stop: int) -> list[Span]:
    """Of what stands between two spaces: the signs before the word, the word, the signs behind it."""
    before: list[Span] = []
    behind: list[Span] = []
    while size := _sign_before(text[start:stop]):
        before.append((start, start + size))
        start += size
    while size := _sign_behind(text[start:stop]):
        behind.append((stop - size, stop))
        stop -= size
    return [*before, *_parts(text, start, stop), *reversed(behind)]


def _sign_before(word: str) -> int:
    """How long the sign is that the word begins with; 0: it has none."""
    if found := IN_A_ROW.match(word):
        return len(found[0])
    if not word or not _is_sign(word[0]) or BEGINS_SO.match(word):
        return 0
    size = 1
    while size < len(word) and unicodedata.combining(word[size]):  # an accent belongs to what it stands on
        size += 1
    return size


def _sign_behind(word: str) -> int:
    if not word or not _is_sign(word[-1]) or INITIALS.fullmatch(word) or word.lower() in SHORT_FORMS:
        return 0
    return len(word) - len(word.rstrip(".")) if word.endswith("..") else 1


def _parts(text: str, start: int, stop: int) -> list[Span]:
    """A word, or the two that are drawn together in it."""
    if found := DRAWN_TOGETHER.search(text[start:stop]):
        middle = start + found.start(1)
        return [(start, middle), (middle, stop)]
    return [(start, stop)] if start < stop else []


def _is_sign(character: str) -> bool:
    """Punctuation and symbols."""
    return unicodedata.category(character)[0] in "PS"


def _is_seen(text: str, span: Span) -> bool:
    """Not a lone accent, nor a mark that shows nothing."""
    return any(unicodedata.category(character)[0] not in "MC" for character in text[slice(*span)])
