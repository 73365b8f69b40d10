"""Ablations: the small model of each variant, what is measured, and the command."""

import json

import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import ConfigError
from regard.experiments import ablation
from regard.experiments.ablation import BASE, CONTEXT, SmallLM, Variant, encode, gradient_ratio, loss_of, written_loss

VARIANTS = {(name, variant): one for name in ablation.ABLATIONS for variant, one in ablation.variants_of(name).items()}


@pytest.fixture
def windows():
    return torch.randint(20, (4, CONTEXT + 1), generator=torch.Generator().manual_seed(0))


def made(variant: Variant) -> SmallLM:
    torch.manual_seed(0)
    return SmallLM(variant, 20)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_only_the_model_without_a_mask_sees_the_future(name, variant, windows):
    model = made(VARIANTS[name, variant])
    changed = windows.clone()
    changed[:, 30:] = (changed[:, 30:] + 7) % 20
    same = torch.allclose(model(windows[:, :-1])[:, :30], model(changed[:, :-1])[:, :30], atol=1e-5)
    assert same == VARIANTS[name, variant].mask


def test_without_residual_connections_a_dead_branch_stops_everything(windows):
    """With both branches at zero, hidden states pass a residual block unchanged, and nothing passes the other."""
    for residual in (True, False):
        model = made(Variant(residual=residual))
        for block in model.blocks:
            torch.nn.init.zeros_(block.output.weight)
            torch.nn.init.zeros_(block.contract.weight)
            torch.nn.init.zeros_(block.output.bias)
            torch.nn.init.zeros_(block.contract.bias)
        hidden = model.embed(windows[:, :-1])
        after = model.blocks[0](hidden)
        assert torch.equal(after, hidden) == residual
        assert after.any() == residual


def test_without_scale_the_scores_are_larger_by_the_root_of_the_width(windows):
    block, other = made(Variant(heads=1)).blocks[0], made(Variant(heads=1, scale=False)).blocks[0]
    hidden = torch.randn(2, 9, ablation.WIDTH)
    query, key, value = block.qkv(hidden).chunk(3, -1)
    for each, scale in ((block, ablation.WIDTH**-0.5), (other, 1.0)):
        mask = torch.ones(9, 9, dtype=torch.bool).tril()
        weights = (query @ key.mT * scale).masked_fill(~mask, -torch.inf).softmax(-1)
        assert_close(each.attend(hidden), each.output(weights @ value), atol=1e-5, rtol=1e-4)


def test_without_positions_and_mask_a_permuted_text_has_permuted_outputs(windows):
    ids, order = windows[:, :-1], torch.randperm(CONTEXT, generator=torch.Generator().manual_seed(1))
    for positions in ("none", "learned", "sinusoidal", "concatenated"):
        model = made(Variant(mask=False, positions=positions))
        permuted = torch.allclose(model(ids[:, order]), model(ids)[:, order], atol=1e-4)
        assert permuted == (positions == "none")


def test_the_written_loss_of_a_masked_model_is_its_loss_there(windows):
    model = made(BASE)
    logits = model(windows[:, :-1]).log_softmax(-1)
    ends = list(ablation.PREFIXES)
    wanted = -logits[:, ends].gather(2, windows[:, [end + 1 for end in ends], None]).mean()
    assert written_loss(model, windows) == pytest.approx(wanted.item(), abs=1e-5)
    assert written_loss(made(Variant(mask=False)), windows) != pytest.approx(
        loss_of(made(Variant(mask=False)), windows).item(), abs=1e-3
    )


def test_the_gradient_of_one_block_is_its_own(windows):
    assert gradient_ratio(made(Variant(layers=1)), windows) == pytest.approx(1.0)


def test_a_run_is_reproducible_and_learns():
    ids, vocab_size = encode(ablation.synthetic_text(300))
    one, same, other = (ablation.train(BASE, ids, vocab_size, seed=seed, steps=12) for seed in (1, 1, 2))
    assert one == same
    assert one["loss"] != other["loss"]
    assert one["loss"] < 3.4


def test_the_command_compares_the_variants_and_draws_them(tmp_path, monkeypatch):
    whole = ablation.run
    monkeypatch.setattr(ablation, "run", lambda name, text: whole(name, text[:4000], seeds=(1, 2), steps=2))
    done = CliRunner().invoke(app, ["compare", "--ablation", "mask", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "unmasked" in done.output
    rows = json.loads((tmp_path / "ablation.json").read_text(encoding="utf-8"))["rows"]
    assert [row["variant"] for row in rows] == ["masked", "unmasked"]
    assert (tmp_path / "ablation.png").stat().st_size > 5000


def test_an_unknown_ablation_is_answered_with_all_names(tmp_path):
    with pytest.raises(ConfigError, match="wanted one of residual, norm, scale, mask, positions, depth, heads"):
        ablation.variants_of("resdual")
    with pytest.raises(ConfigError, match="the text has 5 characters"):
        encode("abcde")
