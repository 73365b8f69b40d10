"""WordPiece tokenizers as the library has them: learned from texts, or made of a list of pieces (Devlin 2019, 3).

A text is cleaned, its words and marks are taken apart, and each word is cut into the longest known pieces from its
front; a piece that goes on inside a word is written "##ing". A word that cannot be cut so is one [UNK].
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

import tokenizers
from regard.errors import ConfigError
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

NAMES = {"padding": "[PAD]", "unknown": "[UNK]", "begin": "[CLS]", "end": "[SEP]", "mask": "[MASK]"}
INSIDE = "##"  # before a piece that goes on inside a word
LONGEST_WORD = 100  # characters; a longer word is unknown
SMALLEST = 64  # the symbols, and an alphabet twice: before and inside a word
COVERED = 0.9999  # of a text's characters; the rarest others are unknown, so that they do not fill the vocabulary


def learned(texts: Iterable[str], size: int, *, cased: bool) -> tokenizers.Tokenizer:
    """At most `size` pieces, the symbols first. The same texts give the same tokenizer.

    The texts are gone over twice; what can be gone over once only is kept in memory.
    """
    if size < SMALLEST:
        raise ConfigError(f"a vocabulary of {size}; wanted at least {SMALLEST}, for the symbols and the letters")
    texts = texts if isinstance(texts, Sequence) else list(texts)
    core = _core(models.WordPiece(unk_token=NAMES["unknown"]), lowercase=not cased)
    letters, rare = _letters(core, texts, (size - len(NAMES)) // 2)
    inside = [INSIDE + letter for letter in letters if _goes_on(core, letter)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,  # a pair seen once is no pattern
        # The library numbers the letters inside words as it meets them, in an order that no two runs share, and
        # breaks ties between pairs by these numbers. Named here, they have their numbers beforehand.
        special_tokens=[*NAMES.values(), *letters, *inside],
        show_progress=False,
    )
    clean, apart = core.normalizer, dict.fromkeys(map(ord, rare), " ")
    cleaned = [clean.normalize_str(text).translate(apart) for text in texts]
    core.train_from_iterator(cleaned, trainer)
    found = core.get_vocab()
    return made_of(sorted(found, key=found.__getitem__), lowercase=not cased)


def made_of(
    pieces: Sequence[str],
    *,
    names: dict[str, str] = NAMES,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    chinese: bool = True,
) -> tokenizers.Tokenizer:
    """The tokenizer of these pieces, numbered as they stand; of the names, those that are pieces are symbols."""
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    model = models.WordPiece(vocab=vocabulary, unk_token=names["unknown"], max_input_chars_per_word=LONGEST_WORD)
    core = _core(model, lowercase, strip_accents, chinese)
    core.add_special_tokens([name for name in names.values() if name in vocabulary])
    begin, end = names["begin"], names["end"]
    if begin in vocabulary and end in vocabulary:
        core.post_processor = processors.TemplateProcessing(
            single=f"{begin}:0 $A:0 {end}:0",
            pair=f"{begin}:0 $A:0 {end}:0 $B:1 {end}:1",
            special_tokens=[(begin, vocabulary[begin]), (end, vocabulary[end])],
        )
    return core


def _core(
    model: models.WordPiece, lowercase: bool, strip_accents: bool | None = None, chinese: bool = True
) -> tokenizers.Tokenizer:
    core = tokenizers.Tokenizer(model)
    core.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece(prefix=INSIDE)
    return core


def _letters(core: tokenizers.Tokenizer, texts: Iterable[str], most: int) -> tuple[list[str], list[str]]:
    """The commonest characters, which make up nearly all of the texts, and the others; each in order."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(core.normalizer.normalize_str(text))
    visible = {character: count for character, count in counts.items() if not character.isspace()}
    common = sorted(visible, key=lambda character: (-visible[character], character))
    before = accumulate((visible[character] for character in common), initial=0)
    enough = COVERED * sum(visible.values())
    kept = sum(done < enough for done, _ in zip(before, common[:most], strict=False))
    return sorted(common[:kept]), sorted(common[kept:])


def _goes_on(core: tokenizers.Tokenizer, character: str) -> bool:
    """Whether a character can stand inside a word; marks and Chinese characters are words of their own."""
    return len(core.pre_tokenizer.pre_tokenize_str(core.normalizer.normalize_str(f"a{character}a"))) == 1
