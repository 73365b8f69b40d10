"""What a view is: a name, what it needs of a trace, and a function that draws it.

Each file beside this one has one view, `VIEW`; `regard.inspection.views.VIEWS` lists them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from regard.errors import InputError
from regard.inspection.drawing.scene import Figure
from regard.inspection.trace import AttentionInfo, Axis, Trace, TraceInfo
from regard.inspection.tracing import TraceInputs


@dataclass(frozen=True)
class Choices:
    """What a reader may choose; None: the view decides."""

    attention: str | None = None  # a pattern of paths: "decoder.*.cross_attention"
    layer: int | None = None  # from 0, among the attentions of the pattern
    head: int | None = None  # from 0
    token: str | None = None  # a token by its label, or its number from 0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    limit: int = 10  # of bars, rows, …
    gold: Collection[tuple[int, int]] = ()  # gold alignment: sure links (source word, target word)
    possible: Collection[tuple[int, int]] = ()  # its possible links


Track = Callable[[Sequence[Any]], Iterable[Any]]  # a loop over these, with a progress bar, say


@dataclass(frozen=True)
class Subject:
    """What is looked at: a trace, and where it was made here, the model that it is of."""

    trace: Trace
    pipeline: Any = None
    inputs: TraceInputs | None = None
    others: Sequence[Trace] = field(default_factory=tuple)  # of further inputs, or of further checkpoints
    names: Sequence[str] = field(default_factory=tuple)  # of all of them, in order
    track: Track = list  # follows what takes long

    def require_model(self, view: str) -> Any:
        """The pipeline; InputError if there is only a trace file."""
        if self.pipeline is None:
            raise InputError(f"the view {view} runs the model; give the model's folder instead of a trace file")
        return self.pipeline


@dataclass(frozen=True)
class View:
    """One way to look at a model."""

    name: str
    summary: str  # one line for `regard show --list`
    draw: Callable[[Subject, Choices], Figure]
    taps: tuple[str, ...] = ("*.weights",)  # patterns of the points it needs; a pattern may match none
    missing: Callable[[TraceInfo], str | None] = lambda info: None  # why it has no meaning for a model; None: it has
    several_inputs: bool = False  # each input is a trace of its own
    padded: bool = False  # several texts are traced like rows of one batch, padded to the longest
    max_new_tokens: int | None = None  # that a language model generates if none are asked for
    of_a_run: bool = False  # each checkpoint of a run is a trace of its own, the oldest first
    takes: tuple[str, ...] = ()  # the choices that change it, by their names in Choices
    static: bool = False  # of the weights alone: nothing that is generated or switched off changes it


def option_of(name: str) -> str:
    """A choice as it is typed: "top_k" is --top-k."""
    return "--gold" if name == "possible" else "--" + name.replace("_", "-")


def made_choices(choices: Choices) -> list[str]:
    """The names of the choices that a reader made."""
    return [one.name for one in fields(choices) if getattr(choices, one.name) != one.default]


def needs_attention(info: TraceInfo) -> str | None:
    return None if info.attentions else "it has no attention"


def needs_interface(*interfaces: str) -> Callable[[TraceInfo], str | None]:
    """A check that a model is of one of these interfaces."""

    def missing(info: TraceInfo) -> str | None:
        return None if info.interface in interfaces else f"it is for {' and '.join(interfaces)} models"

    return missing


# ------------------------------------------------ choosing parts of a trace


def choose_attention(
    trace: Trace, choices: Choices, default: str = "*", *, where: Callable[[AttentionInfo], bool] | None = None
) -> list[AttentionInfo]:
    """The attentions that a reader chose, in the model's order; `layer` leaves one of them; `where`: only such ones."""
    pattern = choices.attention or default
    possible = [one for one in trace.attentions() if where is None or where(one)]
    found = [one for one in possible if fnmatchcase(one.path, pattern)]
    if not found and not choices.attention:
        found = possible
    if not found:
        known = ", ".join(dict.fromkeys(one.path for one in possible))
        raise InputError(f"there is no attention {pattern}; this model has {known or 'none'}")
    if choices.layer is None:
        return found
    if not 0 <= choices.layer < len(found):
        raise InputError(f"--layer {choices.layer}: wanted 0 to {len(found) - 1}")
    return [found[choices.layer]]


def is_cross(attention: AttentionInfo) -> bool:
    """Whether its queries and its keys are not the same tokens."""
    return attention.queries != attention.keys


def layer_of(trace: Trace, attention: AttentionInfo) -> int:
    """The number of an attention among those of the same queries and keys, from 0."""
    alike = [one for one in trace.info.attentions if (one.queries, one.keys) == (attention.queries, attention.keys)]
    return alike.index(attention)


def check_head(head: int | None, num_heads: int) -> None:
    if head is not None and not 0 <= head < num_heads:
        raise InputError(f"--head {head}: wanted 0 to {num_heads - 1}")


def query_labels(trace: Trace, attention: AttentionInfo) -> tuple[str, ...]:
    """The labels of the queries: in attention from a decoder to its source, the tokens that were chosen."""
    axis = trace.info.axes[attention.queries]
    return axis.tokens if attention.queries == attention.keys else axis.generated


def key_labels(trace: Trace, attention: AttentionInfo) -> tuple[str, ...]:
    return trace.info.axes[attention.keys].tokens


def find_tokens(axis: Axis, token: str | None) -> list[int]:
    """The positions of a token by its label, of a word by its tokens, or of a number; the last of several.

    A whole word comes before the rest of another: "it" before the "·it" of "wait".
    """
    if token is None:
        raise InputError(f"which token? give --token; this text has {', '.join(axis.tokens)}")
    wanted = token.casefold()
    whole = [label.casefold() for label in axis.tokens]
    pieces = [label.removeprefix("·") for label in whole]
    if wanted in whole:
        return [_last(whole, wanted)]
    for start in reversed(range(len(whole))):
        end = start + 1
        while end < len(whole) and len("".join(pieces[start:end])) < len(wanted):
            end += 1
        if "".join(pieces[start:end]) == wanted and _begins_word(whole, start) and _begins_word(whole, end):
            return list(range(start, end))
    if wanted in pieces:
        return [_last(pieces, wanted)]
    if token.isdecimal() and int(token) < len(axis.tokens):
        return [int(token)]
    raise InputError(
        f"there is no token {token!r}; this text has {', '.join(axis.tokens)}; wanted one, a word, or a number from 0"
    )


def find_token(axis: Axis, token: str | None) -> int:
    """The position of one token; InputError with the numbers for a word of several."""
    found = find_tokens(axis, token)
    if len(found) > 1:
        named = ", ".join(f"{place} {axis.tokens[place]}" for place in found)
        raise InputError(f"{token!r} is {len(found)} tokens ({named}); choose one of them by its number")
    return found[0]


def _last(labels: Sequence[str], label: str) -> int:
    return max(place for place, one in enumerate(labels) if one == label)


def _begins_word(labels: Sequence[str], place: int) -> bool:
    """Whether a word begins there, or the text ends; labels of single characters do not mark continuations."""
    if not 0 < place < len(labels):
        return True
    letters = [one for one in labels[place - 1 : place + 1] if len(one) == 1 and one.isalnum()]
    return not labels[place].startswith("·") and len(letters) < 2
