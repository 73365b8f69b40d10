"""What makes a step smaller or faster changes how it is computed, not what."""

import os
import shutil
from copy import deepcopy

import pytest
import torch

from regard.experiments.model_cost import counted
from regard.models import build
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.tasks.language_modeling.dataset import TextBatch
from regard.tasks.language_modeling.task import LanguageModelTraining
from regard.training.flops import training_flops
from regard.training.scaling import scale
from tests.contracts.examples import SEQ2SEQ, named

TINY = {"vocab_size": 40, "context": 16, "width": 24, "layers": 3}
CONFIGS = [
    GPTConfig(**TINY, heads=3, dropout=0.0),
    LlamaConfig(**TINY, heads=6, num_kv_heads=2, feed_forward=32),
]
by_name = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)


def batch(rows=4, length=12):
    ids = torch.randint(40, (rows, length + 1), generator=torch.Generator().manual_seed(1))
    return TextBatch(ids[:, :-1], ids[:, 1:], None, rows * length)


def step(model):
    """The loss of a batch and all gradients."""
    torch.manual_seed(7)
    loss = LanguageModelTraining(None).loss(model, batch())
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in model.named_parameters()}


def same(one, other):
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    for name, gradient in one[1].items():
        torch.testing.assert_close(other[1][name], gradient, msg=name)


@by_name
def test_activation_checkpointing_gives_the_same_loss_and_gradients(config):
    model = build(config).train()
    again = deepcopy(model)
    assert scale(again, compile=False, activation_checkpointing=True) == []
    same(step(model), step(again))


@pytest.mark.parametrize("example", SEQ2SEQ, ids=named)
def test_activation_checkpointing_of_translators_gives_the_same_loss_and_gradients(example):
    source = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
    target = torch.tensor([[1, 9, 10], [1, 11, 12]])

    def step(model):
        torch.manual_seed(7)
        loss = model(source, target).log_softmax(-1)[..., 3:6].sum()
        loss.backward()
        return loss.item(), {name: parameter.grad for name, parameter in model.named_parameters()}

    model = example.model().train()
    again = deepcopy(model)
    assert scale(again, compile=False, activation_checkpointing=True) == []
    same(step(model), step(again))


def test_activation_checkpointing_repeats_the_dropout_mask():
    model = build(CONFIGS[0].model_copy(update={"dropout": 0.3})).train()
    again = deepcopy(model)
    scale(again, compile=False, activation_checkpointing=True)
    same(step(model), step(again))


@by_name
def test_activation_checkpointing_stores_less_and_runs_each_block_twice(config):
    model = build(config).train()
    calls = []
    for block in model.blocks:
        block.feed_forward.register_forward_pre_hook(lambda *_: calls.append(1))
    scale(model, compile=False, activation_checkpointing=True)

    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda t: t):
        loss = LanguageModelTraining(None).loss(model, batch())
    before = len(calls)
    loss.backward()
    assert (before, len(calls)) == (config.layers, 2 * config.layers)

    plain: list[int] = []
    whole = build(config).train()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: plain.append(tensor.numel()) or tensor, lambda t: t):
        LanguageModelTraining(None).loss(whole, batch())
    assert sum(kept) < sum(plain) / 2


@by_name
def test_with_activation_checkpointing_a_model_evaluates_generates_and_saves_as_before(config):
    model = build(config).eval()
    again = deepcopy(model)
    scale(again, compile=False, activation_checkpointing=True)
    ids = batch().ids
    assert again.state_dict().keys() == model.state_dict().keys()
    with torch.inference_mode():
        assert torch.equal(again(ids), model(ids))
        logits, _ = again.step(torch.tensor([3]), again.start([[1, 2]]))
        assert logits.shape == (1, 40)


def test_without_a_compiler_there_is_one_note_and_the_model_is_unchanged(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    model = build(CONFIGS[0]).train()
    again = deepcopy(model)
    (note,) = scale(again, compile=True, activation_checkpointing=False)
    assert "no C++ compiler" in note
    same(step(model), step(again))


def test_each_block_is_compiled_separately(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/c++")
    monkeypatch.setattr(torch, "compile", lambda function: function)
    compile = []
    model = build(CONFIGS[0])
    monkeypatch.setattr(type(model.blocks[0]), "compile", lambda self: compile.append(self))
    (note,) = scale(model, compile=True, activation_checkpointing=True)
    assert compile == list(model.blocks)
    assert "compiling 3 blocks" in note


def test_if_compiling_fails_there_is_one_note_and_the_model_is_unchanged(monkeypatch):
    def fails(function):
        raise RuntimeError("fatal error:\nPython.h: No such file")

    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/c++")
    monkeypatch.setattr(torch, "compile", fails)
    model = build(CONFIGS[0]).train()
    again = deepcopy(model)
    (note,) = scale(again, compile=True, activation_checkpointing=False)
    wanted = "compiling fails on this machine (fatal error: Python.h: No such file); continuing without it"
    assert note == f"training.compile: {wanted}"
    same(step(model), step(again))


def test_a_model_without_blocks_gets_a_note(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/c++")
    notes = scale(torch.nn.Linear(2, 2), compile=True, activation_checkpointing=True)
    assert [note.split(":")[0] for note in notes] == ["training.activation_checkpointing", "training.compile"]
    assert all("no repeated blocks" in note for note in notes)


def test_a_run_without_a_compiler_trains_and_says_so(here, story, tiny_text, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    hidden = ["train", "gpt", story, "-o", tmp_path / "run", *tiny_text, "model.vocab_size=300", "training.steps=3"]
    done = here(*hidden, "training.compile=true", "training.activation_checkpointing=true")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no C++ compiler") == 1
    assert (tmp_path / "run/model.safetensors").exists()


@pytest.mark.filterwarnings("ignore")  # as below
def test_a_run_with_a_compiler_that_fails_trains_and_says_so(here, story, tiny_text, tmp_path, monkeypatch):
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo g++ 12.2.0 && exit\necho no Python.h >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    hidden = ["train", "gpt", story, "-o", tmp_path / "run", *tiny_text, "model.vocab_size=300", "training.steps=3"]
    done = here(*hidden, "training.compile=true")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiling fails on this machine") == 1
    assert "C++ compile error" in done.stderr
    assert "Traceback" not in done.stderr
    # The settings that only say how a step is computed may change from one sitting to the next.
    done = here(*hidden[:-1], "training.steps=5", "training.activation_checkpointing=true")
    assert done.returncode == 0, done.stderr


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")  # torch's compiler does what torch warns of
@by_name
def test_compiled_blocks_compute_the_same(config):
    """For real: takes a minute, and a C++ compiler."""
    model = build(config).train()
    again = deepcopy(model)
    (note,) = scale(again, compile=True, activation_checkpointing=False)
    if "no C++ compiler" in note:
        pytest.skip("there is no C++ compiler on this machine")
    one, other = step(model), step(again)
    assert other[0] == pytest.approx(one[0], rel=1e-5)
    for name, gradient in one[1].items():
        torch.testing.assert_close(other[1][name], gradient, rtol=1e-3, atol=1e-4, msg=name)


# ------------------------------------------------ arithmetic


@by_name
def test_the_flops_of_a_step_are_six_times_the_multiply_adds_of_a_pass(config):
    model = build(config).eval()
    several = [batch(4, 12), batch(2, 16)]
    adds = sum(counted(model, one.ids) for one in several)
    assert training_flops(model, several) == 6 * adds


def test_a_model_without_a_formula_has_unknown_flops():
    assert training_flops(torch.nn.Linear(2, 2), [batch()]) is None
