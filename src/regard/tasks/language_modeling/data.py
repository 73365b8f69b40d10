"""Data of a language model: text, read, split, and tokenized into the cache."""

from pathlib import Path
from typing import Literal

from regard.data.readers.python_docs import PythonDocs
from regard.data.stores.cache import cached, content_key
from regard.data.stores.token_stream import TokenStream
from regard.data.text_corpus import TextCorpus, TextDataConfig
from regard.errors import ConfigError
from regard.huggingface.hub import find
from regard.huggingface.language import special_ids_of
from regard.models.base import CausalLMConfig
from regard.tasks.language_modeling.dataset import LanguageText
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.language_modeling.task import LanguageModelingConfig, LanguageModelTraining
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs, load_or_make_tokenizer
from regard.tasks.warm_start import warm_start_embeddings, warm_start_from
from regard.tokenizers.text import TextTokenizer

EXAMPLE = "Once upon a time"
DEFAULT_DATA = "the Python documentation on this machine"

LanguageModelingRun = RunConfig[TextDataConfig, CausalLMConfig, LanguageModelingConfig]


def prepare(run: LanguageModelingRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Language modeling on the user's files, or on the Python documentation of this machine when there are none."""
    settings = run.data
    corpus = TextCorpus(inputs.paths, settings) if inputs.paths else PythonDocs(settings)
    tokenizer = load_or_make_tokenizer(
        TextTokenizer,
        tokenizer_file,
        lambda: (
            inputs.pipeline.tokenizer if inputs.pretrained else make_tokenizer(settings, corpus, run.model.vocab_size)
        ),
    )
    data = LanguageText(
        training=_tokenized(corpus, "training", tokenizer),
        validation=_tokenized(corpus, "validation", tokenizer),
        context=run.model.context,
        separate_documents=settings.separate_documents,
        validation_tokens=settings.validation_tokens,
        has_bos=tokenizer.prepended_bos_id is not None,
    )
    notes = [
        *corpus.notes,
        f"{len(data.training):,} tokens of {data.training.documents:,} documents to train on, "
        f"{len(data.validation):,} held out; a vocabulary of {tokenizer.vocab_size:,}",
    ]
    if settings.validation_tokens < len(data.validation):
        notes.append(
            f"training evaluates on the first {settings.validation_tokens:,} of the {len(data.validation):,} held-out "
            "tokens (data.validation_tokens); `regard evaluate` uses all"
        )
    if inputs.pretrained:
        if settings.word_vectors is not None:
            raise ConfigError(
                f"data.word_vectors={settings.word_vectors} and --from {inputs.pretrained} both initialize the "
                "embeddings; give one"
            )
        weights = inputs.pipeline.model.state_dict()
        return PreparedTask(LanguageModelTraining(data), run.model, notes, warm_start_from(weights))
    config = run.model.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids_of(tokenizer))
    return PreparedTask(
        LanguageModelTraining(data), config, notes, warm_start_embeddings(settings.word_vectors, tokenizer)
    )


def pretrained_config(inputs: TrainingInputs) -> CausalLMConfig:
    """The config of the pretrained language model."""
    if not isinstance(inputs.pipeline, TextGenerator):
        raise ConfigError(f"--from {inputs.pretrained} is a {inputs.pipeline.kind}, wanted a language model")
    config: CausalLMConfig = inputs.pipeline.model.config
    return config


def make_tokenizer(settings: TextDataConfig, corpus: TextCorpus, size: int) -> TextTokenizer:
    """The tokenizer that `data.tokenizer` names: trained on the text, or ready-made."""
    name = settings.tokenizer
    if name == "characters":
        return TextTokenizer.characters(piece.text for piece in corpus.chunks())
    if name == "bytes":
        return TextTokenizer.bytes()
    if name == "bpe":
        return TextTokenizer.train(corpus.sample(), size)
    path = find("openai-community/gpt2" if name == "gpt2" else name, tokenizer_only=True)
    return TextTokenizer.from_folder(path) if path.is_dir() else TextTokenizer.load(path)


def _tokenized(corpus: TextCorpus, part: Literal["training", "validation"], tokenizer: TextTokenizer) -> TokenStream:
    """The ids of a part of the corpus, from the cache or into it."""
    special_ids = {"begin": tokenizer.bos_id, "ends": tokenizer.eos_ids}
    key = content_key(corpus.files, tokenizer.to_json().encode(), {"part": part, **special_ids, **corpus.settings})
    pieces = corpus.training if part == "training" else corpus.validation

    def build(folder: Path) -> TokenStream:
        bos_id, eos_id = tokenizer.prepended_bos_id, tokenizer.eos_id
        return TokenStream.build(
            pieces(), tokenizer.encode_batch, eos_id, folder, vocab_size=tokenizer.vocab_size, bos_id=bos_id
        )

    return cached(key, build, TokenStream.open)
