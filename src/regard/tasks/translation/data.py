"""Sentence pairs made ready for a translator: read or generated, split, tokenized into the cache."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.readers.pairs import BadLines, DataConfig, is_validation, read_pairs, validation_share
from regard.data.stores.cache import cached, content_key
from regard.data.stores.pairs import TokenizedPairs
from regard.errors import DataError
from regard.files import write_file
from regard.models.base import SpecialIds
from regard.synthetic.translation.passages import passages
from regard.synthetic.translation.sampling import Split
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.translation.dataset import ParallelText
from regard.tasks.translation.task import Translation
from regard.tasks.warm_start import starting
from regard.tokenizers.bpe import BPETokenizer

EXAMPLE = "we are eating bread"
OWN_EXAMPLE = "a sentence of yours"
WITHOUT_DATA = "the built-in world of English and Spanish sentences"
SAMPLE = 2_000_000  # pairs that a tokenizer is trained on; more change nothing but the time

Pairs = Iterator[tuple[str, str]]


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The translation task on the user's files, or on the built-in world when there are none."""
    settings: DataConfig = run.data  # type: ignore[assignment]
    corpus = FileCorpus(given.paths, settings) if given.paths else WorldCorpus(settings)
    vocab_size: int = run.model.vocab_size  # type: ignore[attr-defined]
    if tokenizer_file.exists():
        tokenizer = BPETokenizer.load(tokenizer_file)
    else:
        texts = (side for pair in corpus.sample() for side in pair)
        tokenizer = BPETokenizer.train(texts, vocab_size, settings.whole_words)
        tokenizer_file.parent.mkdir(parents=True, exist_ok=True)
        write_file(tokenizer_file, tokenizer.to_json().encode())
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
    if tokenizer.vocab_size < vocab_size:
        notes.append(f"the text has words for a vocabulary of {tokenizer.vocab_size:,}, not {vocab_size:,}")
    special_ids = SpecialIds(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    model = run.model.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids, longest=_longest(data))  # type: ignore[attr-defined]
    task = Translation(tokenizer, run.task, data)  # type: ignore[arg-type]
    return Prepared(task, model, notes, starting(settings.vectors, tokenizer))


def _longest(data: ParallelText) -> int:
    """Tokens of the longest sentence, its end counted."""
    return 1 + max(
        int(lengths.max())
        for part in (data.training, data.validation)
        for lengths in (part.source_lengths, part.target_lengths)
    )


def _tokenized(corpus: "Corpus", part: str, tokenizer: BPETokenizer) -> TokenizedPairs:
    key = content_key(corpus.files, tokenizer.to_json().encode(), {"part": part, **corpus.settings})
    pairs = getattr(corpus, part)

    def build(folder: Path) -> TokenizedPairs:
        return TokenizedPairs.build(pairs(), tokenizer.encode_batch, folder, size=tokenizer.vocab_size)

    return cached(key, build, TokenizedPairs.open)


class FileCorpus:
    """The user's own pairs; what is held out shares no source sentence with the rest."""

    def __init__(self, paths: Sequence[Path], config: DataConfig) -> None:
        self.files = list(paths)
        self.config = config
        self.settings: dict[str, Any] = config.model_dump(mode="json", exclude={"vectors"})
        bad = BadLines()
        count = sum(1 for _ in self._read(bad))
        self.share = validation_share(count, config.validation)
        self.notes = bad.summary()

    def training(self) -> Pairs:
        return (pair for pair in self._read(BadLines()) if not is_validation(pair[0], self.share))

    def validation(self) -> Pairs:
        return (pair for pair in self._read(BadLines()) if is_validation(pair[0], self.share))

    def sample(self) -> Pairs:
        """What the tokenizer is trained on."""
        return islice(self.training(), SAMPLE)

    def _read(self, report: BadLines) -> Pairs:
        return read_pairs(self.files, on_error=self.config.on_error, report=report, longest=self.config.longest)


class WorldCorpus:
    """The built-in world: what is held out combines words as no training sentence does."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.files = _sources("regard.synthetic.translation")
        self.settings: dict[str, Any] = config.model_dump(include={"sentences", "validation", "joined"})
        self.notes: list[str] = []

    def training(self) -> Pairs:
        return self._pairs(self.config.sentences, "train")

    def validation(self) -> Pairs:
        return self._pairs(self.config.validation, "validation")

    def sample(self) -> Pairs:
        """What the tokenizer is trained on: the world's words are few and soon all seen."""
        return islice(self.training(), 30_000)

    def _pairs(self, count: int, split: Split) -> Pairs:
        return ((pair.source, pair.target) for pair in passages(count, most=self.config.joined, split=split))


Corpus = FileCorpus | WorldCorpus


def _sources(package: str) -> list[Path]:
    """The code of a package: a world is its content."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    return sorted([*folder.glob("*.py"), *folder.parent.glob("*.py")])
