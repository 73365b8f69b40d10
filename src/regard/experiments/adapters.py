"""How the laws drive a module: one adapter for each interface of regard.models.base."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from regard.errors import InputError
from regard.layers.convolution import GatedConvolution
from regard.layers.positions import PositionEncoding
from regard.layers.recurrent import Recurrence
from regard.layers.vision.image_encoder import Convolution
from regard.layers.vision.regions import BOX_NUMBERS
from regard.models.base import Interface, Model

LENGTHS = (9, 4, 6, 1, 7)  # of the sources that the laws use
TARGET = 8  # tokens of each target; what is generated has twice as many
PADDING = 6  # ids by which a source is padded
LEAST_ROOM = 10  # tokens that a model must read at once
REGION_COUNTS = (4, 1, 3, 6, 2)  # of the images that the laws use; none equals the length of a text


class NotApplicable(Exception):  # noqa: N818 - not an error: the law is skipped
    """The model lacks what a law needs."""


class ModelAdapter:
    """A seq2seq model: it encodes a source and decodes a target. Override what your module does differently."""

    permuted_tokens = 9  # of a source whose order the laws change; the model sees all of them
    lengths: tuple[int, ...] = LENGTHS
    target_length, padding = TARGET, PADDING

    def __init__(
        self, module: nn.Module, *, vocab_size: int, special_ids: Any, target_vocab_size: int | None = None
    ) -> None:
        self.module = module
        self.vocab_size = vocab_size
        self.target_vocab_size = target_vocab_size or vocab_size
        self.special_ids = special_ids
        self.config = SimpleNamespace(special_ids=special_ids)  # as `generate` expects it

    @classmethod
    def of(cls, model: Model) -> Self:
        """The adapter of one of our models."""
        config = model.config
        found = cls(
            model,
            vocab_size=config.vocab_size,
            target_vocab_size=config.output_vocab_size,
            special_ids=config.special_ids,
        )
        if getattr(config, "positions", None) == "learned":
            found.fit(config.max_positions)
        return found

    def fit(self, room: int) -> None:
        """Shorten the inputs of the laws to a model that reads so many tokens at once. InputError: too few for them."""
        if room < LEAST_ROOM:
            raise InputError(f"the model reads {room} tokens at once; the laws need {LEAST_ROOM} at least")
        self.padding = min(PADDING, room // 4)
        self.target_length = min(TARGET, self.target_room(room))
        longest = min(LENGTHS[0], self.source_room(room))
        self.lengths = tuple(max(1, length * longest // LENGTHS[0]) for length in LENGTHS)
        self.permuted_tokens = min(self.permuted_tokens, longest)

    def target_room(self, room: int) -> int:
        """Tokens of a target, of which twice as many are generated after `bos_id`."""
        return (room - 1) // 2

    def source_room(self, room: int) -> int:
        """Tokens of a source, beside its end and its padding."""
        return room - 1 - self.padding

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S), padded at the end, and target (B, T), which begins with `bos_id`."""
        return self.module(source, target)

    def outputs(self, source: Tensor, target: Tensor) -> list[Tensor]:
        """All outputs that a law compares, (B, positions, ...) each; -inf where there is nothing to compare."""
        return [self.logits(source, target)]

    def reorder_outputs(self, outputs: list[Tensor], order: Tensor) -> list[Tensor]:
        """The outputs to expect when the tokens of the source are permuted: those of the target stay."""
        return outputs

    def start(self, source: Tensor) -> Any:
        return self._method("start")(source)

    def step(self, tokens: Tensor, state: Any) -> Any:
        return self._method("step")(tokens, state)

    @property
    def positions(self) -> list[nn.Module]:
        """The modules whose output is a position; with all of them at zero, a source is a set."""
        return [module for module in self.module.modules() if isinstance(module, PositionEncoding)]

    @property
    def is_order_aware(self) -> bool:
        """It knows the order of tokens without positions, by recurrence or convolution."""
        return any(isinstance(module, (Recurrence, GatedConvolution)) for module in self.module.modules())

    def _method(self, name: str) -> Callable[..., Any]:
        if not hasattr(self.module, name):
            raise NotApplicable(f"it has no `{name}`")
        return getattr(self.module, name)


