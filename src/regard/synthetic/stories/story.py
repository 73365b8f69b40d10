"""Synthetic English stories with known coreference, the lecture's question in each: what does `it` mean?

    the animal did not cross the street because it was too tired .
    the animal did not cross the street because it was too wide .

A story has somebody with an animal or a vehicle, a place, a goal, a failure with its cause, and a remedy. Names and
pronouns, colors, days and weather, sounds and food, causes and remedies are consistent, so masked words can be
predicted and a next sentence can be distinguished from another story's. The only `it` is in the sentence of the
failure. Half of the stories are short: instead of cause and remedy they repeat the failure without `it`, such as
`everybody could see that the street was too wide .`

For every pair of nouns either is the answer equally often; half of the sentences have the actor second (`the street was
not crossed by the animal because it was too tired`), so neither the order nor the adjective alone gives the answer: a
model has to know which adjective fits which noun.

The validation part has the (subject, object, adjective) triples that never occur in training: for each pair of nouns
one adjective for either answer. The two sentences above are among them, so they are always new.

    python -m regard.synthetic.stories.story --count 15 --part validation
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Literal, NamedTuple, get_args

from regard.errors import ConfigError
from regard.synthetic.seeded import Draw, seed_name
from regard.synthetic.stories.causes import CAUSES, Kind
from regard.synthetic.stories.telling import (
    ACTOR_FIRST,
    ACTOR_SECOND,
    BLAME,
    DONE,
    ENDINGS,
    GOALS,
    OPENINGS,
    REACTION,
    Plot,
    every_word,
    slots,
)
from regard.synthetic.stories.vocabulary import BOYS, COLORS, FRAMES, GIRLS, KEEPSAKES, PLACES, VEHICLES, Actor, Frame

Part = Literal["training", "validation"]
PARTS: tuple[Part, ...] = get_args(Part)
VOCABULARY: tuple[str, ...] = every_word()
SALT = 20  # chosen so that the lecture's two sentences are in the validation part


@dataclass(frozen=True)
class Coreference:
    """The antecedent of an `it`. Words are numbered from 0, separated by spaces."""

    sentence: int
    it: int
    candidates: tuple[int, int]  # the two nouns it could mean, in order
    answer: int  # 0 or 1: the antecedent


@dataclass(frozen=True)
class Story:
    """Four to seven sentences of lowercase words; the full stop is a word of its own."""

    sentences: tuple[str, ...]
    coreferences: tuple[Coreference, ...]

    @property
    def text(self) -> str:
        """One sentence a line."""
        return "\n".join(self.sentences)


class Stories:
    """An endless sequence of stories: story `index` is a pure function of seed, part and index."""

    def __init__(self, seed: int = 0, part: Part = "training") -> None:
        if part not in PARTS:
            raise ConfigError(f"part {part!r} is unknown; choose one of {', '.join(PARTS)}")
        self.seed = seed
        self.part = part

    def __getitem__(self, index: int) -> Story:
        draw = Draw(f"story {self.seed} {seed_name(self.part)} {index}")
        return tell(plot(draw, self.part), draw)

    def stories(self, start: int, stop: int) -> Iterator[Story]:
        """Stories `start` to `stop - 1`."""
        return (self[index] for index in range(start, stop))


def plot(draw: Draw, part: Part) -> Plot:
    """Choose the plot: the pair of nouns first, then which of them is to blame, then why."""
    frame = draw.pick(FRAMES)
    actor, thing = draw.pick(frame.actors), draw.pick(tuple(frame.objects))
    blamed = draw.one_in(2)
    cause = CAUSES[kind(frame, actor, blamed)][draw.pick(adjectives(frame, actor, thing, blamed, part))]
    girl = draw.one_in(2)
    return Plot(
        frame=frame,
        actor=actor,
        thing=thing,
        actor_blamed=blamed,
        cause=cause,
        girl=girl,
        name=draw.pick(GIRLS if girl else BOYS),
        place=draw.pick(PLACES),
        keepsake=f"{draw.pick(COLORS)} {draw.pick(KEEPSAKES)}",
        weather=draw.pick(cause.weather),
    )


def kind(frame: Frame, actor: Actor, actor_blamed: bool) -> Kind:
    """The kind of noun that is to blame."""
    if actor_blamed:
        return "thing" if actor in VEHICLES else "living"
    if frame.setting == "ride":
        return "living"
    return "way" if frame.setting in ("journey", "search") else "thing"


def adjectives(frame: Frame, actor: Actor, thing: str, actor_blamed: bool, part: Part) -> tuple[str, ...]:
    """The adjectives for one noun of a pair in this part: one is for validation, the others for training."""
    fitting = frame.traits if actor_blamed else frame.objects[thing]
    kept = validation(actor.noun, thing, fitting)
    return (kept,) if part == "validation" else tuple(word for word in fitting if word != kept)


@cache
def validation(subject: str, thing: str, fitting: tuple[str, ...]) -> str:
    """The adjective that this pair never has in training: that of the triple with the smallest hash."""
    return min(fitting, key=lambda word: blake2b(f"{SALT} {subject} {thing} {word}".encode(), digest_size=8).digest())


def tell(plot: Plot, draw: Draw) -> Story:
    """Write the story, long or short; some of its sentences are optional."""
    filled = slots(plot)
    actor_first = draw.one_in(2)
    failure = draw.pick(ACTOR_FIRST if actor_first else ACTOR_SECOND)
    told = _in_short(plot, draw) if draw.one_in(2) else _in_full(plot, draw)
    lines = [draw.pick(OPENINGS[plot.manner]), draw.pick(GOALS[plot.course]), told.before, failure, *told.behind]
    at = 3 if told.before else 2
    sentences = tuple(line.format_map(filled) for line in lines if line)
    return Story(sentences, (_reference(at, sentences[at].split(), plot, actor_first),))


class _Told(NamedTuple):
    """The sentences around the failure: its cause before, the rest after; empty lines are left out."""

    before: str
    behind: list[str]


def _in_short(plot: Plot, draw: Draw) -> _Told:
    """After the failure its cause again, with the noun instead of `it`."""
    return _Told("", [draw.pick(BLAME), draw.pick(ENDINGS[plot.frame.setting]) if draw.one_in(2) else ""])


def _in_full(plot: Plot, draw: Draw) -> _Told:
    """Cause, reaction, remedy, the act at last, an ending: the remedy and at most three of the others."""
    cause = plot.cause
    before = cause.before if cause.needs_cause or not draw.one_in(3) else ""
    reaction, done, ending = draw.one_in(3), cause.is_remedied and draw.one_in(2), draw.one_in(2)
    reaction = reaction and not (before and done and ending)
    behind = [draw.pick(REACTION) if reaction else "", cause.after, DONE if done else ""]
    return _Told(before, [*behind, draw.pick(ENDINGS[plot.frame.setting]) if ending else ""])


def _reference(sentence: int, words: list[str], plot: Plot, actor_first: bool) -> Coreference:
    first, second = sorted((words.index(plot.actor.noun), words.index(plot.thing)))
    return Coreference(sentence, words.index("it"), (first, second), int(actor_first != plot.actor_blamed))


def main() -> None:
    """Prints a sample: the stories, and under each what its `it` means."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, default="training")
    choices = parser.parse_args()
    for story in Stories(choices.seed, choices.part).stories(0, choices.count):
        sys.stdout.write(f"{story.text}\n")
        for found in story.coreferences:
            words = story.sentences[found.sentence].split()
            sys.stdout.write(f"  it = {words[found.candidates[found.answer]]}\n")
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
