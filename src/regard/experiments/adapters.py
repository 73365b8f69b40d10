"""What the laws are held against: a module, and how it is called."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from regard.layers.convolution import GatedConvolution
from regard.layers.image_encoder import Convolution
from regard.layers.positions import PositionEncoding
from regard.layers.recurrent import Recurrence

BOX = 5  # numbers of a box
REGIONS = (4, 1, 3, 6, 2)  # of the pictures that the laws are tried on; never as many as a text has words


class ModelAdapter:
    """A model under the laws: reads a source, writes a target. Override what your module does differently."""

    words = 9  # of a source in which they change places, all of them seen

    def __init__(
        self, module: nn.Module, *, vocab_size: int, special_ids: Any, target_vocab_size: int | None = None
    ) -> None:
        self.module = module
        self.vocab_size = vocab_size
        self.target_vocab_size = target_vocab_size or vocab_size
        self.special_ids = special_ids
        self.config = SimpleNamespace(special_ids=special_ids)  # as `generate` wants it

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) for source (B, S), padded at the end, and target (B, T), which begins with `begin`."""
        return self.module(source, target)

    def outputs(self, source: Tensor, target: Tensor) -> list[Tensor]:
        """All that is compared, (B, places, …) each; -inf where there is nothing to compare."""
        return [self.logits(source, target)]

    def reordered(self, outputs: list[Tensor], order: Tensor) -> list[Tensor]:
        """The outputs as they must come when the words of the source stand in another order: the target's stay."""
        return outputs

    def start(self, source: Tensor) -> Any:
        return self._own("start")(source)

    def step(self, tokens: Tensor, state: Any) -> Any:
        return self._own("step")(tokens, state)

    @property
    def positions(self) -> list[nn.Module]:
        """The parts whose output says where a word stands; with all of them at zero, a source is a set."""
        return [module for module in self.module.modules() if isinstance(module, PositionEncoding)]

    @property
    def ordered(self) -> bool:
        """It knows the order of words without positions, by recurrence or convolution."""
        return any(isinstance(module, (Recurrence, GatedConvolution)) for module in self.module.modules())

    def _own(self, name: str) -> Callable[..., Any]:
        if not hasattr(self.module, name):
            raise Missing(f"it has no `{name}`")
        return getattr(self.module, name)


class Continuing(ModelAdapter):
    """A language model under the laws: the source is a prompt, the target the text behind it.

    Padding and the end of a source are no ids of the model: they are taken away before it sees a row.
    """

    def __init__(self, module: nn.Module, *, vocab_size: int, special_ids: Any) -> None:
        begin = special_ids.eos_id if special_ids.bos_id is None else special_ids.bos_id
        super().__init__(
            module, vocab_size=vocab_size, special_ids=SimpleNamespace(pad_id=-1, bos_id=begin or 0, eos_id=-2)
        )
        self.config = SimpleNamespace(special_ids=special_ids)

    @property
    def ordered(self) -> bool:
        """What may be seen grows from word to word, and so tells the order."""
        return True

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        rows = [[*prompt, *text] for prompt, text in zip(self._prompts(source), target.tolist(), strict=True)]
        ids = torch.full((len(rows), max(map(len, rows))), self.special_ids.pad_id)
        for line, row in zip(ids, rows, strict=True):
            line[len(line) - len(row) :] = torch.tensor(row)
        segment_ids = (ids != self.special_ids.pad_id).long()
        return self.module(ids * segment_ids, segment_ids)[:, -target.shape[1] :]

    def start(self, source: Tensor) -> Any:
        """The begin symbol, which every target has first, is the last of the prompt."""
        return self._own("start")([[*prompt, self.special_ids.bos_id] for prompt in self._prompts(source)])

    def _prompts(self, source: Tensor) -> list[list[int]]:
        return [[word for word in row if word >= 0] for row in source.tolist()]


class Reading(ModelAdapter):
    """A model that reads both ways and does not write: the source is a row, and all it says of it is compared.

    Override `read` for a module of your own. There are no targets, and no logits of what comes next.
    """

    def __init__(self, module: nn.Module, *, vocab_size: int, special_ids: Any, num_segments: int = 1) -> None:
        super().__init__(module, vocab_size=vocab_size, special_ids=special_ids)
        self.num_segments = num_segments

    def read(self, ids: Tensor, segment_ids: Tensor) -> list[Tensor]:
        """What it says of ids (B, T), padded at the end: of the words, (B, T, …), and of the row, (B, …)."""
        found = self.module(ids, segment_ids)
        return [one for one in (found if isinstance(found, tuple) else [found]) if one is not None]

    def outputs(self, source: Tensor, target: Tensor) -> list[Tensor]:
        """Of the words behind `begin`, but for padding, and of the row, as if it were one place."""
        # The sentence of a word is told by its id: so it moves with the word.
        return self.said(source, source % self.num_segments)

    def said(self, source: Tensor, segment_ids: Tensor) -> list[Tensor]:
        """The same, with the sentence of each word given."""
        ids, segment_ids = pad(source, (1, 0), value=self.special_ids.bos_id), pad(segment_ids, (1, 0))
        padding = (ids == self.special_ids.pad_id)[:, :, None]
        return [
            one.masked_fill(padding, -torch.inf) if one.dim() == 3 else one[:, None]
            for one in self.read(ids, segment_ids)
        ]

    def reordered(self, outputs: list[Tensor], order: Tensor) -> list[Tensor]:
        """What is said of a word goes where the word goes; what is said of the row stays."""
        places = pad(order + 1, (1, 0))
        return [one[:, places] if one.shape[1] == len(places) else one for one in outputs]

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        raise Missing(READS)

    def start(self, source: Tensor) -> Any:
        raise Missing(READS)


