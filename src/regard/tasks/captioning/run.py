"""`regard run` on a captioner: a caption per image; with -o a figure of what it attends to for each word."""

from collections.abc import Iterator
from pathlib import Path

from regard.errors import ImageError, InputError
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.captioning.pipeline import Captioner
from regard.tasks.image_inputs import image_paths


def run(pipeline: Captioner, request: RunRequest) -> Iterator[Answer | Note]:
    paths, output = image_paths(request.inputs), request.options.output
    strategy = request.options.strategy(pipeline.strategy, scored=request.as_json)
    if output is not None:
        _check_output(output, paths)
    unreadable = 0
    for path in paths:
        try:
            caption = pipeline.run(path, strategy)
        except ImageError as error:
            if len(paths) == 1:
                raise
            yield Note(f"left out: {error}")
            unreadable += 1
            continue
        data = {"image": str(path), "caption": caption.text, "score": caption.score, "words": caption.words}
        yield Answer(caption.text if len(paths) == 1 else f"{path}\t{caption.text}", data)
        if output is not None:
            from regard.inspection.attention_overlay import save_overlay

            save_overlay(output, caption.pixels, caption.words, caption.attention)
            yield Note(f"wrote {output}")
    if unreadable == len(paths):
        raise InputError(f"none of {unreadable} images can be read")
    if unreadable:
        yield Note(f"{unreadable} of {len(paths)} images left out")


def _check_output(output: Path, paths: list[Path]) -> None:
    from regard.inspection.attention_overlay import check_overlay

    check_overlay(output)
    if len(paths) != 1:
        raise InputError(f"-o {output} shows one image, got {len(paths)}; give one")
