"""Masked language modeling: which tokens of a row are predicted, and what the model sees there (Devlin 2019, 3.1).

Fifteen of every hundred tokens are predicted. Most of them are replaced by the mask token, some by a random token,
and some stay, so the model cannot trust any input token and has to predict each from its context. The mask is a
function of the row's key (seed, epoch, index) alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from regard.config import Config
from regard.data.batches import IGNORE_INDEX, random_uint64
from regard.errors import ConfigError

NO_WORD = -1  # word id of a special token


class MaskingConfig(Config):
    """How many tokens are predicted, and what replaces them in the input."""

    share: float = Field(0.15, gt=0, le=1, description="fraction of tokens to predict")
    masked: float = Field(0.8, ge=0, le=1, description="fraction of those that the mask token replaces")
    replaced: float = Field(0.1, ge=0, le=1, description="fraction of those that a random token replaces")
    kept: float = Field(0.1, ge=0, le=1, description="fraction of those that stay unchanged")
    whole_words: bool = Field(False, description="predict all tokens of a word or none (whole-word masking)")

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        total = self.masked + self.replaced + self.kept
        if abs(total - 1) > 1e-9:
            raise ConfigError(
                f"masked {self.masked} + replaced {self.replaced} + kept {self.kept} is {total:.6g}, wanted 1; "
                "for example masked=0.8 replaced=0.1 kept=0.1"
            )
        return self


class MaskingTokenizer(Protocol):
    """What masking needs of a tokenizer."""

    pad_id: int
    bos_id: int
    eos_id: int
    unk_id: int | None
    mask_id: int | None

    @property
    def is_continuation(self) -> Sequence[bool]: ...


@dataclass(frozen=True)
class MaskingVocab:
    """What masking needs of a vocabulary: special ids, and which tokens continue a word."""

    pad_id: int
    bos_id: int
    eos_id: int
    mask_id: int
    unk_id: int | None
    is_continuation: np.ndarray  # (V,) bool
    random_ids: np.ndarray = field(init=False, repr=False)  # the ids to draw random tokens from: all but special ids

    def __post_init__(self) -> None:
        random_ids = np.setdiff1d(np.arange(len(self.is_continuation)), self.special_ids)
        object.__setattr__(self, "random_ids", random_ids)

    @classmethod
    def from_tokenizer(cls, tokenizer: MaskingTokenizer) -> "MaskingVocab":
        if tokenizer.mask_id is None:
            raise ConfigError("the tokenizer has no mask token; use one with [MASK]")
        return cls(
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            mask_id=tokenizer.mask_id,
            unk_id=tokenizer.unk_id,
            is_continuation=np.array(tokenizer.is_continuation, bool),
        )

    @property
    def special_ids(self) -> list[int]:
        found = (self.pad_id, self.bos_id, self.eos_id, self.mask_id, self.unk_id)
        return [number for number in found if number is not None]

    def word_ids(self, ids: np.ndarray) -> np.ndarray:
        """The number of each token's word in a row of ids; NO_WORD for tokens that may not be masked."""
        fixed = (ids == self.pad_id) | (ids == self.bos_id) | (ids == self.eos_id) | (ids == self.mask_id)
        # A continuation right after a special token starts a word of its own.
        starts = ~self.is_continuation[ids] | np.concatenate(([True], fixed[:-1]))
        return np.where(fixed, NO_WORD, np.cumsum(starts) - 1)


@dataclass(frozen=True)
class MaskedRow:
    """A masked row and its targets."""

    ids: np.ndarray  # (T,) the model's input
    targets: np.ndarray  # (T,) the true id, IGNORE_INDEX where nothing is predicted


def mask_row(
    ids: np.ndarray, word_ids: np.ndarray, config: MaskingConfig, vocab: MaskingVocab, key: tuple[int, ...]
) -> MaskedRow:
    """Mask tokens of a row (T,); `word_ids` has the word of each, NO_WORD for tokens that may not be masked.

    The same `key` gives the same mask. Each token, or each word, is chosen independently; at least one in a row.
    """
    ids = np.asarray(ids, np.int64)
    random = random_uint64(3 * len(ids), *key).reshape(3, -1)
    chosen = _choose(_to_unit_interval(random[0]), np.asarray(word_ids), config)
    kind = _to_unit_interval(random[1])
    other = vocab.random_ids[(random[2] % np.uint64(len(vocab.random_ids))).astype(np.int64)]
    masked = np.where(kind < config.masked, vocab.mask_id, np.where(kind < config.masked + config.replaced, other, ids))
    return MaskedRow(np.where(chosen, masked, ids), np.where(chosen, ids, IGNORE_INDEX))


def _choose(random: np.ndarray, word_ids: np.ndarray, config: MaskingConfig) -> np.ndarray:
    """Where the random number is below the share; if it is nowhere, then where it is smallest."""
    maskable = word_ids != NO_WORD
    if not maskable.any():
        return maskable
    if config.whole_words:  # a word's random number is that of its first token
        _, first, word = np.unique(word_ids, return_index=True, return_inverse=True)
        random = random[first][word]
    random = np.where(maskable, random, np.inf)
    return random <= max(np.nextafter(config.share, 0), random.min())


def _to_unit_interval(raw: np.ndarray) -> np.ndarray:
    """Random 64-bit numbers as floats in [0, 1)."""
    return (raw >> np.uint64(11)) * 2.0**-53
