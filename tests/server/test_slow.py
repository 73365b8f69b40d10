"""Clients that are slow: headers and bodies have deadlines, and the others do not notice."""

import json
import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from regard.server.models import ModelTable

SECONDS = 2.0  # what is sent at once must arrive within them on a busy machine too
BODY = json.dumps({"model": "llama", "prompt": "Once", "max_tokens": 2}).encode()
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def hasty(serve, llama):
    """A server that gives headers and bodies two seconds."""
    from regard.tasks import find_task

    table = ModelTable.of({"llama": (find_task("language-modeling"), llama)})
    return serve(table, header_seconds=SECONDS, body_seconds=SECONDS)[0]


def connect(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            found += part
    return found


@pytest.mark.parametrize("sent", [b"", b"POST", HEAD, HEAD + b"X: " + b"y" * 1000])
def test_headers_that_do_not_end_close_the_connection(hasty, sent):
    with connect(hasty) as connection:
        connection.sendall(sent)
        assert read_all(connection) == b""


def test_a_byte_now_and_then_does_not_keep_it_open(hasty):
    with connect(hasty) as connection:
        for sent in range(1, len(HEAD)):
            try:
                connection.sendall(HEAD[sent - 1 : sent])
            except OSError:  # reset, or a broken pipe
                break
            time.sleep(SECONDS / 10)
        assert sent < len(HEAD) - 1


def test_the_second_request_of_a_connection_has_the_deadline_too(hasty):
    with connect(hasty) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        found = b""
        while not found.endswith(b"}"):
            found += connection.recv(65536)
        assert found.startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD)
        assert read_all(connection) == b""


@pytest.mark.parametrize("part", [b"", BODY[:10]])
def test_a_body_that_does_not_come_is_answered_with_408(hasty, part):
    with connect(hasty) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + part)
        found = read_all(connection)
    assert found.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in found.lower()
    assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_slow"


def test_others_are_served_beside_them(hasty):
    slow = [connect(hasty) for _ in range(20)]
    for number, connection in enumerate(slow):
        connection.sendall(HEAD + (b"Content-Length: 50\r\n\r\n" if number % 2 else b""))
    answer = httpx.post(f"{hasty}/v1/completions", content=BODY, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    for connection in slow:
        connection.close()


def test_two_uploads_at_once_are_enough(hasty):
    """Each may be 256 MB in memory; what does not upload is not concerned."""
    head = b"POST /api/page/open HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n"
    slow = [connect(hasty) for _ in range(3)]
    for connection in slow:
        connection.sendall(head)
    found = sorted(read_all(connection)[:12] for connection in slow)
    assert found == [b"HTTP/1.1 408", b"HTTP/1.1 408", b"HTTP/1.1 429"]
    for connection in slow:
        connection.close()
