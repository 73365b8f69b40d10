"""The attention of a translator or captioner to its input, for a text it generated.

The whole text is given to the model once more, teacher-forced, with the cross-attention captured. That costs one pass,
and only when requested. A cached decoding step equals the full pass, so these are the weights that decoding used,
whatever the strategy.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.inspection.capture import capture


@torch.inference_mode()
def alignment_matrix(model: Any, source: list[int], target: list[int]) -> np.ndarray:
    """Attention weights (T, S) of target token t to the source: the mean over the model's alignment taps and heads."""
    device = next(model.parameters()).device
    decoder_input = [model.config.special_ids.bos_id, *target[:-1]]
    weights = cross_attention_weights(
        model, torch.tensor([source], device=device), torch.tensor([decoder_input], device=device)
    )
    return weights.mean((0, 2))[0].float().cpu().numpy()


@torch.inference_mode()
def cross_attention_weights(model: Any, inputs: Tensor, target: Tensor) -> Tensor:
    """Attention weights (taps, B, H, T, S) of every head of every alignment tap, for whole targets (B, T)."""
    with capture(model, *model.alignment_taps) as captured:
        model(inputs, target)
    # A Transformer calls each tap once, for the whole target; a recurrent decoder once a token.
    return torch.stack([torch.cat(values, dim=-2) for values in captured.values()])
