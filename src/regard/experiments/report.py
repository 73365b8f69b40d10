"""The ladder as a table (text, JSON, CSV), a picture (PNG, SVG) and one HTML file that needs nothing else."""

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

import regard
from regard.experiments.ladder import PAIRS, TOKENS, Standing
from regard.experiments.long_memory import Remembered
from regard.files import encode_json, write_file
from regard.inspection.curves import Curve, Panel, save_curves
from regard.synthetic.memory import TASKS

# column -> (heading, decimals)
COLUMNS = {
    "bleu": ("BLEU", 1),
    "perplexity": ("perplexity", 2),
    "exact_match": ("exact", 3),
    "longest": ("exact, longest", 3),
    "alignment_error_rate": ("align. error", 3),
    "training_speed": ("training tok/s", 0),
    "tokens_per_second": ("writing tok/s", 0),
    "memory": ("memory MB", 1),
    "parameters": ("parameters", 0),
    "learning": ("learns with", 0),
}
FEWEST = 20  # pairs of a length; a mean over fewer says nothing


def rows(standings: Sequence[Standing]) -> list[dict[str, Any]]:
    """One flat row a rung: each column's mean, and `<column>_deviation` where there are several seeds."""
    found = []
    for one in standings:
        longest = _buckets(one)[-1]
        row: dict[str, Any] = {
            "rung": one.rung,
            "seeds": one.seeds,
            **{name: one.scores.get(name) for name in ("bleu", "perplexity", "exact_match", "alignment_error_rate")},
            "longest": longest["exact_match"],
            "longest_words": longest["source_words"],
            "training_speed": one.training_speed,
            "tokens_per_second": one.scores["tokens_per_second"],
            "memory": one.kept_bytes / 1e6,
            "parameters": one.parameters,
            "learning": one.learning,
            "steps": one.steps,
            "tokens": one.tokens,
        }
        row |= {f"{name}_deviation": value for name, value in one.scores.get("deviation", {}).items() if name in row}
        if "deviation" in longest:
            row["longest_deviation"] = longest["deviation"]["exact_match"]
        found.append(row)
    return found


def _buckets(standing: Standing) -> list[dict[str, Any]]:
    """The lengths with enough pairs to say something."""
    buckets: list[dict[str, Any]] = standing.scores["by_length"]
    return [row for row in buckets if row["pairs"] >= FEWEST] or buckets


def table(standings: Sequence[Standing]) -> Table:
    """For the terminal and the text file."""
    found = Table()
    found.add_column("rung")
    for name, (heading, _) in COLUMNS.items():
        words = f" ({_buckets(standings[0])[-1]['source_words']} words)" if name == "longest" else ""
        found.add_column(heading + words, justify="right")
    for row in rows(standings):
        found.add_row(row["rung"], *(_cell(row, name) for name in COLUMNS))
    return found


def length_table(standings: Sequence[Standing], score: str) -> Table:
    """A score by source length: where a sentence must pass through one vector, it falls."""
    found = Table()
    found.add_column(f"{score} by source words")
    for bucket in _buckets(standings[0]):
        found.add_column(bucket["source_words"], justify="right")
    for one in standings:
        found.add_row(one.rung, *(f"{bucket[score]:.3g}" for bucket in _buckets(one)))
    return found


def memory_table(remembered: Sequence[Remembered]) -> Table:
    """The share of right letters by distance."""
    distances = sorted({one.distance for one in remembered})
    found = Table()
    found.add_column("task")
    found.add_column("rung")
    for distance in distances:
        found.add_column(f"{distance}", justify="right")
    for task in TASKS:
        for rung in dict.fromkeys(one.rung for one in remembered):
            values = {one.distance: one.accuracy for one in remembered if (one.task, one.rung) == (task, rung)}
            found.add_row(task, rung, *(f"{values[distance]:.2f}" for distance in distances))
    return found


