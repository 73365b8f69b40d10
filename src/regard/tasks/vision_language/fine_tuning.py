"""A ViLBERT made ready for a task of its own: its words and weights from the model to begin from, a fresh head."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.huggingface.bert import symbols_of
from regard.models.base import EncoderIds
from regard.models.vilbert import SeeingConfig, StreamConfig, ViLBERTConfig
from regard.tasks.recipe import Given
from regard.tasks.warm_start import start_weights
from regard.tokenizers.wordpiece import WordPieceTokenizer

Head = TypeVar("Head", bound=ViLBERTConfig)
SMALL: dict[str, Any] = {
    "vocab_size": 512,
    "context": 64,
    "text": StreamConfig(width=128, heads=4, layers=1, feed_forward=256),
    "regions": StreamConfig(width=128, heads=4, layers=1, feed_forward=256),
    "co_attention_layers": 3,
    "joint": 128,
    "seeing": SeeingConfig(patch=16, inner=256),
    "dropout": 0.0,
    "special_ids": EncoderIds(bos_id=2, eos_id=3, mask_id=4),
}


def encoder_with(head: type[Head], given: Given) -> Head:
    """The config of a model with this head on the encoder to begin from, or on a small fresh one."""
    if given.start is None:
        return head(**SMALL)
    config = getattr(given.model.model, "config", None)
    if not isinstance(config, ViLBERTConfig):
        raise ConfigError(f"--from {given.start} is a {given.model.kind}, wanted a ViLBERT")
    return with_head(head, config)


def with_head(head: type[Head], config: ViLBERTConfig) -> Head:
    """The same encoder with another head."""
    return head(**{name: getattr(config, name) for name in ViLBERTConfig.model_fields})


def fitted(config: Head, given: Given, tokenizer: WordPieceTokenizer) -> Head:
    """The config for these words, where they are new."""
    if given.start:
        return config
    return config.fitted(vocab_size=tokenizer.vocab_size, special_ids=symbols_of(tokenizer))


def start_of(given: Given, config: ViLBERTConfig) -> Callable[[nn.Module], str]:
    """What a model with a head begins with: the encoder to begin from, if any."""
    weights = {} if given.start is None else weights_of(given.model.model, config)

    def begin(model: nn.Module) -> str:
        said = start_weights(model, weights)
        return said if given.start else "begins from nothing; --from MODEL begins from a ViLBERT that has seen pictures"

    return begin


def weights_of(start: Any, config: ViLBERTConfig) -> dict[str, Tensor]:
    """The encoder's weights as those of a model with a head; those of the head too, where it is for the same."""
    found = {f"encoder.{name}": weight for name, weight in start.encoder.state_dict().items()}
    if type(start.config) is type(config) and _answers(start.config) == _answers(config):
        found |= {name: weight for name, weight in start.state_dict().items() if not name.startswith("encoder.")}
    return found


def _answers(config: ViLBERTConfig) -> Any:
    return getattr(config, "labels", None), config.seeing.classes
