"""Errors as OpenAI's API has them: {"error": {"message", "type", "param", "code"}}.

A message says what, got, wanted and what to do. It has no path, no address and no traceback: those stay in the log.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from regard.errors import RegardError, escape_controls

logger = logging.getLogger(__name__)

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 503: "overloaded_error"}
MAX_SHOWN = 60  # characters of a wrong value
MAX_MESSAGE = 500
PATHS = re.compile(r"(?<![\w.])(?:/[\w.@+~-]+){2,}/?")


class APIError(Exception):
    """A request that is refused, or fails."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code, self.retry_after = status, message, param, code, retry_after

    @property
    def body(self) -> dict[str, Any]:
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        found = {} if self.retry_after is None else {"Retry-After": str(max(1, round(self.retry_after)))}
        return found | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})

    @property
    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, self.headers)


class BadJSONError(HTTPException):
    """An APIError as FastAPI lets it pass while it reads a body."""

    def __init__(self, error: APIError) -> None:
        super().__init__(error.status, error.message)
        self.error = error


def unknown_model(name: str, names: list[str]) -> APIError:
    return APIError(
        404,
        f"there is no model {shown(name)}; this server has {', '.join(names)}",
        param="model",
        code="model_not_found",
    )


def as_api_error(error: Exception) -> APIError:
    """Any error as what a client may see."""
    if isinstance(error, APIError):
        return error
    if isinstance(error, RegardError):
        return APIError(400, clean(str(error)))
    logger.error("a bug in regard: %s: %s", type(error).__name__, error, exc_info=error)
    return APIError(500, "a bug in regard: the request failed, and the server's log says where", code="internal_error")


def clean(message: str) -> str:
    """A message on one line, without the paths that stand in it."""
    message = PATHS.sub(lambda path: "…/" + path[0].rstrip("/").rpartition("/")[2], " ".join(message.split()))
    return escape_controls(message)[:MAX_MESSAGE]


def shown(value: Any) -> str:
    """A wrong value as a message shows it."""
    text = escape_controls(repr(value))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def wrong_request(error: RequestValidationError) -> APIError:
    """The first mistake of a request, with the name of its field."""
    first: Mapping[str, Any] = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path", "header")]
    param = ".".join(place) or None
    if first["type"] == "extra_forbidden":
        return APIError(400, f"unknown field {param}; leave it out", param=param, code="unknown_parameter")
    if first["type"] == "missing":
        what = f"the field {param} is missing" if param else "the request has no body; wanted a JSON object"
        return APIError(400, what, param=param, code="missing_required_parameter")
    wanted = escape_controls(str(first["msg"])).removeprefix("Value error, ").removeprefix("Input should be ")
    if first["type"] == "value_error":
        return APIError(400, f"{param}: {wanted}" if param else wanted, param=param, code="invalid_value")
    message = f"{param or 'the body'} is {shown(first.get('input'))}, wanted {wanted}"
    return APIError(400, message, param=param, code="invalid_value")


def add_handlers(app: FastAPI) -> None:
    """Every error of the app in this shape."""

    async def api_error(_request: Request, error: Exception) -> JSONResponse:
        return as_api_error(error).response

    async def validation(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return wrong_request(error).response

    async def http(_request: Request, error: Exception) -> JSONResponse:
        if isinstance(error, BadJSONError):
            return error.error.response
        assert isinstance(error, HTTPException)
        what = {404: "there is no such route", 405: "this route does not take that method"}
        response = APIError(error.status_code, what.get(error.status_code, str(error.detail))).response
        response.headers.update(error.headers or {})
        return response

    app.add_exception_handler(APIError, api_error)
    app.add_exception_handler(RegardError, api_error)
    app.add_exception_handler(Exception, api_error)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)
