"""The views of `regard show`, one file each."""

import difflib
from importlib import import_module

from regard.errors import InputError
from regard.inspection.trace import TraceInfo
from regard.inspection.views.base import Choices, View, made_choices, option_of

NO_CHOICES = Choices()
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
    "map": "embedding_map",
    "states": "states",
    "input": "input",
    "architecture": "architecture",
    "checkpoints": "attention.checkpoints",
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
        near = difflib.get_close_matches(name, VIEWS, n=1)
        meant = f"did you mean {near[0]}? There are" if near else "wanted one of"
        raise InputError(f"there is no view {name!r}; {meant} {', '.join(VIEWS)}")
    found: View = import_module(f"regard.inspection.views.{VIEWS[name]}").VIEW
    return found


def views_of(info: TraceInfo) -> list[View]:
    """The views that have a meaning for a model."""
    return [view for view in map(find_view, VIEWS) if view.missing(info) is None]


def choose_view(name: str | None, info: TraceInfo, choices: Choices = NO_CHOICES) -> View:
    """The view that is named, or the one that says most about such a model; it takes the choices that were made."""
    view = _choose(name, info, choices.token)
    for choice in made_choices(choices):
        if choice not in view.takes:
            takers = [one.name for one in views_of(info) if choice in one.takes]
            raise InputError(
                f"the view {view.name} does not take {option_of(choice)}; of this {info.kind} "
                + (f"{', '.join(takers)} {'do' if len(takers) > 1 else 'does'}" if takers else "no view does")
            )
    return view


def _choose(name: str | None, info: TraceInfo, token: str | None) -> View:
    if name is None:
        default = find_view(DEFAULTS[info.interface])
        if token is None:
            return default if default.missing(info) is None else views_of(info)[0]
        name = default.name if "token" in default.takes else "token"
    view = find_view(name)
    reason = view.missing(info)
    if reason is not None:
        known = ", ".join(one.name for one in views_of(info))
        raise InputError(f"the view {name} has no meaning for this {info.kind}: {reason}; it has {known}")
    return view
