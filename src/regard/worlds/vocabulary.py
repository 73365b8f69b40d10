"""The words of the world, as plain tables: what each is called in both languages, and what goes with what.

A noun is written `spanish gender`: m, f, or `fa` for a feminine noun that begins with a stressed a and so
takes `el` and `un` in the singular. The groups of nouns say which subject, object or adjective makes sense.
"""

NOUNS: dict[str, dict[str, str]] = {
    "kin": {
        "father": "padre m", "mother": "madre f", "brother": "hermano m", "sister": "hermana f",
        "son": "hijo m", "daughter": "hija f", "grandfather": "abuelo m", "grandmother": "abuela f",
        "uncle": "tío m", "aunt": "tía f", "husband": "esposo m", "wife": "esposa f",
        "friend": "amigo m", "neighbor": "vecino m",
    },
    "children": {"boy": "niño m", "girl": "niña f", "child": "niño m", "student": "estudiante m"},
    "adults": {
        "man": "hombre m", "woman": "mujer f", "teacher": "maestro m", "doctor": "médico m",
        "nurse": "enfermera f", "farmer": "granjero m", "baker": "panadero m", "lawyer": "abogado m",
        "waiter": "camarero m", "soldier": "soldado m", "judge": "juez m", "tourist": "turista m",
        "queen": "reina f", "king": "rey m",
    },
    "artists": {
        "painter": "pintor m", "writer": "escritor m", "actress": "actriz f", "dancer": "bailarina f",
        "musician": "músico m",
    },
    "pets": {
        "dog": "perro m", "cat": "gato m", "horse": "caballo m", "cow": "vaca f", "rabbit": "conejo m",
        "duck": "pato m", "goat": "cabra f", "hen": "gallina f",
    },
    "wild": {
        "bird": "pájaro m", "mouse": "ratón m", "bear": "oso m", "wolf": "lobo m", "lion": "león m",
        "monkey": "mono m", "eagle": "águila fa", "snake": "serpiente f", "frog": "rana f",
        "turtle": "tortuga f",
    },
    "staples": {
        "bread": "pan m", "rice": "arroz m", "meat": "carne f", "cheese": "queso m", "fruit": "fruta f",
        "soup": "sopa f", "butter": "mantequilla f", "chocolate": "chocolate m", "honey": "miel f",
    },
    "dishes": {
        "apple": "manzana f", "orange": "naranja f", "egg": "huevo m", "cake": "pastel m",
        "tomato": "tomate m", "potato": "patata f", "carrot": "zanahoria f", "cookie": "galleta f",
        "strawberry": "fresa f", "sandwich": "bocadillo m", "salad": "ensalada f",
    },
    "drinks": {
        "water": "agua fa", "milk": "leche f", "coffee": "café m", "tea": "té m", "wine": "vino m",
        "juice": "zumo m", "lemonade": "limonada f",
    },
    "texts": {
        "book": "libro m", "letter": "carta f", "newspaper": "periódico m", "magazine": "revista f",
        "poem": "poema m", "novel": "novela f", "message": "mensaje m", "story": "historia f",
    },
    "words": {"word": "palabra f", "name": "nombre m", "answer": "respuesta f", "number": "número m"},
    "ideas": {
        "question": "pregunta f", "problem": "problema m", "lesson": "lección f", "idea": "idea f",
        "language": "idioma m",
    },
    "talk": {"secret": "secreto m", "joke": "chiste m"},
    "music": {"song": "canción f"},
    "pictures": {"photo": "foto f", "picture": "cuadro m", "map": "mapa m"},
    "instruments": {"guitar": "guitarra f", "piano": "piano m", "violin": "violín m", "drum": "tambor m"},
    "furniture": {"table": "mesa f", "chair": "silla f", "bed": "cama f"},
    "openings": {"door": "puerta f", "window": "ventana f"},
    "containers": {"box": "caja f", "bag": "bolsa f", "basket": "cesta f", "bottle": "botella f"},
    "tableware": {
        "glass": "vaso m", "cup": "taza f", "plate": "plato m", "knife": "cuchillo m", "spoon": "cuchara f",
    },
    "tools": {
        "pencil": "lápiz m", "pen": "bolígrafo m", "clock": "reloj m", "lamp": "lámpara f", "key": "llave f",
        "phone": "teléfono m", "camera": "cámara f", "computer": "ordenador m", "umbrella": "paraguas m",
        "mirror": "espejo m",
    },
    "toys": {"ball": "pelota f", "doll": "muñeca f", "toy": "juguete m"},
    "nature": {
        "flower": "flor f", "rose": "rosa f", "tree": "árbol m", "stone": "piedra f", "leaf": "hoja f",
    },
    "body": {"hand": "mano f", "foot": "pie m"},
    "clothes": {
        "shirt": "camisa f", "dress": "vestido m", "shoe": "zapato m", "hat": "sombrero m",
        "coat": "abrigo m", "skirt": "falda f", "jacket": "chaqueta f", "scarf": "bufanda f",
        "glove": "guante m", "sock": "calcetín m",
    },
    "jewels": {"ring": "anillo m"},
    "vehicles": {
        "car": "coche m", "bus": "autobús m", "bicycle": "bicicleta f", "truck": "camión m",
        "train": "tren m", "boat": "barco m",
    },
    "rooms": {"kitchen": "cocina f", "room": "cuarto m", "office": "oficina f", "classroom": "aula fa"},
    "buildings": {
        "house": "casa f", "school": "escuela f", "store": "tienda f", "restaurant": "restaurante m",
        "hotel": "hotel m", "hospital": "hospital m", "library": "biblioteca f", "church": "iglesia f",
        "museum": "museo m", "theater": "teatro m",
    },
    "outside": {
        "garden": "jardín m", "park": "parque m", "street": "calle f", "market": "mercado m",
        "square": "plaza f", "forest": "bosque m", "city": "ciudad f", "village": "pueblo m",
    },
    "spots": {"beach": "playa f", "station": "estación f", "farm": "granja f", "factory": "fábrica f"},
    "waters": {"river": "río m", "lake": "lago m"},
    "sights": {
        "mountain": "montaña f", "bridge": "puente m", "castle": "castillo m", "tower": "torre f",
        "wall": "pared f",
    },
}  # fmt: skip

