"""Print results as lines for people, or as JSON."""

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from regard.errors import CONTROLS, escape_for_output
from regard.progress import note

if TYPE_CHECKING:
    from regard.experiments.layer_cost import Growth, LayerCosts, Measured
    from regard.experiments.model_cost import Row
    from regard.inspection.maps.neighbors import Neighbor
    from regard.runtime import Runtime

TEXT_COLUMNS = ("text", "second")  # of a table: the last ones


def note_if_slow(runtime: "Runtime") -> None:
    """Note on standard error what is slower, or other than expected, where this process computes."""
    from regard import ops

    for line in runtime.notes():
        note(f"note: {line}")
    if runtime.device.type != "cpu":
        return
    reason = ops.why_disabled()
    if reason not in (None, ops.DISABLED_BY_USER):
        note(f"note: slower than it could be, with torch's kernels only: {reason}")


def show(text: object = "", end: str = "\n", *, flush: bool = False) -> None:
    """Print on standard output. All output goes through here: text of a model or a file may hold control characters."""
    print(escape_for_output(str(text)), end=end, flush=flush)


def print_json(value: Any) -> None:
    """One line of JSON, with control characters as \\uXXXX."""
    show(CONTROLS.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(value, ensure_ascii=False)))


def show_facts(facts: Mapping[str, Any], margin: str = "") -> None:
    """One fact a line; those of a group are indented below its name."""
    wide = max([20, *(len(name) for name, value in facts.items() if not isinstance(value, Mapping))]) + 2
    for name, value in facts.items():
        if isinstance(value, Mapping) and value:
            show(f"{margin}{name}")
            show_facts(value, f"{margin}  ")
        else:
            show(f"{margin}{name:<{wide}}{_fact(value)}")


def _fact(value: Any) -> str:
    if isinstance(value, list | tuple | Mapping):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else f"{value:,}" if type(value) is int else str(value)


def show_metrics(metrics: Mapping[str, Any]) -> None:
    """The metrics of an evaluation, of whatever task: numbers on a line each, tables as tables."""
    deviation = metrics.get("deviation", {})
    wide = max([26, *(len(name) + 1 for name in metrics)])
    for name, value in metrics.items():
        if isinstance(value, float):
            show(f"{name:<{wide}}{value:.4f}" + (f" ± {deviation[name]:.4f}" if deviation.get(name) else ""))
        elif isinstance(value, list) and value and isinstance(value[0], str):
            show("\n".join(value))
        elif isinstance(value, list):
            show(name)
            show_table(_as_table(value))
        elif name != "deviation":
            show(f"{name:<{wide}}{value}")


def _as_table(rows: list[Any]) -> list[list[str]]:
    """Rows of cells; those that are dicts get a header, with texts in the last columns."""
    if not rows or not isinstance(rows[0], Mapping):
        return rows
    numbers = [key for key in rows[0] if key not in (*TEXT_COLUMNS, "deviation", "runs")]
    keys = [*numbers, *(key for key in TEXT_COLUMNS if key in rows[0])]
    return [[key.replace("_", " ") for key in keys], *([_cell(row.get(key, "")) for key in keys] for row in rows)]


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)[:200]


