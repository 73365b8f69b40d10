"""The architectures, one file each. A new model is one file here and one line in MODELS."""

from typing import NamedTuple

from torch import nn

from regard.config import Facts
from regard.models.bert import (
    Bert,
    BertClassifier,
    BertClassifierConfig,
    BertConfig,
    BertPretraining,
    BertPretrainingConfig,
    BertTagger,
    BertTaggerConfig,
    BertWords,
    BertWordsConfig,
)
from regard.models.captioner import Captioner, CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig, ConvTranslator
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig, RNNTranslator
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vilbert import (
    ViLBERT,
    ViLBERTAnswerer,
    ViLBERTAnswererConfig,
    ViLBERTConfig,
    ViLBERTMatcher,
    ViLBERTMatcherConfig,
    ViLBERTPointer,
    ViLBERTPointerConfig,
    ViLBERTPretraining,
    ViLBERTPretrainingConfig,
)


class Architecture(NamedTuple):
    config: type[Facts]
    model: type[nn.Module]


MODELS = {
    "rnn": Architecture(RNNConfig, RNNTranslator),
    "conv": Architecture(ConvConfig, ConvTranslator),
    "transformer": Architecture(TransformerConfig, Transformer),
    "gpt": Architecture(GPTConfig, GPT),
    "llama": Architecture(LlamaConfig, Llama),
    "bert": Architecture(BertConfig, Bert),
    "bert-pretraining": Architecture(BertPretrainingConfig, BertPretraining),
    "bert-words": Architecture(BertWordsConfig, BertWords),
    "bert-classifier": Architecture(BertClassifierConfig, BertClassifier),
    "bert-tagger": Architecture(BertTaggerConfig, BertTagger),
    "captioner": Architecture(CaptionerConfig, Captioner),
    "vilbert": Architecture(ViLBERTConfig, ViLBERT),
    "vilbert-pretraining": Architecture(ViLBERTPretrainingConfig, ViLBERTPretraining),
    "vilbert-answerer": Architecture(ViLBERTAnswererConfig, ViLBERTAnswerer),
    "vilbert-pointer": Architecture(ViLBERTPointerConfig, ViLBERTPointer),
    "vilbert-matcher": Architecture(ViLBERTMatcherConfig, ViLBERTMatcher),
}


def kind_of(config: Facts) -> str:
    """The name of the architecture a config belongs to."""
    return next(name for name, architecture in MODELS.items() if architecture.config is type(config))


def build(config: Facts) -> nn.Module:
    """A fresh model of this config."""
    return MODELS[kind_of(config)].model(config)
