"""Which pieces of a row are hidden, and by what (Devlin 2019, 3.1): a function of the row's numbers alone.

Of every hundred pieces fifteen are asked for. Of those most show the mask; some show another piece, and some
themselves, so that a model may trust no word it sees, and has to know every one by its neighbors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from regard.config import Config
from regard.data.batches import IGNORED, num_samples
from regard.errors import ConfigError

NO_WORD = -1  # the word of a symbol


class MaskingConfig(Config):
    """How much is asked for, and what stands in its place."""

    share: float = Field(0.15, gt=0, le=1, description="of the pieces that are asked for")
    masked: float = Field(0.8, ge=0, le=1, description="of those, the share that shows the mask")
    replaced: float = Field(0.1, ge=0, le=1, description="the share that shows another piece, drawn at random")
    kept: float = Field(0.1, ge=0, le=1, description="the share that shows itself")
    whole_words: bool = Field(False, description="all pieces of a word are asked for, or none")

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        total = self.masked + self.replaced + self.kept
        if abs(total - 1) > 1e-9:
            raise ConfigError(
                f"masked {self.masked} + replaced {self.replaced} + kept {self.kept} is {total:.6g}, wanted 1; "
                "for example masked=0.8 replaced=0.1 kept=0.1"
            )
        return self


class SpecialIds(Protocol):
    """What a tokenizer knows of its ids."""

    pad_id: int
    bos_id: int
    eos_id: int
    unk_id: int
    mask_id: int | None

    @property
    def is_continuation(self) -> Sequence[bool]: ...


@dataclass(frozen=True)
class PieceTable:
    """What is known of a vocabulary's ids: the symbols, and which pieces go on inside a word."""

    pad_id: int
    bos_id: int
    eos_id: int
    mask_id: int
    unk_id: int
    is_continuation: np.ndarray  # (V,) bool
    drawn: np.ndarray = field(init=False, repr=False)  # the ids that may stand in for another: all but the symbols

    def __post_init__(self) -> None:
        drawn = np.setdiff1d(np.arange(len(self.is_continuation)), self.special_ids)
        object.__setattr__(self, "drawn", drawn)

    @classmethod
    def of(cls, tokenizer: SpecialIds) -> "PieceTable":
        if tokenizer.mask_id is None:
            raise ConfigError("the tokenizer has no mask symbol, so nothing can be hidden; use one with [MASK]")
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
        return [self.pad_id, self.bos_id, self.eos_id, self.mask_id, self.unk_id]

    def words(self, ids: np.ndarray) -> np.ndarray:
        """The number of each piece's word in a row of ids; NO_WORD for what may not be asked for."""
        fixed = (ids == self.pad_id) | (ids == self.bos_id) | (ids == self.eos_id) | (ids == self.mask_id)
        # A piece that goes on behind a symbol has no word before it: it is one itself.
        begins = ~self.is_continuation[ids] | np.concatenate(([True], fixed[:-1]))
        return np.where(fixed, NO_WORD, np.cumsum(begins) - 1)


@dataclass(frozen=True)
class Masked:
    """A row as the model sees it, and what it is asked."""

    ids: np.ndarray  # (T,)
    targets: np.ndarray  # (T,) the true id, IGNORED where it is not asked for


def mask_row(
    ids: np.ndarray, words: np.ndarray, config: MaskingConfig, table: PieceTable, numbers: tuple[int, ...]
) -> Masked:
    """Hide pieces of a row (T,); `words` has the word of each, NO_WORD where none may be hidden.

    The same `numbers`, the same mask. Each piece, or each word, is chosen on its own; of a row with words at least one.
    """
    ids = np.asarray(ids, np.int64)
    chance = num_samples(3 * len(ids), *numbers).reshape(3, -1)
    chosen = _chosen(_share(chance[0]), np.asarray(words), config)
    kind = _share(chance[1])
    other = table.drawn[(chance[2] % np.uint64(len(table.drawn))).astype(np.int64)]
    shown = np.where(kind < config.masked, table.mask_id, np.where(kind < config.masked + config.replaced, other, ids))
    return Masked(np.where(chosen, shown, ids), np.where(chosen, ids, IGNORED))


def _chosen(chance: np.ndarray, words: np.ndarray, config: MaskingConfig) -> np.ndarray:
    """Where the chance is below the share; where it nowhere is, there where it is smallest."""
    free = words != NO_WORD
    if not free.any():
        return free
    if config.whole_words:  # the chance of a word is that of its first piece
        _, first, word = np.unique(words, return_index=True, return_inverse=True)
        chance = chance[first][word]
    chance = np.where(free, chance, np.inf)
    return chance <= max(np.nextafter(config.share, 0), chance.min())


def _share(raw: np.ndarray) -> np.ndarray:
    """Random 64-bit numbers as numbers from 0 to below 1."""
    return (raw >> np.uint64(11)) * 2.0**-53
