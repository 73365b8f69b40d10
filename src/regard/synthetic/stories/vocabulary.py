"""The vocabulary of the stories: who acts, on what, and how.

A frame is an act with its possible actors and objects. A noun is listed with the adjectives that fit it after `too` and
that do not fit the other noun of its frame.
"""

from dataclasses import dataclass
from typing import Literal

Setting = Literal["journey", "search", "load", "treasure", "meal", "ride"]


@dataclass(frozen=True)
class Actor:
    """An animal or a vehicle: the color it has, the noise it makes, what it is fed."""

    noun: str
    color: str
    sound: str
    food: str = ""
    tame: bool = True


@dataclass(frozen=True)
class Frame:
    """An act and its forms; `objects` maps each object to the adjectives that fit it."""

    setting: Setting
    base: str
    past: str
    participle: str
    gerund: str
    actors: tuple[Actor, ...]
    traits: tuple[str, ...]  # adjectives that fit every actor and explain why the act failed
    objects: dict[str, tuple[str, ...]]


def _actors(rows: str, *, tame: bool = True) -> tuple[Actor, ...]:
    parted = (row.split() for row in rows.strip().splitlines())
    return tuple(Actor(noun, color, sound, "".join(food), tame) for noun, color, sound, *food in parted)


def _objects(rows: str) -> dict[str, tuple[str, ...]]:
    parted = (row.split(":") for row in rows.strip().splitlines())
    return {noun.strip(): tuple(adjectives.split()) for noun, adjectives in parted}


STRONG = _actors("""
    dog brown barked meat
    horse black neighed hay
    donkey gray brayed oats
    goat white bleated leaves
    cow brown mooed grass
    pig pink grunted potatoes
    camel yellow snorted straw
""") + _actors(
    """
    bear brown growled fish
    wolf gray howled meat
    lion golden roared meat
    elephant gray trumpeted bananas
    monkey brown chattered bananas
    fox red yelped eggs
    animal black growled meat
""",
    tame=False,
)

SMALL = _actors("""
    cat white meowed fish
    rabbit white thumped carrots
    puppy brown whined milk
    hen red clucked corn
    lamb white bleated grass
""") + _actors(
    """
    mouse gray squeaked seeds
    hedgehog brown snorted worms
    squirrel red chattered nuts
""",
    tame=False,
)

VEHICLES = _actors("""
    cart brown rattled
    wagon green creaked
    carriage golden creaked
    truck red honked
    bus yellow honked
    tractor green rumbled
    van white rattled
    car blue hummed
""")

_LIVING = "tired sleepy hungry thirsty afraid sick lazy nervous shy dizzy stubborn weak"
_AT_A_MEAL = "tired sleepy afraid sick nervous shy dizzy stubborn sad excited full"
_DRIVEN = "heavy slow fragile rusty wobbly"
_AS_A_SEAT = "rusty wobbly dusty sticky greasy"
_ABOARD = "afraid sick nervous shy dizzy stubborn sad excited"

