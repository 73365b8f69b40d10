"""Sentences built from lemmas, against translations written by hand."""

from typing import Any

import pytest

from regard.synthetic.translation.clauses import write
from regard.synthetic.translation.dictionary import dictionary
from regard.synthetic.translation.lexicon import Verb
from regard.synthetic.translation.plans import (
    Action,
    Both,
    Clause,
    Compound,
    Existence,
    Location,
    Nominal,
    Place,
    Plan,
    Question,
    Relative,
    State,
    Who,
)
from regard.synthetic.translation.sentences import Pair, pair

WORDS = dictionary()
PRONOUNS, ASKING, JOINING = WORDS.pronouns, WORDS.question_words, WORDS.conjunctions
ME, YOU, HE, SHE, WE, THEY = (PRONOUNS[name] for name in ("i", "you", "he", "she", "we", "they"))
WHO = Who()
TIMES = {" ".join(time.source): time for times in WORDS.times.values() for time in times}


def np(text: str, **more: Any) -> Nominal:
    """A nominal from its English: `the red houses`."""
    *before, last = text.split()
    noun = next(noun for noun in WORDS.nouns.values() if last in noun.english)
    plural = last == noun.english[1]
    adjective = WORDS.adjectives.get(before[-1]) if before else None
    first = " ".join(before[: -1 if adjective else None])
    first = "a" if first == "an" else first
    determiner = next(d for d in WORDS.determiners.values() if " ".join(d.english[plural]) == first)
    return Nominal(determiner, noun, plural, adjective, **more)


def act(verb: str, tense: Any = "present", object: Any = None, *, sense: str = "", **more: Any) -> Action:
    """An action; `sense` tells two verbs of one name apart by a Spanish form."""
    if isinstance(object, str):
        object = np(object)
    return Action(_verb(verb, sense), tense, object=object, **more)


def _verb(lemma: str, sense: str) -> Verb:
    verbs = [frames[0].verb for frames in WORDS.frames if frames[0].verb.lemma == lemma]
    return next(verb for verb in verbs if sense in ("", verb.present[2].target[0]))


def be(adjective: str, **more: Any) -> State:
    return State(WORDS.adjectives[adjective], **more)


def at(preposition: str, nominal: str) -> Place:
    return Place(WORDS.prepositions[preposition], np(nominal))


def say(subject: Any, predicate: Any, **more: Any) -> Clause:
    return Clause(np(subject) if isinstance(subject, str) else subject, predicate, **more)


def ask(subject: Any, predicate: Any, word: Any = None) -> Question:
    return Question(say(subject, predicate), ASKING[word] if isinstance(word, str) else word)


