"""BERT and its heads, the family of BERT, MiniLM and most sentence encoders: our five kinds under other weight names.

They have separate matrices for queries, keys and values. Names may or may not start with "bert.", and old files call
the weight and bias of a norm gamma and beta. The architecture in config.json decides the kind, unless the file has
more heads (bert-base-uncased says BertForMaskedLM and has both pretraining heads).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.checkpoint import CONFIG, assign_weights, encode_tensors
from regard.errors import ConfigError, FolderError
from regard.files import encode_json
from regard.huggingface.folder import WEIGHTS, Loaded, Pooling, all_used, drop_copies, take, weights
from regard.huggingface.language import ACTIVATIONS, Activation, TextConfig, activation_name, check_vocab_size
from regard.huggingface.names import Names, Rows
from regard.huggingface.sentence_transformers import pooling_files, read_pooling
from regard.models import kind_of, model_class
from regard.models.base import EncoderIds
from regard.models.bert import BertConfig
from regard.tokenizers.missing import MissingTokenizer, has_tokenizer
from regard.tokenizers.wordpiece import WordPieceTokenizer

PREFIX = "bert."
NAMES = Names(
    whole={
        "embedding.tokens.weight": "embeddings.word_embeddings.weight",
        "embedding.positions.weight": "embeddings.position_embeddings.weight",
        "embedding.segments.weight": "embeddings.token_type_embeddings.weight",
        "embedding.norm.weight": "embeddings.LayerNorm.weight",
        "embedding.norm.bias": "embeddings.LayerNorm.bias",
        "pooler.weight": "pooler.dense.weight",
        "pooler.bias": "pooler.dense.bias",
    },
    block="encoder.layer.{}.",
    parts={
        "attention.project": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention.output": ("attention.output.dense",),
        "norm_attention": ("attention.output.LayerNorm",),
        "feed_forward.expand": ("intermediate.dense",),
        "feed_forward.contract": ("output.dense",),
        "norm_feed_forward": ("output.LayerNorm",),
    },
)
MLM_HEAD = {
    "head.project.weight": "cls.predictions.transform.dense.weight",
    "head.project.bias": "cls.predictions.transform.dense.bias",
    "head.norm.weight": "cls.predictions.transform.LayerNorm.weight",
    "head.norm.bias": "cls.predictions.transform.LayerNorm.bias",
    "head.bias": "cls.predictions.bias",
}
NSP_HEAD = {"next.weight": "cls.seq_relationship.weight", "next.bias": "cls.seq_relationship.bias"}
CLASSIFIER_HEAD = {"head.weight": "classifier.weight", "head.bias": "classifier.bias"}


class Head(NamedTuple):
    """One of our kinds as an architecture of `transformers`."""

    architecture: str
    task: str
    names: Mapping[str, str]  # weights outside the encoder: ours -> theirs


HEADS = {
    "bert": Head("BertModel", "embedding", {}),
    "bert-pretraining": Head("BertForPreTraining", "masked-lm", MLM_HEAD | NSP_HEAD),
    "bert-masked-lm": Head("BertForMaskedLM", "masked-lm", MLM_HEAD),
    "bert-sequence-classification": Head("BertForSequenceClassification", "classification", CLASSIFIER_HEAD),
    "bert-token-classification": Head("BertForTokenClassification", "tagging", CLASSIFIER_HEAD),
}
KINDS = tuple(HEADS)
ARCHITECTURES = {head.architecture: kind for kind, head in HEADS.items()}
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")  # constants, not weights


class BertFolderConfig(TextConfig):
    """config.json of a BERT folder; the defaults are those of `transformers`."""

    model_type: Literal["bert"]
    vocab_size: int = Field(30522, ge=5)
    hidden_size: int = Field(768, ge=1)
    num_hidden_layers: int = Field(12, ge=1)
    num_attention_heads: int = Field(12, ge=1)
    intermediate_size: int = Field(3072, ge=1)
    hidden_act: Activation = "gelu"
    hidden_dropout_prob: float = Field(0.1, ge=0, lt=1)
    max_position_embeddings: int = Field(512, ge=4)
    type_vocab_size: int = Field(2, ge=1)
    layer_norm_eps: float = Field(1e-12, gt=0)
    # Other values are not supported.
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] | None = None
    add_cross_attention: Literal[False] = False
    tie_word_embeddings: Literal[True] = True
    # Keys without effect on a trained model, and leftovers of older versions.
    attention_probs_dropout_prob: float | None = None
    classifier_dropout: float | None = None
    gradient_checkpointing: bool | None = None
    directionality: str | None = None
    pooler_fc_size: int | None = None
    pooler_num_attention_heads: int | None = None
    pooler_num_fc_layers: int | None = None
    pooler_size_per_head: int | None = None
    pooler_type: Literal["first_token_transform"] | None = None
    sbert_ce_default_activation_function: str | None = None
    sentence_transformers: Any = None
    cell: Any = None
    emb_size: int | None = None
    pre_trained: Any = None
    structure: Any = None
    training: Any = None


# ------------------------------------------------ theirs to ours


def load(folder: Path, config: Mapping[str, Any]) -> Loaded:
    """Read a BERT folder, as one of the five kinds."""
    where = str(folder / WEIGHTS)
    theirs = BertFolderConfig.read(config, folder / CONFIG)
    tokenizer = _tokenizer(folder, theirs)
    check_vocab_size(tokenizer, theirs.vocab_size, folder)
    found = _modernize_names(weights(folder))
    prefix = PREFIX if any(name.startswith(PREFIX) for name in found) else ""
    kind = _kind(theirs, found, folder / CONFIG)
    model_config = to_ours(
        kind, theirs, special_ids_of(tokenizer), f"{prefix}pooler.dense.weight" in found, folder / CONFIG
    )
    with torch.device("meta"):
        model = model_class(kind)(model_config)
    notes = _drop_pooler(found, prefix, model_config, where)
    wanted = _to_theirs(kind, model.state_dict(), model_config, prefix)
    ours = _to_ours(kind, take(found, {name: name for name in wanted}, wanted, where), model.state_dict(), prefix)
    _drop_rest(found, ours, prefix, where)
    assign_weights(model, ours, where)
    pooling, more = read_pooling(folder)
    task = HEADS[kind].task
    return Loaded(kind, task, model.eval(), tokenizer, pooling=pooling, notes=[*notes, *more])


def _tokenizer(folder: Path, theirs: BertFolderConfig) -> Any:
    """The tokenizer of a folder; where there is none, what raises an error when text is given."""
    if has_tokenizer(folder, "tokenizer.json", "vocab.txt"):
        return WordPieceTokenizer.from_folder(folder)
    missing = FolderError(f"{folder} has no tokenizer; wanted tokenizer.json or vocab.txt")
    ids = {"pad_id": theirs.pad_token_id or 0, "bos_id": theirs.bos_token_id or 1, "eos_id": theirs.sep_token_id or 2}
    return MissingTokenizer(missing, theirs.vocab_size, mask_id=None, **ids)


def special_ids_of(tokenizer: WordPieceTokenizer) -> EncoderIds:
    """The special ids of a tokenizer, as a model config has them."""
    return EncoderIds(
        pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, mask_id=tokenizer.mask_id
    )


def _modernize_names(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename gamma and beta of norms to weight and bias, and a bias of the MLM head saved only under the decoder."""
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        found = {name.removesuffix(old) + new if name.endswith(old) else name: found[name] for name in found}
    if "cls.predictions.decoder.bias" in found:
        found.setdefault("cls.predictions.bias", found["cls.predictions.decoder.bias"])
    return found


