"""A training step of the attention RNN: ours beside an ordinary loop with nn.GRUCell over the decoder.

    .venv/bin/python benchmarks/bench_recurrent.py

Both have the same layers and sizes (width 256, 8,000 words) and get the same batches. The ordinary one is what one
writes by hand: nn.GRU as the encoder, then for each target word attention, nn.GRUCell over word and context, and the
logits of all words at the end. Ours computes once what does not wait for the step before.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "3000")  # as the `regard` command sets it

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import runtime
from regard.data.batches import PairBatch, collate_padded
from regard.models.rnn_seq2seq import RNNConfig, RNNTranslator
from side_by_side import report, speeds

WIDTH, WORDS, ROWS = 256, 8000, 96
LENGTHS = (8, 14, 20, 28)  # tokens a side, one batch each


class Ordinary(nn.Module):
    """Bahdanau's translator as a tutorial writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.encoder = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.start = nn.Linear(WIDTH, WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.score = nn.Linear(WIDTH, 1, bias=False)
        self.cell = nn.GRUCell(2 * WIDTH, WIDTH)
        self.readout = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        lengths = (source != 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        memory, last = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True)
        state = self.start(last.transpose(0, 1).flatten(1)).tanh()
        keys, padding = self.key(memory), source == 0
        hidden, outputs = self.embedding(target), []
        for position in range(target.shape[1]):
            scores = self.score(torch.tanh(self.query(state)[:, None] + keys)).squeeze(-1)
            weights = scores.masked_fill(padding, -torch.inf).softmax(-1)
            context = torch.bmm(weights[:, None], memory).squeeze(1)
            state = self.cell(torch.cat([hidden[:, position], context], dim=-1), state)
            outputs.append(torch.cat([state, context], dim=-1))
        return F.linear(self.readout(torch.stack(outputs, dim=1)), self.embedding.weight)


def batches() -> list[PairBatch]:
    chance = torch.Generator().manual_seed(0)
    found = []
    for length in LENGTHS:
        pairs = [
            tuple(
                torch.randint(3, WORDS, (int(torch.randint(length - 2, length + 1, (), generator=chance)),)).tolist()
                for _ in range(2)
            )
            for _ in range(ROWS)
        ]
        found.append(collate_padded(pairs, range(ROWS), 1, 2, 0))
    return found


def main() -> None:
    runtime.prepare()
    torch.manual_seed(0)
    ours = RNNTranslator(RNNConfig(vocab_size=WORDS, width=WIDTH, dropout=0.0))
    ordinary = Ordinary()
    data = batches()

    def stepping(model: nn.Module) -> float:
        for batch in data:
            logits = model(batch.source, batch.target_in)
            loss = F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0)
            loss.backward()
            model.zero_grad(set_to_none=True)
        return float(sum(batch.tokens for batch in data))

    found = speeds({"ours": lambda: stepping(ours), "ordinary": lambda: stepping(ordinary)}, rounds=7)
    report("training step, attention RNN", found["ours"], "nn.GRUCell loop", found["ordinary"], "target tokens/s")


if __name__ == "__main__":
    main()
