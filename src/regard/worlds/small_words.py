"""The small words of the world: determiners, pronouns, prepositions, adverbs, question words, conjunctions.

Links read `0-0 0~1` (a dash is sure, a tilde possible); none written means first word to first word.
"""

# english singular and plural, the four spanish forms, definite; a dash: there is no such form.
DETERMINERS: tuple[tuple[str, str, str, bool], ...] = (
    ("the", "the", "el la los las", True),
    ("a", "-", "un una - -", False),
    ("my", "my", "mi mi mis mis", True),
    ("your", "your", "tu tu tus tus", True),
    ("his", "his", "su su sus sus", True),
    ("her", "her", "su su sus sus", True),
    ("our", "our", "nuestro nuestra nuestros nuestras", True),
    ("their", "their", "su su sus sus", True),
    ("this", "these", "este esta estos estas", True),
    ("that", "those", "ese esa esos esas", True),
    ("each", "-", "cada cada - -", True),
    ("-", "two", "- - dos dos", False),
    ("-", "three", "- - tres tres", False),
    ("-", "four", "- - cuatro cuatro", False),
    ("-", "many", "- - muchos muchas", False),
    ("-", "some", "- - algunos algunas", False),
    ("which", "which", "qué qué qué qué", False),
    ("-", "how many", "- - cuántos cuántas", False),
    ("", "", "- - - -", False),
)

# How often a determiner stands before a noun in each role: singular, plural. `own` is each possessive.
ROLES: dict[str, dict[str, tuple[int, int]]] = {
    "subject": {
        "the": (10, 8), "a": (3, 0), "own": (1, 1), "this": (1, 1), "that": (1, 1), "each": (1, 0),
        "two": (0, 1), "three": (0, 1), "four": (0, 1), "many": (0, 1), "some": (0, 1),
    },
    "object": {
        "the": (7, 6), "a": (6, 0), "own": (1, 1), "this": (1, 1), "that": (1, 1), "": (0, 4),
        "two": (0, 1), "three": (0, 1), "four": (0, 1), "many": (0, 1), "some": (0, 1),
    },
    "reached": {"the": (10, 2), "a": (2, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "head": {"the": (8, 6), "a": (4, 0), "two": (0, 1), "many": (0, 1), "some": (0, 1)},
    "negated": {"the": (4, 4), "own": (1, 1), "this": (1, 1), "that": (1, 1), "": (0, 3)},
    "new": {"a": (5, 0), "two": (0, 1), "three": (0, 1), "four": (0, 1), "many": (0, 1), "some": (0, 1)},
    "none": {"a": (1, 0), "": (0, 1)},
    "place": {"the": (10, 1), "a": (1, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "together": {"the": (6, 3), "a": (3, 0), "own": (1, 1), "this": (1, 1), "that": (1, 1), "two": (0, 1)},
    "topic": {"the": (10, 8), "own": (1, 1), "this": (2, 2), "that": (2, 2)},
    "asked": {"which": (1, 1), "how many": (0, 2)},
}  # fmt: skip
MASS_ROLES: dict[str, dict[str, tuple[int, int]]] = {  # a role that is missing here is like an object
    "topic": {"the": (6, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
    "object": {"": (6, 0), "the": (4, 0), "own": (1, 0), "this": (1, 0), "that": (1, 0)},
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
