"""BERT folders whose tokenizer.json is not WordPiece: the ids are those of transformers."""

import json

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from regard.errors import FolderError
from regard.tokenizers.wordpiece import WordPieceTokenizer

TEXTS = ["the cat sat on the mat", "a cat and a dog", "the dog barked at the cat", "it slept"] * 5
NAMES = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}


def write(folder, kind):
    special = list(NAMES.values())
    if kind == "WordLevel":
        core = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
        core.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer = trainers.WordLevelTrainer(special_tokens=special)
    elif kind == "Unigram":
        core = tokenizers.Tokenizer(models.Unigram())
        core.normalizer = normalizers.NFKC()
        core.pre_tokenizer, core.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>")
    else:
        core = tokenizers.Tokenizer(models.BPE())
        core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=300, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        )
    core.train_from_iterator(TEXTS, trainer)
    ends = [(token, core.token_to_id(token)) for token in ("<s>", "</s>")]
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=ends
    )
    folder.mkdir()
    core.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **NAMES}), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize("kind", ["WordLevel", "BPE", "Unigram"])
def test_the_ids_are_those_of_transformers(tmp_path, kind):
    folder = write(tmp_path / kind, kind)
    ours, theirs = WordPieceTokenizer.from_folder(folder), PreTrainedTokenizerFast.from_pretrained(folder)
    for text in ("the cat slept", "a dog", "barked at it"):
        assert ours.encode(text).ids == theirs(text).input_ids
        assert ours.encode(text, "the mat").ids == theirs(text, "the mat").input_ids
    assert (ours.bos_id, ours.eos_id, ours.pad_id) == (theirs.cls_token_id, theirs.sep_token_id, theirs.pad_token_id)
    assert ours.decode(ours.encode_ids("the cat sat")).strip() == "the cat sat"
    if kind != "Unigram":  # this small one spells
        assert "cat" in [label.strip("·") for label in ours.token_labels(ours.encode("the cat").ids)]
        assert "cat" in ours.single_token_words()
    again = tmp_path / "again"
    again.mkdir()
    for name, content in ours.to_files().items():
        (again / name).write_bytes(content)
    assert WordPieceTokenizer.from_folder(again).encode("the cat").ids == ours.encode("the cat").ids


def test_without_the_names_of_its_special_tokens_the_error_says_where_they_belong(tmp_path):
    folder = write(tmp_path / "x", "WordLevel")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(FolderError, match=r"'\[PAD\]' is not in its vocabulary; .* as pad_token in tokenizer_config"):
        WordPieceTokenizer.from_folder(folder)
