"""What must hold for every encoder of text and images in MODELS."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from torch.testing import assert_close

from regard.checkpoint import assign_weights, encode_tensors, read_tensors
from regard.errors import InputError
from regard.inspection.capture import capture, points
from regard.models import build
from tests.contracts.examples import VISION_LANGUAGE, named
from tests.contracts.overfitting import overfit

LENGTHS = [9, 4, 6, 3]  # of the texts, symbols counted
COUNTS = [3, 5, 1, 2]  # and of the regions, the whole picture counted

Input = tuple[Tensor, Tensor, Tensor, Tensor]


@pytest.fixture(params=VISION_LANGUAGE, ids=named)
def example(request):
    return request.param


@pytest.fixture
def model(example):
    return example.loud_model()


@pytest.fixture
def inputs(example) -> Input:
    """Begin, words, end, padding; all of the second half of a text is its second sentence, where there are two."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(4, 40, (len(LENGTHS), max(LENGTHS)), generator=generator)
    for row, length in zip(ids, LENGTHS, strict=True):
        row[0], row[length - 1], row[length:] = 1, 2, 0
    second = (torch.arange(max(LENGTHS)) >= torch.tensor(LENGTHS)[:, None] // 2) & (ids != 0)
    segment_ids = second.long().clamp(max=example.config.num_segments - 1)
    regions = torch.randn(len(COUNTS), max(COUNTS), 10, generator=generator)
    boxes = torch.rand(len(COUNTS), max(COUNTS), 5, generator=generator) + 0.01
    for row, count in enumerate(COUNTS):
        boxes[row, count:] = 0  # the features of padding are anything
    return ids, segment_ids, regions, boxes


def said(model: nn.Module, inputs: Input) -> dict[str, Tensor]:
    """All outputs by name: `hidden` or `tokens` (B, T, …), `regions` (B, R, …), others (B, …)."""
    found = model(*inputs)
    if isinstance(found, Tensor):
        is_grounding = found.shape[1:] == inputs[3].shape[1:2] and not hasattr(model, "head")
        return {"regions" if is_grounding else "pair": found}
    return found._asdict()


def real(name: str, inputs: Input) -> Tensor | slice:
    """The places of an output that are no padding."""
    return {"hidden": inputs[0] != 0, "tokens": inputs[0] != 0, "regions": inputs[3].any(-1)}.get(name, slice(None))


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor], inputs: Input) -> None:
    """Equal at every word and region of the inputs, and for the pairs as a whole."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        positions, other = real(name, inputs), found[name]
        if isinstance(positions, Tensor):
            other, value = other[:, : positions.shape[1]], value[:, : positions.shape[1]]
        assert_close(
            other[positions],
            value[positions],
            atol=2e-5,
            rtol=1e-4,
            msg=lambda text, name=name: f"{name}: {text}",
        )


def least_change(found: dict[str, Tensor], wanted: dict[str, Tensor], inputs: Input) -> float:
    """Of all outputs and all pairs, the one that changed least: by how much."""
    changes = []
    for name, value in wanted.items():
        change = (found[name] - value).abs().nan_to_num(0.0)  # -inf - -inf: padding
        positions = real(name, inputs)
        if isinstance(positions, Tensor):
            change = change.where(positions.view(*positions.shape, *[1] * (change.dim() - 2)), 0.0)
        changes.append(change.flatten(1).amax(1).min().item() if change.dim() > 1 else change.min().item())
    return min(changes)


def test_builds_on_the_meta_device_without_memory(example):
    with torch.device("meta"):
        model = build(example.config)
    assert all(parameter.is_meta for parameter in model.parameters())


def test_same_seed_same_weights_other_seed_others(example):
    one, same, other = example.model(3), example.model(3), example.model(4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_save_and_load_are_bit_equal(example, model, inputs, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(encode_tensors(model.state_dict()))
    with torch.device("meta"):
        loaded = build(example.config)
    assign_weights(loaded, read_tensors(path), str(path))
    found, wanted = said(loaded.eval(), inputs), said(model, inputs)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert type(example.config).model_validate_json(example.config.model_dump_json()) == example.config


def test_padding_of_the_text_changes_nothing(model, inputs):
    ids, segment_ids, *picture = inputs
    more = torch.zeros(len(ids), 5, dtype=torch.long)
    wider = (torch.cat([ids, more], dim=1), torch.cat([segment_ids, more], dim=1), *picture)
    assert_same(said(model, wider), said(model, inputs), inputs)


def test_padding_of_the_regions_changes_nothing(model, inputs):
    ids, segment_ids, regions, boxes = inputs
    more = torch.full((len(ids), 4, regions.shape[2]), 7.0)
    wider = (
        ids,
        segment_ids,
        torch.cat([regions, more], dim=1),
        torch.cat([boxes, torch.zeros(len(ids), 4, 5)], dim=1),
    )
    assert_same(said(model, wider), said(model, inputs), inputs)


def test_what_padding_regions_show_changes_nothing(model, inputs):
    ids, segment_ids, regions, boxes = inputs
    other = torch.where(boxes.any(-1, keepdim=True), regions, -3.0)
    assert_same(said(model, (ids, segment_ids, other, boxes)), said(model, inputs), inputs)


def test_batched_equals_one_by_one(model, inputs):
    together = said(model, inputs)
    for row, (length, count) in enumerate(zip(LENGTHS, COUNTS, strict=True)):
        ids, segment_ids, regions, boxes = (one[row : row + 1] for one in inputs)
        alone = (ids[:, :length], segment_ids[:, :length], regions[:, :count], boxes[:, :count])
        assert_same(said(model, alone), {name: value[row : row + 1] for name, value in together.items()}, alone)


def test_without_segments_all_is_the_first_sentence(model, inputs):
    ids, _, *picture = inputs
    assert_same(said(model, (ids, None, *picture)), said(model, (ids, torch.zeros_like(ids), *picture)), inputs)


def test_both_streams_matter_to_all_that_is_said(model, inputs):
    ids, segment_ids, regions, boxes = inputs
    wanted = said(model, inputs)
    other_words = torch.where((ids > 3), (ids + 7) % 30 + 4, ids)
    for changed in (
        (other_words, segment_ids, regions, boxes),
        (ids, segment_ids, regions.flip(2), boxes),
        (ids, segment_ids, regions, boxes.flip(2)),
    ):
        assert least_change(said(model, changed), wanted, inputs) > 1e-3


def test_words_are_a_sequence_and_regions_a_set(model, inputs):
    ids, segment_ids, regions, boxes = (one[:1] for one in inputs)  # the first has no padding among its words
    regions, boxes = regions[:, : COUNTS[0]], boxes[:, : COUNTS[0]]
    plain = (ids, segment_ids, regions, boxes)
    wanted = said(model, plain)
    length = ids.clone()
    length[:, [1, 3]] = ids[:, [3, 1]]
    assert least_change(said(model, (length, segment_ids, regions, boxes)), wanted, plain) > 1e-4
    order = [0, 2, 1]  # the first is the whole picture
    found = said(model, (ids, segment_ids, regions[:, order], boxes[:, order]))
    assert_same(found, {name: one[:, order] if name == "regions" else one for name, one in wanted.items()}, plain)


def test_watched_equals_unwatched_and_every_tap_fires(model, inputs):
    plain = said(model, inputs)
    with capture(model, "*") as seen:
        assert_same(said(model, inputs), plain, inputs)
    assert set(seen) == set(points(model))
    for path, (value,) in seen.items():
        if path.endswith("weights"):
            keys = inputs[0] != 0 if value.shape[-1] == max(LENGTHS) else inputs[3].any(-1)
            assert_close(value.sum(-1), torch.ones(value.shape[:-1]), msg=f"rows of {path} do not sum to 1")
            assert not value.masked_select(~keys[:, None, None]).any(), f"{path} looks at padding"
            assert value.masked_select(keys[:, None, None]).all(), f"{path} does not look at all"


def test_gradient_reaches_every_parameter(model, inputs):
    losses = []
    for name, value in said(model, inputs).items():
        losses.append(value[real(name, inputs)].square().mean())
    sum(losses).backward()
    silent = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    assert silent == []


def test_a_pair_of_padding_alone_has_finite_outputs_and_gradients(model, inputs):
    rows = tuple(torch.cat([one, torch.zeros_like(one[:1])]) for one in inputs)
    for patterns in ((), ("*",)):
        with capture(model, *patterns):
            found = said(model, rows)
        kept = {name: value[real(name, rows)] for name, value in found.items()}
        assert all(value.isfinite().all() for value in kept.values())
        sum(value.square().mean() for value in kept.values()).backward()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert_same({name: value[:-1] for name, value in found.items()}, said(model, inputs), inputs)


def loss_of(example, name: str, value: Tensor, is_grounding: bool) -> Tensor:
    """Something to learn for an output: numbers where it gives vectors, a yes or no, or classes."""
    generator = torch.Generator().manual_seed(len(name))
    features = name == "regions" and value.dim() > 1 and not is_grounding and not example.config.vision.classes
    if name in ("hidden", "text", "image") or features:
        return mse_loss(value, torch.rand(value.shape, generator=generator) - 0.5)
    if value.dim() == 1:
        return binary_cross_entropy_with_logits(value, torch.tensor([1.0, 0.0, 0.0, 1.0]))
    if is_grounding:
        return cross_entropy(value, torch.tensor([2, 4, 0, 1]))
    return cross_entropy(value, torch.randint(value.shape[-1], value.shape[:-1], generator=generator))


def test_overfits_one_batch(example, inputs):
    model = example.model().train()
    first = None

    def measure():
        nonlocal first
        loss = torch.zeros(())
        for name, value in said(model, inputs).items():
            is_grounding = name == "regions" and value.dim() == 2
            positions = slice(None) if is_grounding else real(name, inputs)
            loss = loss + loss_of(example, name, value[positions], is_grounding)
        first = first or loss.item()
        return loss, loss.item() < 0.1 * first

    loss, known = overfit(model, measure, learning_rate=4e-3, steps=200)
    assert known, (loss, first)


def test_what_is_no_picture_of_this_model_is_one_line(model, inputs):
    ids, segment_ids, regions, boxes = inputs
    with pytest.raises(InputError, match=r"^regions are \(4, 5, 9\), wanted \(4, R, 10\)"):
        model(ids, segment_ids, regions[..., :9], boxes)
    with pytest.raises(InputError, match=r"^regions are \(3, 5, 10\), wanted \(4, R, 10\)"):
        model(ids, segment_ids, regions[:3], boxes[:3])
    with pytest.raises(InputError, match=r"^regions are \(4, 0, 10\), wanted .* one region at least"):
        model(ids, segment_ids, regions[:, :0], boxes[:, :0])
    with pytest.raises(InputError, match=r"^boxes are \(4, 5, 4\), wanted \(4, 5, 5\)"):
        model(ids, segment_ids, regions, boxes[..., :4])
