"""Translating 64 sentences of 20 to 30 tokens with a 'base' model (6+6, 512, 32,000 words), greedy and with four beams.

    .venv/bin/python benchmarks/bench_translation.py

The same random weights in regard, in transformers' MarianMTModel and in CTranslate2, each peer in a process of its own;
every output is 25 tokens long. They take turns.
"""

import logging
import os
import tempfile
from functools import partial
from pathlib import Path

if __name__ == "__main__":  # not in the processes of the peers
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # as `regard run` sets it

import ctranslate2
import tokenizers
import torch
import transformers
from ctranslate2.converters import TransformersConverter
from transformers import MarianMTModel

from regard import runtime
from regard.files import write_folder
from regard.generation import Beam, Greedy, generate
from regard.generation.decode import Limits
from regard.huggingface import marian
from regard.models.base import SpecialIds
from regard.models.transformer import Transformer, TransformerConfig
from side_by_side import Way, apart, report, speeds

VOCABULARY, SENTENCES, LENGTH, ROUNDS = 32_000, 64, 25, 5
PADDING = VOCABULARY - 1
CONFIG = TransformerConfig(
    vocab_size=VOCABULARY,
    positions="halves",
    activation="swish",
    special_ids=SpecialIds(pad_id=PADDING, bos_id=PADDING, eos_id=0),
)


class Names:
    """A vocabulary of made-up words, for the converter."""

    def to_files(self) -> dict[str, bytes]:
        words = {f"w{number}": number for number in range(2, PADDING)} | {"</s>": 0, "<unk>": 1, "<pad>": PADDING}
        core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
        core.add_special_tokens(["</s>", "<unk>", "<pad>"])
        return {"tokenizer.json": core.to_str().encode()}


def sources() -> torch.Tensor:
    """Sentences of 20 to 30 tokens and the end, padded."""
    chance = torch.Generator().manual_seed(0)
    lengths = torch.randint(20, 31, (SENTENCES,), generator=chance)
    source = torch.randint(2, PADDING, (SENTENCES, 31), generator=chance)
    for row, length in zip(source, lengths.tolist(), strict=True):
        row[length], row[length + 1 :] = 0, PADDING
    return source


def with_transformers(folder: Path, beams: int) -> Way:
    _be_quiet()
    model, source = MarianMTModel.from_pretrained(folder).eval(), sources()

    @torch.inference_mode()
    def way() -> float:
        found = model.generate(
            source,
            attention_mask=source != PADDING,
            num_beams=beams,
            min_new_tokens=LENGTH,
            max_new_tokens=LENGTH,
            forced_eos_token_id=None,
        )
        return found[:, 1:].numel()

    return way


def with_ctranslate2(folder: Path, kind: str, beams: int) -> Way:
    _be_quiet()
    TransformersConverter(str(folder)).convert(str(folder.parent / kind), quantization=kind, force=True)
    threads = torch.get_num_threads()
    engine = ctranslate2.Translator(str(folder.parent / kind), compute_type=kind, intra_threads=threads)
    words = [[f"w{number}" for number in row[: row.tolist().index(0)].tolist()] + ["</s>"] for row in sources()]

    def way() -> float:
        found = engine.translate_batch(words, beam_size=beams, min_decoding_length=LENGTH, max_decoding_length=LENGTH)
        return sum(len(answer.hypotheses[0]) for answer in found)

    return way


def _be_quiet() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.disable(logging.WARNING)


def main() -> None:
    runtime.prepare()
    torch.manual_seed(0)
    ours, source = Transformer(CONFIG).eval(), sources()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "marian"
        write_folder(folder, marian.files(ours, Names()))
        for beams in (1, 4):

            def with_regard(beams: int = beams) -> float:
                strategy = Greedy(scored=False) if beams == 1 else Beam(beams)  # none of them gives scores
                found = generate(ours, source, strategy, Limits([LENGTH] * SENTENCES, min_new_tokens=LENGTH))
                return sum(len(hypotheses[0].tokens) for hypotheses in found)

            ways = {
                "regard": with_regard,
                "transformers generate": apart(partial(with_transformers, folder, beams)),
                "CTranslate2 float32": apart(partial(with_ctranslate2, folder, "float32", beams)),
                "CTranslate2 int8": apart(partial(with_ctranslate2, folder, "int8", beams)),
            }
            found = speeds(ways, ROUNDS)
            name = "translate, greedy" if beams == 1 else f"translate, {beams} beams"
            for peer in list(found)[1:]:
                report(name, found["regard"], peer, found[peer], "tokens/s")


if __name__ == "__main__":
    main()
