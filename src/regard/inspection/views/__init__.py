"""The views of `regard show`, one file each."""

from importlib import import_module

from regard.errors import InputError
from regard.inspection.trace import TraceInfo
from regard.inspection.views.base import View

# name -> its module below this one, in the order of `regard show --list`
VIEWS = {
    "alignment": "attention.alignment",
    "heads": "attention.heads",
    "head": "attention.head",
    "token": "attention.token",
    "qkv": "attention.qkv",
    "masks": "attention.masks",
    "rollout": "attention.rollout",
    "switches": "attention.switches",
    "image": "attention.image",
    "coattention": "attention.coattention",
    "next": "next",
    "lens": "lens",
    "steps": "steps",
    "cache": "cache",
    "positions": "positions",
    "words": "words",
    "states": "states",
    "input": "input",
    "architecture": "architecture",
}
# What a model is shown with, by its interface, if no view is named.
DEFAULTS = {
    "seq2seq": "alignment",
    "causal_lm": "heads",
    "encoder": "heads",
    "captioner": "image",
    "vision_language": "coattention",
}


def find_view(name: str) -> View:
    """A view by its name; InputError with all names for an unknown one."""
    if name not in VIEWS:
        raise InputError(f"there is no view {name!r}; wanted one of {', '.join(VIEWS)}")
    found: View = import_module(f"regard.inspection.views.{VIEWS[name]}").VIEW
    return found


def views_of(info: TraceInfo) -> list[View]:
    """The views that have a meaning for a model."""
    return [view for view in map(find_view, VIEWS) if view.missing(info) is None]


def choose_view(name: str | None, info: TraceInfo, token: str | None = None) -> View:
    """The view that is named, or the one that says most about such a model."""
    if name is None and token is not None and "token" in VIEWS:
        name = "token"
    if name is None:
        default = find_view(DEFAULTS[info.interface])
        return default if default.missing(info) is None else views_of(info)[0]
    view = find_view(name)
    reason = view.missing(info)
    if reason is not None:
        known = ", ".join(one.name for one in views_of(info))
        raise InputError(f"the view {name} has no meaning for this {info.kind}: {reason}; it has {known}")
    return view