def _kind(theirs: BertFolderConfig, found: Iterable[str], path: Path) -> str:
    """The kind of the architecture in config.json, or a kind with more heads if their weights are there."""
    held = _kind_of_weights(found)
    if not theirs.architectures:
        return held
    if len(theirs.architectures) > 1 or theirs.architectures[0] not in ARCHITECTURES:
        raise FolderError(
            f"{path}: architectures is {', '.join(theirs.architectures)}, wanted one of {', '.join(ARCHITECTURES)}"
        )
    said = ARCHITECTURES[theirs.architectures[0]]
    more = set(HEADS[held].names.values()) > set(HEADS[said].names.values())
    return held if more else said


def _kind_of_weights(found: Iterable[str]) -> str:
    parts = {".".join(name.removeprefix(PREFIX).split(".")[:2]) for name in found}
    if "classifier.weight" in parts:
        return "bert-sequence-classification" if "pooler.dense" in parts else "bert-token-classification"
    if "cls.predictions" in parts:
        return "bert-pretraining" if "cls.seq_relationship" in parts else "bert-masked-lm"
    return "bert"


def to_ours(kind: str, theirs: BertFolderConfig, special_ids: EncoderIds, pooler: bool, path: Path) -> BertConfig:
    """The config of one kind; a plain encoder has a pooler if the file has one."""
    own: dict[str, Any] = {"pooler": pooler} if kind == "bert" else {}
    if kind == "bert-token-classification":
        own["labels"] = _labels(theirs, path)
    elif kind == "bert-sequence-classification":
        own["labels"] = _classes(theirs, path)
    config: Any = model_class(kind).config_class
    try:
        found: BertConfig = config(
            vocab_size=theirs.vocab_size,
            context=theirs.max_position_embeddings,
            width=theirs.hidden_size,
            heads=theirs.num_attention_heads,
            layers=theirs.num_hidden_layers,
            feed_forward=theirs.intermediate_size,
            num_segments=theirs.type_vocab_size,
            activation=ACTIVATIONS[theirs.hidden_act],
            dropout=theirs.hidden_dropout_prob,
            norm_epsilon=theirs.layer_norm_eps,
            special_ids=special_ids,
            **own,
        )
    except ConfigError as error:
        raise FolderError(f"{path}: {error}") from error
    return found