def show_table(rows: list[list[str]]) -> None:
    """Cells in columns: texts flush left, all else flush right."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    sides = ["<" if column[0] in TEXT_COLUMNS else ">" for column in columns]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        show(f"  {'  '.join(cells)}".rstrip())


def show_settings(settings: list[dict[str, str]]) -> None:
    """Each setting: key=default, its type and range, and under them its meaning."""
    wide = max(len(f"{one['key']}={one['default']}") for one in settings)
    for one in settings:
        show(f"{one['key']}={one['default']}".ljust(wide) + f"   {one['type']} {one['range']}".rstrip())
        show(f"    {one['meaning']}")


def show_near(found: "dict[str, list[Neighbor]]") -> None:
    """The nearest neighbors of each word, one a line."""
    for word, near in found.items():
        wide = max([24, *(len(one.word) + 2 for one in near)])
        show(f"{word:<{wide}}{'cosine':>8}{'distance':>10}")
        for one in near:
            show(f"  {one.word:<{wide - 2}}{one.cosine:>8.3f}{one.distance:>10.3f}")


def show_near_both(result: dict[str, Any], one: str, other: str) -> None:
    """The neighbors of each word in two sets of vectors, side by side."""
    for word, near in result["neighbors"].items():
        show(f"{word}: {result['same'][word]} of {len(near)} neighbors are the same")
        show(f"  {one[-32:]:<33}{'cosine':>7}   {other[-32:]:<33}{'cosine':>7}")
        for left, right in zip_longest(near, result["with"][word]):
            sides = [f"{each['word']:<33}{each['cosine']:>7.3f}" if each else " " * 40 for each in (left, right)]
            show(f"  {'   '.join(sides)}".rstrip())
    whole = result["agreement"]
    show(f"agreement over {whole['words']:,} words that both have: correlation {whole['correlation']:.3f} of cosines")


def show_costs(costs: "LayerCosts") -> None:
    """Tables of the layers, the powers they grow with, and where two of them cross."""
    show(
        f"A layer of width d = {costs.width}, {costs.heads} heads, windows of {costs.kernel} tokens; n tokens, one row"
    )
    show("By formula | measured. Attention: its matrix, if materialized. Saved: for the backward pass.")
    _show_layers(costs.measured)
    _show_growth(costs.growth)
    crossing = costs.crossing
    crossed = (
        f"from n = {crossing.measured:,.0f} on"
        if crossing.measured is not None
        else f"{crossing.slower} takes longer from n = {crossing.shortest:,} to {crossing.longest:,}"
    )
    show(
        f"\nself-attention costs more than recurrence: by formula from n = d = {crossing.formula:,.0f} on; "
        f"in time, with a batch of {crossing.batch} rows: {crossed}"
    )
    show("\nattention weights of an encoder-decoder, a layer and head: N² + M² + NM")
    for one in costs.pairings:
        show(f"  N = {one.source:<5}M = {one.target:<5}formula {one.formula:>9,}   counted {one.counted:>9,}")


def _show_layers(measured: "Sequence[Measured]") -> None:
    """A table per kind of layer: the formulas on the left, the measurements on the right."""
    for kind in dict.fromkeys(one.kind for one in measured):
        show(f"\n{kind}")
        formulas = f"{'n':>7}{'multiply-adds':>16}{'steps':>8}{'path':>8}{'attention':>12}{'saved':>10}"
        show(f"{formulas} |{'time':>11}{'saved':>10}")
        for one in (one for one in measured if one.kind == kind):
            show(
                f"{one.length:>7,}{one.multiply_adds:>16,.0f}{one.sequential_steps:>8,.0f}{one.longest_path:>8,.0f}"
                f"{_bytes(one.attention_bytes):>12}{_bytes(one.kept_bytes_formula):>10} |"
                f"{one.seconds * 1e3:>8.3f} ms{_bytes(one.kept_bytes):>10}"
            )


def _show_growth(growths: "Sequence[Growth]") -> None:
    show(f"\n{'grows with n to the power':<27}{'time: formula':>15}{'measured':>10}", end="")
    show(f"{'memory: formula':>18}{'measured':>10}")
    for one in growths:
        show(
            f"{one.kind:<27}{one.time_formula:>15.2f}{one.time_measured:>10.2f}"
            f"{one.memory_formula:>18.2f}{one.memory_measured:>10.2f}"
        )


def show_model_cost(rows: "list[Row]") -> None:
    show(f"{'':<32}{'formula':>18}{'measured':>18}")
    for row in rows:
        formula = "" if row.formula is None else _amount(row.formula, row.unit)
        show(f"{row.name:<32}{formula:>18}{_amount(row.measured, row.unit):>18}")


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return _bytes(value)
    if unit == "seconds":
        return f"{value * 1e3:,.2f} ms"
    return f"{value:,.0f} {unit}".rstrip()


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.3g} {unit}" if value else "-"
        value /= 1000
    return f"{value:.3g} GB"
