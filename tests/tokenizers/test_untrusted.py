"""A tokenizer.json of somebody else's: what is common is read at once, what is odd is tried out first."""

import json

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from regard.errors import FolderError
from regard.tokenizers.untrusted import is_common, read_tokenizer


def content(**changes):
    core = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    return json.loads(core.to_str()) | changes


def read(found):
    return read_tokenizer(json.dumps(found).encode())


def test_a_common_one_is_read_as_it_is():
    assert is_common(content())
    assert read(content()).encode("ab").ids == [2]


def test_an_odd_but_working_one_is_tried_out_and_read():
    odd = content(pre_tokenizer={"type": "FixedLength", "length": 1})
    assert not is_common(odd)
    assert read(odd).encode("ab").ids == [0, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        {"decoder": {"type": "Strip", "content": "a", "start": 2**62, "stop": 2**62}},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}},
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [],
                "special_tokens": {},
            }
        },
    ],
)
def test_what_makes_the_library_panic_is_refused_in_one_line(changes, capfd):
    assert not is_common(content(**changes))
    with pytest.raises(FolderError, match=r"cannot be read as a tokenizer\.json") as caught:
        read(content(**changes))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""  # the library writes its panics to standard error


def test_a_normalizer_that_grows_without_bound_is_refused():
    grows = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
    with pytest.raises(FolderError, match="memory|MB|took more than"):
        read(content(normalizer={"type": "Sequence", "normalizers": [grows] * 6}))


@pytest.mark.parametrize("raw", [b"[" * 100_000, b"\xff", b"{", b"[]", b"7"])
def test_what_is_no_tokenizer_is_refused(raw):
    with pytest.raises(FolderError, match=r"cannot be read as a tokenizer\.json"):
        read_tokenizer(raw)


@pytest.mark.parametrize(
    "changes",
    [
        {"added_tokens": True},
        {"added_tokens": [{"content": ["a"]}]},
        {"normalizer": {"type": []}},
        {"model": {"type": "WordPiece", "unk_token": [], "vocab": {}}},
        {"model": {"type": "WordPiece", "unk_token": {}, "vocab": {}}},
        {"post_processor": {"type": "TemplateProcessing", "single": 1, "special_tokens": {}}},
        {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": 1}], "special_tokens": {}}},
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "pair": [{"SpecialToken": {"id": []}}],
                "special_tokens": {},
            }
        },
    ],
)
def test_values_of_other_types_are_uncommon(changes):
    assert not is_common(content(**changes))


@pytest.mark.parametrize(
    "model",
    [
        {"unk_token": "[UNK]", "vocab": {"a": 0}},  # the library guesses that it is a WordLevel
        {"type": "BPE", "unk_token": "[UNK]", "vocab": {"a": 0}, "merges": []},
        {"type": "BPE", "unk_token": [], "vocab": {"a": 0}, "merges": []},
    ],
)
def test_a_model_that_fails_at_an_unknown_character_is_uncommon(model):
    assert not is_common(content(model=model))
