"""Record a model's decoding step as a program: `torch.fx` traces `decode_step`, each layer becomes instructions.

The wiring is read from the model's own Python, so a new model needs no second version of it. A model with a layer or an
operation that has no instruction is not recorded; `UnrecordableError` names it, and its plain step is taken.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from regard.layers.attention import SCALED_DOT, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import FeedForward, GatedFeedForward
from regard.layers.linear import Linear
from regard.layers.positions import LearnedPositions, Rotary
from regard.layers.quantized import PackedEmbedding, PackedLinear
from regard.layers.tap import Tap
from regard.ops.activation import C_ACTIVATIONS
from regard.ops.program import Norm, Prepared, Program, Rows, Weight


class UnrecordableError(Exception):
    """A decoding step that cannot be a program, and why."""


# What the tracer hands on while it reads the step, besides Rows.


@dataclass(frozen=True)
class _Ids:
    """The tokens of the step."""


@dataclass(frozen=True)
class _State:
    """The state, or what was read from it: a program knows the position and the slot of each row itself."""


@dataclass(frozen=True)
class _Embedded:
    """Rows of an embedding matrix, not yet looked up: positions may be added."""

    layer: Embedding


@dataclass(frozen=True)
class _Positions:
    layer: LearnedPositions


@dataclass(frozen=True)
class _Angles:
    layer: Rotary


@dataclass(frozen=True, eq=False)
class _Normed:
    """A norm that is computed by the product that reads it."""

    rows: Rows
    norm: Norm


@dataclass(frozen=True, eq=False)
class _Product:
    """A product that is not yet computed: a residual may be added."""

    x: Prepared
    layer: Any


class _Tracer(fx.Tracer):
    """Reads models and blocks, and stops at layers."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return type(m) in _LAYERS


class _Step(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Any, state: Any) -> Any:
        return self.model.decode_step(tokens, state)[0]


def record(model: Any, max_rows: int, slots: int, capacity: int) -> Program:
    """The program of a model's decoding step, with a KV cache of `slots` sequences of `capacity` tokens."""
    step = _Step(model)
    try:
        graph = _Tracer().trace(step)
    except (TypeError, ValueError, AttributeError, fx.proxy.TraceError) as error:
        raise UnrecordableError(f"its step cannot be traced: {' '.join(str(error).split())[:200]}") from error
    program = Program(max_rows, slots, capacity)
    return _Recorder(step, graph, program).record()


