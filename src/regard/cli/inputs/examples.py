"""The command to try on a trained model: quoted as a shell takes it, with a picture that exists."""

import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.files import write_file
from regard.tasks.image_inputs import is_image

if TYPE_CHECKING:
    from regard.tasks.recipe import Recipe, TrainingInputs

PICTURE = "example.png"  # of the run's folder: a scene that was not trained on


def command_to_try(recipe: "Recipe[Any, Any, Any]", inputs: "TrainingInputs", folder: Path, trust: bool) -> str:
    """`regard run FOLDER "an input"`; for a model of images with one of the user's, or one that is drawn."""
    example = (recipe.own_example if inputs.paths else "") or recipe.example
    parts = ["regard run", shlex.quote(str(folder))]
    if recipe.takes_image:
        parts.append(shlex.quote(str(_picture(inputs.paths, folder))))
    if not (recipe.takes_image and is_image(example)):
        parts.append(shlex.quote(example) if set(example) & set('"$`\\!') else f'"{example}"')
    return " ".join([*parts, *(["--trust"] if trust else [])])


def _picture(paths: Any, folder: Path) -> Path:
    """An image of the user's folders; else a drawn scene, which is written into the run's folder."""
    for path in (path for path in paths if path.is_dir()):
        found = sorted(file for file in path.rglob("*") if is_image(file))
        if found:
            return Path(found[0])
    from PIL import Image

    from regard.synthetic.scenes.scene import Scenes

    stream = io.BytesIO()
    Image.fromarray(Scenes(1, "validation")[0].pixels()).save(stream, "PNG")
    write_file(folder / PICTURE, stream.getvalue())
    return folder / PICTURE
