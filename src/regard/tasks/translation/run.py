"""`regard run` on a translator: a translation per line; with --alignment a heat map of its attention."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.errors import InputError, escape_for_output
from regard.generation import Strategy
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.chunks import chunks
from regard.tasks.translation.pipeline import Alignment, TranslatedText, Translation, Translator


def run(pipeline: Translator, request: RunRequest) -> Iterator[Answer | Note]:
    options = request.options
    texts = _check_words(request)
    if options.output is not None:
        from regard.inspection.heat_map import check_figure

        check_figure(options.output)
        if len(texts) != 1:
            raise InputError(f"a figure shows one text, got {len(texts)}; give one INPUT with -o")
    strategy = options.strategy(pipeline.strategy, scored=request.as_json)
    alignment = options.alignment or options.output is not None
    found = _translate([text for text in texts if text], pipeline, strategy, alignment)
    truncated = 0
    for text in texts:
        if not text:  # an empty line stays empty, so that output lines match input lines
            yield Answer("", {"source": "", "translations": []})
            continue
        translation = next(found)
        mapped = options.alignment and not request.as_json
        yield Answer(_show(translation, mapped), _as_dict(translation), colored=mapped)
        if options.output is not None:
            yield _save_figure(translation, options.output)
        truncated += not translation.translations[0].ended
    if truncated:
        yield Note(f"{truncated} of {len(texts)} translations reached the length limit without an end")


def _translate(
    texts: Sequence[str], pipeline: Translator, strategy: Strategy, alignment: bool
) -> Iterator[Translation]:
    """Every text is encoded once before, so that one which is refused is refused before anything is printed."""
    for chunk in chunks(len(texts)):
        pipeline.task.encode(texts[chunk])
    for chunk in chunks(len(texts)):
        yield from pipeline.run_all(texts[chunk], strategy, alignment=alignment, first=chunk.start)


def _check_words(request: RunRequest) -> Sequence[str]:
    """The texts: every argument must have words; of the lines, at least one."""
    if request.source == "arguments":
        for text in request.inputs:
            if not text.strip():
                raise InputError(f"{text!r} has no words; wanted a text")
    if request.source != "lines":
        return request.inputs
    lines = [line.strip() for line in request.inputs]
    if not any(lines):
        raise InputError("standard input is empty; wanted one text a line")
    return lines


def _show(translation: Translation, alignment: bool) -> str:
    lines = []
    for one in translation.translations:
        score = f"{one.score:8.3f}  " if len(translation.translations) > 1 else ""
        text = " ".join(one.text.splitlines())  # one line per translation
        lines.append(score + (escape_for_output(text) if alignment else text))
        if alignment and one.alignment is not None:
            lines.append(_heat_map(one.alignment))
    return "\n".join(lines)


def _heat_map(alignment: Alignment) -> str:
    """A heat map for the terminal, with colors where standard output is one."""
    from rich.console import Console

    from regard.inspection.heat_map import terminal_heat_map

    console = Console()
    with console.capture() as captured:
        target, source = alignment.target_words, alignment.source_words
        shown = terminal_heat_map(
            alignment.words, list(map(escape_for_output, target)), list(map(escape_for_output, source))
        )
        console.print(shown, soft_wrap=True)
    return captured.get().removesuffix("\n")


def _save_figure(translation: Translation, path: Any) -> Note:
    from regard.inspection.heat_map import save_heat_map

    alignment = translation.alignment
    if alignment is None:
        raise InputError(f"the translation of {translation.source!r} is empty: there is nothing to show")
    save_heat_map(alignment.words, alignment.target_words, alignment.source_words, path)
    return Note(f"wrote {path}")


def _as_dict(translation: Translation) -> dict[str, Any]:
    return {"source": translation.source, "translations": [_text_as_dict(one) for one in translation.translations]}


def _text_as_dict(one: TranslatedText) -> dict[str, Any]:
    alignment = one.alignment and {
        "source": one.alignment.source,
        "target": one.alignment.target,
        "weights": one.alignment.weights.round(6).tolist(),
    }
    return {
        "text": one.text,
        "score": one.score,
        "log_probability": one.log_probability,
        "ended": one.ended,
        "alignment": alignment,
    }
