"""A pre-tokenizer that splits text into words much as the Penn Treebank does, and with it the CoNLL files.

White space separates words. At both ends of a word each punctuation mark is a word of its own: ( Paris ) . Marks inside
a word stay: O'Brien, Jean-Luc, 3.5, AT&T. Also:

    U.S.  J.  Dr.      initials and common abbreviations keep their period, also at the end of a sentence
    -3.5  +7  .5       a number keeps its sign
    ...  --            a run of periods or dashes is one word; dashes and "…" separate words without a space
    do n't   Ada 's    contractions are split: n't, and 's 're 've 'll 'd 'm
    東 京               each Chinese character is a word, as in BERT's tokenizer
"""

import re
import unicodedata

CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
CHUNK = re.compile(rf"[{CHINESE}]|--+|[—…]|(?:(?!--)[^\s—…{CHINESE}])+")
RUN = re.compile(r"\.{2,}|-{2,}")
CLITIC = r"['’](?:s|re|ve|ll|d|m)"
CONTRACTION = re.compile(rf".(n['’]t|{CLITIC})$", re.IGNORECASE | re.DOTALL)
KEEPS_FIRST_MARK = re.compile(rf"[-+]?\.?\d|{CLITIC}$", re.IGNORECASE)  # numbers and clitics
INITIALS = re.compile(r"[^\W\d_a-z]\.|(?:[^\W\d_]\.-?)+[^\W\d_]\.")
ABBREVIATIONS = {
    *("mr.", "mrs.", "ms.", "dr.", "prof.", "rev.", "gen.", "gov.", "sen.", "rep.", "lt.", "col.", "capt.", "sgt."),
    *("st.", "mt.", "jr.", "sr.", "inc.", "corp.", "co.", "ltd.", "bros.", "vs.", "etc.", "ph.d."),
    *("jan.", "feb.", "aug.", "sept.", "oct.", "nov.", "dec."),
}

Span = tuple[int, int]


def word_spans(text: str) -> list[Span]:
    """Start and end of each word, in order, without white space and characters that are invisible alone."""
    return [span for chunk in CHUNK.finditer(text) for span in _spans(text, *chunk.span()) if _is_visible(text, span)]


def _spans(text: str, start: int, stop: int) -> list[Span]:
    """Split a chunk without spaces into the marks before the word, the word, and the marks after it."""
    before: list[Span] = []
    after: list[Span] = []
    while size := _leading_mark(text[start:stop]):
        before.append((start, start + size))
        start += size
    while size := _trailing_mark(text[start:stop]):
        after.append((stop - size, stop))
        stop -= size
    return [*before, *_split_contraction(text, start, stop), *reversed(after)]


def _leading_mark(word: str) -> int:
    """Length of the punctuation mark at the start of the word; 0 if there is none."""
    if found := RUN.match(word):
        return len(found[0])
    if not word or not _is_mark(word[0]) or KEEPS_FIRST_MARK.match(word):
        return 0
    size = 1
    while size < len(word) and unicodedata.combining(word[size]):  # a combining accent belongs to the mark before it
        size += 1
    return size


def _trailing_mark(word: str) -> int:
    """Length of the punctuation mark at the end of the word; 0 if there is none."""
    if not word or not _is_mark(word[-1]) or INITIALS.fullmatch(word) or word.lower() in ABBREVIATIONS:
        return 0
    return len(word) - len(word.rstrip(".")) if word.endswith("..") else 1


def _split_contraction(text: str, start: int, stop: int) -> list[Span]:
    """The word, or the two parts of a contraction."""
    if found := CONTRACTION.search(text[start:stop]):
        middle = start + found.start(1)
        return [(start, middle), (middle, stop)]
    return [(start, stop)] if start < stop else []


def _is_mark(character: str) -> bool:
    """Punctuation and symbols."""
    return unicodedata.category(character)[0] in "PS"


def _is_visible(text: str, span: Span) -> bool:
    """False for a lone accent and for control characters."""
    return any(unicodedata.category(character)[0] not in "MC" for character in text[slice(*span)])