FRAMES: tuple[Frame, ...] = (
    Frame(
        "journey", "cross", "crossed", "crossed", "crossing", STRONG + SMALL, tuple(_LIVING.split()),
        _objects("""
            street: wide busy icy slippery crowded foggy
            road: wide busy icy slippery muddy foggy
            river: wide deep rough foggy rocky
            lake: wide deep rough foggy
            field: wide muddy icy snowy foggy rocky
            swamp: wide deep muddy foggy
        """),
    ),
    Frame(
        "journey", "climb", "climbed", "climbed", "climbing", STRONG + SMALL, tuple(_LIVING.split()),
        _objects("""
            hill: steep high slippery icy snowy muddy foggy
            mountain: steep high rocky icy snowy foggy
        """),
    ),
    Frame(
        "journey", "follow", "followed", "followed", "following", STRONG + SMALL, tuple(_LIVING.split()),
        _objects("""
            path: narrow steep muddy icy slippery rocky foggy
            trail: narrow steep long muddy snowy rocky foggy
        """),
    ),
    Frame(
        "search", "enter", "entered", "entered", "entering", STRONG + SMALL, tuple(_LIVING.split()),
        _objects("""
            cave: dark low slippery rocky icy
            tunnel: dark low slippery rocky icy
            forest: dark dense foggy snowy swampy
            valley: dark foggy snowy swampy rocky
        """),
    ),
    Frame(
        "load", "carry", "carried", "carried", "carrying", STRONG, tuple(_LIVING.split()),
        _objects("""
            basket: heavy bulky sticky greasy dusty
            box: heavy bulky sticky greasy dusty
            sack: heavy bulky sticky greasy dusty
            barrel: heavy bulky slippery sticky greasy
            mirror: bulky fragile slippery greasy dusty
            vase: fragile slippery sticky greasy dusty
            pot: hot slippery sticky greasy heavy
            lamp: hot fragile bulky greasy dusty
        """),
    ),
    Frame(
        "load", "pull", "pulled", "pulled", "pulling", STRONG, tuple(_LIVING.split()),
        _objects("""
            cart: heavy fragile rusty wobbly bulky
            wagon: heavy fragile rusty wobbly bulky
            sled: heavy fragile bulky sticky rusty
        """),
    ),
    Frame(
        "treasure", "open", "opened", "opened", "opening", STRONG, tuple(_LIVING.split()),
        _objects("""
            jar: tight slippery sticky greasy fragile
            suitcase: tight rusty sticky greasy dusty
            cabinet: tight rusty sticky greasy dusty
        """),
    ),
    Frame(
        "meal", "eat", "ate", "eaten", "eating", STRONG + SMALL, tuple(_AT_A_MEAL.split()),
        _objects("""
            soup: hot salty spicy sour bitter
            pie: hot salty burnt sour bitter stale
            cake: hot salty burnt hard bitter stale
            cookie: salty burnt hard bitter stale
            bread: hot salty burnt hard stale
            cheese: salty spicy hard bitter stale
        """),
    ),
    Frame(
        "journey", "cross", "crossed", "crossed", "crossing", VEHICLES, tuple(_DRIVEN.split()),
        _objects("""
            street: busy icy slippery crowded foggy
            road: busy icy slippery muddy foggy
            river: deep rough foggy rocky
            field: muddy icy snowy foggy rocky
            swamp: deep muddy foggy dense
        """),
    ),
    Frame(
        "journey", "climb", "climbed", "climbed", "climbing", VEHICLES, tuple(_DRIVEN.split()),
        _objects("""
            hill: steep slippery icy snowy muddy foggy
            mountain: steep rocky icy snowy foggy
        """),
    ),
    Frame(
        "journey", "follow", "followed", "followed", "following", VEHICLES, tuple(_DRIVEN.split()),
        _objects("""
            path: narrow steep muddy icy slippery rocky foggy
            trail: narrow steep muddy snowy rocky foggy
        """),
    ),
    # Here the living one is acted on, so that being tired or shy is not always the actor's part.
    *(
        Frame(
            "ride", "carry", "carried", "carried", "carrying", VEHICLES, tuple(_AS_A_SEAT.split()),
            {animal.noun: tuple(_ABOARD.split()) for animal in animals},
        )
        for animals in (STRONG, SMALL)
    ),
)  # fmt: skip

MASS = frozenset(["soup", "bread", "cheese"])  # some soup, not a soup
GIRLS = ("mia", "anna", "lily", "nora", "emma", "clara")
BOYS = ("tom", "ben", "max", "paul", "leo", "sam")
PLACES = (
    "mill",
    "market",
    "library",
    "farm",
    "harbor",
    "castle",
    "school",
    "station",
    "garden",
    "church",
    "bakery",
    "inn",
)
KEEPSAKES = ("kite", "ball", "scarf", "book", "hat", "ring", "flag", "umbrella", "drum", "blanket", "doll", "coin")
COLORS = ("red", "blue", "green", "yellow", "orange", "purple", "silver", "golden")
DAYS = {
    "sunny": "sunday",
    "rainy": "monday",
    "windy": "tuesday",
    "cold": "wednesday",
    "foggy": "thursday",
    "hot": "friday",
    "snowy": "saturday",
}  # the day determines the weather


def article(noun_phrase: str) -> str:
    """The phrase with a, an or some before it."""
    if noun_phrase in MASS:
        return f"some {noun_phrase}"
    return f"{'an' if noun_phrase[0] in 'aeiou' else 'a'} {noun_phrase}"
