"""WordPiece tokenizers as `tokenizers` objects: trained on texts, or built from a vocabulary (Devlin 2019, 3).

The normalizer cleans the text, the pre-tokenizer splits words and punctuation, and each word becomes the longest known
tokens from its start; a token that continues a word is written "##ing". A word that cannot be split so is one [UNK].
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from regard.errors import ConfigError

# By the keys of tokenizer_config.json. [CLS] starts a text (`bos_id`) and [SEP] ends it (`eos_id`).
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
CONTINUATION = "##"  # prefix of a token that continues a word
MAX_WORD_CHARACTERS = 100  # a longer word is unknown
MIN_VOCAB_SIZE = 64  # special tokens, and an alphabet twice: at the start of a word and inside
ALPHABET_COVERAGE = 0.9999  # share of the text's characters; rarer ones are unknown and do not fill the vocabulary


def train_core(texts: Iterable[str], vocab_size: int, *, cased: bool) -> tokenizers.Tokenizer:
    """Learn at most `vocab_size` tokens, the special tokens first. Deterministic.

    The texts are read twice; an iterator is kept in memory.
    """
    if vocab_size < MIN_VOCAB_SIZE:
        raise ConfigError(
            f"a vocabulary of {vocab_size}; wanted at least {MIN_VOCAB_SIZE}, for the special tokens and the alphabet"
        )
    texts = texts if isinstance(texts, Sequence) else list(texts)
    core = _empty_core(models.WordPiece(unk_token=SPECIAL_TOKENS["unk_token"]), lowercase=not cased)
    alphabet, rare = _alphabet(core, texts, (vocab_size - len(SPECIAL_TOKENS)) // 2)
    continuations = [CONTINUATION + character for character in alphabet if _can_continue(core, character)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,  # a pair that occurs once is not a pattern
        # The library numbers the characters inside words in an order that changes from run to run, and breaks ties
        # between pairs by these numbers. Listing them here fixes the numbers.
        special_tokens=[*SPECIAL_TOKENS.values(), *alphabet, *continuations],
        show_progress=False,
    )
    normalizer, to_space = core.normalizer, dict.fromkeys(map(ord, rare), " ")
    cleaned = [normalizer.normalize_str(text).translate(to_space) for text in texts]
    core.train_from_iterator(cleaned, trainer)
    found = core.get_vocab()
    return build_core(sorted(found, key=found.__getitem__), lowercase=not cased)


def build_core(
    tokens: Sequence[str],
    *,
    special_tokens: dict[str, str] = SPECIAL_TOKENS,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> tokenizers.Tokenizer:
    """The tokenizer of these tokens, numbered in order; special tokens that are not among them are ignored."""
    vocab = {token: number for number, token in enumerate(tokens)}
    model = models.WordPiece(
        vocab=vocab, unk_token=special_tokens["unk_token"], max_input_chars_per_word=MAX_WORD_CHARACTERS
    )
    core = _empty_core(model, lowercase, strip_accents, split_chinese)
    core.add_special_tokens([token for token in special_tokens.values() if token in vocab])
    cls_token, sep_token = special_tokens["cls_token"], special_tokens["sep_token"]
    if cls_token in vocab and sep_token in vocab:
        core.post_processor = processors.TemplateProcessing(
            single=f"{cls_token}:0 $A:0 {sep_token}:0",
            pair=f"{cls_token}:0 $A:0 {sep_token}:0 $B:1 {sep_token}:1",
            special_tokens=[(cls_token, vocab[cls_token]), (sep_token, vocab[sep_token])],
        )
    return core


def _empty_core(
    model: models.WordPiece, lowercase: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> tokenizers.Tokenizer:
    core = tokenizers.Tokenizer(model)
    core.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece(prefix=CONTINUATION)
    return core


def _alphabet(core: tokenizers.Tokenizer, texts: Iterable[str], limit: int) -> tuple[list[str], list[str]]:
    """The most frequent characters, at most `limit`, that cover nearly all of the texts; and the rare rest."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(core.normalizer.normalize_str(text))
    visible = {character: count for character, count in counts.items() if not character.isspace()}
    frequent = sorted(visible, key=lambda character: (-visible[character], character))
    covered = accumulate((visible[character] for character in frequent), initial=0)
    enough = ALPHABET_COVERAGE * sum(visible.values())
    kept = sum(done < enough for done, _ in zip(covered, frequent[:limit], strict=False))
    return sorted(frequent[:kept]), sorted(frequent[kept:])


def _can_continue(core: tokenizers.Tokenizer, character: str) -> bool:
    """Whether a character can occur inside a word; punctuation and Chinese characters are words of their own."""
    return len(core.pre_tokenizer.pre_tokenize_str(core.normalizer.normalize_str(f"a{character}a"))) == 1
