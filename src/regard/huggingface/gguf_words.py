"""The tokenizer of a GGUF file: byte-level BPE from its tokens and merges, as a `tokenizers` JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import FolderError
from regard.tokenizers.text import TextTokenizer

PREFIX = "tokenizer.ggml."
CONTROL, USER = 3, 4  # token types: never text, and matched whole in a text


def read_words(facts: Mapping[str, Any], path: Path) -> tuple[TextTokenizer, list[str]]:
    """The tokenizer that the metadata describes, and notes on what it leaves open."""
    own = {key.removeprefix(PREFIX): value for key, value in facts.items() if key.startswith(PREFIX)}
    if own.get("model") != "gpt2":
        raise FolderError(f"{path}: {PREFIX}model is {own.get('model')!r}, wanted 'gpt2': byte-level BPE")
    cut = own.get("pre", "default")
    if not isinstance(cut, str) or cut not in CUTS:
        raise FolderError(f"{path}: {PREFIX}pre is {cut!r}, wanted one of {', '.join(CUTS)}")
    leading, template = own.get("add_bos_token", cut == "llama-bpe"), facts.get("tokenizer.chat_template")
    if not isinstance(leading, bool):
        raise FolderError(f"{path}: {PREFIX}add_bos_token is {leading!r}, wanted true or false")
    if not isinstance(template, str | None):
        raise FolderError(f"{path}: tokenizer.chat_template is {template!r}, wanted a text")
    core = _core(own, cut, path)
    begin = _id(own, "bos_token_id", path)
    if begin is not None and leading:
        token = own["tokens"][begin]
        core.post_processor = processors.TemplateProcessing(f"{token}:0 $A:0", f"{token}:0 $A:0 $B:1", [(token, begin)])
    ends = [_id(own, key, path) for key in ("eos_token_id", "eot_token_id", "eom_token_id")]
    tokenizer = TextTokenizer(
        core,
        bos_id=begin,
        eos_ids=[end for end in ends if end is not None],
        chat_template=template,
    )
    return tokenizer, [f"{path}: it does not say how text is cut before merging: as GPT-2 does"] * (cut == "default")


def _core(own: Mapping[str, Any], cut: str, path: Path) -> tokenizers.Tokenizer:
    tokens, merges = _texts(own, "tokens", path), _texts(own, "merges", path)
    numbers = {token: number for number, token in enumerate(tokens)}
    if not tokens or len(numbers) != len(tokens):
        raise FolderError(f"{path}: {PREFIX}tokens has {len(tokens)} tokens, {len(numbers)} of them different")
    types = own.get("token_type") or [1] * len(tokens)
    if not isinstance(types, list) or not all(type(kind) is int for kind in types):
        raise FolderError(f"{path}: {PREFIX}token_type is not a list of whole numbers")
    if len(types) != len(tokens):
        raise FolderError(f"{path}: {PREFIX}token_type has {len(types)} entries for {len(tokens)} tokens")
    try:
        pairs: list[Any] = [tuple(merge.split(" ")) for merge in merges]
        core = tokenizers.Tokenizer(models.BPE(numbers, pairs, ignore_merges=cut == "llama-bpe"))
    except Exception as error:  # the library has no class of its own for a merge of tokens that are not there
        reason = " ".join(str(error).split())
        raise FolderError(f"{path}: {PREFIX}merges do not fit the tokens: {reason}") from error
    core.pre_tokenizer = CUTS[cut]()
    core.decoder = decoders.ByteLevel()
    if cut == "qwen2":
        core.normalizer = normalizers.NFC()
    for kind, add in ((CONTROL, core.add_special_tokens), (USER, core.add_tokens)):
        chosen = [token for token, found in zip(tokens, types, strict=True) if found == kind]
        add([AddedToken(token, normalized=False, special=kind == CONTROL) for token in chosen])
    return core


def _texts(own: Mapping[str, Any], key: str, path: Path) -> list[str]:
    texts = own.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FolderError(f"{path}: {PREFIX}{key} is not a list of texts")
    return texts


def _id(own: Mapping[str, Any], key: str, path: Path) -> int | None:
    number = own.get(key)
    if number is None:
        return None
    if type(number) is not int:
        raise FolderError(f"{path}: {PREFIX}{key} is {number!r}, wanted an id of its tokens")
    if not 0 <= number < len(own["tokens"]):
        raise FolderError(f"{path}: {PREFIX}{key} is {number}, but there are {len(own['tokens'])} tokens")
    return number


# ------------------------------------------------ how a text is cut before merging


def _as_gpt2() -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _as_smollm() -> Any:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _as_gpt2()])


def _as_llama3() -> Any:
    return _by_pattern(r"\p{N}{1,3}")


def _as_qwen2() -> Any:
    return _by_pattern(r"\p{N}")


def _by_pattern(number: str) -> Any:
    """Short endings, words with the sign before them, numbers, signs with the lines they close, spaces."""
    pattern = "|".join(
        [
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
            r"[^\r\n\p{L}\p{N}]?\p{L}+",
            number,
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    )
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


CUTS = {
    "default": _as_gpt2,
    "gpt-2": _as_gpt2,
    "smollm": _as_smollm,
    "llama-bpe": _as_llama3,
    "qwen2": _as_qwen2,
}
