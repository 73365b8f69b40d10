"""Word embeddings: from a file of word vectors, or the input embeddings of a model."""

from pathlib import Path

from regard.data.readers.lines import format_suffix
from regard.data.readers.word_vectors import WordVectors, read_vectors
from regard.errors import InputError

GGUF = ".gguf"  # the only kind of model that is a file


def read_embeddings(source: Path, most: int | None = None) -> WordVectors:
    """The first `most` vectors of a file, or the input embeddings of a model, for the tokens that are whole words."""
    if source.is_file() and format_suffix(source) != GGUF:
        return read_vectors(source, most=most)
    from regard.inspection.maps.neighbors import word_embeddings
    from regard.tasks.loading import load

    pipeline = load(source)
    if not hasattr(pipeline.model, "input_embeddings"):
        raise InputError(f"{source}: a {type(pipeline.model).__name__} has no word embeddings")
    found = word_embeddings(pipeline.model.input_embeddings, pipeline.tokenizer.single_token_words())
    return WordVectors(found.words[:most], found.matrix[:most])
