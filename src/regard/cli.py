"""The commands: parse, call one function, print.

Results go to standard output, progress and notes to standard error. Exit 0: fine. 2: the user's mistake, said in one
line. 1: ours.
"""

import json
import math
import os
import re
import shlex
import sys
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from regard.errors import ConfigError, InputError, RegardError
from regard.printing import (
    answer_as_dict,
    note,
    print_json,
    save_picture,
    show_answer,
    show_costs,
    show_model_cost,
    show_scores,
)

if TYPE_CHECKING:
    from regard.generation import Strategy

app = typer.Typer(
    name="regard",
    help="Train, run, measure and look inside sequence models with attention.",
    epilog="Begin with `regard demo`. Every command has examples: `regard train --help`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model folder: ours, Hugging Face's, or a name on its hub.")
]
Beams = Annotated[
    int | None, typer.Option(help="Texts kept side by side; 1 is greedy.", show_default="the model's own: mostly 1")
]

LAYER_DEFAULTS = {"width": 128, "heads": 4, "kernel": 3, "longest": 4096}


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["REGARD_DEBUG"] = "1"


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where the trained model goes.")] = Path("runs/demo"),
    assignments: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
    as_json: AsJson = False,
) -> None:
    """The tour: train a translator, translate, show where it looked.

    Trains the built-in English→Spanish translator (at most three minutes on two cores), translates sentences it never
    saw, and shows the word alignment here and as a picture. A second time it uses the model that is there.

    Example: `regard demo -o runs/demo`
    """
    from regard.demo import run_demo

    result = run_demo(folder, assignments or [], quiet=as_json)
    if as_json:
        print_json(result)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="What to train; `regard recipes` lists them.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA]... [KEY=VALUE]...", help="Your files, then settings.")
    ] = None,
    folder: Annotated[Path | None, typer.Option("--output", "-o", help="The run's folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model; the same command again goes on where it stopped.

    DATA is one .tsv or .jsonl file, or two text files that go line by line; .gz and .zst are read as they are. Without
    it the built-in world is used. Settings are dotted: training.steps=200 model.layers=4 data.on_error=skip.

    Examples:

    `regard train translator -o runs/t training.steps=500`

    `regard train translator pairs.tsv.gz -o runs/mine training.minutes=30`

    `regard train translator train.en train.es -o runs/mine data.on_error=skip`
    """
    from regard import recipes, runtime
    from regard.config import override
    from regard.progress import follow
    from regard.recipes.run import train_recipe

    paths, assignments = _split(arguments or [])
    found = recipes.find(recipe)
    settings = override(found.settings(paths), assignments)
    target = folder or Path("runs") / recipe
    runtime.prepare()
    last = follow(train_recipe(found, paths, assignments, target), settings.training.steps)
    if last.stopped:
        note(f"stopped at step {last.step} and saved; the same command goes on from there")
        raise typer.Exit(128 + last.stopped)
    if as_json:
        print_json({"folder": str(target), "step": last.step, "heldout": last.heldout})
    else:
        print(f'{target}: trained. Try: regard run {target} "we are eating bread"')


@app.command()
def run(
    model: ModelFolder,
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="[INPUT]...", help="Texts; none: lines of stdin.")
    ] = None,
    beam: Beams = None,
    length_penalty: Annotated[
        float | None,
        typer.Option(help="With --beam: rank by log probability / length ** this.", show_default="the model's own: 1"),
    ] = None,
    n_best: Annotated[int, typer.Option(help="How many of the beam to show.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw by chance instead.")] = False,
    temperature: Annotated[float, typer.Option(help="With --sample: below 1 sharper, above 1 flatter.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="With --sample: only the k likeliest.")] = None,
    top_p: Annotated[float, typer.Option(help="With --sample: only the likeliest that make up this share.")] = 1.0,
    seed: Annotated[int, typer.Option(help="With --sample: the same seed, the same text.")] = 0,
    alignment: Annotated[bool, typer.Option("--alignment", "-a", help="Show where each word looked.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The alignment as .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model on texts: translate them.

    Examples:

    `regard run runs/demo "we are eating bread" --alignment`

    `regard run runs/demo --beam 4 --n-best 4 "the red house is small"`

    `regard run path/to/opus-mt-en-es "The agreement was signed in August."`

    `regard run runs/demo < sentences.txt > translations.txt`
    """
    strategy = _strategy(beam, length_penalty, n_best, sample, temperature, top_k, top_p, seed)
    texts = _checked(inputs) if inputs else _lines_of_stdin()
    import regard
    from regard import runtime
    from regard.generation import Beam
    from regard.inspection.pictures import check_picture

    if output is not None:
        check_picture(output)
        if len(texts) != 1:
            raise InputError(f"a picture is of one text, got {len(texts)}; give one INPUT with -o")
    runtime.prepare()
    translator = regard.load(model)
    if isinstance(strategy, Beam) and isinstance(translator.strategy, Beam) and length_penalty is None:
        strategy = replace(strategy, length_penalty=translator.strategy.length_penalty)
    answers = iter(translator.run_all([text for text in texts if text], strategy, alignment=alignment or bool(output)))
    for text in texts:
        answer = next(answers) if text else None
        if answer is None:  # an empty line stays one, so that output goes line by line with input
            print(json.dumps({"source": "", "translations": []}) if as_json else "")
        elif as_json:
            print_json(answer_as_dict(answer))
        else:
            show_answer(answer, alignment)
        if answer is not None and output is not None:
            save_picture(answer, output)


@app.command()
def evaluate(
    model: ModelFolder,
    data: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[MODEL]... [DATA]...", help="More folders; pairs, or none: what was held out."),
    ] = None,
    beam: Beams = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Sample so many times instead; mean and deviation are shown.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Only the first so many pairs.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold word alignments of DATA, a line a pair: 0-0 1-2 2?3.")] = None,
    alignments: Annotated[
        Path | None, typer.Option(help="Write the model's word alignments there, in Pharaoh's format.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a model: BLEU and chrF with their signatures, perplexity, exact match, by length, alignment error rate.

    Teacher-forced, the model is given the true words before each word; the gap to the share of right tokens on its own
    words is what its own mistakes cost it. Several models (one recipe, other seeds) give mean and standard deviation.
    Alignments are between a source and its true translation.

    Examples:

    `regard evaluate runs/demo`

    `regard evaluate runs/mine test.tsv --beam 4 --alignments test.pharaoh`

    `regard evaluate runs/seed-1 runs/seed-2 runs/seed-3 test.tsv`
    """
    from regard import runtime
    from regard.generation import Sample
    from regard.running.scoring import score_folders

    if seeds is not None and beam is not None:
        raise ConfigError(f"--seeds {seeds} samples, --beam {beam} searches; give one")
    runtime.prepare()
    folders = [model, *(path for path in data or [] if path.is_dir())]
    paths = [path for path in data or [] if not path.is_dir()]
    strategies = [_strategy(beam)] if seeds is None else [Sample(seed=seed) for seed in range(seeds)]
    if alignments is not None and len(folders) * len(strategies) > 1:
        raise ConfigError(f"--alignments {alignments} is of one model and no --seeds")
    scores = score_folders(folders, paths, strategies, most=most, gold=gold, alignments=alignments)
    if as_json:
        print_json(scores)
    else:
        show_scores(scores)


@app.command()
def check(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model folder, or a .py file whose subject() gives a Subject.")
    ],
    as_json: AsJson = False,
) -> None:
    """Hold a model against the laws: causality, padding, batch = single, cached = uncached, and so on.

    Prints the largest deviation each law found, and exits with 1 when one is broken. A module of your own needs ten
    lines around it; `python -c "import regard.evaluation.laws as l; help(l)"` shows them.

    Examples:

    `regard check runs/demo`

    `regard check mine.py`
    """
    from regard import runtime
    from regard.running.checking import check_model

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


@app.command()
def compare(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA]... [KEY=VALUE]...", help="Your pairs, then settings.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where runs and report go.", show_default="runs/compare")
    ] = None,
    rungs: Annotated[
        str,
        typer.Option(
            help="Which: rnn,rnn-context,rnn-attention,conv,transformer; fewer, with commas.", show_default="all five"
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each, with other seeds; mean ± deviation.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A short form: under ten minutes on two cores.")] = False,
    memory: Annotated[bool, typer.Option(help="Also: what each kind can carry over how far.")] = True,
    as_json: AsJson = False,
) -> None:
    """The ladder: five translators of one size on the same data, tokens and seeds, side by side.

    The RNN that hands over its last state, with a fixed context, with attention; convolution; the Transformer. Writes
    a table (.txt, .json, .csv), a picture (.png, .svg) and report.html into the folder. What is trained there already
    is used as it is. Without DATA the built-in world is used, with passages of up to four sentences: about a quarter of
    an hour a seed on two cores. Each kind has its own optimizer and rate, found by a few short runs on the world (for
    DATA the rates were not tried out); all else is the same.

    Examples:

    `regard compare --quick`

    `regard compare --seeds 3 -o runs/ladder`

    `regard compare pairs.tsv.gz --rungs rnn,rnn-attention training.steps=3000`
    """
    from regard import runtime
    from regard.comparing import Stopped, compare_rungs

    paths, assignments = _split(arguments or [])
    chosen = [name.strip() for name in rungs.split(",") if name.strip()]
    folder = folder or Path("runs/compare-quick" if quick else "runs/compare")
    command = shlex.join(["regard", *sys.argv[1:]])
    runtime.prepare()
    try:
        found = compare_rungs(
            folder, paths, assignments, rungs=chosen, seeds=seeds, quick=quick, memory=memory, command=command
        )
    except Stopped as stopped:
        note("stopped and saved; the same command goes on from there")
        raise typer.Exit(128 + stopped.signal) from None
    if as_json:
        print_json(found.as_dict())
    else:
        print(found.text)
        note(f"wrote {', '.join(map(str, found.files))}")


@app.command()
def cost(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A model folder; none: a layer of each kind.")
    ] = None,
    width: Annotated[
        int | None, typer.Option(min=2, help="Of the layers: d.", show_default=f"{LAYER_DEFAULTS['width']}")
    ] = None,
    heads: Annotated[
        int | None, typer.Option(min=1, help="Of self-attention: h.", show_default=f"{LAYER_DEFAULTS['heads']}")
    ] = None,
    kernel: Annotated[
        int | None,
        typer.Option(min=2, help="Of a convolution: k, words in a window.", show_default=f"{LAYER_DEFAULTS['kernel']}"),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option(
            min=128, max=32_768, help="n goes from 32 up to there.", show_default=f"{LAYER_DEFAULTS['longest']}"
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Of a MODEL: sentences side by side.", show_default="8")
    ] = None,
    source: Annotated[int | None, typer.Option(min=1, help="Of a MODEL: tokens read.", show_default="128")] = None,
    target: Annotated[int | None, typer.Option(min=1, help="Of a MODEL: tokens written.", show_default="128")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The curves as .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """What recurrence, convolution and self-attention cost: the formula beside the measurement.

    Without MODEL: time and memory of a layer of each kind over the length n, the fitted power of n beside the predicted
    one, where recurrence and self-attention cross, and N² + M² + NM counted. With MODEL: parameters, multiply-adds,
    attention matrices, and the memory that decoding keeps (the key-value cache).

    Examples:

    `regard cost -o cost.png`

    `regard cost runs/demo --batch 32 --source 512 --target 512`
    """
    from regard import runtime
    from regard.inspection.pictures import check_picture
    from regard.running.costing import cost_of_layers, cost_of_model

    of_layers = {"width": width, "heads": heads, "kernel": kernel, "longest": longest}
    of_model = {"batch": batch, "source": source, "target": target}
    for name, value in (of_layers | {"output": output} if model is not None else of_model).items():
        if value is not None:
            form = "of the layers, leave MODEL out" if model is not None else "of a MODEL, name one"
            raise ConfigError(f"--{name} {value} is {form}")
    if output is not None:
        check_picture(output)
    layers = LAYER_DEFAULTS | {name: value for name, value in of_layers.items() if value is not None}
    if layers["width"] % layers["heads"]:
        raise ConfigError(f"--width {layers['width']} does not divide into --heads {layers['heads']}")
    runtime.prepare()
    if model is not None:
        rows = cost_of_model(model, batch=batch or 8, source=source or 128, target=target or 128)
        print_json([asdict(row) for row in rows]) if as_json else show_model_cost(rows)
        return
    costs = cost_of_layers(**layers, output=output, note=note)
    if as_json:
        print_json(asdict(costs))
    else:
        show_costs(costs)


@app.command()
def export(
    model: ModelFolder,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to make.")],
    to: Annotated[str, typer.Option("--to", help="The format: huggingface.")] = "huggingface",
    as_json: AsJson = False,
) -> None:
    """Write a model for other programs: a folder that `transformers` opens and CTranslate2 converts.

    Example: `regard export runs/mine out/ --to huggingface`
    """
    from regard.running.exporting import export_folder

    written = export_folder(model, output, to)
    if as_json:
        print_json({"folder": str(output), "files": written})
    else:
        print(f"{output}: {', '.join(written)}")


@app.command()
def info(model: ModelFolder, as_json: AsJson = False) -> None:
    """What a model folder holds: kind, size, settings, files; every file is verified.

    Example: `regard info runs/demo`
    """
    from regard.running.describe import describe_folder

    facts = describe_folder(model)
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            print(f"{name:<16}{value}")


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="One recipe, with all it says.")] = None, as_json: AsJson = False
) -> None:
    """The recipes: what can be trained, how long it takes, which number to expect.

    Example: `regard recipes translator`
    """
    from regard import recipes

    found = recipes.describe()
    if name is not None and name not in found:
        recipes.find(name)
    if as_json:
        print_json(found if name is None else {name: found[name]})
    elif name is not None:
        print(found[name])
    else:
        for each, text in found.items():
            print(f"{each:<{max(map(len, found)) + 2}}{text.splitlines()[0]}")


def main() -> NoReturn:
    """Run a command; every error leaves as one line and an exit code."""
    # How long torch's threads wait awake for each other; read when torch is loaded. With the default a small
    # training step took ten times as long (3.1 against 0.27 s at 1000) beside one busy program; alone, within noise.
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except TyperException as error:  # a wrong option or argument
        message = error.format_message()  # empty where the help was shown instead
        code = _fail(f"{message} See `regard --help`.", 2) if message.strip() else 0
    except RegardError as error:
        code = _fail(str(error), 2)
    except (typer.Abort, KeyboardInterrupt):
        code = _fail("interrupted", 130)
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # the disk is full, a file may not be read, and the like
        code = _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 2)
    except Exception as error:
        code = _fail(f"a fault of regard itself: {type(error).__name__}: {error}; --debug shows where", 1)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    if os.environ.get("REGARD_DEBUG"):
        traceback.print_exc()
    note(f"error: {' '.join(message.split())}")
    return code


def _split(arguments: list[str]) -> tuple[list[Path], list[str]]:
    """Files and settings: a setting is a dotted name, an equals sign, a value."""
    settings = [word for word in arguments if re.match(r"[A-Za-z_][\w.]*=", word) and not Path(word).exists()]
    return [Path(word) for word in arguments if word not in settings], settings


def _lines_of_stdin() -> list[str]:
    if sys.stdin.isatty():
        raise InputError('nothing to run on; give a text: regard run MODEL "a text", or lines on standard input')
    try:
        lines = [line.strip() for line in sys.stdin]
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from error
    if not any(lines):
        raise InputError("standard input is empty; wanted one text a line")
    return lines


def _checked(texts: list[str]) -> list[str]:
    for text in texts:
        if not text.strip():
            raise InputError(f"{text!r} has no words; wanted a text")
    return texts


def _strategy(
    beam: int | None,
    length_penalty: float | None = None,
    n_best: int = 1,
    sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
) -> "Strategy | None":
    """What the options ask for; None: whatever the model does by itself."""
    from regard.generation import Beam, Greedy, Sample

    if sample and beam not in (None, 1):
        raise ConfigError(f"--sample and --beam {beam} are two ways to choose; give one")
    if sample and n_best != 1:
        raise ConfigError(f"--n-best {n_best} is of a beam; --sample draws one text")
    if not sample and (temperature, top_k, top_p, seed) != (1.0, None, 1.0, 0):
        raise ConfigError("--temperature, --top-k, --top-p and --seed belong to --sample; add it")
    if sample:
        return Sample(temperature, top_k, top_p, seed)
    if beam is None:
        if (length_penalty, n_best) != (None, 1):
            raise ConfigError("--length-penalty and --n-best belong to --beam; add it")
        return None
    return (
        Greedy() if beam == 1 and n_best == 1 else Beam(beam, 1.0 if length_penalty is None else length_penalty, n_best)
    )
