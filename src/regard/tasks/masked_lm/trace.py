"""A masked language model prepared for a trace: its row of tokens, and what its probe says of each "it"."""

from dataclasses import replace

from regard.inspection.tracing import TraceInputs
from regard.tasks.base import TraceRequest
from regard.tasks.encoders import trace as encoders_trace
from regard.tasks.masked_lm.pipeline import FillMask


def trace_inputs(pipeline: FillMask, request: TraceRequest) -> TraceInputs:
    """The row of an encoder; with the coreference probe of the model, if its folder has one."""
    inputs = encoders_trace.trace_inputs(pipeline, request)
    if pipeline.probe is None:
        return inputs
    found = pipeline.probe.references(pipeline.model, inputs.axes["text"].tokens, inputs.forward)
    return replace(inputs, references=found)
