"""Commands that measure a trained model."""

import math
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, Beams, ModelFolder, Precision, app, split
from regard.cli.pictures import ENDINGS
from regard.errors import ConfigError
from regard.printing import note_if_slow, print_json, show_scores
from regard.progress import note


@app.command()
def evaluate(
    model: ModelFolder,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]... [DATA]... [KEY=VALUE]...",
            help="More models; pairs or text, or none: what was held out; how the data are read.",
        ),
    ] = None,
    beam: Beams = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Sample so many times instead; mean and deviation are shown.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Only the first so many pairs or tokens.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold word alignments of DATA, a line a pair: 0-0 1-2 2?3.")] = None,
    alignments: Annotated[
        Path | None, typer.Option(help="Write the model's word alignments there, in Pharaoh's format.")
    ] = None,
    precision: Precision = "float32",
    as_json: AsJson = False,
) -> None:
    """Score a model on your data, or on what its run held out.

    Language models: loss, perplexity and bits per byte, which compares models with different tokenizers. DATA is text
    as for `regard train`.

    Translators: BLEU and chrF with their signatures, perplexity, exact match, by length, alignment error rate. DATA is
    pairs. Teacher-forced, the model is given the true words before each word; the gap to the share of right tokens on
    its own words is what its own mistakes cost it. Alignments are between a source and its true translation.

    Classifiers: accuracy, F1, Matthews' or Pearson's and Spearman's correlation, confusions, the worst errors; DATA is
    a table or a folder of GLUE. Taggers: F1 of entities. BERT: hidden words, next sentences, and on the built-in
    stories what "it" means. Captioners: exact captions, BLEU-4, CIDEr, how much of the attention is on what is spoken
    of. ViLBERT: the right one of 100 pictures for a caption and the reverse, and the same of its attention; where it
    answers, right answers by kind of question; DATA is pictures and captions, or a folder of easy-vqa.

    Where a table has its columns is found as in training, or said: data.text=… data.second=… data.label=…; for taggers
    data.word_column=… data.label_column=…, for text in JSON lines or Parquet data.field=…, for pairs the most words a
    side, data.max_length=…. Bad rows are left out and counted; data.on_error=stop stops there, as --gold and
    --alignments do.

    Several models (one recipe, other seeds), or the folder of a `regard train --seeds`, give mean and standard
    deviation.

    Examples:

    `regard evaluate runs/demo`

    `regard evaluate runs/mine test.tsv --beam 4 --alignments test.pharaoh`

    `regard evaluate runs/seed-1 runs/seed-2 runs/seed-3 test.tsv`

    `regard evaluate runs/novel other.txt --most 100000`

    `regard evaluate runs/sst-2 SST-2/`

    `regard evaluate runs/sentiment test.csv data.text=body data.label=stars`
    """
    from regard import runtime
    from regard.generation import Sample
    from regard.huggingface.gguf import is_gguf
    from regard.tasks.translation.evaluate import score_folders

    if seeds is not None and beam is not None:
        raise ConfigError(f"--seeds {seeds} samples, --beam {beam} searches; give one")
    runtime.prepare()
    note_if_slow()
    data, assignments = split(arguments or [])
    models = [path for path in data if is_gguf(path) or (path.is_dir() and not is_data(path))]
    folders = [folder for one in (model, *models) for folder in _runs(one)]
    paths = [path for path in data if path not in models]
    strategies = [None] if seeds is None else [Sample(seed=seed) for seed in range(seeds)]
    if alignments is not None and len(folders) * len(strategies) > 1:
        raise ConfigError(f"--alignments {alignments} is of one model and no --seeds")
    scores = score_folders(
        folders,
        paths,
        strategies,
        beam=beam,
        most=most,
        gold=gold,
        alignments=alignments,
        precision=precision,
        assignments=assignments,
    )
    if as_json:
        print_json(scores)
    else:
        show_scores(scores)


def _runs(folder: Path) -> list[Path]:
    """The folder itself, or where `regard train --seeds` made it, the runs inside."""
    if (folder / "config.json").is_file():
        return [folder]
    return sorted(folder.glob("seed-*"), key=lambda run: (len(run.name), run.name)) or [folder]


def is_data(folder: Path) -> bool:
    """A folder of tables, such as those of GLUE, or of pictures, and no model's."""
    found = any(path.suffix.lower() in (".tsv", ".txt", *ENDINGS) for path in folder.iterdir())
    return found and not (folder / "config.json").is_file()


@app.command()
def check(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model folder, or a .py file whose adapter() returns a ModelAdapter."),
    ],
    as_json: AsJson = False,
) -> None:
    """Hold a model against the laws: causality, padding, batch = single, cached = uncached, and so on.

    Prints the largest deviation each law found, and exits with 1 when one is broken. A module of your own needs ten
    lines around it; `python -c "import regard.experiments.laws as l; help(l)"` shows them.

    Examples:

    `regard check runs/demo`

    `regard check mine.py`
    """
    from regard import runtime
    from regard.experiments.check import check_model

    runtime.prepare()
    findings = []
    for finding in check_model(model):
        findings.append(finding)
        if not as_json:
            print(finding, flush=True)
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
