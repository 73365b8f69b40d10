"""How a model that reads both ways takes words in, and says which they were."""

import torch
from torch import Tensor, nn

from regard.errors import InputError
from regard.layers.dropout import Dropout
from regard.layers.embeddings import Embedding
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.linear import Linear
from regard.layers.positions import LearnedPositions


class SentenceEmbedding(nn.Module):
    """Word + place + sentence, normed: of a pair of sentences a word says to which it belongs (Devlin 2019, 3)."""

    def __init__(
        self, vocabulary: int, width: int, *, context: int, sentences: int, dropout: float, epsilon: float
    ) -> None:
        super().__init__()
        self.words = Embedding(vocabulary, width, scaled=False)
        self.positions = LearnedPositions(context, width)
        self.sentences = Embedding(sentences, width, scaled=False)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor, segments: Tensor | None, places: Tensor | None = None) -> Tensor:
        """(B, T, D) of ids (B, T); without segments all are of the first sentence, without places in one text."""
        if segments is None:
            sentences = self.sentences.weight[0]
        elif segments.shape != ids.shape:
            raise InputError(f"segments are {tuple(segments.shape)}, wanted the shape of ids, {tuple(ids.shape)}")
        else:
            sentences = self.sentences(segments)
        return self.dropout(self.norm(self.words(ids) + self.positions(0, ids.shape[1], places) + sentences))


class WordHead(nn.Module):
    """One more layer, then each word is compared with the table it came from."""

    def __init__(self, vocabulary: int, width: int, *, activation: str, epsilon: float) -> None:
        super().__init__()
        self.project = Linear(width, width)
        self.activation = ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.bias = nn.Parameter(torch.empty(vocabulary))

    def forward(self, words: Tensor, table: Embedding) -> Tensor:
        return table.logits(self.norm(self.activation(self.project(words))), self.bias)