class Seeing(ModelAdapter):
    """A captioner under the laws: the source is a picture, each of its first cells painted by a word of the source.

    So other words are another picture, words that change places are cells that do, and padding is bare ground.
    """

    def __init__(self, module: nn.Module, *, vocab_size: int, special_ids: Any, side: int, cell: int) -> None:
        super().__init__(module, vocab_size=vocab_size, special_ids=special_ids)
        self.grid = side // cell
        self.words = min(self.words, self.grid**2)
        paints = torch.randn(vocab_size, 3, cell, cell, generator=torch.Generator().manual_seed(0))
        self.paints = paints.index_fill(0, torch.tensor([special_ids.pad_id]), 0.0)

    def pictures(self, source: Tensor) -> Tensor:
        """Pixels (B, 3, side, side) for words (B, S); words beyond the last cell are not seen."""
        cells = source[:, : self.grid**2]
        cells = pad(cells, (0, self.grid**2 - cells.shape[1]), value=self.special_ids.pad_id)
        painted = self.paints[cells].unflatten(1, (self.grid, self.grid))  # (B, rows, columns, 3, cell, cell)
        return painted.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        return self.module(self.pictures(source), target)

    def start(self, source: Tensor) -> Any:
        return self._own("start")(self.pictures(source))

    @property
    def ordered(self) -> bool:
        """Convolutions know where a cell stands; of patches only the positions tell. The words' order is another."""
        return any(isinstance(module, Convolution) for module in self.module.modules())


class ReadingPictures(Reading):
    """A model that reads a text beside a picture: a text of so many words always sees the same one.

    Pictures are of several sizes, so that rows side by side need padding. Override `say` for a module of your own.
    """

    def __init__(
        self, module: nn.Module, *, vocab_size: int, special_ids: Any, features: int, num_segments: int = 1
    ) -> None:
        super().__init__(module, vocab_size=vocab_size, special_ids=special_ids, num_segments=num_segments)
        chance = torch.Generator().manual_seed(0)
        self._pictures = [
            (torch.randn(count, features, generator=chance), 0.05 + 0.9 * torch.rand(count, BOX, generator=chance))
            for count in REGIONS
        ]

    def say(self, ids: Tensor, segment_ids: Tensor, regions: Tensor, boxes: Tensor) -> dict[str, Tensor]:
        """Outputs by name: `hidden` or `tokens` (B, T, …), `regions` (B, R, …), and any of the pair (B, …)."""
        found = self.module(ids, segment_ids, regions, boxes)
        if isinstance(found, tuple):
            return found._asdict()  # type: ignore[attr-defined]
        pointing = found.dim() == 2 and found.shape[1] == regions.shape[1] and not hasattr(self.module, "head")
        return {"regions" if pointing else "pair": found}

    def pictures(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """A picture for each text: regions (B, R, F) and boxes (B, R, 5), padded by zeros."""
        numbers = ((source != self.special_ids.pad_id).sum(1) % len(self._pictures)).tolist()
        regions, boxes = zip(*(self._pictures[number] for number in numbers), strict=True)
        return pad_sequence(list(regions), batch_first=True), pad_sequence(list(boxes), batch_first=True)

    def said(self, source: Tensor, segment_ids: Tensor) -> list[Tensor]:
        return self.beside(source, segment_ids, *self.pictures(source))

    def beside(self, source: Tensor, segment_ids: Tensor, regions: Tensor, boxes: Tensor) -> list[Tensor]:
        """The outputs beside these pictures: of the words first, then of the regions, then of the pair."""
        ids, segment_ids = pad(source, (1, 0), value=self.special_ids.bos_id), pad(segment_ids, (1, 0))
        found = self.say(ids, segment_ids, regions, boxes)
        unread = ids == self.special_ids.pad_id
        blank = {"hidden": unread, "tokens": unread, "regions": ~boxes.any(-1)}
        outputs = [
            one.masked_fill(blank[name].view(*blank[name].shape, *[1] * (one.dim() - 2)), -torch.inf)
            for name in blank
            if (one := found.get(name)) is not None
        ]
        return outputs + [one[:, None] for name, one in found.items() if name not in blank]


READS = "it reads, and does not write"


class Missing(Exception):  # noqa: N818 - not an error: the law does not apply
    """What a law needs and the model does not have."""
