"""What an exercise is, and how an answer is judged."""

import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]
Case = tuple[Any, ...]
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Exercise:
    """One function to fill in.

    `reference` is the answer, made of the package's own code. `mistakes` are wrong answers by the message that names
    them: a message is given where the student's function computes the same numbers on every case that tells it from
    the right answer. `laws` are properties, by the message that says which one is broken.
    """

    name: str
    page: str  # of docs/lectures
    task: str
    signature: str  # "attention(query, key, value)"
    cases: Callable[[], Sequence[Case]]
    reference: Function
    mistakes: Mapping[str, Function] = field(default_factory=dict)
    laws: Mapping[str, Callable[[Function], bool]] = field(default_factory=dict)

    @property
    def function(self) -> str:
        return self.signature.partition("(")[0]

    @property
    def skeleton(self) -> str:
        """The file that the student fills in."""
        task = textwrap.fill(self.task, 110)
        return (
            f'"""{self.name}: an exercise of regard (docs/lectures/{self.page}.md).\n\n{task}\n\n'
            f'Fill in the blank, then: regard exercise {self.name} --check\n"""\n\n'
            "import math\n\nimport torch\n\n\n"
            f"def {self.signature}:\n    raise NotImplementedError\n"
        )


@dataclass(frozen=True)
class Verdict:
    """What the judge says: one line."""

    passed: bool
    message: str


def judge(exercise: Exercise, function: Function) -> Verdict:
    """Judge a student's function by numbers, by known mistakes, and by laws."""
    cases = exercise.cases()
    wanted = [exercise.reference(*_copied(case)) for case in cases]
    found = []
    for number, case in enumerate(cases, 1):
        try:
            found.append(function(*_copied(case)))
        except NotImplementedError:
            return Verdict(False, f"{exercise.function} is not filled in yet")
        except Exception as error:
            return Verdict(False, f"case {number}, {_shapes(case)}: {type(error).__name__}{_line(error)}: {error}")
        if problem := _wrong_form(found[-1], wanted[number - 1]):
            return Verdict(False, f"case {number}, {_shapes(case)}: {problem}")
    if (wrong := _first_difference(found, wanted)) is None:
        for message, holds in exercise.laws.items():
            if not holds(function):
                return Verdict(False, message)
        return Verdict(True, f"right on {len(cases)} cases" + (f" and {len(exercise.laws)} laws" * bool(exercise.laws)))
    for message, mistake in exercise.mistakes.items():
        if _first_difference(found, [mistake(*_copied(case)) for case in cases]) is None:
            return Verdict(False, message)
    return Verdict(False, f"case {wrong + 1}, {_shapes(cases[wrong])}: {_difference(found[wrong], wanted[wrong])}")


def _copied(case: Case) -> Case:
    return tuple(each.clone() if isinstance(each, Tensor) else each for each in case)


def _wrong_form(found: Any, wanted: Any) -> str | None:
    if isinstance(wanted, float):
        ok = isinstance(found, float | int) or (isinstance(found, Tensor) and found.numel() == 1)
        return None if ok else f"returned {_named(found)}, wanted a number"
    if not isinstance(found, Tensor):
        return f"returned {_named(found)}, wanted a tensor of shape {tuple(wanted.shape)}"
    if found.shape != wanted.shape:
        return f"returned shape {tuple(found.shape)}, wanted {tuple(wanted.shape)}"
    return None


def _named(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing: is there a return?" if value is None else f"a {type(value).__name__}"


def _first_difference(found: Sequence[Any], wanted: Sequence[Any]) -> int | None:
    """The first case whose numbers differ."""
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        one, other = (torch.as_tensor(each, dtype=torch.float64) for each in (one, other))
        if one.shape != other.shape and one.numel() != other.numel():
            return number
        if not torch.allclose(one.flatten(), other.flatten(), atol=TOLERANCE, rtol=TOLERANCE, equal_nan=True):
            return number
    return None


def _difference(found: Any, wanted: Any) -> str:
    one, other = (torch.as_tensor(each, dtype=torch.float64) for each in (found, wanted))
    if one.isnan().any() and not other.isnan().any():
        return "the result has NaN"
    if one.dim() == 0 or one.numel() == 1:
        return f"got {one.item():.4f}, wanted {other.item():.4f}"
    apart = (one - other).abs().nan_to_num()
    at = tuple(int(i) for i in torch.unravel_index(apart.argmax(), apart.shape))
    return f"at {list(at)} got {one[at].item():.4f}, wanted {other[at].item():.4f}"


def _shapes(case: Case) -> str:
    parts = [str(tuple(each.shape)) if isinstance(each, Tensor) else repr(each) for each in case]
    return "arguments " + ", ".join(parts)


def _line(error: BaseException) -> str:
    """Where in the student's file."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is the judge's own
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    return f" at line {own[-1].lineno}" if own else ""


def seeded(*shapes: tuple[int, ...], seed: int = 0) -> tuple[Tensor, ...]:
    """Random tensors of these shapes, the same each time."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)
