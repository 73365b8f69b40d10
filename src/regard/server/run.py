"""Run the application on a socket, with uvicorn: deadlines for headers, and a drain on SIGTERM."""

import asyncio
import signal
import socket
import time
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.errors import ConfigError
from regard.progress import note
from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.server.settings import ServerSettings

KEEP_ALIVE = 15  # seconds that an idle connection stays open
POLL = 0.05
AFTER_DRAIN = 5  # seconds for the last bytes


def serve(models: ModelTable, settings: ServerSettings) -> None:
    """Serve until a signal ends it; raises what went wrong while the models were loaded."""
    listening = listen(settings)
    app = create_app(models, settings)
    address = url_of(listening)
    config = uvicorn.Config(
        app,
        http=protocol_with_deadline(settings.header_seconds),
        ws="none",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=AFTER_DRAIN,
        backlog=2048,
    )
    server = DrainingServer(config, app.state, settings.drain_seconds)

    def loaded() -> None:
        if app.state.failure is not None:
            server.should_exit = True
        else:
            note(f"serving {', '.join(models.names)} on {address}")

    app.state.when_loaded = loaded
    note(f"loading {', '.join(models.names)}")
    server.run(sockets=[listening])
    if app.state.failure is not None:
        raise app.state.failure


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def listen(settings: ServerSettings) -> socket.socket:
    """The socket; ConfigError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except OSError as error:
        found.close()
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"--host {settings.host} --port {settings.port}: {reason}; try --port 0") from error
    return found


class DrainingServer(uvicorn.Server):
    """After the first signal running requests end and new ones are refused; after the second it leaves at once."""

    def __init__(self, config: uvicorn.Config, state: Any, seconds: float) -> None:
        super().__init__(config)
        self._state, self._seconds = state, seconds
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._state.is_draining or self._loop is None:
            self.should_exit = self.force_exit = True
            return
        self._state.is_draining = True
        note(f"{signal.Signals(sig).name}: {self._state.in_flight} requests end, new ones are refused")
        self._loop.call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        deadline = time.monotonic() + self._seconds
        while self._state.in_flight and time.monotonic() < deadline:
            await asyncio.sleep(POLL)
        self.should_exit = True


def protocol_with_deadline(seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol, which closes a connection whose headers take longer than this."""

    class DeadlineProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._close)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            waits = self.conn.their_state is h11.IDLE
            if waits and self._timer is None:
                self._timer = self.loop.call_later(seconds, self._close)
            elif not waits:
                self._stop_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _close(self) -> None:
            self._timer = None
            if self.transport is not None and not self.transport.is_closing():
                self.transport.close()

    return DeadlineProtocol
