"""The function words: determiners, pronouns, prepositions, adverbs, question words, conjunctions.

Links read `0-0 0~1` (a dash is sure, a tilde possible); none written means first word to first word.
"""

# english singular and plural, the four spanish forms; a dash: there is no such form.
DETERMINERS: tuple[tuple[str, str, str], ...] = (
    ("the", "the", "el la los las"),
    ("a", "-", "un una - -"),
    ("my", "my", "mi mi mis mis"),
    ("your", "your", "tu tu tus tus"),
    ("his", "his", "su su sus sus"),
    ("her", "her", "su su sus sus"),
    ("our", "our", "nuestro nuestra nuestros nuestras"),
    ("their", "their", "su su sus sus"),
    ("this", "these", "este esta estos estas"),
    ("that", "those", "ese esa esos esas"),
    ("each", "-", "cada cada - -"),
    ("-", "two", "- - dos dos"),
    ("-", "three", "- - tres tres"),
    ("-", "four", "- - cuatro cuatro"),
    ("-", "many", "- - muchos muchas"),
    ("-", "some", "- - algunos algunas"),
    ("which", "which", "qué qué qué qué"),
    ("-", "how many", "- - cuántos cuántas"),
    ("", "", "- - - -"),
)

# Frequency of a determiner before a noun in each role: singular, plural. `own` is each possessive.
ROLES: dict[str, dict[str, tuple[int, int]]] = {
    "subject": {
        "the": (10, 8), "a": (3, 0), "own": (1, 1), "this": (1, 1), "that": (1, 1), "each": (1, 0),
        "two": (0, 1), "three": (0, 1), "four": (0, 1), "many": (0, 1), "some": (0, 1),
    },
    "object": {
        "the": (7, 6), "a": (6, 0), "own": (1, 1), "this": (1, 1), "that": (1, 1), "": (0, 4),
        "two": (0, 1), "three": (0, 1), "four": (0, 1), "many": (0, 1), "some": (0, 1),
    },
    "reached": {"the": (12, 1), "a": (2, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "head": {"the": (8, 6), "a": (4, 0), "two": (0, 1), "many": (0, 1), "some": (0, 1)},
    "negated": {"the": (4, 4), "own": (1, 1), "this": (1, 1), "that": (1, 1), "": (0, 3)},
    "new": {"a": (5, 0), "two": (0, 1), "three": (0, 1), "four": (0, 1), "many": (0, 1), "some": (0, 1)},
    "none": {"a": (1, 0), "": (0, 1)},
    "place": {"the": (10, 0), "a": (1, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "together": {"the": (6, 3), "a": (3, 0), "own": (1, 1), "this": (1, 1), "that": (1, 1), "two": (0, 1)},
    "topic": {"the": (10, 8), "own": (1, 1), "this": (2, 2), "that": (2, 2)},
    "asked": {"which": (1, 1), "how many": (0, 2)},
}  # fmt: skip
MASS_ROLES: dict[str, dict[str, tuple[int, int]]] = {  # a role that is missing here is like an object
    "topic": {"the": (6, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "object": {"": (6, 0), "the": (4, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "together": {"the": (4, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "head": {"the": (1, 0)},
    "asked": {"which": (1, 0)},
}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")

# english as subject and as object, spanish as object, person, plural, feminine.
PRONOUNS: tuple[tuple[str, str, str, int, bool, bool], ...] = (
    ("i", "me", "me", 0, False, False),
    ("you", "you", "te", 1, False, False),
    ("he", "him", "lo", 2, False, False),
    ("she", "her", "la", 2, False, True),
    ("we", "us", "nos", 3, True, False),
    ("they", "them", "los", 4, True, False),
)

# He, she and they share their verb forms with nouns; the others would be rare.
PRONOUNS_DRAWN = ("i", "i", "you", "you", "he", "she", "we", "we", "they")

# english, spanish, links.
PREPOSITIONS = (
    ("in", "en", ""),
    ("at", "en", ""),
    ("on", "sobre", ""),
    ("under", "debajo de", "0-0 0~1"),
    ("near", "cerca de", "0-0 0~1"),
    ("behind", "detrás de", "0-0 0~1"),
    ("next to", "junto a", "0-0 1-1"),
    ("with", "con", ""),
    ("without", "sin", ""),
    ("to", "a", ""),
    ("of", "de", ""),
)

# tense, english, spanish, links.
TIMES = (
    ("present", "every day", "todos los días", "0-0 0~1 1-2"),
    ("present", "every morning", "todas las mañanas", "0-0 0~1 1-2"),
    ("present", "every week", "todas las semanas", "0-0 0~1 1-2"),
    ("progressive", "now", "ahora", ""),
    ("progressive", "today", "hoy", ""),
    ("past", "yesterday", "ayer", ""),
    ("past", "last night", "anoche", "0-0 1-0"),
    ("past", "last week", "la semana pasada", "0-2 1-1 1~0"),
    ("past", "last year", "el año pasado", "0-2 1-1 1~0"),
)

ADVERBS = (
    ("always", "siempre", ""),
    ("never", "nunca", ""),
    ("sometimes", "a veces", "0-1 0~0"),
    ("also", "también", ""),
)

QUESTION_WORDS = (
    ("what", "qué", ""),
    ("who", "a quién", "0-1 0~0"),  # as the object; as the subject it is a plan's Who
    ("where", "dónde", ""),
    ("when", "cuándo", ""),
    ("why", "por qué", "0-0 0-1"),
)

CONJUNCTIONS = (("and", "y", ""), ("but", "pero", ""), ("because", "porque", ""), ("while", "mientras", ""))