class CausalLMAdapter(ModelAdapter):
    """A language model: the source is the prompt, the target the text after it.

    Padding and the end of a source are not ids of the model: they are removed before it sees a row.
    """

    def __init__(self, module: nn.Module, *, vocab_size: int, special_ids: Any) -> None:
        begin = special_ids.eos_id if special_ids.bos_id is None else special_ids.bos_id
        super().__init__(
            module, vocab_size=vocab_size, special_ids=SimpleNamespace(pad_id=-1, bos_id=begin or 0, eos_id=-2)
        )
        self.config = SimpleNamespace(special_ids=special_ids)

    @classmethod
    def of(cls, model: Model) -> Self:
        found = cls(model, vocab_size=model.config.vocab_size, special_ids=model.config.special_ids)
        found.fit(model.config.context)
        return found

    def target_room(self, room: int) -> int:
        return room // 4

    def source_room(self, room: int) -> int:
        """The prompt, `bos_id` and the text that is generated stand in one row."""
        return room - 1 - 2 * self.target_length

    @property
    def is_order_aware(self) -> bool:
        """The causal mask differs from token to token, and so tells the order."""
        return True

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        rows = [[*prompt, *text] for prompt, text in zip(self._prompts(source), target.tolist(), strict=True)]
        ids = torch.full((len(rows), max(map(len, rows))), self.special_ids.pad_id)
        for line, row in zip(ids, rows, strict=True):
            line[len(line) - len(row) :] = torch.tensor(row)
        document_ids = (ids != self.special_ids.pad_id).long()
        return self.module(ids * document_ids, document_ids)[:, -target.shape[1] :]

    def start(self, source: Tensor) -> Any:
        """`bos_id`, with which every target begins, is the last token of the prompt."""
        return self._method("start")([[*prompt, self.special_ids.bos_id] for prompt in self._prompts(source)])

    def _prompts(self, source: Tensor) -> list[list[int]]:
        return [[token for token in row if token >= 0] for row in source.tolist()]


class EncoderAdapter(ModelAdapter):
    """A bidirectional encoder, which does not generate: the source is a row, and all its outputs are compared.

    Override `encode` for a module of your own. There is no target, and no logits of a next token.
    """

    def __init__(self, module: nn.Module, *, vocab_size: int, special_ids: Any, num_segments: int = 1) -> None:
        super().__init__(module, vocab_size=vocab_size, special_ids=special_ids)
        self.num_segments = num_segments

    @classmethod
    def of(cls, model: Model) -> Self:
        config = model.config
        found = cls(
            model, vocab_size=config.vocab_size, special_ids=config.special_ids, num_segments=config.num_segments
        )
        found.fit(config.context)
        return found

    def source_room(self, room: int) -> int:
        """`bos_id` stands before a source."""
        return room - 2 - self.padding

    def encode(self, ids: Tensor, segment_ids: Tensor) -> list[Tensor]:
        """The outputs for ids (B, T), padded at the end: of the tokens, (B, T, ...), and of the row, (B, ...)."""
        found = self.module(ids, segment_ids)
        return [one for one in (found if isinstance(found, tuple) else [found]) if one is not None]

    def outputs(self, source: Tensor, target: Tensor) -> list[Tensor]:
        """Those of the tokens after `bos_id`, without padding, and those of the row, as if it were one position."""
        # The segment of a token depends on its id: so it moves with the token.
        return self.outputs_of_segments(source, source % self.num_segments)

    def outputs_of_segments(self, source: Tensor, segment_ids: Tensor) -> list[Tensor]:
        """The same, with the segment of each token given."""
        ids, segment_ids = pad(source, (1, 0), value=self.special_ids.bos_id), pad(segment_ids, (1, 0))
        padding = (ids == self.special_ids.pad_id)[:, :, None]
        return [
            one.masked_fill(padding, -torch.inf) if one.dim() == 3 else one[:, None]
            for one in self.encode(ids, segment_ids)
        ]

    def reorder_outputs(self, outputs: list[Tensor], order: Tensor) -> list[Tensor]:
        """The output of a token moves with the token; that of the row stays."""
        positions = pad(order + 1, (1, 0))
        return [one[:, positions] if one.shape[1] == len(positions) else one for one in outputs]

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        raise NotApplicable("it is an encoder and does not generate")

    def start(self, source: Tensor) -> Any:
        raise NotApplicable("it is an encoder and does not generate")


class CaptionerAdapter(ModelAdapter):
    """A captioner: the source is an image; each of its first cells has the pixels of one token of the source.

    So other tokens make another image, a permuted source permutes the cells, and padding is an empty cell.
    """

    def __init__(
        self, module: nn.Module, *, vocab_size: int, special_ids: Any, image_size: int, cell_size: int
    ) -> None:
        super().__init__(module, vocab_size=vocab_size, special_ids=special_ids)
        self.grid = image_size // cell_size
        self.permuted_tokens = min(self.permuted_tokens, self.grid**2)
        pixels = torch.randn(vocab_size, 3, cell_size, cell_size, generator=torch.Generator().manual_seed(0))
        self.cell_pixels = pixels.index_fill(0, torch.tensor([special_ids.pad_id]), 0.0)

    @classmethod
    def of(cls, model: Model) -> Self:
        config = model.config
        return cls(
            model,
            vocab_size=config.vocab_size,
            special_ids=config.special_ids,
            image_size=config.image_size,
            cell_size=config.cell_size,
        )

    def images(self, source: Tensor) -> Tensor:
        """Pixels (B, 3, side, side) for ids (B, S); ids beyond the last cell are left out."""
        cells = source[:, : self.grid**2]
        cells = pad(cells, (0, self.grid**2 - cells.shape[1]), value=self.special_ids.pad_id)
        pixels = self.cell_pixels[cells].unflatten(1, (self.grid, self.grid))  # (B, rows, columns, 3, cell, cell)
        return pixels.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        return self.module(self.images(source), target)

    def start(self, source: Tensor) -> Any:
        return self._method("start")(self.images(source))

    @property
    def is_order_aware(self) -> bool:
        """Convolutions know where a cell is; patches know it by their positions alone."""
        return any(isinstance(module, Convolution) for module in self.module.modules())


