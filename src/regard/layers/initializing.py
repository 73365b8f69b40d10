"""Initial weights of a model."""

from torch import nn

STD = 0.02
RESIDUAL_OUTPUTS = ("attention.output.weight", "contract.weight")  # the last matrix of each residual branch


def small_normal(model: nn.Module, layers: int | None = None) -> None:
    """Normal with deviation 0.02 (Devlin 2019), biases at zero; norms stay as they are.

    With `layers`, the last matrix of each residual branch is scaled by 1/√(2 layers), so that the sum of the branches
    does not grow, as in GPT-2 (Radford 2019, 2.3). Weights on the meta device will be loaded, and are skipped.
    """
    share = 1.0 if layers is None else (2 * layers) ** -0.5
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=STD * share if name.endswith(RESIDUAL_OUTPUTS) else STD)


def fan_in_normal(model: nn.Module) -> None:
    """Normal with deviation 1/√N for N inputs, which keeps the variance of activations at any width; biases at zero.

    0.02 is that for a width of 2,500. In a narrow model it makes a product of two projections, such as text times image
    in ViLBERT, so small that its gradient vanishes. Norms stay as they are.
    """
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
