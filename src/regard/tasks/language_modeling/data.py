"""Text made ready for a language model: read, split, tokenized into the cache."""

from pathlib import Path
from typing import Any

from regard.data.readers.python_docs import PythonDocs
from regard.data.stores.cache import cached, content_key
from regard.data.stores.token_stream import TokenStream
from regard.data.text_corpus import TextCorpus, TextDataConfig
from regard.errors import ConfigError
from regard.huggingface.hub import find
from regard.huggingface.language import symbols_of
from regard.tasks.kept_tokenizer import kept_or_made
from regard.tasks.language_modeling.dataset import LanguageText
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.language_modeling.task import LanguageModeling
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.warm_start import from_weights, starting
from regard.tokenizers.text import TextTokenizer

EXAMPLE = "Once upon a time"
WITHOUT_DATA = "the Python documentation on this machine"


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The language task on the user's files, or on the Python documentation of this machine when there are none."""
    settings: TextDataConfig = run.data  # type: ignore[assignment]
    config: Any = run.model
    corpus = TextCorpus(given.paths, settings) if given.paths else PythonDocs(settings)
    tokenizer = kept_or_made(
        TextTokenizer,
        tokenizer_file,
        lambda: given.model.tokenizer if given.start else make_tokenizer(settings, corpus, config.vocab_size),
    )
    data = LanguageText(
        training=_tokenized(corpus, "training", tokenizer),
        validation=_tokenized(corpus, "validation", tokenizer),
        context=config.context,
        apart=settings.apart,
        evaluated=settings.evaluated,
        begun=tokenizer.prepended_bos_id is not None,
    )
    notes = [
        *corpus.notes,
        f"{len(data.training):,} tokens of {data.training.documents:,} documents to train on, "
        f"{len(data.validation):,} held out; a vocabulary of {tokenizer.vocab_size:,}",
    ]
    if settings.evaluated < len(data.validation):
        notes.append(
            f"training evaluates on the first {settings.evaluated:,} of the {len(data.validation):,} held-out "
            "tokens (data.evaluated); `regard evaluate` looks at all"
        )
    if given.start:
        if settings.vectors is not None:
            raise ConfigError(f"data.vectors={settings.vectors} and --from {given.start} are two beginnings; give one")
        return Prepared(LanguageModeling(data), config, notes, from_weights(given.model.model.state_dict()))
    fitted = config.fitted(vocab_size=tokenizer.vocab_size, special_ids=symbols_of(tokenizer))
    return Prepared(LanguageModeling(data), fitted, notes, starting(settings.vectors, tokenizer))


def begun(given: Given) -> Any:
    """The config of the language model to begin from."""
    if not isinstance(given.model, TextGenerator):
        raise ConfigError(f"--from {given.start} is a {given.model.kind}, wanted a language model")
    return given.model.model.config


def make_tokenizer(settings: TextDataConfig, corpus: TextCorpus, size: int) -> TextTokenizer:
    """What `data.tokenizer` asks for: a kind that is made of the text, or one that is there already."""
    name = settings.tokenizer
    if name == "characters":
        return TextTokenizer.characters(piece.text for piece in corpus.pieces())
    if name == "bytes":
        return TextTokenizer.bytes()
    if name == "bpe":
        return TextTokenizer.train(corpus.sample(), size)
    path = find("openai-community/gpt2" if name == "gpt2" else name, tokenizer_only=True)
    return TextTokenizer.from_folder(path) if path.is_dir() else TextTokenizer.load(path)


def _tokenized(corpus: TextCorpus, part: str, tokenizer: TextTokenizer) -> TokenStream:
    special_ids = {"begin": tokenizer.bos_id, "ends": tokenizer.eos_ids}
    key = content_key(corpus.files, tokenizer.to_json().encode(), {"part": part, **special_ids, **corpus.settings})
    pieces = getattr(corpus, part)

    def build(folder: Path) -> TokenStream:
        begin, end = tokenizer.prepended_bos_id, tokenizer.eos_id
        return TokenStream.build(pieces(), tokenizer.encode_batch, end, folder, size=tokenizer.vocab_size, bos_id=begin)

    return cached(key, build, TokenStream.open)
