"""The recurrent encoder-decoder, without and with attention.

An encoder reads the source token by token, h_t = f(x_t, h_{t-1}); a decoder writes, s_t = g(y_{t-1}, s_{t-1}, c). The
bridge connects the two, and the three bridges are the three steps of the lecture:

    LastState       s₀ = h_T, and nothing more (Sutskever 2014)
    FixedContext    c = h_T at every step, s₀ predicted from it (Cho 2014)
    Attention       c_t, a new one at every step: Σ a_ti h_i, the weights a_t = softmax of score(s_{t-1}, h_i)
                    (Bahdanau 2015)

With the first two, a whole sentence must pass through one vector. It differs from the Transformer in that each step
depends on the one before it, while training too.

With several decoder layers, the first one attends; the others run on its outputs.
"""

from dataclasses import dataclass
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.layers import masks
from regard.layers.attention import SIMILARITIES, Additive, AttentionTaps, SimilarityName, attend
from regard.layers.cost import ForwardCost
from regard.layers.decoding import kept_inputs
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.recurrent import CELLS, GRU, CellName, Recurrence, RecurrentLayer, output_of
from regard.layers.tap import Tap
from regard.models.base import Model, Seq2SeqConfig
from regard.ops.gru_scan import AttendingScan
from regard.ops.precision import in_float32


