"""What the tests of the server share."""

import torch

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def loud(model):
    """Random weights, so large that the best token is clearly ahead."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(mean=float(weight.dim() == 1), std=0.3)
    return model.eval()
