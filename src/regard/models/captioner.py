"""The image captioner with attention.

Xu et al. 2015, "Show, Attend and Tell". An encoder turns the image into a grid of vectors, one for each cell; a decoder
writes the caption token by token and attends to the grid at every step. It differs from the RNN translator and the
Transformer in its source: the memory is the cells of the image, the same number for every image.

Two decoders on the same grid:

    lstm          the paper's. The weights are a_t = softmax of score(s_{t-1}, h_i), additive; the context z_t = β_t Σ
                  a_ti h_i, where the gate β_t = σ(f(s_{t-1})) says how much the image matters for this token; the
                  first states come from the mean of the grid; the logits from E y_{t-1} + L_h s_t + L_z z_t (eq. 7)
    transformer   causal self-attention over the caption, cross-attention to the grid (pre-norm)

and three encoders: convolutions, patches (both in layers/vision/image_encoder.py), and a pretrained ViT
(layers/vision/vision_transformer.py). `forward_with_attention` returns logits and attention weights of one pass, for a
loss that makes the weights of every cell sum to one over the caption (eq. 14).
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.images.preprocessing import renormalize
from regard.layers import cost
from regard.layers.attention import Additive, AttentionTaps, KeysValues, MultiHeadAttention, attend_written_out
from regard.layers.decoding import CrossAttentionState, kept_inputs
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import FeedForward
from regard.layers.kv_cache import KVCache
from regard.layers.linear import Linear
from regard.layers.positions import SinusoidalPositions
from regard.layers.recurrent import LSTM, output_of
from regard.layers.tap import Tap
from regard.layers.vision.image_encoder import (
    Convolution,
    ConvolutionEncoder,
    PatchEncoder,
    convolution_cost,
    patch_cost,
)
from regard.layers.vision.vision_transformer import ViTConfig, ViTEncoder
from regard.models.base import Model, Seq2SeqConfig, check_heads


class CaptionerConfig(Seq2SeqConfig):
    """The config of a captioner."""

    vocab_size: int = Field(4_000, ge=4, description="V; a new tokenizer is trained to this size")
    image_size: int = Field(64, ge=4, description="height and width in pixels; images are resized to it")
    cell_size: int = Field(8, ge=2, description="height and width of a grid cell in pixels: P = (image / cell size)²")
    encoder: Literal["cnn", "patches", "vit"] = Field("cnn", description="how the grid is made")
    vit: ViTConfig | None = Field(None, description="the config of the ViT, if the encoder is one")
    encoder_blocks: int = Field(
        1, ge=1, description="blocks of the encoder: after each halving (cnn), or in all (patches)"
    )
    decoder: Literal["lstm", "transformer"] = Field("lstm", description="what writes the caption")
    layers: int = Field(1, ge=1, description="of the decoder; of LSTM layers the first one attends")
    width: int = Field(128, ge=2, description="D, the width of the hidden states")
    heads: int = Field(4, ge=1, description="H, attention heads of patches and of the Transformer")
    feed_forward: int = Field(256, ge=1, description="inner width of the feed-forward networks")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the activations that are set to zero in training")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        check_heads(self.width, self.heads)
        image, cell = self.image_size, self.cell_size
        if (self.encoder == "vit") != (self.vit is not None):
            raise ConfigError(
                f"model.encoder={self.encoder}: the config of a ViT comes with its folder; "
                "start --from one to use a ViT, and leave model.encoder out"
            )
        if image % cell:
            raise ConfigError(
                f"model.image_size={image} does not divide into cells of model.cell_size={cell} pixels; "
                f"try model.image_size={image - image % cell or cell}"
            )
        if self.encoder == "cnn" and cell & (cell - 1):
            raise ConfigError(f"model.cell_size={cell}: convolutions halve an image; wanted 2, 4, 8, 16 or so")
        if self.encoder == "cnn" and self.width % (cell // 2):
            raise ConfigError(
                f"model.width={self.width} is no multiple of {cell // 2}: the channels double at each halving but "
                f"the first; try model.width={self.width + -self.width % (cell // 2)}"
            )
        return self

    @property
    def grid(self) -> int:
        """Cells in a row or column."""
        return self.image_size // self.cell_size

    @property
    def num_cells(self) -> int:
        return self.grid**2  # P

    def flops(self, target: int) -> cost.ForwardCost:
        m, d, p, layers = target, self.width, self.num_cells, self.layers
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
        image: dict[str, int] = {"image_size": self.image_size, "cell_size": self.cell_size}
        if self.vit is not None:
            return self.vit.flops(**image) + cost.ForwardCost(self.num_cells * self.vit.width * self.width)
        sizes = image | {"width": self.width, "blocks": self.encoder_blocks}
        if self.encoder == "cnn":
            return convolution_cost(**sizes)
        return patch_cost(**sizes, heads=self.heads, feed_forward=self.feed_forward)


TINY: dict[str, Any] = {"vocab_size": 40, "image_size": 32, "cell_size": 8, "width": 24, "heads": 3, "feed_forward": 32}
TINY_NO_BIAS = ViTConfig(width=16, heads=2, layers=2, feed_forward=20, qkv_bias=False)
TINY_VIT = ViTConfig(width=16, heads=2, layers=2, feed_forward=20)
EXAMPLES = (
    CaptionerConfig(**TINY),
    CaptionerConfig(**TINY, decoder="transformer", layers=2, dropout=0.1),
    CaptionerConfig(**TINY, encoder="patches", encoder_blocks=2, layers=2, dropout=0.1),
    CaptionerConfig(**TINY | {"cell_size": 4, "image_size": 16}, encoder="patches", decoder="transformer"),
    CaptionerConfig(**TINY | {"cell_size": 4, "image_size": 16}, encoder_blocks=2),
    CaptionerConfig(**TINY, encoder="vit", vit=TINY_VIT),
    CaptionerConfig(**TINY | {"cell_size": 16}, encoder="vit", vit=TINY_NO_BIAS, decoder="transformer"),
)


class LogitsAndWeights(NamedTuple):
    """What `forward_with_attention` returns."""

    logits: Tensor  # (B, T, V)
    weights: Tensor  # (B, H, T, P), the heads of all layers concatenated


AXES = {
    "encoder.transformer.blocks.*.attention": ("patches", "patches"),  # of a ViT: [CLS], then the cells
    "encoder.*blocks.*.attention": ("image", "image"),
    "decoder": ("target", "image"),
    "decoder.blocks.*.attention": ("target", "target"),
    "decoder.blocks.*.cross_attention": ("target", "image"),
}


class Captioner(Model):
    """`model(pixels, target)` returns logits (B, T, V): at each position, for the next token."""

    config_class = CaptionerConfig
    interface = "captioner"
    attention_axes = AXES
    config: CaptionerConfig

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__(config)
        self.encoder = make_encoder(config)
        self.decoder: LSTMDecoder | TransformerDecoder = DECODERS[config.decoder](config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for matrices, zero for biases; embeddings, convolutions and LSTMs initialize themselves."""
        if self.input_embeddings.is_meta:  # weights will be loaded
            return
        own = [id(part) for module in self.modules() if isinstance(module, LSTM) for part in module.modules()]
        for module in self.modules():
            if isinstance(module, nn.Linear) and not isinstance(module, Convolution) and id(module) not in own:
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, pixels: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for pixels (B, 3, size, size) and the caption so far (B, T), which begins with `bos_id`.

        Rows are padded at the end.
        """
        return self.decoder(target, self.start(pixels))

    def forward_with_attention(self, pixels: Tensor, target: Tensor) -> LogitsAndWeights:
        """The same, and the attention weights: gradients go through both."""
        weights: list[Tensor] = []
        logits = self.decoder(target, self.start(pixels), weights)
        return LogitsAndWeights(logits, torch.cat(weights, dim=1))

    def start(self, pixels: Tensor) -> "LSTMState | CrossAttentionState":
        """Encode the images once; the state of `step`."""
        size = self.config.image_size
        assert pixels.shape[1:] == (3, size, size), f"pixels {tuple(pixels.shape)}, wanted (B, 3, {size}, {size})"
        first = torch.full((len(pixels),), self.config.special_ids.bos_id, device=pixels.device)
        return self.decoder.start(self.encoder(pixels), first)

    def step(
        self, tokens: Tensor, state: "LSTMState | CrossAttentionState"
    ) -> tuple[Tensor, "LSTMState | CrossAttentionState"]:
        """Logits (B, V) for the token after one more token (B,) in every row."""
        return self.decoder.step(tokens, state), state  # type: ignore[arg-type]

    @property
    def alignment_taps(self) -> list[str]:
        """The taps of all attention to the grid: (B, H, T, P) each."""
        return [f"decoder.{path}" for path in self.decoder.attention_taps]

    @property
    def input_embeddings(self) -> Tensor:
        """The embedding matrix (V, D)."""
        return self.decoder.embedding.weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated blocks, for activation checkpointing, compiling and sharding from outside."""
        return [*self.encoder.blocks, *self.decoder.blocks]