class RNNConfig(Seq2SeqConfig):
    """The config of a recurrent translator."""

    vocab_size: int = Field(8_000, ge=4, description="V, of source and target")
    bridge: Literal["last_state", "fixed_context", "attention"] = Field(
        "attention", description="how the decoder gets the source"
    )
    cell: CellName = Field("gru", description="the recurrent cell")
    width: int = Field(256, ge=2, description="D, the width of embeddings and states")
    layers: int = Field(1, ge=1, description="recurrent layers in the encoder and in the decoder")
    bidirectional: bool = Field(True, description="the encoder reads forward and backward, half the width each")
    similarity: SimilarityName = Field("additive", description="the score function of attention")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the activations that are set to zero in training")

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.bidirectional and self.width % 2:
            raise ConfigError(
                f"model.width={self.width} has no half for each direction; try model.width={self.width + 1}"
            )
        return self

    def flops(self, source: int, target: int) -> ForwardCost:
        n, m, d, layers, cell = source, target, self.width, self.layers, CELLS[self.cell]
        directions, each = (2, d // 2) if self.bidirectional else (1, d)
        encoder = n * layers * directions * cell.gates * each * (d + each)
        decoder = m * layers * cell.gates * d * 2 * d
        bridge, attention, context, kept = 0, 0, 0, 0
        if self.bridge != "last_state":
            context = d
            bridge = layers * cell.parts * d * d + cell.gates * d * d  # the first states, and c into the gates, once
            kept = d + cell.gates * d
        if self.bridge == "attention":
            similarity = m * n * d  # the same for a product of vectors and for the last layer of the MLP
            bridge += (m - 1) * cell.gates * d * d + (n + m) * d * d + similarity + m * n * d
            attention, kept = m * n, 2 * n * d
        output = m * (d + context) * d + m * d * self.vocab_size
        return ForwardCost(encoder + decoder + bridge + output, attention, layers * cell.parts * d + kept)


TINY = {"vocab_size": 40, "width": 24}
EXAMPLES = (
    RNNConfig(**TINY, bridge="last_state", bidirectional=False),
    RNNConfig(**TINY, bridge="last_state", cell="lstm", layers=2),
    RNNConfig(**TINY, bridge="fixed_context"),
    RNNConfig(**TINY, bridge="fixed_context", cell="lstm", layers=2, bidirectional=False),
    RNNConfig(**TINY),
    RNNConfig(**TINY, cell="lstm", layers=2, similarity="dot"),
    RNNConfig(**TINY, layers=2, bidirectional=False, similarity="scaled_dot"),
)

AXES = {"bridge": ("target", "source")}


class RNNTranslator(Model):
    """`model(source, target)` returns logits (B, T, V): at each position, for the next token."""

    config_class = RNNConfig
    interface = "seq2seq"
    attention_axes = AXES
    config: RNNConfig

    def __init__(self, config: RNNConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=config.special_ids.pad_id)
        self.encoder = nn.ModuleList(
            RecurrentLayer(config.cell, config.width, config.width, bidirectional=config.bidirectional)
            for _ in range(config.layers)
        )
        self.bridge: LastState | FixedContext = BRIDGES[config.bridge](config)
        self.decoder = nn.ModuleList(CELLS[config.cell](config.width, config.width) for _ in range(config.layers))
        self.readout = Linear(config.width + self.bridge.context, config.width)
        self.dropout = Dropout(config.dropout)
        self.states = Tap()
        self.contexts = Tap()  # of width 0 where the bridge has none

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S) and target (B, T), which begins with `bos_id`; both padded at the end."""
        states, kept = self._read(source)
        return self._write(target, states, kept)[0]

    def start(self, source: Tensor) -> "RNNState":
        """Encode the source (B, S) once; the state of `step`."""
        states, kept = self._read(source)
        return RNNState(source.new_full((len(source),), self.config.special_ids.bos_id), states, kept)

    def step(self, tokens: Tensor, state: "RNNState") -> tuple[Tensor, "RNNState"]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        logits, states = self._write(tokens[:, None], state.states, state.kept)
        return logits[:, 0], RNNState(state.first, states, state.kept)

    def _read(self, source: Tensor) -> tuple[list[Tensor], "Kept"]:
        """The first states of the decoder, and what the bridge keeps of the source."""
        mask = masks.padding_mask(source, self.config.special_ids.pad_id)
        lengths = mask.sum(-1).flatten()
        hidden, last = self.dropout(self.embedding(source)), []
        for layer in self.encoder:
            hidden, end = layer(hidden, lengths)
            last.append(end)
        return self.bridge.begin(last), self.bridge.keep(hidden, mask, output_of(last[-1]))

    def _write(self, target: Tensor, states: list[Tensor], kept: "Kept") -> tuple[Tensor, list[Tensor]]:
        """Logits for the next token at each position of the target, and the last states (B, P, D) of the layers."""
        first: Recurrence = self.decoder[0]  # type: ignore[assignment]
        given = first.input(self.dropout(self.embedding(target)).transpose(0, 1))  # (T, B, gates · D)
        layer, contexts = self.bridge.write(first, given, states[0], kept)  # (T, B, P, D), (T, B, context)
        ends = [layer[-1]]
        for cell, begin in zip(self.decoder[1:], states[1:], strict=True):
            layer = cell.run(cell.input(output_of(layer)), begin)  # type: ignore[operator]
            ends.append(layer[-1])
        outputs, contexts = output_of(layer).transpose(0, 1), contexts.transpose(0, 1)
        hidden = torch.cat([self.states(outputs), self.contexts(contexts)], dim=-1)
        return self.embedding.logits(self.dropout(self.readout(hidden))), ends

    @property
    def alignment_taps(self) -> list[str]:
        """The taps of attention to the source; without attention there are none."""
        return ["bridge.weights"] if isinstance(self.bridge, Attention) else []

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated blocks, for activation checkpointing, compiling and sharding from outside."""
        return [*self.encoder, *self.decoder]


Kept = tuple[Tensor, ...]  # what a bridge keeps of the source, one row a sentence


