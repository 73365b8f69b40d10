"""The text that hidden words are learned from: the user's files, or the built-in stories."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from regard.data.chunking import Piece, pieces_of
from regard.data.sentences import SentenceCorpus
from regard.data.text_corpus import TextFilesConfig
from regard.synthetic.stories import story as world
from regard.synthetic.stories.story import Part, Stories

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
    """The built-in world; in what is held out, "it" is used as nowhere in what is learned from."""

    def __init__(self, config: MaskedDataConfig) -> None:
        self.files = _sources()  # a world is its code
        self.settings: dict[str, Any] = {"stories": config.stories}
        self.notes: list[str] = []
        self._counts = {"training": config.stories, "validation": max(20, config.stories // 50)}

    def training(self) -> Iterator[Piece]:
        return self._pieces("training")

    def validation(self) -> Iterator[Piece]:
        return self._pieces("validation")

    def sample(self) -> Iterator[str]:
        """Texts to make a tokenizer of."""
        return (story.text for story in Stories().stories(0, min(SAMPLE, self._counts["training"])))

    def _pieces(self, part: Part) -> Iterator[Piece]:
        for story in Stories(part=part).stories(0, self._counts[part]):
            yield from pieces_of(story.text)


def _sources() -> list[Path]:
    """The code that generates the stories: the cache is keyed by it."""
    folder = Path(world.__file__).parent
    return sorted([*folder.glob("*.py"), *folder.parent.glob("*.py")])


Corpus = SentenceCorpus | StoryCorpus


def open_corpus(paths: Sequence[Path], config: MaskedDataConfig) -> Corpus:
    return SentenceCorpus(paths, config) if paths else StoryCorpus(config)
