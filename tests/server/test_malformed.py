"""Wrong requests: the exact status, OpenAI's shape, the field by its name, and nothing of this machine in the text."""

import re
import time

import httpx2 as httpx
import pytest

from tests.server.malformed import CASES, OK

LEAK = re.compile(r"/(home|root|tmp|usr|work|var|src)/|Traceback|0x[0-9a-f]{6}|site-packages|\.py\b")


def check_shape(answer, status, param):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert not LEAK.search(error["message"]), error["message"]
    if param is not None:
        assert error["param"] == param or str(error["param"]).startswith(f"{param}."), error


def test_there_are_enough():
    assert len(CASES) >= 120


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_wrong_request_is_answered_by_its_name(client, number):
    (route, body), status, param = CASES[number]
    begun = time.process_time()
    answer = client.post(route, content=body, headers={"content-type": "application/json"})
    check_shape(answer, status, param)
    assert time.process_time() - begun < 20  # milliseconds here; a slow processor may take its time


def test_a_server_goes_on_after_all_of_them(client):
    assert client.post("/v1/completions", json=OK).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "localhost:1"}, 200),
        ({"host": "[::1]:8000"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-length": "99999999999"}, 413),
        ({"content-length": "-1"}, 413),
    ],
)
def test_headers(client, headers, status):
    body = b'{"model":"llama","prompt":"Once","max_tokens":1}'
    answer = client.post("/v1/completions", content=body, headers={"content-type": "application/json"} | headers)
    assert answer.status_code == status
    if status != 200:
        check_shape(answer, status, None)
    assert "access-control-allow-origin" not in answer.headers


def test_a_body_of_more_than_two_megabytes_is_refused(client):
    answer = client.post("/v1/completions", content=b" " * 2_000_001, headers={"content-type": "application/json"})
    check_shape(answer, 413, None)


def test_every_route_but_health_and_the_page_needs_the_key(live):
    with httpx.Client(base_url=live) as http:
        paths = http.get("/openapi.json", headers={"authorization": "Bearer secret"}).json()["paths"]
        assert len(paths) > 15
        for path, methods in paths.items():
            for method in methods:
                answer = http.request(method, path.replace("{", "").replace("}", ""), json={})
                assert answer.status_code == (200 if path == "/health" else 401), path
        for key in ("x", "secre", "secret2", "SECRET"):
            assert http.get("/v1/models", headers={"authorization": f"Bearer {key}"}).status_code == 401
        assert http.get("/", headers={}).status_code == 200
        assert http.get("/page/../../../etc/passwd").status_code in (401, 404)
        assert http.get("/page/..%2f..%2f..%2fetc/passwd").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["a" * 3000, "a/" * 1000, "%2e%2e/app.py", "figure/../html.py", "figure/%2e%2e", "x%00.js", ".hidden", "a\\b"],
)
def test_a_file_that_the_page_does_not_have_is_404(client, path):
    check_shape(client.get(f"/page/{path}"), 404, None)


def test_a_key_may_have_any_letters(serve, llama):
    from regard.server.models import ModelTable
    from regard.tasks import find_task

    table = ModelTable.of({"llama": (find_task("language-modeling"), llama)})
    address, _ = serve(table, api_key="clé")
    for key, status in ((b"cl\xc3\xa9", 200), (b"cl\xe9", 401), (b"cl?", 401)):
        assert httpx.get(f"{address}/v1/models", headers={"authorization": b"Bearer " + key}).status_code == status


def test_errors_of_models_have_no_paths():
    from regard.errors import InputError
    from regard.server.errors import as_api_error

    error = as_api_error(InputError("cannot read /home/ada/models/x.bin: it is damaged\nand more"))
    assert error.message == "cannot read …/x.bin: it is damaged and more"
    assert as_api_error(ZeroDivisionError("secret")).message.startswith("a bug in regard")
