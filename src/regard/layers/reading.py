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
        self, vocab_size: int, width: int, *, context: int, num_segments: int, dropout: float, epsilon: float
    ) -> None:
        super().__init__()
        self.tokens = Embedding(vocab_size, width, scaled=False)
        self.positions = LearnedPositions(context, width)
        self.sentences = Embedding(num_segments, width, scaled=False)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor, segment_ids: Tensor | None, position_ids: Tensor | None = None) -> Tensor:
        """(B, T, D) of ids (B, T); without segments all are of the first sentence, without places in one text."""
        if segment_ids is None:
            sentences = self.sentences.weight[0]
        elif segment_ids.shape != ids.shape:
            raise InputError(f"segments are {tuple(segment_ids.shape)}, wanted the shape of ids, {tuple(ids.shape)}")
        else:
            sentences = self.sentences(segment_ids)
        return self.dropout(self.norm(self.tokens(ids) + self.positions(0, ids.shape[1], position_ids) + sentences))


class WordHead(nn.Module):
    """One more layer, then each word is compared with the table it came from."""

    def __init__(self, vocab_size: int, width: int, *, activation: str, epsilon: float) -> None:
        super().__init__()
        self.project = Linear(width, width)
        self.activation = ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.bias = nn.Parameter(torch.empty(vocab_size))

    def forward(self, hidden: Tensor, table: Embedding) -> Tensor:
        return table.logits(self.norm(self.activation(self.project(hidden))), self.bias)
