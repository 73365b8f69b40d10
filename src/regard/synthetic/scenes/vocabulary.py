"""All words in which this world speaks of a scene, and all answers to what it asks."""

from regard.synthetic.scenes.objects import COLORS, RELATIONS, SHAPES, SIZES, TEXTURES

NUMBERS = ("zero", "one", "two", "three", "four")
PLURALS = {shape: f"{shape}es" if shape.endswith("s") else f"{shape}s" for shape in (*SHAPES, "thing")}

ANSWERS: tuple[str, ...] = (*COLORS, *SHAPES, *SIZES, *TEXTURES, *NUMBERS, "yes", "no")

_ASKING = ("what", "how", "many", "color", "shape", "size", "texture", "?")
_SAYING = ("there", "is", "are", "the", "picture", "shows", "i", "see", "a", "and", "that", "thing")

VOCABULARY: tuple[str, ...] = tuple(
    sorted(
        {*COLORS, *SHAPES, *SIZES, *TEXTURES, *NUMBERS[1:], *PLURALS.values(), *_ASKING, *_SAYING}
        | {word for relation in RELATIONS for word in relation.split()}
    )
)
