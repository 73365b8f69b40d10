"""A captioner in use: an image in, a caption out, and the attention over the image for each word."""

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
from regard.tasks.captioning.task import MAX_NEW_TOKENS, CaptionTraining
from regard.tasks.show import Showable
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.words import split_words

BATCH_SIZE = 64  # images captioned together

Image = str | Path | bytes | np.ndarray  # a file, its bytes, or pixels (height, width, 3) of uint8


@dataclass(frozen=True)
class Caption:
    """The best caption of an image; `others` are the next best, where the strategy returns several."""

    text: str
    words: list[str]
    score: float  # what the strategy ranks by
    log_probability: float
    ended: bool  # False: cut off at the length limit
    attention: np.ndarray  # (words, grid, grid): over the image for each word; sums to 1 for each
    pixels: np.ndarray  # (side, side, 3): the image as the model takes it
    others: tuple["Caption", ...] = ()


class Captioner(Showable):
    """`run("photo.jpg").text`; `.model` is the nn.Module, `.tokenizer` its tokenizer."""

    def __init__(self, kind: str, model: nn.Module, tokenizer: BPETokenizer, strategy: Strategy | None = None) -> None:
        self.kind = kind
        self.model: Any = model
        self.tokenizer = tokenizer
        self.task = CaptionTraining(tokenizer)
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

    def run(self, image: Image, strategy: Strategy | None = None) -> Caption:
        """Caption one image: a PNG or JPEG file, its bytes, or pixels."""
        return self.run_all([image], strategy)[0]

    def run_all(self, images: Sequence[Image], strategy: Strategy | None = None, *, first: int = 0) -> list[Caption]:
        """Caption many. `first` is the number of the first, where these are a part of more: it seeds the samples."""
        captions: list[Caption] = []
        for start in range(0, len(images), BATCH_SIZE):
            pixels = [self.pixels_of(image) for image in images[start : start + BATCH_SIZE]]
            numbers = [first + start + row for row in range(len(pixels))]
            found = self.hypotheses(pixels, strategy or self.strategy, numbers)
            captions += [self._caption(*row) for row in zip(pixels, found, strict=True)]
        return captions

    def pixels_of(self, image: Image) -> np.ndarray:
        """The pixels (side, side, 3) of an image as the model takes it: its largest central square, resized."""
        side: int = self.model.config.image_size
        if isinstance(image, np.ndarray):
            if image.shape == (side, side, 3) and image.dtype == np.uint8:
                return image
            if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or not image.size:
                raise InputError(f"pixels are {image.dtype} of shape {image.shape}, wanted uint8 (height, width, 3)")
            from PIL.Image import fromarray

            return preprocess(fromarray(np.ascontiguousarray(image)), side)
        return preprocess(read_image(image if isinstance(image, bytes) else Path(image)), side)

    def generate_texts(
        self, pixels: Sequence[np.ndarray], strategy: Strategy | None = None, *, first: int = 0
    ) -> list[str]:
        """The captions of images, given as `pixels_of` returns them; without attention, which takes one more pass."""
        found = []
        for start in range(0, len(pixels), BATCH_SIZE):
            several = pixels[start : start + BATCH_SIZE]
            numbers = [first + start + row for row in range(len(several))]
            found += [row[0].tokens for row in self.hypotheses(several, strategy or self.strategy, numbers)]
        return [self.tokenizer.decode(tokens) for tokens in found]

    def attention_of(self, pixels: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        """The attention (words, grid, grid) over the image for the words of these tokens; the mean of all heads."""
        device, config = next(self.model.parameters()).device, self.model.config
        target = torch.tensor([[config.special_ids.bos_id, *tokens[:-1]]], device=device)
        weights = (
            cross_attention_weights(self.model, self.task.read(pixels[None]).to(device), target)
            .mean((0, 2))[0]
            .cpu()
            .numpy()
        )
        words = tokens_to_words(weights, range(config.num_cells), self.tokenizer.word_ids(tokens))
        return words.reshape(-1, config.grid, config.grid)

    def hypotheses(
        self, pixels: Sequence[np.ndarray], strategy: Strategy, numbers: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The captions of images as tokens, the best first; the numbers seed the samples."""
        device = next(self.model.parameters()).device
        limits = Limits([MAX_NEW_TOKENS] * len(pixels), row_ids=numbers)
        return generate(self.model, self.task.read(np.stack(pixels)).to(device), strategy, limits)

    def _caption(self, pixels: np.ndarray, found: Sequence[Hypothesis]) -> Caption:
        captions = [self._one(pixels, one) for one in found]
        return Caption(**{**vars(captions[0]), "others": tuple(captions[1:])})

    def _one(self, pixels: np.ndarray, found: Hypothesis) -> Caption:
        grid = self.model.config.grid
        text = self.tokenizer.decode(found.tokens)
        words = split_words(text)
        named = [words[number] for number in words_with_tokens(self.tokenizer.word_ids(found.tokens))]
        attention = self.attention_of(pixels, found.tokens) if named else np.empty((0, grid, grid), np.float32)
        return Caption(text, named, found.score, found.log_probability, found.ended, attention, pixels)
