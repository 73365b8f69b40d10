"""Embedding: a text in, a vector out; similar texts get similar vectors. Nothing is trained here."""

from regard.tasks.base import Task
from regard.tasks.options import EncoderOptions

TASK = Task(
    name="embedding",
    options=EncoderOptions,
    pipeline="regard.tasks.embedding.pipeline:Embedder",
    runner="regard.tasks.embedding.run:run",
    tracer="regard.tasks.encoders.trace:trace_inputs",
    exporter="regard.tasks.embedding.pipeline:export_settings",
)
