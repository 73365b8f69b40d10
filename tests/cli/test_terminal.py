"""Text of models and files on standard output: a terminal gets control characters written out, a pipe gets the text."""

import json
import os
import pty
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from regard.printing import print_json, show, show_facts, show_metrics
from regard.tasks.translation.pipeline import Alignment, TranslatedText, Translation
from regard.tasks.translation.run import _show

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\r\x9b1m\x7f\u202eb"
WRITTEN_OUT = r"a\x1b]0;owned\x07\x1b[2J\r\x9b1m\x7f\u202eb"


@contextmanager
def terminal(monkeypatch) -> Iterator[list[str]]:
    """Standard output is a terminal inside the block; afterwards the list has what was printed."""
    master, slave = pty.openpty()
    parts: list[bytes] = []
    found: list[str] = []

    def read() -> None:
        with suppress(OSError):  # the other side was closed
            while part := os.read(master, 1 << 16):
                parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(slave, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield found
    reader.join()
    os.close(master)
    found.append(b"".join(parts).decode().replace("\r\n", "\n"))


def test_a_terminal_gets_control_characters_written_out(monkeypatch):
    with terminal(monkeypatch) as printed:
        show(HOSTILE)
        show_facts({HOSTILE: HOSTILE, "group": {HOSTILE: 1}})
        show_metrics({"lines": [HOSTILE], "rows": [{"text": HOSTILE, "count": 2}]})
    (found,) = printed
    assert found.count(WRITTEN_OUT) == 6
    assert not any((sign < " " and sign not in "\n\t") or "\x7f" <= sign < "\xa0" or sign == "\u202e" for sign in found)


def test_a_pipe_gets_the_text_as_it_is(capsys):
    show(HOSTILE, end="")
    assert capsys.readouterr().out == HOSTILE


def test_text_in_any_script_is_left_alone(monkeypatch):
    text = "naïve\u00a0日本\u3000語 \u0645\u0631\u062d\u200f 👩\u200d🔬\ta\nb"
    with terminal(monkeypatch) as printed:
        show(text)
    assert printed == [text + "\n"]


def test_json_stays_json_on_a_terminal(monkeypatch):
    with terminal(monkeypatch) as printed:
        print_json({HOSTILE: "\ud800"})
    (found,) = printed
    assert "\x9b" not in found
    assert json.loads(found) == {HOSTILE: "\ud800"}


def test_a_heat_map_keeps_its_colors_and_no_other_escapes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    alignment = Alignment(np.ones((1, 1)), [HOSTILE], [HOSTILE], np.ones((1, 1)), [HOSTILE], [HOSTILE])
    one = TranslatedText(HOSTILE, 0.0, 0.0, True, alignment)
    with terminal(monkeypatch):
        shown = _show(Translation("a", [one]), alignment=True)
    assert "\x1b[38;5" in shown
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown


def test_a_long_name_is_apart_from_its_number(capsys):
    show_metrics({"a" * 37: "0.979 0.600", "loss": 0.5})
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a" * 37, "0.979", "0.600"],
        ["loss", "0.5000"],
    ]
