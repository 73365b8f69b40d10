"""Language modeling: a prompt in, the text that follows it out."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.errors import ConfigError
from regard.tasks.base import Task
from regard.tasks.options import DecodingOptions, NumSamplesOptions, RunOptions


class RankingOptions(RunOptions):
    """How several texts are ranked."""

    group: ClassVar[str | None] = "Sampling"

    best_by: Literal["likelihood", "mean", "consistency"] | None = Field(
        None,
        description="With --num-samples, rank by: likelihood, mean (a token) or consistency (agreement with the rest).",
        json_schema_extra={"default": "likelihood"},
    )


class TextOptions(RunOptions):
    """How long the text gets, and what is shown of it."""

    group: ClassVar[str | None] = "Language models"

    max_new_tokens: int | None = Field(
        None, ge=1, description="Generate at most this many tokens.", json_schema_extra={"default": "200"}
    )
    stop: list[str] | None = Field(None, description="Stop at this string; may be given several times.")
    truncate: Literal["left"] | None = Field(None, description="left: drop the beginning of a prompt that is too long.")
    chat: bool = Field(False, description="INPUT is a chat message to answer.")
    log_probabilities: bool = Field(False, description="Show the log probability of each token.")
    draft: str | None = Field(
        None,
        description="The same text, sooner: a smaller model with the same tokens guesses it; "
        "prompt: guess what followed the same words before, for text that repeats itself.",
    )


class LanguageModelOptions(TextOptions, RankingOptions, NumSamplesOptions, DecodingOptions):
    """The options of `regard run` for a language model."""

    def check(self) -> None:
        super().check()
        if self.best_by is not None and (self.num_samples or self.n_best or 1) == 1:
            raise ConfigError(f"--best-by {self.best_by} ranks several texts; add --num-samples 10, say")


TASK = Task(
    name="language-modeling",
    options=LanguageModelOptions,
    pipeline="regard.tasks.language_modeling.pipeline:TextGenerator",
    runner="regard.tasks.language_modeling.run:run",
    tracer="regard.tasks.language_modeling.trace:trace_inputs",
    tracer_takes=frozenset({"max_new_tokens"}),
    evaluator="regard.tasks.language_modeling.evaluate:evaluate",
    evaluation_takes=frozenset({"assignments"}),
)
