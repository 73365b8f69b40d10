"""The n-gram language model: how often did each token follow the last n - 1?

Jelinek and others, 1980s; smoothed by interpolated Kneser-Ney (Kneser & Ney 1995; Chen & Goodman 1998), the best of its
kind. From every count a discount D is taken, and what it frees goes to the model of order n - 1:

    P(w | h) = max(c(h w) - D, 0) / c(h) + D · N(h) / c(h) · P(w | h without its first token)

N(h) is how many different tokens follow h; below the first order stands 1 / V. The highest order has the counts of the
text. A lower order asks in how many different places a token was seen, not how often: c(h w) is the number of different
tokens before h w ("Francisco" is frequent, but only after "San"). D of an order is n₁ / (n₁ + 2 n₂), with n₁ n-grams
counted once and n₂ counted twice.

Nothing is learned by gradients: `fit` counts. An n-gram is a number in base V, and the model is the sorted numbers with
their counts. It is called like every other language model; its hidden states are log probabilities, and its output
layer is the identity.
"""

from collections.abc import Sequence
from typing import Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from regard.errors import ConfigError
from regard.layers import cost
from regard.layers.decoding import WindowState, last_tokens, start_window
from regard.models.base import CausalLMConfig, Model


class NGramConfig(CausalLMConfig):
    """The config of an n-gram model."""

    vocab_size: int = Field(512, ge=2, description="V; a new tokenizer is trained to at most this size")
    context: int = Field(128, ge=1, description="tokens of a row when it is scored; each sees the last order - 1")
    order: int = Field(5, ge=1, le=20, description="n: it predicts from the last n - 1 tokens")
    entries: tuple[int, ...] = Field((), description="different n-grams of each order, 1 to n; set when it is fitted")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.vocab_size**self.order >= 2**63:
            fits = next(n for n in range(self.order, 0, -1) if self.vocab_size**n < 2**63)
            raise ConfigError(
                f"model.order={self.order} with {self.vocab_size:,} tokens: an n-gram does not fit in 63 bits; "
                f"try model.order={fits}, or data.tokenizer=characters"
            )
        return self

    def flops(self, tokens: int) -> cost.ForwardCost:
        return cost.ForwardCost(0)


EXAMPLES = ()  # a fresh one has counted nothing: tests/models/test_ngram.py fits one for the laws


class NGram(Model):
    """`model(ids)` returns log probabilities (B, T, V): at each position, of the next token."""

    config_class = NGramConfig
    interface = "causal_lm"
    config: NGramConfig
    alignment_taps: tuple[str, ...] = ()

    def __init__(self, config: NGramConfig) -> None:
        super().__init__(config)
        entries = config.entries or (0,) * config.order
        for n, count in enumerate(entries, 1):
            self.register_buffer(f"keys_{n}", torch.zeros(count, dtype=torch.int64))
            self.register_buffer(f"counts_{n}", torch.zeros(count, dtype=torch.int64))

    @classmethod
    def fit(cls, config: NGramConfig, ids: Tensor) -> "NGram":
        """The model of a text, ids (T,)."""
        tables = count_ngrams(ids, config.order, config.vocab_size)
        model = cls(config.model_copy(update={"entries": tuple(len(keys) for keys, _ in tables)}))
        for n, (keys, counts) in enumerate(tables, 1):
            model.get_buffer(f"keys_{n}").copy_(keys)
            model.get_buffer(f"counts_{n}").copy_(counts)
        return model

    def forward(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """(B, T, V) for ids (B, T). With `document_ids`, a history ends where its document begins."""
        return self.hidden_states(ids, document_ids)

    def hidden_states(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """The log probabilities: there is nothing before them."""
        return self._log_probabilities(last_tokens(ids, max(1, self.config.order - 1), document_ids))

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden

    @property
    def input_embeddings(self) -> Tensor:
        """A token is its own number: the identity (V, V)."""
        return torch.eye(self.config.vocab_size, device=self.get_buffer("keys_1").device)

    @property
    def output_embeddings(self) -> Tensor:
        """The identity (V, V)."""
        return self.input_embeddings

    def start(self, prompts: Sequence[Sequence[int]]) -> WindowState:
        """The state after the prompts but their last tokens, which are the first of `step`."""
        return start_window(prompts, max(1, self.config.order - 1), self.get_buffer("keys_1").device)

    def step(self, tokens: Tensor, state: WindowState) -> tuple[Tensor, WindowState]:
        """Log probabilities (B, V) of the token after one more token (B,) in every row."""
        return self._log_probabilities(state.append(tokens)), state

    def _log_probabilities(self, window: Tensor) -> Tensor:
        """(…, V) for histories (…, n - 1), -1 before a text begins; each different history is computed once."""
        rows, back = window.flatten(0, -2).unique(dim=0, return_inverse=True)
        found = rows.new_full((len(rows), self.config.vocab_size), 1 / self.config.vocab_size, dtype=torch.float64)
        for n in range(1, self.config.order + 1):
            found = self._interpolated(n, rows, found)
        return found.log().float()[back].view(*window.shape[:-1], -1)

    def _interpolated(self, n: int, rows: Tensor, lower: Tensor) -> Tensor:
        """The probabilities (R, V) of order n from those of order n - 1; a history that never occurred keeps those."""
        keys, counts = self.get_buffer(f"keys_{n}"), self.get_buffer(f"counts_{n}")
        size, history = self.config.vocab_size, rows[:, rows.shape[1] - n + 1 :]
        code = history.new_zeros(len(rows))
        for tokens in history.T:
            code = code * size + tokens.clamp(min=0)
        begin, end = torch.searchsorted(keys, code * size), torch.searchsorted(keys, (code + 1) * size)
        widths = torch.where((history >= 0).all(1), end - begin, 0)  # N(h)
        row = torch.arange(len(rows), device=rows.device).repeat_interleave(widths)
        first = (widths.cumsum(0) - widths).repeat_interleave(widths)
        entry = begin.repeat_interleave(widths) + torch.arange(len(row), device=rows.device) - first
        total = lower.new_zeros(len(rows)).index_add_(0, row, counts[entry].double())
        seen, discount = widths > 0, self.discount(n)
        share = torch.where(seen, discount * widths / total.clamp(min=1), 1.0)
        found = lower * share[:, None]
        found[row, keys[entry] % size] += (counts[entry] - discount).clamp(min=0) / total[row]
        return found

    def discount(self, n: int) -> float:
        """D of an order, from the n-grams counted once and twice; 0.5 where the text has none of them."""
        counts = self.get_buffer(f"counts_{n}")
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        return once / (once + 2 * twice) if once and twice else 0.5


def count_ngrams(ids: Tensor, order: int, vocab_size: int) -> list[tuple[Tensor, Tensor]]:
    """For n = 1 to order the n-grams of a text, as sorted numbers in base V, with their counts.

    The highest order counts how often an n-gram occurs, the others how many different tokens stand before it. What
    begins the text has none before it, and counts once more for that.
    """
    codes = [ids.long()]
    for _ in range(1, order):
        codes.append(codes[-1][:-1] * vocab_size + ids[len(codes) :].long())
    tables = [codes[-1].unique(return_counts=True)]
    for n in range(order - 1, 0, -1):
        longer = codes[n].unique()  # each different (n + 1)-gram once: its last n tokens were seen in one more place
        ends = torch.cat([longer % vocab_size**n, codes[n - 1][:1]])
        tables.append(ends.unique(return_counts=True))
    return tables[::-1]
