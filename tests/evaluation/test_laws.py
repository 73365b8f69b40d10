"""The laws hold for our models, and each can fail: for every law there is a model that breaks it."""

import math

import pytest
import torch
from torch import nn

from regard.evaluation.laws import LAWS, Subject, check
from regard.layers import masks
from regard.layers.attention import MultiHeadAttention
from regard.models.symbols import Symbols
from regard.models.transformer import Encoder, Transformer, TransformerConfig, TransformerState
from regard.worlds.sentences import sentences

CONFIG = TransformerConfig(vocabulary=60, width=24, heads=3, layers=2, feed_forward=32)


def subject_of(model) -> Subject:
    return Subject(model.eval(), vocabulary=60, symbols=CONFIG.symbols)


def broken_laws(model) -> set[str]:
    return {finding.law.name for finding in check(subject_of(model)) if finding.holds is False}


@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"positions": "learned", "join": "concatenated"}])
def test_our_models_keep_every_law(changes):
    findings = list(check(subject_of(Transformer(CONFIG.model_copy(update=changes)))))
    assert len(findings) == len(LAWS)
    assert [str(finding) for finding in findings if not finding.holds] == []


# ------------------------------------------------ models that break a law


class SeesTheFuture(Transformer):
    def __init__(self, config):
        super().__init__(config)
        for block in self.decoder.blocks:
            block.attention.look = lambda *args, causal, look=block.attention.look: look(*args, causal=False)


