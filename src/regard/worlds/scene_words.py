"""All words in which this world speaks of a scene, and all answers to what it asks."""

from regard.worlds.scene_things import COLORS, SHAPES, SIZES, TEXTURES

NUMBERS = ("zero", "one", "two", "three", "four")
PLURALS = {shape: f"{shape}es" if shape.endswith("s") else f"{shape}s" for shape in (*SHAPES, "thing")}

ANSWERS: tuple[str, ...] = (*COLORS, *SHAPES, *SIZES, *TEXTURES, *NUMBERS, "yes", "no")

_SMALL_WORDS = """? a above and are below color how i is left many of picture right see shape shows size texture that the
there thing things what""".split()

VOCABULARY: tuple[str, ...] = tuple(
    sorted({*COLORS, *SHAPES, *SIZES, *TEXTURES, *NUMBERS[1:], *PLURALS.values(), *_SMALL_WORDS})
)
