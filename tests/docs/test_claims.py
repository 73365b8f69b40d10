"""Claims of the lectures that are no property of one module: each is small and sure, and the pages point here."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import regard
from docs.site.pages import blocks_of, run_block
from regard.experiments.ablation import CONTEXT, SmallLM, Variant, gradient_ratio, loss_of, written_loss
from regard.layers.attention import MultiHeadAttention
from regard.layers.feed_forward import FeedForward
from regard.layers.norm import LayerNorm
from regard.layers.recurrent import CELLS
from regard.models import build
from regard.models.base import EncoderIds
from regard.models.bert import BertConfig
from regard.models.transformer import Transformer, TransformerConfig
from tests.docs.test_pages import ROOT


def test_weights_that_sum_to_one_keep_outputs_among_the_inputs():
    torch.manual_seed(0)
    for length in (4, 64, 512):
        x = torch.randn(length, 6)
        mean = (x @ x.T).softmax(-1) @ x
        assert (mean <= x.amax(0) + 1e-5).all()
        assert (mean >= x.amin(0) - 1e-5).all()
    assert ((x @ x.T).exp() @ x).abs().max() > 100 * x.abs().max()  # without the sum to one


def test_the_loss_of_a_text_is_the_mean_over_its_positions():
    torch.manual_seed(0)
    model = SmallLM(Variant(layers=1), 9)
    windows = torch.randint(9, (3, 12))
    logits = model(windows[:, :-1])
    each = [F.cross_entropy(logits[:, t], windows[:, t + 1]) for t in range(11)]
    assert_close(loss_of(model, windows), torch.stack(each).mean())


def test_without_a_mask_noise_is_predicted_and_nothing_can_be_written():
    noise = torch.randint(8, (6000,), generator=torch.Generator().manual_seed(1))
    found = {}
    for mask in (True, False):
        torch.manual_seed(1)
        model = SmallLM(Variant(mask=mask, layers=2), 8)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for _ in range(200):
            starts = torch.randint(5000, (8,))
            loss_of(model, noise[starts[:, None] + torch.arange(CONTEXT + 1)]).backward()
            optimizer.step()
            optimizer.zero_grad()
        held_out = noise[5000:].unfold(0, CONTEXT + 1, CONTEXT + 1)
        with torch.no_grad():
            found[mask] = loss_of(model, held_out).item(), written_loss(model, held_out)
    assert found[True] == pytest.approx((math.log(8), math.log(8)), abs=0.1)
    assert found[False][0] < 0.3
    assert found[False][1] > math.log(8) + 0.5


def test_layer_norm_divides_by_d_unlike_the_slide():
    torch.manual_seed(0)
    x = 3 * torch.randn(64) + 5
    slide = (x - x.mean()) / (x - x.mean()).square().sum().sqrt()
    assert LayerNorm(64)(x).std(correction=0).item() == pytest.approx(1.0, abs=1e-4)
    assert slide.std(correction=0).item() == pytest.approx(1 / 8)


def test_attention_without_an_mlp_stays_in_the_span_of_its_inputs():
    torch.manual_seed(0)
    plane = torch.randn(5, 2) @ torch.randn(2, 16)
    attended = plane
    for _ in range(4):
        attended = (attended @ attended.T).softmax(-1) @ attended
    assert torch.linalg.matrix_rank(attended, atol=1e-3) <= 2
    assert torch.linalg.matrix_rank(FeedForward(16, 32, "relu")(plane), atol=1e-3) == 5


def test_without_attention_no_token_influences_another():
    torch.manual_seed(0)
    hidden, off = torch.randn(6, 16), ~torch.eye(6, dtype=torch.bool)
    norm, mlp, attention = LayerNorm(16), FeedForward(16, 32, "relu"), MultiHeadAttention(16, 4)

    def influence(function):
        return torch.autograd.functional.jacobian(function, hidden).abs().sum((1, 3))

    assert not influence(lambda x: mlp(norm(x)))[off].any()
    assert influence(lambda x: attention(x[None], x[None])[0])[off].all()


def test_residual_connections_keep_the_gradient_alive():
    windows = torch.randint(20, (4, CONTEXT + 1), generator=torch.Generator().manual_seed(0))
    found = {}
    for residual in (True, False):
        torch.manual_seed(0)
        model = SmallLM(Variant(residual=residual, norm="none", layers=8), 20)
        with torch.no_grad():
            for block in model.blocks:  # branches at a third of their size: what is lost without a way past them
                block.output.weight.mul_(0.3)
                block.contract.weight.mul_(0.3)
        found[residual] = gradient_ratio(model, windows)
    assert 0.5 < found[True] < 5
    assert found[False] < 1e-4


def test_blocks_have_one_structure_and_parameters_of_their_own():
    model = Transformer(TransformerConfig(vocab_size=40, width=16, heads=4, layers=3, feed_forward=32))
    for stack in (model.encoder.blocks, model.decoder.blocks):
        blocks = [dict(block.named_parameters()) for block in stack]
        for other in blocks[1:]:
            assert {name: one.shape for name, one in blocks[0].items()} == {n: one.shape for n, one in other.items()}
            assert not {id(one) for one in blocks[0].values()} & {id(one) for one in other.values()}


def test_one_word_has_two_vectors_in_two_sentences():
    torch.manual_seed(0)
    ids = EncoderIds(pad_id=0, bos_id=1, eos_id=2, mask_id=3)
    encoder = build(BertConfig(vocab_size=40, width=24, heads=3, layers=2, context=32, special_ids=ids)).eval()
    for parameter in encoder.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    with torch.no_grad(), regard.capture(encoder, "embedding.tokens", "blocks.1.hidden") as seen:
        encoder(torch.tensor([[1, 10, 20, 11, 2]]))
        encoder(torch.tensor([[1, 30, 20, 31, 2]]))
    alike = [torch.cosine_similarity(one[0, 2], other[0, 2], dim=0).item() for one, other in seen.values()]
    assert alike[0] == pytest.approx(1.0)
    assert alike[1] < 0.995


def test_gradients_of_a_plain_recurrence_vanish_or_explode_with_distance():
    def gradient(name: str, distance: int, scale: float) -> float:
        torch.manual_seed(1)
        cell = CELLS[name](8, 32)
        with torch.no_grad():
            cell.recurrent.weight.copy_(torch.randn_like(cell.recurrent.weight) * scale / 32**0.5)
            if name == "lstm":
                cell.input.bias[32:64] = 5.0  # the forget gate, open
        x = (0.1 * torch.randn(1, distance + 1, 8)).requires_grad_()
        cell(x, torch.zeros(1, cell.parts, 32))[0, -1, -1].sum().backward()
        return x.grad[0, 0].norm().item()

    assert gradient("elman", 60, 0.7) < 1e-6 * gradient("elman", 1, 0.7)
    assert gradient("elman", 60, 1.6) > 10 * gradient("elman", 1, 1.6)
    assert gradient("lstm", 60, 0.7) > 0.1 * gradient("lstm", 1, 0.7)


def test_the_page_and_the_package_agree_on_a_transformer():
    """The page itself: its blocks up to the comparison in double precision."""
    page = (ROOT / "docs/lectures/build-a-transformer.md").read_text(encoding="utf-8")
    namespace: dict = {"__name__": "page"}
    for block in blocks_of(page):
        if block.kind == "python":
            run_block("build-a-transformer.md", block, namespace)
        if "difference" in namespace:
            break
    assert namespace["difference"] < 1e-6


def test_the_human_baseline_of_glue_is_the_mean_of_nine_tasks():
    page = (ROOT / "docs/lectures/bert-gpt-and-beyond.md").read_text(encoding="utf-8")
    block = next(one for one in blocks_of(page) if "human baseline" in one.content)
    assert "human baseline: 87.1" in run_block("page", block, {})
