"""The architectures, one file each. A new model is one file here and one line in MODELS."""

from typing import NamedTuple

from torch import nn

from regard.config import Config
from regard.models.bert import (
    Bert,
    BertConfig,
    BertForMaskedLM,
    BertForMaskedLMConfig,
    BertForPreTraining,
    BertForPreTrainingConfig,
    BertForSequenceClassification,
    BertForSequenceClassificationConfig,
    BertForTokenClassification,
    BertForTokenClassificationConfig,
)
from regard.models.captioner import Captioner, CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig, ConvTranslator
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig, RNNTranslator
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vilbert import (
    ViLBERT,
    ViLBERTConfig,
    ViLBERTForGrounding,
    ViLBERTForGroundingConfig,
    ViLBERTForPreTraining,
    ViLBERTForPreTrainingConfig,
    ViLBERTForQuestionAnswering,
    ViLBERTForQuestionAnsweringConfig,
    ViLBERTForRetrieval,
    ViLBERTForRetrievalConfig,
)


class Architecture(NamedTuple):
    config: type[Config]
    model: type[nn.Module]


MODELS = {
    "rnn": Architecture(RNNConfig, RNNTranslator),
    "conv": Architecture(ConvConfig, ConvTranslator),
    "transformer": Architecture(TransformerConfig, Transformer),
    "gpt": Architecture(GPTConfig, GPT),
    "llama": Architecture(LlamaConfig, Llama),
    "bert": Architecture(BertConfig, Bert),
    "bert-pretraining": Architecture(BertForPreTrainingConfig, BertForPreTraining),
    "bert-masked-lm": Architecture(BertForMaskedLMConfig, BertForMaskedLM),
    "bert-sequence-classification": Architecture(BertForSequenceClassificationConfig, BertForSequenceClassification),
    "bert-token-classification": Architecture(BertForTokenClassificationConfig, BertForTokenClassification),
    "captioner": Architecture(CaptionerConfig, Captioner),
    "vilbert": Architecture(ViLBERTConfig, ViLBERT),
    "vilbert-pretraining": Architecture(ViLBERTForPreTrainingConfig, ViLBERTForPreTraining),
    "vilbert-question-answering": Architecture(ViLBERTForQuestionAnsweringConfig, ViLBERTForQuestionAnswering),
    "vilbert-grounding": Architecture(ViLBERTForGroundingConfig, ViLBERTForGrounding),
    "vilbert-retrieval": Architecture(ViLBERTForRetrievalConfig, ViLBERTForRetrieval),
}


def kind_of(config: Config) -> str:
    """The name of the architecture a config belongs to."""
    return next(name for name, architecture in MODELS.items() if architecture.config is type(config))


def build(config: Config) -> nn.Module:
    """A fresh model of this config."""
    return MODELS[kind_of(config)].model(config)
