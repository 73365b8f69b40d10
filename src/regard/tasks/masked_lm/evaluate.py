"""Score a BERT on hidden words and next sentences: the user's text, or what a run held out; on stories, on "it" too."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.masking import MaskingConfig, MaskingVocab
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import read_documents
from regard.data.stores.documents import TokenizedDocuments
from regard.tasks.language_modeling.evaluate import TextReading
from regard.tasks.masked_lm.coreference import resolve
from regard.tasks.masked_lm.data import MaskedDataConfig, open_corpus
from regard.tasks.masked_lm.dataset import MaskedText, tokenized
from regard.tasks.masked_lm.pipeline import FillMask
from regard.tasks.masked_lm.task import MaskedLanguage, MaskedLanguageConfig
from regard.tasks.run_settings import held_out_of, settings_of, told
from regard.training.validation import evaluation_mode, validation_loss

BUDGET = 4096  # positions of a batch


def score_masked(
    filler: FillMask, folder: Path, paths: Sequence[Path], *, most: int | None = None, assignments: Sequence[str] = ()
) -> dict[str, Any]:
    """Masked accuracy and perplexity, next-sentence accuracy; of `most` only the first so many rows.

    Which words are hidden is always the same for the same text.
    """
    run = settings_of(folder) if paths else held_out_of(folder)
    asked = MaskedLanguageConfig(next_sentence=hasattr(filler.model, "next_logits"))
    config = MaskedDataConfig()
    if run is not None and "masking" in run.settings.get("task", {}):
        asked = MaskedLanguageConfig.model_validate(run.settings["task"])
        config = MaskedDataConfig.model_validate(run.settings["data"])
    reading = told(TextReading(field=config.field), assignments)
    config = config.model_copy(update=reading.model_dump() if paths else {})
    bad = BadRows()
    with tempfile.TemporaryDirectory() as room:
        if paths:
            documents = _tokenized(filler, paths, Path(room), config, bad)
        else:
            documents = tokenized(open_corpus([] if run is None else run.data, config), "validation", filler.tokenizer)
        pairs = asked.next_sentence and _has_pairs(documents)
        task = MaskedLanguage(_text(filler, documents, asked.masking, pairs))
        loss = validation_loss(filler.model, task, task.validation_batches(max_tokens=BUDGET, most=most))
        with evaluation_mode(filler.model):
            scores = task.metrics(filler.model, loss, task.validation_batches(max_tokens=BUDGET, most=most), None)
        found: dict[str, Any] = {"rows": len(task.data.validation_rows[:most]), "loss": loss, **scores}
    if asked.next_sentence and not pairs:
        found["next_sentence"] = "not asked: that takes two documents, and one of them with two sentences"
    if not paths and run is not None and not run.data:
        found |= _references(filler)
    return found | ({"bad_lines": bad.summary()} if bad.count else {})


def _has_pairs(documents: TokenizedDocuments) -> bool:
    return len(documents) > 1 and int(np.diff(documents.documents).max()) > 1


def _tokenized(
    filler: FillMask, paths: Sequence[Path], room: Path, config: MaskedDataConfig, bad: BadRows
) -> TokenizedDocuments:
    pieces = read_documents(paths, field=config.field, on_error=config.on_error, report=bad, blank_lines=True)
    return TokenizedDocuments.build(
        pieces, filler.tokenizer.encode_ids_batch, room / "documents", vocab_size=filler.tokenizer.vocab_size
    )


def _text(filler: FillMask, documents: TokenizedDocuments, masking: MaskingConfig, next_sentence: bool) -> MaskedText:
    return MaskedText(
        training=documents,
        validation=documents,
        context=filler.longest,
        table=MaskingVocab.from_tokenizer(filler.tokenizer),
        masking=masking,
        next_sentence=next_sentence,
    )


def _references(filler: FillMask) -> dict[str, Any]:
    found = resolve(filler.model, filler.tokenizer)
    return {
        "it_sentences": found.sentences,
        "it_by_probe": found.probe,
        "it_by_probe_layers": " ".join(f"{share:.3f}" for share in found.by_layer),
        "it_by_attention": found.attention,
        "it_attention_head": found.attention_head,
    }
