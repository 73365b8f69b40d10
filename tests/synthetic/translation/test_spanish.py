"""Spanish forms against paradigms written by hand: yo, tú, él, nosotros, ellos."""

import pytest

from regard.synthetic.translation import spanish
from regard.synthetic.translation.verbs import VERBS
from regard.synthetic.translation.vocabulary import ADJECTIVES, NOUNS

PARADIGMS = {
    "hablar": ("hablo hablas habla hablamos hablan", "hablé hablaste habló hablamos hablaron", "hablando"),
    "comer": ("como comes come comemos comen", "comí comiste comió comimos comieron", "comiendo"),
    "vivir": ("vivo vives vive vivimos viven", "viví viviste vivió vivimos vivieron", "viviendo"),
    "tener": ("tengo tienes tiene tenemos tienen", "tuve tuviste tuvo tuvimos tuvieron", "teniendo"),
    "ir": ("voy vas va vamos van", "fui fuiste fue fuimos fueron", "yendo"),
    "hacer": ("hago haces hace hacemos hacen", "hice hiciste hizo hicimos hicieron", "haciendo"),
    "ver": ("veo ves ve vemos ven", "vi viste vio vimos vieron", "viendo"),
    "dar": ("doy das da damos dan", "di diste dio dimos dieron", "dando"),
    "decir": ("digo dices dice decimos dicen", "dije dijiste dijo dijimos dijeron", "diciendo"),
    "venir": ("vengo vienes viene venimos vienen", "vine viniste vino vinimos vinieron", "viniendo"),
    "poner": ("pongo pones pone ponemos ponen", "puse pusiste puso pusimos pusieron", "poniendo"),
    "traer": ("traigo traes trae traemos traen", "traje trajiste trajo trajimos trajeron", "trayendo"),
    "leer": ("leo lees lee leemos leen", "leí leíste leyó leímos leyeron", "leyendo"),
    "oír": ("oigo oyes oye oímos oyen", "oí oíste oyó oímos oyeron", "oyendo"),
    "dormir": (
        "duermo duermes duerme dormimos duermen",
        "dormí dormiste durmió dormimos durmieron",
        "durmiendo",
    ),
    "pedir": ("pido pides pide pedimos piden", "pedí pediste pidió pedimos pidieron", "pidiendo"),
    "servir": ("sirvo sirves sirve servimos sirven", "serví serviste sirvió servimos sirvieron", "sirviendo"),
    "seguir": ("sigo sigues sigue seguimos siguen", "seguí seguiste siguió seguimos siguieron", "siguiendo"),
    "elegir": ("elijo eliges elige elegimos eligen", "elegí elegiste eligió elegimos eligieron", "eligiendo"),
    "sonreír": (
        "sonrío sonríes sonríe sonreímos sonríen",
        "sonreí sonreíste sonrió sonreímos sonrieron",
        "sonriendo",
    ),
    "jugar": ("juego juegas juega jugamos juegan", "jugué jugaste jugó jugamos jugaron", "jugando"),
    "empezar": (
        "empiezo empiezas empieza empezamos empiezan",
        "empecé empezaste empezó empezamos empezaron",
        "empezando",
    ),
    "cerrar": ("cierro cierras cierra cerramos cierran", "cerré cerraste cerró cerramos cerraron", "cerrando"),
    "perder": ("pierdo pierdes pierde perdemos pierden", "perdí perdiste perdió perdimos perdieron", "perdiendo"),
    "contar": ("cuento cuentas cuenta contamos cuentan", "conté contaste contó contamos contaron", "contando"),
    "morder": ("muerdo muerdes muerde mordemos muerden", "mordí mordiste mordió mordimos mordieron", "mordiendo"),
    "buscar": ("busco buscas busca buscamos buscan", "busqué buscaste buscó buscamos buscaron", "buscando"),
    "llegar": ("llego llegas llega llegamos llegan", "llegué llegaste llegó llegamos llegaron", "llegando"),
    "cruzar": ("cruzo cruzas cruza cruzamos cruzan", "crucé cruzaste cruzó cruzamos cruzaron", "cruzando"),
    "conocer": (
        "conozco conoces conoce conocemos conocen",
        "conocí conociste conoció conocimos conocieron",
        "conociendo",
    ),
    "conducir": (
        "conduzco conduces conduce conducimos conducen",
        "conduje condujiste condujo condujimos condujeron",
        "conduciendo",
    ),
    "construir": (
        "construyo construyes construye construimos construyen",
        "construí construiste construyó construimos construyeron",
        "construyendo",
    ),
    "enviar": ("envío envías envía enviamos envían", "envié enviaste envió enviamos enviaron", "enviando"),
}


