"""The convolutional translator.

Gehring et al. 2017, "Convolutional Sequence to Sequence Learning". Encoder and decoder are stacks of gated
convolutions: a place sees its neighbors, and more of them with every layer, (k - 1) · layers + 1 words at the top. The
decoder's windows end at the word itself, and each of its layers looks at the source by itself (multi-step attention):
the query is the layer's word plus the embedding of the last target word, the value an encoder word plus its embedding.
All places are computed at once, as in the Transformer and unlike the RNN; but two words far apart meet only high up.

It departs from the paper where small models on a CPU ask for it: the scores are scaled by 1/√D (unscaled, softmax
saturates and learning takes several times as long), positions are sinusoidal, and one table serves both ends.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.layers import masks
from regard.layers.attention import SCALED_DOT, attend
from regard.layers.convolution import GatedConvolution
from regard.layers.cost import ForwardCost
from regard.layers.decoding import kept_inputs
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.positions import SinusoidalPositions
from regard.layers.tap import Tap
from regard.models.base import Model, Seq2SeqConfig

HALF = math.sqrt(0.5)  # the sum of two like things has the variance of one again


class ConvConfig(Seq2SeqConfig):
    """What a convolutional translator is made of."""

    vocab_size: int = Field(8_000, ge=4, description="ids the shared table has")
    width: int = Field(256, ge=1, description="D, the length of every word vector")
    layers: int = Field(4, ge=1, description="convolutions in the encoder and in the decoder")
    decoder_layers: int | None = Field(None, ge=1, description="convolutions in the decoder, where it differs")
    kernel: int = Field(3, ge=2, description="words in a window")
    dropout: float = Field(0.1, ge=0, lt=1)
    longest: int = Field(1024, ge=1, description="positions kept in the table; more are computed")

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


class ConvTranslator(Model):
    """`model(source, target)` gives logits (B, T, V): at each place, for the token that comes next."""

    config_class = ConvConfig
    interface = "seq2seq"
    config: ConvConfig

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=config.special_ids.pad_id)
        self.positions = SinusoidalPositions(config.longest, config.width)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers or config.layers))
        self.readout = Linear(config.width, config.width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S) and the target so far (B, T), which begins with the begin symbol.

        Rows are padded at the end.
        """
        return self._write(target, self._read(source), self._nothing_written(len(target)), start=0)[0]

    def start(self, source: Tensor) -> "ConvState":
        """Read the source (B, S) once; what `step` needs from then on."""
        first = source.new_full((len(source),), self.config.special_ids.bos_id)
        return ConvState(first, self._read(source), self._nothing_written(len(source)), length=0)

    def step(self, tokens: Tensor, state: "ConvState") -> tuple[Tensor, "ConvState"]:
        """Logits (B, V) for what follows one more token (B,) in every row."""
        logits, past = self._write(tokens[:, None], state.memory, state.past, start=state.length)
        return logits[:, 0], ConvState(state.first, state.memory, past, state.length + 1)

    def _read(self, source: Tensor) -> "Memory":
        mask = masks.padding(source, self.config.special_ids.pad_id)  # (B, 1, 1, S)
        real = mask[:, 0, 0, :, None]  # (B, S, 1)
        embedded = self._embed(source, start=0)
        hidden = embedded
        for block in self.encoder:
            hidden = block(hidden, real)
        return Memory(hidden[:, None], ((hidden + embedded) * HALF)[:, None], mask)

    def _write(self, target: Tensor, memory: "Memory", past: list[Tensor], start: int) -> tuple[Tensor, list[Tensor]]:
        """Logits for what follows each token, and the last inputs of each layer, which the next window reaches."""
        hidden = embedded = self._embed(target, start=start)
        reached = []
        for block, before in zip(self.decoder, past, strict=True):
            hidden, before = block(hidden, before, embedded, memory)
            reached.append(before)
        return self.embedding.logits(self.dropout(self.readout(hidden))), reached

    def _embed(self, ids: Tensor, *, start: int) -> Tensor:
        return self.dropout(self.embedding(ids) + self.positions(start, start + ids.shape[1]))

    def _nothing_written(self, rows: int) -> list[Tensor]:
        return [self.embedding.weight.new_zeros(rows, self.config.kernel - 1, self.config.width) for _ in self.decoder]

    @property
    def alignment_taps(self) -> list[str]:
        """The taps whose mean tells which source word a target word comes from."""
        return [f"decoder.{number}.weights" for number in range(len(self.decoder))]

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated parts, for whoever compiles, shards or recomputes them from outside."""
        return [*self.encoder, *self.decoder]


class Memory(NamedTuple):
    """The source as the decoder's layers look at it, a row a sentence."""

    key: Tensor  # (B, 1, S, D)
    value: Tensor  # (B, 1, S, D)
    mask: Tensor  # (B, 1, 1, S)


@dataclass
class ConvState:
    """What decoding carries from step to step. Rows may be several to a sentence (beams); the memory is kept once."""

    first: Tensor  # (B,) the tokens to step first
    memory: Memory
    past: list[Tensor]  # (B, k - 1, D): the last inputs of each layer
    length: int  # tokens written so far

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows (sentences, beams) says that each line shares a source."""
        moved = kept_inputs(rows, len(self.first), len(self.memory.key))
        if moved is not None:
            self.memory = Memory(*(part[moved] for part in self.memory))
        rows = rows.flatten()
        self.first = self.first[rows]
        self.past = [before[rows] for before in self.past]


class EncoderBlock(nn.Module):
    """A gated convolution that sees both sides, around it a residual."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.margins = (config.kernel - 1) // 2, config.kernel // 2
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        hidden = hidden * real  # what stands behind a sentence is nothing, as at the row's end
        wider = F.pad(self.dropout(hidden), (0, 0, *self.margins))
        return self.hidden((hidden + self.convolution(wider)) * HALF)


class DecoderBlock(nn.Module):
    """A gated convolution over what is written, then a look at the source, around both a residual."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)
        self.query = Linear(config.width, config.width)
        self.seen = Linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)
        self.weights = Tap()
        self.hidden = Tap()

    def forward(self, hidden: Tensor, before: Tensor, embedded: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """The words (B, T, D) one layer up, and the last inputs; `before` (B, k - 1, D) are those of the last time."""
        wider = torch.cat([before, self.dropout(hidden)], dim=1)
        found = self.convolution(wider)
        found = (found + self._look((self.query(found) + embedded) * HALF, memory)) * HALF
        return self.hidden((hidden + found) * HALF), wider[:, hidden.shape[1] :]

    def _look(self, query: Tensor, memory: Memory) -> Tensor:
        key, value, mask = memory
        rows, position_ids, width = query.shape
        query = query.view(len(key), 1, -1, width)  # the beams of a sentence, or the places of its one row
        seen = attend(query, key, value, mask, similarity=SCALED_DOT, tap=self.weights)
        return self.seen(seen.view(rows, position_ids, width))
