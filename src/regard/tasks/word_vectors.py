"""Word vectors, wherever they are: in a file of vectors, or in the table of a model."""

from pathlib import Path

from regard.data.readers.lines import format_suffix
from regard.data.readers.word_vectors import WordVectors, read_vectors
from regard.errors import InputError

MODEL = ".gguf"  # the one kind of model that is a file


def open_words(source: Path, most: int | None = None) -> WordVectors:
    """The first `most` vectors of a file, or those of a model that `regard.load` opens, of tokens that are words."""
    if source.is_file() and format_suffix(source) != MODEL:
        return read_vectors(source, most=most)
    from regard.inspection.table import table_of
    from regard.tasks.loading import load

    runner = load(source)
    if not hasattr(runner.model, "input_embeddings"):
        raise InputError(f"{source}: a {type(runner.model).__name__} has no table of words")
    found = table_of(runner.model.input_embeddings, runner.tokenizer.single_token_words())
    return WordVectors(found.words[:most], found.matrix[:most])
