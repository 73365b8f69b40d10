"""Serve the page, and open the browser when it answers."""

import threading
import time
import urllib.request
import webbrowser
from collections.abc import Sequence

import uvicorn

from regard.progress import note
from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.server.run import listen
from regard.server.settings import ServerSettings
from regard.server.viewing.watched import Watched

PATIENCE = 600  # seconds until the models are open


def serve_page(models: ModelTable, settings: ServerSettings, watched: Sequence[Watched], *, browser: bool) -> None:
    """Serve until a signal ends it; raises what went wrong while the models were opened."""
    listening = listen(settings)
    address = f"http://{settings.host}:{listening.getsockname()[1]}/"
    app = create_app(models, settings)
    app.state.page_watched = {one.name: one for one in watched}
    note(f"the page is at {address} (Ctrl-C ends it)")
    if browser:
        threading.Thread(target=_open, args=(address,), daemon=True).start()
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    server = uvicorn.Server(config)

    def loaded() -> None:
        server.should_exit = server.should_exit or app.state.failure is not None

    app.state.when_loaded = loaded
    server.run(sockets=[listening])
    if app.state.failure is not None:
        raise app.state.failure


def _open(address: str) -> None:
    """Open the browser as soon as the server is ready."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{address}health", timeout=5) as answer:
                if answer.status == 200:
                    break
        except OSError:
            time.sleep(0.2)
    if not webbrowser.open(address):
        note(f"no browser could be started; open {address}")
