"""What makes a step faster or smaller, applied to a model from outside: compiled blocks, recomputed activations."""

import os
import shutil
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def scale(model: nn.Module, *, compile: bool, activation_checkpointing: bool) -> list[str]:
    """Change how the model's blocks are run, not what they compute; lines for the user."""
    blocks: list[nn.Module] = list(getattr(model, "blocks", []))
    notes = []
    if activation_checkpointing and not blocks:
        notes.append(
            "training.activation_checkpointing: this model has no repeated blocks; going on with all activations kept"
        )
    elif activation_checkpointing:
        for block in blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if compile and not _compiler():
        notes.append("training.compile: no C++ compiler (g++ or clang++) is on the PATH; going on uncompiled")
    elif compile and not blocks:
        notes.append("training.compile: this model has no repeated blocks; going on uncompiled")
    elif compile and (reason := _compile_fails(next(model.parameters()).device)):
        notes.append(f"training.compile: compiling fails here ({reason}); going on uncompiled")
    elif compile:
        notes.append(f"compiling {len(blocks)} blocks: the first steps take a minute")
        for block in blocks:
            block.compile()
    return notes


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


def _compile_fails(device: torch.device) -> str:
    """Why not even the smallest function compiles, as where Python's headers are missing; empty if it does."""
    try:
        torch.compile(lambda numbers: 2 * numbers + 1)(torch.ones(2, device=device))
    except Exception as error:  # of any kind: the compiler is a program of its own
        return " ".join(str(error).split())[:200] or type(error).__name__
    return ""
