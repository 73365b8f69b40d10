"""The page at size: a GPT of 12 layers and 12 heads on 256 and on 1,024 tokens, in a headless Chromium.

Beside each time stands its bound.

    python benchmarks/bench_page.py
"""

import socket
import statistics
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import torch
import uvicorn
from playwright.sync_api import Page, sync_playwright

import regard.server
from regard.models.base import CausalLMIds
from regard.models.gpt import GPT, GPTConfig
from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.server.settings import ServerSettings
from regard.tasks import find_task
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tokenizers.text import TextTokenizer

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
ROUNDS = 12
LINE = "the animal did not cross the street because it was too tired, and nobody knew why. "


def main() -> None:
    torch.manual_seed(0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=[*FLAGS, "--enable-precise-memory-info"]
        )
        address = serve()
        script = sum(path.stat().st_size for path in (Path(regard.server.__file__).parent / "page").rglob("*.js"))
        tell("JavaScript", script / 1000, 200, "kB")
        tell(
            "first view drawn, no cache", statistics.median(first_view(browser, address) for _ in range(5)), 1000, "ms"
        )
        page = opened(browser, address, LINE * 4, 256)
        tell("head switch at 256 tokens", statistics.median(switches(page)), 100, "ms")
        tell("hover at 256 tokens", statistics.median(hovers(page)), 50, "ms")
        page.close()
        page = opened(browser, address, LINE * 14, 1024)
        tell("head switch at 1,024 tokens", statistics.median(switches(page)), None, "ms")
        tell("heap at 1,024 tokens, after 12 switches of heads", heap(page) / 2**20, 150, "MiB")
        browser.close()


def tell(what: str, value: float, bound: float | None, unit: str) -> None:
    told = "" if bound is None else f"   bound {bound:,} {unit}: {value / bound:.2f}"
    print(f"{what:50} {value:9.1f} {unit}{told}", flush=True)


def serve() -> str:
    """The address of a server with a model of random weights, and byte tokens."""
    ids = CausalLMIds(eos_id=256)
    config = GPTConfig(vocab_size=257, context=1024, width=144, heads=12, layers=12, special_ids=ids)
    pipeline = TextGenerator("gpt", GPT(config).eval(), TextTokenizer.bytes())
    pipeline.task_name = "language-modeling"
    table = ModelTable.of({"gpt": (find_task("language-modeling"), pipeline)})
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(table, ServerSettings(trace_megabytes=1024))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}/"


def first_view(browser, address: str) -> float:
    """Milliseconds from the navigation until a sheet is drawn, in a fresh profile."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}#/sheet")
    page.wait_for_function("() => performance.getEntriesByName('regard-drawn').length")
    found = page.evaluate("performance.getEntriesByName('regard-drawn')[0].startTime")
    context.close()
    return found


def opened(browser, address: str, text: str, tokens: int) -> Page:
    page = browser.new_page(viewport={"width": 1360, "height": 860})
    page.set_default_timeout(240_000)
    page.goto(f"{address}#/heads?model=gpt&text={quote(text[:tokens])}")
    page.wait_for_function(
        "() => document.querySelector('.body')?.dataset.switched && document.querySelector('regard-figure')"
    )
    return page


def switches(page: Page) -> list[float]:
    """Milliseconds from a click on a head until its matrix is painted."""
    return page.evaluate(
        """async (rounds) => {
            const found = [], heads = [...document.querySelectorAll("button.head")];
            for (let round = 0; round < rounds; round++) {
                const before = document.querySelector("regard-figure"), start = performance.now();
                heads[(7 * round + 5) % heads.length].click();
                while (document.querySelector("regard-figure") === before) await new Promise(requestAnimationFrame);
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                found.push(performance.now() - start);
            }
            return found;
        }""",
        ROUNDS,
    )


def hovers(page: Page) -> list[float]:
    """Milliseconds from the mouse on a token until the next frame, everything lit."""
    return page.evaluate(
        """async (rounds) => {
            const found = [], tokens = [...document.querySelectorAll(".strip .token")];
            for (let round = 0; round < rounds; round++) {
                const start = performance.now();
                tokens[(17 * round + 3) % tokens.length].dispatchEvent(new PointerEvent("pointerenter"));
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                found.push(performance.now() - start);
            }
            return found;
        }""",
        ROUNDS,
    )


def heap(page: Page) -> float:
    """Bytes of JavaScript objects that are in use, after a collection."""
    session = page.context.new_cdp_session(page)
    collect: Callable[[], object] = lambda: session.send("HeapProfiler.collectGarbage")  # noqa: E731
    collect()
    collect()
    return float(page.evaluate("performance.memory.usedJSHeapSize"))


if __name__ == "__main__":
    main()
