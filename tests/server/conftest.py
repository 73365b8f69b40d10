"""A server of tiny models in this process, reached without a socket."""

import pytest
from fastapi.testclient import TestClient

from regard.server.app import create_app
from regard.server.models import ModelTable
from regard.tasks.loading import load_with_task


@pytest.fixture(scope="session")
def table(novel, trained, sentiment):
    folders = {"novel": novel, "demo": trained, "sentiment": sentiment}
    return ModelTable.of({name: load_with_task(folder) for name, folder in folders.items()})


@pytest.fixture
def client(table):
    with TestClient(create_app(table), base_url="http://127.0.0.1:8000") as found:
        yield found
