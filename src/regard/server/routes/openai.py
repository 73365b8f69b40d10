"""OpenAI's API: /v1/completions, /v1/chat/completions and /v1/embeddings, whole or streamed."""

import asyncio
import base64
import json
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from regard.server.errors import APIError, as_api_error
from regard.server.requests import StrictRoute, until_disconnected
from regard.server.routes.generating import (
    Asked,
    chat_prompt,
    check_ids,
    completion_prompts,
    generator_of,
    make_texts,
)
from regard.server.routes.openai_requests import ChatBody, CompletionBody, EmbeddingBody, GenerationBody
from regard.server.routes.shapes import ChatShape, CompletionShape, usage
from regard.server.routes.tracing import trace_generation
from regard.server.texts import Piece, TokenScore
from regard.server.workers import Workers
from regard.tasks.encoders.encoding import embed_rows

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["OpenAI"])
NO_GRAMMAR = None


@router.post("/completions")
async def completions(body: CompletionBody, request: Request) -> Response:
    """Continue a prompt, or several."""
    workers: Workers = request.app.state.workers
    pipeline = generator_of(workers, body.model)
    prompts = await completion_prompts(pipeline, body)
    num_choices = body.n or 1
    ranked = body.best_of is not None and body.best_of > num_choices
    scored = body.logprobs is not None
    asked = make_texts(
        workers,
        body,
        prompts,
        max_tokens=16 if body.max_tokens is None else body.max_tokens,
        num_top=body.logprobs if scored else 0 if ranked else None,
        num_choices=body.best_of if ranked and body.best_of else num_choices,
        scores_prompt=bool(body.echo) and scored,
    )
    shape = CompletionShape(body.model, pipeline.tokenizer, wants_scores=scored)
    echo = [_echo(pipeline.tokenizer, prompt) for prompt in prompts] if body.echo else None
    return await _answer(request, body, asked, shape, echo, num_choices)


@router.post("/chat/completions")
async def chat(body: ChatBody, request: Request) -> Response:
    """Answer a conversation."""
    workers: Workers = request.app.state.workers
    pipeline = generator_of(workers, body.model)
    grammars = None
    if body.response_format is not None and body.response_format.type != "text":
        from regard.server.structured import grammars_of

        grammars = await to_thread.run_sync(grammars_of, pipeline.tokenizer, body.response_format)
    prompt = await chat_prompt(pipeline, body)
    asked = make_texts(
        workers,
        body,
        [prompt],
        max_tokens=body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens,
        num_top=(body.top_logprobs or 0) if body.logprobs else None,
        num_choices=body.n or 1,
        grammars=grammars,
    )
    shape = ChatShape(body.model, pipeline.tokenizer, wants_scores=bool(body.logprobs))
    return await _answer(request, body, asked, shape, None, body.n or 1)


@dataclass
class _Echo:
    """A prompt that stands before its completion, with the first of its scores."""

    text: str
    first: TokenScore


def _echo(tokenizer: Any, prompt: list[int]) -> _Echo:
    return _Echo(tokenizer.decode(prompt), TokenScore(prompt[0], math.nan))


