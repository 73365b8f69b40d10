"""The page: its files, and what its views ask of the models. Without a model it has the lectures' own numbers."""

import io
import json
import mimetypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from regard.errors import InputError
from regard.inspection.drawing.colors import RAMPS
from regard.inspection.drawing.scene import Figure
from regard.inspection.examples import EXAMPLES, draw_example
from regard.inspection.trace import SUFFIX, Trace
from regard.inspection.views import find_view
from regard.inspection.views.base import Choices
from regard.server.errors import APIError, as_api_error
from regard.server.models import ServedModel
from regard.server.requests import StrictRoute
from regard.server.routes.looking import LookRequest, ShowRequest, trace_request
from regard.server.viewing import data
from regard.server.viewing.store import TraceStore
from regard.server.viewing.watched import Watched, read_report, read_run
from regard.tasks import show as tasks_show
from regard.tasks.base import TraceRequest
from regard.tasks.loading import load_with_task

# Nothing of the page comes from elsewhere, and nothing leaves for elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
TYPES = {".js": "text/javascript; charset=utf-8", ".md": "text/markdown; charset=utf-8"}
MAX_TRACE_BYTES = 256 << 20  # of a trace file that is dropped on the page
MAX_PATH = 200  # characters; a file system has no longer names of files
SCENES = 10_000

pages = APIRouter(include_in_schema=False)
router = APIRouter(prefix="/api/page", route_class=StrictRoute, tags=["page"])


def add_page(app: FastAPI, watched: Sequence[Watched] = ()) -> None:
    """The routes of the page; `watched` are folders of runs and of reports."""
    app.state.page_traces = TraceStore(app.state.settings.trace_megabytes << 20)
    app.state.page_watched = {one.name: one for one in watched}
    app.include_router(pages)
    app.include_router(router)


# ------------------------------------------------ files


@pages.get("/")
def index() -> Response:
    return _file("index.html")


@pages.get("/favicon.ico")
def icon() -> Response:
    return _file("icon.svg")


@pages.get("/page/figure/{name}")
def figure_part(name: str) -> Response:
    """The element that draws a figure: the same file that stands in every exported page."""
    return _file(name, "regard.inspection.drawing", allowed=("figure.js", "figure.css"))


@pages.get("/page/{path:path}")
def page_file(path: str) -> Response:
    return _file(path)


def _file(path: str, package: str = "", allowed: Sequence[str] = ()) -> Response:
    """A file of the package by its name, which has no way out of its folder."""
    parts = path.split("/")
    found = files(package).joinpath(*parts) if package else files("regard.server").joinpath("page", *parts)
    known = len(path) <= MAX_PATH and all(part and not part.startswith(".") and "\\" not in part for part in parts)
    if not known or (allowed and path not in allowed) or path.endswith(".py") or not found.is_file():
        raise APIError(404, "the page has no such file")
    suffix = Path(path).suffix
    kind = TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "text/plain"
    return Response(found.read_bytes(), media_type=kind, headers=HEADERS)


# ------------------------------------------------ what there is


@router.get("/start")
def start(request: Request) -> dict[str, Any]:
    """What the page opens with, besides /api/models."""
    lessons = sorted(one.name for one in files("regard.server").joinpath("page", "lessons").iterdir())
    return {
        "version": request.app.version,
        "is_loading": not request.app.state.is_ready,
        "ramps": RAMPS,
        "examples": EXAMPLES,
        "needs_boxes": [one.name for one in request.app.state.models if _needs_boxes(one)],
        "lessons": [name.removesuffix(".md") for name in lessons if name.endswith(".md")],
        "watched": [{"name": one.name, "kind": one.kind} for one in request.app.state.page_watched.values()],
    }


def _needs_boxes(served: ServedModel) -> bool:
    """Whether a model reads regions that somebody else has found; the others have a grid."""
    vision = getattr(served.pipeline.model.config, "vision", None)
    return served.pipeline.model.interface == "vision_language" and not getattr(vision, "grid", 0)


