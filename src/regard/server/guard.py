"""What stands before all routes: who may ask, how large and how slow a request may be, and whether there is room.

Pure ASGI, so that streams pass through and a client that leaves is noticed. The body is read here, whole and within a
deadline: a slow sender holds a connection and nothing else.
"""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any

from regard.server.errors import APIError, as_api_error
from regard.server.metrics import Metrics
from regard.server.settings import LOOPBACK, ServerSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN = ("/", "/favicon.ico", "/health")  # without a key: what has no secrets, and the files of the page
OPEN_FOLDER = "/page/"
WHILE_DRAINING = ("/health", "/metrics")
GENERATING = ("/v1/completions", "/v1/chat/completions")
UPLOAD = "/api/page/open"  # takes a trace file
MAX_UPLOADS = 2  # at once: each is in memory whole
SEND_SECONDS = 60  # a reader may pause so long
HARMLESS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """The application behind its checks."""

    def __init__(self, app: App, *, settings: ServerSettings, state: Any, metrics: Metrics) -> None:
        self.app, self.settings, self.state, self.metrics = app, settings, state, metrics
        state.in_flight = self.uploads = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(send)
        is_upload = scope["path"] == UPLOAD
        self.state.in_flight += 1
        self.uploads += is_upload
        try:
            headers = headers_of(scope)
            self.check(scope, headers)
            body = await self._body(scope, headers, receive)
            if body is not None:
                await self.app(scope, replay(body, receive), answer.send)
        except APIError as error:
            await answer.refuse(error)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the handlers have logged it, or do so now
            await answer.refuse(as_api_error(error))
        finally:
            self.state.in_flight -= 1
            self.uploads -= is_upload
            self.metrics.requests.labels(_route(scope), str(answer.status)).inc()

    def check(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> None:
        """APIError for a request that is refused by its headers alone."""
        path: str = scope["path"]
        self._check_host(headers)
        if self.state.is_draining and path not in WHILE_DRAINING:
            message = "this server is shutting down; try again later"
            raise APIError(503, message, code="shutting_down", retry_after=5)
        if self.state.in_flight > self.settings.max_connections:
            raise APIError(503, "too many requests at once; try again later", code="overloaded", retry_after=2)
        if path not in OPEN and not path.startswith(OPEN_FOLDER):
            self._check_key(headers)
        if path == UPLOAD and self.uploads > MAX_UPLOADS:
            message = f"{MAX_UPLOADS} files are being uploaded already; try again later"
            raise APIError(429, message, code="too_many_uploads", retry_after=2)
        if path in GENERATING and (full := self.state.workers.refusal()) is not None:
            raise full  # before its body is read and parsed: in a flood that is what costs
        if scope["method"] in ("POST", "PUT", "PATCH") and path != UPLOAD:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                message = f"the content type is {kind[:80] or 'missing'}, wanted application/json"
                raise APIError(415, message, code="wrong_content_type")

    def _check_host(self, headers: dict[str, str]) -> None:
        """Host and Origin: a page of another site must not reach this server through the browser of its user."""
        host = headers.get("host", "")
        name = _name(host)
        is_known = name in LOOPBACK or name in self.settings.allowed_hosts or name == self.settings.host
        if not host or not (is_known or (self.settings.host not in LOOPBACK and not self.settings.allowed_hosts)):
            raise APIError(421, "the Host header names another server; use its address", code="wrong_host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise APIError(403, "requests from pages of other sites are refused", code="wrong_origin")

    def _check_key(self, headers: dict[str, str]) -> None:
        if self.settings.api_key is None:
            return
        scheme, _, key = headers.get("authorization", "").partition(" ")
        given = key.strip().encode("latin-1") if scheme.lower() == "bearer" else b""
        if not hmac.compare_digest(given, self.settings.api_key.encode()):
            message = "the API key is wrong" if given else "no API key; send it as Authorization: Bearer KEY"
            raise APIError(401, message, code="invalid_api_key")

    async def _body(self, scope: MutableMapping[str, Any], headers: dict[str, str], receive: Receive) -> bytes | None:
        """The whole body; None where the client has gone. APIError: too large, or too slow."""
        most = self.settings.max_upload_bytes if scope["path"] == UPLOAD else self.settings.max_body_bytes
        too_large = APIError(413, f"the body is larger than {most:,} bytes; make it smaller", code="body_too_large")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > most:
            raise too_large
        parts: list[bytes] = []
        size, deadline = 0, time.monotonic() + self.settings.body_seconds
        while True:
            try:
                message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
            except TimeoutError as error:
                message_text = f"the body took longer than {self.settings.body_seconds:g} s"
                raise APIError(408, message_text, code="too_slow") from error
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise too_large
            if not message.get("more_body"):
                return b"".join(parts)


class _Answer:
    """What is sent to a client."""

    def __init__(self, send: Send) -> None:
        self._send, self.status, self._is_begun = send, 0, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_begun, self.status = True, message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(one for one in HARMLESS if one[0] not in present)]
        async with asyncio.timeout(SEND_SECONDS):
            await self._send(message)

    async def refuse(self, error: APIError) -> None:
        if self._is_begun:  # too late for a status
            return
        response = error.response
        close = [(b"connection", b"close")] if error.status in (408, 413, 503) else []
        await self.send(
            {"type": "http.response.start", "status": error.status, "headers": [*response.raw_headers, *close]}
        )
        await self.send({"type": "http.response.body", "body": bytes(response.body)})


def replay(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, and then what comes after it."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def headers_of(scope: MutableMapping[str, Any]) -> dict[str, str]:
    """The headers by their names in lower case; APIError where one that matters is there twice."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in ("host", "origin", "authorization", "content-length", "content-type") and name in found:
            raise APIError(400, f"the header {name} is there twice", code="duplicate_header")
        found[name] = value.decode("latin-1")
    return found


def _name(host: str) -> str:
    """The name in a Host header, without its port; of an address its usual form."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return str(ip_address(name))
    except ValueError:
        return name.lower()


def _route(scope: MutableMapping[str, Any]) -> str:
    """The pattern of the route, so that there are few of them."""
    return getattr(scope.get("route"), "path", "other")
