"""Run the application on a socket, with uvicorn."""

import socket

import uvicorn

from regard.errors import ConfigError
from regard.progress import note
from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.server.settings import ServerSettings


def serve(models: ModelTable, settings: ServerSettings) -> None:
    """Serve until a signal ends it."""
    listening = listen(settings)
    host, port = listening.getsockname()[:2]
    note(f"serving {', '.join(models.names)} on http://{f'[{host}]' if ':' in host else host}:{port}")
    config = uvicorn.Config(create_app(models, settings), log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listening])


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
