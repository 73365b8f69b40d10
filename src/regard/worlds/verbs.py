"""Who does what to what, and where: each verb with the frames it fits.

A row is english, spanish, mode, frames. A second English word is a particle that follows the verb (`look for`),
a second Spanish word the preposition its object takes (`hablar con`). A frame reads `subjects>objects@places`
with groups of nouns joined by +; objects and places may be missing.

The mode says which tenses make sense, then what else is special:
    all     present, progressive, past
    simple  present, past: nobody is losing a key all morning
    state   present only and never with a time; its past would be an imperfect, which English does not show
    plain   never takes the personal a: comprar, vender, tener
    new     its object is new to the listener: she has a car, two cars
    give    someone receives: le da el libro a la mujer
    lay     the object comes to lie in a place: on the table
"""

VERBS: tuple[tuple[str, str, str, str], ...] = (
    # eating and drinking
    ("eat", "comer", "all", "people>food@table animals>bread+meat+fruit+apple+carrot@out"),
    ("drink", "beber", "all", "people>drinks@table animals>water+milk"),
    ("cook", "cocinar", "all", "people>rice+meat+soup+egg+potato+carrot@stove"),
    ("prepare", "preparar", "all", "people>soup+salad+coffee+tea+sandwich+lemonade+juice@stove"),
    ("taste", "probar", "all", "people>food+drinks@table"),
    ("order", "pedir", "all", "people>meals+drinks"),
    ("serve", "servir", "all", "people>meals+drinks@table"),
    ("cut", "cortar", "all", "people>bread+meat+cheese+cake+apple+tomato+potato+carrot+flower"),
    ("feed", "alimentar", "all", "people>pets@out"),
    # having and getting
    ("have", "tener", "state plain new", "people>tools+clothes+car+bicycle+pets+toys+house+kin+problem+idea+ring"),
    ("want", "querer", "state plain", "people>goods+pets+jewels+car+bicycle+house"),
    ("need", "necesitar", "state", "people>handy+clothes+furniture+computer+car+bicycle+water+milk+knife+lamp"),
    ("buy", "comprar", "all plain", "people>goods+pets+jewels+flower+rose+house+car+bicycle"),
    ("sell", "vender", "all plain", "people>goods+pets+jewels+flower+rose+house+car+bicycle"),
    ("use", "usar", "all", "people>handy+computer+knife+spoon+mirror+map+bicycle+plate@any"),
    ("wear", "llevar", "simple", "people>clothes+jewels"),
    ("choose", "elegir", "all", "people>clothes+jewels+book+cake+name+doll+guitar"),
    ("receive", "recibir", "all", "people>letter+message+book+magazine+photo+flower+ring"),
    ("lose", "perder", "simple", "people>handy+ring+hat+glove+scarf+ball+map@out"),
    ("find", "encontrar", "simple", "people>small+pets@any animals>water+fruit+ball"),
    ("look for", "buscar", "all", "people>people+pets+small+map@any"),
    ("hide", "esconder", "all", "people>key+letter+box+ring+chocolate+book+photo+toy@any"),
    ("throw", "lanzar", "all", "people>ball+stone@out"),
    # giving
    ("give", "dar", "all give", "people>book+flower+rose+key+doll+ball+hat+ring+photo+apple+cookie"),
    ("show", "mostrar", "all give", "people>pictures+book+letter+ring+bicycle+car+garden+dress"),
    ("send", "enviar", "all give", "people>letter+message+photo+book+magazine+flower+map"),
    ("bring", "traer", "all give", "people>food+coffee+tea+water+newspaper+flower+chair+umbrella"),
    ("lend", "prestar", "all give", "people>book+pencil+pen+umbrella+bicycle+car+coat+camera+guitar"),
    ("offer", "ofrecer", "all give", "people>cake+cookie+apple+coffee+tea+juice+chair+fruit+chocolate"),
    ("tell", "contar", "all give", "people>story+secret+joke"),
    ("explain", "explicar", "all give", "people>ideas+poem+map+answer+word"),
    ("put", "poner", "all lay", "people>small+tableware+lamp+basket"),
    ("leave", "dejar", "all lay", "people>small+tableware+bag+magazine"),
    # people and animals
    ("see", "ver", "simple", "people>people+animals+vehicles+sights+tree+house@out animals>people+animals@out"),
    ("hear", "oír", "simple", "people>people+animals+song+train+bus+piano+violin animals>people+animals"),
    ("listen to", "escuchar", "all", "people>people+song+story+piano+violin+guitar@any"),
    ("look at", "mirar", "all", "people>people+animals+pictures+clock+flower+tree+river@out animals>people+animals"),
    ("wait for", "esperar", "all", "people>people+bus+train@any"),
    ("help", "ayudar", "all", "people>people@any"),
    ("call", "llamar", "all", "people>people"),
    ("invite", "invitar", "all", "people>people"),
    ("visit", "visitar", "all", "people>people+museum+church+castle+city+village+farm"),
    ("know", "conocer", "state", "people>people+city+village+restaurant+hotel+museum"),
    ("love", "amar", "state", "people>people"),
    ("follow", "seguir", "all", "people>people+animals+car+bus@out animals>people+animals@out"),
    ("chase", "perseguir", "all", "dog+cat+wolf+lion+bear>cat+rabbit+mouse+duck+hen+bird+goat+horse@out"),
    ("bite", "morder", "all", "dog+cat+wolf+snake+mouse>people+shoe+ball+doll+apple"),
    # making and mending
    ("make", "hacer", "all", "people>cake+bread+soup+salad+sandwich+table+chair+toy+doll+dress+lemonade"),
    ("build", "construir", "all", "people>house+bridge+wall+castle+tower+boat+church+school+hospital"),
    ("break", "romper", "simple", "people>plate+cup+glass+window+mirror+lamp+toy+chair+clock@in"),
    ("repair", "reparar", "all", "people>car+bicycle+truck+bus+clock+computer+camera+chair+door+boat"),
    ("paint", "pintar", "all", "people>wall+door+house+chair+table+boat+picture+window"),
    ("draw", "dibujar", "all plain", "people>house+tree+flower+map+hand+foot+castle+boat+horse+bird+cat+lion@any"),
    ("plant", "plantar", "all", "people>tree+flower+rose+potato+tomato+carrot@garden"),
    ("clean", "limpiar", "all", "people>rooms+table+window+mirror+shoe+house+restaurant"),
    ("wash", "lavar", "all", "people>clothes+tableware+car+apple+tomato+strawberry+dog+horse"),
    ("open", "abrir", "all", "people>openings+box+bag+bottle+letter+umbrella+store"),
    ("close", "cerrar", "all", "people>openings+box+bag+book+umbrella+store"),
    ("carry", "cargar", "all", "people>box+bag+basket+chair+bottle+stone+piano"),
    ("push", "empujar", "all", "people>car+table+chair+box+bed+bicycle+door"),
    ("touch", "tocar", "all", "people>wall+door+hand+stone+mirror+flower+window"),
    # words and learning
    ("read", "leer", "all", "people>texts@any"),
    ("write", "escribir", "all", "people>letter+book+poem+novel+message+story+song+word+name+number@any"),
    ("say", "decir", "all", "people>word+name+number+answer"),
    ("learn", "aprender", "all", "people>word+language+song+poem+lesson"),
    ("study", "estudiar", "all", "people>language+lesson+map+problem+poem@in"),
    ("understand", "entender", "state", "people>ideas+letter+message+poem+book+answer+word+joke"),
    ("remember", "recordar", "state", "people>name+song+story+answer+word+number+poem+joke"),
    ("forget", "olvidar", "simple", "people>name+answer+word+number+key+umbrella+hat+glove+book"),
    ("begin", "empezar", "all", "people>lesson+book+letter+novel+poem+picture"),
    ("finish", "terminar", "all", "people>lesson+book+letter+novel+poem+picture+soup+cake"),
    ("sing", "cantar", "all", "people>song@any"),
    ("play", "tocar", "all", "people>instruments@any"),
    # moving
    ("drive", "conducir", "all", "people>car+bus+truck"),
    ("cross", "cruzar", "all", "people>street+river+bridge+square animals>street+river+bridge"),
    ("climb", "escalar", "all", "people>mountain+wall+tower"),
    ("go to", "ir a", "simple", "people>buildings+outside+spots+office"),
    ("come to", "venir a", "simple", "people>buildings+outside+spots+office"),
    ("return to", "regresar a", "all", "people>buildings+outside+spots+office+kitchen"),
    ("travel to", "viajar a", "all", "people>city+village+beach+farm+castle+mountain+lake"),
    ("arrive at", "llegar a", "all", "people>buildings+spots+park+market+castle+river"),
    ("enter", "entrar en", "all", "people>buildings+rooms+garden+castle+park+city pets>house+kitchen+garden"),
    ("run", "correr", "all", "people@out animals@out"),
    ("walk", "caminar", "all", "people@out pets@out"),
    ("swim", "nadar", "all", "people@waters dog+duck+frog+turtle+bear+snake@waters"),
    ("fly", "volar", "all", "bird+eagle+duck"),
    ("jump", "saltar", "all", "people@any cat+rabbit+frog+monkey+horse@out"),
    # being about
    ("sleep", "dormir", "all", "people@any animals@out"),
    ("rest", "descansar", "all", "people@any animals@out"),
    ("work", "trabajar", "all", "people@any"),
    ("work with", "trabajar con", "all", "people>people"),
    ("dance", "bailar", "all", "people@any"),
    ("dance with", "bailar con", "all", "people>people@any"),
    ("play", "jugar", "all", "children@out pets@out"),
    ("play with", "jugar con", "all", "people>children+ball+toys+dog+cat@out cat+dog+monkey>ball+toys+cat+dog"),
    ("talk with", "hablar con", "all", "people>people@any"),
    ("think about", "pensar en", "all", "people>people+problem+question+idea+lesson+song"),
    ("live in", "vivir en", "state", "people>house+hotel+castle+city+village+farm+forest"),
    ("smile", "sonreír", "all", "people"),
    ("cry", "llorar", "all", "people@any"),
    ("shout", "gritar", "all", "people@any"),
)  # fmt: skip