class _Recorder:
    """Walks the traced step and adds instructions to the program."""

    def __init__(self, step: _Step, graph: fx.Graph, program: Program) -> None:
        self._modules = dict(step.named_modules())
        self._output_layer: Any = step.model.output_layer
        self._graph, self._program = graph, program
        self._values: dict[fx.Node, Any] = {}
        self._angles: dict[Rotary, tuple[Tensor, Tensor]] = {}

    def record(self) -> Program:
        for node in self._graph.nodes:
            self._values[node] = self._value(node)
        found = next(node.args[0] for node in self._graph.nodes if node.op == "output")
        hidden = self._values[found]
        norm = hidden.norm if isinstance(hidden, _Normed) else None
        rows = hidden.rows if isinstance(hidden, _Normed) else self._rows(hidden)
        last = self._program.prepare(rows, norm, last=True)
        self._program.finish(last, _weights(self._output_layer))
        return self._program

    def _value(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            return _Ids() if node.name == "tokens" else _State()
        if node.op == "output":
            return None
        given = [self._values.get(one, one) if isinstance(one, fx.Node) else one for one in node.args]
        if node.op == "call_module":
            layer = self._modules[str(node.target)]
            named = {name: self._values[one] for name, one in node.kwargs.items() if isinstance(one, fx.Node)}
            return _LAYERS[type(layer)](self, layer, *given, **named)
        if any(isinstance(one, (_State, _Angles)) for one in given):  # positions, masks, caches: the program's own
            return next(one for one in given if isinstance(one, (_State, _Angles)))
        if isinstance(given[0], _Ids):  # tokens[:, None], and its shape
            return given[0]
        if node.target is operator.getitem:  # hidden[:, 0]
            return given[0]
        if node.target is operator.add:
            return self._add(node, given[0], given[1])
        raise UnrecordableError(f"there is no instruction for {node.format_node()}")

    def _add(self, node: fx.Node, one: Any, other: Any) -> Any:
        if isinstance(one, int) or isinstance(other, int):  # a number of columns
            return _State()
        if isinstance(one, _Embedded) and isinstance(other, _Positions):
            return self._embed(one, other.layer.weight)
        if isinstance(other, _Product):
            left = node.args[0]
            assert isinstance(left, fx.Node)
            in_place = all(user is node or user in self._values for user in left.users)
            layer = other.layer
            residual = self._rows(one)
            return self._program.linear(other.x, _weights(layer), layer.bias, residual, in_place=in_place)
        raise UnrecordableError(f"there is no instruction for {node.format_node()}")

    def _rows(self, value: Any) -> Rows:
        if isinstance(value, Rows):
            return value
        if isinstance(value, _Embedded):
            return self._embed(value, None)
        if isinstance(value, _Product):
            return self._program.linear(value.x, _weights(value.layer), value.layer.bias)
        raise UnrecordableError(f"a layer reads {type(value).__name__}")

    def _embed(self, found: _Embedded, positions: Tensor | None) -> Rows:
        positions = None if positions is None else positions.detach()
        return self._program.embed(_weights(found.layer)[0], found.layer.scale, positions)

    def _prepared(self, value: Any) -> Prepared:
        if isinstance(value, _Normed):
            return self._program.prepare(value.rows, value.norm)
        return self._program.prepare(self._rows(value))

    # ------------------------------------------------ layers

    def embedding(self, layer: Embedding, _ids: _Ids) -> _Embedded:
        return _Embedded(layer)

    def learned_positions(self, layer: LearnedPositions, *_given: Any) -> _Positions:
        return _Positions(layer)

    def rotary(self, layer: Rotary, *_given: Any) -> _Angles:
        return _Angles(layer)

    def identity(self, _layer: nn.Module, value: Any) -> Any:
        return value

    def layer_norm(self, layer: nn.LayerNorm, value: Any) -> _Normed:
        return _Normed(self._rows(value), Norm("layer", _detached(layer.weight), _detached(layer.bias), layer.eps))

    def rms_norm(self, layer: nn.RMSNorm, value: Any) -> _Normed:
        epsilon = torch.finfo(torch.float32).eps if layer.eps is None else layer.eps
        return _Normed(self._rows(value), Norm("rms", _detached(layer.weight), None, epsilon))

    def linear(self, layer: Any, value: Any) -> _Product:
        return _Product(self._prepared(value), layer)

    def feed_forward(self, layer: FeedForward, value: Any) -> _Product:
        return self._contracted(layer, value, gated=False)

    def gated_feed_forward(self, layer: GatedFeedForward, value: Any) -> _Product:
        return self._contracted(layer, value, gated=True)

    def _contracted(self, layer: Any, value: Any, *, gated: bool) -> _Product:
        activation = getattr(layer.activation, "name", None)
        if activation not in C_ACTIVATIONS:
            raise UnrecordableError(f"there is no instruction for the activation {activation or layer.activation}")
        inner = self._rows(self.linear(layer.expand, value))
        prepared = self._program.prepare(inner, activation=activation, gated=gated)
        self._program.release(inner)
        return _Product(prepared, layer.contract)

    def self_attention(
        self, layer: SelfAttention, value: Any, _mask: Any, *, apply_rotary: Any = None, cache: Any = None
    ) -> _Product:
        heads = self._rows(self.linear(layer.project, value))
        scale = SCALED_DOT.scale(layer.head_width)
        angles = None if apply_rotary is None else self._cos_and_sin(apply_rotary.layer)
        found = self._program.attend(heads, layer.heads, layer.num_kv_heads, scale, angles)
        prepared = self._program.prepare(found)
        self._program.release(heads)
        self._program.release(found)
        return _Product(prepared, layer.output)

    def _cos_and_sin(self, layer: Rotary) -> tuple[Tensor, Tensor]:
        """(capacity, K / 2) each, as the layer computes them."""
        if layer not in self._angles:
            angles = layer(torch.arange(self._program.capacity))
            cosine, sine = (part[0].chunk(2, dim=-1)[1].contiguous() for part in angles)
            self._angles[layer] = (cosine, sine)
        return self._angles[layer]


def _weights(layer: Any) -> list[Weight]:
    """The parts of a layer's matrix."""
    if isinstance(layer, PackedLinear):
        return list(layer.matrices)
    if isinstance(layer, PackedEmbedding):
        return [layer.matrix]
    if type(layer) in (Linear, Embedding):
        return [layer.weight.detach()]
    raise UnrecordableError(f"there is no instruction for a {type(layer).__name__}")


def _detached(weight: Tensor | None) -> Tensor | None:
    return None if weight is None else weight.detach()


_LAYERS: dict[type, Callable[..., Any]] = {
    Dropout: _Recorder.identity,
    Embedding: _Recorder.embedding,
    FeedForward: _Recorder.feed_forward,
    GatedFeedForward: _Recorder.gated_feed_forward,
    LearnedPositions: _Recorder.learned_positions,
    Linear: _Recorder.linear,
    PackedEmbedding: _Recorder.embedding,
    PackedLinear: _Recorder.linear,
    Rotary: _Recorder.rotary,
    SelfAttention: _Recorder.self_attention,
    Tap: _Recorder.identity,
    nn.LayerNorm: _Recorder.layer_norm,
    nn.RMSNorm: _Recorder.rms_norm,
}
