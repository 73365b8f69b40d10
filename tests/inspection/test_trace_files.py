"""A trace file is checked when it is read: what a view would stumble over is refused in one line."""

import json

import pytest

from regard.errors import InputError
from regard.inspection.trace import MAX_ATTENTIONS, MAX_MODULES, Trace
from tests.attack.traces import ATTENTION, ROOT, SHAPES, axis, info, safetensors, trace

WEIGHTS = f"{ATTENTION}.weights"


def test_a_good_file_is_read(tmp_path):
    path = tmp_path / "t.safetensors"
    path.write_bytes(trace())
    found = Trace.open(path)
    assert found.info.kind == "gpt"
    assert {name: list(value.shape) for name, value in found.values.items()} == SHAPES


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (trace({WEIGHTS: [3, 3]}), r"wanted heads, queries and keys, the last two 3 and 3"),
        (trace({WEIGHTS: [2, 3, 7]}), r"\(2, 3, 7\), wanted"),
        (trace({WEIGHTS: [0, 3, 3]}), r"\(0, 3, 3\), wanted"),
        (trace({WEIGHTS: [2, 4, 4]}), r"\(2, 4, 4\), wanted"),
        (trace({WEIGHTS: [2, 4, 4]}, axes={"tokens": axis(grid=[1, 3])}), r"\(2, 4, 4\), wanted .* 3 and 3"),
        (trace(axes={}), "wanted heads"),
        (trace(SHAPES | {"image": [7]}), r"the image is F32 \[7\], wanted U8"),
        (trace(header={WEIGHTS: {"dtype": "BOOL", "shape": [72], "data_offsets": [0, 72]}}), "is BOOL, wanted one of"),
        (trace(header={WEIGHTS: {"dtype": "F8_E4M3", "shape": [72], "data_offsets": [0, 72]}}), "is F8_E4M3, wanted"),
        (trace(axes={"tokens": axis(tokens=["a"])}), "3 spans for 1 tokens"),
        (trace(axes={"tokens": axis(spans=[[5, -7], None, None])}), "spans outside of the 4 bytes"),
        (trace(axes={"tokens": axis(grid=[-1, -3])}), "a grid of -1 by -3 for 3 tokens"),
        (trace(attentions=[{"path": ATTENTION, "queries": "x", "keys": "tokens"}]), "no axes x and tokens"),
        (trace(attentions=info()["attentions"] * 2), "the same attention twice"),
        (trace(attentions=info()["attentions"] * (MAX_ATTENTIONS + 1)), "at most 1000 items"),
        (trace(modules=[ROOT] * (MAX_MODULES + 1)), "at most 10000 items"),
        (trace(interface="owned"), "Input should be 'seq2seq'"),
        (safetensors(SHAPES, {"__metadata__": {"regard": json.dumps({})}}), "Field required"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, content, said):
    path = tmp_path / "t.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"t\.safetensors.* trace.*: .*{said}") as raised:
        Trace.open(path)
    assert "\n" not in str(raised.value)
