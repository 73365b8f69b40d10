"""Servers of tiny models: one in this process without a socket, and one on a socket for real clients."""

import threading
import time

import pytest
import torch
import uvicorn
from fastapi.testclient import TestClient

from regard.models import build
from regard.models.llama import LlamaConfig
from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.server.run import listen, protocol_with_deadline, url_of
from regard.server.settings import ServerSettings
from regard.tasks import find_task
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.loading import load_with_task
from regard.tokenizers.text import TextTokenizer
from tests.server.tiny import TEMPLATE, loud


@pytest.fixture(scope="session")
def llama() -> TextGenerator:
    """A language model of bytes, with random weights and a chat template."""
    tokenizer = TextTokenizer.bytes()
    tokenizer.chat_template = TEMPLATE
    special_ids = {"bos_id": None, "eos_id": 256, "pad_id": None}
    config = LlamaConfig(
        vocab_size=257,
        context=256,
        width=32,
        heads=4,
        num_kv_heads=2,
        layers=2,
        feed_forward=64,
        special_ids=special_ids,
    )
    return TextGenerator("llama", loud(build(config)), tokenizer)


@pytest.fixture(scope="session")
def table(llama, trained, make_reader):
    tagger = make_reader("bert-token-classification", labels=("O", "B-PER", "I-PER"))
    encoders = {
        "bert": ("masked-lm", make_reader("bert-masked-lm")),
        "sentiment": ("classification", make_reader("bert-sequence-classification", labels=("bad", "good"))),
        "names": ("tagging", tagger),
    }
    opened = {name: (find_task(task), pipeline) for name, (task, pipeline) in encoders.items()}
    return ModelTable.of({"llama": (find_task("language-modeling"), llama), "demo": load_with_task(trained), **opened})


@pytest.fixture(autouse=True)
def subnormal_numbers():
    """Clients send them, and a training in this process may have switched them off; threads do as who starts them."""
    torch.set_flush_denormal(False)


@pytest.fixture(scope="session")
def shared(table):
    torch.set_flush_denormal(False)
    with TestClient(create_app(table), base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.fixture
def client(shared):
    return shared


@pytest.fixture(scope="session")
def serve():
    """Start a server on a socket; returns its address and its application."""
    running = []

    def start(table, **settings):
        torch.set_flush_denormal(False)
        chosen = ServerSettings(port=0, **settings)
        listening = listen(chosen)
        app = create_app(table, chosen)
        http = protocol_with_deadline(chosen.header_seconds)
        server = uvicorn.Server(uvicorn.Config(app, http=http, ws="none", log_level="critical", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        running.append((server, thread))
        while not (server.started and app.state.is_ready):
            time.sleep(0.01)
        return url_of(listening), app

    yield start
    for server, _ in running:
        server.should_exit = True
    for _, thread in running:
        thread.join()


@pytest.fixture(scope="session")
def live(serve, table):
    return serve(table, api_key="secret")[0]
