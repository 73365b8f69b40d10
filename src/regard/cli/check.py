"""The command that checks a model against invariants."""

import math
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import completion
from regard.cli.app import AsJson, Device, DType, Trust, app, trust_code
from regard.printing import print_json, show
from regard.progress import note


@app.command()
def check(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model folder, or a .py file whose adapter() returns a ModelAdapter.",
            autocompletion=completion.models,
        ),
    ],
    device: Device = "auto",
    dtype: DType = "float32",
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Hold a model against the laws: causality, padding, batch = single, cached = uncached, and so on.

    Prints the largest deviation each law found, and exits with 1 when one is broken. A module of your own needs ten
    lines around it; `python -c "import regard.experiments.laws as l; help(l)"` shows them.

    Examples:

    `regard check runs/demo`

    `regard check runs/demo --device cuda`

    `regard check mine.py`
    """
    from regard.experiments.check import check_model
    from regard.runtime import prepare

    runtime = prepare(device, dtype)
    trust_code(trust, model)
    findings = []
    for finding in check_model(model, runtime):
        findings.append(finding)
        if not as_json:
            show(finding, flush=True)
    broken = [finding.law.name for finding in findings if finding.holds is False]
    if as_json:
        print_json(
            [
                {
                    "law": finding.law.name,
                    "holds": finding.holds,
                    "deviation": finding.deviation if math.isfinite(finding.deviation or 0) else str(finding.deviation),
                    "bound": finding.law.bound,
                    "at_least": finding.law.at_least,
                    "why": finding.why,
                }
                for finding in findings
            ]
        )
    if broken:
        note(f"broken: {', '.join(broken)}")
        raise typer.Exit(1)
