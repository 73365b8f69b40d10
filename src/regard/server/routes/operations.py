"""/health, /metrics, /tokenize and /detokenize."""

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from regard.server.requests import Body, StrictRoute
from regard.server.routes.generating import check_ids, generator_of
from regard.server.routes.openai_requests import String, TokenId

router = APIRouter(route_class=StrictRoute, tags=["operations"])


class TokenizeBody(Body):
    model: str = Field(max_length=200)
    prompt: String
    add_special_tokens: bool = Field(True, description="with the begin token, where the model has one")


class DetokenizeBody(Body):
    model: str = Field(max_length=200)
    tokens: Annotated[list[TokenId], Field(max_length=1_000_000)]


@router.get("/health")
async def health(request: Request) -> JSONResponse:
    """200 when all models are loaded; 503 before, and while the server is shutting down."""
    state = request.app.state
    status = "draining" if state.is_draining else "ready" if state.is_ready else "loading"
    ready = status == "ready"
    return JSONResponse({"status": status}, 200 if ready else 503, {} if ready else {"Retry-After": "5"})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters and times in Prometheus' format."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.post("/tokenize")
async def tokenize(body: TokenizeBody, request: Request) -> dict[str, Any]:
    """The token ids of a text."""
    workers = request.app.state.workers
    pipeline = generator_of(workers, body.model)
    ids = await to_thread.run_sync(pipeline.tokenizer.encode, body.prompt)
    first = pipeline.tokenizer.prepended_bos_id
    if body.add_special_tokens and first is not None:
        ids = [first, *ids]
    return {"tokens": ids, "count": len(ids), "max_model_len": pipeline.context}


@router.post("/detokenize")
async def detokenize(body: DetokenizeBody, request: Request) -> dict[str, str]:
    """The text of token ids."""
    pipeline = generator_of(request.app.state.workers, body.model)
    ids = check_ids(pipeline, body.tokens, "tokens")
    return {"prompt": await to_thread.run_sync(lambda: pipeline.tokenizer.decode(ids, skip_special_tokens=False))}
