"""How the weights of a language model begin."""

from torch import nn

DEVIATION = 0.02
ADDS = ("attention.output.weight", "contract.weight")  # the last matrices of what a block adds to its words


def small_normal(model: nn.Module, layers: int) -> None:
    """Deviation 0.02 everywhere; what a block adds is scaled by 1/√(2 layers), so that their sum does not grow.

    Radford 2019, 2.3. Biases begin at zero, norms stay as they are, and so do weights on the meta device: theirs come
    from elsewhere.
    """
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=DEVIATION / (2 * layers) ** 0.5 if name.endswith(ADDS) else DEVIATION)
