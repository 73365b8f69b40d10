"""Translating 64 sentences of 20 to 30 tokens with a 'base' model (6+6, 512, 32,000 words), greedy and with four beams.

    .venv/bin/python benchmarks/bench_translation.py

The same random weights in regard, in transformers' MarianMTModel and in CTranslate2; every output is 25 tokens long.
"""

import logging
import os
import tempfile
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
from regard.models.symbols import Symbols
from regard.models.transformer import Transformer, TransformerConfig
from side_by_side import report, speeds

VOCABULARY, SENTENCES, LENGTH, ROUNDS = 32_000, 64, 25, 5
PADDING = VOCABULARY - 1
CONFIG = TransformerConfig(
    vocabulary=VOCABULARY,
    positions="halves",
    activation="swish",
    symbols=Symbols(padding=PADDING, begin=PADDING, end=0),
)


class Names:
    """A vocabulary of made-up words, for the converter."""

    def to_json(self) -> str:
        words = {f"w{number}": number for number in range(2, PADDING)} | {"</s>": 0, "<unk>": 1, "<pad>": PADDING}
        core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
        core.add_special_tokens(["</s>", "<unk>", "<pad>"])
        return str(core.to_str())


def main() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    runtime.prepare()
    torch.manual_seed(0)
    ours = Transformer(CONFIG).eval()
    lengths = torch.randint(20, 31, (SENTENCES,))
    source = torch.randint(2, PADDING, (SENTENCES, 31))
    for row, length in zip(source, lengths.tolist(), strict=True):
        row[length], row[length + 1 :] = 0, PADDING
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "marian"
        write_folder(folder, marian.files(ours, Names()))
        theirs = MarianMTModel.from_pretrained(folder).eval()
        engines = {}
        for kind in ("float32", "int8"):
            TransformersConverter(str(folder)).convert(f"{temporary}/{kind}", quantization=kind)
            engines[kind] = ctranslate2.Translator(
                f"{temporary}/{kind}", compute_type=kind, inter_threads=1, intra_threads=torch.get_num_threads()
            )
    words = [[f"w{number}" for number in row[: row.tolist().index(0)].tolist()] + ["</s>"] for row in source]
    for beams in (1, 4):

        def with_regard(beams: int = beams) -> float:
            strategy = Greedy() if beams == 1 else Beam(beams)
            found = generate(ours, source, strategy, Limits([LENGTH] * SENTENCES, shortest=LENGTH))
            return sum(len(hypotheses[0].tokens) for hypotheses in found)

        @torch.inference_mode()
        def with_transformers(beams: int = beams) -> float:
            found = theirs.generate(
                source,
                attention_mask=source != PADDING,
                num_beams=beams,
                min_new_tokens=LENGTH,
                max_new_tokens=LENGTH,
                forced_eos_token_id=None,
            )
            return found[:, 1:].numel()

        def with_ctranslate2(kind: str, beams: int = beams) -> float:
            found = engines[kind].translate_batch(
                words, beam_size=beams, min_decoding_length=LENGTH, max_decoding_length=LENGTH
            )
            return sum(len(answer.hypotheses[0]) for answer in found)

        found = speeds(
            {
                "regard": with_regard,
                "transformers generate": with_transformers,
                "CTranslate2 float32": lambda: with_ctranslate2("float32"),
                "CTranslate2 int8": lambda: with_ctranslate2("int8"),
            },
            ROUNDS,
        )
        name = "translate, greedy" if beams == 1 else f"translate, {beams} beams"
        for peer in list(found)[1:]:
            report(name, found["regard"], peer, found[peer], "tokens/s")


if __name__ == "__main__":
    main()
