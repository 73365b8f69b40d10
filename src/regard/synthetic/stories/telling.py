"""Write a plot as sentences: openings, goals, the failure with its `it`, endings."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from regard.synthetic.stories.causes import CAUSES, Cause
from regard.synthetic.stories.vocabulary import (
    BOYS,
    COLORS,
    DAYS,
    FRAMES,
    GIRLS,
    KEEPSAKES,
    PLACES,
    VEHICLES,
    Actor,
    Frame,
    article,
)

Manner = Literal["tame", "wild", "driven"]

OPENINGS: dict[Manner, tuple[str, ...]] = {
    "tame": (
        "on a {weather} {day} a {person} named {name} went out with {her} {color} {s} .",
        "{name} was a {person} who had {a_s} .",
        "on a {weather} {day} {name} and {her} {color} {s} left the house .",
    ),
    "wild": (
        "on a {weather} {day} a {person} named {name} met {a_s} .",
        "{name} was a {person} whose best friend was {a_s} .",
        "on a {weather} {day} {name} and {a_s} went for a walk .",
    ),
    "driven": (
        "on a {weather} {day} a {person} named {name} set out with {a_s} .",
        "{name} was a {person} who owned {a_s} .",
        "on a {weather} {day} {name} borrowed {a_s} .",
    ),
}

GOALS = {
    "journey": (
        "{she} wanted to bring {a_keepsake} to a friend at the {place} beyond the {o} .",
        "{name} had {a_keepsake} for a friend who lived near the {place} beyond the {o} .",
    ),
    "follow": (
        "{she} wanted to bring {a_keepsake} to a friend at the end of the {o} .",
        "{name} had {a_keepsake} for a friend who lived at the end of the {o} .",
    ),
    "search": (
        "{she} had lost {a_keepsake} in the {o} near the {place} .",
        "{name} was looking for {a_keepsake} in the {o} near the {place} .",
    ),
    "load": (
        "{she} wanted the {s} to take {a_o} to the {place} .",
        "{name} had to bring {a_o} to the {place} and the {s} was there to help .",
    ),
    "treasure": (
        "at the {place} {she} found {a_o} with {a_keepsake} inside .",
        "near the {place} {name} and the {s} found {a_o} with {a_keepsake} inside .",
    ),
    "ride": (
        "{she} wanted to take {a_o} to the {place} .",
        "a friend at the {place} was waiting for {a_o} .",
    ),
    "meal": (
        "near the {place} {she} bought {a_o} for the {s} .",
        "{name} sat down near the {place} and offered the {s} {a_o} .",
    ),
}

ACTOR_FIRST = (
    "the {s} did not {base} the {o} because it was too {adjective} .",
    "the {s} could not {base} the {o} because it was too {adjective} .",
    "the {s} tried to {base} the {o} but it was too {adjective} .",
    "the {s} failed to {base} the {o} because it was too {adjective} .",
)
ACTOR_SECOND = (
    "the {o} was not {participle} by the {s} because it was too {adjective} .",
    "the {o} could not be {participle} by the {s} because it was too {adjective} .",
    "the {o} was to be {participle} by the {s} but it was too {adjective} .",
    "{gerund} the {o} was hard for the {s} because it was too {adjective} .",
)

REACTION = (
    "the {s} {sound} and {name} sighed .",
    "the {s} {sound} while {name} thought about the problem .",
    "{name} looked around and the {s} {sound} .",
)
BLAME = (
    "everybody could see that the {n} was too {adjective} .",
    "{name} said that the {n} was too {adjective} .",
    "{name} had not known how {adjective} the {n} was .",
    "nobody had thought that the {n} was so {adjective} .",
)
DONE = "then the {s} {past} the {o} ."
ENDINGS = {
    "journey": (
        "at last {name} and the {color} {s} arrived with the {keepsake} .",
        "in the end the friend was happy about the {keepsake} .",
    ),
    "search": (
        "at last {name} had the {keepsake} again .",
        "in the end {name} and the {color} {s} went home with the {keepsake} .",
    ),
    "load": (
        "at last {name} and the {color} {s} came to the {place} .",
        "in the end the people at the {place} thanked {name} and the {color} {s} .",
    ),
    "treasure": (
        "at last {name} held the {keepsake} .",
        "in the end {name} took the {keepsake} home .",
    ),
    "ride": (
        "at last {name} and the {o} came to the {place} .",
        "in the end the {o} was safe at the {place} .",
    ),
    "meal": (
        "at last {name} and the {color} {s} went home from the {place} .",
        "in the end the {color} {s} fell asleep near the {place} .",
    ),
}


@dataclass(frozen=True)
class Plot:
    """Who, what, where and why."""

    frame: Frame
    actor: Actor
    thing: str
    actor_blamed: bool
    cause: Cause
    girl: bool
    name: str
    place: str
    keepsake: str
    weather: str

    @property
    def manner(self) -> Manner:
        """How the actor is introduced."""
        if self.actor in VEHICLES:
            return "driven"
        return "tame" if self.actor.tame else "wild"

    @property
    def course(self) -> str:
        """Which goal the story has."""
        return "follow" if self.frame.base == "follow" else self.frame.setting


def slots(plot: Plot) -> dict[str, str]:
    """The values of the placeholders of a line."""
    frame, actor, driven = plot.frame, plot.actor, plot.manner == "driven"
    grown = ("woman", "man") if driven else ("girl", "boy")
    she = "she" if plot.girl else "he"
    return {
        "s": actor.noun,
        "o": plot.thing,
        "n": actor.noun if plot.actor_blamed else plot.thing,
        "a_s": article(f"{actor.color} {actor.noun}"),
        "a_o": article(plot.thing),
        "color": actor.color,
        "sound": actor.sound,
        "food": actor.food,
        "base": frame.base,
        "past": frame.past,
        "participle": frame.participle,
        "gerund": frame.gerund,
        "adjective": plot.cause.adjective,
        "name": plot.name,
        "person": grown[0] if plot.girl else grown[1],
        "she": she,
        "her": "her" if plot.girl else "his",
        "they": she if driven else "they",
        "place": plot.place,
        "keepsake": plot.keepsake,
        "a_keepsake": article(plot.keepsake),
        "weather": plot.weather,
        "day": DAYS[plot.weather],
    }


def every_word() -> tuple[str, ...]:
    """All words that occur in stories, sorted."""
    words = {word for line in _lines() for word in line.split() if "{" not in word}
    for frame in FRAMES:
        words |= {frame.base, frame.past, frame.participle, frame.gerund, *frame.objects}
        words |= {str(getattr(actor, each.name)) for actor in frame.actors for each in fields(actor)[:4]}
    for causes in CAUSES.values():
        words |= set(causes)
    words |= {*GIRLS, *BOYS, *PLACES, *KEEPSAKES, *COLORS, *DAYS, *DAYS.values()}
    words |= {"an", "some", "she", "he", "they", "her", "his", "girl", "boy", "woman", "man"}
    return tuple(sorted(words - {""}))


def _lines() -> Iterator[str]:
    for table in (OPENINGS, GOALS, ENDINGS):
        for lines in table.values():
            yield from lines
    yield from (*ACTOR_FIRST, *ACTOR_SECOND, *REACTION, *BLAME, DONE)
    for causes in CAUSES.values():
        for cause in causes.values():
            yield from (cause.before, cause.after)
