"""Text made ready for BERT: documents of sentences, cut into pieces, in rows and pairs with hidden words."""

from pathlib import Path
from typing import Any

from regard.data.masking import PieceTable
from regard.errors import ConfigError, DataError
from regard.huggingface.bert import symbols_of
from regard.huggingface.hub import find
from regard.models.bert import BertConfig, BertForMaskedLMConfig, BertForPreTrainingConfig
from regard.tasks.kept_tokenizer import kept_or_made
from regard.tasks.masked_lm.corpus import Corpus, MaskedDataConfig, open_corpus
from regard.tasks.masked_lm.dataset import MaskedText, tokenized
from regard.tasks.masked_lm.task import MaskedLanguage, MaskedLanguageConfig
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.warm_start import from_weights, starting
from regard.tokenizers.wordpiece import WordPieceTokenizer

EXAMPLE = "the animal did not cross the street because it was too [MASK] ."
OWN_EXAMPLE = "a sentence of yours with a [MASK] in it"
WITHOUT_DATA = "the built-in world of short stories"


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The task on the user's files, or on the built-in stories when there are none."""
    settings: MaskedDataConfig = run.data  # type: ignore[assignment]
    task: MaskedLanguageConfig = run.task  # type: ignore[assignment]
    config = _with_heads(run.model, given, task.next_sentence)  # type: ignore[arg-type]
    _check_settings(settings, given)
    corpus = open_corpus(given.paths, settings)
    tokenizer = kept_or_made(
        WordPieceTokenizer,
        tokenizer_file,
        lambda: given.model.tokenizer if given.start else make_tokenizer(settings, corpus, config.vocab_size),
    )
    data = _masked(
        corpus,
        training=tokenized(corpus, "training", tokenizer),
        validation=tokenized(corpus, "validation", tokenizer),
        context=config.context,
        table=PieceTable.of(tokenizer),
        masking=task.masking,
        next_sentence=task.next_sentence,
        evaluated=settings.evaluated,
    )
    notes = [
        *corpus.notes,
        f"{len(data.training.ids):,} pieces of {len(data.training):,} documents to train on, "
        f"{len(data.validation.ids):,} held out; a vocabulary of {tokenizer.vocab_size:,}",
    ]
    if given.start:
        return Prepared(MaskedLanguage(data), config, notes, from_weights(given.model.model.state_dict()))
    fitted = config.fitted(vocab_size=tokenizer.vocab_size, special_ids=symbols_of(tokenizer))
    return Prepared(MaskedLanguage(data), fitted, notes, starting(settings.vectors, tokenizer))


def _masked(corpus: Corpus, **facts: Any) -> MaskedText:
    """The data, or an error that says how the corpus was split too."""
    try:
        return MaskedText(**facts)
    except DataError as error:
        raise DataError("; ".join([*corpus.notes, str(error)])) from error


def _check_settings(settings: MaskedDataConfig, given: Given) -> None:
    """What a model to begin from decides cannot be set; nor can what a ready-made tokenizer does."""
    fresh = MaskedDataConfig()
    if given.start:
        for name in ("vectors", "tokenizer", "cased"):
            if getattr(settings, name) != getattr(fresh, name):
                raise ConfigError(f"data.{name}: the words are those of --from {given.start}; leave it out")
    elif settings.cased and settings.tokenizer != fresh.tokenizer and Path(settings.tokenizer).suffix != ".txt":
        raise ConfigError(f"data.cased: the tokenizer {settings.tokenizer} says so itself; leave it out")


def _with_heads(config: BertConfig, given: Given, next_sentence: bool) -> BertConfig:
    """The config of a model that answers what is asked, and nothing else."""
    if isinstance(config, BertForPreTrainingConfig) == next_sentence:
        return config
    if next_sentence:
        raise ConfigError(f"task.next_sentence=true, but {given.start} was trained without it; leave the setting out")
    if given.start:  # its head for that stays as it is
        return config
    return BertForMaskedLMConfig(**{name: value for name, value in config if name != "pooler"})


def begun(given: Given) -> BertForPreTrainingConfig | BertForMaskedLMConfig:
    """The config of the model to begin from."""
    config = getattr(given.model.model, "config", None)
    if not isinstance(config, BertForPreTrainingConfig | BertForMaskedLMConfig):
        what = "no head for hidden words" if isinstance(config, BertConfig) else "no BERT"
        raise ConfigError(f"--from {given.start}: a {given.model.kind} has {what}; wanted a BERT that fills in words")
    return config


def make_tokenizer(settings: MaskedDataConfig, corpus: Corpus, size: int) -> WordPieceTokenizer:
    """What `data.tokenizer` asks for: pieces made of the text, or some that are there already."""
    if settings.tokenizer == "word-pieces":
        return WordPieceTokenizer.train(corpus.sample(), size, cased=settings.cased)
    path = find(settings.tokenizer, tokenizer_only=True)
    return (
        WordPieceTokenizer.from_folder(path) if path.is_dir() else WordPieceTokenizer.load(path, cased=settings.cased)
    )
