"""Tiny models of every architecture, for the contracts. A new model joins by one line here."""

from dataclasses import dataclass

import torch
from torch import nn

from regard.config import Facts
from regard.models import build, kind_of
from regard.models.bert import (
    BertClassifierConfig,
    BertConfig,
    BertPretrainingConfig,
    BertTaggerConfig,
    BertWordsConfig,
)
from regard.models.captioner import CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.models.vilbert import (
    ViLBERTAnswererConfig,
    ViLBERTConfig,
    ViLBERTMatcherConfig,
    ViLBERTPointerConfig,
    ViLBERTPretrainingConfig,
)


@dataclass(frozen=True)
class Example:
    """A config, and models of it."""

    config: Facts

    @property
    def kind(self) -> str:
        return kind_of(self.config)

    def model(self, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        return build(self.config).eval()

    def loud_model(self) -> nn.Module:
        """One whose parts all matter: large matrices, biases and norms that are not as they begin.

        A fresh language model hardly looks at anything: its scores are near 0 and a fault in them goes unseen.
        """
        model = self.model()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(std=parameter.shape[-1] ** -0.5)
                else:
                    parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model


TINY = {"vocabulary": 40, "width": 24, "heads": 3, "layers": 2, "feed_forward": 32}
TRANSLATORS = [
    Example(TransformerConfig(**TINY)),
    Example(TransformerConfig(**TINY, norm="pre")),
    Example(TransformerConfig(**TINY, positions="learned", join="concatenated", decoder_layers=1)),
    Example(TransformerConfig(**TINY, positions="halves", activation="swish")),
    Example(TransformerConfig(**TINY, target_vocabulary=40, tied=False, output_bias=True, scaled=False)),
    Example(RNNConfig(vocabulary=40, width=24, bridge="last_state", both_ways=False)),
    Example(RNNConfig(vocabulary=40, width=24, bridge="last_state", cell="lstm", layers=2)),
    Example(RNNConfig(vocabulary=40, width=24, bridge="fixed_context")),
    Example(RNNConfig(vocabulary=40, width=24, bridge="fixed_context", cell="lstm", layers=2, both_ways=False)),
    Example(RNNConfig(vocabulary=40, width=24)),
    Example(RNNConfig(vocabulary=40, width=24, cell="lstm", layers=2, similarity="dot")),
    Example(RNNConfig(vocabulary=40, width=24, layers=2, both_ways=False, similarity="scaled_dot")),
    Example(ConvConfig(vocabulary=40, width=24, layers=2)),
    Example(ConvConfig(vocabulary=40, width=24, layers=3, decoder_layers=1, kernel=4)),
]

TEXT = {"vocabulary": 40, "context": 32, "width": 24, "layers": 2, "symbols": {"begin": 1, "end": 2}}
GROUPED = TEXT | {"heads": 6, "key_heads": 2, "feed_forward": 32}
LANGUAGE_MODELS = [
    Example(GPTConfig(**TEXT, heads=3)),
    Example(GPTConfig(**TEXT, heads=1, tied=False)),
    Example(GPTConfig(**TEXT, heads=4, activation="relu", feed_forward=40)),
    Example(GPTConfig(vocabulary=40, context=32, width=24, layers=1, heads=2)),  # knows no symbols
    Example(LlamaConfig(**GROUPED)),
    Example(LlamaConfig(**GROUPED | {"heads": 4, "key_heads": 1})),
    Example(LlamaConfig(**GROUPED | {"heads": 3, "key_heads": 3, "base": 100.0})),
    Example(LlamaConfig(**GROUPED, tied=False, bias=True)),
    Example(LlamaConfig(**GROUPED, base=100.0, stretch={"factor": 8.0, "trained": 16})),
]

SYMBOLS = {"padding": 0, "begin": 1, "end": 2, "mask": 3}
ROWS = {"vocabulary": 40, "context": 32, "width": 24, "heads": 3, "layers": 2, "symbols": SYMBOLS}
READERS = [
    Example(BertConfig(**ROWS)),
    Example(BertConfig(**ROWS, pooler=False, sentences=1, activation="relu", epsilon=1e-5)),
    Example(BertConfig(**ROWS | {"heads": 1, "layers": 1, "symbols": SYMBOLS | {"mask": None}}, sentences=3)),
    Example(BertPretrainingConfig(**ROWS, feed_forward=40)),
    Example(BertPretrainingConfig(**ROWS | {"heads": 4}, activation="gelu_tanh", dropout=0.0)),
    Example(BertWordsConfig(**ROWS)),
    Example(BertWordsConfig(**ROWS | {"heads": 2, "layers": 3}, sentences=1, activation="swish")),
    Example(BertClassifierConfig(**ROWS, labels=("good", "bad", "neither"))),
    Example(BertClassifierConfig(**ROWS, sentences=3, feed_forward=32)),  # no labels: a score
    Example(BertTaggerConfig(**ROWS, labels=("O", "B-PER", "I-PER"))),
    Example(BertTaggerConfig(**ROWS | {"heads": 6}, sentences=1, labels=("O", "X"))),
]

PICTURES = {"vocabulary": 40, "side": 32, "cell": 8, "width": 24, "heads": 3, "feed_forward": 32}
VIT = {"width": 16, "heads": 2, "layers": 2, "feed_forward": 20}
CAPTIONERS = [
    Example(CaptionerConfig(**PICTURES)),
    Example(CaptionerConfig(**PICTURES, decoder="transformer", layers=2, dropout=0.1)),
    Example(CaptionerConfig(**PICTURES, encoder="patches", blocks=2, layers=2, dropout=0.1)),
    Example(CaptionerConfig(**PICTURES | {"cell": 4, "side": 16}, encoder="patches", decoder="transformer")),
    Example(CaptionerConfig(**PICTURES | {"cell": 4, "side": 16}, blocks=2)),
    Example(CaptionerConfig(**PICTURES, encoder="vit", vit=VIT)),
    Example(
        CaptionerConfig(**PICTURES | {"cell": 16}, encoder="vit", vit=VIT | {"bias": False}, decoder="transformer")
    ),
]

PAIRS = {
    "vocabulary": 40,
    "context": 32,
    "text": {"width": 24, "heads": 3, "layers": 1},
    "regions": {"width": 16, "heads": 2, "layers": 1, "feed_forward": 24},
    "meetings": 2,
    "joint": 20,
    "seeing": {"features": 10},
    "symbols": SYMBOLS,
}
IMAGE_TEXT = [
    Example(ViLBERTConfig(**PAIRS)),
    Example(ViLBERTConfig(**PAIRS | {"regions": {"width": 32, "heads": 4, "layers": 0}}, sentences=1)),
    Example(ViLBERTPretrainingConfig(**PAIRS | {"seeing": {"features": 10, "classes": 6}})),
    Example(ViLBERTPretrainingConfig(**PAIRS | {"meetings": 1}, dropout=0.0)),  # no classes: its features
    Example(ViLBERTAnswererConfig(**PAIRS | {"seeing": {"features": 10, "hidden": 12}}, labels=("red", "two", "no"))),
    Example(ViLBERTPointerConfig(**PAIRS)),
    Example(ViLBERTMatcherConfig(**PAIRS | {"text": {"width": 12, "heads": 3, "layers": 0}})),
]
EXAMPLES = [*TRANSLATORS, *LANGUAGE_MODELS, *READERS, *CAPTIONERS, *IMAGE_TEXT]


def named(example: Example) -> str:
    """What pytest calls it."""
    return f"{example.kind}-{EXAMPLES.index(example)}"
