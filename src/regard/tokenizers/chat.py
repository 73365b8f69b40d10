"""A conversation as the text a chat model continues: its template, in a sandbox, as Hugging Face runs it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from regard.errors import InputError


def render(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    begin: str | None = None,
    end: str | None = None,
    add_generation_prompt: bool = True,
) -> str:
    """The text of the messages ({"role": "user", "content": "..."}); `begin` and `end` are the names of these tokens.

    With `add_generation_prompt` it ends where the model's answer begins. InputError: what the template refuses, and
    a template that cannot be run.
    """
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    world.filters["tojson"] = _to_json  # jinja's own escapes < and é, as no model was taught
    world.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    try:
        return world.from_string(template).render(
            messages=messages,
            bos_token=begin or "",
            eos_token=end or "",
            add_generation_prompt=add_generation_prompt,
        )
    except InputError:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise InputError(f"chat template, line {error.lineno}: {_line(error)}; give the model another one") from error
    except Exception as error:  # a template is a program: it may fail in any way
        raise InputError(f"chat template: {_line(error)}; give messages this model can take") from error


def _to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: object) -> None:
    raise InputError(f"the chat template says: {' '.join(str(message).split())}")


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
