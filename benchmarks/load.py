"""Put load on a server of OpenAI's completions, ours or a peer's, and print what was seen as lines of JSON.

    .venv/bin/python benchmarks/load.py http://127.0.0.1:8000/v1 smollm2 streams --streams 64
    .venv/bin/python benchmarks/load.py http://127.0.0.1:8000/v1 smollm2 cut --requests 1000
    .venv/bin/python benchmarks/load.py http://127.0.0.1:8000/v1 smollm2 slow --senders 200
    .venv/bin/python benchmarks/load.py http://127.0.0.1:8000/v1 smollm2 flood --factor 20
    .venv/bin/python benchmarks/load.py http://127.0.0.1:8000/v1 smollm2 arrivals --factor 20
    .venv/bin/python benchmarks/load.py http://127.0.0.1:8000/v1 smollm2 mixed --requests 10000 --pid 1234

`streams` opens streams at once, or one after another; `cut` leaves requests at random moments; `slow` sends bodies a
byte at a time beside normal requests; `flood` has many times as many clients as the server has room for, who come back
together, so that its times are those of this one client process too; `arrivals` sends many times as many requests a
second as the server answers; `mixed` watches its memory. Plain sockets and HTTP/1.1, so that the client costs little.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PROMPTS = [
    "The history of the city begins with",
    "Once upon a time, in a small village by the sea, there lived",
    "A good way to learn how attention works is to",
    "The three most important things about cooking are",
    "In the winter of that year, the old captain",
    "Water boils at a lower temperature on a mountain because",
    "Dear friend, I am writing to you from",
    "The difference between a list and a tuple in Python is",
]


@dataclass
class Seen:
    """One request: what came back, and when."""

    status: int = 0
    text: str = ""
    seconds: float = 0.0  # until its end
    first: float = 0.0  # until the first token
    gaps: list[float] = field(default_factory=list)  # between its pieces
    tokens: int = 0
    retry_after: str | None = None
    error: str | None = None


class Server:
    """A base URL such as http://127.0.0.1:8000/v1, and the model that is asked there."""

    def __init__(self, base: str, model: str, key: str | None = None) -> None:
        parts = urlsplit(base)
        self.host, self.port, self.path = parts.hostname or "127.0.0.1", parts.port or 80, parts.path.rstrip("/")
        self.model, self.key = model, key

    def body(self, number: int, tokens: int, *, stream: bool, **others: Any) -> bytes:
        prompt = f"{PROMPTS[number % len(PROMPTS)]} {number}:"
        asked = {"model": self.model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": stream}
        return json.dumps(asked | others).encode()

    def head(self, length: int, method: str = "POST", path: str = "/completions") -> bytes:
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        return (
            f"{method} {self.path}{path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{key}"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        ).encode()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    async def ask(
        self, body: bytes, *, drip: float = 0.0, cut: float | None = None, path: str = "/completions"
    ) -> Seen:
        """One request. `drip`: seconds between the bytes of its body; `cut`: leave after so many seconds."""
        seen, begun = Seen(), time.perf_counter()
        writer = None
        try:
            async with asyncio.timeout(cut):
                reader, writer = await self.open()
                writer.write(self.head(len(body), path=path))
                if drip:
                    for byte in body:
                        writer.write(bytes([byte]))
                        await writer.drain()
                        await asyncio.sleep(drip)
                else:
                    writer.write(body)
                await writer.drain()
                await _read(reader, seen, begun)
        except TimeoutError:
            seen.error = "cut"
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            seen.error = type(error).__name__
        finally:
            if writer is not None:
                writer.transport.abort() if seen.error == "cut" else writer.close()
        seen.seconds = time.perf_counter() - begun
        return seen


async def _read(reader: asyncio.StreamReader, seen: Seen, begun: float) -> None:
    """Status, headers, and a body, whole or as server-sent events."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    seen.status = int(lines[0].split()[1])
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    seen.retry_after = headers.get("retry-after")
    if "text/event-stream" not in headers.get("content-type", ""):
        raw = await reader.read()
        if headers.get("transfer-encoding") == "chunked":
            raw = _unchunked(raw)
        seen.first = time.perf_counter() - begun
        if seen.status == 200:
            found = json.loads(raw)
            seen.text, seen.tokens = found["choices"][0].get("text") or "", found["usage"]["completion_tokens"]
        return
    before = begun
    while line := await reader.readline():
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        event = json.loads(line[6:])
        if "error" in event:
            seen.error = str(event["error"].get("code"))
            continue
        text = "".join(one.get("text") or "" for one in event.get("choices", ()))
        if event.get("usage"):
            seen.tokens = event["usage"]["completion_tokens"]
        now = time.perf_counter()
        if text:
            seen.first = seen.first or now - begun
            seen.gaps.append(now - before)
            before = now
            seen.text += text


def _unchunked(raw: bytes) -> bytes:
    found = b""
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        length = int(size or b"0", 16)
        if not length:
            break
        found, raw = found + rest[:length], rest[length + 2 :]
    return found


# ------------------------------------------------ what is tried


async def streams(server: Server, count: int, tokens: int, *, together: bool = True) -> tuple[list[Seen], float]:
    """So many streams at once, or one after another; what was seen, and the seconds they took."""
    bodies = [
        server.body(number, tokens, stream=True, stream_options={"include_usage": True}) for number in range(count)
    ]
    begun = time.perf_counter()
    if together:
        found = list(await asyncio.gather(*(server.ask(body) for body in bodies)))
    else:
        found = [await server.ask(body) for body in bodies]
    return found, time.perf_counter() - begun


async def cut(server: Server, count: int, used_slots: Callable[[], Awaitable[float]] | None = None) -> dict[str, Any]:
    """Requests that are left at random moments, 32 at a time; then how long until every slot is free."""
    chance, room = random.Random(1), asyncio.Semaphore(32)

    async def one(number: int) -> Seen:
        async with room:
            body = server.body(number, 200, stream=number % 2 == 0)
            return await server.ask(body, cut=chance.uniform(0.0, 1.5))

    begun = time.perf_counter()
    found = await asyncio.gather(*(one(number) for number in range(count)))
    ended = time.perf_counter()
    freed = None
    while used_slots is not None and freed is None and time.perf_counter() - ended < 30:
        if await used_slots() == 0:
            freed = time.perf_counter() - ended
        else:
            await asyncio.sleep(0.02)
    after = await server.ask(server.body(0, 4, stream=False))
    return {
        "requests": count,
        "cut": sum(one.error == "cut" for one in found),
        "seconds": round(ended - begun, 1),
        "slots_free_after": None if freed is None else round(freed, 3),
        "status_after": after.status,
    }


async def slow(server: Server, senders: int, probes: int = 30) -> dict[str, Any]:
    """The latency of short requests alone, and beside so many senders of a byte a second or two."""

    async def probe() -> list[float]:
        found = [await server.ask(server.body(number, 4, stream=False)) for number in range(probes)]
        assert all(one.status == 200 for one in found), [one.status or one.error for one in found]
        return [one.seconds for one in found]

    await probe()
    alone = await probe()
    drips = [asyncio.create_task(server.ask(server.body(n, 4, stream=False), drip=0.3, cut=60)) for n in range(senders)]
    await asyncio.sleep(1)
    beside = await probe()
    for one in drips:
        one.cancel()
    await asyncio.gather(*drips, return_exceptions=True)
    ratio = statistics.median(beside) / statistics.median(alone)
    worst = sorted(beside)[int(0.95 * len(beside))] / sorted(alone)[int(0.95 * len(alone))]
    return {
        "senders": senders,
        "alone": round(statistics.median(alone), 4),
        "beside": round(statistics.median(beside), 4),
        "ratio": round(ratio, 2),
        "ratio_95": round(worst, 2),
    }


async def flood(server: Server, factor: int, seconds: float, tokens: int, at_once: int) -> dict[str, Any]:
    """Peak tokens a second with `at_once` clients that take turns; then with `factor` times as many arriving."""

    async def closed_loop(clients: int) -> tuple[list[Seen], float]:
        found: list[Seen] = []
        begun = time.perf_counter()

        async def client(number: int) -> None:
            while time.perf_counter() - begun < seconds:
                seen = await server.ask(server.body(number, tokens, stream=False))
                found.append(seen)
                if seen.status != 200:
                    await asyncio.sleep(0.2)

        await asyncio.gather(*(client(number) for number in range(clients)))
        return found, time.perf_counter() - begun

    await closed_loop(at_once)
    calm, calm_seconds = await closed_loop(at_once)
    found, flood_seconds = await closed_loop(at_once * factor)
    refused = [one for one in found if one.status in (429, 503)]
    peak = sum(one.tokens for one in calm if one.status == 200) / calm_seconds
    good = sum(one.tokens for one in found if one.status == 200) / flood_seconds
    times = sorted(one.seconds for one in refused)
    return {
        "clients": at_once * factor,
        "requests": len(found),
        "answered": sum(one.status == 200 for one in found),
        "refused": len(refused),
        "unanswered": sum(one.status == 0 for one in found),
        "with_retry_after": sum(one.retry_after is not None for one in refused),
        "refusal_median": round(statistics.median(times), 4) if times else None,
        "refusal_99": round(times[int(0.99 * len(times))], 4) if times else None,
        "peak": round(peak, 1),
        "goodput": round(good, 1),
        "ratio": round(good / peak, 3),
    }


async def arrivals(server: Server, factor: int, seconds: float, tokens: int, at_once: int) -> dict[str, Any]:
    """Requests that arrive at `factor` times the rate at which the server can answer them, whoever waits still."""
    chance, calm, begun = random.Random(3), [], time.perf_counter()

    async def client(number: int) -> None:
        while time.perf_counter() - begun < seconds:
            calm.append(await server.ask(server.body(number, tokens, stream=False)))

    await asyncio.gather(*(client(number) for number in range(at_once)))
    rate = sum(one.status == 200 for one in calm) / (time.perf_counter() - begun)
    waiting, begun = [], time.perf_counter()
    while time.perf_counter() - begun < seconds:
        body = server.body(len(waiting), tokens, stream=False)
        waiting.append(asyncio.create_task(server.ask(body)))
        await asyncio.sleep(chance.expovariate(factor * rate))
    arriving = time.perf_counter() - begun
    found = await asyncio.gather(*waiting)
    refused = sorted(one.seconds for one in found if one.status in (429, 503))
    return {
        "peak_per_second": round(rate, 2),
        "arriving_per_second": round(len(found) / arriving, 1),
        "answered": sum(one.status == 200 for one in found),
        "refused": len(refused),
        "unanswered": sum(one.status == 0 for one in found),
        "with_retry_after": sum(one.retry_after is not None for one in found if one.status in (429, 503)),
        "refusal_median": round(statistics.median(refused), 4) if refused else None,
        "refusal_99": round(refused[int(0.99 * len(refused))], 4) if refused else None,
        "goodput_ratio": round(sum(one.status == 200 for one in found) / (time.perf_counter() - begun) / rate, 3),
    }


async def mixed(server: Server, count: int, pid: int) -> dict[str, Any]:
    """Requests of many kinds, some wrong and some cut; the memory of the server after a tenth and at the end."""
    chance, room = random.Random(2), asyncio.Semaphore(32)

    async def one(number: int) -> Seen:
        async with room:
            kind = number % 10
            if kind == 0:
                return await server.ask(b'{"model": ', path="/completions")
            if kind == 1:
                return await server.ask(server.body(number, 50, stream=True), cut=chance.uniform(0, 0.3))
            if kind == 2:
                return await server.ask(server.body(number, 4, stream=False, n=2, logprobs=2, temperature=0.9))
            return await server.ask(server.body(number, chance.randint(1, 6), stream=kind < 6))

    statuses: dict[int, int] = {}
    memory = []
    for start in range(0, count, count // 10):
        for seen in await asyncio.gather(*(one(start + number) for number in range(count // 10))):
            statuses[seen.status] = statuses.get(seen.status, 0) + 1
        memory.append(resident_megabytes(pid))
    grown = round(memory[-1] - memory[1], 1)
    return {"requests": count, "statuses": statuses, "megabytes": memory, "grown_after_warm_up": grown}


def resident_megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
        return round(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20, 1)


async def metric(server: Server, name: str) -> float:
    """A gauge of /metrics, of all models together."""
    reader, writer = await server.open()
    bare = Server(f"http://{server.host}:{server.port}", server.model, server.key)
    writer.write(bare.head(0, "GET", "/metrics"))
    raw = (await reader.read()).decode()
    writer.close()
    return sum(float(line.split()[-1]) for line in raw.splitlines() if line.startswith(f"{name}{{"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("model")
    parser.add_argument("what", choices=["streams", "cut", "slow", "flood", "arrivals", "mixed"])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--senders", type=int, default=200)
    parser.add_argument("--factor", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--pid", type=int)
    given = parser.parse_args()
    server = Server(given.base, given.model, os.environ.get("REGARD_API_KEY"))
    with suppress(KeyboardInterrupt):
        print(json.dumps(asyncio.run(_try(server, given))), flush=True)


async def _try(server: Server, given: argparse.Namespace) -> dict[str, Any]:
    if given.what == "streams":
        found, seconds = await streams(server, given.streams, given.tokens)
        tokens = sum(one.tokens for one in found)
        return {"streams": given.streams, "tokens": tokens, "tokens_per_second": round(tokens / seconds, 1)}
    if given.what == "cut":
        return await cut(server, given.requests, lambda: metric(server, "regard_kv_cache_slots_used"))
    if given.what == "slow":
        return await slow(server, given.senders)
    if given.what == "flood":
        return await flood(server, given.factor, given.seconds, given.tokens, given.at_once)
    if given.what == "arrivals":
        return await arrivals(server, given.factor, given.seconds, given.tokens, given.at_once)
    return await mixed(server, given.requests, given.pid)


if __name__ == "__main__":
    main()