@pytest.mark.parametrize("verb", PARADIGMS)
def test_verb_has_the_forms_of_the_grammar_book(verb: str) -> None:
    present, preterite, gerund = PARADIGMS[verb]
    assert spanish.present(verb) == tuple(present.split())
    assert spanish.preterite(verb) == tuple(preterite.split())
    assert spanish.gerund(verb) == gerund


def test_ser_and_estar() -> None:
    assert spanish.present("ser") == ("soy", "eres", "es", "somos", "son")
    assert spanish.present("estar") == ("estoy", "estás", "está", "estamos", "están")


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("casa", "casas"),
        ("café", "cafés"),
        ("luz", "luces"),
        ("lápiz", "lápices"),
        ("juez", "jueces"),
        ("actriz", "actrices"),
        ("canción", "canciones"),
        ("jardín", "jardines"),
        ("autobús", "autobuses"),
        ("león", "leones"),
        ("árbol", "árboles"),
        ("reloj", "relojes"),
        ("rey", "reyes"),
        ("pared", "paredes"),
        ("joven", "jóvenes"),
        ("paraguas", "paraguas"),
        ("tambor", "tambores"),
    ],
)
def test_plural(singular: str, plural: str) -> None:
    assert spanish.plural(singular) == plural


@pytest.mark.parametrize(
    "forms",
    [
        "rojo roja rojos rojas",
        "azul azul azules azules",
        "verde verde verdes verdes",
        "gris gris grises grises",
        "marrón marrón marrones marrones",
        "joven joven jóvenes jóvenes",
        "difícil difícil difíciles difíciles",
        "trabajador trabajadora trabajadores trabajadoras",
        "español española españoles españolas",
        "francés francesa franceses francesas",
        "alemán alemana alemanes alemanas",
        "vacío vacía vacíos vacías",
    ],
)
def test_adjective_agrees(forms: str) -> None:
    assert spanish.adjective(forms.split()[0]) == tuple(forms.split())


GENDERS = {
    "hand": "mano f", "map": "mapa m", "problem": "problema m", "language": "idioma m", "poem": "poema m",
    "photo": "foto f", "water": "agua fa", "eagle": "águila fa", "classroom": "aula fa", "milk": "leche f",
    "meat": "carne f", "flower": "flor f", "key": "llave f", "street": "calle f", "tower": "torre f",
    "bridge": "puente m", "wall": "pared f", "honey": "miel f", "tree": "árbol m", "city": "ciudad f",
}  # fmt: skip


def test_genders_that_the_ending_does_not_tell() -> None:
    found = {lemma: entry for group in NOUNS.values() for lemma, entry in group.items()}
    assert {lemma: found[lemma] for lemma in GENDERS} == GENDERS


def test_gender_follows_the_ending_for_all_other_nouns() -> None:
    for group in NOUNS.values():
        for lemma, entry in group.items():
            word, gender = entry.split()
            if lemma not in GENDERS and word != "turista" and word[-1] in "oa":
                assert gender == {"o": "m", "a": "f"}[word[-1]], lemma


def test_tables_name_nothing_twice() -> None:
    nouns = [lemma for group in NOUNS.values() for lemma in group]
    assert len(set(nouns)) == len(nouns)
    assert len({row[0] for row in ADJECTIVES}) == len(ADJECTIVES)
    assert len({row[:2] for row in VERBS}) == len(VERBS)
