"""A captioner prepared for a trace: the grid of the image and the caption as axes."""

from pathlib import Path

import torch

from regard.errors import InputError
from regard.generation import Greedy
from regard.inspection.trace import Axis
from regard.inspection.tracing import TraceInputs
from regard.tasks.base import TraceRequest
from regard.tasks.captioning.pipeline import Captioner


def trace_inputs(pipeline: Captioner, request: TraceRequest) -> TraceInputs:
    """Caption the image, or take the caption that is given, and look at both."""
    if len(request.inputs) != 1:
        raise InputError(f"got {len(request.inputs)} inputs; a trace of a captioner is of one image file")
    if not Path(request.inputs[0]).is_file():
        raise InputError(f"there is no image {request.inputs[0]}; a trace of a captioner is of one image file")
    config, tokenizer = pipeline.model.config, pipeline.tokenizer
    device = next(pipeline.model.parameters()).device
    pixels = pipeline.pixels_of(request.inputs[0])
    if request.target is not None:
        target = [*tokenizer.encode(request.target), config.special_ids.eos_id][: request.max_new_tokens]
    else:
        target = pipeline.hypotheses([pixels], Greedy(), [0])[0][0].tokens[: request.max_new_tokens]
        target = target or [config.special_ids.eos_id]
    decoder_input = torch.tensor([[config.special_ids.bos_id, *target[:-1]]], device=device)
    inputs = pipeline.task.read(pixels[None]).to(device)
    written = tokenizer.decode(target)
    cells = [f"{row + 1},{column + 1}" for row in range(config.grid) for column in range(config.grid)]
    axes = {
        "image": Axis(tokens=tuple(cells), grid=(config.grid, config.grid)),
        "target": Axis(
            tokens=("<bos>", *tokenizer.token_labels(target[:-1])),
            text=written,
            next_tokens=tuple(tokenizer.token_labels(target)),
        ),
    }
    if config.encoder == "vit":
        axes["patches"] = Axis(tokens=("[CLS]", *cells))
    return TraceInputs(axes, lambda: pipeline.model(inputs, decoder_input), {"text": written}, "greedy", pixels)