@router.get("/scene/{number}")
def scene(number: int) -> dict[str, Any]:
    """A drawn scene with its captions and questions: a picture to ask about."""
    from base64 import b64encode

    from PIL import Image

    from regard.synthetic.scenes.captions import captions
    from regard.synthetic.scenes.questions import questions
    from regard.synthetic.scenes.scene import Scenes

    found, stream = Scenes(1, "validation")[number % SCENES], io.BytesIO()
    Image.fromarray(found.pixels()).save(stream, "PNG")
    return {
        "image": b64encode(stream.getvalue()).decode(),
        "captions": [" ".join(one.words) for one in captions(found, 3)],
        "questions": [{"text": one.text, "answer": one.answer} for one in questions(found, 4)],
        "boxes": [list(thing.box) for thing in found.things],
    }


@router.get("/watched/{name}")
def watched(name: str, request: Request) -> dict[str, Any]:
    """A run in progress, or a report of `regard compare`, as its folder stands now."""
    table: dict[str, Watched] = request.app.state.page_watched
    if name not in table:
        raise APIError(404, f"there is no run or report of that name; wanted one of {', '.join(table) or 'none'}")
    return read_run(table[name]) if table[name].kind == "run" else read_report(table[name])


# ------------------------------------------------ figures


class FigureRequest(ShowRequest):
    """A view of a model or of a trace, or a figure of the lectures."""

    model: str = ""
    example: str | None = None
    trace: str | None = None
    watched: str | None = Field(None, description="a run, whose checkpoints are looked at")
    format: Literal["data", "html", "svg", "png", "pdf"] = "data"
    frame: int | None = Field(None, ge=0, description="the frame that a picture shows")


@router.post("/figure")
async def figure(body: FigureRequest, request: Request) -> Response:
    """The figure in one of the formats."""
    found = await _compute(request, body.model, lambda served: _figure(request, served, body))
    return Response(found, media_type=data.FORMATS[body.format], headers=HEADERS)


def _figure(request: Request, served: ServedModel | None, body: FigureRequest) -> bytes:
    values = ((one.name, getattr(body, one.name)) for one in fields(Choices))
    made: Any = {name: tuple(one) if isinstance(one, list) else one for name, one in values}
    choices = Choices(**made)
    if body.example is not None:
        found = draw_example(body.example)
    elif body.trace is not None:
        found = tasks_show.show_trace(request.app.state.page_traces.get(body.trace), body.view, choices)
    elif body.watched is not None:
        found = _of_run(request, body, choices)
    elif served is None:
        raise InputError("nothing to show; name a model, a trace or an example")
    else:
        with trace_request(served, body) as asked:
            found = tasks_show.show(served.task, served.pipeline, asked, body.view, choices)
            return _encoded(found, body)  # a frame may still need the model
    return _encoded(found, body)


def _of_run(request: Request, body: FigureRequest, choices: Choices) -> Figure:
    """A view of the checkpoints of a run that is watched."""
    run = request.app.state.page_watched.get(body.watched)
    if run is None or run.kind != "run":
        raise APIError(404, "there is no run of that name", param="watched")
    asked = TraceRequest(body.texts, body.max_new_tokens, body.target, None, body.off)
    view = find_view(body.view or "checkpoints")
    if not view.of_a_run:
        raise InputError(f"the view {view.name} is of one model; a run has the view checkpoints")
    return tasks_show.show_run(run.path, asked, view, choices, load_with_task)


def _encoded(found: Figure, body: FigureRequest) -> bytes:
    if body.frame is not None:
        if body.frame >= len(found.frames):
            raise InputError(f"frame {body.frame}: wanted 0 to {len(found.frames) - 1}")
        found = Figure(found.frames, found.choice, body.frame, found.notes)
    return data.encode_figure(found, body.format)


# ------------------------------------------------ traces


class TraceRequestBody(LookRequest):
    """One pass of a model, whose values the page then asks for."""

    taps: list[str] = Field([data.WEIGHTS], min_length=1, max_length=100)


@router.post("/trace")
async def trace(body: TraceRequestBody, request: Request) -> dict[str, Any]:
    """Run the model once; what the trace says, and its name."""

    def work(served: ServedModel) -> Trace:
        with trace_request(served, body) as asked:
            return data.trace_of(served.task, served.pipeline, asked, body.taps)

    return _kept(request, await _compute(request, body.model, work))


@router.post("/open")
async def open_trace(request: Request) -> dict[str, Any]:
    """A trace file that `regard trace` wrote."""
    sent = await request.body()
    if len(sent) > MAX_TRACE_BYTES:
        raise APIError(413, f"the trace has {len(sent):,} bytes, at most {MAX_TRACE_BYTES:,} wanted")

    def work(_served: ServedModel | None) -> Trace:
        with NamedTemporaryFile(prefix="regard-", suffix=SUFFIX) as file:
            file.write(sent)
            file.flush()
            try:
                return Trace.open(Path(file.name))
            except InputError as error:
                raise InputError(str(error).replace(file.name, "the file")) from error

    return _kept(request, await _compute(request, "", work))


