"""Where a translator looked when it wrote a text, or a captioner.

The text is handed to the model once more, whole, with the cross-attention watched. That costs one pass, only when
asked; and since a cached step equals the full pass, it is what the search saw, whatever the search was.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.inspection.capture import watch


@torch.inference_mode()
def look_of(model: Any, source: list[int], target: list[int]) -> np.ndarray:
    """Weights (T, S): row t is where the model looked when it chose target token t, the mean of its alignment taps."""
    device = next(model.parameters()).device
    begun = [model.config.special_ids.bos_id, *target[:-1]]
    weights = looks_of(model, torch.tensor([source], device=device), torch.tensor([begun], device=device))
    return weights.mean((0, 2))[0].cpu().numpy()


@torch.inference_mode()
def looks_of(model: Any, inputs: Tensor, target: Tensor) -> Tensor:
    """Weights (taps, B, H, T, S) of every head of every alignment tap, while the model reads all of a target (B, T)."""
    with watch(model, *model.alignment_taps) as seen:
        model(inputs, target)
    # A Transformer comes by each tap once, with all of the target; a recurrent decoder once a word.
    return torch.stack([torch.cat(values, dim=-2) for values in seen.values()])
