"""Data of a translator: sentence pairs, read or generated, split, and tokenized into the cache."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from regard.data import look
from regard.data.dev_files import DevFilesConfig
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.pairs import MAX_WORD_CHARACTERS, read_pairs
from regard.data.splits import is_validation, validation_fraction
from regard.data.stores.cache import cached, content_key
from regard.data.stores.pairs import TokenizedPairs
from regard.errors import DataError
from regard.models.base import Seq2SeqConfig, SpecialIds
from regard.synthetic.translation.passages import passages
from regard.synthetic.translation.sampling import Split
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs, load_or_make_tokenizer
from regard.tasks.translation.dataset import ParallelText
from regard.tasks.translation.task import TranslationConfig, TranslationTraining
from regard.tasks.warm_start import warm_start_embeddings
from regard.tokenizers.bpe import BPETokenizer

EXAMPLE = "we are eating bread"
OWN_EXAMPLE = "a sentence of yours"
DEFAULT_DATA = "synthetic English and Spanish sentences"
LOOKED_AT = 50_000  # pairs whose lengths a note tells
TOKENIZER_PAIRS = 2_000_000  # pairs a tokenizer is trained on; more take longer and change nothing
SYNTHETIC_VALIDATION = 2000  # pairs held out where data.validation is none
SYNTHETIC_TOKENIZER_PAIRS = 30_000  # the grammar has few words: these contain all of them

Pairs = Iterator[tuple[str, str]]
Part = Literal["training", "validation"]


class TranslationDataConfig(DevFilesConfig):
    """How sentence pairs are read, or generated when no files are given, and split."""

    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad line: stop there, or skip it")
    max_length: int = Field(
        250,
        ge=1,
        description=f"words a side; a line with more, or {MAX_WORD_CHARACTERS} times as many characters, is bad",
    )
    validation: int | None = Field(
        2000,
        ge=1,
        description="pairs held out for validation, at most a tenth of all; none: a twentieth, at most 2,000",
    )
    whole_word_tokens: int = Field(
        0, ge=0, description="tokens of the vocabulary that are the commonest words, unsplit"
    )
    num_pairs: int = Field(150_000, ge=1, description="synthetic pairs to train on when no files are given")
    max_sentences: int = Field(1, ge=1, le=8, description="sentences in a synthetic pair, at most")
    word_vectors: Path | None = Field(None, description="word vectors to initialize the embeddings with: glove.txt")


TranslationRun = RunConfig[TranslationDataConfig, Seq2SeqConfig, TranslationConfig]


def prepare(run: TranslationRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """The translation task on the user's files, or on synthetic sentences when there are none."""
    run.model.fitted(vocab_size=run.model.vocab_size, special_ids=run.model.special_ids, longest=1)  # fails early
    corpus = open_corpus(inputs.paths, run.data)
    tokenizer = load_or_make_tokenizer(
        BPETokenizer,
        tokenizer_file,
        lambda: BPETokenizer.train(
            (side for pair in corpus.sample() for side in pair), run.model.vocab_size, run.data.whole_word_tokens
        ),
    )
    data = ParallelText(
        training=_tokenized(corpus, "training", tokenizer),
        validation=_tokenized(corpus, "validation", tokenizer),
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    if not len(data.training) or not len(data.validation):
        raise DataError(
            f"{len(data.training)} pairs to train on and {len(data.validation)} held out: too few; "
            "give more pairs (a hundred at least), or a larger data.validation"
        )
    notes = [*corpus.notes, f"{len(data.training):,} pairs to train on, {len(data.validation):,} held out"]
    if tokenizer.vocab_size < run.model.vocab_size:
        notes.append(f"the text gives a vocabulary of {tokenizer.vocab_size:,}, not {run.model.vocab_size:,}")
    special_ids = SpecialIds(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    model = run.model.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids, longest=_longest(data))
    task = TranslationTraining(tokenizer, run.task, data)
    start = warm_start_embeddings(run.data.word_vectors, tokenizer)
    return PreparedTask(task, model, notes, start, run.task.facts())


def _longest(data: ParallelText) -> int:
    """Tokens of the longest sentence, end of sentence included."""
    return 1 + max(
        int(lengths.max())
        for part in (data.training, data.validation)
        for lengths in (part.source_lengths, part.target_lengths)
    )


def _tokenized(corpus: "PairFiles | SyntheticPairs", part: Part, tokenizer: BPETokenizer) -> TokenizedPairs:
    """The ids of a part of the corpus, from the cache or into it."""
    key = content_key(corpus.files, tokenizer.to_json().encode(), {"part": part, **corpus.settings})
    pairs = corpus.training if part == "training" else corpus.validation

    def build(folder: Path) -> TokenizedPairs:
        return TokenizedPairs.build(pairs(), tokenizer.encode_batch, folder, vocab_size=tokenizer.vocab_size)

    return cached(key, build, TokenizedPairs.open)


def open_corpus(paths: Sequence[Path], config: TranslationDataConfig) -> "PairFiles | SyntheticPairs":
    """The pairs of the user's files, or synthetic ones."""
    config.check_has_files(bool(paths))
    return PairFiles(paths, config) if paths else SyntheticPairs(config)


class PairFiles:
    """The user's pairs. The held-out part shares no source sentence with the training part; or it is `data.dev`."""

    def __init__(self, paths: Sequence[Path], config: TranslationDataConfig) -> None:
        """Reads everything once, to count it and to find bad lines: DataError, or lines in `notes`."""
        self.paths = list(paths)
        self.config = config
        # What the tokens on disk depend on, besides the tokenizer.
        self.files = [*self.paths, *config.dev]
        self.settings: dict[str, Any] = config.model_dump(mode="json", exclude={"word_vectors", "dev"})
        bad = BadRows()
        pairs = self._read(self.paths, bad)
        first = list(islice(pairs, LOOKED_AT))
        count = len(first) + sum(1 for _ in pairs)
        self.share = validation_fraction(count, config.validation)
        if config.dev:
            self.settings |= {"validation": 0, "dev": len(config.dev)}
            self.share = 0
            sum(1 for _ in self._read(config.dev, bad))
        self.notes = [*bad.summary(), look.summary("a source", [source for source, _ in first])]
        if config.dev:
            held_out = map("\t".join, self._read(config.dev, BadRows()))
            self.notes += look.warn_of_straddling(map("\t".join, self._read(self.paths, BadRows())), held_out)

    def training(self) -> Pairs:
        return (pair for pair in self._read(self.paths, BadRows()) if not is_validation(pair[0], self.share))

    def validation(self) -> Pairs:
        if self.config.dev:
            return self._read(self.config.dev, BadRows())
        return (pair for pair in self._read(self.paths, BadRows()) if is_validation(pair[0], self.share))

    def sample(self) -> Pairs:
        """Pairs to train a tokenizer on."""
        return islice(self.training(), TOKENIZER_PAIRS)

    def _read(self, paths: Sequence[Path], report: BadRows) -> Pairs:
        return read_pairs(paths, on_error=self.config.on_error, report=report, longest=self.config.max_length)


class SyntheticPairs:
    """Generated pairs. The held-out part combines words as no training sentence does."""

    def __init__(self, config: TranslationDataConfig) -> None:
        self.config = config
        self.files = _sources("regard.synthetic.translation")
        self.settings: dict[str, Any] = config.model_dump(include={"num_pairs", "validation", "max_sentences"})
        self.notes: list[str] = []

    def training(self) -> Pairs:
        return self._pairs(self.config.num_pairs, "train")

    def validation(self) -> Pairs:
        return self._pairs(self.config.validation or SYNTHETIC_VALIDATION, "validation")

    def sample(self) -> Pairs:
        """Pairs to train a tokenizer on."""
        return islice(self.training(), SYNTHETIC_TOKENIZER_PAIRS)

    def _pairs(self, count: int, split: Split) -> Pairs:
        return ((pair.source, pair.target) for pair in passages(count, most=self.config.max_sentences, split=split))


def _sources(package: str) -> list[Path]:
    """The code of a package that generates data: the cache is keyed by it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    return sorted([*folder.glob("*.py"), *folder.parent.glob("*.py")])
