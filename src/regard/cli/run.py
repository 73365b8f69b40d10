"""The command that runs a model on texts."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.app import AsJson, Beams, ModelFolder, Precision, app
from regard.cli.pictures import ENDINGS, is_seeing, see
from regard.cli.reading import read
from regard.errors import ConfigError, InputError
from regard.printing import (
    answer_as_dict,
    continued_as_dict,
    note,
    note_if_slow,
    print_json,
    save_picture,
    show_answer,
    show_continued,
)

if TYPE_CHECKING:
    from regard.generation import Strategy
    from regard.tasks.language_modeling.pipeline import TextGenerator
    from regard.tasks.translation.pipeline import Translator

SEARCH, CHANCE, TEXT, PAIR = "Searching", "Drawing by chance", "Language models", "Translators"
READ, SEE = "Readers (BERT)", "Pictures"
NO_LINES = "standard input is empty; wanted one text a line"


@app.command()
def run(
    model: ModelFolder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT]...", help="Texts; none: lines of stdin; -: all of stdin as one text."),
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="The likeliest token, always.", rich_help_panel=SEARCH)
    ] = False,
    beam: Beams = None,
    length_penalty: Annotated[
        float | None,
        typer.Option(
            help="With --beam: rank by log probability / length ** this.",
            show_default="the model's own: 1",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    n_best: Annotated[int, typer.Option(help="How many of the beam to show.", rich_help_panel=SEARCH)] = 1,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(help="Above 1: what was said before becomes less likely.", rich_help_panel=SEARCH),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw by chance.", rich_help_panel=CHANCE)] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Below 1 sharper, above 1 flatter.", rich_help_panel=CHANCE)
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the k likeliest.", rich_help_panel=CHANCE)] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Only the likeliest that make up this share.", rich_help_panel=CHANCE)
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(help="Only what is this share as likely as the likeliest.", rich_help_panel=CHANCE),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed, the same text.", rich_help_panel=CHANCE, show_default="0")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Draw so many texts and show them all, ranked.", rich_help_panel=CHANCE)
    ] = None,
    best_by: Annotated[
        str | None,
        typer.Option(
            help="With --samples, rank by: likelihood, mean (a token) or consistency (what most of them say).",
            rich_help_panel=CHANCE,
            show_default="likelihood",
        ),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="New tokens at most.", rich_help_panel=TEXT, show_default="200")
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="Stop at this text; may be given again.", rich_help_panel=TEXT)
    ] = None,
    truncate: Annotated[
        str | None,
        typer.Option(help="left: let go of the beginning of a prompt that is too long.", rich_help_panel=TEXT),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="INPUT is a message to answer.", rich_help_panel=TEXT)] = False,
    log_probabilities: Annotated[
        bool, typer.Option("--log-probabilities", help="Show how likely each token was.", rich_help_panel=TEXT)
    ] = False,
    alignment: Annotated[
        bool, typer.Option("--alignment", "-a", help="Show where each word looked.", rich_help_panel=PAIR)
    ] = False,
    embed: Annotated[
        bool, typer.Option("--embed", help="Vectors of the texts, and which are near.", rich_help_panel=READ)
    ] = False,
    second: Annotated[
        str | None, typer.Option(help="The second text of a pair; or a tab inside INPUT.", rich_help_panel=READ)
    ] = None,
    guesses: Annotated[
        int | None,
        typer.Option(min=1, help="Guesses shown for a hidden word.", show_default="5", rich_help_panel=READ),
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="Which of the pictures shows this; INPUT are pictures.", rich_help_panel=SEE)
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(help="Where things are in the pictures, as JSON: see `regard scenes`.", rich_help_panel=SEE),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A picture: a translator's alignment, where a captioner looked, or with --embed a map of the texts.",
        ),
    ] = None,
    precision: Precision = "float32",
    as_json: AsJson = False,
) -> None:
    """Run a model on texts: a translator translates them, a language model writes on from them, a BERT fills in the
    word at [MASK], a classifier judges them, a tagger labels their words, an encoder makes vectors of them. On pictures
    (.png or .jpg): a captioner describes them, a ViLBERT finds them, answers questions about them and points.

    A language model trained here draws by chance (temperature 0.8, top-p 0.95); one from elsewhere, and a translator,
    take the likeliest token where nothing is said.

    Examples:

    `regard run runs/demo "we are eating bread" --alignment`

    `regard run runs/demo < sentences.txt > translations.txt`

    `regard run path/to/opus-mt-en-es "The agreement was signed in August." --beam 4`

    `regard run runs/novel "Once upon a time" --samples 10 --best-by mean`

    `regard run path/to/gpt2 "In a shocking finding," --temperature 0.7 --tokens 100 --stop "."`

    `regard run SmolLM2-135M-Instruct.Q4_1.gguf --chat "What is attention?" --precision int8`

    `regard run runs/bert "the cat [MASK] on the mat"`

    `regard run runs/sentiment < reviews.txt`

    `regard run path/to/minilm --embed "first text" "second text" "third text" -o map.html`

    `regard run runs/captioner photo.png -o look.png`

    `regard run runs/vqa scene.png "what color is the circle left of the square ?"`

    `regard run runs/vilbert --find "a large red circle above a small blue square" photos/`
    """
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
    given = {name: value for name, value in drawing.items() if value is not None}
    if samples is not None:
        given["num_samples"] = samples
    choice = _Choice(greedy, beam, length_penalty, n_best, sample, given, repetition_penalty, scored=as_json)
    choice.check()
    if best_by not in (None, "likelihood", "mean", "consistency"):
        raise ConfigError(f"--best-by {best_by}: wanted likelihood, mean or consistency")
    if best_by is not None and (samples or n_best) == 1:
        raise ConfigError(f"--best-by {best_by} ranks several texts; add --samples 10, say")
    if truncate not in (None, "left"):
        raise ConfigError(f"--truncate {truncate}: wanted left")
    texts = _inputs(inputs)
    import regard
    from regard import runtime
    from regard.inspection.heat_map import check_figure
    from regard.tasks.embedding.pipeline import Embedder
    from regard.tasks.translation.pipeline import Translator

    runtime.prepare()
    runner = regard.load(model, precision=precision)
    note_if_slow()
    # What only some models take; the others refuse it.
    searching = {"greedy": greedy, "beam": beam, "sample": sample or given, "repetition-penalty": repetition_penalty}
    writing = {"tokens": tokens, "stop": stop, "truncate": truncate and True, "best_by": best_by}
    telling = {"chat": chat, "log-probabilities": log_probabilities}
    reading = {"embed": embed, "second": second, "guesses": guesses}
    if is_seeing(runner):
        _refuse({**writing, **telling, **reading, "alignment": alignment}, f"{model}, which sees pictures")
        own = getattr(runner, "strategy", None)
        if own is None:
            _refuse(searching, f"{model}, which does not write")
        looking = None if own is None else choice.strategy(own)
        see(runner, texts, strategy=looking, find=find, boxes=boxes, output=output, as_json=as_json)
        return
    _refuse({"find": find, "boxes": boxes}, f"{model}, which sees no pictures")
    for text in inputs or []:
        if text.lower().endswith(tuple(ENDINGS)) and Path(text).is_file():
            raise InputError(f"{text} is a picture, and {model} reads texts; wanted a text, or a model that sees")
    if isinstance(runner, Embedder):
        refused = {**searching, **writing, **telling, "alignment": alignment}
        _refuse(refused, f"{model}, which reads and does not write")
        read(runner, texts, embed=embed, second=second, count=guesses, output=output, as_json=as_json)
        return
    if output is not None:
        check_figure(output)
        if len(texts) != 1:
            raise InputError(f"a picture is of one text, got {len(texts)}; give one INPUT with -o")
    _refuse(reading, f"{model}, which writes; it is for models that read, such as a BERT")
    strategy = choice.strategy(runner.strategy)
    options: dict[str, Any] = {name: value for name, value in writing.items() if value is not None}
    if isinstance(runner, Translator):
        _refuse({**options, "samples": samples, **telling}, f"{model}, which translates")
        _translate(runner, _with_words(texts, inputs), strategy, alignment, output, as_json)
    else:
        _refuse({"alignment": alignment, "output": output}, f"{model}, a language model")
        _write_on(runner, texts, strategy, options, chat, log_probabilities, as_json)


def _translate(
    runner: "Translator",
    texts: list[str],
    strategy: "Strategy",
    alignment: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    answers = iter(runner.run_all([text for text in texts if text], strategy, alignment=alignment or bool(output)))
    cut = 0
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
        cut += answer is not None and not answer.translations[0].ended
    if cut:
        note(f"{cut} of {len(texts)} translations did not come to an end and were cut off at the longest allowed")


def _write_on(
    runner: "TextGenerator",
    prompts: list[str],
    strategy: "Strategy",
    options: dict[str, Any],
    chat: bool,
    log_probabilities: bool,
    as_json: bool,
) -> None:
    from regard.generation import Beam

    alone = len(prompts) == 1 and getattr(strategy, "num_samples", 1) == 1 and not isinstance(strategy, Beam)
    telling = alone and not as_json and not log_probabilities
    teller = _Teller("" if chat else prompts[0])
    if telling:
        options = {**options, "tell": teller}
    if chat:
        found = [runner.chat([{"role": "user", "content": prompt}], strategy, **options) for prompt in prompts]
    else:
        found = runner.run_all(prompts, strategy, **options)
    for number, (prompt, one) in enumerate(zip(prompts, found, strict=True)):
        likely = [runner.log_probabilities(one.ids, text.tokens) for text in one.texts] if log_probabilities else None
        if as_json:
            print_json(continued_as_dict(one, likely))
        elif telling:
            teller("\n")
        else:
            title = f"prompt {number + 1}" if len(found) > 1 else ""
            show_continued(one, likely, title=title, before="" if chat else prompt)
    if any(text.forgot for one in found for text in one.texts):
        note(f"a text outgrew the context of {runner.context} tokens: its beginning was out of sight at its end")


class _Teller:
    """Shows a text while it is written, behind its prompt; nothing of a prompt that is refused."""

    def __init__(self, prompt: str) -> None:
        self._before = prompt

    def __call__(self, text: str) -> None:
        print(self._before + text, end="", flush=True)
        self._before = ""


def _refuse(options: dict[str, Any], model: str) -> None:
    for name, value in options.items():
        if value:
            raise ConfigError(f"--{name.replace('_', '-')} is not for {model}; leave it out")


def _inputs(inputs: list[str] | None) -> list[str]:
    """The texts as they were given: to a language model white space is a text too, and so is nothing."""
    if inputs == ["-"]:
        text = _stdin()
        return [text.removesuffix("\n")]
    if inputs:
        return inputs
    if sys.stdin.isatty():
        raise InputError('nothing to run on; give a text: regard run MODEL "a text", or lines on standard input')
    lines = _stdin().splitlines()
    if not lines:
        raise InputError(NO_LINES)
    return lines


def _with_words(texts: list[str], inputs: list[str] | None) -> list[str]:
    """The texts for a translator, which needs words: every argument has some, of the lines one at least."""
    if inputs:
        for text in texts:
            if inputs != ["-"] and not text.strip():
                raise InputError(f"{text!r} has no words; wanted a text")
        return texts
    lines = [line.strip() for line in texts]
    if not any(lines):
        raise InputError(NO_LINES)
    return lines


def _stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from error


@dataclass(frozen=True)
class _Choice:
    """What the options say about how to choose."""

    greedy: bool
    beam: int | None
    length_penalty: float | None
    n_best: int
    sample: bool
    drawing: dict[str, Any]  # facts of a Sample that were given
    penalty: float | None
    scored: bool  # what is written comes out with its score, also where there is nothing to rank

    def check(self) -> None:
        """There is one way to choose."""
        drawn = self.sample or bool(self.drawing)
        first = next(iter(self.drawing), "").replace("_", "-").replace("num-samples", "samples")
        name = "--sample" if self.sample else f"--{first}"
        if drawn and self.beam not in (None, 1):
            raise ConfigError(f"{name} draws by chance and --beam {self.beam} searches: two ways to choose; give one")
        if drawn and self.n_best != 1:
            raise ConfigError(
                f"--n-best {self.n_best} is of a beam; for several texts drawn by chance: --samples {self.n_best}"
            )
        if self.greedy and (drawn or self.beam not in (None, 1)):
            other = name if drawn else f"--beam {self.beam}"
            raise ConfigError(f"--greedy and {other} are two ways to choose; give one")
        if self.beam is None and (self.length_penalty, self.n_best) != (None, 1):
            raise ConfigError("--length-penalty and --n-best belong to --beam; add it")

    def strategy(self, own: "Strategy") -> "Strategy":
        """That, on top of what the model does by itself."""
        from regard.generation import Beam, Greedy, Sample
        from regard.generation.strategies import length_penalty_of

        chosen = own
        if self.sample or self.drawing:
            chosen = replace(own if isinstance(own, Sample) else Sample(), **self.drawing)
        elif self.greedy or (self.beam == 1 and self.n_best == 1):
            chosen = Greedy()
        elif self.beam is not None:
            penalty = length_penalty_of(own) if self.length_penalty is None else self.length_penalty
            chosen = Beam(self.beam, penalty, self.n_best)
        if isinstance(chosen, Greedy):
            chosen = replace(chosen, scored=self.scored)
        if self.penalty is None:
            return chosen
        if isinstance(chosen, Beam):
            raise ConfigError(f"--repetition-penalty {self.penalty} is not for a beam; leave one of them out")
        return replace(chosen, repetition_penalty=self.penalty)  # type: ignore[type-var]
