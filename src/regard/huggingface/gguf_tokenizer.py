"""The tokenizer of a GGUF file: byte-level BPE from its tokens and merges."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import FolderError
from regard.tokenizers.text import TextTokenizer

PREFIX = "tokenizer.ggml."
CONTROL, USER_DEFINED = 3, 4  # token types: special tokens, and added tokens that are matched whole


def read_tokenizer(metadata: Mapping[str, Any], path: Path) -> tuple[TextTokenizer, list[str]]:
    """The tokenizer that the metadata describes, and notes on what it does not say."""
    own = {key.removeprefix(PREFIX): value for key, value in metadata.items() if key.startswith(PREFIX)}
    if own.get("model") != "gpt2":
        raise FolderError(f"{path}: {PREFIX}model is {own.get('model')!r}, wanted 'gpt2': byte-level BPE")
    pre_tokenizer = own.get("pre", "default")
    if not isinstance(pre_tokenizer, str) or pre_tokenizer not in PRE_TOKENIZERS:
        raise FolderError(f"{path}: {PREFIX}pre is {pre_tokenizer!r}, wanted one of {', '.join(PRE_TOKENIZERS)}")
    add_bos, template = own.get("add_bos_token", pre_tokenizer == "llama-bpe"), metadata.get("tokenizer.chat_template")
    if not isinstance(add_bos, bool):
        raise FolderError(f"{path}: {PREFIX}add_bos_token is {add_bos!r}, wanted true or false")
    if not isinstance(template, str | None):
        raise FolderError(f"{path}: tokenizer.chat_template is {template!r}, wanted a string")
    core = _core(own, pre_tokenizer, path)
    bos_id = _id(own, "bos_token_id", path)
    if bos_id is not None and add_bos:
        token = own["tokens"][bos_id]
        core.post_processor = processors.TemplateProcessing(
            f"{token}:0 $A:0", f"{token}:0 $A:0 $B:1", [(token, bos_id)]
        )
    ends = [_id(own, key, path) for key in ("eos_token_id", "eot_token_id", "eom_token_id")]
    tokenizer = TextTokenizer(
        core,
        bos_id=bos_id,
        eos_ids=[end for end in ends if end is not None],
        chat_template=template,
    )
    return tokenizer, [f"{path}: it does not name its pre-tokenizer; using that of GPT-2"] * (
        pre_tokenizer == "default"
    )


def _core(own: Mapping[str, Any], pre_tokenizer: str, path: Path) -> tokenizers.Tokenizer:
    tokens, merges = _texts(own, "tokens", path), _texts(own, "merges", path)
    numbers = {token: number for number, token in enumerate(tokens)}
    if not tokens or len(numbers) != len(tokens):
        raise FolderError(f"{path}: {PREFIX}tokens has {len(tokens)} tokens, {len(numbers)} of them different")
    types = own.get("token_type") or [1] * len(tokens)
    if not isinstance(types, list) or not all(type(kind) is int for kind in types):
        raise FolderError(f"{path}: {PREFIX}token_type is not a list of integers")
    if len(types) != len(tokens):
        raise FolderError(f"{path}: {PREFIX}token_type has {len(types)} entries for {len(tokens)} tokens")
    try:
        pairs: list[Any] = [tuple(merge.split(" ")) for merge in merges]
        core = tokenizers.Tokenizer(models.BPE(numbers, pairs, ignore_merges=pre_tokenizer == "llama-bpe"))
    except Exception as error:  # the library has no class of its own for a merge of tokens that are not there
        reason = " ".join(str(error).split())
        raise FolderError(f"{path}: {PREFIX}merges do not fit the tokens: {reason}") from error
    core.pre_tokenizer = PRE_TOKENIZERS[pre_tokenizer]()
    core.decoder = decoders.ByteLevel()
    if pre_tokenizer == "qwen2":
        core.normalizer = normalizers.NFC()
    for kind, add in ((CONTROL, core.add_special_tokens), (USER_DEFINED, core.add_tokens)):
        chosen = [token for token, found in zip(tokens, types, strict=True) if found == kind]
        add([AddedToken(token, normalized=False, special=kind == CONTROL) for token in chosen])
    return core


def _texts(own: Mapping[str, Any], key: str, path: Path) -> list[str]:
    texts = own.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FolderError(f"{path}: {PREFIX}{key} is not a list of strings")
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


# ------------------------------------------------ pre-tokenizers: how a text is split before merging


def _as_gpt2() -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _as_smollm() -> Any:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _as_gpt2()])


def _as_llama3() -> Any:
    return _split_by_pattern(r"\p{N}{1,3}")


def _as_qwen2() -> Any:
    return _split_by_pattern(r"\p{N}")


def _split_by_pattern(number: str) -> Any:
    """Contractions, letters with a preceding sign, numbers, punctuation with line breaks, spaces."""
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


PRE_TOKENIZERS = {
    "default": _as_gpt2,
    "gpt-2": _as_gpt2,
    "smollm": _as_smollm,
    "llama-bpe": _as_llama3,
    "qwen2": _as_qwen2,
}
