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
    vague   its object may not exist, so that a relative clause would need the subjunctive
    along   also done in company: with my sister
    give    someone receives: le da el libro a la mujer
    maybe   someone receives, or nobody is named
    lay     the object comes to lie in a place: on the table
"""

VERBS: tuple[tuple[str, str, str, str], ...] = (
    # eating and drinking
    ("eat", "comer", "all along", "people>food@table grazers>bread+fruit+apple+carrot@nature hunters>meat@nature"),
    ("drink", "beber", "all along", "people>drinks@table animals>water+milk"),
    ("cook", "cocinar", "all", "people>rice+meat+soup+egg+potato+carrot@stove"),
    ("prepare", "preparar", "all", "people>soup+salad+coffee+tea+sandwich+lemonade+juice@stove"),
    ("taste", "probar", "all", "people>food+drinks@table"),
    ("order", "pedir", "all", "people>meals+drinks"),
    ("serve", "servir", "all", "people>meals+drinks@table"),
    ("cut", "cortar", "all", "people>bread+meat+cheese+cake+apple+tomato+potato+carrot+flower"),
    ("feed", "alimentar", "all", "people>pets@nature"),
    # having and getting
    ("have", "tener", "state plain new", "people>belongings"),
    ("want", "querer", "state plain vague", "people>goods+pets+jewels+car+bicycle+house"),
    ("need", "necesitar", "state vague", "people>handy+clothes+furniture+computer+car+bicycle+water+milk+knife+lamp"),
    ("buy", "comprar", "all plain", "people>goods+pets+jewels+flower+rose+house+car+bicycle"),
    ("sell", "vender", "all plain", "people>goods+pets+jewels+flower+rose+house+car+bicycle"),
    ("use", "usar", "all", "people>handy+computer+knife+spoon+mirror+map+bicycle+plate"),
    ("wear", "llevar", "simple", "people>clothes+jewels"),
    ("choose", "elegir", "all", "people>clothes+jewels+book+cake+name+doll+guitar"),
    ("receive", "recibir", "all", "people>letter+message+book+magazine+photo+flower+ring"),
    ("lose", "perder", "simple", "people>handy+ring+hat+glove+scarf+ball+map@out"),
    ("find", "encontrar", "simple", "people>small+pets@any animals>water+fruit"),
    ("look for", "buscar", "all vague", "people>people+pets+small+map@any"),
    ("hide", "esconder", "all", "people>key+letter+box+ring+chocolate+book+photo+toy@any"),
    ("throw", "lanzar", "all", "people>ball+stone@out"),
    # giving
    ("give", "dar", "all give", "people>book+flower+rose+key+doll+ball+hat+ring+photo+apple+cookie"),
    ("show", "mostrar", "all give", "people>pictures+book+letter+ring+bicycle+car+garden+dress"),
    ("send", "enviar", "all give maybe", "people>letter+message+photo+book+magazine+flower+map"),
    ("bring", "traer", "all give maybe", "people>food+coffee+tea+water+newspaper+flower+chair+umbrella"),
    ("lend", "prestar", "all give", "people>book+pencil+pen+umbrella+bicycle+car+coat+camera+guitar"),
    ("offer", "ofrecer", "all give", "people>cake+cookie+apple+coffee+tea+juice+chair+fruit+chocolate"),
    ("tell", "contar", "all give maybe", "people>story+secret+joke"),
    ("explain", "explicar", "all give maybe", "people>ideas+poem+map+answer+word"),
    ("put", "poner", "all lay", "people>small+tableware+lamp+basket"),
    ("leave", "dejar", "all lay", "people>small+tableware+bag+magazine"),
    # people and animals
    ("see", "ver", "simple", "people>people+animals+vehicles+sights+tree+house@out animals>people+animals@nature"),
    ("hear", "oír", "simple", "people>people+animals+song+train+bus+piano+violin animals>people+animals"),
    ("listen to", "escuchar", "all", "people>people+song+story+piano+violin+guitar@any"),
    ("look at", "mirar", "all", "people>people+animals+pictures+clock+flower+leaf+tree@out animals>people+animals"),
    ("wait for", "esperar", "all", "people>people+bus+train@any"),
    ("help", "ayudar", "all", "people>people@any"),
    ("call", "llamar", "all", "people>people"),
    ("invite", "invitar", "all", "people>people"),
    ("visit", "visitar", "all along", "people>people+museum+church+castle+city+village+farm"),
    ("know", "conocer", "state", "people>people+city+village+restaurant+hotel+museum"),
    ("love", "amar", "state", "people>people"),
    ("follow", "seguir", "all", "people>people+animals+car+bus@out animals>people+animals@nature"),
    ("chase", "perseguir", "all", "dog+cat+wolf+lion+bear>cat+rabbit+mouse+duck+hen+bird+goat+horse@nature"),
    ("bite", "morder", "all", "dog+cat+wolf+snake+mouse>people+shoe+ball+doll+apple"),
    # making and mending
    ("make", "hacer", "all", "people>cake+bread+soup+salad+sandwich+table+chair+toy+doll+dress+lemonade"),
    ("build", "construir", "all", "people>house+bridge+wall+castle+tower+boat+church+school+hospital"),
    ("break", "romper", "simple", "people>plate+cup+glass+window+mirror+lamp+toy+chair+clock@in"),
    ("repair", "reparar", "all", "people>car+bicycle+truck+bus+clock+computer+camera+chair+door+boat"),
    ("paint", "pintar", "all", "people>wall+door+house+chair+table+boat+picture+window"),
    ("draw", "dibujar", "all plain", "people>house+tree+flower+leaf+map+castle+boat+horse+bird+cat+lion@any"),
    ("plant", "plantar", "all", "people>tree+flower+rose+potato+tomato+carrot@garden"),
    ("clean", "limpiar", "all", "people>rooms+table+window+mirror+shoe+house+restaurant"),
    ("wash", "lavar", "all", "people>clothes+tableware+car+apple+tomato+strawberry+dog+horse"),
    ("open", "abrir", "all", "people>openings+box+bag+bottle+letter+umbrella+store"),
    ("close", "cerrar", "all", "people>openings+box+bag+book+umbrella+store"),
    ("carry", "cargar", "all", "people>box+bag+basket+chair+bottle+stone+piano"),
    ("push", "empujar", "all", "people>car+table+chair+box+bed+bicycle+door"),
    ("touch", "tocar", "all", "people>wall+door+hand+stone+mirror+flower+leaf+window"),
    # words and learning
    ("read", "leer", "all", "people>texts@any"),
    ("write", "escribir", "all", "people>letter+book+poem+novel+message+story+song+word+name+number@any"),
    ("say", "decir", "all", "people>word+name+number+answer"),
    ("learn", "aprender", "all", "people>word+language+song+poem+lesson"),
    ("study", "estudiar", "all along", "people>language+lesson+map+problem+poem@desk"),
    ("understand", "entender", "state", "people>ideas+letter+message+poem+book+answer+word+joke"),
    ("remember", "recordar", "state", "people>name+song+story+answer+word+number+poem+joke"),
    ("forget", "olvidar", "simple", "people>name+answer+word+number+key+umbrella+hat+glove+book"),
    ("begin", "empezar", "all", "people>lesson+book+letter+novel+poem+picture"),
    ("finish", "terminar", "all", "people>lesson+book+letter+novel+poem+picture+soup+cake"),
    ("sing", "cantar", "all along", "people>song@any"),
    ("play", "tocar", "all along", "people>instruments@any"),
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
    ("run", "correr", "all along", "people@out animals@nature"),
    ("walk", "caminar", "all along", "people@out pets@nature"),
    ("swim", "nadar", "all along", "people@waters dog+duck+frog+turtle+bear+snake@waters"),
    ("fly", "volar", "all", "bird+eagle+duck"),
    ("jump", "saltar", "all", "people@any cat+rabbit+frog+monkey+horse@nature"),
    # being about
    ("sleep", "dormir", "all", "people@any animals@nature"),
    ("rest", "descansar", "all along", "people@any animals@nature"),
    ("work", "trabajar", "all", "people@any"),
    ("work with", "trabajar con", "all", "people>people"),
    ("dance", "bailar", "all", "people@any"),
    ("dance with", "bailar con", "all", "people>people@any"),
    ("play", "jugar", "all", "children@out pets@nature"),
    ("play with", "jugar con", "all", "people>children+ball+toys+dog+cat@out cat+dog+monkey>ball+toys+cat+dog"),
    ("talk with", "hablar con", "all", "people>people@any"),
    ("think about", "pensar en", "all", "people>people+problem+question+idea+lesson+song"),
    ("live in", "vivir en", "state", "people>house+hotel+castle+city+village+forest"),
    ("smile", "sonreír", "all", "people"),
    ("cry", "llorar", "all", "people@any"),
    ("shout", "gritar", "all", "people@any"),
)  # fmt: skip

# english preposition, places: where things happen.
PLACES = {
    "in": "in:rooms+buildings",
    "desk": "in:library+classroom+school+house+office+room",
    "nature": "in:garden+park+forest+street at:beach+farm near:waters+mountain+bridge under:tree next_to:waters+tree",
    "out": "in:outside at:beach+station+farm near:waters+sights+buildings behind:buildings next_to:waters+tree+bridge",
    "any": "in:rooms+buildings+outside at:spots near:waters+sights+buildings behind:buildings+tree",
    "table": "in:kitchen+house+restaurant+hotel+garden+school+office+park at:station+beach",
    "stove": "in:kitchen+house+restaurant+hotel at:farm",
    "garden": "in:garden+park+square behind:buildings near:waters",
    "waters": "in:waters near:beach+bridge",
    "lay": "on:furniture+box under:furniture in:box+bag+basket next_to:furniture+lamp+window near:openings",
}

# subjects, preposition:places: where things are.
WHEREABOUTS = (
    ("people", "in:rooms+buildings+outside at:spots near:waters+sights behind:buildings+tree next_to:car+bus+tree"),
    ("pets", "in:garden+park+street+house+kitchen at:farm under:furniture+tree behind:house+tree next_to:tree+door"),
    ("wild", "in:garden+park+forest near:waters+mountain+bridge behind:tree under:tree next_to:waters+wall"),
    ("small tableware", "on:furniture+box under:furniture in:box+bag+basket next_to:mirror+lamp+window"),
    ("dishes", "on:table+plate+chair in:basket+bag+box next_to:glass+cup"),
    ("car bus bicycle truck", "in:street+square behind:buildings near:sights+station next_to:tree+wall"),
    ("instruments", "in:rooms next_to:furniture+openings behind:door"),
)

# The noun that stands before `of`, and what may follow.
PARTS = (
    ("son daughter friend brother sister", "adults artists"),
    ("openings", "rooms buildings castle"),
    ("map", "outside spots museum"),
    ("photo", "outside sights waters kin"),
    ("name", "adults artists buildings outside"),
)

# verbs, negated, feelings: why somebody does something, or does not.
REASONS = (
    ("eat cook order", False, "hungry"),
    ("drink", False, "thirsty"),
    ("sleep rest", False, "tired sick sleepy"),
    ("sing dance smile jump", False, "happy"),
    ("cry", False, "sad tired sick afraid hungry angry"),
    ("shout run", False, "angry afraid nervous"),
    ("work dance swim sing study walk run eat play", True, "tired sick sad sleepy"),
    ("call visit help invite clean cook", True, "tired sick busy angry"),
)

# What one does not do twice: nobody breaks a broken glass.
CLASHES = {"break": "broken", "open": "open", "close": "closed", "clean": "clean", "wash": "clean", "build": "old"}
