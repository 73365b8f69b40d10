"""What `regard run` does with a model that sees pictures: caption, find, answer, point."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import ImageError, InputError
from regard.files import read_json
from regard.printing import print_json
from regard.progress import note

if TYPE_CHECKING:
    from regard.data.regions import ImageRegions
    from regard.generation import Strategy
    from regard.tasks.captioning.pipeline import Captioner
    from regard.tasks.vision_language.pipeline import (
        ImageTextMatcher,
        Pointer,
        VisionLanguagePipeline,
        VisualQuestionAnswering,
    )

ENDINGS = {".png", ".jpg", ".jpeg"}
SHOWN = 10  # of a ranking


def is_seeing(runner: Any) -> bool:
    from regard.tasks.captioning.pipeline import Captioner
    from regard.tasks.vision_language.pipeline import VisionLanguagePipeline

    return isinstance(runner, Captioner | VisionLanguagePipeline)


def see(
    runner: Any,
    inputs: Sequence[str],
    *,
    strategy: "Strategy | None",
    find: str | None,
    boxes: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Run a model on pictures: each input is a picture, a folder of them, or a text about the first."""
    from regard.tasks.captioning.pipeline import Captioner
    from regard.tasks.vision_language.pipeline import ImageTextMatcher, VisualQuestionAnswering

    if isinstance(runner, Captioner):
        if find is not None or boxes is not None:
            raise InputError("--find and --boxes are not for a captioner; leave them out")
        _caption(runner, _pictures(inputs), strategy, output, as_json)
        return
    if output is not None:
        raise InputError(f"-o {output}: only a captioner draws where it looked; leave it out")
    known: dict[str, Any] = {} if boxes is None else read_json(boxes)
    if isinstance(runner, ImageTextMatcher) and find is not None:
        _find(runner, find, _pictures(inputs), known, as_json)
        return
    if find is not None:
        raise InputError("--find is for a vilbert that matches texts and pictures; leave it out")
    if len(inputs) < 2:
        raise InputError('wanted a picture and a text about it: regard run MODEL picture.png "a text"')
    picture = _seen(runner, Path(inputs[0]), known)
    if isinstance(runner, ImageTextMatcher):
        _rank_texts(runner, picture, list(inputs[1:]), as_json)
    elif isinstance(runner, VisualQuestionAnswering):
        _answer(runner, picture, list(inputs[1:]), as_json)
    else:
        _point(runner, picture, list(inputs[1:]), as_json)


def _pictures(inputs: Sequence[str]) -> list[Path]:
    """The pictures that are named, and those of the folders that are."""
    found: list[Path] = []
    for one in map(Path, inputs):
        if one.is_dir():
            inside = sorted(path for path in one.iterdir() if path.suffix.lower() in ENDINGS)
            if not inside:
                raise InputError(f"{one} has no picture; wanted .png or .jpg files")
            found += inside
        elif one.is_file():
            found.append(one)
        else:
            raise InputError(f"there is no picture {one}")
    return found


def _caption(
    runner: "Captioner", pictures: list[Path], strategy: "Strategy | None", output: Path | None, as_json: bool
) -> None:
    if output is not None:
        from regard.inspection.attention_overlay import check_overlay, save_overlay

        check_overlay(output)
        if len(pictures) != 1:
            raise InputError(f"-o {output} shows one picture, got {len(pictures)}; give one")
    left_out = 0
    for path in pictures:
        try:
            found = runner.run(path, strategy)
        except ImageError as error:
            if len(pictures) == 1:
                raise
            note(f"left out: {error}")
            left_out += 1
            continue
        if as_json:
            print_json({"picture": str(path), "caption": found.text, "score": found.score, "words": found.words})
        else:
            print(found.text if len(pictures) == 1 else f"{path}\t{found.text}")
        if output is not None:
            save_overlay(output, found.pixels, found.words, found.looks)
            note(f"wrote {output}")
    if left_out == len(pictures):
        raise InputError(f"none of {left_out} pictures can be read")
    if left_out:
        note(f"{left_out} of {len(pictures)} pictures left out")


def _seen(runner: "VisionLanguagePipeline", path: Path, boxes: dict[str, Any]) -> "ImageRegions":
    if not path.is_file():
        raise InputError(f"there is no picture {path}; the first INPUT is one, the others are texts")
    if not runner.model.config.seeing.cells and path.name not in boxes:
        raise InputError(
            f"this model looks at boxes: --boxes FILE.json with {{{path.name!r}: [[left, top, right, bottom], …]}}; "
            "or train one with model.seeing.cells=8"
        )
    return runner.see(path, boxes.get(path.name))


def _find(runner: "ImageTextMatcher", text: str, paths: list[Path], boxes: dict[str, Any], as_json: bool) -> None:
    seen: list[tuple[Path, Any]] = []
    for path in paths:
        try:
            seen.append((path, _seen(runner, path, boxes)))
        except ImageError as error:
            note(f"left out: {error}")
    if not seen:
        raise InputError("no picture could be read")
    for one in runner.rank_pictures(text, [picture for _, picture in seen])[:SHOWN]:
        _show_ranked(str(seen[one.number][0]), one, "picture", as_json)


def _rank_texts(runner: "ImageTextMatcher", picture: "ImageRegions", texts: list[str], as_json: bool) -> None:
    for one in runner.rank_texts(picture, texts)[:SHOWN]:
        _show_ranked(texts[one.number], one, "text", as_json)


def _show_ranked(name: str, one: Any, what: str, as_json: bool) -> None:
    if as_json:
        print_json({what: name, "score": one.score, "probability": one.probability})
    else:
        print(f"{one.probability:6.1%}  {name}")


def _answer(runner: "VisualQuestionAnswering", picture: "ImageRegions", questions: list[str], as_json: bool) -> None:
    for found in runner.run_all(questions, [picture] * len(questions)):
        if as_json:
            likely = dict(list(found.probabilities.items())[:SHOWN])
            print_json({"question": found.question, "answer": found.answer, "probabilities": likely})
        else:
            print(f"{found.answer}  ({found.probability:.1%})")


def _point(runner: "Pointer", picture: "ImageRegions", phrases: list[str], as_json: bool) -> None:
    for found in runner.run_all(phrases, [picture] * len(phrases)):
        if as_json:
            print_json({"phrase": found.phrase, "box": list(found.box), "probability": found.probability})
        else:
            left, top, right, bottom = found.box
            where = f"from {left:.0%} to {right:.0%} across, {top:.0%} to {bottom:.0%} down"
            print(f"{found.phrase}: {where}  ({found.probability:.1%})")
