"""Every op has its uses in the misuse tables; the misuses that once went wrong are tried here, all by `make attack`."""

from dataclasses import replace

import pytest

from tests.ops.misuse.judging import fault_of
from tests.ops.misuse.table import all_uses, missing_ops

pytestmark = pytest.mark.usefixtures("no_grad")

# They ended the process, read memory that is not theirs, or gave a wrong result.
ONCE_WRONG = {
    "scaled_dot_product_attention: query cut to 0 in dimension 1",
    "scaled_dot_product_attention: key cut to 0 in dimension 1",
    "scaled_dot_product_attention: mask on the meta device",
    "scaled_dot_product_attention without cache rows: value cut to 0 in dimension 2",
    "varlen_attention: query with inf at the end",
    "varlen_attention: key one more in dimension 0",
    "varlen_attention: max_seqlen=1099511627776",
    "gather_cache_rows: cache_rows as torch.float64",
    "linear of a row: weight on the meta device",
    "dropout_with_seeds: p=1.0",
    "dropout_with_seeds: p=1.1",
    "losses_and_gradient: label_smoothing=1.1",
    "losses_and_gradient: targets as torch.bool",
    "linear_cross_entropy: hidden cut to 5 in dimension 0",
    "linear_cross_entropy: weight cut to 0 in dimension 0",
    "linear_cross_entropy: hidden as torch.int64",
    "linear_cross_entropy backward: hidden as torch.bfloat16",
    "FbgemmInt8 of 5 rows: bias cut to 1 in dimension 0",
    "GRUScan: state as torch.float64",
}
USES = {use.name: use for use in all_uses() if use.name in ONCE_WRONG}


def test_every_op_has_uses():
    assert missing_ops() == set()


@pytest.mark.parametrize("name", sorted(ONCE_WRONG))
def test_a_misuse_that_once_went_wrong_is_survived(name):
    assert fault_of(USES[name]) is None


def test_a_wrong_result_and_a_result_for_a_refused_use_are_faults():
    use = next(use for use in all_uses() if use.name == "linear: right use 0")
    assert fault_of(use) is None
    doubled = replace(use.op, call=lambda **arguments: use.op.call(**arguments) * 2)
    assert "differs by" in fault_of(replace(use, op=doubled))
    refusing = replace(use.op, plain=lambda hidden: hidden)
    assert "raised" in fault_of(replace(use, op=refusing))
