"""Tests of the model: `pytest test_mine.py`."""

import torch

from regard.experiments.adapters import CausalLMAdapter
from regard.experiments.laws import check
from regard.templates.model import TinyGPT, TinyGPTConfig

CONFIG = TinyGPTConfig(vocab_size=50, context=64, width=32, heads=2, layers=2)


def loss(model: TinyGPT, ids: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the next token."""
    return torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def trained(ids: torch.Tensor) -> TinyGPT:
    """A model after a few steps on one batch."""
    torch.manual_seed(1)
    model = TinyGPT(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss(model, ids).backward()
        optimizer.step()
    return model.eval()


def batch() -> torch.Tensor:
    return torch.randint(CONFIG.vocab_size, (4, 24), generator=torch.Generator().manual_seed(2))


def test_it_keeps_the_laws() -> None:
    """Causality, padding, a cached step equals the full pass, and so on: what `regard check` proves."""
    findings = list(check(CausalLMAdapter.of(trained(batch()))))
    assert [finding.law.name for finding in findings if finding.holds is False] == []


def test_it_learns_one_batch_by_heart() -> None:
    assert loss(trained(batch()), batch()).item() < 0.5  # at first it is that of a guess, log 50 = 3.9


def test_every_parameter_gets_a_gradient() -> None:
    model = TinyGPT(CONFIG)
    loss(model, batch()).backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
