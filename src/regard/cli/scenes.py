"""`regard scenes`: write synthetic images with captions, boxes and questions."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, app
from regard.errors import InputError
from regard.files import encode_json, write_file
from regard.printing import print_json, show

CAPTIONS, QUESTIONS = 5, 4  # of each scene


@app.command()
def scenes(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Number of scenes.")] = 16,
    part: Annotated[
        str, typer.Option(help="training, or validation: with pairs of objects that no training scene has.")
    ] = "validation",
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other scenes.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write synthetic scenes: images with captions, boxes, questions and answers.

    OUT gets scene-0.png and so on, captions.jsonl, boxes.json for `regard run --boxes`, and questions.jsonl.

    Example: `regard scenes scenes/ --count 16`
    """
    import io

    from PIL import Image

    from regard.synthetic.scenes.captions import captions
    from regard.synthetic.scenes.questions import questions
    from regard.synthetic.scenes.scene import Scenes

    generated = Scenes(seed, part)  # type: ignore[arg-type]
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} exists and is not empty; give a new folder")
    output.mkdir(parents=True, exist_ok=True)
    boxes, captioned, asked = {}, [], []
    for number in range(count):
        scene, name = generated[number], f"scene-{number}.png"
        stream = io.BytesIO()
        Image.fromarray(scene.pixels()).save(stream, "PNG")
        write_file(output / name, stream.getvalue())
        boxes[name] = [list(thing.box) for thing in scene.things]
        captioned.append({"image": name, "captions": [" ".join(one.words) for one in captions(scene, CAPTIONS)]})
        asked += [{"image": name, "question": one.text, "answer": one.answer} for one in questions(scene, QUESTIONS)]
    write_file(output / "boxes.json", encode_json(boxes))
    write_file(output / "captions.jsonl", "".join(json.dumps(one) + "\n" for one in captioned).encode())
    write_file(output / "questions.jsonl", "".join(json.dumps(one) + "\n" for one in asked).encode())
    if as_json:
        print_json({"folder": str(output), "scenes": count})
    else:
        show(f"{output}: {count} scenes with captions, boxes and questions")
