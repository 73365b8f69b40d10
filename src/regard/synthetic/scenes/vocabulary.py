"""All words of the texts about scenes, and all answers."""

from regard.synthetic.scenes.objects import COLORS, RELATIONS, SHAPES, SIZES, TEXTURES

NUMBERS = ("zero", "one", "two", "three", "four")
PLURALS = {shape: f"{shape}es" if shape.endswith("s") else f"{shape}s" for shape in (*SHAPES, "thing")}

ANSWERS: tuple[str, ...] = (*COLORS, *SHAPES, *SIZES, *TEXTURES, *NUMBERS, "yes", "no")

_QUESTION_WORDS = ("what", "how", "many", "color", "shape", "size", "texture", "?")
_CAPTION_WORDS = ("there", "is", "are", "the", "picture", "shows", "i", "see", "a", "and", "that", "thing")

VOCABULARY: tuple[str, ...] = tuple(
    sorted(
        {*COLORS, *SHAPES, *SIZES, *TEXTURES, *NUMBERS[1:], *PLURALS.values(), *_QUESTION_WORDS, *_CAPTION_WORDS}
        | {word for relation in RELATIONS for word in relation.split()}
    )
)
