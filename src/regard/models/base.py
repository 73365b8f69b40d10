"""What all models share: what a model says of itself, and the part of a config that a tokenizer decides.

The interface says how a model is called. `regard check`, `regard cost`, the training loop and the contract tests choose
by it how they drive a model:

    seq2seq           model(source, target) -> logits (B, T, V); start(source) and step(tokens, state)
    causal_lm         model(ids, segment_ids) -> logits (B, T, V); start(prompts) and step(tokens, state)
    encoder           model(ids, segment_ids) -> outputs of the tokens (B, T, ...) and of the row (B, ...)
    captioner         model(pixels, target) -> logits (B, T, V); start(pixels) and step(tokens, state)
    vision_language   model(ids, segment_ids, regions, boxes) -> outputs of tokens, regions and the pair

The config of each has `flops`: the cost of a forward pass over one row, a `regard.layers.cost.ForwardCost`:

    seq2seq           flops(source, target)               tokens of both sides
    causal_lm         flops(tokens)
    encoder           flops(tokens, predicted)            how many of them a masked LM head predicts
    captioner         flops(target)                       tokens of the caption
    vision_language   flops(tokens, predicted, regions)
"""

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
    config: Any

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config


class SpecialIds(Config):
    """Ids that are not words."""

    pad_id: int = Field(0, ge=0, description="fills short rows; nothing ever looks at it")
    bos_id: int = Field(1, ge=0, description="what the decoder is given first; padding, where it begins with nothing")
    eos_id: int = Field(2, ge=0, description="closes a source and ends a target")


class Seq2SeqConfig(Config):
    """The facts of a model that reads and writes ids."""

    vocab_size: int = Field(
        37_000, ge=4, description="ids the shared table has; a new tokenizer is trained to this size"
    )
    special_ids: SpecialIds = SpecialIds()

    @model_validator(mode="after")
    def _symbols_are_ids(self) -> Self:
        least = min(self.vocab_size, self.output_vocab_size)
        if max(self.special_ids.pad_id, self.special_ids.bos_id, self.special_ids.eos_id) >= least:
            raise ConfigError(f"model.special_ids are {self.special_ids}, but there are only {least} ids")
        return self

    @property
    def output_vocab_size(self) -> int:
        """How many ids it chooses from when it writes."""
        return self.vocab_size

    def fitted(self, *, vocab_size: int, special_ids: SpecialIds, longest: int) -> Self:
        """The same for one tokenizer of both sides and sentences of up to `longest` tokens, if they go together."""
        if self.special_ids not in (SpecialIds(), special_ids):
            raise ConfigError(f"model.special_ids are the tokenizer's own ({special_ids}); leave them out")
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})


class CausalLMIds(Config):
    """Those of a language model: rows need no padding symbol, since their prompts say how long they are."""

    pad_id: None = None
    bos_id: int | None = Field(None, ge=0, description="stands before a text, where the model was trained so")
    eos_id: int | None = Field(None, ge=0, description="stands behind a text")


class EncoderIds(Config):
    """Those of a model that reads and does not write."""

    pad_id: int = Field(0, ge=0, description="fills short rows; nothing ever looks at it")
    bos_id: int = Field(101, ge=0, description="stands before every text: [CLS]")
    eos_id: int = Field(102, ge=0, description="closes each sentence: [SEP]")
    mask_id: int | None = Field(103, ge=0, description="stands for a hidden word: [MASK]; none: it has no such symbol")


class CausalLMConfig(Config):
    """The facts of every language model."""

    vocab_size: int = Field(
        50_257, ge=2, description="ids the table has; a new tokenizer is trained to at most this size"
    )
    context: int = Field(1024, ge=1, description="the most tokens it sees at once")
    special_ids: CausalLMIds = CausalLMIds()

    @model_validator(mode="after")
    def _symbols_are_ids(self) -> Self:
        for name in ("bos_id", "eos_id"):
            number = getattr(self.special_ids, name)
            if number is not None and number >= self.vocab_size:
                raise ConfigError(f"model.special_ids.{name}={number}, but there are only {self.vocab_size} ids")
        return self

    @property
    def output_vocab_size(self) -> int:
        """How many ids it chooses from when it writes."""
        return self.vocab_size

    def fitted(self, *, vocab_size: int, special_ids: CausalLMIds) -> Self:
        """The same for one tokenizer."""
        if self.special_ids not in (CausalLMIds(), special_ids):
            raise ConfigError(f"model.special_ids are the tokenizer's own ({special_ids}); leave them out")
        return self.model_copy(update={"vocab_size": vocab_size, "special_ids": special_ids})


def heads_fit(width: int, heads: int) -> None:
    """ConfigError unless the width divides into the heads."""
    if width % heads:
        raise ConfigError(
            f"model.width={width} does not divide into model.heads={heads}; "
            f"try model.width={width - width % heads or heads}"
        )
