"""/v1/models and /api/models: what this server serves."""

import time
from typing import Any

from fastapi import APIRouter, Request

from regard.inspection.views import views_of
from regard.server.errors import unknown_model
from regard.server.models import ServedModel
from regard.tasks.show import describe

router = APIRouter(tags=["models"])
STARTED = int(time.time())


@router.get("/v1/models")
def list_models(request: Request) -> dict[str, Any]:
    """The models as OpenAI's API lists them."""
    return {"object": "list", "data": [_as_openai(name) for name in request.app.state.models.names]}


@router.get("/v1/models/{model}")
def retrieve_model(model: str, request: Request) -> dict[str, Any]:
    """One of them."""
    names = request.app.state.models.names
    if model not in names:
        raise unknown_model(model, names)
    return _as_openai(model)


@router.get("/api/models")
def describe_models(request: Request) -> list[dict[str, Any]]:
    """The models with their tasks, sizes, and the views that have a meaning for them."""
    return [describe_model(served) for served in request.app.state.models]


@router.get("/api/models/{model}")
def describe_one(model: str, request: Request) -> dict[str, Any]:
    """One of them, with its config, its modules and the attentions in it."""
    served = request.app.state.models.get(model)
    if served is None:
        raise unknown_model(model, request.app.state.models.names)
    info = describe(served.task, served.pipeline)
    return describe_model(served) | {"info": info.model_dump(mode="json")}


def describe_model(served: ServedModel) -> dict[str, Any]:
    info = describe(served.task, served.pipeline)
    tokenizer = served.pipeline.tokenizer
    return {
        "id": served.name,
        "kind": info.kind,
        "task": info.task,
        "interface": info.interface,
        "parameters": sum(one.numel() for one in served.pipeline.model.parameters()),
        "context": served.context,
        "takes_images": served.task.takes_images,
        "has_chat_template": getattr(tokenizer, "chat_template", None) is not None,
        "labels": list(getattr(served.pipeline, "labels", ())),
        "views": [
            {"name": one.name, "summary": one.summary, "takes": list(one.takes), "of_a_run": one.of_a_run}
            for one in views_of(info)
        ],
    }


def _as_openai(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": STARTED, "owned_by": "regard"}
