"""Fine-tuning an encoder: its tokenizer and weights from a pretrained model, with a new head.

Without a pretrained model all is new: a small encoder, and a tokenizer trained on the texts.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, InputError
from regard.huggingface.bert import special_ids_of
from regard.models.base import EncoderIds
from regard.models.bert import BertConfig
from regard.tasks.recipe import TrainingInputs, load_or_make_tokenizer
from regard.tasks.warm_start import load_pretrained
from regard.tokenizers.wordpiece import Encoding, WordPieceTokenizer
from regard.training.config import TrainingConfig

SMALL = {
    "vocab_size": 4096,
    "context": 128,
    "width": 128,
    "heads": 4,
    "layers": 2,
    "special_ids": EncoderIds(bos_id=2, eos_id=3, mask_id=4),
}


class FittedConfig(Protocol):
    """The config of a model that reads what a tokenizer writes."""

    def fitted(self, *, vocab_size: int, special_ids: EncoderIds) -> Self: ...


Head = TypeVar("Head", bound=BertConfig)
Fitted = TypeVar("Fitted", bound=FittedConfig)


def config_with_head(head: type[Head], inputs: TrainingInputs) -> Head:
    """The config of a model with this head on the pretrained encoder, or on a small new one."""
    if inputs.pretrained is None:
        return head(**SMALL)
    config = getattr(inputs.pipeline.model, "config", None)
    if not isinstance(config, BertConfig):
        raise ConfigError(f"--from {inputs.pretrained} is a {inputs.pipeline.kind}, wanted an encoder, such as a BERT")
    return head(**{name: getattr(config, name) for name in BertConfig.model_fields if name != "pooler"})


def fine_tuning_config(inputs: TrainingInputs) -> TrainingConfig:
    """Few epochs and a low learning rate for a pretrained encoder; more of both for a new one."""
    new = inputs.pretrained is None
    return TrainingConfig(
        steps=100_000,
        epochs=20 if new else 4,
        max_tokens=2048,
        learning_rate=1e-3 if new else 1e-4,
        warmup=50,
        schedule="linear",
        evaluate_every=100,
        evaluate_examples=1_000_000,
        checkpoint_every=500,
        patience=5,
        select="metric",
    )


def encoder_tokenizer(
    inputs: TrainingInputs, texts: Iterable[str], size: int, tokenizer_file: Path
) -> WordPieceTokenizer:
    """The tokenizer in the run's folder, the pretrained model's, or one trained on the texts; stored in the folder."""
    return load_or_make_tokenizer(
        WordPieceTokenizer,
        tokenizer_file,
        lambda: inputs.pipeline.tokenizer if inputs.pretrained else WordPieceTokenizer.train(texts, size),
    )


def fit_to_tokenizer(config: Fitted, inputs: TrainingInputs, tokenizer: WordPieceTokenizer) -> Fitted:
    """The config with the vocabulary of a new tokenizer; a pretrained model keeps its own."""
    if inputs.pretrained:
        return config
    return config.fitted(vocab_size=tokenizer.vocab_size, special_ids=special_ids_of(tokenizer))


def warm_start(
    inputs: TrainingInputs, weights: dict[str, Tensor], hint: str = "an encoder that knows the language"
) -> Callable[[nn.Module], str]:
    """A function that loads the weights into a new model; its note says what --from would give where it is missing."""

    def start(model: nn.Module) -> str:
        note = load_pretrained(model, weights)
        return note if inputs.pretrained else f"training from scratch; --from MODEL starts from {hint}"

    return start


def encoder_weights(inputs: TrainingInputs, config: BertConfig, score: float | None = None) -> dict[str, Tensor]:
    """Initial weights of a model with a head: those of the pretrained encoder, if any.

    The head's are taken too, where it has the same labels. `score` is the initial bias of a regression head.
    """
    found = {} if inputs.pretrained is None else _pretrained_weights(inputs.pipeline.model, config)
    if score is not None:
        found.setdefault("head.bias", torch.tensor([score]))
    return found


def _pretrained_weights(pretrained: Any, config: BertConfig) -> dict[str, Tensor]:
    found = {f"encoder.{name}": weight for name, weight in pretrained.encoder.state_dict().items()}
    if type(pretrained.config) is type(config) and _labels(pretrained.config) == _labels(config):
        found |= {name: weight for name, weight in pretrained.state_dict().items() if not name.startswith("encoder.")}
    if not config.pooler:
        found = {name: weight for name, weight in found.items() if not name.startswith("encoder.pooler.")}
    return found


def _labels(config: Any) -> Any:
    return getattr(config, "labels", None)


def check_lengths(
    encoded: Sequence[Encoding], max_length: int, too_long: str, which: str, places: Sequence[str] = ()
) -> list[str]:
    """A note on truncated rows, or an error at the first one; `places` say which line of which file each row is."""
    truncated = [(number, one.num_truncated) for number, one in enumerate(encoded, 1) if one.num_truncated]
    if not truncated:
        return []
    if too_long == "stop":
        number, tokens = truncated[0]
        place = places[number - 1] if places else f"row {number:,}"
        raise InputError(
            f"{place} of those {which} has {tokens + max_length:,} tokens, at most {max_length:,} are read "
            f"(and {len(truncated) - 1:,} more rows have too many); data.too_long=cut truncates them"
        )
    return [f"{len(truncated):,} of {len(encoded):,} rows {which} have more than {max_length:,} tokens: truncated"]


def labels_without_training(labels: Sequence[str], trained: Collection[str]) -> list[str]:
    """A note on labels that occur in the held-out part only."""
    missing = [label for label in labels if label not in trained]
    return [f"nothing to train on for {', '.join(missing[:10])}: all of it is held out"] if missing else []