NOT = {"negated": True}
GOLD: list[tuple[str, str, Plan]] = [
    # agreement, articles, adjectives
    ("we are eating bread", "estamos comiendo pan", say(WE, act("eat", "progressive", "bread"))),
    ("the red house is big", "la casa roja es grande", say("the red house", be("big"))),
    ("the houses are red", "las casas son rojas", say("the houses", be("red"))),
    ("the boy is tired", "el niño está cansado", say("the boy", be("tired"))),
    ("the girls are tired", "las niñas están cansadas", say("the girls", be("tired"))),
    ("she is tired", "está cansada", say(SHE, be("tired"))),
    ("they are tired", "están cansados", say(THEY, be("tired"))),
    ("i am french", "soy francés", say(ME, be("french"))),
    ("the water is cold", "el agua está fría", say("the water", be("cold"))),
    ("he drinks this cold water", "bebe esta agua fría", say(HE, act("drink", object="this cold water"))),
    ("i drink the cold water", "bebo el agua fría", say(ME, act("drink", object="the cold water"))),
    ("the classrooms are small", "las aulas son pequeñas", say("the classrooms", be("small"))),
    ("an eagle flies", "un águila vuela", say("an eagle", act("fly"))),
    ("a small eagle flies", "un águila pequeña vuela", say("a small eagle", act("fly"))),
    ("an old man works", "un hombre viejo trabaja", say("an old man", act("work"))),
    ("two small eagles fly", "dos águilas pequeñas vuelan", say("two small eagles", act("fly"))),
    ("the young kings dance", "los reyes jóvenes bailan", say("the young kings", act("dance"))),
    ("my hands are dirty", "mis manos están sucias", say("my hands", be("dirty"))),
    ("the problems are easy", "los problemas son fáciles", say("the problems", be("easy"))),
    ("our house is white", "nuestra casa es blanca", say("our house", be("white"))),
    ("our friends are hardworking", "nuestros amigos son trabajadores", say("our friends", be("hardworking"))),
    ("their aunts are spanish", "sus tías son españolas", say("their aunts", be("spanish"))),
    ("those umbrellas are blue", "esos paraguas son azules", say("those umbrellas", be("blue"))),
    ("each student reads a book", "cada estudiante lee un libro", say("each student", act("read", object="a book"))),
    ("many women work", "muchas mujeres trabajan", say("many women", act("work"))),
    ("you are not busy", "no estás ocupado", say(YOU, be("busy", **NOT))),
    ("the boys are hungry", "los niños tienen hambre", say("the boys", be("hungry"))),
    ("he is always sleepy", "siempre tiene sueño", say(HE, be("sleepy", adverb=WORDS.adverbs["always"]))),
    # tenses and negation
    ("the boy does not eat meat", "el niño no come carne", say("the boy", act("eat", object="meat", **NOT))),
    ("the boy is not eating", "el niño no está comiendo", say("the boy", act("eat", "progressive", **NOT))),
    ("i did not sleep", "no dormí", say(ME, act("sleep", "past", **NOT))),
    ("the girl slept", "la niña durmió", say("the girl", act("sleep", "past"))),
    ("you write letters", "escribes cartas", say(YOU, act("write", object="letters"))),
    ("she read the novel", "leyó la novela", say(SHE, act("read", "past", "the novel"))),
    (
        "yesterday we went to the park",
        "ayer fuimos al parque",
        say(WE, act("go to", "past", "the park"), time=TIMES["yesterday"], time_first=True),
    ),
    (
        "he runs in the garden every day",
        "corre en el jardín todos los días",
        say(HE, act("run", place=at("in", "the garden")), time=TIMES["every day"]),
    ),
    (
        "the cat never sleeps under the bed",
        "el gato nunca duerme debajo de la cama",
        say("the cat", act("sleep", place=at("under", "the bed"), adverb=WORDS.adverbs["never"])),
    ),
    # objects
    ("the man sees the dog", "el hombre ve al perro", say("the man", act("see", object="the dog"))),
    ("the man sees a woman", "el hombre ve a una mujer", say("the man", act("see", object="a woman"))),
    ("the man sees the tower", "el hombre ve la torre", say("the man", act("see", object="the tower"))),
    ("they have two sisters", "tienen dos hermanas", say(THEY, act("have", object="two sisters"))),
    ("i bought the horse", "compré el caballo", say(ME, act("buy", "past", "the horse"))),
    ("we look for the key", "buscamos la llave", say(WE, act("look for", object="the key"))),
    ("i looked for her brother", "busqué a su hermano", say(ME, act("look for", "past", "her brother"))),
    ("she is waiting for us", "nos está esperando", say(SHE, act("wait for", "progressive", WE))),
    ("the teacher does not help him", "el maestro no lo ayuda", say("the teacher", act("help", object=HE, **NOT))),
    ("he talks with the judge", "habla con el juez", say(HE, act("talk with", object="the judge"))),
    ("they live in the village", "viven en el pueblo", say(THEY, act("live in", object="the village"))),
    ("she enters the hotel", "entra en el hotel", say(SHE, act("enter", object="the hotel"))),
    ("the girls play", "las niñas juegan", say("the girls", act("play", sense="juega"))),
    (
        "the girls play the piano",
        "las niñas tocan el piano",
        say("the girls", act("play", object="the piano", sense="toca")),
    ),
    (
        "the man gives the book to the woman",
        "el hombre le da el libro a la mujer",
        say("the man", act("give", object="the book", recipient=np("the woman"))),
    ),
    (
        "i am not sending letters to the boys",
        "no les estoy enviando cartas a los niños",
        say(ME, act("send", "progressive", "letters", recipient=np("the boys"), **NOT)),
    ),
    (
        "he put the plates on the table",
        "puso los platos sobre la mesa",
        say(HE, act("put", "past", "the plates", place=at("on", "the table"))),
    ),
    (
        "we know the boy and the queen",
        "conocemos al niño y a la reina",
        say(WE, act("know", object=Both(np("the boy"), np("the queen")))),
    ),
    # places, prepositions, contractions
    ("the dog is near the river", "el perro está cerca del río", say("the dog", Location(at("near", "the river")))),
    (
        "the cars are not next to the tree",
        "los coches no están junto al árbol",
        say("the cars", Location(at("next to", "the tree"), negated=True)),
    ),
    (
        "there are two cats behind the door",
        "hay dos gatos detrás de la puerta",
        Existence(np("two cats"), at("behind", "the door")),
    ),
    (
        "the son of the baker is kind",
        "el hijo del panadero es amable",
        say(np("the son", of=np("the baker")), be("kind")),
    ),
    # two together
    (
        "the boy and the girl are happy",
        "el niño y la niña están contentos",
        say(Both(np("the boy"), np("the girl")), be("happy")),
    ),
    (
        "the girl and the boy are happy",
        "la niña y el niño están contentos",
        say(Both(np("the girl"), np("the boy")), be("happy")),
    ),
    (
        "the mother and the girl are happy",
        "la madre y la niña están contentas",
        say(Both(np("the mother"), np("the girl")), be("happy")),
    ),
    (
        "he eats rice but does not eat meat",
        "come arroz pero no come carne",
        Compound(
            say(HE, act("eat", object="rice")),
            JOINING["but"],
            say(HE, act("eat", object="meat", **NOT)),
            shared=True,
        ),
    ),
    (
        "she sings and invites the men",
        "canta e invita a los hombres",
        Compound(say(SHE, act("sing")), JOINING["and"], say(SHE, act("invite", object="the men")), shared=True),
    ),
    (
        "the boy is crying because he is sad",
        "el niño está llorando porque está triste",
        Compound(say("the boy", act("cry", "progressive")), JOINING["because"], say(HE, be("sad"))),
    ),
    # relative clauses
    (
        "the man who sees the dog is eating",
        "el hombre que ve al perro está comiendo",
        say(np("the man", relative=Relative(act("see", object="the dog"))), act("eat", "progressive")),
    ),
    (
        "he read the book that she is writing",
        "leyó el libro que está escribiendo",
        say(HE, act("read", "past", np("the book", relative=Relative(act("write", "progressive"), SHE)))),
    ),
    (
        "the woman whom the boys help is old",
        "la mujer a la que los niños ayudan es vieja",
        say(np("the woman", relative=Relative(act("help"), np("the boys"))), be("old")),
    ),
    (
        "the kings whom you called came to the church",
        "los reyes a los que llamaste vinieron a la iglesia",
        say(np("the kings", relative=Relative(act("call", "past"), YOU)), act("come to", "past", "the church")),
    ),
    # questions
    ("does the boy eat bread?", "¿come el niño pan?", ask("the boy", act("eat", object="bread"))),
    (
        "is the boy eating bread?",
        "¿está el niño comiendo pan?",
        ask("the boy", act("eat", "progressive", "bread")),
    ),
    ("are you tired?", "¿estás cansado?", ask(YOU, be("tired"))),
    ("is the house red?", "¿es roja la casa?", ask("the house", be("red"))),
    ("who sees the dog?", "¿quién ve al perro?", ask(WHO, act("see", object="the dog"))),
    ("who does the dog see?", "¿a quién ve el perro?", ask("the dog", act("see"), "who")),
    ("what is the boy eating?", "¿qué está comiendo el niño?", ask("the boy", act("eat", "progressive"), "what")),
    ("where are the keys?", "¿dónde están las llaves?", ask("the keys", Location(None), "where")),
    ("why is the door open?", "¿por qué está abierta la puerta?", ask("the door", be("open"), "why")),
    ("when did you see me?", "¿cuándo me viste?", ask(YOU, act("see", "past", ME), "when")),
    (
        "is the nurse helping you?",
        "¿te está ayudando la enfermera?",
        ask("the nurse", act("help", "progressive", YOU)),
    ),
    (
        "how many apples did the king eat?",
        "¿cuántas manzanas comió el rey?",
        ask("the king", act("eat", "past"), np("how many apples")),
    ),
    ("which book do you want?", "¿qué libro quieres?", ask(YOU, act("want"), np("which book"))),
    (
        "is there an eagle in the park?",
        "¿hay un águila en el parque?",
        Existence(np("an eagle"), at("in", "the park"), asked=True),
    ),
]


