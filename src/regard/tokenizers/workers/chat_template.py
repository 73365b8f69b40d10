"""Renders chat templates, a line of JSON each way; run by `regard.sandbox.Worker`, never imported."""

import json
import signal
import sys
from datetime import datetime


def bound_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the bound on time remains
        return
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def bound_time(seconds: float) -> None:
    """End this process after so many seconds of processor time from now on; 0: no longer."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)


class RefusedError(Exception):
    """The template called raise_exception."""


def render(request: dict) -> dict:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json  # jinja's own escapes < and é, which no model was trained on
    environment.globals |= {"raise_exception": refuse, "strftime_now": format_now}
    try:
        return {"text": environment.from_string(request["template"]).render(**request["variables"])}
    except RefusedError as error:
        return {"refused": str(error)}
    except jinja2.TemplateSyntaxError as error:
        return {"line": error.lineno, "error": str(error)}
    except MemoryError:
        return {"error": "took too much memory"}
    except Exception as error:  # a template is a program: it may fail in any way
        return {"error": str(error) or type(error).__name__}


def to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def refuse(message: object) -> None:
    raise RefusedError(str(message))


def format_now(form: str) -> str:
    return datetime.now().strftime(form)


def main() -> None:
    bound_memory(int(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        bound_time(float(sys.argv[2]))
        print(json.dumps(render(json.loads(line))), flush=True)
        bound_time(0)


main()
