"""An encoder made ready for a task of its own: its words and weights from the model to begin from, a fresh head.

Without a model to begin from, all is fresh: a small encoder, and a tokenizer made of the texts.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, InputError
from regard.huggingface.bert import symbols_of
from regard.models.base import EncoderIds
from regard.models.bert import BertConfig
from regard.tasks.kept_tokenizer import kept_or_made
from regard.tasks.recipe import Given
from regard.tasks.warm_start import start_weights
from regard.tokenizers.wordpiece import Encoding, WordPieceTokenizer
from regard.training.loop import TrainingConfig

Head = TypeVar("Head", bound=BertConfig)
SMALL = {
    "vocab_size": 4096,
    "context": 128,
    "width": 128,
    "heads": 4,
    "layers": 2,
    "special_ids": EncoderIds(bos_id=2, eos_id=3, mask_id=4),
}


def encoder_with(head: type[Head], given: Given) -> Head:
    """The config of a model with this head on the encoder to begin from, or on a small fresh one."""
    if given.start is None:
        return head(**SMALL)
    config = getattr(given.model.model, "config", None)
    if not isinstance(config, BertConfig):
        raise ConfigError(f"--from {given.start} is a {given.model.kind}, wanted an encoder, such as a BERT")
    facts = {name: getattr(config, name) for name in BertConfig.model_fields if name != "pooler"}
    return head(**facts)


def training(given: Given) -> TrainingConfig:
    """What was learned before changes slowly; what begins from nothing has more to learn."""
    fresh = given.start is None
    return TrainingConfig(
        steps=100_000,
        epochs=20 if fresh else 4,
        max_tokens=2048,
        learning_rate=1e-3 if fresh else 1e-4,
        warmup=50,
        schedule="linear",
        evaluate_every=100,
        evaluate_on=1_000_000,
        checkpoint_every=500,
        patience=5,
    )


def words_of(given: Given, texts: Iterable[str], size: int, tokenizer_file: Path) -> WordPieceTokenizer:
    """The tokenizer the run has kept, that of the model to begin from, or a fresh one; kept from now on."""
    return kept_or_made(
        WordPieceTokenizer,
        tokenizer_file,
        lambda: given.model.tokenizer if given.start else WordPieceTokenizer.train(texts, size),
    )


def fitted(config: Head, given: Given, tokenizer: WordPieceTokenizer) -> Head:
    """The config for these words, where they are new."""
    if given.start:
        return config
    return config.fitted(vocab_size=tokenizer.vocab_size, special_ids=symbols_of(tokenizer))


def start_of(given: Given, config: BertConfig, score: float | None = None) -> Callable[[nn.Module], str]:
    """What a model with a head begins with: the encoder to begin from, if any. A score begins at this one."""
    weights = {} if given.start is None else weights_of(given.model.model, config)
    if score is not None:
        weights.setdefault("head.bias", torch.tensor([score]))

    def begin(model: nn.Module) -> str:
        said = start_weights(model, weights)
        return (
            said if given.start else "begins from nothing; --from MODEL begins from an encoder that knows the language"
        )

    return begin


def weights_of(start: Any, config: BertConfig) -> dict[str, Tensor]:
    """The encoder's weights as those of a model with a head; the head's too, where it is for the same labels."""
    found = {f"encoder.{name}": weight for name, weight in start.encoder.state_dict().items()}
    if type(start.config) is type(config) and start.config.labels == config.labels:  # type: ignore[attr-defined]
        found |= {name: weight for name, weight in start.state_dict().items() if not name.startswith("encoder.")}
    if not config.pooler:
        found = {name: weight for name, weight in found.items() if not name.startswith("encoder.pooler.")}
    return found


def check_lengths(
    encoded: Sequence[Encoding], longest: int, too_long: str, which: str, places: Sequence[str] = ()
) -> list[str]:
    """A note on rows that were cut, or an error at the first; `places` are where they stand."""
    cut = [(number, one.num_truncated) for number, one in enumerate(encoded, 1) if one.num_truncated]
    if not cut:
        return []
    if too_long == "stop":
        number, pieces = cut[0]
        place = places[number - 1] if places else f"row {number:,}"
        raise InputError(
            f"{place} of those {which} has {pieces + longest:,} pieces, at most {longest:,} are read "
            f"(and {len(cut) - 1:,} more rows have too many); data.too_long=cut to cut them"
        )
    return [f"{len(cut):,} of {len(encoded):,} rows {which} have more than {longest:,} pieces: their ends are cut off"]
