"""The command that runs a model on inputs. Its options are those of the tasks."""

import inspect
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from annotated_types import Ge
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from regard.cli.app import AsJson, Device, DType, ModelFolder, Precision, Trust, app, trust_code
from regard.cli.inputs.texts import check_are_texts, read_inputs
from regard.errors import ConfigError
from regard.files import check_writable
from regard.printing import note_if_slow, print_json, show
from regard.progress import note
from regard.tasks import TASKS, find_task
from regard.tasks.base import Answer, RunRequest, Task
from regard.tasks.options import RunOptions, option_name


def run(
    model: Path,
    inputs: list[str] | None,
    file: Path | None,
    precision: str,
    device: str,
    dtype: str,
    trust: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a model on inputs: a translator translates texts, a language model continues them, a BERT fills in [MASK], a
    classifier classifies texts, a tagger labels their words, an encoder embeds them. On images (.png or .jpg): a
    captioner describes them, a ViLBERT retrieves them, answers questions about them and points at what a phrase means.

    By default a language model trained here samples (temperature 0.8, top-p 0.95); one in another format, and a
    translator, decode greedily.

    Examples:

    `regard run runs/demo "we are eating bread" --alignment`

    `regard run runs/demo < sentences.txt > translations.txt`

    `regard run path/to/opus-mt-en-es "The agreement was signed in August." --num-beams 4`

    `regard run runs/novel "Once upon a time" --num-samples 10 --best-by mean`

    `regard run path/to/gpt2 "In a shocking finding," --temperature 0.7 --max-new-tokens 100 --stop "."`

    `regard run SmolLM2-135M-Instruct.Q4_1.gguf --chat "What is attention?"`

    `regard run path/to/gpt2-xl "In a shocking finding," --precision int4`

    `regard run runs/novel "Once upon a time" --device cuda --dtype bfloat16`

    `regard run runs/bert "the cat [MASK] on the mat"`

    `regard run runs/sentiment --file reviews.csv`

    `regard run path/to/minilm --embed "first text" "second text" "third text" -o map.html`

    `regard run runs/captioner photo.png -o attention.png`

    `regard run runs/vqa scene.png "what color is the circle left of the square ?"`

    `regard run runs/vilbert --find "a large red circle above a small blue square" photos/`
    """
    from regard.runtime import prepare
    from regard.tasks.loading import load_with_task
    from regard.tasks.model_paths import find_model

    if options.get("output") is not None:
        check_writable(options["output"])
    find_model(model)
    texts, source = read_inputs(inputs, file)
    trust_code(trust, model)
    runtime = prepare(device, dtype, precision=precision)
    task, pipeline = load_with_task(model, precision=precision, runtime=runtime)
    note_if_slow(runtime)
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    chosen = _options_of(task, given, model)
    if not task.takes_images and source == "arguments":
        check_are_texts(texts, model)
    request = RunRequest(texts, chosen, source, as_json, None if as_json else _print_part)
    for found in task.run(pipeline, request):
        if not isinstance(found, Answer):
            note(found.text)
        elif as_json:
            print_json(found.data)
        elif found.colored:
            print(found.text, end=found.end)
        else:
            show(found.text, end=found.end)


def _print_part(text: str) -> None:
    show(text, end="", flush=True)


def _options_of(task: Task, given: dict[str, Any], model: Path) -> RunOptions:
    """The task's options; ConfigError for one that it does not have, or a value that it cannot have."""
    for name in given:
        if name not in task.options.model_fields:
            raise ConfigError(f"{option_name(name)} is not for {model}, a model for {task.name}; leave it out")
    try:
        return task.options(**given)
    except ValidationError as error:
        first = error.errors()[0]
        wanted = first["msg"].removeprefix("Input should be ").replace("'", "")
        raise ConfigError(f"{option_name(str(first['loc'][0]))} {first['input']}: wanted {wanted}") from error


# ------------------------------------------------ the signature


def _parameters() -> list[inspect.Parameter]:
    """What typer is to parse: the model, the inputs, and every option that some task has, once."""
    inputs = Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...", help="Texts or images; none: lines of stdin; -: all of stdin as one text."
        ),
    ]
    parameters = {"model": _parameter("model", ModelFolder), "inputs": _parameter("inputs", inputs, None)}
    for options in (find_task(name).options for name in TASKS):
        for name, field in options.model_fields.items():
            parameters.setdefault(name, _option(name, field, options.group_of(name)))
    lines = typer.Option("--file", help="Run on the lines of this file; of a table, on its texts.")
    parameters["file"] = _parameter("file", Annotated[Path | None, lines], None)
    parameters["precision"] = _parameter("precision", Precision, "stored")
    parameters["device"] = _parameter("device", Device, "auto")
    parameters["dtype"] = _parameter("dtype", DType, "float32")
    parameters["trust"] = _parameter("trust", Trust, False)
    parameters["as_json"] = _parameter("as_json", AsJson, False)
    return list(parameters.values())


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(name: str, field: FieldInfo, group: str | None) -> inspect.Parameter:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    option = typer.Option(
        option_name(name),
        *([str(extra["short"])] if "short" in extra else []),
        help=field.description,
        rich_help_panel=group,
        show_default=str(extra["default"]) if "default" in extra else False,
        min=next((bound.ge for bound in field.metadata if isinstance(bound, Ge)), None),  # type: ignore[arg-type]
    )
    return _parameter(name, Annotated[_typer_type(field.annotation), option], field.default)


def _typer_type(annotation: Any) -> Any:
    """A choice is parsed as a string: pydantic checks it, and the error is one line."""
    members = get_args(annotation)
    if any(get_origin(member) is Literal for member in members):
        return str | None
    return annotation


run.__signature__ = inspect.Signature(_parameters())  # type: ignore[attr-defined]
run.__annotations__ = {}
app.command()(run)
