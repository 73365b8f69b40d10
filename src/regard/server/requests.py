"""Read the body of a request: JSON that is parsed strictly, and the base of what is read from it."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pydantic_core
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from regard.server.errors import APIError, BadJSONError

T = TypeVar("T")


class Body(BaseModel):
    """The base of every request body: types are not converted, an unknown field and NaN are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class StrictRequest(Request):
    """A request whose JSON has bounds on depth and numbers, and is UTF-8."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return pydantic_core.from_json(body, allow_inf_nan=True)  # NaN is refused by its field
        except ValueError as error:
            param = _field_with_surrogate(body)
            place = f"{param} has half a character (a lone surrogate)" if param else str(error)
            wrong = APIError(400, f"the body is not JSON: {place}", param=param, code="invalid_json")
            raise BadJSONError(wrong) from error


class StrictRoute(APIRoute):
    """A route that reads its body as `StrictRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


async def until_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; it is cancelled where the client goes before."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise APIError(499, "the client has gone", code="disconnected")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _field_with_surrogate(body: bytes) -> str | None:
    """The name of the first field whose text has a lone surrogate."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    waiting = [("", found)]
    while waiting:
        name, value = waiting.pop(0)
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            return name
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [(f"{name}.{key}".lstrip("."), inner) for key, inner in pairs]
    return None
