"""Where a translator looked when it wrote a text.

The text is handed to the model once more, whole, with the cross-attention watched. That costs one pass, only when
asked; and since a cached step equals the full pass, it is what the search saw, whatever the search was.
"""

from typing import Any

import numpy as np
import torch

from regard.inspection.capture import watch


@torch.inference_mode()
def look_of(model: Any, source: list[int], target: list[int]) -> np.ndarray:
    """Weights (T, S): row t is where the model looked when it chose target token t, the mean of its alignment taps."""
    begin = model.config.symbols.begin
    device = next(model.parameters()).device
    with watch(model, *model.alignment_taps) as seen:
        model(torch.tensor([source], device=device), torch.tensor([[begin, *target[:-1]]], device=device))
    # A Transformer comes by each tap once, with all of the target; a recurrent decoder once a word.
    weights = torch.stack([torch.cat(values, dim=-2)[0] for values in seen.values()])  # (taps, H, T, S)
    return weights.mean((0, 1)).cpu().numpy()
