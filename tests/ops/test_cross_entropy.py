"""The cross-entropy in chunks: the same loss and gradients as in one line, and never all logits at once."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from regard import ops
from regard.ops.cross_entropy import (
    IGNORE_INDEX,
    cross_entropy_inplace,
    linear_cross_entropy,
    linear_cross_entropy_in_torch,
    losses_and_gradient,
)
from tests.ops.forms import needs_kernels, numbers

CHUNK = "regard.ops.cross_entropy.CHUNK"
PLACES, WIDTH, WORDS = 12, 5, 10


def some(*, hidden=True, table=True, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    targets = torch.randint(WORDS, (PLACES,), generator=generator)
    made = [torch.randn(n, WIDTH, generator=generator, dtype=dtype) for n in (PLACES, WORDS)]
    return made[0].requires_grad_(hidden), made[1].requires_grad_(table), targets


# Rows at a time: one, though the chunk is smaller; one; five, the last chunk shorter; six, no rest; all; more than all.
@pytest.mark.parametrize("chunk", [1, 10, 59, 60, 120, 2**21])
@pytest.mark.parametrize("ignored", [[], [0], [3, 4, 5, 11], list(range(PLACES))])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_chunked_equals_written_out(monkeypatch, chunk, ignored, wanted):
    monkeypatch.setattr(CHUNK, chunk)
    hidden, table, targets = some(hidden=wanted[0], table=wanted[1])
    targets[ignored] = IGNORE_INDEX
    parts = [part for part in (hidden, table) if part.requires_grad]
    one, other = linear_cross_entropy(hidden, table, targets), linear_cross_entropy_in_torch(hidden, table, targets)
    assert_close(one, other)
    for mine, theirs in zip(torch.autograd.grad(one / 7, parts), torch.autograd.grad(other / 7, parts), strict=True):
        assert_close(mine, theirs)
    if len(ignored) == PLACES:
        assert one.item() == 0.0


@pytest.mark.parametrize("chunk", [10, 2**21])
def test_without_gradients_it_is_the_same_number(monkeypatch, chunk):
    monkeypatch.setattr(CHUNK, chunk)
    hidden, table, targets = some()
    targets[2] = IGNORE_INDEX
    with torch.no_grad():
        loss = linear_cross_entropy(hidden, table, targets)
    assert not loss.requires_grad
    assert_close(loss, linear_cross_entropy_in_torch(hidden, table, targets).detach())
    assert not linear_cross_entropy(hidden.detach(), table.detach(), targets).requires_grad


def test_the_loss_by_hand():
    """Logits 0, ln 2 and ln 5: chances 1/8, 2/8, 5/8."""
    table = torch.tensor([[1.0], [2.0], [5.0]]).log()
    loss = linear_cross_entropy(torch.ones(4, 1), table, torch.tensor([0, 1, 2, IGNORE_INDEX]))
    assert_close(loss, torch.tensor([8.0, 4.0, 1.6]).log().sum())


@pytest.mark.parametrize("wrong", [-1, -99, -101, 10, 10**9])
def test_a_target_out_of_range_is_an_error(wrong):
    hidden, table, targets = some()
    targets[[2, 7]] = torch.tensor([IGNORE_INDEX, wrong])
    with pytest.raises(ValueError, match=f"a target is {wrong}, wanted 0 to 9, or {IGNORE_INDEX}"):
        linear_cross_entropy(hidden, table, targets)


def test_huge_logits_stay_finite():
    hidden, table, targets = some()
    with torch.no_grad():
        hidden *= 1e4
    loss = linear_cross_entropy(hidden, table, targets)
    loss.backward()
    assert_close(loss, linear_cross_entropy_in_torch(hidden, table, targets))
    assert hidden.grad.isfinite().all()
    assert table.grad.isfinite().all()


def test_the_inputs_are_not_written_on():
    hidden, table, targets = some()
    targets[1] = IGNORE_INDEX
    before = [part.detach().clone() for part in (hidden, table, targets)]
    linear_cross_entropy(hidden, table, targets).backward()
    assert all(torch.equal(one, part) for one, part in zip(before, (hidden, table, targets), strict=True))


def test_words_need_not_lie_in_rows(monkeypatch):
    monkeypatch.setattr(CHUNK, 50)
    hidden, table, targets = some()
    columns = hidden.detach().t().contiguous().t().requires_grad_()
    one, other = linear_cross_entropy(columns, table, targets), linear_cross_entropy(hidden, table, targets)
    assert_close(one, other)
    assert_close(torch.autograd.grad(one, columns), torch.autograd.grad(other, hidden))


@pytest.mark.parametrize("chunk", [10, 30, 2**21])
def test_the_gradients_are_those_of_small_differences(monkeypatch, chunk):
    monkeypatch.setattr(CHUNK, chunk)
    hidden, table, targets = some(dtype=torch.float64)
    targets[4] = IGNORE_INDEX
    assert torch.autograd.gradcheck(lambda *parts: linear_cross_entropy(*parts, targets), (hidden, table))


def test_a_second_derivative_is_refused_and_not_made_up():
    hidden, table, targets = some()
    (gradient,) = torch.autograd.grad(linear_cross_entropy(hidden, table, targets).square(), hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


class Memory(TorchDispatchMode):
    """What the operations inside the block allocate, in elements."""

    def __init__(self):
        super().__init__()
        self.made = []  # keeps them, so that no two have the same address

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        self.made += [part for part in (made if isinstance(made, tuple) else [made]) if isinstance(part, torch.Tensor)]
        return made

    def sizes(self, *given):
        """Of everything that was made, and of nothing that was given."""
        storages = {part.untyped_storage().data_ptr(): part for part in self.made}
        for part in given:
            storages.pop(part.untyped_storage().data_ptr(), None)
        return [part.untyped_storage().nbytes() // part.element_size() for part in storages.values()]


def many(ignored=()):
    """300 places, 1000 words."""
    hidden, table = torch.randn(300, 4, requires_grad=True), torch.randn(1000, 4, requires_grad=True)
    targets = torch.randint(1000, (300,))
    targets[list(ignored)] = IGNORE_INDEX
    return hidden, table, targets


@pytest.mark.parametrize("ignored", [[], [0, 100, 299]])
def test_never_all_logits_at_once(monkeypatch, ignored):
    monkeypatch.setattr(CHUNK, 10_000)
    given = many(ignored)
    with Memory() as plain:
        linear_cross_entropy_in_torch(*given).backward()
    with Memory() as chunked:
        linear_cross_entropy(*given).backward()
    assert max(plain.sizes(*given)) == 300 * 1000
    # One buffer; all else is as small as the table.
    assert [size for size in chunked.sizes(*given) if size > 4000] == [10_000]


def test_where_no_gradient_is_wanted_none_is_made(monkeypatch):
    monkeypatch.setattr(CHUNK, 10_000)
    given = many()
    with torch.no_grad(), Memory() as memory:
        linear_cross_entropy(*given)
    assert [size for size in memory.sizes(*given) if size >= 300] == [10_000]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_given_logits_have_torchs_loss_and_gradient(smoothing):
    logits = (torch.randn(9, 40) * 3).requires_grad_()
    targets = torch.randint(40, (9,))
    targets[4] = IGNORE_INDEX
    wanted = F.cross_entropy(logits, targets, ignore_index=IGNORE_INDEX, label_smoothing=smoothing, reduction="sum")
    (gradient,) = torch.autograd.grad(wanted / 3, logits)
    copy = logits.detach().clone().requires_grad_()
    found = cross_entropy_inplace(copy * 1.0, targets, label_smoothing=smoothing)  # used up, so not the leaf itself
    (found / 3).backward()
    assert_close(found, wanted)
    assert_close(copy.grad, gradient, atol=1e-6, rtol=1e-4)


@needs_kernels
def test_overwritten_logits_that_backward_needs_are_an_error():
    """Torch raises where the backward pass needs logits that the loss has overwritten."""
    logits = torch.randn(9, 40, requires_grad=True).exp()  # whose gradient needs what exp gave
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        cross_entropy_inplace(logits, torch.randint(40, (9,))).backward()
    leaf = torch.randn(9, 40, requires_grad=True)
    before = leaf.detach().clone()
    cross_entropy_inplace(leaf, torch.randint(40, (9,))).backward()
    assert torch.equal(leaf, before)
    assert cross_entropy_inplace(torch.zeros(0, 5, requires_grad=True) * 1, torch.zeros(0, dtype=torch.long)) == 0


@pytest.mark.parametrize("is_disabled", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (3, 17), (20, 300)])
def test_losses_and_their_gradient_are_torchs(rows, size, smoothing, is_disabled):
    logits = (numbers(rows, size) * 5).requires_grad_()
    targets = torch.randint(size, (rows,), generator=torch.Generator().manual_seed(2))
    targets[-1] = IGNORE_INDEX
    wanted = F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
    (gradient,) = torch.autograd.grad(wanted.sum(), logits)
    found = logits.detach().clone()
    if is_disabled or ops.why_disabled():
        if smoothing:
            with ops.disabled(), pytest.raises(ValueError, match="label smoothing"):
                losses_and_gradient(found, targets, smoothing)
            return
        with ops.disabled():
            losses = losses_and_gradient(found, targets)
    else:
        losses = losses_and_gradient(found, targets, smoothing)
    assert_close(losses, wanted, atol=1e-5, rtol=1e-5)
    assert_close(found, gradient, atol=1e-6, rtol=1e-5)


def test_targets_of_any_integer_dtype():
    logits, targets = numbers(6, 30), torch.arange(6)
    wanted = F.cross_entropy(logits, targets, reduction="none")
    for dtype in (torch.int32, torch.int16, torch.uint8):
        assert_close(losses_and_gradient(logits.clone(), targets.to(dtype)), wanted)


def test_targets_that_do_not_match_are_refused():
    logits = numbers(6, 30)
    for wrong in (torch.arange(5), torch.arange(12).view(6, 2), torch.ones(6)):
        with pytest.raises(ValueError, match="targets are .*, wanted integers"):
            losses_and_gradient(logits.clone(), wrong)
    for wrong in (10**9, 30, -1):
        targets = torch.arange(6)
        targets[3] = wrong
        with pytest.raises((ValueError, IndexError)):
            cross_entropy_inplace(logits * 1.0, targets)


def test_expanded_strided_and_half_logits_take_the_torch_form():
    targets = torch.arange(6)
    for logits in (numbers(1, 30).expand(6, 30), numbers(30, 6).t(), numbers(6, 60)[:, ::2]):
        before = logits.clone()
        wanted = F.cross_entropy(before, targets, reduction="sum")
        assert_close(cross_entropy_inplace(logits, targets), wanted)
        assert torch.equal(logits, before)
    with pytest.raises(RuntimeError, match="single memory location"):
        losses_and_gradient(numbers(1, 30).expand(6, 30), targets)
    strided = numbers(30, 6).t()
    assert_close(losses_and_gradient(strided, targets), F.cross_entropy(numbers(30, 6).t(), targets, reduction="none"))
    half = numbers(6, 30).half()
    assert cross_entropy_inplace(half * 1, targets).dtype is torch.float16
