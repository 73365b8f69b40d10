"""The first neural language model: a feed-forward network on the embeddings of the last few tokens.

Bengio, Ducharme & Vincent 2001, "A Neural Probabilistic Language Model" (longer: 2003). Like an n-gram model it sees a
fixed window of tokens; unlike one, it has a vector for each token, so what it learns of one token helps with similar
ones. With x the concatenated embeddings of the window (equation 1 of the paper):

    logits = b + W x + U tanh(d + H x)

W, from the embeddings to the logits without a hidden layer, is optional there and here. It differs from an RNN and from
GPT in that nothing before the window can matter.
"""

from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.layers import cost
from regard.layers.decoding import WindowState, last_tokens, start_window
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.initializing import fan_in_normal
from regard.layers.linear import Linear
from regard.layers.tap import Tap
from regard.models.base import CausalLMConfig, CausalLMIds, Model


class BengioConfig(CausalLMConfig):
    """The config of a neural language model with a fixed window."""

    vocab_size: int = Field(4096, ge=2, description="V; a new tokenizer is trained to at most this size")
    context: int = Field(128, ge=1, description="tokens of a row in training; each sees the window only")
    window: int = Field(5, ge=1, description="tokens it sees: an n-gram model's n, minus one")
    width: int = Field(60, ge=1, description="width of the embedding of a token")
    hidden: int = Field(100, ge=1, description="units of the tanh layer")
    direct: bool = Field(True, description="W: the embeddings also reach the logits directly")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the activations that are set to zero in training")

    @property
    def features(self) -> int:
        """The width of what the output layer multiplies: the tanh layer, x, and a one for the bias."""
        return self.hidden + (self.window * self.width if self.direct else 0) + 1

    def flops(self, tokens: int) -> cost.ForwardCost:
        inner = self.window * self.width * self.hidden
        return cost.ForwardCost(tokens * (inner + self.features * self.vocab_size))


TINY = {"vocab_size": 40, "context": 32, "width": 8, "hidden": 24}
EXAMPLES = (
    BengioConfig(**TINY, window=12, special_ids=CausalLMIds(bos_id=1, eos_id=2)),
    BengioConfig(**TINY, window=12, direct=False, dropout=0.1, special_ids=CausalLMIds(bos_id=1, eos_id=2)),
)


class Bengio(Model):
    """`model(ids)` returns logits (B, T, V): at each position, for the next token."""

    config_class = BengioConfig
    interface = "causal_lm"
    config: BengioConfig
    alignment_taps: tuple[str, ...] = ()

    def __init__(self, config: BengioConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, scaled=False)
        self.hidden = Linear(config.window * config.width, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.output = Embedding(config.vocab_size, config.features, scaled=False)  # [U, W, b] of the equation
        self.tanh = Tap()
        fan_in_normal(self)
        if not self.embedding.weight.is_meta:
            nn.init.normal_(self.embedding.weight)  # x enters a matrix of fan-in deviation: its variance should be 1

    def forward(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) for ids (B, T). With `document_ids`, a window ends where its document begins."""
        return self.logits(self.hidden_states(ids, document_ids))

    def hidden_states(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """(B, T, features): tanh(d + H x), then x itself, then 1."""
        return self._features(last_tokens(ids, self.config.window, document_ids))

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output.logits(hidden)

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight

    @property
    def output_embeddings(self) -> Tensor:
        """The matrix (V, features) of the output layer."""
        return self.output.weight

    def start(self, prompts: Sequence[Sequence[int]]) -> WindowState:
        """The state after the prompts but their last tokens, which are the first of `step`."""
        return start_window(prompts, self.config.window, self.embedding.weight.device)

    def step(self, tokens: Tensor, state: WindowState) -> tuple[Tensor, WindowState]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        return self.logits(self._features(state.append(tokens))), state

    def _features(self, window: Tensor) -> Tensor:
        """For windows (…, window) of ids; a place before the text has the zero vector."""
        x = (self.embedding(window.clamp(min=0)) * (window >= 0)[..., None]).flatten(-2)
        tanh = self.dropout(self.tanh(torch.tanh(self.hidden(x))))
        direct = [x] if self.config.direct else []
        return torch.cat([tanh, *direct, x.new_ones(*x.shape[:-1], 1)], dim=-1)
