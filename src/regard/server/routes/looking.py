"""/api/trace and /api/show: a trace of a model as the bytes of its file, and a view as the data of its figure."""

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import Field, Strict

from regard.errors import InputError
from regard.images.containers import detect_format
from regard.images.decoding import read_image
from regard.inspection.drawing.html import figure_data
from regard.inspection.examples import EXAMPLES, draw_example
from regard.inspection.views import VIEWS, find_view
from regard.inspection.views.base import Choices
from regard.server.errors import APIError
from regard.server.models import ServedModel
from regard.server.requests import Body, StrictRoute, until_disconnected
from regard.server.routes.tracing import trace_bytes
from regard.tasks import show as tasks_show
from regard.tasks.base import TraceRequest

T = TypeVar("T")
MAX_TEXTS = 8
MAX_NEW_TOKENS = 256
Text = Annotated[str, Field(max_length=100_000)]
Box = Annotated[tuple[float, float, float, float], Strict(False)]  # JSON has arrays, not tuples
Link = Annotated[tuple[int, int], Strict(False)]
router = APIRouter(prefix="/api", route_class=StrictRoute, tags=["look inside"])


class LookRequest(Body):
    """One input of a model to look inside."""

    model: str = Field(min_length=1, max_length=200)
    texts: list[Text] = Field([], max_length=MAX_TEXTS, description="a text; several where a view compares them")
    image: str | None = Field(None, description="a PNG or JPEG file in base64, of a model that takes images")
    boxes: list[Box] | None = Field(None, max_length=1000, description="left, top, right, bottom in pixels")
    max_new_tokens: int | None = Field(None, ge=1, le=MAX_NEW_TOKENS)
    target: Text | None = Field(None, description="look at this translation or caption, not the model's own")
    off: list[Text] = Field([], max_length=1000, description="heads to switch off, as PATH:HEAD")


class TracedRequest(LookRequest):
    taps: list[Text] = Field(["*"], min_length=1, max_length=100, description="patterns of the values to record")


class ShowRequest(LookRequest):
    view: str | None = Field(None, description="None: what says most about such a model")
    attention: str | None = None
    layer: int | None = Field(None, ge=0)
    head: int | None = Field(None, ge=0)
    token: str | None = None
    temperature: float = Field(1.0, ge=0.01, le=100)
    top_k: int | None = Field(None, ge=1)
    top_p: float | None = Field(None, gt=0, le=1)
    limit: int = Field(10, ge=1, le=1000)
    gold: list[Link] = Field([], max_length=10_000)
    possible: list[Link] = Field([], max_length=10_000)


@router.post("/trace", response_class=Response)
async def trace(body: TracedRequest, request: Request) -> Response:
    """The inner values of one pass: the bytes of a trace file, as `regard trace` writes it."""
    found = await _compute(request, body.model, lambda served: make_trace(served, body, body.taps))
    return Response(found, media_type="application/octet-stream")


@router.post("/show")
async def show(body: ShowRequest, request: Request) -> Response:
    """A view of a model, as the data that <regard-figure> draws."""

    def draw(served: ServedModel) -> bytes:
        if body.view is not None and find_view(body.view).of_a_run:
            raise InputError(f"the view {body.view} is of a run's folder; use `regard show`")
        chosen: dict[str, Any] = {one.name: getattr(body, one.name) for one in fields(Choices)}
        choices = Choices(**chosen | {"gold": tuple(body.gold), "possible": tuple(body.possible)})
        with trace_request(served, body) as asked:
            figure = tasks_show.show(served.task, served.pipeline, asked, body.view, choices)
            return json.dumps(figure_data(figure) | {"notes": list(figure.notes)}, allow_nan=False).encode()

    return Response(await _compute(request, body.model, draw), media_type="application/json")


@router.get("/examples/{name}")
def example(name: str) -> Response:
    """A figure of the lectures, which needs no model."""
    if name not in EXAMPLES:
        raise APIError(404, f"there is no such example; wanted one of {', '.join(EXAMPLES)}", param="name")
    return Response(json.dumps(figure_data(draw_example(name))), media_type="application/json")


@router.get("/views")
def views() -> dict[str, Any]:
    """All views and all examples, with a line about each."""
    return {"views": {name: find_view(name).summary for name in VIEWS}, "examples": EXAMPLES}


def make_trace(served: ServedModel, body: LookRequest, taps: list[str]) -> bytes:
    """A trace as the bytes of its file."""
    with trace_request(served, body) as asked:
        return trace_bytes(tasks_show.trace(served.task, served.pipeline, asked, taps))


@contextmanager
def trace_request(served: ServedModel, body: LookRequest) -> Iterator[TraceRequest]:
    """The request as the tasks take it; its image and boxes stand in files of our own meanwhile."""
    if not served.task.takes_images:
        for name in ("image", "boxes"):
            if getattr(body, name) is not None:
                raise APIError(400, f"the model {served.name} takes texts, not images; leave {name} out", param=name)
        yield TraceRequest(body.texts, body.max_new_tokens, body.target, None, body.off)
        return
    with TemporaryDirectory(prefix="regard-") as folder:
        data = image_bytes(body.image)
        image = Path(folder) / ("image.png" if detect_format(data) == "PNG" else "image.jpg")
        image.write_bytes(data)
        boxes = None
        if body.boxes is not None:
            boxes = Path(folder) / "boxes.json"
            boxes.write_text(json.dumps({image.name: body.boxes}))
        yield TraceRequest([str(image), *body.texts], body.max_new_tokens, body.target, boxes, body.off)


def image_bytes(image: str | None) -> bytes:
    """The bytes of an image in base64, or in a data: URL; nothing is fetched. Decoded once, so that it is an image."""
    if image is None:
        raise APIError(400, "this model takes an image; give one in base64", param="image", code="missing_image")
    kind, comma, rest = image.partition(",")
    if comma and kind in ("data:image/png;base64", "data:image/jpeg;base64"):
        image = rest
    try:
        found = base64.b64decode(image, validate=True)
    except (binascii.Error, ValueError) as error:
        raise APIError(
            400, "the image is not base64 of a PNG or JPEG file; URLs are not fetched", param="image"
        ) from error
    read_image(found)
    return found


async def _compute(request: Request, model: str, work: Callable[[ServedModel], T]) -> T:
    return await until_disconnected(request, request.app.state.workers.run(model, work))
