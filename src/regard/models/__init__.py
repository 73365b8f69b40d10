"""The architectures, one file each. A new model is one file here and one line in MODELS.

A model's file has its config, the model (a `regard.models.base.Model`), its blocks, and `EXAMPLES`, a few tiny configs
that the contract tests build; `SIZES`, its published sizes, are optional. A module is imported when its model is first
used. Models of installed packages and of a user's file are found as well: `regard.extensions`.
"""

import importlib
from collections.abc import Iterator

from regard import extensions
from regard.config import Config
from regard.errors import ConfigError, InputError
from regard.models.base import Model
from regard.size_limits import check_buildable

# kind, as config.json has it -> the module and the class of the model
MODELS: dict[str, str] = {
    "rnn": "regard.models.rnn_seq2seq:RNNTranslator",
    "conv": "regard.models.conv_seq2seq:ConvTranslator",
    "transformer": "regard.models.transformer:Transformer",
    "t5": "regard.models.t5:T5",
    "ngram": "regard.models.ngram:NGram",
    "bengio": "regard.models.bengio:Bengio",
    "rnn-lm": "regard.models.rnn_lm:RNNLM",
    "gpt": "regard.models.gpt:GPT",
    "llama": "regard.models.llama:Llama",
    "bert": "regard.models.bert:Bert",
    "bert-pretraining": "regard.models.bert:BertForPreTraining",
    "bert-masked-lm": "regard.models.bert:BertForMaskedLM",
    "bert-sequence-classification": "regard.models.bert:BertForSequenceClassification",
    "bert-token-classification": "regard.models.bert:BertForTokenClassification",
    "rnn-sequence-classification": "regard.models.rnn_reader:RNNForSequenceClassification",
    "rnn-token-classification": "regard.models.rnn_reader:RNNForTokenClassification",
    "captioner": "regard.models.captioner:Captioner",
    "vilbert": "regard.models.vilbert:ViLBERT",
    "vilbert-pretraining": "regard.models.vilbert:ViLBERTForPreTraining",
    "vilbert-question-answering": "regard.models.vilbert:ViLBERTForQuestionAnswering",
    "vilbert-grounding": "regard.models.vilbert:ViLBERTForGrounding",
    "vilbert-retrieval": "regard.models.vilbert:ViLBERTForRetrieval",
}


def model_class(kind: str) -> type[Model]:
    """The class of the models of this kind."""
    location = extensions.locate("models", MODELS, kind)
    if location is None:
        raise KeyError(kind)
    module, _, name = location.partition(":")
    found = getattr(importlib.import_module(module), name, None)
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise TypeError(f"MODELS[{kind!r}] is {location!r}: wanted module:class of a regard.models.base.Model")
    for fact in ("config_class", "interface"):
        if not hasattr(found, fact):
            raise TypeError(f"{location} does not say its {fact}; see regard.models.base.Model")
    return found


def is_model(kind: str) -> bool:
    """Whether there is a model of this kind."""
    return extensions.locate("models", MODELS, kind) is not None


def models_of(file: extensions.CodeFile) -> dict[str, type[Model]]:
    """The models that a user's file defines, by their names there. InputError: one has no config class of its own."""
    mine = file.module.__name__
    found = {
        name: one
        for name, one in vars(file.module).items()
        if isinstance(one, type) and issubclass(one, Model) and one.__module__ == mine
    }
    for name, one in found.items():
        if not hasattr(one, "interface") or not hasattr(one, "config_class"):
            raise InputError(f"{file.path}: {name} does not say its config_class and interface; see docs/how-to")
        if one.config_class.__module__ != mine:
            raise InputError(
                f"{file.path}: {name} has the config class {one.config_class.__name__} of another model, so nothing "
                f"says which of them to build; give it its own: class {name}Config({one.config_class.__name__})"
            )
    return found


def kind_of(config: Config) -> str:
    """The kind of model a config belongs to. A config stands in the same module as its model."""
    module = type(config).__module__
    if (file := extensions.file_of(module)) is not None:
        for name, model in models_of(file).items():
            if model.config_class is type(config):
                return f"{file.name}:{name}"
    for kind, path in extensions.names("models", MODELS).items():
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
