"""Chat templates: render a conversation as the prompt of a chat model, in a sandbox, as Hugging Face does."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from regard.errors import InputError


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
    the messages, or fails.
    """
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    sandbox = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    sandbox.filters["tojson"] = _to_json  # jinja's own filter escapes < and é, which no model was trained on
    sandbox.globals |= {"raise_exception": _reject, "strftime_now": _format_now}
    try:
        return sandbox.from_string(template).render(
            messages=messages,
            bos_token=bos_token or "",
            eos_token=eos_token or "",
            add_generation_prompt=add_generation_prompt,
        )
    except InputError:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise InputError(f"chat template, line {error.lineno}: {_one_line(error)}; use another template") from error
    except Exception as error:  # a template is a program: it may fail in any way
        raise InputError(f"chat template: {_one_line(error)}; give messages this model can take") from error


def _to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _reject(message: object) -> None:
    raise InputError(f"the chat template says: {' '.join(str(message).split())}")


def _format_now(form: str) -> str:
    return datetime.now().strftime(form)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