@dataclass
class RNNState:
    """The state of decoding. A sentence may have several rows (beams); `kept` has one."""

    first: Tensor  # (B,) the tokens to step first
    states: list[Tensor]  # (B, P, D) of each decoder layer
    kept: Kept

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; with rows (sentences, beams) the beams of a row share its source."""
        moved = kept_inputs(rows, len(self.first), len(self.kept[0])) if self.kept else None
        if moved is not None:
            self.kept = tuple(part[moved] for part in self.kept)
        rows = rows.flatten()
        self.first = self.first[rows]
        self.states = [state[rows] for state in self.states]


# ------------------------------------------------ the three bridges


class LastState(nn.Module):
    """s₀ = h_T."""

    context = 0  # width of the context of a step

    def __init__(self, config: RNNConfig) -> None:
        super().__init__()

    def begin(self, last: list[Tensor]) -> list[Tensor]:
        """The first states of the decoder (B, P, D), from the last ones of the encoder."""
        return last

    def keep(self, memory: Tensor, mask: Tensor, last: Tensor) -> Kept:
        """What the steps need of the source, computed once."""
        return ()

    def write(self, cell: Recurrence, given: Tensor, state: Tensor, kept: Kept) -> tuple[Tensor, Tensor]:
        """States (T, B, P, D) of the first layer and contexts (T, B, context), from the projected inputs."""
        return cell.run(given, state), given.new_empty(*given.shape[:2], 0)


class FixedContext(nn.Module):
    """c = h_T at every step; s₀ = tanh(W h_T)."""

    def __init__(self, config: RNNConfig) -> None:
        super().__init__()
        self.context = config.width
        self.starts = nn.ModuleList(Linear(config.width, config.width) for _ in range(config.layers))
        self.gates = Linear(config.width, CELLS[config.cell].gates * config.width, bias=False)

    def begin(self, last: list[Tensor]) -> list[Tensor]:
        return [start(state).tanh() for start, state in zip(self.starts, last, strict=True)]

    def keep(self, memory: Tensor, mask: Tensor, last: Tensor) -> Kept:
        return last, self.gates(last)  # the same at every step

    def write(self, cell: Recurrence, given: Tensor, state: Tensor, kept: Kept) -> tuple[Tensor, Tensor]:
        beams = len(state) // len(kept[0])
        context, gates = (part.repeat_interleave(beams, dim=0) if beams > 1 else part for part in kept)
        return cell.run(given + gates, state), context.expand(len(given), -1, -1)


class Attention(FixedContext, AttentionTaps):
    """c_t = Σ a_ti h_i with a_t = softmax(score(W s_{t-1}, U h_i)): a new context at every step."""

    def __init__(self, config: RNNConfig) -> None:
        super().__init__(config)
        self.query = Linear(config.width, config.width)
        self.key = Linear(config.width, config.width, bias=False)
        self.similarity = SIMILARITIES[config.similarity](config.width)

    def keep(self, memory: Tensor, mask: Tensor, last: Tensor) -> Kept:
        return self.key(memory)[:, None], memory[:, None], mask  # U h_i is the same at every step; (B, 1, S, D)

    @in_float32
    def write(self, cell: Recurrence, given: Tensor, state: Tensor, kept: Kept) -> tuple[Tensor, Tensor]:
        is_training = torch.is_grad_enabled() and len(state) == len(kept[0])
        is_training &= not (self.is_watched or cell.is_watched)
        if is_training and isinstance(cell, GRU) and isinstance(self.similarity, Additive):
            return self._write_fast(cell, self.similarity, given, state, kept)
        states, contexts = [], []
        for step_input in given:
            context = self._attend(output_of(state), kept)
            state = cell.step(step_input + self.gates(context), state)
            states.append(state)
            contexts.append(context)
        return torch.stack(states), torch.stack(contexts)

    def _attend(self, state: Tensor, kept: Kept) -> Tensor:
        """c_t (B, D) for the states s_{t-1} (B, D)."""
        key, value, mask = kept
        query = self.query(state).view(len(key), 1, -1, key.shape[-1])  # (sentences, 1, beams, D)
        return attend(query, key, value, mask, similarity=self.similarity, taps=self).flatten(0, 2)

    def _write_fast(
        self, cell: GRU, similarity: Additive, given: Tensor, state: Tensor, kept: Kept
    ) -> tuple[Tensor, Tensor]:
        """The same loop as one differentiable function."""
        key, value, mask = (part.squeeze(1) for part in kept)
        states, contexts = AttendingScan.apply(
            given,
            state.squeeze(1),
            key,
            value,
            mask.squeeze(1),
            cell.recurrent.weight,
            cell.recurrent.bias,
            self.query.weight,
            self.query.bias,
            similarity.score.weight.squeeze(0),
            self.gates.weight,
        )
        return states.unsqueeze(2), contexts


BRIDGES: dict[str, type[LastState] | type[FixedContext]] = {
    "last_state": LastState,
    "fixed_context": FixedContext,
    "attention": Attention,
}