# english preposition, places: where things happen.
PLACES = {
    "in": "in:rooms+buildings at:station+factory",
    "out": "in:outside at:beach+station+farm near:waters+sights+buildings behind:buildings next_to:waters+tree+bridge",
    "any": "in:rooms+buildings+outside at:spots near:waters+sights+buildings behind:buildings+tree",
    "table": "in:kitchen+house+restaurant+hotel+garden+school+office+park at:station+beach",
    "stove": "in:kitchen+house+restaurant+hotel at:farm",
    "garden": "in:garden+park+square behind:buildings near:waters",
    "waters": "in:waters near:beach+bridge",
    "lay": "on:furniture+box under:furniture in:containers next_to:furniture+lamp+window near:openings",
}

# subjects, preposition:places: where things are.
WHEREABOUTS = (
    ("people", "in:rooms+buildings+outside at:spots near:waters+sights behind:buildings+tree next_to:car+bus+tree"),
    ("animals", "in:outside under:furniture+tree near:waters+sights behind:buildings+tree next_to:tree+wall"),
    ("small tableware", "on:furniture+box under:furniture in:containers next_to:mirror+lamp+window"),
    ("dishes", "on:table+plate+chair in:basket+bag+box next_to:glass+cup"),
    ("car bus bicycle truck", "in:street+square behind:buildings near:sights+station next_to:tree+wall"),
    ("instruments", "in:rooms next_to:furniture+openings behind:door"),
)

# The noun that stands before `of`, and what may follow.
PARTS = (
    ("son daughter wife husband friend brother sister", "adults artists"),
    ("openings", "rooms buildings castle"),
    ("map", "outside spots museum"),
    ("photo", "outside sights waters kin"),
    ("name", "adults artists buildings outside"),
)
