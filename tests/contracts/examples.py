"""Tiny models of every architecture, for the contracts. A new model joins by one line here."""

from dataclasses import dataclass

import torch
from torch import nn

from regard.config import Config
from regard.models import build, kind_of
from regard.models.bert import (
    BertConfig,
    BertForMaskedLMConfig,
    BertForPreTrainingConfig,
    BertForSequenceClassificationConfig,
    BertForTokenClassificationConfig,
)
from regard.models.captioner import CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.models.vilbert import (
    ViLBERTConfig,
    ViLBERTForGroundingConfig,
    ViLBERTForPreTrainingConfig,
    ViLBERTForQuestionAnsweringConfig,
    ViLBERTForRetrievalConfig,
)


@dataclass(frozen=True)
class Example:
    """A config, and models of it."""

    config: Config

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


TINY = {"vocab_size": 40, "width": 24, "heads": 3, "layers": 2, "feed_forward": 32}
TRANSLATORS = [
    Example(TransformerConfig(**TINY)),
    Example(TransformerConfig(**TINY, norm="pre")),
    Example(TransformerConfig(**TINY, positions="learned", join="concatenated", decoder_layers=1)),
    Example(TransformerConfig(**TINY, positions="halves", activation="swish")),
    Example(TransformerConfig(**TINY, target_vocab_size=40, tied=False, output_bias=True, scaled=False)),
    Example(RNNConfig(vocab_size=40, width=24, bridge="last_state", both_ways=False)),
    Example(RNNConfig(vocab_size=40, width=24, bridge="last_state", cell="lstm", layers=2)),
    Example(RNNConfig(vocab_size=40, width=24, bridge="fixed_context")),
    Example(RNNConfig(vocab_size=40, width=24, bridge="fixed_context", cell="lstm", layers=2, both_ways=False)),
    Example(RNNConfig(vocab_size=40, width=24)),
    Example(RNNConfig(vocab_size=40, width=24, cell="lstm", layers=2, similarity="dot")),
    Example(RNNConfig(vocab_size=40, width=24, layers=2, both_ways=False, similarity="scaled_dot")),
    Example(ConvConfig(vocab_size=40, width=24, layers=2)),
    Example(ConvConfig(vocab_size=40, width=24, layers=3, decoder_layers=1, kernel=4)),
]

TEXT = {"vocab_size": 40, "context": 32, "width": 24, "layers": 2, "special_ids": {"bos_id": 1, "eos_id": 2}}
GROUPED = TEXT | {"heads": 6, "num_kv_heads": 2, "feed_forward": 32}
LANGUAGE_MODELS = [
    Example(GPTConfig(**TEXT, heads=3)),
    Example(GPTConfig(**TEXT, heads=1, tied=False)),
    Example(GPTConfig(**TEXT, heads=4, activation="relu", feed_forward=40)),
    Example(GPTConfig(vocab_size=40, context=32, width=24, layers=1, heads=2)),  # knows no symbols
    Example(LlamaConfig(**GROUPED)),
    Example(LlamaConfig(**GROUPED | {"heads": 4, "num_kv_heads": 1})),
    Example(LlamaConfig(**GROUPED | {"heads": 3, "num_kv_heads": 3, "rope_theta": 100.0})),
    Example(LlamaConfig(**GROUPED, tied=False, bias=True)),
    Example(LlamaConfig(**GROUPED, rope_theta=100.0, rope_scaling={"factor": 8.0, "original_context": 16})),
]

SYMBOLS = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "mask_id": 3}
ROWS = {"vocab_size": 40, "context": 32, "width": 24, "heads": 3, "layers": 2, "special_ids": SYMBOLS}
READERS = [
    Example(BertConfig(**ROWS)),
    Example(BertConfig(**ROWS, pooler=False, num_segments=1, activation="relu", epsilon=1e-5)),
    Example(BertConfig(**ROWS | {"heads": 1, "layers": 1, "special_ids": SYMBOLS | {"mask_id": None}}, num_segments=3)),
    Example(BertForPreTrainingConfig(**ROWS, feed_forward=40)),
    Example(BertForPreTrainingConfig(**ROWS | {"heads": 4}, activation="gelu_tanh", dropout=0.0)),
    Example(BertForMaskedLMConfig(**ROWS)),
    Example(BertForMaskedLMConfig(**ROWS | {"heads": 2, "layers": 3}, num_segments=1, activation="swish")),
    Example(BertForSequenceClassificationConfig(**ROWS, labels=("good", "bad", "neither"))),
    Example(BertForSequenceClassificationConfig(**ROWS, num_segments=3, feed_forward=32)),  # no labels: a score
    Example(BertForTokenClassificationConfig(**ROWS, labels=("O", "B-PER", "I-PER"))),
    Example(BertForTokenClassificationConfig(**ROWS | {"heads": 6}, num_segments=1, labels=("O", "X"))),
]

PICTURES = {"vocab_size": 40, "side": 32, "cell": 8, "width": 24, "heads": 3, "feed_forward": 32}
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
    "vocab_size": 40,
    "context": 32,
    "text": {"width": 24, "heads": 3, "layers": 1},
    "regions": {"width": 16, "heads": 2, "layers": 1, "feed_forward": 24},
    "co_attention_layers": 2,
    "joint": 20,
    "seeing": {"features": 10},
    "special_ids": SYMBOLS,
}
IMAGE_TEXT = [
    Example(ViLBERTConfig(**PAIRS)),
    Example(ViLBERTConfig(**PAIRS | {"regions": {"width": 32, "heads": 4, "layers": 0}}, num_segments=1)),
    Example(ViLBERTForPreTrainingConfig(**PAIRS | {"seeing": {"features": 10, "classes": 6}})),
    Example(ViLBERTForPreTrainingConfig(**PAIRS | {"co_attention_layers": 1}, dropout=0.0)),  # no classes: its features
    Example(
        ViLBERTForQuestionAnsweringConfig(
            **PAIRS | {"seeing": {"features": 10, "inner": 12}}, labels=("red", "two", "no")
        )
    ),
    Example(ViLBERTForGroundingConfig(**PAIRS)),
    Example(ViLBERTForRetrievalConfig(**PAIRS | {"text": {"width": 12, "heads": 3, "layers": 0}})),
]
EXAMPLES = [*TRANSLATORS, *LANGUAGE_MODELS, *READERS, *CAPTIONERS, *IMAGE_TEXT]


def named(example: Example) -> str:
    """What pytest calls it."""
    return f"{example.kind}-{EXAMPLES.index(example)}"
