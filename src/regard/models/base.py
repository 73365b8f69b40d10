"""What all models share: what a model says of itself, and the part of a config that a tokenizer decides.

The interface says how a model is called. `regard check`, `regard cost`, the training loop and the contract tests choose
by it how they drive a model:

    seq2seq           model(source, target) -> logits (B, T, V); start(source) and step(tokens, state)
    causal_lm         model(ids, document_ids) -> logits (B, T, V); start(prompts) and step(tokens, state)
    encoder           model(ids, segment_ids) -> outputs of the tokens (B, T, ...) and of the row (B, ...)
    captioner         model(pixels, target) -> logits (B, T, V); start(pixels) and step(tokens, state)
    vision_language   model(ids, segment_ids, regions, boxes) -> outputs of tokens, regions and the pair

A causal_lm also has `hidden_states(ids, document_ids)`, `logits(hidden)` and `output_embeddings`, for a loss that does
not compute all logits at once. Every model has `input_embeddings`; what generates has `alignment_taps`, the taps of its
attention to the source; `blocks`, if there are any, are what is compiled, checkpointed and sharded one by one.
`attention_axes` says for every attention of the model what its queries and its keys are, by a pattern of its path:
{"decoder.blocks.*.cross_attention": ("target", "source")}. The axes are source and target (seq2seq), text (causal_lm,
encoder), image, target and the patches of a ViT (captioner), text and regions (vision_language).

The config of each has `flops`: the cost of a forward pass over one row, a `regard.layers.cost.ForwardCost`:

    seq2seq           flops(source, target)               tokens of both sides
    causal_lm         flops(tokens)
    encoder           flops(tokens, predicted)            how many of them a masked LM head predicts
    captioner         flops(target)                       tokens of the caption
    vision_language   flops(tokens, predicted, regions)
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import nn

from regard.config import Config
from regard.errors import ConfigError

Interface = Literal["seq2seq", "causal_lm", "encoder", "captioner", "vision_language"]


class Model(nn.Module):
    """The base of every architecture: which config it is built from, and how it is called."""

    config_class: ClassVar[type[Config]]
    interface: ClassVar[Interface]
    attention_axes: ClassVar[Mapping[str, tuple[str, str]]] = {}
    config: Any

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config


class SpecialIds(Config):
    """The special ids of an encoder-decoder."""

    pad_id: int = Field(0, ge=0, description="fills short rows; no token attends to it")
    bos_id: int = Field(1, ge=0, description="the first token of the decoder; some models take pad_id here")
    eos_id: int = Field(2, ge=0, description="ends a source and a target")


class CausalLMIds(Config):
    """The special ids of a language model. It needs no padding: prompts say how long they are."""

    pad_id: None = Field(None, description="always none")
    bos_id: int | None = Field(None, ge=0, description="begins a text, if the model was trained so")
    eos_id: int | None = Field(None, ge=0, description="ends a text")


class EncoderIds(Config):
    """The special ids of an encoder."""

    pad_id: int = Field(0, ge=0, description="fills short rows; no token attends to it")
    bos_id: int = Field(101, ge=0, description="begins every text: [CLS]")
    eos_id: int = Field(102, ge=0, description="ends each segment: [SEP]")
    mask_id: int | None = Field(103, ge=0, description="takes the place of a masked token: [MASK]; none: it has none")


class Seq2SeqConfig(Config):
    """What all encoder-decoders share."""

    vocab_size: int = Field(
        37_000, ge=4, description="V, of source and target; a new tokenizer is trained to this size"
    )
    special_ids: SpecialIds = SpecialIds()

    @model_validator(mode="after")
    def _check_special_ids(self) -> Self:
        check_special_ids(self.special_ids, min(self.vocab_size, self.output_vocab_size))
        return self

    @property
    def output_vocab_size(self) -> int:
        """The number of logits."""
        return self.vocab_size

    def fitted(self, *, vocab_size: int, special_ids: SpecialIds, longest: int) -> Self:
        """The same for one tokenizer of both sides and sentences of at most `longest` tokens."""
        refuse_special_ids(self.special_ids, SpecialIds(), special_ids)
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})


class CausalLMConfig(Config):
    """What all causal language models share."""

    vocab_size: int = Field(50_257, ge=2, description="V; a new tokenizer is trained to at most this size")
    context: int = Field(1024, ge=1, description="the most tokens it attends to")
    special_ids: CausalLMIds = CausalLMIds()

    @model_validator(mode="after")
    def _check_special_ids(self) -> Self:
        check_special_ids(self.special_ids, self.vocab_size)
        return self

    @property
    def output_vocab_size(self) -> int:
        """The number of logits."""
        return self.vocab_size

    def fitted(self, *, vocab_size: int, special_ids: CausalLMIds) -> Self:
        """The same for one tokenizer."""
        refuse_special_ids(self.special_ids, CausalLMIds(), special_ids)
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})


class EncoderConfig(Config):
    """What all encoders share; the defaults are those of BERT, uncased."""

    vocab_size: int = Field(30_522, ge=5, description="V; a new tokenizer is trained to at most this size")
    context: int = Field(512, ge=4, description="the most tokens of a row, special tokens included")
    num_segments: int = Field(2, ge=1, description="segments of a row, each with an embedding")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the activations that are set to zero in training")
    norm_epsilon: float = Field(1e-12, gt=0, description="epsilon of the layer norms")
    special_ids: EncoderIds = EncoderIds()

    @model_validator(mode="after")
    def _check_special_ids(self) -> Self:
        check_special_ids(self.special_ids, self.vocab_size)
        return self

    def fitted(self, *, vocab_size: int, special_ids: EncoderIds) -> Self:
        """The same for one tokenizer."""
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})


def check_special_ids(special_ids: Config, vocab_size: int) -> None:
    """ConfigError unless every special id is below the size of the vocabulary."""
    for name, number in special_ids:
        if number is not None and number >= vocab_size:
            raise ConfigError(f"model.special_ids.{name}={number}, but there are only {vocab_size} ids")


def refuse_special_ids(given: Config, default: Config, tokenizer: Config) -> None:
    """ConfigError if the user set special ids that are not the tokenizer's."""
    if given not in (default, tokenizer):
        raise ConfigError(f"model.special_ids are those of the tokenizer ({tokenizer}); leave them out")


def check_heads(width: int, heads: int, section: str = "model.") -> None:
    """ConfigError unless the width divides into the heads."""
    if width % heads:
        raise ConfigError(
            f"{section}width={width} does not divide into {section}heads={heads}; "
            f"try {section}width={width - width % heads or heads}"
        )