def _kept(request: Request, found: Trace) -> dict[str, Any]:
    name = request.app.state.page_traces.add(found)
    return {"id": name, **data.trace_json(found)}


@router.get("/trace/{name}")
def kept_trace(name: str, request: Request) -> dict[str, Any]:
    """What a kept trace says."""
    return {"id": name, **data.trace_json(request.app.state.page_traces.get(name))}


@router.get("/trace/{name}/atlas")
def atlas(name: str, request: Request) -> Response:
    return _packed(data.atlas(request.app.state.page_traces.get(name)))


@router.get("/trace/{name}/values")
def values(name: str, paths: str, request: Request, head: int | None = None) -> Response:
    """Values by their paths, which commas separate."""
    return _packed(data.value_of(request.app.state.page_traces.get(name), paths.split(","), head))


@router.get("/trace/{name}/file")
def trace_file(name: str, request: Request) -> Response:
    """The trace as `regard show` opens it."""
    from regard.server.routes.looking import trace_bytes

    found = trace_bytes(request.app.state.page_traces.get(name))
    return Response(found, media_type="application/octet-stream", headers=HEADERS)


def _packed(body: bytes) -> Response:
    return Response(body, media_type="application/octet-stream", headers=HEADERS)


# ------------------------------------------------ answers


@router.post("/predict")
async def predict(body: LookRequest, request: Request) -> Response:
    """The logits of the next token, or of each [MASK]."""

    def work(served: ServedModel) -> bytes:
        with trace_request(served, body) as asked:
            return data.predictions(served.task, served.pipeline, asked)

    return _packed(await _compute(request, body.model, work))


@router.post("/answer")
async def answer(body: LookRequest, request: Request) -> Response:
    """What the model answers, with heads switched off if the request says so."""

    def work(served: ServedModel) -> Any:
        with trace_request(served, body) as asked:
            return data.answer_of(served.task, served.pipeline, asked)

    found = await _compute(request, body.model, work)
    return Response(json.dumps({"answer": found}, default=_plain), media_type="application/json", headers=HEADERS)


class DecodeRequest(LookRequest):
    """Greedy decoding, step by step."""

    cached: bool = True


@router.post("/decode")
async def decode(body: DecodeRequest, request: Request) -> StreamingResponse:
    """One line of JSON a token; the first says what the KV cache keeps of a position."""
    steps = _Steps(body)
    first = await _compute(request, body.model, steps.open)

    async def lines() -> Any:
        try:
            yield first
            while line := await _compute(request, body.model, steps.next):
                yield line
        except Exception as error:  # the status is sent already
            yield json.dumps(as_api_error(error).body) + "\n"
        finally:
            steps.close()

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=HEADERS)


class _Steps:
    """A decoding that is under way; between its steps the model is free for other requests."""

    def __init__(self, body: DecodeRequest) -> None:
        self.body = body
        self._request: Any = None
        self._steps: Iterator[dict[str, Any]] = iter(())

    def open(self, served: ServedModel) -> str:
        self._request = trace_request(served, self.body)
        asked = self._request.__enter__()
        count = self.body.max_new_tokens or 24
        self._steps = data.decode(served.task, served.pipeline, asked, count, cached=self.body.cached)
        try:
            cache = data.cache_json(served.task, served.pipeline, asked)
        except BaseException:
            self.close()
            raise
        return json.dumps({"cache": cache}) + "\n"

    def next(self, _served: ServedModel) -> str:
        found = next(self._steps, None)
        return "" if found is None else json.dumps(found) + "\n"

    def close(self) -> None:
        if self._request is not None:
            self._request.__exit__(None, None, None)
            self._request = None


def _plain(value: Any) -> Any:
    """Numbers and arrays of an answer as JSON has them."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


async def _compute(request: Request, model: str, work: Callable[[Any], Any]) -> Any:
    """With a model, or where none is named off the event loop all the same."""
    if model:
        return await request.app.state.compute(model, work)
    from anyio import to_thread

    return await to_thread.run_sync(work, None)
