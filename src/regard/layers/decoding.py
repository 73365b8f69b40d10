"""What models share for decoding: left-padded prompts, the state between steps, and which inputs beams still need.

Prompts of different lengths are padded on the left, so that the next token of every row has the same column. Padding
has segment 0, and no token attends to it. A model with a fixed window needs its last tokens alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from regard.errors import InputError
from regard.layers import masks
from regard.layers.attention import KeysValues
from regard.layers.kv_cache import KVCache

Method = TypeVar("Method", bound=Callable)


def shortlisted(method: Method) -> Method:
    """Mark `step` and `logits` of a model as what its `decode_step` and `argmax_shortlist` stand for.

    Greedy decoding without scores then calls `decode_step` and the shortlist in their place. A subclass or an instance
    with another `step` or `logits` does not have the mark, and its own methods are called.
    """
    method.is_shortlisted = True  # type: ignore[attr-defined]
    return method


@dataclass
class PromptState:
    """What continuing prompts carries from step to step."""

    first: Tensor  # (B,) the last token of each prompt: the tokens to step first
    caches: list[KVCache]  # of each block, with the tokens before it
    left_padding: Tensor | None  # (B,) columns of padding before each prompt; None: no row has any

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows may be (inputs, beams)."""
        rows = rows.flatten()
        self.first = self.first[rows]
        self.left_padding = None if self.left_padding is None else self.left_padding[rows]
        for cache in self.caches:
            cache.reorder(rows)

    @property
    def length(self) -> int:
        """Columns in the KV cache so far."""
        return self.caches[0].length

    def position_ids(self) -> Tensor | None:
        """The position (B, 1) of the next token in its own text; None: it is the column, in every row."""
        return None if self.left_padding is None else (self.length - self.left_padding)[:, None]

    def mask(self) -> Tensor | None:
        """What the next token may attend to, itself included: (B, 1, 1, S)."""
        if self.left_padding is None:
            return None
        columns = torch.arange(self.length + 1, device=self.left_padding.device)
        return (columns >= self.left_padding[:, None])[:, None, None]


@dataclass
class CrossAttentionState:
    """What a decoder with cross-attention carries from step to step: the encoded inputs, and the KV cache.

    An input may have several rows (beams); the keys and values of its memory are kept once.
    """

    first: Tensor  # (B,) the tokens to step first
    memory: list[KeysValues]  # of each decoder block
    caches: list[KVCache]  # of each decoder block
    memory_mask: Tensor | None = None  # (inputs, 1, 1, S); None: the memory has no padding

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows (inputs, beams): the beams of a line share an input."""
        kept = kept_inputs(rows, len(self.first), len(self.memory[0].key))
        if kept is not None:
            self.memory = [KeysValues(block.key[kept], block.value[kept]) for block in self.memory]
            self.memory_mask = None if self.memory_mask is None else self.memory_mask[kept]
        rows = rows.flatten()
        self.first = self.first[rows]
        for cache in self.caches:
            cache.reorder(rows)


def prefill_inputs(
    prompts: Sequence[Sequence[int]], layers: int, device: torch.device
) -> tuple[PromptState, Tensor, Tensor | None, Tensor | None]:
    """A state with empty caches, and what to prefill: ids (B, T) without the last of each prompt, positions, mask."""
    ids, left_padding = pad_left(prompts, device)
    before = ids[:, :-1]
    position_ids, mask = positions_and_mask(prompt_document_ids(left_padding, before.shape[1]))
    return PromptState(ids[:, -1], [KVCache() for _ in range(layers)], left_padding), before, position_ids, mask


def pad_left(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Prompts as ids (B, T), padded on the left, and the padding (B,) of each row; None where there is none."""
    for number, prompt in enumerate(prompts):
        if not len(prompt):
            raise InputError(f"prompt {number + 1} has no tokens, wanted at least one, such as bos_id")
    lengths = [len(prompt) for prompt in prompts]
    ids = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
    for row, prompt in zip(ids, prompts, strict=True):
        row[len(row) - len(prompt) :] = torch.as_tensor(prompt)
    left_padding = max(lengths) - torch.tensor(lengths)
    return ids.to(device), left_padding.to(device) if left_padding.any() else None


def prompt_document_ids(left_padding: Tensor | None, length: int) -> Tensor | None:
    """Document ids (B, T): 0 for padding, 1 for the prompt."""
    if left_padding is None:
        return None
    return (torch.arange(length, device=left_padding.device) >= left_padding[:, None]).long()


def positions_and_mask(document_ids: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The positions (B, T) and the mask (B, 1, T, T) of the documents of a row; None for both without document ids."""
    if document_ids is None:
        return None, None
    return masks.position_ids(document_ids), masks.same_document(document_ids, document_ids)


def kept_inputs(rows: Tensor, num_rows: int, num_inputs: int) -> Tensor | None:
    """Which inputs (N,) are needed when `num_rows` beams over `num_inputs` inputs become `rows`; None: all, in place.

    Beams of one input share what was computed from it. Rows are (N,), or (inputs, beams) whose lines share an input.
    """
    beams = num_rows // num_inputs
    inputs = (rows if rows.dim() == 1 else rows[:, 0]) // beams
    return None if torch.equal(inputs, torch.arange(num_inputs, device=rows.device)) else inputs


# ------------------------------------------------ models with a fixed window

NONE = -1  # no token: the text has not begun


def last_tokens(ids: Tensor, count: int, document_ids: Tensor | None = None) -> Tensor:
    """(B, T, count): the last `count` ids at each position of ids (B, T), its own the last; -1 before a text begins."""
    before = ids.new_full((len(ids), count - 1), NONE)
    found = torch.cat([before, ids], dim=1).unfold(1, count, 1)
    if document_ids is None:
        return found
    age = masks.position_ids(document_ids)[..., None] + 1  # tokens of the document so far, this one included
    return found.masked_fill(torch.arange(count, 0, -1, device=ids.device) > age, NONE)


@dataclass
class WindowState:
    """What continuing prompts carries from step to step: the last tokens of each row."""

    first: Tensor  # (B,) the last token of each prompt: the tokens to step first
    window: Tensor  # (B, count - 1) the tokens before; -1: none

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows may be (inputs, beams)."""
        rows = rows.flatten()
        self.first, self.window = self.first[rows], self.window[rows]

    def append(self, tokens: Tensor) -> Tensor:
        """The windows (B, count) that end with these tokens (B,), which the state now has."""
        found = torch.cat([self.window, tokens[:, None]], dim=1)
        self.window = found[:, 1:]
        return found


def start_window(prompts: Sequence[Sequence[int]], count: int, device: torch.device) -> WindowState:
    """The state after all tokens of the prompts but the last of each, for a window of `count` tokens."""
    for number, prompt in enumerate(prompts):
        if not len(prompt):
            raise InputError(f"prompt {number + 1} has no tokens, wanted at least one, such as bos_id")
    before = [[NONE] * count + list(prompt[:-1]) for prompt in prompts]
    window = torch.tensor([row[len(row) - count + 1 :] for row in before], dtype=torch.long).view(len(prompts), -1)
    return WindowState(torch.tensor([prompt[-1] for prompt in prompts]).to(device), window.to(device))