def make_encoder(config: CaptionerConfig) -> ConvolutionEncoder | PatchEncoder | ViTEncoder:
    sizes = {"image_size": config.image_size, "cell_size": config.cell_size, "width": config.width}
    if config.vit is not None:
        return ViTEncoder(config.vit, **sizes, normalize=renormalize)
    if config.encoder == "cnn":
        return ConvolutionEncoder(**sizes, blocks=config.encoder_blocks)
    return PatchEncoder(
        **sizes,
        heads=config.heads,
        blocks=config.encoder_blocks,
        feed_forward=config.feed_forward,
        dropout=config.dropout,
    )


@dataclass
class LSTMState:
    """The state of decoding. An image may have several rows (beams); its keys and values are stored once."""

    first: Tensor  # (B,) the tokens to step first
    states: list[Tensor]  # (B, 2, D) of each layer: output and cell state
    key: Tensor  # (images, 1, P, D)
    value: Tensor  # (images, 1, P, D)

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows may be (images, beams): the beams of an image share its grid."""
        moved = kept_inputs(rows, len(self.first), len(self.key))
        if moved is not None:
            self.key, self.value = self.key[moved], self.value[moved]
        rows = rows.flatten()
        self.first = self.first[rows]
        self.states = [state[rows] for state in self.states]


class LSTMDecoder(AttentionTaps):
    """The paper's: an LSTM that attends to the grid at every step. With several layers, the first one attends."""

    attention_taps = ("weights",)

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
        self.states, self.contexts = Tap(), Tap()

    @property
    def blocks(self) -> list[nn.Module]:
        return []  # each step depends on the one before it

    def start(self, grid: Tensor, first: Tensor) -> LSTMState:
        """s₀ from the mean of the grid (B, P, D), and the keys U h_i, the same at every step."""
        mean = grid.mean(1)
        states = [begin(mean).tanh().unflatten(-1, (2, -1)) for begin in self.begins]
        return LSTMState(first, states, self.key(grid)[:, None], grid[:, None])

    def forward(self, target: Tensor, state: LSTMState, collected: list[Tensor] | None = None) -> Tensor:
        """Logits (B, T, V) for target (B, T); advances the state, and appends the attention weights to `collected`."""
        hidden = self.dropout(self.embedding(target))
        first: LSTM = self.cells[0]  # type: ignore[assignment]
        inputs = first.input(hidden.transpose(0, 1))  # (T, B, 4 D)
        states, contexts, weights = [state.states[0]], [], []
        for step_input in inputs:
            context, step_weights = self._attend(output_of(states[-1]), state)
            states.append(first.step(step_input + self.context(context), states[-1]))
            contexts.append(context)
            weights.append(step_weights)
        layer = torch.stack(states[1:])  # (T, B, 2, D)
        ends = [layer[-1]]
        for cell, begin in zip(self.cells[1:], state.states[1:], strict=True):
            layer = cell.run(cell.input(output_of(layer)), begin)  # type: ignore[operator]
            ends.append(layer[-1])
        state.states = ends
        if collected is not None:
            collected.append(torch.cat(weights, dim=2))
        deep = hidden + self.output_state(self.states(output_of(layer).transpose(0, 1)))
        deep = deep + self.output_context(self.contexts(torch.stack(contexts, dim=1)))
        return self.output.logits(self.dropout(deep))

    def step(self, tokens: Tensor, state: LSTMState) -> Tensor:
        """Logits (B, V) for the token after one more token (B,)."""
        return self(tokens[:, None], state)[:, 0]

    def _attend(self, before: Tensor, state: LSTMState) -> tuple[Tensor, Tensor]:
        """z_t (B, D) for the states s_{t-1} (B, D), and the weights (images, 1, beams, P)."""
        query = self.query(before).view(len(state.key), 1, -1, before.shape[-1])
        steps = attend_written_out(query, state.key, state.value, similarity=self.similarity, taps=self)
        return self.gate(before).sigmoid() * steps.output.flatten(0, 2), steps.weights


