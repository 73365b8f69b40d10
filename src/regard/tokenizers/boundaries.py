"""Where a long text can be cut so that the tokens of its parts are the tokens of the whole.

GPT-2's pre-tokenizer takes a space only as the first character of a match or inside a run of white space; besides
contractions it is ` ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`. So a match ends before each space that
stands between two visible characters, and nothing it matches looks further than that across the cut.
"""

import json
import re
from collections.abc import Iterator

import tokenizers

PART_CHARACTERS = 1 << 12  # at least: an encoding in the library takes some 200 bytes a character
ISOLATED_SPACE = re.compile(r"(?<=\S) (?=\S)")  # Python's white space includes all of the library's


def is_cut_at_spaces(core: tokenizers.Tokenizer) -> bool:
    """The tokenizer has GPT-2's pre-tokenizer, no normalizer, and no added token that could span a cut."""
    made = json.loads(core.to_str())
    splits = made["pre_tokenizer"] or {}
    is_gpt2 = splits.get("type") == "ByteLevel" and splits["use_regex"] and not splits["add_prefix_space"]
    return is_gpt2 and made["normalizer"] is None and all(token["special"] for token in made["added_tokens"])


def cut_at_spaces(text: str, size: int = PART_CHARACTERS) -> Iterator[str]:
    """Parts of `size` characters and the rest of a word; a stretch without an isolated space stays whole."""
    start = 0
    while found := ISOLATED_SPACE.search(text, start + size):
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]
