"""The command that evaluates trained models."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, Device, DType, ModelFolder, Precision, Trust, app, split, trust_code
from regard.errors import ConfigError
from regard.printing import note_if_slow, print_json, show_metrics
from regard.tasks.image_inputs import is_image

HELP = """Evaluate a model on your data, or on the validation data of its run.

Language models: loss, perplexity and bits per byte, which compares models with different tokenizers. DATA is text
as for `regard train`.

Translators: BLEU and chrF with their signatures, perplexity, exact match, by length, alignment error rate. DATA is
pairs. Teacher-forced accuracy gives the model the true tokens before each token; the gap to the accuracy on its own
tokens is what its own mistakes cost it. Alignments are between a source and its reference translation.

Classifiers: accuracy, F1, Matthews, Pearson or Spearman correlation, confusion matrix, the worst errors; DATA is a
table or a folder of GLUE. Taggers: entity F1. BERT: masked words, next sentences, and on the built-in stories the
coreference of "it". Captioners: exact match, BLEU-4, CIDEr, and how much attention is on the object that a word
names. ViLBERT: recall of the right one of 100 images for a caption and the reverse, and the same of its attention;
for questions, accuracy by kind; DATA is images and captions, or a folder of easy-vqa.

The columns of a table are found as in training, or given: data.text=… data.second=… data.label=…; for taggers
data.word_column=… data.label_column=…, for text in JSON lines or Parquet data.field=…, for pairs the most words a
side, data.max_length=…. Bad rows are skipped and counted; data.on_error=stop stops there, as --gold and
--alignments do.

Several models (one recipe, different seeds), or the folder of a `regard train --seeds`, give mean and standard
deviation.

Examples:

`regard evaluate runs/demo`

`regard evaluate runs/mine test.tsv --num-beams 4 --alignments test.pharaoh`

`regard evaluate runs/seed-1 runs/seed-2 runs/seed-3 test.tsv`

`regard evaluate runs/novel other.txt --limit 100000 --device cuda`

`regard evaluate runs/sst-2 SST-2/`

`regard evaluate runs/sentiment test.csv data.text=body data.label=stars`
"""


@app.command(help=HELP)
def evaluate(
    model: ModelFolder,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]... [DATA]... [KEY=VALUE]...",
            help="More models; the data, or none: the validation data of the run; how the data is read.",
        ),
    ] = None,
    num_beams: Annotated[
        int | None,
        typer.Option(help="Beam search with this many beams; 1 is greedy.", show_default="the model's own: mostly 1"),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Sample this many times instead; shows mean and deviation.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Evaluate only the first N pairs, tokens, rows or images.")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold word alignments of DATA, a line a pair: 0-0 1-2 2?3.")] = None,
    alignments: Annotated[
        Path | None, typer.Option(help="Write the model's word alignments to this file, in Pharaoh format.")
    ] = None,
    precision: Precision = "float32",
    device: Device = "auto",
    dtype: DType = "float32",
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on your data, or on the validation data of its run."""
    from regard.generation import Sample
    from regard.runtime import prepare
    from regard.tasks.evaluation import evaluate_folders

    if seeds is not None and num_beams is not None:
        raise ConfigError(f"--seeds {seeds} samples, --num-beams {num_beams} searches; give one")
    runtime = prepare(device, dtype, precision=precision)
    note_if_slow(runtime)
    folders, paths, assignments = _split_arguments(model, arguments or [])
    trust_code(trust, *folders)
    strategies = [None] if seeds is None else [Sample(seed=seed) for seed in range(seeds)]
    if alignments is not None and len(folders) * len(strategies) > 1:
        raise ConfigError(f"--alignments {alignments} is for one model and no --seeds")
    options = {"num_beams": num_beams, "limit": limit, "gold": gold, "alignments": alignments, "precision": precision}
    metrics = evaluate_folders(folders, paths, strategies, assignments=assignments, runtime=runtime, **options)  # type: ignore[arg-type]
    print_json(metrics) if as_json else show_metrics(metrics)


def _split_arguments(model: Path, arguments: list[str]) -> tuple[list[Path], list[Path], list[str]]:
    """The model folders, the data and the assignments."""
    from regard.huggingface.gguf import is_gguf

    paths, assignments = split(arguments)
    models = [path for path in paths if is_gguf(path) or (path.is_dir() and not is_data(path))]
    folders = [folder for one in (model, *models) for folder in _runs(one)]
    return folders, [path for path in paths if path not in models], assignments


def _runs(folder: Path) -> list[Path]:
    """The folder itself, or the runs inside a folder of `regard train --seeds`."""
    if (folder / "config.json").is_file():
        return [folder]
    return sorted(folder.glob("seed-*"), key=lambda run: (len(run.name), run.name)) or [folder]


def is_data(folder: Path) -> bool:
    """Whether this is a folder of tables, such as those of GLUE, or of images, and not a model folder."""
    found = any(path.suffix.lower() in (".tsv", ".txt") or is_image(path) for path in folder.iterdir())
    return found and not (folder / "config.json").is_file()
