"""`regard run` on a masked language model: predictions for each [MASK]; with --second, whether that text follows."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.errors import ConfigError
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.encoders.run import probability_bar, run_encoder
from regard.tasks.masked_lm import FillMaskOptions
from regard.tasks.masked_lm.pipeline import NUM_PREDICTIONS, FilledMask, FillMask


def run(pipeline: FillMask, request: RunRequest) -> Iterator[Answer | Note]:
    return run_encoder(pipeline, request, _answers)


def _answers(pipeline: FillMask, texts: Sequence[str], options: FillMaskOptions) -> Iterator[Answer]:
    if options.second is not None:
        for text in texts:
            yield _answer_pair(pipeline, text, options.second, options.num_predictions)
        return
    for filled in pipeline.fill(texts, options.num_predictions or NUM_PREDICTIONS):
        data = {"text": filled.source, "filled": filled.text, "masks": _as_lists(filled)}
        yield Answer("\n".join(_lines(filled)), data)


def _answer_pair(pipeline: FillMask, text: str, second: str, num_predictions: int | None) -> Answer:
    """How probable it is that the second text follows the first, and what the masks in them may be."""
    mask = pipeline.tokenizer.id_to_token(pipeline.tokenizer.mask_id)
    has_mask = mask is not None and mask in text + second
    if num_predictions is not None and not has_mask:
        raise ConfigError(
            f"--num-predictions {num_predictions} is for masked words; these texts have none; leave it out"
        )
    lines, data = [], {}
    truncated = pipeline.truncated
    # A model without a next-sentence head is an error only where there is nothing else to predict.
    only_fills = has_mask and not hasattr(pipeline.model, "next_sentence_logits")
    probability = None if only_fills else pipeline.follows(text, second)
    if has_mask:
        pipeline.truncated = truncated  # `fill` counts the text again
        filled = pipeline.fill([text], num_predictions or NUM_PREDICTIONS, second=second)[0]
        lines = _lines(filled)
        data = {"filled": filled.text, "filled_second": filled.second, "masks": _as_lists(filled)}
    if probability is not None:
        lines.append(f"{probability:.1%} probability that it follows: {text} | {second}")
    return Answer("\n".join(lines), {"text": text, "second": second, **data, "follows": probability})


def _as_lists(filled: FilledMask) -> list[list[dict[str, Any]]]:
    return [[{"token": one.token, "probability": one.probability} for one in mask] for mask in filled.masks]


def _lines(filled: FilledMask) -> list[str]:
    lines = [filled.text if filled.second is None else f"{filled.text} | {filled.second}"]
    for number, predictions in enumerate(filled.masks, 1):
        if len(filled.masks) > 1:
            lines.append(f"  mask {number}")
        lines += [probability_bar(one.token, one.probability) for one in predictions]
    return lines