async def _answer(
    request: Request,
    body: GenerationBody,
    asked: Asked,
    shape: CompletionShape | ChatShape,
    echo: list[_Echo] | None,
    num_choices: int,
) -> Response:
    asked.pieces.submit(asked.texts)
    if body.stream:
        events = _stream(request, body, asked, shape, echo)
        return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
    try:
        found = await until_disconnected(request, _collect(asked))
    finally:
        asked.pieces.close()
    if asked.num_choices > num_choices:
        found = _best(found, asked, num_choices)
    choices = []
    for index, one in enumerate(found):
        before = echo[index // num_choices] if echo else None
        text = (before.text if before else "") + one.text
        scores = ([before.first] if before else []) + one.scores
        choices.append(shape.choice(index, text, scores, one.finish_reason))
    counts = usage(asked.num_prompt_tokens, sum(one.num_tokens for one in found), sum(one.num_reused for one in found))
    answer = shape.whole(choices, counts)
    if body.trace:
        answer["trace"] = await trace_generation(request, body.model, asked.texts[0])
    return JSONResponse(answer)


@dataclass
class _Found:
    """A text whose pieces have all come."""

    text: str = ""
    scores: list[TokenScore] = field(default_factory=list)
    num_tokens: int = 0
    num_reused: int = 0
    finish_reason: str | None = None

    def add(self, piece: Piece) -> None:
        self.text += piece.text
        self.scores += piece.scores
        self.num_tokens, self.num_reused = piece.num_tokens, piece.num_reused
        self.finish_reason = piece.finish_reason


async def _collect(asked: Asked) -> list[_Found]:
    found = [_Found() for _ in asked.texts]
    missing = len(found)
    while missing:
        piece = await asked.pieces.next()
        if piece.error is not None:
            raise piece.error
        found[piece.index].add(piece)
        missing -= piece.is_last
    return found


def _best(found: list[_Found], asked: Asked, num_choices: int) -> list[_Found]:
    """Of each prompt the texts with the highest mean log probability."""
    best: list[_Found] = []
    for start in range(0, len(found), asked.num_choices):
        several = found[start : start + asked.num_choices]
        best += sorted(several, key=lambda one: -_mean([s.log_probability for s in one.scores]))[:num_choices]
    return best


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else -math.inf


async def _stream(
    request: Request, body: GenerationBody, asked: Asked, shape: CompletionShape | ChatShape, echo: list[_Echo] | None
) -> AsyncIterator[bytes]:
    """Server-sent events; an error is one too. Ends with [DONE]. Where the client has gone, its slots are free."""
    try:
        for text in asked.texts:
            if isinstance(shape, ChatShape):
                yield event(shape.chunk([shape.begin(text.index)]))
            elif echo:
                before = echo[text.index // asked.num_choices]
                yield event(shape.chunk([shape.delta(text.index, before.text, [before.first], None)]))
        missing, tokens, reused = len(asked.texts), 0, 0
        while missing:
            piece = await asked.pieces.next()
            if piece.error is not None:
                yield event(piece.error.body)
                break
            yield event(shape.chunk([shape.delta(piece.index, piece.text, piece.scores, piece.finish_reason)]))
            if piece.is_last:
                missing, tokens, reused = missing - 1, tokens + piece.num_tokens, reused + piece.num_reused
        if body.stream_options is not None and body.stream_options.include_usage and not missing:
            yield event(shape.chunk([], usage(asked.num_prompt_tokens, tokens, reused)))
        if body.trace and not missing:
            trace = await trace_generation(request, body.model, asked.texts[0])
            yield event(shape.chunk([]) | {"trace": trace})
        yield b"data: [DONE]\n\n"
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except Exception as error:
        yield event(as_api_error(error).body) + b"data: [DONE]\n\n"
    finally:
        asked.pieces.close()


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n\n"


# ------------------------------------------------ embeddings


@router.post("/embeddings")
async def embeddings(body: EmbeddingBody, request: Request) -> Response:
    """The vectors of texts, or of token ids."""
    workers: Workers = request.app.state.workers
    served = workers.served(body.model)
    pipeline = served.pipeline
    if not hasattr(pipeline, "embed"):
        message = f"the model {body.model} is for {served.task.name}; embeddings need an encoder"
        raise APIError(400, message, param="model", code="wrong_model")
    width = int(pipeline.model.config.width)
    if body.dimensions not in (None, width):
        raise APIError(400, f"dimensions is {body.dimensions}, this model has {width}", param="dimensions")
    given: Any = body.input
    several: list[Any] = [given] if isinstance(given, str) or isinstance(given[0], int) else given
    rows = await to_thread.run_sync(lambda: [_row(pipeline, one, n) for n, one in enumerate(several)])

    def embed(pipeline: Any, rows: Sequence[list[int]]) -> Sequence[np.ndarray]:
        return list(embed_rows(pipeline.model, rows, pipeline.pooling).numpy())

    asked = workers.answer(body.model, "embed", embed, rows, [len(row) * 4 for row in rows])
    vectors = await until_disconnected(request, asked)
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, body.encoding_format)}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(map(len, rows))
    counts = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": body.model, "usage": counts})


def _row(pipeline: Any, one: str | list[int], number: int) -> list[int]:
    tokenizer = pipeline.tokenizer
    ids = tokenizer.encode_ids_batch([one])[0] if isinstance(one, str) else check_ids(pipeline, one, "input")
    if len(ids) + 2 > pipeline.max_length:
        message = f"input {number} has {len(ids) + 2:,} tokens, this model reads {pipeline.max_length:,}; shorten it"
        raise APIError(400, message, param="input", code="context_length_exceeded")
    return [tokenizer.bos_id, *ids, tokenizer.eos_id]


def _encoded(vector: np.ndarray, form: str | None) -> Any:
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return vector.tolist()
