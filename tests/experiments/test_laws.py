"""The laws hold for our models, and each can fail: for every law there is a model that breaks it."""

import json
import math

import pytest
import torch
from torch import nn

from regard.experiments import laws
from regard.experiments.adapters import CausalLMAdapter, EncoderAdapter, VisionLanguageAdapter, adapter_of
from regard.experiments.laws import LAWS, ModelAdapter, check, check_law
from regard.layers import masks
from regard.layers.attention import KeysValues, MultiHeadAttention, SelfAttention, attend
from regard.layers.decoding import CrossAttentionState, PromptState
from regard.models import model_class
from regard.models.base import CausalLMIds, SpecialIds
from regard.models.bert import BertForPreTraining, EncoderOutput
from regard.models.captioner import Captioner, LSTMState
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, LlamaConfig
from regard.models.transformer import Encoder, Transformer, TransformerConfig
from regard.synthetic.translation.sentences import sentences
from tests.contracts.examples import CAPTIONERS, ENCODERS, VISION_LANGUAGE, named

CONFIG = TransformerConfig(vocab_size=60, width=24, heads=3, layers=2, feed_forward=32)
OF_PICTURES = ["region padding", "both streams matter"]
OF_READERS = ["bidirectional", "segment ids matter", *OF_PICTURES]


def is_broken(name, adapter) -> bool:
    """This law is broken; the others are not tried."""
    law = next(law for law in LAWS if law.name == name)
    return check_law(law, adapter).holds is False


@pytest.mark.parametrize(
    "changes", [{}, {"norm": "pre"}, {"positions": "learned", "combine_positions": "concatenated"}]
)
def test_our_models_keep_every_law(changes):
    findings = list(check(adapter_of(Transformer(CONFIG.model_copy(update=changes)).eval())))
    assert len(findings) == len(LAWS)
    assert [finding.law.name for finding in findings if finding.holds is None] == OF_READERS
    assert [str(finding) for finding in findings if finding.holds is False] == []


# ------------------------------------------------ models that break a law


class SeesTheFuture(Transformer):
    def __init__(self, config):
        super().__init__(config)
        for block in self.decoder.blocks:
            around = block.attention.self_attend
            block.attention.self_attend = lambda *args, causal, look=around, **rest: look(*args, causal=False, **rest)


