"""A model in use in bfloat16 or float16, changed from outside.

Its linear layers are stored in that dtype, which halves what a decoding step reads, and whatever is called of it runs
under autocast: products in that dtype, norms and softmax in float32.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import nn

from regard.layers.linear import Linear
from regard.runtime import Runtime


def lower_precision(model: nn.Module, runtime: Runtime) -> None:
    """Let a model that is not trained any more compute in the runtime's dtype, in place."""
    for module in model.modules():
        if type(module) is Linear:
            module.to(runtime.dtype)
    for name, found in inspect.getmembers(type(model), inspect.isfunction):
        if not name.startswith("_") and (name == "forward" or not hasattr(nn.Module, name)):
            setattr(model, name, _under_autocast(found.__get__(model), runtime))


def _under_autocast(method: Callable[..., Any], runtime: Runtime) -> Callable[..., Any]:
    @wraps(method)
    def run(*given: Any, **options: Any) -> Any:
        with runtime.autocast():
            return method(*given, **options)

    return run
