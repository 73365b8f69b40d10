"""Chat templates: render a conversation as the prompt of a chat model, as Hugging Face does.

A template comes with the model and is a program. It runs in jinja's sandbox inside a child process with bounds on time,
memory and output, so that a hostile one ends with an error.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from regard.errors import InputError
from regard.sandbox import LimitError, Worker

MAX_SECONDS = 2.0
MAX_MEGABYTES = 256
MAX_BYTES = 4_000_000  # of a rendered prompt, as JSON


def apply_chat_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    bos_token: str | None = None,
    eos_token: str | None = None,
    add_generation_prompt: bool = True,
) -> str:
    """Render messages ({"role": "user", "content": "..."}) as the prompt text.

    With `add_generation_prompt` the prompt ends where the model's answer starts. InputError: the template rejects
    the messages, fails, or exceeds its bounds.
    """
    variables = {
        "messages": list(messages),
        "bos_token": bos_token or "",
        "eos_token": eos_token or "",
        "add_generation_prompt": add_generation_prompt,
    }
    try:
        answer = _worker().ask({"template": template, "variables": variables})
    except LimitError as error:
        raise InputError(f"chat template: it {error}; use another template") from error
    if "text" in answer:
        return str(answer["text"])
    if "refused" in answer:
        raise InputError(f"the chat template says: {_one_line(answer['refused'])}")
    if "line" in answer:
        raise InputError(f"chat template, line {answer['line']}: {_one_line(answer['error'])}; use another template")
    raise InputError(f"chat template: {_one_line(answer['error'])}; give messages this model can take")


@cache
def _worker() -> Worker:
    script = Path(__file__).parent / "workers" / "chat_template.py"
    return Worker(script, seconds=MAX_SECONDS, megabytes=MAX_MEGABYTES, max_bytes=MAX_BYTES)


def _one_line(text: str) -> str:
    return " ".join(text.split())
