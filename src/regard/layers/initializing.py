"""How the weights of a model begin."""

from torch import nn

DEVIATION = 0.02
ADDS = ("attention.output.weight", "contract.weight")  # the last matrices of what a block adds to its words


def small_normal(model: nn.Module, layers: int | None = None) -> None:
    """Deviation 0.02 everywhere (Devlin 2019); biases begin at zero, norms stay as they are.

    With `layers`, what each of so many blocks adds is scaled by 1/√(2 layers), so that their sum does not grow, as in
    GPT-2 (Radford 2019, 2.3). Weights on the meta device stay as they are: theirs come from elsewhere.
    """
    share = 1.0 if layers is None else (2 * layers) ** -0.5
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=DEVIATION * share if name.endswith(ADDS) else DEVIATION)


def level_normal(model: nn.Module) -> None:
    """Deviation 1/√N for N inputs: what comes out of a matrix is as large as what goes in, whatever the width.

    0.02 is that for a width of 2,500; in a narrow model it makes what is multiplied twice, as two vectors that are
    compared number by number, so small that hardly a gradient comes back. Biases begin at zero, norms stay as they are.
    """
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
