"""Our own routes, one a task: /api/translate, fill, classify, tag, caption, answer and match.

The inputs of several requests with the same options are one batch.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Request
from pydantic import Field

from regard.generation import Beam, Greedy
from regard.server.errors import APIError
from regard.server.models import ServedModel
from regard.server.requests import Body, StrictRoute, until_disconnected
from regard.server.routes.looking import Box, LookRequest, image_bytes, make_trace
from regard.server.workers import Workers

router = APIRouter(prefix="/api", route_class=StrictRoute, tags=["tasks"])
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=128)]
PATTERNS = ["*.weights"]


class TaskBody(Body):
    model: str = Field(max_length=200)
    trace: bool = Field(False, description="answer with the id of a trace of the first input: GET /api/trace/ID")


class TranslateBody(TaskBody):
    texts: Texts
    num_beams: int | None = Field(None, ge=1, le=16, description="1: greedy; none: as the model does by default")
    length_penalty: float = Field(1.0, ge=0, le=10)
    alignment: bool = Field(False, description="with the attention over the words of the source")


class FillBody(TaskBody):
    texts: Texts
    num_predictions: int = Field(5, ge=1, le=100)


class ClassifyBody(TaskBody):
    texts: Texts
    seconds: Texts | None = Field(None, description="the second texts of pairs")


class TagBody(TaskBody):
    texts: Texts


class CaptionBody(TaskBody):
    image: str = Field(description="a PNG or JPEG file in base64")
    num_beams: int | None = Field(None, ge=1, le=16)


class AnswerBody(TaskBody):
    image: str = Field(description="a PNG or JPEG file in base64")
    question: Text
    boxes: list[Box] | None = Field(None, max_length=1000)


class MatchBody(TaskBody):
    image: str = Field(description="a PNG or JPEG file in base64")
    texts: Texts
    boxes: list[Box] | None = Field(None, max_length=1000)


@router.post("/translate")
async def translate(body: TranslateBody, request: Request) -> dict[str, Any]:
    """Translate texts."""
    _check(request, body.model, "translation")
    strategy: Any = None
    if body.num_beams is not None:
        strategy = Greedy() if body.num_beams == 1 else Beam(body.num_beams, body.length_penalty)

    def work(pipeline: Any, texts: Sequence[str]) -> list[dict[str, Any]]:
        return [_translation(one) for one in pipeline.run_all(texts, strategy, alignment=body.alignment)]

    key = ("translate", str(strategy), body.alignment)
    found = await _answers(request, body.model, key, work, body.texts)
    return await _with_trace(request, body, {"translations": found}, texts=body.texts[:1])


def _translation(one: Any) -> dict[str, Any]:
    best = one.translations[0]
    found = {"text": best.text, "score": number(best.score), "ended": best.ended}
    if best.alignment is not None:
        aligned = best.alignment
        found["alignment"] = {
            "source": list(aligned.source_words),
            "target": list(aligned.target_words),
            "weights": aligned.words.tolist(),
        }
    return found


@router.post("/fill")
async def fill(body: FillBody, request: Request) -> dict[str, Any]:
    """Fill in [MASK]."""
    _check(request, body.model, "masked-lm")

    def work(pipeline: Any, texts: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {
                "text": one.text,
                "masks": [[{"token": p.token, "probability": p.probability} for p in mask] for mask in one.masks],
            }
            for one in pipeline.fill(texts, body.num_predictions)
        ]

    found = await _answers(request, body.model, ("fill", body.num_predictions), work, body.texts)
    return await _with_trace(request, body, {"filled": found}, texts=body.texts[:1])


@router.post("/classify")
async def classify(body: ClassifyBody, request: Request) -> dict[str, Any]:
    """Classify texts, or pairs of texts."""
    _check(request, body.model, "classification")
    if body.seconds is not None and len(body.seconds) != len(body.texts):
        message = f"seconds has {len(body.seconds)} texts, wanted {len(body.texts)}, one for each of texts"
        raise APIError(400, message, param="seconds")

    def work(pipeline: Any, rows: Sequence[tuple[str, str | None]]) -> list[dict[str, Any]]:
        texts, seconds = [text for text, _ in rows], [second for _, second in rows]
        given = None if seconds[0] is None else seconds
        return [
            {"label": one.label, "score": one.score, "probabilities": one.probabilities}
            for one in pipeline.run_all(texts, given)
        ]

    others: Sequence[str | None] = body.seconds or [None] * len(body.texts)
    rows = list(zip(body.texts, others, strict=True))
    costs = [len(text) + len(second or "") for text, second in rows]
    found = await _answers(request, body.model, ("classify", body.seconds is None), work, rows, costs)
    inputs = [body.texts[0], *([] if body.seconds is None else body.seconds[:1])]
    return await _with_trace(request, body, {"classified": found}, texts=inputs)


@router.post("/tag")
async def tag(body: TagBody, request: Request) -> dict[str, Any]:
    """Label the words of texts."""
    _check(request, body.model, "tagging")

    def work(pipeline: Any, texts: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {
                "words": [{"text": w.text, "label": w.label, "probability": w.probability} for w in one.words],
                "entities": [{"text": e.text, "type": e.type} for e in one.entities],
            }
            for one in pipeline.run_all(texts)
        ]

    found = await _answers(request, body.model, "tag", work, body.texts)
    return await _with_trace(request, body, {"tagged": found}, texts=body.texts[:1])


@router.post("/caption")
async def caption(body: CaptionBody, request: Request) -> dict[str, Any]:
    """Describe an image."""
    _check(request, body.model, "captioning")
    strategy: Any = None
    if body.num_beams is not None:
        strategy = Greedy() if body.num_beams == 1 else Beam(body.num_beams)

    def work(pipeline: Any, images: Sequence[bytes]) -> list[dict[str, Any]]:
        return [
            {
                "text": one.text,
                "words": list(one.words),
                "score": number(one.score),
                "attention": one.attention.tolist(),
            }
            for one in pipeline.run_all(images, strategy)
        ]

    image = await to_thread.run_sync(image_bytes, body.image)
    found = await _answers(request, body.model, ("caption", str(strategy)), work, [image], [2000])
    return await _with_trace(request, body, found[0], image=body.image)


@router.post("/answer")
async def answer(body: AnswerBody, request: Request) -> dict[str, Any]:
    """Answer a question about an image."""
    _check(request, body.model, "visual-question-answering")

    def work(pipeline: Any, rows: Sequence[tuple[bytes, str, Any]]) -> list[dict[str, Any]]:
        images = [pipeline.regions_of(image, boxes) for image, _, boxes in rows]
        return [
            {"answer": one.answer, "probability": one.probability, "probabilities": one.probabilities}
            for one in pipeline.run_all([question for _, question, _ in rows], images)
        ]

    image = await to_thread.run_sync(image_bytes, body.image)
    row = (image, body.question, body.boxes)
    found = await _answers(request, body.model, "answer", work, [row], [2000])
    return await _with_trace(request, body, found[0], texts=[body.question], image=body.image, boxes=body.boxes)


@router.post("/match")
async def match(body: MatchBody, request: Request) -> dict[str, Any]:
    """How well texts match an image, the best first."""
    _check(request, body.model, "retrieval", "image-text-pretraining")

    def work(pipeline: Any, rows: Sequence[tuple[bytes, Any, Any]]) -> list[list[dict[str, Any]]]:
        found = []
        for image, texts, boxes in rows:
            ranked = pipeline.rank_texts(pipeline.regions_of(image, boxes), texts)
            found.append(
                [{"text": texts[one.number], "score": one.score, "probability": one.probability} for one in ranked]
            )
        return found

    image = await to_thread.run_sync(image_bytes, body.image)
    row = (image, list(body.texts), body.boxes)
    (found,) = await _answers(request, body.model, "match", work, [row], [1000 * len(body.texts)])
    return await _with_trace(
        request, body, {"matches": found}, texts=body.texts[:1], image=body.image, boxes=body.boxes
    )


# ------------------------------------------------ what they share


def _check(request: Request, model: str, *tasks: str) -> ServedModel:
    """APIError unless the model is for one of these tasks."""
    workers: Workers = request.app.state.workers
    served = workers.served(model)
    if served.task.name not in tasks:
        message = f"the model {model} is for {served.task.name}; this route needs a model for {' or '.join(tasks)}"
        raise APIError(400, message, param="model", code="wrong_model")
    return served


async def _answers(
    request: Request, model: str, key: Any, work: Any, values: Sequence[Any], costs: Sequence[int] | None = None
) -> list[Any]:
    workers: Workers = request.app.state.workers
    asked = workers.answer(model, key, work, values, [len(one) for one in values] if costs is None else costs)
    return await until_disconnected(request, asked)


async def _with_trace(request: Request, body: TaskBody, answer: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    """The answer, with the id of a trace where one is asked for."""
    if not body.trace:
        return answer
    asked = LookRequest(model=body.model, **inputs)
    workers: Workers = request.app.state.workers
    found = await until_disconnected(
        request, workers.run(body.model, lambda served: make_trace(served, asked, PATTERNS))
    )
    return answer | {"trace": request.app.state.traces.add(found)}


def number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
