"""The recurrent language model: one state, updated token by token, that has to remember the whole text.

Mikolov et al. 2010, "Recurrent neural network based language model"; today with gated cells. The state after token t is
h_t = f(x_t, h_{t-1}), and the logits of the next token are computed from it. Unlike an n-gram model or Bengio's network
it has no window; unlike GPT it cannot look back: what is not in the state is gone, and training goes through the tokens
one after another.

`context` is how many tokens a row has in training (truncated backpropagation through time). While generating, the state
goes on without a limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.errors import InputError
from regard.layers import cost
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.recurrent import CELLS, CellName, Recurrence, last_of, output_of
from regard.layers.tap import Tap
from regard.models.base import CausalLMConfig, CausalLMIds, Model


class RNNLMConfig(CausalLMConfig):
    """The config of a recurrent language model."""

    vocab_size: int = Field(4096, ge=2, description="V; a new tokenizer is trained to at most this size")
    context: int = Field(128, ge=1, description="tokens of a row in training; the state starts at zero in each")
    cell: CellName = Field("gru", description="the recurrent cell")
    width: int = Field(256, ge=1, description="D, the width of embeddings and states")
    layers: int = Field(1, ge=1, description="recurrent layers")
    tie_embeddings: bool = Field(True, description="the embedding matrix is also the output layer")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the activations that are set to zero in training")

    def flops(self, tokens: int) -> cost.ForwardCost:
        d, cell = self.width, CELLS[self.cell]
        recurrent = self.layers * cell.gates * 2 * d * d
        state = self.layers * cell.parts * d
        return cost.ForwardCost(tokens * (recurrent + d * d + d * self.vocab_size), 0, state)


TINY = {"vocab_size": 40, "context": 32, "width": 24}
EXAMPLES = (
    RNNLMConfig(**TINY, special_ids=CausalLMIds(bos_id=1, eos_id=2)),
    RNNLMConfig(**TINY, cell="lstm", layers=2, tie_embeddings=False, special_ids=CausalLMIds(bos_id=1, eos_id=2)),
    RNNLMConfig(**TINY, cell="elman"),
)


class RNNLM(Model):
    """`model(ids)` returns logits (B, T, V): at each position, for the next token."""

    config_class = RNNLMConfig
    interface = "causal_lm"
    config: RNNLMConfig
    alignment_taps: tuple[str, ...] = ()

    def __init__(self, config: RNNLMConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width)
        self.cells = nn.ModuleList(CELLS[config.cell](config.width, config.width) for _ in range(config.layers))
        self.readout = Linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)
        self.states = Tap()
        if not config.tie_embeddings:
            self.output = Embedding(config.vocab_size, config.width, scaled=False)

    def forward(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) for ids (B, T). With `document_ids`, the state starts again at each document."""
        return self.logits(self.hidden_states(ids, document_ids))

    def hidden_states(self, ids: Tensor, document_ids: Tensor | None = None) -> Tensor:
        """(B, T, D): all but the output layer."""
        return self._run(ids, self._zeros(len(ids)), document_ids)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output_layer.logits(hidden)

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight

    @property
    def output_embeddings(self) -> Tensor:
        """The matrix (V, D) of the output layer."""
        return self.output_layer.weight

    @property
    def output_layer(self) -> Embedding:
        """What computes the logits."""
        return self.embedding if self.config.tie_embeddings else self.output

    def start(self, prompts: Sequence[Sequence[int]]) -> "RNNLMState":
        """Read all tokens of the prompts, of any lengths, but the last of each, which is the first of `step`."""
        for number, prompt in enumerate(prompts):
            if not len(prompt):
                raise InputError(f"prompt {number + 1} has no tokens, wanted at least one, such as bos_id")
        device = self.embedding.weight.device
        first = torch.tensor([prompt[-1] for prompt in prompts]).to(device)
        states = self._zeros(len(prompts))
        lengths = torch.tensor([len(prompt) - 1 for prompt in prompts])
        if lengths.any():  # padded at the end: a state of a token never sees padding
            ids = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.long)
            for row, prompt in zip(ids, prompts, strict=True):
                row[: len(prompt) - 1] = torch.as_tensor(prompt[:-1])
            every = self._run(ids.to(device), states)[1]
            kept = lengths.to(device) > 0
            read = [last_of(layer.transpose(0, 1), lengths.clamp(min=1).to(device)) for layer in every]
            states = [layer * kept[:, None, None] for layer in read]
        return RNNLMState(first, states)

    def step(self, tokens: Tensor, state: "RNNLMState") -> tuple[Tensor, "RNNLMState"]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        hidden, every = self._run(tokens[:, None], state.states)
        return self.logits(hidden[:, 0]), RNNLMState(state.first, [layer[-1] for layer in every])

    def _zeros(self, rows: int) -> list[Tensor]:
        weight = self.embedding.weight
        return [weight.new_zeros(rows, CELLS[self.config.cell].parts, self.config.width) for _ in self.cells]

    def _run(
        self, ids: Tensor, states: list[Tensor], document_ids: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Hidden states (B, T, D), and the states (T, B, P, D) of each layer after each token."""
        hidden, every = self.dropout(self.embedding(ids)).transpose(0, 1), []
        for cell, begin in zip(self.cells, states, strict=True):
            layer = run_documents(cell, hidden, begin, document_ids)  # type: ignore[arg-type]
            every.append(layer)
            hidden = output_of(layer)
        states_of_text = self.states(hidden.transpose(0, 1))
        return self.dropout(self.readout(self.dropout(states_of_text))), every


def run_documents(cell: Recurrence, hidden: Tensor, begin: Tensor, document_ids: Tensor | None) -> Tensor:
    """The states (T, B, P, D) of a cell over inputs (T, B, D); each document (B, T) starts from zero."""
    given = cell.input(hidden)
    if document_ids is None:
        return cell.run(given, begin)
    goes_on = torch.ones_like(document_ids, dtype=torch.bool)
    goes_on[:, 1:] = document_ids[:, 1:] == document_ids[:, :-1]
    found, state = [], begin
    for step, same in zip(given, goes_on.T, strict=True):
        state = cell.step(step, state * same[:, None, None])
        found.append(state)
    return torch.stack(found)


@dataclass
class RNNLMState:
    """What continuing prompts carries from step to step: a state of each layer, however long the text."""

    first: Tensor  # (B,) the last token of each prompt: the tokens to step first
    states: list[Tensor]  # (B, P, D) of each layer

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows may be (inputs, beams)."""
        rows = rows.flatten()
        self.first = self.first[rows]
        self.states = [state[rows] for state in self.states]
