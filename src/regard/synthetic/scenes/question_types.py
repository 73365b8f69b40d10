"""Classify questions, statements and phrases by their words."""

from regard.synthetic.scenes.objects import SHAPES


def question_kind(text: str) -> str:
    """color, shape, size or texture (what is it); count; presence (is there); place (is it above); trait (is it red).

    `is the star above the ring ?` is of place, `is the star above the ring a star ?` of a trait.
    """
    words = text.split()
    if words[0] == "what":
        return words[1]
    if words[0] == "how":
        return "count"
    return "presence" if words[1] == "there" else _place_or_trait(words[:-1])


def statement_kind(text: str) -> str:
    """count, presence, place or trait."""
    words = text.split()
    if words[0] == "there":
        return "presence" if words[2] == "a" else "count"
    return _place_or_trait(words)


def phrase_kind(text: str) -> str:
    """direct (by its own traits) or relational (by its relation to another thing)."""
    return "relational" if text.split().count("the") > 1 else "direct"


def _place_or_trait(words: list[str]) -> str:
    """A place ends with the shape of another thing; a trait is one word, or a shape after `a`."""
    return "place" if words[-1] in SHAPES and words[-2] != "a" else "trait"
