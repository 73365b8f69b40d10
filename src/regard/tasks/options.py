"""The options of `regard run` that several tasks share. Importing this does not import torch.

A task's options are one class made of these groups. Each field is an option: `num_beams` is --num-beams. A field that
is None (a flag: False) was not given.
"""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from regard.config import Config
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.generation import Strategy


def option_name(field: str) -> str:
    return f"--{field.replace('_', '-')}"


class RunOptions(Config):
    """The base: no options. A class that declares options names their group in the help."""

    group: ClassVar[str | None] = None

    @classmethod
    def group_of(cls, field: str) -> str | None:
        """The group of the class that declares this field."""
        for parent in cls.__mro__:
            if field in inspect.get_annotations(parent):
                found: str | None = vars(parent).get("group")
                return found
        raise KeyError(field)


class OutputOptions(RunOptions):
    """A figure of what was computed."""

    output: Path | None = Field(
        None,
        description="Draw a figure: a translator's alignment, a captioner's attention, or with --embed a map of texts.",
        json_schema_extra={"short": "-o"},
    )


class SearchOptions(RunOptions):
    """Greedy decoding and beam search."""

    group: ClassVar[str | None] = "Search"

    greedy: bool = Field(False, description="Always take the most probable token.")
    num_beams: int | None = Field(
        None,
        description="Beam search with this many beams; 1 is greedy.",
        json_schema_extra={"default": "the model's own: mostly 1"},
    )
    length_penalty: float | None = Field(
        None,
        description="With --num-beams: rank by log probability / length ** this.",
        json_schema_extra={"default": "the model's own: 1"},
    )
    n_best: int | None = Field(
        None,
        description="With --num-beams: how many hypotheses to show.",
        json_schema_extra={"default": "1"},
    )
    repetition_penalty: float | None = Field(
        None, description="Above 1: tokens that were generated before become less probable."
    )


class SamplingOptions(RunOptions):
    """Sampling from the model's distribution."""

    group: ClassVar[str | None] = "Sampling"

    sample: bool = Field(False, description="Sample each token.")
    temperature: float | None = Field(None, description="Below 1: a sharper distribution; above 1: a flatter one.")
    top_k: int | None = Field(None, description="Sample from the k most probable tokens only.")
    top_p: float | None = Field(
        None, description="Nucleus sampling: from the most probable tokens that together have this probability."
    )
    min_p: float | None = Field(
        None, description="Sample only from tokens at least this share as probable as the most probable one."
    )
    seed: int | None = Field(None, description="The same seed gives the same text.", json_schema_extra={"default": "0"})


class DecodingOptions(SamplingOptions, SearchOptions):
    """Both, and the one strategy they make."""

    def strategy(self, own: "Strategy", *, scored: bool) -> "Strategy":
        """What the options say, on top of the model's own strategy; `scored`: greedy text gets its score too."""
        from regard.generation import Beam, Greedy, Sample
        from regard.generation.strategies import length_penalty_of

        self.check()
        chosen = own
        if self.sample or self._sampling():
            chosen = replace(own if isinstance(own, Sample) else Sample(), **self._sampling())
        elif self.greedy or (self.num_beams == 1 and self.n_best in (None, 1)):
            chosen = Greedy()
        elif self.num_beams is not None:
            penalty = length_penalty_of(own) if self.length_penalty is None else self.length_penalty
            chosen = Beam(self.num_beams, penalty, self.n_best or 1)
        if isinstance(chosen, Greedy):
            chosen = replace(chosen, scored=scored)
        if self.repetition_penalty is None:
            return chosen
        if isinstance(chosen, Beam):
            raise ConfigError(
                f"--repetition-penalty {self.repetition_penalty} is not for beam search; leave one of them out"
            )
        return replace(chosen, repetition_penalty=self.repetition_penalty)  # type: ignore[type-var]

    def check(self) -> None:
        """ConfigError unless the options name one strategy."""
        sampling = self._sampling()
        name = "--sample" if self.sample else option_name(next(iter(sampling), ""))
        samples, searches = self.sample or bool(sampling), self.num_beams not in (None, 1)
        if samples and searches:
            raise ConfigError(f"{name} samples and --num-beams {self.num_beams} searches: two strategies; give one")
        if samples and self.n_best not in (None, 1):
            raise ConfigError(
                f"--n-best {self.n_best} is for beam search; for several samples: --num-samples {self.n_best}"
            )
        if self.greedy and (samples or searches):
            other = name if samples else f"--num-beams {self.num_beams}"
            raise ConfigError(f"--greedy and {other} are two strategies; give one")
        if self.num_beams is None and (self.length_penalty is not None or self.n_best not in (None, 1)):
            raise ConfigError("--length-penalty and --n-best belong to --num-beams; add it")

    def _sampling(self) -> dict[str, Any]:
        """The settings of a Sample that were given."""
        named = ("temperature", "top_k", "top_p", "min_p", "seed", "num_samples")
        values = {name: getattr(self, name, None) for name in named}
        return {name: value for name, value in values.items() if value is not None}


class NumSamplesOptions(RunOptions):
    """Best of n samples."""

    group: ClassVar[str | None] = "Sampling"

    num_samples: int | None = Field(None, ge=1, description="Sample this many texts, and rank them.")


class EncoderOptions(OutputOptions):
    """What every encoder can do, whatever head it has."""

    group: ClassVar[str | None] = "Encoders (BERT)"

    embed: bool = Field(False, description="Embed the texts: their vectors, and the nearest of them.")


class TextPairOptions(RunOptions):
    """A second text."""

    group: ClassVar[str | None] = "Encoders (BERT)"

    second: str | None = Field(None, description="The second text of a pair; or put a tab between the two in INPUT.")


class BoxesOptions(RunOptions):
    """Where the objects of an image are."""

    group: ClassVar[str | None] = "Images"

    boxes: Path | None = Field(
        None, description="A JSON file with the bounding boxes of each image, as `regard scenes` writes it."
    )
