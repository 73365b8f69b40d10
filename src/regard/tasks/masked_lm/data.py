"""Data of BERT: documents of sentences, the user's or synthetic stories, split and tokenized into the cache."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from regard.data.chunking import TextChunk, chunk_text
from regard.data.masking import MaskingVocab
from regard.data.sentences import SentenceCorpus
from regard.data.text_corpus import TextFilesConfig
from regard.errors import ConfigError, DataError
from regard.huggingface.bert import special_ids_of
from regard.huggingface.hub import find
from regard.models.bert import BertConfig, BertForMaskedLMConfig, BertForPreTrainingConfig
from regard.synthetic.stories import story as stories
from regard.synthetic.stories.story import Part, Stories
from regard.tasks.masked_lm.dataset import MaskedText, tokenized
from regard.tasks.masked_lm.kept_probe import fit_and_keep
from regard.tasks.masked_lm.task import MaskedLMConfig, MaskedLMTraining
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs, load_or_make_tokenizer
from regard.tasks.warm_start import warm_start_embeddings, warm_start_from
from regard.tokenizers.wordpiece import WordPieceTokenizer

EXAMPLE = "the animal did not cross the street because it was too [MASK] ."
OWN_EXAMPLE = "a sentence of yours with a [MASK] in it"
DEFAULT_DATA = "synthetic short stories"
TOKENIZER_STORIES = 20_000  # stories a tokenizer is trained on: they have few words, and these contain all of them


class MaskedDataConfig(TextFilesConfig):
    """How text is read, split and tokenized."""

    tokenizer: str = Field(
        "word-pieces",
        min_length=1,
        description="word-pieces; or ready-made: a folder, a vocab.txt or tokenizer.json, a name on the hub",
    )
    cased: bool = Field(False, description="keep capital letters; else all text is lowercased")
    word_vectors: Path | None = Field(None, description="a file of word vectors to initialize the embeddings with")
    stories: int = Field(50_000, ge=20, description="synthetic stories to train on when no files are given")


MaskedRun = RunConfig[MaskedDataConfig, BertConfig, MaskedLMConfig]


def prepare(run: MaskedRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Masked language modeling on the user's files, or on synthetic stories when there are none."""
    settings = run.data
    config = _with_heads(run.model, inputs, run.task.next_sentence)
    _check_settings(settings, inputs)
    corpus = open_corpus(inputs.paths, settings)
    tokenizer = load_or_make_tokenizer(
        WordPieceTokenizer,
        tokenizer_file,
        lambda: inputs.pipeline.tokenizer if inputs.pretrained else make_tokenizer(settings, corpus, config.vocab_size),
    )
    data = _masked(
        corpus,
        training=tokenized(corpus, "training", tokenizer),
        validation=tokenized(corpus, "validation", tokenizer),
        context=config.context,
        table=MaskingVocab.from_tokenizer(tokenizer),
        masking=run.task.masking,
        next_sentence=run.task.next_sentence,
        validation_tokens=settings.validation_tokens,
    )
    notes = [
        *corpus.notes,
        f"{len(data.training.ids):,} tokens of {len(data.training):,} documents to train on, "
        f"{len(data.validation.ids):,} held out; a vocabulary of {tokenizer.vocab_size:,}",
    ]
    task = MaskedLMTraining(data)
    finish = None if inputs.paths else partial(fit_and_keep, tokenizer=tokenizer, stories=settings.stories)
    if inputs.pretrained:
        warm_start = warm_start_from(inputs.pipeline.model.state_dict())
        return PreparedTask(task, config, notes, warm_start, finish=finish)
    config = config.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids_of(tokenizer))
    return PreparedTask(task, config, notes, warm_start_embeddings(settings.word_vectors, tokenizer), finish=finish)


def _masked(corpus: "Corpus", **settings: Any) -> MaskedText:
    """The dataset; an error says how the corpus was split too."""
    try:
        return MaskedText(**settings)
    except DataError as error:
        raise DataError("; ".join([*corpus.notes, str(error)])) from error


def _check_settings(settings: MaskedDataConfig, inputs: TrainingInputs) -> None:
    """ConfigError: a setting that the pretrained model or a ready-made tokenizer decides."""
    default = MaskedDataConfig()
    if inputs.pretrained:
        for name in ("word_vectors", "tokenizer", "cased"):
            if getattr(settings, name) != getattr(default, name):
                raise ConfigError(f"data.{name}: the tokenizer is that of --from {inputs.pretrained}; leave it out")
    elif settings.cased and settings.tokenizer != default.tokenizer and Path(settings.tokenizer).suffix != ".txt":
        raise ConfigError(f"data.cased: the tokenizer {settings.tokenizer} says so itself; leave it out")


def _with_heads(config: BertConfig, inputs: TrainingInputs, next_sentence: bool) -> BertConfig:
    """The config of a model with the heads that the task needs."""
    if isinstance(config, BertForPreTrainingConfig) == next_sentence:
        return config
    if next_sentence:
        raise ConfigError(
            f"task.next_sentence=true, but {inputs.pretrained} was trained without it; leave the setting out"
        )
    if inputs.pretrained:  # its next-sentence head stays as it is
        return config
    return BertForMaskedLMConfig(**{name: value for name, value in config if name != "pooler"})


def pretrained_config(inputs: TrainingInputs) -> BertForPreTrainingConfig | BertForMaskedLMConfig:
    """The config of the pretrained model."""
    config = getattr(inputs.pipeline.model, "config", None)
    if not isinstance(config, BertForPreTrainingConfig | BertForMaskedLMConfig):
        what = "no masked-LM head" if isinstance(config, BertConfig) else "no BERT"
        raise ConfigError(
            f"--from {inputs.pretrained}: a {inputs.pipeline.kind} has {what}; wanted a BERT that fills in words"
        )
    return config


def make_tokenizer(settings: MaskedDataConfig, corpus: "Corpus", size: int) -> WordPieceTokenizer:
    """The tokenizer that `data.tokenizer` names: trained on the text, or ready-made."""
    if settings.tokenizer == "word-pieces":
        return WordPieceTokenizer.train(corpus.sample(), size, cased=settings.cased)
    path = find(settings.tokenizer, tokenizer_only=True)
    return (
        WordPieceTokenizer.from_folder(path) if path.is_dir() else WordPieceTokenizer.load(path, cased=settings.cased)
    )


class StoryCorpus:
    """Synthetic stories; the held-out ones use "it" as no training story does."""

    def __init__(self, config: MaskedDataConfig) -> None:
        folder = Path(stories.__file__).parent
        self.files = sorted([*folder.glob("*.py"), *folder.parent.glob("*.py")])  # the cache is keyed by the code
        self.settings: dict[str, Any] = {"stories": config.stories}
        self.notes: list[str] = []
        self._counts = {"training": config.stories, "validation": max(20, config.stories // 50)}

    def training(self) -> Iterator[TextChunk]:
        return self._pieces("training")

    def validation(self) -> Iterator[TextChunk]:
        return self._pieces("validation")

    def sample(self) -> Iterator[str]:
        """Texts to train a tokenizer on."""
        return (story.text for story in Stories().stories(0, min(TOKENIZER_STORIES, self._counts["training"])))

    def _pieces(self, part: Part) -> Iterator[TextChunk]:
        for story in Stories(part=part).stories(0, self._counts[part]):
            yield from chunk_text(story.text)


Corpus = SentenceCorpus | StoryCorpus


def open_corpus(paths: Sequence[Path], config: MaskedDataConfig) -> Corpus:
    config.check_has_files(bool(paths))
    return SentenceCorpus(paths, config) if paths else StoryCorpus(config)
