"""Requests that are wrong, each with the status and the field that its answer must have."""

import json

OK = {"model": "llama", "prompt": "Once", "max_tokens": 2}
CHAT = {"model": "llama", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
EMBED = {"model": "bert", "input": "the cat"}
COMPLETIONS, CHATS, EMBEDDINGS = "/v1/completions", "/v1/chat/completions", "/v1/embeddings"


def with_text(text: str, route: str = COMPLETIONS, base: dict = OK) -> tuple:
    """A body in which the value of a field is written as it stands."""
    return route, (json.dumps(base)[:-1] + ", " + text + "}").encode()


def changed(route: str, base: dict, **changes: object) -> tuple:
    return route, json.dumps(base | changes).encode()


# (route, body), the status, the field that is named
CASES = [
    # no JSON
    *[
        ((COMPLETIONS, body), 400, None)
        for body in (
            b"{",
            b"[1,2",
            b"nothing",
            b"\xff\xfe",
            b'{"a":}',
            b"{'model': 1}",
            b'{"model": "llama",}',
            b"\x00",
        )
    ],
    ((COMPLETIONS, b'{"model":"llama","prompt":' + b"[" * 100_000), 400, None),
    ((COMPLETIONS, b'{"model":"llama","prompt":' + b'{"a":' * 50_000), 400, None),
    ((COMPLETIONS, b'{"model":"llama","prompt":"\xff"}'), 400, None),
    ((COMPLETIONS, b'{"model":"llama","prompt":"a\x01b"}'), 400, None),
    ((COMPLETIONS, rb'{"model":"llama","prompt":"\ud800"}'), 400, "prompt"),
    ((CHATS, rb'{"model":"llama","messages":[{"role":"user","content":"\udfff"}]}'), 400, "messages.0.content"),
    (with_text('"seed": ' + "9" * 5000), 400, None),
    # another thing than an object
    *[((COMPLETIONS, body), 400, None) for body in (b"", b"1", b"null", b'"text"', b"[]", b"true", b"1e400")],
    # a field is missing
    ((COMPLETIONS, b"{}"), 400, "model"),
    ((COMPLETIONS, b'{"model":"llama"}'), 400, "prompt"),
    ((CHATS, b'{"model":"llama"}'), 400, "messages"),
    ((EMBEDDINGS, b'{"model":"bert"}'), 400, "input"),
    # numbers that are none
    *[
        (with_text(f'"{name}": {value}'), 400, name)
        for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty", "min_p", "repetition_penalty")
        for value in ("NaN", "Infinity", "-Infinity", "1e999")
    ],
    (with_text('"max_tokens": NaN'), 400, "max_tokens"),
    (with_text('"seed": 1e400'), 400, "seed"),
    # beyond the range
    *[
        (changed(COMPLETIONS, OK, **{name: value}), 400, name)
        for name, value in [
            ("temperature", -0.1),
            ("temperature", 2.1),
            ("temperature", 10**300),
            ("top_p", 0),
            ("top_p", 1.5),
            ("top_p", -1),
            ("top_k", 0),
            ("top_k", 2**40),
            ("min_p", 2),
            ("n", 0),
            ("n", 9),
            ("n", -1),
            ("n", 10**30),
            ("best_of", 0),
            ("best_of", 9),
            ("logprobs", -1),
            ("logprobs", 21),
            ("max_tokens", -1),
            ("max_tokens", 10**30),
            ("max_tokens", 2**31 - 1),
            ("seed", 2**63),
            ("seed", -(2**63)),
            ("presence_penalty", 2.5),
            ("frequency_penalty", -3),
            ("repetition_penalty", 0),
            ("stop", ""),
            ("stop", ["a"] * 5),
            ("stop", [""]),
            ("stop", "x" * 2000),
            ("user", "x" * 2000),
            ("model", "x" * 500),
        ]
    ],
    # another type
    *[
        (changed(COMPLETIONS, OK, **{name: value}), 400, name)
        for name, value in [
            ("temperature", "1"),
            ("temperature", True),
            ("temperature", [1]),
            ("n", "2"),
            ("n", 1.5),
            ("n", True),
            ("max_tokens", "many"),
            ("max_tokens", {}),
            ("stream", "yes"),
            ("stream", 1),
            ("echo", "no"),
            ("logprobs", True),
            ("stop", 1),
            ("stop", [1]),
            ("prompt", 1),
            ("prompt", {}),
            ("prompt", [[]]),
            ("prompt", []),
            ("prompt", [None]),
            ("prompt", ["a", 1]),
            ("prompt", [1.5]),
            ("prompt", [-1]),
            ("prompt", [[1], "a"]),
            ("model", 1),
            ("model", None),
            ("logit_bias", []),
            ("logit_bias", {"1": "a"}),
            ("stream_options", []),
            ("user", 5),
            ("trace", "yes"),
        ]
    ],
    (changed(COMPLETIONS, OK, prompt=[257]), 400, "prompt"),
    (changed(COMPLETIONS, OK, logit_bias={"a": 1}), 400, None),
    (changed(COMPLETIONS, OK, logit_bias={"300": 1}), 400, "logit_bias"),
    (changed(COMPLETIONS, OK, logit_bias={"1": 101}), 400, "logit_bias"),
    (changed(COMPLETIONS, OK, stream_options={"include_usage": True}), 400, None),
    (changed(COMPLETIONS, OK, n=3, best_of=2), 400, None),
    (changed(COMPLETIONS, OK, prompt="x" * 300), 400, "prompt"),
    (changed(COMPLETIONS, OK, max_tokens=255), 400, "max_tokens"),
    (changed(COMPLETIONS, OK, prompt=["a"] * 100, n=8), 400, "n"),
    # fields that it does not have
    *[
        (changed(COMPLETIONS, OK, **{name: 1}), 400, name)
        for name in ("suffix", "temprature", "__proto__", "a" * 100, "é")
    ],
    *[(changed(CHATS, CHAT, **{name: []}), 400, name) for name in ("tools", "functions", "modalities", "audio")],
    # chats
    *[
        (changed(CHATS, CHAT, messages=messages), 400, param)
        for messages, param in [
            ([], "messages"),
            ("hi", "messages"),
            ([1], "messages.0"),
            ([{}], "messages.0.role"),
            ([{"role": "user"}], "messages.0.content"),
            ([{"role": "tool", "content": "x"}], "messages.0.role"),
            ([{"role": "user", "content": "x", "images": []}], "messages.0.images"),
            (
                [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}],
                "messages.0.content.0",
            ),
            ([{"role": "user", "content": [{"type": "text"}]}], "messages.0.content.0.text"),
        ]
    ],
    (changed(CHATS, CHAT, top_logprobs=2), 400, None),
    (changed(CHATS, CHAT, max_completion_tokens=0), 400, "max_completion_tokens"),
    (changed(CHATS, CHAT, response_format={"type": "xml"}), 400, "response_format.type"),
    (changed(CHATS, CHAT, response_format={"type": "json_schema"}), 400, "response_format"),
    # another model than one of the table
    *[
        (changed(COMPLETIONS, OK, model=model), 404, "model")
        for model in ("", "gpt-4", "../llama", "/etc/passwd", "llama\n", "http://x/y")
    ],
    (changed(COMPLETIONS, OK, model="bert"), 400, "model"),
    (changed(EMBEDDINGS, EMBED, model="llama"), 400, "model"),
    (changed(EMBEDDINGS, EMBED, dimensions=7), 400, "dimensions"),
    (changed(EMBEDDINGS, EMBED, encoding_format="hex"), 400, "encoding_format"),
    (changed(EMBEDDINGS, EMBED, input="cat " * 100), 400, "input"),
    (changed(EMBEDDINGS, EMBED, input=[]), 400, "input"),
    # our own
    (("/api/translate", b'{"model":"demo","texts":[]}'), 400, "texts"),
    (("/api/translate", b'{"model":"demo","texts":["a"],"num_beams":99}'), 400, "num_beams"),
    (("/api/caption", b'{"model":"demo","image":"http://127.0.0.1/x.png"}'), 400, "model"),
    (("/api/show", b'{"model":"llama","texts":["a"],"image":"aGk="}'), 400, "image"),
    (("/api/show", b'{"model":"llama","texts":["a"],"view":"../x"}'), 400, None),
    (("/api/trace", b'{"model":"llama","texts":["a"],"taps":[]}'), 400, "taps"),
    (("/tokenize", b'{"model":"llama"}'), 400, "prompt"),
    (("/detokenize", b'{"model":"llama","tokens":[999]}'), 400, "tokens"),
    (("/nothing", b"{}"), 404, None),
    (("/v1/models", b"{}"), 405, None),
]
