"""Queries, keys and values: the arithmetic of every head of every kind of model holds in the drawn numbers."""

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.inspection.projections import projections
from regard.inspection.views import choose_view, find_view
from regard.inspection.views.base import Choices, Subject
from regard.layers.attention import AttentionTaps, MultiHeadAttention, SelfAttention
from regard.layers.quantized import quantize
from tests.inspection.views.subjects import TEXT, has_title, matrices, subject_of

draw = find_view("qkv").draw
MODELS = ["bert", "gpt", "transformer", "t5", "vilbert"]


def heads(subject):
    """Every attention of a model with its module, and every head of it."""
    for one in subject.trace.attentions():
        module = subject.pipeline.model.get_submodule(one.path)
        for head in range(module.heads):
            yield one.path, module, head


@pytest.mark.parametrize("kind", MODELS)
def test_x_times_w_is_what_every_head_uses(kind):
    subject, seen = subject_of(kind), 0
    value = subject.trace.values
    for path, module, head in heads(subject):
        inputs = value[f"{path}.inputs"]
        memory = value.get(f"{path}.memory", inputs)
        for name, given, project in zip(
            ("queries", "keys", "values"), (inputs, memory, memory), projections(module, head), strict=True
        ):
            np.testing.assert_allclose(project(given), value[f"{path}.{name}"][head], rtol=1e-4, atol=1e-5)
            seen += 1
    assert seen >= 12


@pytest.mark.parametrize("number", [0, 1])
def test_with_rotary_positions_x_times_w_is_rotated(number):
    subject = subject_of("llama", number)
    value, model = subject.trace.values, subject.pipeline.model
    apply_rotary = model.positions(torch.arange(len(TEXT))).apply_rotary
    for path, module, head in heads(subject):
        assert isinstance(module, SelfAttention)
        shared = head // (module.heads // module.num_kv_heads)
        query, key, of_value = (one(value[f"{path}.inputs"]) for one in projections(module, head))
        for name, found, place in (("queries", query, head), ("keys", key, shared)):
            rotated = apply_rotary(torch.from_numpy(found)[None, None])[0, 0].detach()
            np.testing.assert_allclose(rotated, value[f"{path}.{name}"][place], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_value, value[f"{path}.values"][shared], rtol=1e-4, atol=1e-5)


def test_the_drawn_matrices_are_the_models():
    subject = subject_of("gpt")
    scene = draw(subject, Choices(layer=1, head=2)).scene
    drawn = {name: matrix.values for name, matrix in matrices(scene).items()}
    module = subject.pipeline.model.blocks[1].attention
    inputs = torch.from_numpy(subject.trace.values["blocks.1.attention.inputs"])
    width = module.head_width
    with torch.no_grad():
        split = module.project(inputs).view(len(TEXT), 3, 3, width)  # tokens, of q k v, heads
        query, key, value = (split[:, part, 2] for part in range(3))
        scores = query @ key.T
        future = torch.ones(len(TEXT), len(TEXT)).triu(1).bool()
        weights = (scores / width**0.5).masked_fill(future, -torch.inf).softmax(-1)
    wanted = {
        "X": inputs,
        "W_Q": module.project.weight[2 * width : 3 * width].T.detach(),
        "b of W_Q": module.project.bias[None, 2 * width : 3 * width].detach(),
        "Q": query,
        "K": key,
        "V": value,
        "scores Q Kᵀ": scores,
        f"scores × {width**-0.5:.3g}": scores / width**0.5,
        "softmax": weights,
        "Z = softmax V": weights @ value,
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(drawn[name], values[:8, :8], rtol=1e-4, atol=1e-5, err_msg=name)
    assert set(drawn) == {*wanted, "W_K", "W_V", "b of W_K", "b of W_V"}
    hidden = matrices(scene)["softmax"].masked
    assert hidden is not None
    np.testing.assert_array_equal(hidden, future)
    assert has_title(scene, f"it → 3: {matrices(scene)['Q'].values[4, 3]:.6g}")


def test_the_rotated_queries_are_drawn_beside_the_product_and_the_caption_says_so():
    subject = subject_of("llama")
    scene = draw(subject, Choices(layer=0, head=0)).scene
    drawn = matrices(scene)
    np.testing.assert_array_equal(
        drawn["Q rotated"].values, subject.trace.values["blocks.0.attention.queries"][0][:8, :8]
    )
    assert not np.allclose(drawn["Q rotated"].values, drawn["Q"].values)
    assert "V rotated" not in drawn
    assert "rotated by position" in scene.caption


def test_a_position_bias_is_named():
    scene = draw(subject_of("t5"), Choices(attention="encoder.*", layer=0, head=0)).scene
    assert "scores × 1 + bias" in matrices(scene)


def test_in_cross_attention_keys_and_values_are_of_the_memory():
    subject = subject_of("transformer")
    scene = draw(subject, Choices(attention="*cross_attention", layer=0, head=0)).scene
    drawn = matrices(scene)
    module = subject.pipeline.model.decoder.blocks[0].cross_attention
    assert isinstance(module, MultiHeadAttention)
    memory = subject.trace.values["decoder.blocks.0.cross_attention.memory"]
    np.testing.assert_array_equal(drawn["memory M"].values, memory[:8, :8])
    key = module.key(torch.from_numpy(memory)).detach()[:, :8]
    np.testing.assert_allclose(drawn["K"].values, key, rtol=1e-4, atol=1e-5)


def test_what_is_left_out_is_said():
    texts = [
        item.text for item in draw(subject_of("gpt"), Choices(layer=0, head=0)).scene.items if hasattr(item, "text")
    ]
    assert "6 × 8 of 6 × 24" in texts
    assert "8 × 8 of 24 × 8" in texts


def test_it_needs_the_model_in_floating_point():
    subject = subject_of("gpt")
    with pytest.raises(InputError, match="the view qkv runs the model; give the model's folder"):
        draw(Subject(subject.trace), Choices())
    quantize(subject.pipeline.model)
    with pytest.raises(InputError, match="weights are in int8; load it without --precision int8"):
        _ = draw(subject, Choices()).scene


def test_an_attention_without_projections_is_left_out_beside_others_that_have_them():
    subject = subject_of("transformer")
    subject.pipeline.model.decoder.blocks[1].cross_attention = AttentionTaps()
    names = {frame.name.partition(",")[0] for frame in draw(subject, Choices()).frames}
    assert "decoder.blocks.0.cross_attention" in names
    assert "decoder.blocks.1.cross_attention" not in names
    with pytest.raises(InputError, match=r"there is no attention decoder\.blocks\.1\.cross\*"):
        draw(subject, Choices(attention="decoder.blocks.1.cross*"))


@pytest.mark.parametrize("kind", ["rnn", "conv"])
def test_a_model_without_projections_has_no_such_view(kind):
    with pytest.raises(InputError, match="no attention that projects queries, keys and values"):
        choose_view("qkv", subject_of(kind, 0).trace.info)
