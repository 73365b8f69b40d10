"""The image captioner that looks where it speaks of.

Xu et al. 2015, "Show, Attend and Tell". An encoder makes a grid of vectors of the picture, one a cell; a decoder
writes the caption word by word and looks at the grid before each word. It differs from the RNN translator and the
Transformer in what is read: a picture has no words, so the memory is its cells, as many for every picture.

Two decoders on the same grid:

    lstm          the paper's. The weights are a_t = softmax of score(s_{t-1}, h_i), additive; the context z_t = β_t Σ
                  a_ti h_i, where the gate β_t = σ(f(s_{t-1})) says how much the picture matters for this word; the
                  first states come from the mean of the grid; a word is chosen by E y_{t-1} + L_h s_t + L_z z_t (eq. 7)
    transformer   masked self-attention over the words, cross-attention to the grid (pre-norm)

and three encoders: convolutions, patches (see layers/image_encoder.py), and a ViT that has learned to see elsewhere
(layers/vision_transformer.py). `look` gives logits and weights of one pass, for training that asks the weights of every
cell to add up to one over the words (eq. 14).
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.images.preprocessing import renormalize
from regard.layers import cost
from regard.layers.attention import Additive, KeysValues, MultiHeadAttention, attend_written_out
from regard.layers.decoding import CrossAttentionState, kept_inputs
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import FeedForward
from regard.layers.image_encoder import (
    Convolution,
    ConvolutionEncoder,
    PatchEncoder,
    convolution_cost,
    patch_cost,
)
from regard.layers.kv_cache import KVCache
from regard.layers.linear import Linear
from regard.layers.positions import SinusoidalPositions
from regard.layers.recurrent import LSTM, shown
from regard.layers.tap import Tap
from regard.layers.vision_transformer import VisionTransformer, ViTConfig
from regard.models.base import Model, Seq2SeqConfig, heads_fit


class CaptionerConfig(Seq2SeqConfig):
    """What a captioner is made of."""

    vocab_size: int = Field(4_000, ge=4, description="ids the table has; a new tokenizer is trained to this size")
    side: int = Field(64, ge=4, description="pixels of a picture's side; pictures are brought to it")
    cell: int = Field(8, ge=2, description="pixels of a grid cell's side: P = (side / cell)²")
    encoder: Literal["cnn", "patches", "vit"] = Field("cnn", description="how the grid is made")
    vit: ViTConfig | None = Field(None, description="what the ViT is made of, where the encoder is one")
    blocks: int = Field(1, ge=1, description="of the encoder: a halving, of convolutions; in all, of patches")
    decoder: Literal["lstm", "transformer"] = Field("lstm", description="what writes")
    layers: int = Field(1, ge=1, description="of the decoder; of LSTMs the first one looks")
    width: int = Field(128, ge=2, description="D, the length of every cell's and word's vector")
    heads: int = Field(4, ge=1, description="H, attentions side by side, of patches and of the Transformer")
    feed_forward: int = Field(256, ge=1, description="inner width of the feed-forward network, where there is one")
    dropout: float = Field(0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        heads_fit(self.width, self.heads)
        if (self.encoder == "vit") != (self.vit is not None):
            raise ConfigError(
                f"model.encoder={self.encoder}: a ViT comes from a folder, and with it what it is made of; "
                "begin --from one for vit, and leave model.encoder out"
            )
        if self.side % self.cell:
            raise ConfigError(
                f"model.side={self.side} does not divide into cells of model.cell={self.cell} pixels; "
                f"try model.side={self.side - self.side % self.cell or self.cell}"
            )
        if self.encoder == "cnn" and self.cell & (self.cell - 1):
            raise ConfigError(f"model.cell={self.cell}: convolutions halve a picture; wanted 2, 4, 8, 16 or so")
        if self.encoder == "cnn" and self.width % (self.cell // 2):
            raise ConfigError(
                f"model.width={self.width} is no multiple of {self.cell // 2}: the channels double at each halving but "
                f"the first; try model.width={self.width + -self.width % (self.cell // 2)}"
            )
        return self

    @property
    def grid(self) -> int:
        """Cells of a side."""
        return self.side // self.cell

    @property
    def cells(self) -> int:
        """P."""
        return self.grid**2

    def flops(self, target: int) -> cost.ForwardCost:
        m, d, p, layers = target, self.width, self.cells, self.layers
        if self.decoder == "transformer":
            block = cost.block(m, d, self.feed_forward) + cost.cross_attention(m, p, d)
            return self._encoder_flops() + cost.ForwardCost(
                layers * block + m * d * self.vocab_size,
                layers * self.heads * (m * m + m * p),
                2 * layers * (p + m) * d,
            )
        start = layers * 2 * d * d + p * d * d  # the first states, and the keys
        attention = d * d + 2 * p * d + d + LSTM.gates * d * d  # query, scores and sum, gate, context into the cell
        step = layers * LSTM.gates * 2 * d * d + 2 * d * d + d * self.vocab_size
        return self._encoder_flops() + cost.ForwardCost(
            start + m * (attention + step), m * p, 2 * layers * d + 2 * p * d
        )

    def _encoder_flops(self) -> cost.ForwardCost:
        if self.vit is not None:
            return self.vit.flops(side=self.side, cell=self.cell) + cost.ForwardCost(
                self.cells * self.vit.width * self.width
            )
        if self.encoder == "cnn":
            return convolution_cost(side=self.side, cell=self.cell, width=self.width, blocks=self.blocks)
        return patch_cost(
            side=self.side,
            cell=self.cell,
            width=self.width,
            heads=self.heads,
            blocks=self.blocks,
            feed_forward=self.feed_forward,
        )


TINY: dict[str, Any] = {"vocab_size": 40, "side": 32, "cell": 8, "width": 24, "heads": 3, "feed_forward": 32}
TINY_VIT = ViTConfig(width=16, heads=2, layers=2, feed_forward=20)
NO_BIAS = TINY_VIT.model_copy(update={"bias": False})
EXAMPLES = (
    CaptionerConfig(**TINY),
    CaptionerConfig(**TINY, decoder="transformer", layers=2, dropout=0.1),
    CaptionerConfig(**TINY, encoder="patches", blocks=2, layers=2, dropout=0.1),
    CaptionerConfig(**TINY | {"cell": 4, "side": 16}, encoder="patches", decoder="transformer"),
    CaptionerConfig(**TINY | {"cell": 4, "side": 16}, blocks=2),
    CaptionerConfig(**TINY, encoder="vit", vit=TINY_VIT),
    CaptionerConfig(**TINY | {"cell": 16}, encoder="vit", vit=NO_BIAS, decoder="transformer"),
)


class Looked(NamedTuple):
    """What one pass gives where the weights are wanted too."""

    logits: Tensor  # (B, T, V)
    weights: Tensor  # (B, H, T, P), the heads of all layers side by side


class Captioner(Model):
    """`model(pixels, target)` gives logits (B, T, V): at each place, for the token that comes next."""

    config_class = CaptionerConfig
    interface = "captioner"
    config: CaptionerConfig

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__(config)
        self.encoder: ConvolutionEncoder | PatchEncoder | ViTEncoder
        if config.vit is not None:
            self.encoder = ViTEncoder(config.vit, side=config.side, cell=config.cell, width=config.width)
        elif config.encoder == "cnn":
            self.encoder = ConvolutionEncoder(
                side=config.side, cell=config.cell, width=config.width, blocks=config.blocks
            )
        else:
            self.encoder = PatchEncoder(
                side=config.side,
                cell=config.cell,
                width=config.width,
                heads=config.heads,
                blocks=config.blocks,
                feed_forward=config.feed_forward,
                dropout=config.dropout,
            )
        self.decoder: LSTMDecoder | TransformerDecoder = DECODERS[config.decoder](config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for matrices, zero for biases; embeddings, convolutions and LSTMs have their own start."""
        if self.input_embeddings.is_meta:  # weights come from elsewhere
            return
        own = [id(part) for module in self.modules() if isinstance(module, LSTM) for part in module.modules()]
        for module in self.modules():
            if isinstance(module, nn.Linear) and not isinstance(module, Convolution) and id(module) not in own:
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, pixels: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for pixels (B, 3, side, side) and the caption so far (B, T), begin symbol first.

        Rows are padded at the end.
        """
        return self.decoder(target, self.start(pixels))

    def look(self, pixels: Tensor, target: Tensor) -> Looked:
        """The same, and where it looked: gradients go through both."""
        weights: list[Tensor] = []
        logits = self.decoder(target, self.start(pixels), weights)
        return Looked(logits, torch.cat(weights, dim=1))

    def start(self, pixels: Tensor) -> "LSTMState | CrossAttentionState":
        """See the picture once; what `step` needs from then on."""
        side = self.config.side
        assert pixels.shape[1:] == (3, side, side), f"pixels {tuple(pixels.shape)}, wanted (B, 3, {side}, {side})"
        first = torch.full((len(pixels),), self.config.special_ids.bos_id, device=pixels.device)
        return self.decoder.begin(self.encoder(pixels), first)

    def step(
        self, tokens: Tensor, state: "LSTMState | CrossAttentionState"
    ) -> tuple[Tensor, "LSTMState | CrossAttentionState"]:
        """Logits (B, V) for what follows one more token (B,) in every row."""
        return self.decoder.step(tokens, state), state  # type: ignore[arg-type]

    @property
    def alignment_taps(self) -> list[str]:
        """The taps that tell which cells a word comes from, all that look at the grid: (B, H, T, P) each."""
        return [f"decoder.{path}" for path in self.decoder.looking]

    @property
    def input_embeddings(self) -> Tensor:
        """The matrix (V, D) that words are looked up in."""
        return self.decoder.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated parts, for whoever compiles, shards or recomputes them from outside."""
        return [*self.encoder.blocks, *self.decoder.blocks]


