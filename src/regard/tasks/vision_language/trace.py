"""A ViLBERT prepared for a trace: the tokens of a text and the regions of an image as axes."""

from pathlib import Path

import numpy as np
import torch

from regard.data.regions import collate_regions
from regard.errors import InputError
from regard.images.decoding import read_image
from regard.inspection.trace import Axis, byte_spans
from regard.inspection.tracing import TraceInputs
from regard.runtime import runtime_of
from regard.tasks.base import RunRequest, TraceRequest
from regard.tasks.options import BoxesOptions
from regard.tasks.vision_language.pipeline import VisionLanguagePipeline, VisualQuestionAnswering
from regard.tasks.vision_language.run import image_and_texts


def trace_inputs(pipeline: VisionLanguagePipeline, request: TraceRequest) -> TraceInputs:
    """The first input is an image, the second a text about it."""
    if len(request.inputs) != 2:
        raise InputError(f"got {len(request.inputs)} inputs; a trace of a ViLBERT is of an image and a text about it")
    image, texts = image_and_texts(pipeline, RunRequest(request.inputs, BoxesOptions(boxes=request.boxes)))
    row = pipeline.encode(texts[:1], truncate=False)[0]
    regions = collate_regions([image])
    ids, segment_ids = torch.tensor([row.ids]), torch.tensor([row.segment_ids])
    given = tuple(map(runtime_of(pipeline.model).move, (ids, segment_ids, regions.features, regions.boxes)))
    labels = pipeline.tokenizer.token_labels(row.ids)
    grid: int = pipeline.model.config.vision.grid
    named = [f"{i // grid + 1},{i % grid + 1}" if grid else f"box {i + 1}" for i in range(len(image.features) - 1)]
    axes = {
        "text": Axis(tokens=tuple(labels), text=texts[0], spans=byte_spans(texts[0], labels)),
        "regions": Axis(tokens=("image", *named), boxes=tuple(tuple(box[:4]) for box in image.boxes.tolist())),
    }
    answer = None
    if isinstance(pipeline, VisualQuestionAnswering):
        found = pipeline.run_all(texts[:1], [image])[0]
        answer = {"answer": found.answer, "probabilities": found.probabilities}
    pixels = np.asarray(read_image(Path(request.inputs[0])))
    return TraceInputs(axes, lambda: pipeline.model(*given), answer, image=pixels)
