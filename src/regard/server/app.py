"""The HTTP application: its routes over a table of models."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from regard.server import errors, looking, page_routes, table_routes
from regard.server.models import ModelTable, ServedModel
from regard.server.settings import ServerSettings

ROUTERS = (table_routes.router, looking.router)


def create_app(models: ModelTable, settings: ServerSettings | None = None) -> FastAPI:
    """The application; it opens the models when it starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.limiter = CapacityLimiter(1)
        await to_thread.run_sync(models.load, limiter=app.state.limiter)
        yield

    app = FastAPI(
        title="regard",
        version=version("regard"),
        description="An OpenAI-compatible server of sequence models one can look inside.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.models, app.state.settings = models, settings or ServerSettings()

    async def compute(name: str, work: Callable[[ServedModel], Any]) -> Any:
        """Run something with a model, off the event loop and alone."""
        served = models.get(name)
        if served is None:
            raise errors.unknown_model(name, models.names)
        return await to_thread.run_sync(work, served, limiter=app.state.limiter)

    app.state.compute = compute
    errors.add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    page_routes.add_page(app)

    @app.get("/health", tags=["operations"])
    def health(request: Request) -> JSONResponse:
        """200 when all models are loaded; 503 before."""
        ready = request.app.state.models.is_loaded
        return JSONResponse({"status": "ready" if ready else "loading"}, 200 if ready else 503)

    return app
