"""Right uses of the recurrent scans."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.gru_scan import AttendingScan, GRUScan
from tests.ops.forms import numbers
from tests.ops.misuse.gradients import with_gradients
from tests.ops.misuse.judging import Op


def step(given: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    reset, keep, new = given.chunk(3, -1)
    reset_state, keep_state, new_state = F.linear(state, weight, bias).chunk(3, -1)
    keep = (keep + keep_state).sigmoid()
    return torch.lerp((new + (reset + reset_state).sigmoid() * new_state).tanh(), state, keep)


def loop(given: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    states = []
    for one in given:
        state = step(one, state, weight, bias)
        states.append(state)
    return torch.stack(states) if states else given[..., : state.shape[-1]] * 1


def attending_loop(given: Tensor, state: Tensor, weight: Tensor, bias: Tensor, **attention: Tensor) -> Any:
    states, contexts = [], []
    key = attention["key"].masked_fill(~attention["mask"][..., None], 0.0)  # no gradient where the mask excludes it
    for one in given:
        asked = F.linear(state, attention["query"], attention["query_bias"])
        scores = (key + asked[:, None]).tanh() @ attention["score"]
        closed = torch.zeros_like(scores).masked_fill(~attention["mask"], torch.finfo(given.dtype).min)
        weights = (scores + closed).softmax(-1)
        contexts.append((weights[:, None] @ attention["value"])[:, 0])
        state = step(one + F.linear(contexts[-1], attention["gates"]), state, weight, bias)
        states.append(state)
    return torch.stack(states), torch.stack(contexts)


def scan(given: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return GRUScan.apply(given, state, weight, bias)


def attending_scan(given: Tensor, state: Tensor, weight: Tensor, bias: Tensor, **attention: Tensor) -> Any:
    names = ("query", "query_bias", "score", "gates")
    further = [attention[name] for name in ("key", "value", "mask")]
    return AttendingScan.apply(given, state, *further, weight, bias, *(attention[name] for name in names))


def scan_use(steps: int, rows: int, width: int) -> Any:
    return lambda: {
        "given": numbers(steps, rows, 3 * width),
        "state": numbers(rows, width, seed=1),
        "weight": numbers(3 * width, width, seed=2),
        "bias": numbers(3 * width, seed=3),
    }


def attending_use(steps: int, rows: int, width: int, keys: int, inner: int) -> Any:
    return lambda: (
        scan_use(steps, rows, width)()
        | {
            "key": numbers(rows, keys, inner, seed=4),
            "value": numbers(rows, keys, width, seed=5),
            "mask": torch.arange(keys) < torch.arange(1, rows + 1)[:, None],
            "query": numbers(inner, width, seed=6),
            "query_bias": numbers(inner, seed=7),
            "score": numbers(inner, seed=8),
            "gates": numbers(3 * width, width, seed=9),
        }
    )


RECURRENT = [
    Op("GRUScan", with_gradients(scan), with_gradients(loop), [scan_use(4, 3, 5), scan_use(1, 1, 1)], tolerance=1e-4),
    Op(
        "AttendingScan",
        with_gradients(attending_scan),
        with_gradients(attending_loop),
        [attending_use(4, 3, 5, 7, 6), attending_use(1, 1, 1, 1, 1)],
        tolerance=1e-4,
    ),
]