# Further groups, made of groups and single nouns.
GROUPS = {
    "people": "kin children adults artists",
    "animals": "pets wild",
    "food": "staples dishes",
    "meals": "rice meat soup cake salad sandwich cheese fruit",
    "handy": "pencil pen key phone camera umbrella",
    "small": "handy ball doll toy hat glove scarf ring book letter photo",
    "goods": "food drinks clothes tools toys furniture tableware containers instruments book magazine",
    "colored": "clothes bag box cup plate umbrella ball chair door wall car bus bicycle truck house",
    "coated": "dog cat horse rabbit cow goat bird mouse",
    "mass": "staples drinks",
    "owned": "kin teacher doctor lawyer pets food drinks texts words ideas talk music pictures instruments "
    "furniture openings containers tableware tools toys flower rose tree hand clothes jewels car bus bicycle "
    "truck boat house rooms school store garden street city village farm",
    "only": "father mother husband wife",
}

# english, spanish, copula, nouns it fits. With `tener` it is a noun in Spanish: to have hunger.
ADJECTIVES: tuple[tuple[str, str, str, str], ...] = (
    ("red", "rojo", "ser", "colored flower rose apple"),
    ("white", "blanco", "ser", "colored coated flower rose wine"),
    ("black", "negro", "ser", "colored coated"),
    ("blue", "azul", "ser", "colored pen pencil"),
    ("green", "verde", "ser", "colored apple leaf pen frog"),
    ("yellow", "amarillo", "ser", "colored flower leaf pencil"),
    ("gray", "gris", "ser", "clothes coated car truck wall wolf"),
    ("brown", "marrón", "ser", "clothes coated bag table bear"),
    ("big", "grande", "ser", "animals furniture containers buildings rooms garden park market square city boat tree"),
    ("small", "pequeño", "ser", "animals furniture containers buildings rooms garden park village boat key"),
    ("new", "nuevo", "ser", "clothes vehicles tools toys furniture instruments buildings book bridge"),
    ("old", "viejo", "ser", "adults grandfather grandmother vehicles furniture instruments buildings castle tree"),
    ("young", "joven", "ser", "adults artists dog horse"),
    ("tall", "alto", "ser", "people tree tower"),
    ("strong", "fuerte", "ser", "people horse bear lion"),
    ("intelligent", "inteligente", "ser", "people dog cat horse monkey"),
    ("kind", "amable", "ser", "people"),
    ("shy", "tímido", "ser", "people cat rabbit"),
    ("lazy", "perezoso", "ser", "people cat dog"),
    ("hardworking", "trabajador", "ser", "people"),
    ("brave", "valiente", "ser", "people dog"),
    ("rich", "rico", "ser", "adults artists uncle aunt neighbor"),
    ("poor", "pobre", "ser", "adults artists neighbor"),
    ("honest", "honesto", "ser", "people"),
    ("famous", "famoso", "ser", "artists doctor lawyer novel song picture museum restaurant"),
    ("spanish", "español", "ser", "adults artists children wine cheese song novel guitar"),
    ("french", "francés", "ser", "adults artists children wine cheese song novel bread"),
    ("german", "alemán", "ser", "adults artists children car truck train bread"),
    ("long", "largo", "ser", "texts song lesson dress skirt coat scarf street bridge river"),
    ("short", "corto", "ser", "letter poem novel message story song lesson skirt street"),
    ("beautiful", "hermoso", "ser", "pictures music jewels flower rose garden city village beach dress bird castle"),
    ("ugly", "feo", "ser", "hat dress coat picture wall lamp"),
    ("elegant", "elegante", "ser", "adults artists clothes restaurant hotel"),
    ("expensive", "caro", "ser", "clothes vehicles tools instruments jewels hotel restaurant wine"),
    ("cheap", "barato", "ser", "clothes tools toys hotel restaurant"),
    ("heavy", "pesado", "ser", "furniture containers piano stone door"),
    ("round", "redondo", "ser", "table mirror window plate stone"),
    ("interesting", "interesante", "ser", "texts ideas museum picture"),
    ("boring", "aburrido", "ser", "texts lesson museum"),
    ("difficult", "difícil", "ser", "ideas word poem"),
    ("easy", "fácil", "ser", "question problem lesson language word answer"),
    ("important", "importante", "ser", "ideas texts words city"),
    ("dangerous", "peligroso", "ser", "bear wolf lion snake street mountain bridge river"),
    ("modern", "moderno", "ser", "buildings rooms computer train bridge"),
    ("sweet", "dulce", "ser", "fruit apple orange strawberry cake cookie juice lemonade"),
    ("tired", "cansado", "estar", "people pets"),
    ("happy", "contento", "estar", "people pets monkey"),
    ("sad", "triste", "estar", "people dog"),
    ("sick", "enfermo", "estar", "people pets"),
    ("angry", "enfadado", "estar", "people dog cat bear monkey"),
    ("nervous", "nervioso", "estar", "people horse"),
    ("busy", "ocupado", "estar", "people"),
    ("worried", "preocupado", "estar", "people"),
    ("open", "abierto", "estar", "openings box bag store museum restaurant"),
    ("closed", "cerrado", "estar", "openings box store museum library restaurant"),
    ("broken", "roto", "estar", "glass cup plate window mirror lamp toy chair clock camera phone guitar"),
    ("dirty", "sucio", "estar", "clothes tableware kitchen street car truck window hand"),
    ("clean", "limpio", "estar", "clothes tableware kitchen street car room hotel hand"),
    ("full", "lleno", "estar", "containers glass cup bus train theater"),
    ("empty", "vacío", "estar", "containers glass cup bus house street"),
    ("hot", "caliente", "estar", "soup coffee tea milk water bread meat rice"),
    ("cold", "frío", "estar", "soup coffee tea milk water juice wine lemonade hand"),
    ("wet", "mojado", "estar", "clothes dog hand umbrella"),
    ("delicious", "delicioso", "estar", "food juice coffee"),
    ("hungry", "hambre", "tener", "people animals"),
    ("thirsty", "sed", "tener", "people animals"),
    ("sleepy", "sueño", "tener", "people pets"),
    ("afraid", "miedo", "tener", "people pets mouse"),
)  # fmt: skip

FEELINGS = ("tired", "sad", "happy", "sick", "angry", "nervous", "hungry", "thirsty", "sleepy")  # a reason to act