def _cell(row: dict[str, Any], name: str) -> str:
    value, decimals = row[name], COLUMNS[name][1]
    if value is None or isinstance(value, str):
        return value or "-"
    deviation = row.get(f"{name}_deviation")
    return f"{value:,.{decimals}f}" + (f" ± {deviation:,.{decimals}f}" if deviation is not None else "")


def panels(standings: Sequence[Standing], remembered: Sequence[Remembered]) -> list[Panel]:
    """Scores by length, and what was remembered."""
    names = [bucket["source_words"] for bucket in _buckets(standings[0])]
    found = [
        Panel(
            f"{title} by source length",
            "source words",
            title,
            {one.rung: _by_length(one, score) for one in standings},
            names,
            shares=score == "exact_match",
        )
        for score, title in (("bleu", "BLEU"), ("exact_match", "exactly right"))
    ]
    found += [
        Panel(
            f"{task}: what comes back",
            "letters read",
            "share of right letters",
            {
                rung: Curve(
                    [one.distance for one in remembered if (one.task, one.rung) == (task, rung)],
                    [one.accuracy for one in remembered if (one.task, one.rung) == (task, rung)],
                )
                for rung in dict.fromkeys(one.rung for one in remembered)
            },
            shares=True,
        )
        for task in TASKS
        if remembered
    ]
    return found


def _by_length(standing: Standing, score: str) -> Curve:
    buckets = _buckets(standing)
    deviations = [bucket.get("deviation", {}).get(score, 0.0) for bucket in buckets]
    return Curve(range(len(buckets)), [bucket[score] for bucket in buckets], deviations)


def write_report(
    folder: Path, command: str, standings: Sequence[Standing], remembered: Sequence[Remembered], text: str
) -> list[Path]:
    """All files of the report, each whole or not at all; gives their names."""
    result = {
        "command": command,
        "versions": {"regard": regard.__version__, "torch": torch.__version__},
        "threads": torch.get_num_threads(),
        "standings": [asdict(one) for one in standings],
        "memory": [asdict(one) for one in remembered],
    }
    flat = io.StringIO()
    writer = csv.DictWriter(flat, fieldnames=list(dict.fromkeys(key for row in rows(standings) for key in row)))
    writer.writeheader()
    writer.writerows(rows(standings))
    files = {"ladder.json": encode_json(result), "ladder.csv": flat.getvalue().encode(), "ladder.txt": text.encode()}
    for name, data in files.items():
        write_file(folder / name, data)
    drawn = panels(standings, remembered)
    pictures = [folder / "ladder.png", folder / "ladder.svg"]
    for picture in pictures:
        save_curves(drawn, picture)
    page = folder / "report.html"
    write_file(page, _page(command, standings, text, pictures[1].read_text(encoding="utf-8")).encode())
    return [*(folder / name for name in files), *pictures, page]


def _page(command: str, standings: Sequence[Standing], text: str, picture: str) -> str:
    scores = standings[0].scores
    svg = picture[picture.index("<svg") :]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>The road to attention</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
pre {{ overflow-x: auto; font-size: 13px; line-height: 1.25; }}
svg {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
<h1>The road to attention</h1>
<p>Translators of one size, trained on the same {standings[0].tokens:,} target tokens in {standings[0].steps:,} steps
with {standings[0].seeds} seed(s), each with an optimizer and rate of its own, and scored on the same
{scores["pairs"]:,} pairs that were held out (greedy; {html.escape(scores["bleu_signature"])}). Unless you set them,
optimizers and rates were found by a few short runs on the built-in world, fewest for the RNNs without attention; the
rates for other pairs were not tried out. Memory is what autograd keeps of {PAIRS} pairs of {TOKENS} tokens a side.
Made with <code>{html.escape(command)}</code>.</p>
<figure role="img" aria-label="Scores by source length, and what was remembered; the numbers stand below">
{svg}
</figure>
<pre>{html.escape(text)}</pre>
</body>
</html>
"""