class TransformerDecoder(nn.Module):
    """Each block attends to the caption so far, then to the grid."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config.vocab_size, config.width, pad_id=config.special_ids.pad_id)
        self.positions = SinusoidalPositions(64, config.width)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)

    @property
    def attention_taps(self) -> list[str]:
        return [f"blocks.{number}.cross_attention.weights" for number in range(len(self.blocks))]

    def start(self, grid: Tensor, first: Tensor) -> CrossAttentionState:
        """Keys and values of the grid (B, P, D) for each block, projected once an image."""
        memory = [block.cross_attention.project_memory(grid) for block in self.blocks]  # type: ignore[union-attr, operator]
        return CrossAttentionState(first, memory, [KVCache() for _ in self.blocks])

    def forward(self, target: Tensor, state: CrossAttentionState, collected: list[Tensor] | None = None) -> Tensor:
        """Logits (B, T, V) for target (B, T); appends the attention weights to `collected`."""
        hidden = self._embed(target, 0)
        for block, memory in zip(self.blocks, state.memory, strict=True):
            hidden = block(hidden, memory, collected=collected)
        return self.embedding.logits(self.norm(hidden))

    def step(self, tokens: Tensor, state: CrossAttentionState) -> Tensor:
        """Logits (B, V) for the token after one more token (B,); the caches grow."""
        hidden = self._embed(tokens[:, None], state.caches[0].length)
        for block, memory, cache in zip(self.blocks, state.memory, state.caches, strict=True):
            hidden = block(hidden, memory, cache)
        return self.embedding.logits(self.norm(hidden[:, 0]))

    def _embed(self, target: Tensor, start: int) -> Tensor:
        return self.dropout(self.embedding(target) + self.positions(start, start + target.shape[1]))


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the grid, feed-forward (pre-norm)."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width)
        self.attention = MultiHeadAttention(config.width, config.heads)
        self.norm_cross_attention = nn.LayerNorm(config.width)
        self.cross_attention = MultiHeadAttention(config.width, config.heads)
        self.norm_feed_forward = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(config.width, config.feed_forward)
        self.dropout = Dropout(config.dropout)
        self.after_attention = Tap()
        self.after_cross_attention = Tap()
        self.hidden = Tap()

    def forward(
        self, hidden: Tensor, memory: KeysValues, cache: KVCache | None = None, collected: list[Tensor] | None = None
    ) -> Tensor:
        update = self.attention.self_attend(self.norm_attention(hidden), causal=True, cache=cache)
        hidden = self.after_attention(hidden + self.dropout(update))
        update = self._cross_attention(self.norm_cross_attention(hidden), memory, collected)
        hidden = self.after_cross_attention(hidden + self.dropout(update))
        hidden = hidden + self.dropout(self.feed_forward(self.norm_feed_forward(hidden)))
        return self.hidden(hidden)

    def _cross_attention(self, hidden: Tensor, memory: KeysValues, collected: list[Tensor] | None) -> Tensor:
        # The beams of an image share its memory: (B * beams, 1, D) queries become (B, beams, D).
        shared = hidden.reshape(len(memory.key), -1, hidden.shape[-1])
        if collected is None:
            return self.cross_attention.cross_attend(shared, memory).reshape(hidden.shape)
        found, weights = self.cross_attention.cross_attend_with_weights(shared, memory)
        collected.append(weights)
        return found.reshape(hidden.shape)


DECODERS: dict[str, type[LSTMDecoder] | type[TransformerDecoder]] = {
    "lstm": LSTMDecoder,
    "transformer": TransformerDecoder,
}