@pytest.mark.parametrize(("source", "target", "plan"), GOLD, ids=[row[0] for row in GOLD])
def test_translation(source: str, target: str, plan: Plan) -> None:
    found = pair(write(plan))
    assert (found.source, found.target) == (source, target)


def links(found: Pair) -> tuple[str, str]:
    """Sure and further possible links, as pairs of words."""
    sure = [f"{found.source_words[i]}-{found.target_words[j]}" for i, j in sorted(found.sure)]
    further = sorted(found.possible - found.sure)
    return " ".join(sure), " ".join(f"{found.source_words[i]}-{found.target_words[j]}" for i, j in further)


@pytest.mark.parametrize(
    ("plan", "sure", "further"),
    [
        (
            say(WE, act("eat", "progressive", "bread")),
            "are-estamos eating-comiendo bread-pan",
            "we-estamos",
        ),
        (
            say("the boy", act("eat", object="red apples", **NOT)),
            "the-el boy-niño not-no eat-come red-rojas apples-manzanas",
            "does-come",
        ),
        (
            say("the man", act("see", object="the girl")),
            "the-el man-hombre sees-ve the-la girl-niña",
            "the-a girl-a",
        ),
        (
            say("the man", act("see", object="the dog")),
            "the-el man-hombre sees-ve the-al dog-perro",
            "dog-al",
        ),
        (
            say(ME, act("give", object="a rose", recipient=np("the boy"))),
            "give-doy a-una rose-rosa to-al the-al boy-niño",
            "i-doy boy-le",
        ),
        (
            say("the cat", Location(at("near", "the river"))),
            "the-el cat-gato is-está near-cerca the-del river-río",
            "near-del",
        ),
        (
            ask(YOU, act("look for", "past"), "what"),
            "what-qué look-buscaste ?-?",
            "did-buscaste you-buscaste for-buscaste ?-¿",
        ),
        (
            say("the girl", act("help", object=ME)),
            "the-la girl-niña helps-ayuda me-me",
            "",
        ),
    ],
)
def test_alignment(plan: Plan, sure: str, further: str) -> None:
    assert links(pair(write(plan))) == (sure, further)


def test_the_links_of_the_lecture_sentence() -> None:
    found = pair(write(say(WE, act("eat", "progressive", "bread"))))
    assert found.sure == {(1, 0), (2, 1), (3, 2)}
    assert found.possible == found.sure | {(0, 0)}
