"""GGUF files whose quantized blocks are kept: the numbers of the dequantized model, and errors that say the same."""

import pytest
import torch
from gguf import GGMLQuantizationType as Type
from torch.testing import assert_close

import regard
from regard import huggingface
from regard.errors import FolderError
from regard.layers.linear import Linear
from regard.layers.quantized import PackedEmbedding, PackedLinear
from regard.ops.packed import round_activations
from tests.huggingface.test_gguf import small, write
from tests.ops.forms import needs_kernels

pytestmark = needs_kernels
KINDS = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]


@pytest.mark.parametrize("family", ["Llama", "Qwen2", "GPT2"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_numbers_are_those_of_dequantized_weights_and_rounded_activations(bpe, ids, tmp_path, family, kind):
    path = write(tmp_path / "m.gguf", small(family), bpe, kind)
    packed, plain = (huggingface.load(path, packed=keep).model for keep in (True, False))
    kinds = {type(layer) for layer in packed.modules()}
    assert {PackedLinear, PackedEmbedding} <= kinds
    assert Linear not in kinds
    for layer in plain.modules():
        if type(layer) is Linear:
            layer.register_forward_pre_hook(lambda _layer, given: round_activations(given[0]))
    with torch.inference_mode():
        found, wanted = packed.hidden_states(ids), plain.hidden_states(ids)
        assert_close(packed.logits(wanted), plain.logits(round_activations(wanted)))
    # A last bit may make a number round to the neighboring one of 255 levels.
    assert (found - wanted).abs().max() < 0.05 * wanted.abs().max()
    assert (found - wanted).abs().median() < 1e-5
    assert torch.equal(packed.input_embeddings, plain.input_embeddings)


def test_what_is_not_quantized_stays_in_float32(bpe, ids, tmp_path):
    path = write(tmp_path / "m.gguf", small("Llama"), bpe, Type.F16)
    packed, plain = (huggingface.load(path, packed=keep).model for keep in (True, False))
    assert not any(isinstance(layer, (PackedLinear, PackedEmbedding)) for layer in packed.modules())
    assert torch.equal(packed(ids), plain(ids))


def test_run_keeps_the_blocks_and_other_uses_do_not(bpe, tmp_path):
    path = write(tmp_path / "m.gguf", small("Llama"), bpe, Type.Q4_1)
    stored, plain = regard.load(path, precision="stored"), regard.load(path)
    assert isinstance(stored.model.blocks[0].attention.project, PackedLinear)
    assert type(plain.model.blocks[0].attention.project) is Linear
    assert stored.run("the red house", max_new_tokens=5).text  # from the recorded step


def test_a_weight_of_another_shape_is_named(bpe, tmp_path):
    model = small("Llama")
    model.model.layers[1].mlp.down_proj.weight = torch.nn.Parameter(torch.zeros(64, 64))
    path = write(tmp_path / "m.gguf", model, bpe, Type.Q4_1)
    with pytest.raises(FolderError, match=r"blk\.1\.ffn_down\.weight"):
        huggingface.load(path, packed=True)


def test_no_model_knows_precision_int3(bpe, tmp_path):
    with pytest.raises(regard.errors.ConfigError, match="wanted one of stored, float32, int8, int4"):
        regard.load(tmp_path, precision="int3")
