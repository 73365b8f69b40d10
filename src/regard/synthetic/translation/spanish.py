"""Spanish word forms: plurals, agreement, present, preterite, gerund. Regular by rule, irregular by table.

Verb tables have five persons: yo, tú, él, nosotros, ellos. Adjective tables have four columns: masculine and
feminine singular, masculine and feminine plural.
"""

Five = tuple[str, str, str, str, str]
Four = tuple[str, str, str, str]

_PLAIN_VOWEL = str.maketrans("áéíóú", "aeiou")
_PLURALS = {
    "joven": "jóvenes",  # the stress stays on the o, so the plural needs the accent
    "paraguas": "paraguas",
}

_PRESENT: dict[str, Five] = {
    "ser": ("soy", "eres", "es", "somos", "son"),
    "estar": ("estoy", "estás", "está", "estamos", "están"),
    "ir": ("voy", "vas", "va", "vamos", "van"),
    "dar": ("doy", "das", "da", "damos", "dan"),
    "ver": ("veo", "ves", "ve", "vemos", "ven"),
    "oír": ("oigo", "oyes", "oye", "oímos", "oyen"),
    "sonreír": ("sonrío", "sonríes", "sonríe", "sonreímos", "sonríen"),
}

_FIRST_PERSON = {
    "tener": "tengo",
    "venir": "vengo",
    "hacer": "hago",
    "poner": "pongo",
    "traer": "traigo",
    "decir": "digo",
}

# The stem when the stress falls on it: every present form but nosotros.
_STRESSED = {
    "tener": "tien",
    "venir": "vien",
    "querer": "quier",
    "cerrar": "cierr",
    "empezar": "empiez",
    "entender": "entiend",
    "pensar": "piens",
    "perder": "pierd",
    "contar": "cuent",
    "dormir": "duerm",
    "encontrar": "encuentr",
    "morder": "muerd",
    "mostrar": "muestr",
    "probar": "prueb",
    "recordar": "recuerd",
    "volar": "vuel",
    "jugar": "jueg",
    "decir": "dic",
    "elegir": "elig",
    "pedir": "pid",
    "perseguir": "persigu",
    "seguir": "sigu",
    "servir": "sirv",
    "construir": "construy",
    "enviar": "enví",
}

# The stem of -ir verbs before -ió, -ieron and -iendo.
_RAISED = {
    "decir": "dic",
    "dormir": "durm",
    "elegir": "elig",
    "pedir": "pid",
    "perseguir": "persigu",
    "seguir": "sigu",
    "servir": "sirv",
    "sonreír": "sonr",
    "venir": "vin",
}

_PRETERITE: dict[str, Five] = {
    "ir": ("fui", "fuiste", "fue", "fuimos", "fueron"),
    "ser": ("fui", "fuiste", "fue", "fuimos", "fueron"),
    "dar": ("di", "diste", "dio", "dimos", "dieron"),
    "ver": ("vi", "viste", "vio", "vimos", "vieron"),
    "hacer": ("hice", "hiciste", "hizo", "hicimos", "hicieron"),
    "sonreír": ("sonreí", "sonreíste", "sonrió", "sonreímos", "sonrieron"),
}

# Preterites stressed on the stem: -e, -iste, -o, -imos, -ieron (-eron after j).
_STRONG_PRETERITE = {
    "conducir": "conduj",
    "decir": "dij",
    "estar": "estuv",
    "poner": "pus",
    "querer": "quis",
    "tener": "tuv",
    "traer": "traj",
    "venir": "vin",
}


def plural(noun: str) -> str:
    """`luz` gives `luces`, `canción` gives `canciones`, `paraguas` stays as it is."""
    if noun in _PLURALS:
        return _PLURALS[noun]
    if noun[-1] in "aeiouáéó":
        return noun + "s"
    if noun.endswith("z"):
        return noun[:-1] + "ces"
    return noun[:-2] + noun[-2:].translate(_PLAIN_VOWEL) + "es"


def adjective(masculine: str) -> Four:
    """The four forms of an adjective from its masculine singular."""
    feminine = _feminine(masculine)
    return masculine, feminine, plural(masculine), plural(feminine)


def present(verb: str) -> Five:
    """The present indicative."""
    if verb in _PRESENT:
        return _PRESENT[verb]
    stem, vowel = verb[:-2], verb[-2]
    stressed = _STRESSED.get(verb, stem)
    second, we = {"a": ("a", "amos"), "e": ("e", "emos"), "i": ("e", "imos")}[vowel]
    third = stressed + second
    return _first_person(verb, stressed), third + "s", third, stem + we, third + "n"


def preterite(verb: str) -> Five:
    """The preterite, the tense of what happened once and is over."""
    if verb in _PRETERITE:
        return _PRETERITE[verb]
    if verb in _STRONG_PRETERITE:
        stem = _STRONG_PRETERITE[verb]
        they = "eron" if stem.endswith("j") else "ieron"
        return stem + "e", stem + "iste", stem + "o", stem + "imos", stem + they
    stem = verb[:-2]
    if verb.endswith("ar"):
        return _soft(stem) + "é", stem + "aste", stem + "ó", stem + "amos", stem + "aron"
    if stem[-1] in "aeo":  # leer, oír: an i between vowels turns to y, and the others keep their stress
        return stem + "í", stem + "íste", stem + "yó", stem + "ímos", stem + "yeron"
    raised = _RAISED.get(verb, stem)
    i = "y" if verb.endswith("uir") and not verb.endswith("guir") else "i"
    return stem + "í", stem + "iste", raised + i + "ó", stem + "imos", raised + i + "eron"


def gerund(verb: str) -> str:
    """The form in -ndo, which follows estar."""
    stem = _RAISED.get(verb, verb[:-2])
    if verb.endswith("ar"):
        return stem + "ando"
    between_vowels = not stem or stem[-1] in "aeo" or (stem[-1] == "u" and not stem.endswith("gu"))
    return stem + ("yendo" if between_vowels else "iendo")


def _feminine(masculine: str) -> str:
    if masculine.endswith("o"):
        return masculine[:-1] + "a"
    if masculine.endswith(("ñol", "or")):
        return masculine + "a"
    if masculine.endswith(("és", "án")):
        return masculine[:-2] + masculine[-2:].translate(_PLAIN_VOWEL) + "a"
    return masculine


def _first_person(verb: str, stressed: str) -> str:
    if verb in _FIRST_PERSON:
        return _FIRST_PERSON[verb]
    if verb.endswith(("guir", "gir")):  # seguir: sigo; elegir: elijo
        return (stressed[:-1] if verb.endswith("guir") else stressed[:-1] + "j") + "o"
    if verb.endswith(("cer", "cir")):  # conocer: conozco
        return stressed[:-1] + "zco"
    return stressed + "o"


def _soft(stem: str) -> str:
    """The stem of an -ar verb before e, spelled so that it sounds the same: buscar, busqué."""
    for before, after in (("c", "qu"), ("g", "gu"), ("z", "c")):
        if stem.endswith(before):
            return stem[: -len(before)] + after
    return stem