class AttendsPadding(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.encoder.forward = lambda words, mask: Encoder.forward(self.encoder, words, None)


class MindsItsNeighbors(Transformer):
    def forward(self, source, target):
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
            CrossAttentionState.reorder(state, rows)
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
        self.positions.weight.zero_()


class HidesTheFutureItSees(SeesTheFuture):
    """A forbidden word at -1e9 must not drown the rest."""

    def forward(self, source, target):
        logits = super().forward(source, target).clone()
        logits[..., 7] = -1e9
        return logits


class SeesTheFutureALittle(SeesTheFuture):
    def forward(self, source, target):
        return super().forward(source, target) * 1e-6


class MixesUpItsBeams(Transformer):
    """Right for rows, wrong for several beams of one sentence."""

    def start(self, source):
        state = super().start(source)

        def reorder(rows):
            CrossAttentionState.reorder(state, rows)
            if rows.dim() == 2 and rows.shape[1] > 1:
                state.memory = [type(pair)(pair.key.roll(1, 0), pair.value) for pair in state.memory]

        state.reorder = reorder
        return state


class IgnoresItsSource(Transformer):
    def forward(self, source, target):
        return super().forward(torch.full_like(source, self.config.special_ids.eos_id), target)


class HasADeadLayer(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.never_called = nn.Linear(3, 3)


class GivesNoNumber(Transformer):
    def forward(self, source, target):
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
    (IgnoresItsSource, "the source is used"),
    (HasADeadLayer, "no dead parameter"),
    (GivesNoNumber, "causality"),
]


@pytest.mark.parametrize(("model", "law"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_model_is_found_and_the_law_named(model, law):
    torch.manual_seed(2)
    assert is_broken(law, adapter_of(model(CONFIG)))


def test_every_law_is_broken_by_somebody():
    assert {law.name for law in LAWS} == {law for _, law in [*BROKEN, *BROKEN_READERS, *BROKEN_PAIRS]}


class ForbidsAWord(Transformer):
    def forward(self, source, target):
        return super().forward(source, target).index_fill(-1, torch.tensor([7]), -torch.inf)

    def step(self, tokens, state):
        logits, state = super().step(tokens, state)
        return logits.index_fill(-1, torch.tensor([7]), -torch.inf), state


def test_a_word_at_minus_infinity_breaks_no_law():
    assert [str(finding) for finding in check(adapter_of(ForbidsAWord(CONFIG))) if finding.holds is False] == []


# ------------------------------------------------ language models


TEXT = {"vocab_size": 60, "context": 32, "width": 24, "layers": 2, "special_ids": {"eos_id": 2}}
LANGUAGE = [
    (GPT, GPTConfig(**TEXT, heads=3)),
    (GPT, GPTConfig(**TEXT | {"special_ids": {}}, heads=2, tie_embeddings=False)),
    (Llama, LlamaConfig(**TEXT, heads=6, num_kv_heads=2, feed_forward=32)),
    (Llama, LlamaConfig(**TEXT, heads=3, num_kv_heads=3, feed_forward=32, tie_embeddings=False, qkv_bias=True)),
]


def loud(model):
    """As a trained one: its parts matter."""
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=parameter.shape[-1] ** -0.5)
            else:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval()


def language_adapter(model):
    return CausalLMAdapter(loud(model), vocab_size=60, special_ids=model.config.special_ids)


@pytest.mark.parametrize(
    ("vocab_size", "special_ids", "words"),
    [
        (6, CausalLMIds(), {0, 1, 2, 3, 4, 5}),
        (6, CausalLMIds(eos_id=3), {0, 1, 2, 4, 5}),
        (6, CausalLMIds(bos_id=1, eos_id=3), {0, 2, 4, 5}),
        (3, CausalLMIds(eos_id=0), {1, 2}),
    ],
)
def test_a_language_model_is_tried_on_all_its_words_and_no_symbol(vocab_size, special_ids, words):
    adapter = CausalLMAdapter(nn.Module(), vocab_size=vocab_size, special_ids=special_ids)
    source, target = laws.random_source(adapter, [300]), laws.random_target(adapter, 1, 300)
    assert set(source[0, :-1].tolist()) == set(target[0, 1:].tolist()) == words


@pytest.mark.parametrize(("kind", "config"), LANGUAGE)
def test_our_language_models_keep_every_law_that_is_theirs(kind, config):
    findings = list(check(language_adapter(kind(config))))
    left_out = [finding.law.name for finding in findings if finding.holds is None]
    assert left_out == ["a set without positions", *OF_READERS]
    assert [str(finding) for finding in findings if finding.holds is False] == []


class LooksAhead(SelfAttention):
    def forward(self, words, mask=None, *, apply_rotary=None, cache=None):
        heads = self.project(words).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
        query, key, value = heads.split([self.heads, self.num_kv_heads, self.num_kv_heads], dim=1)
        if apply_rotary is not None:
            query, key = apply_rotary(query), apply_rotary(key)
        seen = KeysValues(key, value) if cache is None else cache.append(KeysValues(key, value))
        found = attend(query, seen.key, seen.value, mask, causal=False, tap=self.weights)
        return self.output(found.transpose(1, 2).flatten(2))


class AheadToo:
    """Its attention is not causal."""

    def __init__(self, config):
        super().__init__(config)
        for block in self.blocks:
            block.attention.__class__ = LooksAhead


class StaysInItsRows:
    """Nothing of its state changes places."""

    def start(self, prompts):
        state = super().start(prompts)
        state.reorder = lambda rows: None
        return state


class LeavesItsCache:
    """The blanks change places, the cache does not."""

    def start(self, prompts):
        state = super().start(prompts)

        def reorder(rows):
            caches, state.caches = state.caches, []
            PromptState.reorder(state, rows)
            state.caches = caches

        state.reorder = reorder
        return state


class LeavesItsBlanks:
    """The cache changes places, the blanks do not."""

    def start(self, prompts):
        state = super().start(prompts)

        def reorder(rows):
            left_padding, state.left_padding = state.left_padding, None
            PromptState.reorder(state, rows)
            if left_padding is not None:
                state.left_padding = left_padding.repeat(2)[: len(rows.flatten())]

        state.reorder = reorder
        return state


class SeesBlanks:
    """Attends to what stands before a shorter prompt."""

    def __init__(self, config):
        super().__init__(config)
        for block in self.blocks:
            block.register_forward_pre_hook(
                lambda block, given: tuple(None if getattr(one, "dtype", None) is torch.bool else one for one in given)
            )


class SeesBlanksInSteps(SeesBlanks):
    """Only where it writes step by step."""

    def forward(self, ids, document_ids=None):
        hooks = [dict(block._forward_pre_hooks) for block in self.blocks]
        for block in self.blocks:
            block._forward_pre_hooks.clear()
        try:
            return super().forward(ids, document_ids)
        finally:
            for block, before in zip(self.blocks, hooks, strict=True):
                block._forward_pre_hooks.update(before)


class CountsColumns:
    """A word's place is its column, blanks counted."""

    def hidden_states(self, ids, document_ids=None):
        mask = None if document_ids is None else masks.same_document(document_ids, document_ids)
        return self._run_blocks(self._embed(ids, 0, None), mask)


class StepsTwiceAtFirst:
    def step(self, tokens, state):
        if state.length < 12:
            super().step(tokens, state)
        return super().step(tokens, state)


class NeverReadsThePrompt:
    def forward(self, ids, document_ids=None):
        return super().forward(torch.cat([ids[:, :-8] * 0 + 5, ids[:, -8:]], dim=1), document_ids)


BROKEN_LANGUAGE = [
    (AheadToo, "causality"),
    (StaysInItsRows, "cached = uncached"),
    (LeavesItsCache, "cached = uncached"),
    (LeavesItsBlanks, "cached = uncached"),
    (SeesBlanks, "batch = single"),
    (SeesBlanksInSteps, "cached = uncached"),
    (StepsTwiceAtFirst, "cached = uncached"),
    (NeverReadsThePrompt, "the source is used"),
]


@pytest.mark.parametrize(("kind", "config"), [LANGUAGE[0], LANGUAGE[2]], ids=["gpt", "llama"])
@pytest.mark.parametrize(("fault", "law"), BROKEN_LANGUAGE, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_language_model_is_found_and_the_law_named(kind, config, fault, law):
    broken = type(fault.__name__, (fault, kind), {})(config)
    assert is_broken(law, language_adapter(broken))


def test_learned_positions_that_count_blanks_are_found():
    """(Rotary ones do not mind: they know only how far apart two words are.)"""
    broken = type("Broken", (CountsColumns, GPT), {})(LANGUAGE[0][1])
    assert is_broken("batch = single", language_adapter(broken))


def test_the_laws_hold_for_what_was_trained_on_text(here, novel, letters):
    for folder in (novel, letters):
        done = here("check", folder, "--json")
        assert done.returncode == 0, done.stdout
        left_out = [finding["law"] for finding in json.loads(done.stdout) if finding["holds"] is None]
        assert left_out == ["a set without positions", *OF_READERS]


# ------------------------------------------------ readers


OF_WRITERS = ["causality", "cached = uncached", "beam 1 = greedy", "the source is used"]
WITH_ATTENTION = [example for example in ENCODERS if example.kind.startswith("bert")]


@pytest.mark.parametrize("example", ENCODERS, ids=named)
def test_our_readers_keep_every_law_that_is_theirs(example):
    adapter = adapter_of(example.loud_model())
    assert type(adapter) is EncoderAdapter
    findings = {finding.law.name: finding for finding in check(adapter)}
    assert [str(finding) for finding in findings.values() if finding.holds is False] == []
    one_only = ["segment ids matter"] if example.config.num_segments == 1 else []
    attention_only = [] if example in WITH_ATTENTION else ["attention rows sum to 1", "a set without positions"]
    left_out = [name for name, finding in findings.items() if finding.holds is None]
    assert sorted(left_out) == sorted(OF_WRITERS + one_only + attention_only + OF_PICTURES)
    assert {findings[name].why for name in OF_WRITERS} == {"it is an encoder and does not generate"}


def test_what_a_reader_is_tried_on_has_no_hidden_words():
    adapter = adapter_of(ENCODERS[0].model())
    words = laws.random_source(adapter, (500, 500))[:, :-1]
    assert set(words.flatten().tolist()) == set(range(4, 40))


class LooksBackOnly:
    def __init__(self, config):
        super().__init__(config)
        for module in self.modules():
            if isinstance(module, SelfAttention):
                module.causal = True


class ReadsPadding:
    def __init__(self, config):
        super().__init__(config)
        for block in self.encoder.blocks:
            block.forward = lambda words, mask, forward=block.forward: forward(words, None)


class ReadsItsNeighbors:
    def __init__(self, config):
        super().__init__(config)
        norm = self.encoder.embedding.norm
        norm.forward = lambda words, forward=norm.forward: forward(words + words.mean(0, keepdim=True))


class SharpensWhenWatched:
    def __init__(self, config):
        super().__init__(config)
        for block in self.encoder.blocks:
            tap = block.attention.weights
            tap.forward = lambda weights, tap=tap: type(tap).forward(tap, (weights * 4).softmax(-1))


class WeighsTooMuch:
    def __init__(self, config):
        super().__init__(config)
        for block in self.encoder.blocks:
            tap = block.attention.weights
            tap.forward = lambda weights, tap=tap: type(tap).forward(tap, weights * 1.1)


class CountsInSecret:
    def __init__(self, config):
        super().__init__(config)
        norm = self.encoder.embedding.norm
        norm.forward = lambda words, forward=norm.forward: (
            forward(words) + torch.linspace(0, 1, words.shape[1])[:, None]
        )


class DoesNotCount:
    def __init__(self, config):
        super().__init__(config)
        self.encoder.embedding.positions.register_forward_hook(lambda module, given, found: 0 * found)


class ForgetsTheSentences:
    def __init__(self, config):
        super().__init__(config)
        embedding = self.encoder.embedding
        embedding.forward = lambda ids, segment_ids, forward=embedding.forward: forward(ids, 0 * segment_ids)


class HasAnIdleLayer:
    def __init__(self, config):
        super().__init__(config)
        self.idle = nn.Linear(3, 3)


BROKEN_READERS = [
    (LooksBackOnly, "bidirectional"),
    (ReadsPadding, "padding"),
    (ReadsPadding, "batch = single"),
    (ReadsItsNeighbors, "batch = single"),
    (SharpensWhenWatched, "watched = unwatched"),
    (WeighsTooMuch, "attention rows sum to 1"),
    (CountsInSecret, "a set without positions"),
    (DoesNotCount, "a sequence with positions"),
    (ForgetsTheSentences, "segment ids matter"),
    (HasAnIdleLayer, "no dead parameter"),
]
KINDS = [example for example in WITH_ATTENTION if example.config.num_segments > 1]


def is_broken_by(model, law):
    return is_broken(law, adapter_of(loud(model)))


@pytest.mark.parametrize("example", KINDS, ids=named)
@pytest.mark.parametrize(("fault", "law"), BROKEN_READERS, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_reader_is_found_and_the_law_named(example, fault, law):
    broken = type(fault.__name__, (fault, model_class(example.kind)), {})(example.config)
    assert is_broken_by(broken, law)


class PoolsPadding(BertForPreTraining):
    """Its words are right; what it says of the row takes all places together, empty ones too."""

    def encode(self, ids, segment_ids=None):
        words, _ = super().encode(ids, segment_ids)
        return EncoderOutput(words, torch.tanh(self.encoder.pooler(words.mean(1))))


class NamesItsNeighbors(BertForPreTraining):
    """What it says of the row is right, its words are not."""

    def token_logits(self, words):
        return super().token_logits(words + 0.1 * words.mean(0, keepdim=True))


def test_each_output_of_a_reader_is_compared():
    config = next(example.config for example in ENCODERS if example.kind == "bert-pretraining")
    assert is_broken_by(PoolsPadding(config), "padding")
    assert is_broken_by(PoolsPadding(config), "batch = single")
    assert is_broken_by(NamesItsNeighbors(config), "batch = single")


# ------------------------------------------------ beside pictures


@pytest.mark.parametrize("example", VISION_LANGUAGE, ids=named)
def test_our_models_beside_pictures_keep_every_law_that_is_theirs(example):
    adapter = adapter_of(example.loud_model())
    assert type(adapter) is VisionLanguageAdapter
    findings = {finding.law.name: finding for finding in check(adapter)}
    assert [str(finding) for finding in findings.values() if finding.holds is False] == []
    one_only = ["segment ids matter"] if example.config.num_segments == 1 else []
    assert [name for name, finding in findings.items() if finding.holds is None] == OF_WRITERS + one_only


class LooksAtEmptyRegions:
    def __init__(self, config):
        super().__init__(config)
        for co_attention in self.encoder.co_attention_layers:
            look = co_attention.text_co_attention
            look.forward = lambda words, memory, mask, forward=look.forward: forward(words, memory, None)


class DoesNotLook:
    def __init__(self, config):
        super().__init__(config)
        for co_attention in self.encoder.co_attention_layers:
            for look in (co_attention.text_co_attention, co_attention.region_co_attention):
                look.attention.register_forward_hook(lambda module, given, found: 0 * found)


class SeesNothing:
    def __init__(self, config):
        super().__init__(config)
        self.encoder.region_embedding.features.register_forward_hook(lambda module, given, found: 0 * found)


class ReadsEmptyWords:
    def __init__(self, config):
        super().__init__(config)
        for co_attention in self.encoder.co_attention_layers:
            look = co_attention.region_co_attention
            look.forward = lambda words, memory, mask, forward=look.forward: forward(words, memory, None)


class SeesItsNeighbors:
    def __init__(self, config):
        super().__init__(config)
        norm = self.encoder.region_embedding.norm
        norm.forward = lambda seen, forward=norm.forward: forward(seen + seen[:, :1].mean(0, keepdim=True))


class HasAnIdleStream:
    """The last block of the words is left out."""

    def __init__(self, config):
        super().__init__(config)
        self.encoder.co_attention_layers[-1].text_block.forward = lambda words, mask: words


BROKEN_PAIRS = [
    (LooksAtEmptyRegions, "region padding"),
    (LooksAtEmptyRegions, "batch = single"),
    (SeesNothing, "both streams matter"),
    (ReadsEmptyWords, "padding"),
    (SeesItsNeighbors, "batch = single"),
    (HasAnIdleStream, "no dead parameter"),
]


@pytest.mark.parametrize("example", VISION_LANGUAGE, ids=named)
@pytest.mark.parametrize(("fault", "law"), BROKEN_PAIRS, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_model_beside_pictures_is_found_and_the_law_named(example, fault, law):
    broken = type(fault.__name__, (fault, model_class(example.kind)), {})(example.config)
    assert is_broken_by(broken, law)


@pytest.mark.parametrize("example", VISION_LANGUAGE[:4], ids=named)  # those that speak of words and regions
def test_streams_side_by_side_are_not_enough(example):
    broken = type("Broken", (DoesNotLook, model_class(example.kind)), {})(example.config)
    assert is_broken_by(broken, "both streams matter")


class TorchEncoder(nn.Module):
    """torch's own, as a user would have it."""

    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(50, 16), nn.Embedding(40, 16)
        self.core = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, ids):
        words = self.embed(ids) + self.places(torch.arange(ids.shape[1]))
        return self.core(words, src_key_padding_mask=ids == 0)


class MyReader(EncoderAdapter):
    def encode(self, ids, segment_ids):
        return [self.module(ids)]

    @property
    def positions(self):
        return [self.module.places]


# ------------------------------------------------ pictures


@pytest.mark.parametrize("example", CAPTIONERS, ids=named)
def test_our_captioners_keep_every_law_that_is_theirs(example):
    findings = list(check(adapter_of(example.loud_model())))
    left_out = [finding.law.name for finding in findings if finding.holds is None]
    assert left_out == ["a set without positions"] * (example.config.encoder == "cnn") + OF_READERS
    assert [str(finding) for finding in findings if finding.holds is False] == []


def test_the_words_of_a_source_paint_the_cells_of_a_picture():
    adapter = adapter_of(CAPTIONERS[0].model())
    source = torch.tensor([[5, 7, 2, 0], [9, 2, 0, 0]])
    pictures = adapter.images(source)
    assert pictures.shape == (2, 3, 32, 32)
    assert torch.equal(pictures[0, :, :8, 8:16], adapter.cell_pixels[7])
    assert torch.equal(pictures[1, :, :8, 8:16], adapter.cell_pixels[2])
    assert not pictures[:, :, 8:].any()  # padding, and what no word stands for
    assert torch.equal(adapter.images(source[1:, :2]), pictures[1:])
    assert len(adapter.images(torch.full((1, 40), 5))) == 1  # more words than cells


class SeesOneGray(Captioner):
    def start(self, pixels):
        return super().start(torch.zeros_like(pixels))


class NormsTheBatch(Captioner):
    def start(self, pixels):
        return super().start(pixels - pixels.mean(0))


class ForgetsThePictures(Captioner):
    """The fault of a beam search that moves what was written and not what was seen."""

    def start(self, pixels):
        state = super().start(pixels)

        def reorder(rows):
            key, value = state.key, state.value
            LSTMState.reorder(state, rows)
            state.key, state.value = key[: len(state.key)], value[: len(state.value)]

        state.reorder = reorder
        return state


class ReadsTheWholeCaption(Captioner):
    def forward(self, pixels, target):
        return super().forward(pixels, target) + self.decoder.embedding(target).mean()


BROKEN_CAPTIONERS = [
    (SeesOneGray, "the source is used"),
    (NormsTheBatch, "batch = single"),
    (ForgetsThePictures, "cached = uncached"),
    (ReadsTheWholeCaption, "causality"),
]


@pytest.mark.parametrize(("model", "law"), BROKEN_CAPTIONERS, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_captioner_is_found_and_the_law_named(model, law):
    assert is_broken_by(model(CAPTIONERS[0].config), law)


def test_a_reader_of_the_users_own_with_a_few_lines():
    adapter = MyReader(TorchEncoder().eval(), vocab_size=50, special_ids=SpecialIds())
    findings = {finding.law.name: finding for finding in check(adapter)}
    assert [str(finding) for finding in findings.values() if finding.holds is False] == []
    kept = {name for name, finding in findings.items() if finding.holds}
    assert {"padding", "batch = single", "a set without positions", "bidirectional"} <= kept


# ------------------------------------------------ a module of the user's own


class TorchTransformer(nn.Module):
    """torch's own, as a user would have it: no taps, no cache."""

    def __init__(self, leak=False):
        super().__init__()
        self.embed, self.out = nn.Embedding(50, 16), nn.Linear(16, 50)
        self.core = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.leak = leak

    def forward(self, src, tgt):
        ahead = None if self.leak else ~masks.causal_mask(tgt.shape[1], tgt.shape[1], "cpu")
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


class Mine(ModelAdapter):
    def logits(self, source, target):
        return self.module(src=source, tgt=target)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_module_of_the_users_own_with_a_few_lines():
    def holds(module):
        adapter = Mine(module.eval(), vocab_size=50, special_ids=SpecialIds())
        return {finding.law.name: finding.holds for finding in check(adapter)}

    whole, leaking = holds(TorchTransformer()), holds(TorchTransformer(leak=True))
    assert False not in whole.values()
    assert whole["cached = uncached"] is None  # it has no step: left out
    assert leaking["causality"] is False


# ------------------------------------------------ the command


def test_the_command_prints_each_law_and_exits_by_it(here, trained, tmp_path):
    done = here("check", trained)
    assert done.returncode == 0, done.stdout + done.stderr
    marks = ["-" if law.name in OF_READERS else "ok" for law in LAWS]
    assert [line.split()[0] for line in done.stdout.splitlines()] == marks
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import torch\n"
        "from regard.experiments.laws import ModelAdapter\n"
        "from regard.models.base import SpecialIds\n"
        "class Uniform(torch.nn.Module):\n"
        "    def forward(self, source, target):\n"
        "        return torch.nn.functional.one_hot(target, 20).float()\n"
        "def adapter():\n"
        "    return ModelAdapter(Uniform(), vocab_size=20, special_ids=SpecialIds())\n"
    )
    done = here("check", mine)
    assert done.returncode == 1
    assert done.stderr == "broken: the source is used\n"
    assert here("check", tmp_path / "nothing.py").returncode == 2
    mine.write_text("x = 1")
    assert "wanted a function adapter()" in here("check", mine).stderr
    (tmp_path / "beside_it.py").write_text("from regard.experiments.laws import ModelAdapter\n")
    mine.write_text("from beside_it import ModelAdapter\ndef adapter():\n    return ModelAdapter(None)\n")
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
