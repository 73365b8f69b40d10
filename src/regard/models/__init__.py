"""The architectures, one file each. A new model is one file here and one line in MODELS.

A model's file has its config, the model (a `regard.models.base.Model`), its blocks, and `EXAMPLES`, a few tiny configs
that the contract tests build; `SIZES`, its published sizes, are optional. A module is imported when its model is first
used.
"""

import importlib
from collections.abc import Iterator

from regard.config import Config
from regard.errors import ConfigError
from regard.models.base import Model
from regard.size_limits import check_buildable

# kind, as config.json has it -> the module and the class of the model
MODELS: dict[str, str] = {
    "rnn": "regard.models.rnn_seq2seq:RNNTranslator",
    "conv": "regard.models.conv_seq2seq:ConvTranslator",
    "transformer": "regard.models.transformer:Transformer",
    "t5": "regard.models.t5:T5",
    "gpt": "regard.models.gpt:GPT",
    "llama": "regard.models.llama:Llama",
    "bert": "regard.models.bert:Bert",
    "bert-pretraining": "regard.models.bert:BertForPreTraining",
    "bert-masked-lm": "regard.models.bert:BertForMaskedLM",
    "bert-sequence-classification": "regard.models.bert:BertForSequenceClassification",
    "bert-token-classification": "regard.models.bert:BertForTokenClassification",
    "captioner": "regard.models.captioner:Captioner",
    "vilbert": "regard.models.vilbert:ViLBERT",
    "vilbert-pretraining": "regard.models.vilbert:ViLBERTForPreTraining",
    "vilbert-question-answering": "regard.models.vilbert:ViLBERTForQuestionAnswering",
    "vilbert-grounding": "regard.models.vilbert:ViLBERTForGrounding",
    "vilbert-retrieval": "regard.models.vilbert:ViLBERTForRetrieval",
}


def model_class(kind: str) -> type[Model]:
    """The class of the models of this kind."""
    module, _, name = MODELS[kind].partition(":")
    found = getattr(importlib.import_module(module), name, None)
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise TypeError(f"MODELS[{kind!r}] is {MODELS[kind]!r}: wanted module:class of a regard.models.base.Model")
    for fact in ("config_class", "interface"):
        if not hasattr(found, fact):
            raise TypeError(f"{MODELS[kind]} does not say its {fact}; see regard.models.base.Model")
    return found


def kind_of(config: Config) -> str:
    """The kind of model a config belongs to. A config stands in the same module as its model."""
    module = type(config).__module__
    for kind, path in MODELS.items():
        if path.startswith(f"{module}:") and model_class(kind).config_class is type(config):
            return kind
    raise LookupError(f"no model in MODELS has the config {type(config).__name__} of {module}")


def build(config: Config) -> Model:
    """A fresh model of this config. ConfigError: it is larger than a machine can hold."""
    check_buildable(config.model_dump())
    try:
        return model_class(kind_of(config))(config)
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        raise ConfigError(
            f"there is not enough memory for a {kind_of(config)} of this size; make it smaller"
        ) from error


def examples(kind: str) -> Iterator[Config]:
    """The tiny configs of a kind that its module lists in EXAMPLES."""
    found = model_class(kind)
    for config in importlib.import_module(found.__module__).EXAMPLES:
        if type(config) is found.config_class:
            yield config
