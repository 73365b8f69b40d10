"""Score a ViLBERT: on the user's pictures, on what a run held out, or on drawn scenes.

Of a scene it is known which thing each word speaks of, so it is measured too, head by head, how much of what the words
look at is that thing, against chance.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import folder_and_file, read_captions, split_validation
from regard.data.readers.easy_vqa import read_easy_vqa
from regard.errors import DataError
from regard.tasks.run_settings import held_out_of
from regard.tasks.vision_language.evaluate_scenes import score_asking, score_looking, score_pairs, score_retrieval
from regard.tasks.vision_language.pipeline import (
    ImageTextMatcher,
    Pointer,
    VisionLanguagePipeline,
    VisualQuestionAnswering,
)
from regard.tasks.vision_language.questions import accuracies
from regard.tasks.vision_language.scene_questions import TRUTHS, Asking

AMONG = 100  # pictures that the right one is looked for among


def score_matching(
    matcher: ImageTextMatcher, folder: Path, paths: Sequence[Path], *, most: int | None = None
) -> dict[str, Any]:
    """How often the right one of a hundred pictures, or of `most`, is found for its first caption, and the reverse."""
    if paths:
        return _score_captioned(matcher, paths, None, most)
    run = held_out_of(folder, "the folder of the pictures and the captions' file")
    if run.data:
        return _score_captioned(matcher, run.data, run.settings["data"]["validation"], most)
    return score_retrieval(matcher, most or AMONG) | _looking(matcher)


def score_answers(
    runner: VisualQuestionAnswering | Pointer, folder: Path, paths: Sequence[Path], *, most: int | None = None
) -> dict[str, Any]:
    """The share of right answers, of all and by kind; with `most` to the first so many questions of a folder, or about
    the first so many scenes."""
    run = None if paths else held_out_of(folder, "a folder as easy-vqa has it")
    if run is None or run.data:
        return _score_asked(runner, paths or run.data, most)  # type: ignore[union-attr]
    data = run.settings["data"]
    ask: Asking = "phrases" if isinstance(runner, Pointer) else "statements" if runner.labels == TRUTHS else "questions"
    return score_asking(runner, ask, most or data["validation"], data.get(f"{ask}_per_scene", 0))


def _score_captioned(
    matcher: ImageTextMatcher, paths: Sequence[Path], validation: int | None, most: int | None
) -> dict[str, Any]:
    """Of all captions of a file, or of those that a run held out."""
    bad = BadRows()
    found = read_captions(*folder_and_file(paths), on_error="skip", report=bad)
    if validation is not None:
        found = split_validation(found, validation)[1]
    found = found[: most or AMONG]
    scores = score_pairs(matcher, [one.captions[0] for one in found], [matcher.see(one.image) for one in found])
    return scores | ({"bad_lines": bad.summary()} if bad.count else {})


def _score_asked(runner: VisualQuestionAnswering | Pointer, paths: Sequence[Path], most: int | None) -> dict[str, Any]:
    """Of the questions that a folder keeps for testing."""
    if len(paths) != 1 or not isinstance(runner, VisualQuestionAnswering):
        raise DataError(f"got {', '.join(map(str, paths))}, wanted one folder, as easy-vqa has it, for what answers")
    bad = BadRows()
    asked = read_easy_vqa(paths[0], on_error="skip", report=bad).validation[:most]
    pictures = {path: runner.see(path) for path in {one.image for one in asked}}
    found = runner.run_all([one.text for one in asked], [pictures[one.image] for one in asked])
    right: dict[str, list[bool]] = defaultdict(list)
    for one, said in zip(asked, found, strict=True):
        right[one.kind].append(said.answer == one.answer)
    return {"asked": len(asked), **accuracies(right), **({"bad_lines": bad.summary()} if bad.count else {})}


def _looking(runner: VisionLanguagePipeline) -> dict[str, Any]:
    """Attention on the thing a word speaks of: the mean over all heads of all meetings, the best of them, and each."""
    looks = score_looking(runner)
    mean, best, chance = sum(one.mass for one in looks) / len(looks), max(one.mass for one in looks), looks[0].chance
    return {
        "attention_on_thing": mean,
        "attention_by_chance": chance,
        "attention_times_chance": mean / chance,
        "attention_of_best_head": best,
        "attention_on_picture": sum(one.whole for one in looks) / len(looks),
        "by_head": [
            {
                "layer": one.co_attention + 1,
                "head": one.head + 1,
                "on_thing": one.mass,
                "times_chance": one.mass / one.chance,
            }
            for one in looks
        ],
    }
