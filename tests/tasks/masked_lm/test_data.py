"""Text made ready for BERT: the tokenizer that is asked for."""

import pytest

from regard.tasks.masked_lm.data import MaskedDataConfig, make_tokenizer


@pytest.mark.parametrize("cased", [False, True])
def test_a_vocabulary_is_a_ready_made_tokenizer(tmp_path, cased):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "The", ""]))
    found = make_tokenizer(MaskedDataConfig(tokenizer=str(path), cased=cased), None, 0)
    assert found.encode("The the").ids == [2, 6 if cased else 5, 5, 3]
