"""Text made ready for BERT: documents of sentences, cut into pieces, in rows and pairs with hidden words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from regard.data.cutting import Piece, pieces_of
from regard.data.masked_text import MaskedText, tokenized
from regard.data.masking import PieceTable
from regard.data.sentences import SentenceCorpus
from regard.data.text_corpus import TextFilesConfig
from regard.errors import ConfigError
from regard.huggingface.hub import find
from regard.models.bert import BertConfig, BertPretrainingConfig, BertWordsConfig
from regard.models.symbols import ReaderSymbols
from regard.recipes.built_in import sources
from regard.recipes.run import Given, Prepared, Run
from regard.recipes.starting import from_weights, starting
from regard.recipes.tokenizing import kept_or_made
from regard.tasks.masked_language import MaskedLanguage, MaskedLanguageConfig
from regard.text.word_pieces import WordPieces
from regard.worlds.stories import Part, Stories

EXAMPLE = "the animal did not cross the street because it was too [MASK] ."
WITHOUT_DATA = "the built-in world of short stories"
SAMPLE = 20_000  # stories that a tokenizer is made of: their words are few and soon all seen


class MaskedDataConfig(TextFilesConfig):
    """How text is read, split and cut into pieces."""

    tokenizer: str = Field(
        "word-pieces",
        min_length=1,
        description="word-pieces; or ready-made: a folder, a vocab.txt or tokenizer.json, a name on the hub",
    )
    cased: bool = Field(False, description="capital letters stay; else all are made small")
    vectors: Path | None = Field(None, description="a file of word vectors that the table of words begins with")
    stories: int = Field(50_000, ge=20, description="stories the built-in world tells when no files are given")


class StoryCorpus:
    """The built-in world; what is held out has other uses of "it" than what is learned from."""

    def __init__(self, config: MaskedDataConfig) -> None:
        self.files = sources("regard.worlds")
        self.settings: dict[str, Any] = {"stories": config.stories}
        self.notes: list[str] = []
        self._counts = {"training": config.stories, "heldout": max(20, config.stories // 50)}

    def training(self) -> Iterator[Piece]:
        return self._pieces("training")

    def heldout(self) -> Iterator[Piece]:
        return self._pieces("heldout")

    def sample(self) -> Iterator[str]:
        """Texts to make a tokenizer of."""
        return (story.text for story in Stories().stories(0, min(SAMPLE, self._counts["training"])))

    def _pieces(self, part: Part) -> Iterator[Piece]:
        for story in Stories(part=part).stories(0, self._counts[part]):
            yield from pieces_of(story.text)


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The task on the user's files, or on the built-in stories when there are none."""
    settings: MaskedDataConfig = run.data  # type: ignore[assignment]
    task: MaskedLanguageConfig = run.task  # type: ignore[assignment]
    config = _with_heads(run.model, given, task.next_sentence)  # type: ignore[arg-type]
    corpus = SentenceCorpus(given.paths, settings) if given.paths else StoryCorpus(settings)
    tokenizer = kept_or_made(
        WordPieces,
        tokenizer_file,
        lambda: given.model.tokenizer if given.start else make_tokenizer(settings, corpus, config.vocabulary),
    )
    data = MaskedText(
        training=tokenized(corpus, "training", tokenizer),
        heldout=tokenized(corpus, "heldout", tokenizer),
        context=config.context,
        table=PieceTable.of(tokenizer),
        masking=task.masking,
        next_sentence=task.next_sentence,
        evaluated=settings.evaluated,
    )
    notes = [
        *corpus.notes,
        f"{len(data.training.ids):,} pieces of {len(data.training):,} documents to train on, "
        f"{len(data.heldout.ids):,} held out; a vocabulary of {tokenizer.size:,}",
    ]
    if given.start:
        return Prepared(MaskedLanguage(data), config, notes, from_weights(given.model.model.state_dict()))
    symbols = ReaderSymbols(padding=tokenizer.padding, begin=tokenizer.begin, end=tokenizer.end, mask=tokenizer.mask)
    fitted = config.fitted(vocabulary=tokenizer.size, symbols=symbols)
    return Prepared(MaskedLanguage(data), fitted, notes, starting(settings.vectors, tokenizer))


def _with_heads(config: BertConfig, given: Given, next_sentence: bool) -> BertConfig:
    """The config of a model that answers what is asked, and nothing else."""
    if isinstance(config, BertPretrainingConfig) == next_sentence:
        return config
    if given.start or next_sentence:
        raise ConfigError(
            f"task.next_sentence={next_sentence}, but {given.start} was trained "
            f"{'without' if next_sentence else 'with'} it; leave the setting out"
        )
    return BertWordsConfig(**{name: value for name, value in config if name != "pooler"})


def begun(given: Given) -> BertPretrainingConfig | BertWordsConfig:
    """The config of the model to begin from."""
    config = getattr(given.model.model, "config", None)
    if not isinstance(config, BertPretrainingConfig | BertWordsConfig):
        what = "no head for hidden words" if isinstance(config, BertConfig) else "no BERT"
        raise ConfigError(f"--from {given.start}: a {given.model.kind} has {what}; wanted a BERT that fills in words")
    return config


def make_tokenizer(settings: MaskedDataConfig, corpus: SentenceCorpus | StoryCorpus, size: int) -> WordPieces:
    """What `data.tokenizer` asks for: pieces made of the text, or some that are there already."""
    if settings.tokenizer == "word-pieces":
        return WordPieces.train(corpus.sample(), size, cased=settings.cased)
    path = find(settings.tokenizer, tokenizer_only=True)
    return WordPieces.from_folder(path) if path.is_dir() else WordPieces.load(path)
