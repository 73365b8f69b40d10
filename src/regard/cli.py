"""The commands: parse, call one function, print.

Results go to standard output, progress and notes to standard error. Exit 0: fine. 2: the user's mistake, said in one
line. 1: ours.
"""

import json
import math
import os
import re
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException

from regard.errors import ConfigError, InputError, RegardError

if TYPE_CHECKING:
    from regard.generation import Strategy
    from regard.running.translator import Answer

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
        _print_json(result)


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
        _note(f"stopped at step {last.step} and saved; the same command goes on from there")
        raise typer.Exit(128 + last.stopped)
    if as_json:
        _print_json({"folder": str(target), "step": last.step, "heldout": last.heldout})
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
    answers = iter(
        translator.run_all([text for text in texts if text], strategy, alignment=alignment or bool(output) or as_json)
    )
    for text in texts:
        answer = next(answers) if text else None
        if answer is None:  # an empty line stays one, so that output goes line by line with input
            print(json.dumps({"source": "", "translations": []}) if as_json else "")
        elif as_json:
            _print_json(_as_dict(answer))
        else:
            _show(answer, alignment)
        if answer is not None and output is not None:
            _save_picture(answer, output)


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
        _print_json(scores)
    else:
        _show_scores(scores)


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
        _print_json(
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
        _note(f"broken: {', '.join(broken)}")
        raise typer.Exit(1)


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
        _print_json({"folder": str(output), "files": written})
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
        _print_json(facts)
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
        _print_json(found if name is None else {name: found[name]})
    elif name is not None:
        print(found[name])
    else:
        for each, text in found.items():
            print(f"{each:<24}{text.splitlines()[0]}")


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
    _note(f"error: {' '.join(message.split())}")
    return code


def _note(line: str) -> None:
    print(line, file=sys.stderr)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


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


def _show(answer: "Answer", alignment: bool) -> None:
    from rich.console import Console

    from regard.inspection.pictures import terminal_heat_map

    for translation in answer.translations:
        score = f"{translation.score:8.3f}  " if len(answer.translations) > 1 else ""
        print(score + " ".join(translation.text.splitlines()))  # a line each, whatever it holds
        if alignment and translation.alignment is not None:
            found = translation.alignment
            Console().print(terminal_heat_map(found.words, found.target_words, found.source_words))


def _show_scores(scores: dict[str, Any]) -> None:
    deviation = scores.get("deviation", {})
    for name, value in scores.items():
        if name == "by_length":
            print("by source words")
            for row in value:
                numbers = "  ".join(f"{key} {row[key]:.4g}" for key in ("bleu", "chrf", "exact_match"))
                print(f"  {row['source_words']:<8}pairs {row['pairs']:<8,}{numbers}")
        elif isinstance(value, float):
            print(f"{name:<26}{value:.4f}" + (f" ± {deviation[name]:.4f}" if name in deviation else ""))
        elif name != "deviation":
            print(f"{name:<26}{value}")


def _save_picture(answer: "Answer", path: Path) -> None:
    from regard.inspection.pictures import save_heat_map

    if answer.alignment is None:
        raise InputError(f"the translation of {answer.source!r} is empty: there is nothing to show")
    save_heat_map(answer.alignment.words, answer.alignment.target_words, answer.alignment.source_words, path)
    _note(f"wrote {path}")


def _as_dict(answer: "Answer") -> dict[str, Any]:
    return {
        "source": answer.source,
        "translations": [
            {
                "text": one.text,
                "score": one.score,
                "log_probability": one.log_probability,
                "ended": one.ended,
                "alignment": None
                if one.alignment is None
                else {
                    "source": one.alignment.source,
                    "target": one.alignment.target,
                    "weights": one.alignment.weights.round(6).tolist(),
                },
            }
            for one in answer.translations
        ],
    }
