"""The convolutional encoder-decoder.

Gehring et al. 2017, "Convolutional Sequence to Sequence Learning". Encoder and decoder are stacks of gated
convolutions: the receptive field grows with every layer, to (k - 1) · layers + 1 tokens at the top. The windows of the
decoder are causal, and each of its layers attends to the source (multi-step attention): the query is the hidden state
of the layer plus the embedding of the last target token, the value a hidden state of the encoder plus its embedding.
All positions are computed at once, as in the Transformer and unlike the RNN; but tokens far apart meet only in high
layers.

It departs from the paper where small models on a CPU need it: the scores are scaled by 1/√D (unscaled, softmax
saturates and training takes several times as long), positions are sinusoidal, and source, target and output share one
embedding matrix.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.layers import masks
from regard.layers.attention import SCALED_DOT, AttentionTaps, attend
from regard.layers.convolution import GatedConvolution
from regard.layers.cost import ForwardCost
from regard.layers.decoding import kept_inputs
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.positions import SinusoidalPositions
from regard.layers.tap import Tap
from regard.models.base import Model, Seq2SeqConfig

SQRT_HALF = math.sqrt(0.5)  # keeps the variance of a sum of two


class ConvConfig(Seq2SeqConfig):
    """The config of a convolutional translator."""

    vocab_size: int = Field(8_000, ge=4, description="V, of source and target")
    width: int = Field(256, ge=1, description="D, the width of the hidden states")
    layers: int = Field(4, ge=1, description="convolutions in the encoder and in the decoder")
    decoder_layers: int | None = Field(None, ge=1, description="convolutions in the decoder, where it differs")
    kernel: int = Field(3, ge=2, description="tokens in a window")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the activations that are set to zero in training")
    max_positions: int = Field(1024, ge=1, description="positions that are stored; more are computed")

    def flops(self, source: int, target: int) -> ForwardCost:
        n, m, d, k = source, target, self.width, self.kernel
        encoders, decoders = self.layers, self.decoder_layers or self.layers
        encoder_block = n * 2 * k * d * d
        decoder_block = m * (2 * k + 2) * d * d + 2 * m * n * d
        return ForwardCost(
            encoders * encoder_block + decoders * decoder_block + m * d * d + m * d * self.vocab_size,
            decoders * m * n,
            decoders * (k - 1) * d + 2 * n * d,
        )


EXAMPLES = (
    ConvConfig(vocab_size=40, width=24, layers=2),
    ConvConfig(vocab_size=40, width=24, layers=3, decoder_layers=1, kernel=4),
)

AXES = {"decoder.*": ("target", "source")}


class ConvTranslator(Model):
    """`model(source, target)` returns logits (B, T, V): at each position, for the next token."""

    config_class = ConvConfig
    interface = "seq2seq"
    attention_axes = AXES
    config: ConvConfig

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=config.special_ids.pad_id)
        self.positions = SinusoidalPositions(config.max_positions, config.width)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers or config.layers))
        self.readout = Linear(config.width, config.width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S) and target (B, T), which begins with `bos_id`; both padded at the end."""
        return self._write(target, self._read(source), self._empty_past(len(target)), start=0)[0]

    def start(self, source: Tensor) -> "ConvState":
        """Encode the source (B, S) once; the state of `step`."""
        first = source.new_full((len(source),), self.config.special_ids.bos_id)
        return ConvState(first, self._read(source), self._empty_past(len(source)), length=0)

    def step(self, tokens: Tensor, state: "ConvState") -> tuple[Tensor, "ConvState"]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        logits, past = self._write(tokens[:, None], state.memory, state.past, start=state.length)
        return logits[:, 0], ConvState(state.first, state.memory, past, state.length + 1)

    def _read(self, source: Tensor) -> "Memory":
        mask = masks.padding_mask(source, self.config.special_ids.pad_id)  # (B, 1, 1, S)
        real = mask[:, 0, 0, :, None]  # (B, S, 1)
        embedded = self._embed(source, start=0)
        hidden = embedded
        for block in self.encoder:
            hidden = block(hidden, real)
        return Memory(hidden[:, None], ((hidden + embedded) * SQRT_HALF)[:, None], mask)

    def _write(self, target: Tensor, memory: "Memory", past: list[Tensor], start: int) -> tuple[Tensor, list[Tensor]]:
        """Logits for the next token at each position, and the last inputs of each layer for the next window."""
        hidden = embedded = self._embed(target, start=start)
        reached = []
        for block, before in zip(self.decoder, past, strict=True):
            hidden, before = block(hidden, before, embedded, memory)
            reached.append(before)
        return self.embedding.logits(self.dropout(self.readout(hidden))), reached

    def _embed(self, ids: Tensor, *, start: int) -> Tensor:
        return self.dropout(self.embedding(ids) + self.positions(start, start + ids.shape[1]))

    def _empty_past(self, rows: int) -> list[Tensor]:
        return [self.embedding.weight.new_zeros(rows, self.config.kernel - 1, self.config.width) for _ in self.decoder]

    @property
    def alignment_taps(self) -> list[str]:
        """The taps of attention to the source; their mean is the alignment."""
        return [f"decoder.{number}.weights" for number in range(len(self.decoder))]

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated blocks, for activation checkpointing, compiling and sharding from outside."""
        return [*self.encoder, *self.decoder]


class Memory(NamedTuple):
    """The source for the attention of the decoder, one row a sentence."""

    key: Tensor  # (B, 1, S, D)
    value: Tensor  # (B, 1, S, D)
    mask: Tensor  # (B, 1, 1, S)


@dataclass
class ConvState:
    """The state of decoding. A sentence may have several rows (beams); its memory is stored once."""

    first: Tensor  # (B,) the tokens to step first
    memory: Memory
    past: list[Tensor]  # (B, k - 1, D): the last inputs of each layer
    length: int  # tokens decoded so far

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; with rows (sentences, beams) the beams of a row share its source."""
        moved = kept_inputs(rows, len(self.first), len(self.memory.key))
        if moved is not None:
            self.memory = Memory(*(part[moved] for part in self.memory))
        rows = rows.flatten()
        self.first = self.first[rows]
        self.past = [before[rows] for before in self.past]


class EncoderBlock(nn.Module):
    """A gated convolution over both sides, with a residual connection."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.margins = (config.kernel - 1) // 2, config.kernel // 2
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        hidden = hidden * real  # padding is zero, as beyond the end of the row
        wider = F.pad(self.dropout(hidden), (0, 0, *self.margins))
        return self.hidden((hidden + self.convolution(wider)) * SQRT_HALF)


class DecoderBlock(AttentionTaps):
    """A causal gated convolution, then attention to the source, with a residual connection around both."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)
        self.query = Linear(config.width, config.width)
        self.output = Linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, hidden: Tensor, before: Tensor, embedded: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Hidden states (B, T, D), and the last inputs, which are `before` (B, k - 1, D) of the next call."""
        wider = torch.cat([before, self.dropout(hidden)], dim=1)
        found = self.convolution(wider)
        found = (found + self._attend((self.query(found) + embedded) * SQRT_HALF, memory)) * SQRT_HALF
        return self.hidden((hidden + found) * SQRT_HALF), wider[:, hidden.shape[1] :]

    def _attend(self, query: Tensor, memory: Memory) -> Tensor:
        key, value, mask = memory
        rows, length, width = query.shape
        query = query.view(len(key), 1, -1, width)  # the beams of a sentence, or the positions of its one row
        found = attend(query, key, value, mask, similarity=SCALED_DOT, taps=self)
        return self.output(found.view(rows, length, width))
