"""Charts: a value stands where its axis says, and names do not overlap."""

import itertools

import pytest

from regard.inspection.drawing.charts import Axis, Curve, Mark, chart
from regard.inspection.drawing.scene import Line, Rectangle, Text

LINEAR, LOGARITHMIC = Axis("x", [0, 5, 10]), Axis("y", [0.01, 1, 100], logarithmic=True)


@pytest.mark.parametrize(("axis", "value", "share"), [(LINEAR, 2.5, 0.25), (LOGARITHMIC, 10, 0.75)])
def test_a_value_has_its_share_of_an_axis(axis, value, share):
    assert axis.share(value) == pytest.approx(share)
    assert (axis.share(axis.ticks[0]), axis.share(axis.ticks[-1])) == (0, 1)


def test_points_are_placed_between_the_axes():
    block = chart(0, 0, (100, 200), LINEAR, LOGARITHMIC, [Curve("a", [0, 10], [0.01, 1], dots=True)], [Mark(5, "half")])
    (curve,) = (item for item in block.items if isinstance(item, Line) and item.title == "a")
    (x0, y0), (x1, y1) = curve.points
    assert (x1 - x0, y0 - y1) == (pytest.approx(100), pytest.approx(100))
    (mark,) = (item for item in block.items if isinstance(item, Line) and item.dashed)
    assert mark.points[0][0] == pytest.approx(x0 + 50)
    dots = [item.title for item in block.items if isinstance(item, Rectangle)]
    assert dots == ["a: 0 → 0.01", "a: 10 → 1"]


def test_names_of_curves_that_end_together_do_not_overlap():
    curves = [Curve(name, [0, 10], [1, end]) for name, end in (("a", 1.0), ("b", 1.1), ("c", 1.2), ("d", 90))]
    block = chart(0, 0, (100, 200), LINEAR, LOGARITHMIC, curves)
    heights = sorted(item.y for item in block.items if isinstance(item, Text) and item.text in "abcd")
    assert len(heights) == 4
    assert all(lower - upper >= 10 for upper, lower in itertools.pairwise(heights))
