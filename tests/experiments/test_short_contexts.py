"""The laws fit the model: one with a short context keeps them as the same model with a long one does."""

import pytest
import torch

from regard.errors import InputError
from regard.experiments.adapters import LENGTHS, adapter_of
from regard.experiments.laws import check
from regard.models import bert, build, gpt, llama, transformer

SHORT = [
    gpt.EXAMPLES[0].model_copy(update={"context": 11}),
    llama.EXAMPLES[0].model_copy(update={"context": 12}),
    bert.EXAMPLES[0].model_copy(update={"context": 11}),
    transformer.TINY.model_copy(update={"positions": "learned", "max_positions": 11}),
]


@pytest.mark.parametrize("config", SHORT, ids=lambda config: type(config).__name__)
def test_no_law_is_called_broken_because_the_context_is_short(config):
    torch.manual_seed(0)
    broken = [one.law.name for one in check(adapter_of(build(config))) if one.deviation is not None and not one.holds]
    assert broken == []


def test_a_model_with_room_has_the_same_inputs_as_ever():
    assert adapter_of(build(gpt.EXAMPLES[0])).lengths == LENGTHS
    assert adapter_of(build(gpt.EXAMPLES[0])).target_length == 8
    assert adapter_of(build(bert.EXAMPLES[0])).padding == 6


def test_a_model_that_reads_hardly_anything_is_refused_in_one_line():
    with pytest.raises(InputError, match="the model reads 9 tokens at once; the laws need 10 at least"):
        adapter_of(build(gpt.EXAMPLES[0].model_copy(update={"context": 9})))