def _classes(theirs: BertFolderConfig, path: Path) -> tuple[str, ...]:
    """The classes; none for regression."""
    labels, problem = _labels(theirs, path), theirs.problem_type
    if problem in (None, "single_label_classification" if len(labels) > 1 else "regression"):
        return labels if len(labels) > 1 else ()
    raise FolderError(
        f"{path}: problem_type is {problem!r} with {len(labels)} labels, "
        "wanted single_label_classification, or regression with one; regard has no other"
    )


def _labels(theirs: BertFolderConfig, path: Path) -> tuple[str, ...]:
    """The labels in the order of their ids; two by default, as in `transformers`."""
    count = theirs.num_labels or theirs.old_num_labels
    numbers = theirs.label2id
    if theirs.id2label is not None:
        numbers = {label: int(number) for number, label in theirs.id2label.items() if number.isdecimal()}
        count = count or len(theirs.id2label)
    if numbers is None:
        return tuple(f"LABEL_{number}" for number in range(count or 2))
    if sorted(numbers.values()) != list(range(count or len(numbers))):
        raise FolderError(f"{path}: id2label, label2id and num_labels do not number the labels from 0, each once")
    if theirs.label2id not in (None, numbers):
        raise FolderError(f"{path}: label2id is {theirs.label2id}, but id2label says {numbers}; make them agree")
    return tuple(sorted(numbers, key=numbers.__getitem__))


def _drop_pooler(found: dict[str, Tensor], prefix: str, model_config: BertConfig, where: str) -> list[str]:
    """Take out the pooler that old files have even for kinds that do not use it."""
    names = sorted(name for name in found if name.startswith(f"{prefix}pooler."))
    if model_config.pooler or not names:
        return []
    for name in names:
        del found[name]
    return [f"{where}: {' and '.join(names)} are left out: this model does not use them"]


