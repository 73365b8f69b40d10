"""English word forms: plurals, verb endings, `a` or `an`. Regular by rule, irregular by table."""

PERSONS = ("i", "you", "he", "we", "they")  # the order of every table of persons, Spanish too
FIRST, WE, THEY = 0, 3, 4
THIRD = 2  # "he", "she" and every singular noun

BE = ("am", "are", "is", "are", "are")
DO = ("do", "do", "does", "do", "do")

_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
    "foot": "feet",
    "knife": "knives",
    "wolf": "wolves",
    "leaf": "leaves",
    "scarf": "scarves",
    "tomato": "tomatoes",
    "potato": "potatoes",
}

_PASTS = {
    "begin": "began",
    "bite": "bit",
    "break": "broke",
    "bring": "brought",
    "build": "built",
    "buy": "bought",
    "choose": "chose",
    "come": "came",
    "cut": "cut",
    "draw": "drew",
    "drink": "drank",
    "drive": "drove",
    "eat": "ate",
    "feed": "fed",
    "find": "found",
    "fly": "flew",
    "forget": "forgot",
    "give": "gave",
    "go": "went",
    "have": "had",
    "hear": "heard",
    "hide": "hid",
    "know": "knew",
    "leave": "left",
    "lend": "lent",
    "lose": "lost",
    "make": "made",
    "put": "put",
    "read": "read",
    "run": "ran",
    "say": "said",
    "see": "saw",
    "sell": "sold",
    "send": "sent",
    "show": "showed",
    "sing": "sang",
    "sleep": "slept",
    "swim": "swam",
    "tell": "told",
    "think": "thought",
    "throw": "threw",
    "understand": "understood",
    "wear": "wore",
    "write": "wrote",
}

# One short stressed vowel and one consonant at the end: the consonant is doubled before -ing.
_DOUBLING = frozenset({"run", "swim", "cut", "put", "begin", "forget"})
_SILENT_H = frozenset({"honest"})
_HISSING = ("s", "x", "z", "ch", "sh")


def plural(noun: str) -> str:
    """The plural of a noun: `box` gives `boxes`, `city` gives `cities`, `child` gives `children`."""
    return _PLURALS.get(noun) or _with_s(noun)


def third_person(verb: str) -> str:
    """The present with he or she: `eat` gives `eats`, `carry` gives `carries`, `have` gives `has`."""
    if verb == "have":
        return "has"
    return verb + "es" if verb.endswith("o") else _with_s(verb)


def past(verb: str) -> str:
    """The simple past, the same for all persons."""
    if verb in _PASTS:
        return _PASTS[verb]
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if _consonant_y(verb) else verb + "ed"


def gerund(verb: str) -> str:
    """The form in -ing: `write` gives `writing`, `run` gives `running`."""
    if verb in _DOUBLING:
        return verb + verb[-1] + "ing"
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + "ing"


def article(following: str) -> str:
    """`a` or `an`, by the word that follows it."""
    return "an" if following[0] in "aeiou" or following in _SILENT_H else "a"


def _with_s(word: str) -> str:
    if word.endswith(_HISSING):
        return word + "es"
    return word[:-1] + "ies" if _consonant_y(word) else word + "s"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"
