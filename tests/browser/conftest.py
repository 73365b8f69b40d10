"""One server and one browser for all tests of the page: tiny models of every kind, in this process."""

import os
import socket
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn

FIXTURES = Path(__file__).parent.parent / "fixtures" / "format-1"
MODELS = (
    *("transformer", "rnn", "conv", "gpt", "llama", "bert", "bert-words", "bert-classifier", "bert-tagger"),
    *("captioner", "vilbert-answerer", "vilbert-judge", "vilbert-matcher", "vilbert-pointer", "vilbert-pretraining"),
)
CHROMIUM = Path("/usr/bin/chromium")
MILLISECONDS = 240_000  # that a browser may take on a slow and busy machine
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="session")
def pipelines():
    """Every model by its name, as (task, pipeline)."""
    from regard.tasks.loading import load_with_task

    return {name: load_with_task(FIXTURES / name) for name in MODELS}


@pytest.fixture(scope="session")
def served(pipelines, tmp_path_factory):
    """The address of a server with these models, and of one without any."""
    from regard.server.models import ModelTable

    with ExitStack() as running:
        tables = (ModelTable.of(pipelines), ModelTable([], lambda path: pytest.fail(f"opened {path}")))
        yield [running.enter_context(serving(table)) for table in tables]


@contextmanager
def serving(table):
    """The address of a server in a thread."""
    from regard.server.app import create_app

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(table), log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for the session."""
    if not CHROMIUM.exists():
        refuse = pytest.fail if os.environ.get("REGARD_NEEDS_BROWSER") else pytest.skip
        refuse("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS, timeout=MILLISECONDS)
        yield found
        found.close()


class Page:
    """A tab that watches what goes wrong: errors, and requests to anyone but the server."""

    def __init__(self, tab, address: str, start: str = "quiz") -> None:
        self.tab, self.address = tab, address
        self.errors: list[str] = []
        self.requests: list[str] = []
        tab.on("console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.set_default_timeout(MILLISECONDS)
        tab.goto(f"{address}#/{start}")
        tab.wait_for_function("() => document.querySelector('main').dataset.drawn !== undefined")

    def open(self, state: str) -> None:
        """A view by its address, until it is drawn."""
        self.tab.evaluate(
            """(state) => {
                delete document.querySelector("main").dataset.drawn;
                const before = location.hash;
                location.hash = state;
                if (location.hash === before) dispatchEvent(new Event("hashchange"));
            }""",
            state,
        )
        self.tab.wait_for_function(
            "() => document.querySelector('main').dataset.drawn !== undefined && !document.querySelector('[aria-busy]')"
        )

    @property
    def outside(self) -> list[str]:
        """Requests that left the server."""
        own = (self.address, "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def check(self) -> None:
        told = [one.inner_text() for one in self.tab.query_selector_all(".message.error")]
        assert (told, self.errors, self.outside) == ([], [], [])


@pytest.fixture
def page(browser, served):
    """The page with models."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield Page(context.new_page(), served[0])
    context.close()


@pytest.fixture
def plain_page(browser, served):
    """The page without models."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield Page(context.new_page(), served[1])
    context.close()