def _to_ours(kind: str, taken: dict[str, Tensor], wanted: Iterable[str], prefix: str) -> dict[str, Tensor]:
    """Weights under our names."""
    heads, inside = HEADS[kind].names, _inside(kind)
    ours = {name: taken.pop(theirs) for name, theirs in heads.items()}
    encoder = {name.removeprefix(prefix): taken.pop(name) for name in list(taken)}
    names = [name.removeprefix(inside) for name in wanted if name not in heads]
    return ours | {inside + name: tensor for name, tensor in NAMES.to_ours(encoder, names).items()}


def _drop_rest(found: dict[str, Tensor], ours: Mapping[str, Tensor], prefix: str, where: str) -> None:
    """Take out buffers and copies of tied weights; nothing may be left then."""
    for name in BUFFERS:
        found.pop(prefix + name, None)
    if "head.project.weight" in ours:
        embedding = ours["encoder.embedding.tokens.weight"]
        drop_copies(found, {"cls.predictions.decoder.weight": embedding}, where)
        drop_copies(found, {"cls.predictions.decoder.bias": ours["head.bias"]}, where)
    all_used(found, where)


# ------------------------------------------------ ours to theirs


def files(model: nn.Module, tokenizer: Any, pooling: Pooling | None = None) -> dict[str, bytes]:
    """Any of the five kinds as the files of a BERT folder; with a pooling, of a sentence-transformers folder."""
    model_config = model.config
    assert isinstance(model_config, BertConfig)
    kind = kind_of(model_config)
    tensors = _to_theirs(kind, model.state_dict(), model_config, PREFIX if _inside(kind) else "")
    return {
        CONFIG: encode_json(to_theirs(kind, model_config)),
        WEIGHTS: encode_tensors(tensors, {"format": "pt"}),
        **tokenizer.to_files(max_length=model_config.context),
        **({} if pooling is None else pooling_files(pooling, model_config.width)),
    }


def _inside(kind: str) -> str:
    """The prefix of the encoder in our names."""
    return "" if kind == "bert" else "encoder."


def _to_theirs(kind: str, ours: Mapping[str, Tensor], model_config: BertConfig, prefix: str) -> dict[str, Tensor]:
    """Weights under their names; on the meta device, the shapes a file must have."""
    heads, inside = HEADS[kind].names, _inside(kind)
    encoder = {name.removeprefix(inside): tensor for name, tensor in ours.items() if name not in heads}
    rows: Rows = {"attention.project": [model_config.width] * 3}
    found = {prefix + name: tensor for name, tensor in NAMES.to_theirs(encoder, rows).items()}
    return found | {theirs: ours[name] for name, theirs in heads.items()}


def to_theirs(kind: str, ours: BertConfig) -> dict[str, Any]:
    """config.json for one of our models."""
    return {
        "model_type": "bert",
        "architectures": [HEADS[kind].architecture],
        "vocab_size": ours.vocab_size,
        "max_position_embeddings": ours.context,
        "hidden_size": ours.width,
        "num_attention_heads": ours.heads,
        "num_hidden_layers": ours.layers,
        "intermediate_size": ours.feed_forward or 4 * ours.width,
        "type_vocab_size": ours.num_segments,
        "hidden_act": activation_name(ours.activation),
        "layer_norm_eps": ours.norm_epsilon,
        "hidden_dropout_prob": ours.dropout,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": ours.special_ids.pad_id,
        "dtype": "float32",
        **_label_keys(kind, getattr(ours, "labels", None)),
    }


def _label_keys(kind: str, labels: tuple[str, ...] | None) -> dict[str, Any]:
    if labels is None:
        return {}
    if kind == "bert-sequence-classification" and len(labels) == 1:
        raise ConfigError(f"a classifier with one class ({labels[0]}) cannot be exported: it would become a regression")
    names = labels or ("LABEL_0",)
    found: dict[str, Any] = {
        "id2label": {str(number): label for number, label in enumerate(names)},
        "label2id": {label: number for number, label in enumerate(names)},
    }
    if kind == "bert-sequence-classification":
        found["problem_type"] = "single_label_classification" if labels else "regression"
    return found
