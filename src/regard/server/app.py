"""The HTTP application: its routes over a table of models."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio import to_thread
from fastapi import FastAPI

from regard.server import errors, page_routes
from regard.server.guard import Guard
from regard.server.metrics import Metrics
from regard.server.models import ModelTable
from regard.server.routes import looking, openai, operations, table, tasks, tracing
from regard.server.routes.tracing import TraceStore
from regard.server.settings import ServerSettings
from regard.server.workers import Workers

ROUTERS = (openai.router, tasks.router, table.router, looking.router, tracing.router, operations.router)


def create_app(models: ModelTable, settings: ServerSettings | None = None) -> FastAPI:
    """The application; it opens the models when it starts, and answers /health with 503 until then."""
    settings = settings or ServerSettings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(_load(app, models))
        app.state.loading = loading
        if models.is_loaded:
            await loading
        yield
        loading.cancel()
        await to_thread.run_sync(app.state.workers.stop)

    app = FastAPI(
        title="regard",
        version=version("regard"),
        description="An OpenAI-compatible server of sequence models one can look inside.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    metrics = Metrics()
    app.state.models, app.state.settings, app.state.metrics = models, settings, metrics
    app.state.workers = Workers(models, settings, metrics)
    app.state.compute = app.state.workers.run
    app.state.traces = TraceStore(settings.trace_megabytes << 20)
    app.state.is_ready = app.state.is_draining = False
    app.state.failure = None
    app.state.when_loaded = lambda: None
    errors.add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    page_routes.add_page(app)
    app.add_middleware(Guard, settings=settings, state=app.state, metrics=metrics)
    return app


async def _load(app: FastAPI, models: ModelTable) -> None:
    try:
        await to_thread.run_sync(models.load)
    except Exception as error:  # the server ends with it
        app.state.failure = error
    else:
        app.state.workers.start()
        app.state.is_ready = True
    app.state.when_loaded()
