"""A trained captioner at work: a picture in, a caption out, and where it looked for each word."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.checkpoint import ModelFolder
from regard.errors import FolderError, InputError
from regard.generation import Greedy, Hypothesis, Strategy, generate
from regard.generation.decode import Limits
from regard.images.decoding import read_image
from regard.images.preprocessing import preprocess
from regard.inspection.alignment import cross_attention_weights
from regard.metrics.alignment import tokens_to_words, words_with_tokens
from regard.tasks.captioning.task import LONGEST, Captioning
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.words import split_words

BATCH = 64  # pictures captioned side by side

Picture = str | Path | bytes | np.ndarray  # a file, the bytes of one, or pixels (rows, columns, 3) of uint8


@dataclass(frozen=True)
class Caption:
    """The best caption of one picture; `others` are the next best, where the strategy gives several."""

    text: str
    words: list[str]
    score: float  # what the strategy ranks by
    log_probability: float
    ended: bool  # False: cut off at the length limit
    looks: np.ndarray  # (words, grid, grid): where it looked for each word; a word's look sums to 1
    pixels: np.ndarray  # (side, side, 3): the picture as the model saw it
    others: tuple["Caption", ...] = ()


class Captioner:
    """`run("photo.jpg").text`; `.model` is the nn.Module, `.tokenizer` its words."""

    def __init__(self, kind: str, model: nn.Module, tokenizer: BPETokenizer, strategy: Strategy | None = None) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.task = Captioning(tokenizer)
        self.strategy = strategy or Greedy()

    @classmethod
    def open(cls, folder: ModelFolder) -> "Captioner":
        tokenizer = BPETokenizer.load(folder.tokenizer)
        vocab_size: int = folder.model.config.vocab_size  # type: ignore[union-attr, assignment]
        if tokenizer.vocab_size > vocab_size:
            raise FolderError(
                f"{folder.tokenizer} has {tokenizer.vocab_size} tokens, its model {vocab_size}: not a pair"
            )
        return cls(folder.kind, folder.model, tokenizer)

    def run(self, picture: Picture, strategy: Strategy | None = None) -> Caption:
        """Caption one picture: a PNG or JPEG file, its bytes, or pixels."""
        return self.run_all([picture], strategy)[0]

    def run_all(
        self, pictures: Sequence[Picture], strategy: Strategy | None = None, *, first: int = 0
    ) -> list[Caption]:
        """Caption many, in their order. `first` is the number of the first, where these are a part of more: a sample's
        chance goes by it."""
        answers: list[Caption] = []
        for start in range(0, len(pictures), BATCH):
            pixels = [self.see(picture) for picture in pictures[start : start + BATCH]]
            numbers = [first + start + row for row in range(len(pixels))]
            found = self._write(pixels, strategy or self.strategy, numbers)
            answers += [self._caption(*row) for row in zip(pixels, found, strict=True)]
        return answers

    def see(self, picture: Picture) -> np.ndarray:
        """The pixels (side, side, 3) of a picture as the model sees it: the largest square in its middle, resized."""
        side: int = self.model.config.side
        if isinstance(picture, np.ndarray):
            if picture.shape == (side, side, 3) and picture.dtype == np.uint8:
                return picture
            if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or not picture.size:
                raise InputError(
                    f"pixels are {picture.dtype} of shape {picture.shape}, wanted uint8 (rows, columns, 3)"
                )
            from PIL import Image

            return preprocess(Image.fromarray(np.ascontiguousarray(picture)), side)
        return preprocess(read_image(picture if isinstance(picture, bytes) else Path(picture)), side)

    def texts(self, pixels: Sequence[np.ndarray], strategy: Strategy | None = None, *, first: int = 0) -> list[str]:
        """The captions of pictures as the model sees them, without the looks, which take a pass each."""
        found = []
        for start in range(0, len(pixels), BATCH):
            several = pixels[start : start + BATCH]
            numbers = [first + start + row for row in range(len(several))]
            found += [row[0].tokens for row in self._write(several, strategy or self.strategy, numbers)]
        return [self.tokenizer.decode(tokens) for tokens in found]

    def look(self, pixels: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        """Where the model looks, (words, grid, grid), when it writes these tokens; the mean of its heads."""
        device, config = next(self.model.parameters()).device, self.model.config
        target = torch.tensor([[config.special_ids.bos_id, *tokens[:-1]]], device=device)
        weights = (
            cross_attention_weights(self.model, self.task.read(pixels[None]).to(device), target)
            .mean((0, 2))[0]
            .cpu()
            .numpy()
        )
        words = tokens_to_words(weights, range(config.cells), self.tokenizer.word_ids(tokens))
        return words.reshape(-1, config.grid, config.grid)

    def _write(
        self, pixels: Sequence[np.ndarray], strategy: Strategy, numbers: Sequence[int]
    ) -> list[list[Hypothesis]]:
        device = next(self.model.parameters()).device
        limits = Limits([LONGEST] * len(pixels), row_ids=numbers)
        return generate(self.model, self.task.read(np.stack(pixels)).to(device), strategy, limits)

    def _caption(self, pixels: np.ndarray, found: Sequence[Hypothesis]) -> Caption:
        captions = [self._one(pixels, one) for one in found]
        return Caption(**{**vars(captions[0]), "others": tuple(captions[1:])})

    def _one(self, pixels: np.ndarray, found: Hypothesis) -> Caption:
        grid = self.model.config.grid
        text = self.tokenizer.decode(found.tokens)
        words = split_words(text)
        named = [words[number] for number in words_with_tokens(self.tokenizer.word_ids(found.tokens))]
        looks = self.look(pixels, found.tokens) if named else np.empty((0, grid, grid), np.float32)
        return Caption(text, named, found.score, found.log_probability, found.ended, looks, pixels)