class AttendsPadding(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.encoder.forward = lambda words, mask: Encoder.forward(self.encoder, words, None)


class MindsItsNeighbors(Transformer):
    def forward(self, source, target, *segments):
        logits = super().forward(source, target)
        return logits + 0.1 * logits.mean(dim=0, keepdim=True)


class ForgetsToReorder(Transformer):
    def start(self, source):
        state = super().start(source)
        state.reorder = lambda rows: None
        return state


class ReordersTheMemoryAlone(Transformer):
    """The fault of a beam search that moves the sentences but not what they wrote."""

    def start(self, source):
        state = super().start(source)

        def reorder(rows):
            caches, state.caches = state.caches, []
            TransformerState.reorder(state, rows)
            state.caches = caches

        state.reorder = reorder
        return state


class CountsPlacesFromOne(Transformer):
    def step(self, tokens, state):
        if not state.caches[0].length:
            super().step(tokens, state)
        return super().step(tokens, state)


class WalksByItsStep(Transformer):
    """Logits that depend on how many rows were ever stepped: no search gives the same twice."""

    steps = 0

    def step(self, tokens, state):
        self.steps += 1
        logits, state = super().step(tokens, state)
        return logits.roll(self.steps, dims=-1), state


class ShowsOtherWeights(Transformer):
    """Watched, its attention is sharper than when nobody looks."""

    def __init__(self, config):
        super().__init__(config)
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                tap = module.weights
                tap.forward = lambda weights, tap=tap: type(tap).forward(tap, (weights * 4).softmax(-1))


class NormsByTheWrongAxis(Transformer):
    def __init__(self, config):
        super().__init__(config)
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                module.weights.forward = lambda weights, tap=module.weights: type(tap).forward(tap, weights * 1.1)


class HasHiddenPositions(Transformer):
    def _embed(self, table, ids, **places):
        words = super()._embed(table, ids, **places)
        return words + torch.linspace(0, 1, ids.shape[1])[:, None]


class HasNoPositions(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.positions.table.zero_()


class HidesTheFutureItSees(SeesTheFuture):
    """A forbidden word at -1e9 must not drown the rest."""

    def forward(self, source, target, *segments):
        logits = super().forward(source, target).clone()
        logits[..., 7] = -1e9
        return logits


class SeesTheFutureALittle(SeesTheFuture):
    def forward(self, source, target, *segments):
        return super().forward(source, target) * 1e-6


class MixesUpItsBeams(Transformer):
    """Right for rows, wrong for several beams of one sentence."""

    def start(self, source):
        state = super().start(source)

        def reorder(rows):
            TransformerState.reorder(state, rows)
            if rows.dim() == 2 and rows.shape[1] > 1:
                state.memory = [type(pair)(pair.key.roll(1, 0), pair.value) for pair in state.memory]

        state.reorder = reorder
        return state


class IgnoresItsSource(Transformer):
    def forward(self, source, target, *segments):
        return super().forward(torch.full_like(source, self.config.symbols.end), target)


class HasADeadLayer(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.never_called = nn.Linear(3, 3)


class GivesNoNumber(Transformer):
    def forward(self, source, target, *segments):
        return super().forward(source, target) * math.nan


BROKEN = [
    (SeesTheFuture, "causality"),
    (HidesTheFutureItSees, "causality"),
    (SeesTheFutureALittle, "causality"),
    (MixesUpItsBeams, "cached = uncached"),
    (AttendsPadding, "padding"),
    (MindsItsNeighbors, "batch = single"),
    (ForgetsToReorder, "cached = uncached"),
    (ReordersTheMemoryAlone, "cached = uncached"),
    (CountsPlacesFromOne, "cached = uncached"),
    (WalksByItsStep, "beam 1 = greedy"),
    (ShowsOtherWeights, "watched = unwatched"),
    (NormsByTheWrongAxis, "attention rows sum to 1"),
    (HasHiddenPositions, "a set without positions"),
    (HasNoPositions, "a sequence with positions"),
    (IgnoresItsSource, "the memory is used"),
    (HasADeadLayer, "no dead parameter"),
    (GivesNoNumber, "causality"),
]


@pytest.mark.parametrize(("model", "law"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_model_is_found_and_the_law_named(model, law):
    torch.manual_seed(2)
    assert law in broken_laws(model(CONFIG))


def test_every_law_is_broken_by_somebody():
    assert {law.name for law in LAWS} == {law for _, law in BROKEN}


class ForbidsAWord(Transformer):
    def forward(self, source, target, *segments):
        return super().forward(source, target).index_fill(-1, torch.tensor([7]), -torch.inf)

    def step(self, tokens, state):
        logits, state = super().step(tokens, state)
        return logits.index_fill(-1, torch.tensor([7]), -torch.inf), state


def test_a_word_at_minus_infinity_breaks_no_law():
    assert broken_laws(ForbidsAWord(CONFIG)) <= {"no dead parameter"}  # the loss on random words is infinite


# ------------------------------------------------ a module of the user's own


class TorchTransformer(nn.Module):
    """torch's own, as a user would have it: no taps, no cache."""

    def __init__(self, leak=False):
        super().__init__()
        self.embed, self.out = nn.Embedding(50, 16), nn.Linear(16, 50)
        self.core = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.leak = leak

    def forward(self, src, tgt):
        ahead = None if self.leak else ~masks.causal(tgt.shape[1], tgt.shape[1], "cpu")
        padding = src == 0
        return self.out(
            self.core(
                self.embed(src),
                self.embed(tgt),
                tgt_mask=ahead,
                src_key_padding_mask=padding,
                memory_key_padding_mask=padding,
            )
        )


class Mine(Subject):
    def logits(self, source, target):
        return self.module(src=source, tgt=target)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_module_of_the_users_own_with_a_few_lines():
    def holds(module):
        subject = Mine(module.eval(), vocabulary=50, symbols=Symbols())
        return {finding.law.name: finding.holds for finding in check(subject)}

    whole, leaking = holds(TorchTransformer()), holds(TorchTransformer(leak=True))
    assert False not in whole.values()
    assert whole["cached = uncached"] is None  # it has no step: left out
    assert leaking["causality"] is False


# ------------------------------------------------ the command


def test_the_command_prints_each_law_and_exits_by_it(here, trained, tmp_path):
    done = here("check", trained)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok"] * len(LAWS)
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import torch\n"
        "from regard.evaluation.laws import Subject\n"
        "from regard.models.symbols import Symbols\n"
        "class Uniform(torch.nn.Module):\n"
        "    def forward(self, source, target):\n"
        "        return torch.nn.functional.one_hot(target, 20).float()\n"
        "def subject():\n"
        "    return Subject(Uniform(), vocabulary=20, symbols=Symbols())\n"
    )
    done = here("check", mine)
    assert done.returncode == 1
    assert done.stderr == "broken: the memory is used\n"
    assert here("check", tmp_path / "nothing.py").returncode == 2
    mine.write_text("x = 1")
    assert "wanted a function subject()" in here("check", mine).stderr
    (tmp_path / "beside_it.py").write_text("from regard.evaluation.laws import Subject\n")
    mine.write_text("from beside_it import Subject\ndef subject():\n    return Subject(None)\n")
    done = here("check", mine)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "mine.py: TypeError" in done.stderr


def test_the_laws_hold_for_what_a_users_own_pairs_train(here, tmp_path, tiny):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in sentences(500)))
    done = here("train", "translator", pairs, "-o", tmp_path / "run", *tiny, "training.steps=30")
    assert done.returncode == 0, done.stderr
    done = here("check", tmp_path / "run")
    assert done.returncode == 0, done.stdout
