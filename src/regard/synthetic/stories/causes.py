"""Causes and remedies: why something was too tired, too wide or too heavy, and what was done about it.

Three kinds of noun, three tables. A line is: adjective | what had happened | what was done | outcome, and optionally
the weather. `mended`: the act is done after all; `told`: the remedy makes sense only if the cause was mentioned. `{n}`
is the noun of the adjective, `{s}` the actor, `{they}` the travelers. No line has an `it`.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["living", "way", "thing"]
ANY_WEATHER = ("sunny", "rainy", "windy", "cold", "foggy", "hot")


@dataclass(frozen=True)
class Cause:
    """One adjective's small chain of events."""

    adjective: str
    before: str
    after: str
    is_remedied: bool  # the act is done after all
    needs_cause: bool  # the cause must be mentioned
    weather: tuple[str, ...]


def _causes(rows: str) -> dict[str, Cause]:
    found = {}
    for row in rows.strip().splitlines():
        adjective, before, after, course, weather = (part.strip() for part in f"{row}|".split("|")[:5])
        is_remedied, needs_cause = "mended" in course.split(), "told" in course.split()
        known = tuple(weather.split()) or ANY_WEATHER
        found[adjective] = Cause(adjective, f"{before} .", f"{after} .", is_remedied, needs_cause, known)
    return found


LIVING = _causes("""
    tired | the {n} had walked all night | the {n} rested for an hour | mended
    sleepy | the {n} had been awake since midnight | the {n} took a long nap under a tree | mended
    hungry | the {n} had eaten nothing since breakfast | {name} gave the {n} some {food} | mended
    thirsty | there was no water for miles | {name} brought the {n} a bowl of fresh water | mended | hot sunny
    afraid | the {n} had heard a strange noise | {name} stayed close until the {n} was brave again | mended
    sick | the {n} had eaten bad berries | {name} called a doctor who gave the {n} some medicine | mended
    lazy | the {n} had never liked hard work | {name} promised the {n} a big reward | mended
    nervous | loud thunder had rolled over the hills | {name} sang a quiet song until the {n} was calm | mended | rainy
    shy | a group of strangers was watching the {n} | {name} asked the strangers to look away | mended told
    dizzy | the {n} had run in circles all morning | the {n} sat still until the world stopped turning | mended
    stubborn | the {n} did not like to obey | {name} begged for an hour until the {n} gave in | mended
    weak | the {n} had been ill all week | after three days of good care the {n} was strong again | mended
    sad | the {n} missed an old friend | {name} told a funny story until the {n} was happy | mended
    excited | the {n} had played with other animals all day | {name} waited until the {n} was quiet | mended
    full | the {n} had just had a huge breakfast | {name} saved the food until the {n} was hungry | mended
""")

WAYS = _causes("""
    wide | the other side of the {n} was far away | {they} went on and found a narrow place | mended
    deep | nobody had ever seen the bottom of the {n} | {they} went on and found a shallow place | mended
    steep | the {n} rose like a wall | {they} turned around and took a flat road | not
    high | the top of the {n} was hidden in the clouds | {they} turned around and took a low road | not
    narrow | thick bushes grew on both sides of the {n} | {they} went back and took a wide road | not
    long | the end of the {n} was nowhere in sight | an old man showed them a short way | not
    low | the roof of the {n} nearly touched the floor | {they} dug until the roof was high | mended told
    dark | not a single light was to be seen | {name} went home to get a bright lamp | mended
    dense | bushes and thorns grew everywhere | {name} cut a clear way through the bushes | mended told
    swampy | water stood between the trees | {name} laid boards over the wet ground | mended | rainy
    muddy | rain had fallen all night | {they} waited until the ground was dry | mended | rainy
    icy | water had frozen in the night | {name} threw salt on the ice | mended told | cold snowy
    snowy | snow had fallen all night | {name} cleared the snow with a shovel | mended told | snowy
    foggy | thick white fog had come in the morning | {they} waited until the air was clear | mended | foggy
    slippery | wet leaves lay everywhere | {name} swept the wet leaves away | mended told | rainy windy
    rough | the wind had made big waves | {they} waited until the water was smooth | mended | windy
    rocky | a storm had left big rocks everywhere | {name} rolled the rocks to the side | mended told
    busy | cars rushed past in both directions | {they} waited for a quiet hour | mended
    crowded | there was a festival with many people | {they} waited until the {n} was empty | mended
""")

THINGS = _causes("""
    heavy | somebody had filled the {n} with stones | {name} took the stones out of the {n} | mended told
    bulky | the {n} was twice as big as the {s} | {name} sent for a smaller {n} | not
    rusty | the {n} had stood in the rain for years | {name} put oil on the {n} | mended
    wobbly | the {n} had a loose wheel | {name} fixed the loose wheel with a hammer | mended told
    slow | the {n} had old wheels | {name} bought new wheels for the {n} | mended told
    fragile | the {n} had a big crack | {name} fixed the crack with glue | mended told
    slippery | the {n} was wet from the rain | {name} wiped the {n} until every drop was gone | mended | rainy
    sticky | there was honey all over the {n} | {name} washed the honey off the {n} | mended told
    greasy | butter had melted on the {n} | {name} cleaned the {n} with soap | mended told
    dusty | the {n} had not been used for years | {name} brushed the dust off the {n} | mended told
    hot | the {n} had stood next to the fire | {name} waited until the {n} was cool | mended
    tight | somebody had closed the {n} with great force | {name} made the lid of the {n} loose | mended
    salty | the cook had dropped salt on the {n} | {name} brought some food without salt | not
    spicy | the cook had used a lot of pepper | {name} brought some food without pepper | not
    sour | the cook had used a lot of lemon | {name} added sugar to make the {n} sweet | mended
    bitter | the cook had used the wrong herbs | {name} found something sweet for the {s} | not
    burnt | the {n} had been in the oven for hours | {name} cut off the black parts | mended
    hard | the {n} had dried for days | {name} put the {n} in warm milk until soft | mended
    stale | the {n} was a week old | {name} bought some fresh food for the {s} | not
""")

CAUSES: dict[Kind, dict[str, Cause]] = {"living": LIVING, "way": WAYS, "thing": THINGS}
