"""Malformed requests to a server of a tiny model: the exact status, OpenAI's shape, and it answers right ones after."""

import time
from collections.abc import Iterator

from tests.attack.harness import Outcome, Row, in_child
from tests.server.malformed import CASES, OK

QUICK_EVERY = 10


def malformed(quick: bool) -> list[Outcome]:
    """The cases of tests/server that are about a language model, or about no model."""
    cases = [case for case in CASES if not any(name in case[0][1] for name in (b'"bert"', b'"demo"'))]
    return in_child(lambda: _answers(cases[:: QUICK_EVERY if quick else 1]))


def _answers(cases: list) -> Iterator[Outcome]:
    from fastapi.testclient import TestClient

    from regard.models import build
    from regard.models.llama import LlamaConfig
    from regard.server.app import create_app
    from regard.server.models import ModelTable
    from regard.tasks import find_task
    from regard.tasks.language_modeling.pipeline import TextGenerator
    from regard.tokenizers.text import TextTokenizer
    from tests.server.tiny import TEMPLATE

    tokenizer = TextTokenizer.bytes()
    tokenizer.chat_template = TEMPLATE
    special_ids = {"bos_id": None, "eos_id": 256, "pad_id": None}
    config = LlamaConfig(
        vocab_size=257, context=256, width=32, heads=4, num_kv_heads=2, layers=1, special_ids=special_ids
    )
    pipeline = TextGenerator("llama", build(config).eval(), tokenizer)
    table = ModelTable.of({"llama": (find_task("language-modeling"), pipeline)})
    kind = {"content-type": "application/json"}
    with TestClient(create_app(table), base_url="http://127.0.0.1:8000") as client:
        for (route, body), status, param in cases:
            begun = time.process_time()
            answer = client.post(route, content=body, headers=kind)
            faults = list(_faults(answer, status, param))
            yield Outcome(f"{route} {body[:60]!r}", faults, answer.text, time.process_time() - begun)
        after = client.post("/v1/completions", json=OK)
        yield Outcome("a right one after them", [] if after.status_code == 200 else ["refused"], after.text)


def _faults(answer, status: int, param: str | None) -> Iterator[str]:
    from tests.server.test_malformed import check_shape

    try:
        check_shape(answer, status, param)
    except (AssertionError, ValueError, KeyError) as error:
        yield f"wanted {status} for {param}: {str(error)[:80]}"


ROWS: dict[str, Row] = {"malformed requests to the server": malformed}