class VisionLanguageAdapter(EncoderAdapter):
    """An encoder of a text and an image: texts of the same length always get the same image.

    Images have different numbers of regions, so that a batch needs padding. Override `named_outputs` for a module of
    your own.
    """

    def __init__(
        self, module: nn.Module, *, vocab_size: int, special_ids: Any, features: int, num_segments: int = 1
    ) -> None:
        super().__init__(module, vocab_size=vocab_size, special_ids=special_ids, num_segments=num_segments)
        generator = torch.Generator().manual_seed(0)
        self._images = [
            (
                torch.randn(count, features, generator=generator),
                0.05 + 0.9 * torch.rand(count, BOX_NUMBERS, generator=generator),
            )
            for count in REGION_COUNTS
        ]

    @classmethod
    def of(cls, model: Model) -> Self:
        config = model.config
        found = cls(
            model,
            vocab_size=config.vocab_size,
            special_ids=config.special_ids,
            features=config.vision.feature_size,
            num_segments=config.num_segments,
        )
        found.fit(config.context)
        return found

    def named_outputs(self, ids: Tensor, segment_ids: Tensor, regions: Tensor, boxes: Tensor) -> dict[str, Tensor]:
        """`hidden` or `tokens` (B, T, ...), `regions` (B, R, ...), and any others of the pair (B, ...)."""
        found = self.module(ids, segment_ids, regions, boxes)
        if isinstance(found, tuple):
            return found._asdict()  # type: ignore[attr-defined]
        is_grounding = found.dim() == 2 and found.shape[1] == regions.shape[1] and not hasattr(self.module, "head")
        return {"regions" if is_grounding else "pair": found}

    def images(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """An image for each text: regions (B, R, F) and boxes (B, R, 5), padded with zeros."""
        numbers = ((source != self.special_ids.pad_id).sum(1) % len(self._images)).tolist()
        regions, boxes = zip(*(self._images[number] for number in numbers), strict=True)
        return pad_sequence(list(regions), batch_first=True), pad_sequence(list(boxes), batch_first=True)

    def outputs_of_segments(self, source: Tensor, segment_ids: Tensor) -> list[Tensor]:
        return self.outputs_of_images(source, segment_ids, *self.images(source))

    def outputs_of_images(self, source: Tensor, segment_ids: Tensor, regions: Tensor, boxes: Tensor) -> list[Tensor]:
        """The outputs for these images: first of the tokens, then of the regions, then of the pair."""
        ids, segment_ids = pad(source, (1, 0), value=self.special_ids.bos_id), pad(segment_ids, (1, 0))
        found = self.named_outputs(ids, segment_ids, regions, boxes)
        is_padding = ids == self.special_ids.pad_id
        blank = {"hidden": is_padding, "tokens": is_padding, "regions": ~boxes.any(-1)}
        outputs = [
            one.masked_fill(blank[name].view(*blank[name].shape, *[1] * (one.dim() - 2)), -torch.inf)
            for name in blank
            if (one := found.get(name)) is not None
        ]
        return outputs + [one[:, None] for name, one in found.items() if name not in blank]


def random_ids(vocab_size: int, special_ids: Any, count: int) -> Tensor:
    """`count` ids, drawn uniformly, with no special id among them."""
    allowed = torch.ones(vocab_size)
    found = (getattr(special_ids, name, None) for name in ("pad_id", "bos_id", "eos_id", "mask_id"))
    allowed[[number for number in found if number is not None and number >= 0]] = 0.0  # below 0 it is no id
    return torch.multinomial(allowed, count, replacement=True)


ADAPTERS: dict[Interface, type[ModelAdapter]] = {
    "seq2seq": ModelAdapter,
    "causal_lm": CausalLMAdapter,
    "encoder": EncoderAdapter,
    "captioner": CaptionerAdapter,
    "vision_language": VisionLanguageAdapter,
}


def adapter_of(model: Model) -> ModelAdapter:
    """The adapter for the interface of one of our models."""
    return ADAPTERS[model.interface].of(model)
