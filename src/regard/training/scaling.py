"""Activation checkpointing and torch.compile, applied to the blocks of a model from outside."""

import os
import shutil
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def scale(model: nn.Module, *, compile: bool, activation_checkpointing: bool) -> list[str]:
    """Change how the blocks of a model run, not what they compute; returns notes for the user."""
    blocks: list[nn.Module] = list(getattr(model, "blocks", []))
    notes = []
    if activation_checkpointing and not blocks:
        notes.append("training.activation_checkpointing: this model has no repeated blocks; all activations are kept")
    elif activation_checkpointing:
        for block in blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if compile and not _compiler():
        notes.append("training.compile: no C++ compiler (g++ or clang++) is on the PATH; continuing without it")
    elif compile and not blocks:
        notes.append("training.compile: this model has no repeated blocks; continuing without it")
    elif compile and (reason := _compile_fails(next(model.parameters()).device)):
        notes.append(f"training.compile: compiling fails on this machine ({reason}); continuing without it")
    elif compile:
        notes.append(f"compiling {len(blocks)} blocks: the first steps take a minute")
        for block in blocks:
            block.compile()
    return notes


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


def _compile_fails(device: torch.device) -> str:
    """Why even a trivial function does not compile, for example missing Python headers; empty if it compiles."""
    try:
        torch.compile(lambda numbers: 2 * numbers + 1)(torch.ones(2, device=device))
    except Exception as error:  # any kind: the compiler is an external program
        return " ".join(str(error).split())[:200] or type(error).__name__
    return ""