class ViTEncoder(nn.Module):
    """A ViT's cells as the grid: colors as it knows them, without its first word, one matrix to the decoder's width."""

    def __init__(self, vit: ViTConfig, *, side: int, cell: int, width: int) -> None:
        super().__init__()
        self.mean, self.deviation = vit.mean, vit.deviation
        self.transformer = VisionTransformer(vit, side=side, cell=cell)
        self.project = Linear(vit.width, width)
        self.grid = Tap()

    @property
    def blocks(self) -> nn.ModuleList:
        return self.transformer.blocks

    def forward(self, pixels: Tensor) -> Tensor:
        hidden = self.transformer(renormalize(pixels, self.mean, self.deviation))
        return self.grid(self.project(hidden[:, 1:]))  # (B, P, D)


# ------------------------------------------------ the paper's decoder


@dataclass
class LSTMState:
    """What decoding carries. Rows may be several to a picture (beams); keys and values are kept once a picture."""

    first: Tensor  # (B,) the tokens to step first
    states: list[Tensor]  # (B, 2, D) of each layer: what it shows, what it keeps
    key: Tensor  # (pictures, 1, P, D)
    value: Tensor  # (pictures, 1, P, D)

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows (pictures, beams) says that each line shares a picture."""
        moved = kept_inputs(rows, len(self.first), len(self.key))
        if moved is not None:
            self.key, self.value = self.key[moved], self.value[moved]
        rows = rows.flatten()
        self.first = self.first[rows]
        self.states = [state[rows] for state in self.states]


class LSTMDecoder(nn.Module):
    """An LSTM that looks at the grid before each word. With several layers the others stand on the one that looks."""

    looking = ("weights",)

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        width, padding = config.width, config.special_ids.pad_id
        self.embedding = Embedding(config.vocab_size, width, pad_id=padding)
        self.begins = nn.ModuleList(Linear(width, 2 * width) for _ in range(config.layers))
        self.query = Linear(width, width)
        self.key = Linear(width, width, bias=False)
        self.similarity = Additive(width)
        self.gate = Linear(width, 1)
        self.context = Linear(width, LSTM.gates * width, bias=False)
        self.cells = nn.ModuleList(LSTM(width, width) for _ in range(config.layers))
        self.output_state = Linear(width, width)
        self.output_context = Linear(width, width, bias=False)
        self.output = Embedding(config.vocab_size, width, pad_id=padding)
        self.dropout = Dropout(config.dropout)
        self.weights = Tap()
        self.states = Tap()

    @property
    def blocks(self) -> list[nn.Module]:
        """None that is run as a whole: each step waits for the one before it."""
        return []

    def begin(self, grid: Tensor, first: Tensor) -> LSTMState:
        """Before the first word: s₀ from the mean of the grid (B, P, D), and the keys U h_i, the same at every step."""
        mean = grid.mean(1)
        states = [begin(mean).tanh().unflatten(-1, (2, -1)) for begin in self.begins]
        return LSTMState(first, states, self.key(grid)[:, None], grid[:, None])

    def forward(self, target: Tensor, state: LSTMState, seen: list[Tensor] | None = None) -> Tensor:
        """Logits (B, T, V) behind each token of the target (B, T); the weights go to `seen`. Moves the state on."""
        hidden = self.dropout(self.embedding(target))
        first: LSTM = self.cells[0]  # type: ignore[assignment]
        given = first.input(hidden.transpose(0, 1))  # (T, B, 4 D)
        states, contexts, weights = [state.states[0]], [], []
        for word in given:
            context, looked = self._look(shown(states[-1]), state)
            states.append(first.step(word + self.context(context), states[-1]))
            contexts.append(context)
            weights.append(looked)
        layer = torch.stack(states[1:])  # (T, B, 2, D)
        ends = [layer[-1]]
        for cell, begin in zip(self.cells[1:], state.states[1:], strict=True):
            layer = cell.run(cell.input(shown(layer)), begin)  # type: ignore[operator]
            ends.append(layer[-1])
        state.states = ends
        if seen is not None:
            seen.append(torch.cat(weights, dim=2))
        deep = hidden + self.output_state(self.states(shown(layer).transpose(0, 1)))
        deep = deep + self.output_context(torch.stack(contexts, dim=1))
        return self.output.logits(self.dropout(deep))

    def step(self, tokens: Tensor, state: LSTMState) -> Tensor:
        """Logits (B, V) behind one more token (B,)."""
        return self(tokens[:, None], state)[:, 0]

    def _look(self, before: Tensor, state: LSTMState) -> tuple[Tensor, Tensor]:
        """z_t (B, D) for the states s_{t-1} (B, D), and the weights (pictures, 1, beams, P)."""
        query = self.query(before).view(len(state.key), 1, -1, before.shape[-1])
        steps = attend_written_out(query, state.key, state.value, similarity=self.similarity, tap=self.weights)
        return self.gate(before).sigmoid() * steps.output.flatten(0, 2), steps.weights


# ------------------------------------------------ the Transformer's


class TransformerDecoder(nn.Module):
    """Each block looks back at what is written, then at the grid."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=config.special_ids.pad_id)
        self.positions = SinusoidalPositions(64, config.width)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)

    @property
    def looking(self) -> list[str]:
        return [f"blocks.{number}.memory_attention.weights" for number in range(len(self.blocks))]

    def begin(self, grid: Tensor, first: Tensor) -> CrossAttentionState:
        """Before the first word: the grid (B, P, D) as each block sees it, projected once a picture."""
        memory = [block.memory_attention.remember(grid) for block in self.blocks]  # type: ignore[union-attr, operator]
        return CrossAttentionState(first, memory, [KVCache() for _ in self.blocks])

    def forward(self, target: Tensor, state: CrossAttentionState, seen: list[Tensor] | None = None) -> Tensor:
        """Logits (B, T, V) behind each token of the target (B, T), all at once; the weights go to `seen`."""
        hidden = self._embed(target, 0)
        for block, memory in zip(self.blocks, state.memory, strict=True):
            hidden = block(hidden, memory, seen=seen)
        return self.embedding.logits(self.norm(hidden))

    def step(self, tokens: Tensor, state: CrossAttentionState) -> Tensor:
        """Logits (B, V) behind one more token (B,); the caches grow."""
        hidden = self._embed(tokens[:, None], state.caches[0].length)
        for block, memory, cache in zip(self.blocks, state.memory, state.caches, strict=True):
            hidden = block(hidden, memory, cache)
        return self.embedding.logits(self.norm(hidden[:, 0]))

    def _embed(self, target: Tensor, start: int) -> Tensor:
        return self.dropout(self.embedding(target) + self.positions(start, start + target.shape[1]))


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention to the grid, feed-forward, each behind its norm."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width)
        self.attention = MultiHeadAttention(config.width, config.heads)
        self.norm_memory_attention = nn.LayerNorm(config.width)
        self.memory_attention = MultiHeadAttention(config.width, config.heads)
        self.norm_feed_forward = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(config.width, config.feed_forward)
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(
        self, hidden: Tensor, memory: KeysValues, cache: KVCache | None = None, seen: list[Tensor] | None = None
    ) -> Tensor:
        hidden = hidden + self.dropout(self._look_back(self.norm_attention(hidden), cache))
        hidden = hidden + self.dropout(self._look_at(self.norm_memory_attention(hidden), memory, seen))
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)

    def _look_back(self, hidden: Tensor, cache: KVCache | None) -> Tensor:
        return self.attention.look_around(hidden, causal=True, cache=cache)

    def _look_at(self, hidden: Tensor, memory: KeysValues, seen: list[Tensor] | None) -> Tensor:
        # Beams share their picture's memory: (B * beams, 1, D) queries become (B, beams, D).
        shared = hidden.reshape(len(memory.key), -1, hidden.shape[-1])
        if seen is None:
            return self.memory_attention.look(shared, memory).reshape(hidden.shape)
        found, weights = self.memory_attention.look_and_show(shared, memory)
        seen.append(weights)
        return found.reshape(hidden.shape)


DECODERS: dict[str, type[LSTMDecoder] | type[TransformerDecoder]] = {
    "lstm": LSTMDecoder,
    "transformer": TransformerDecoder,
}
