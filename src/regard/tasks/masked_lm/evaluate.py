"""Evaluate a masked language model on masked words and next sentences; on the built-in stories, on coreference too."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.masking import MaskingConfig, MaskingVocab
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import read_documents
from regard.data.stores.documents import TokenizedDocuments
from regard.runtime import runtime_of
from regard.tasks.base import EvaluationRequest
from regard.tasks.masked_lm.coreference import probe_coreference
from regard.tasks.masked_lm.data import MaskedDataConfig, open_corpus
from regard.tasks.masked_lm.dataset import MaskedText, tokenized
from regard.tasks.masked_lm.head_ablation import ablate_heads
from regard.tasks.masked_lm.pipeline import FillMask
from regard.tasks.masked_lm.task import MaskedLMConfig, MaskedLMTraining
from regard.tasks.run_settings import TextReadingConfig, override_reading, read_run_settings, validation_of
from regard.training.validation import evaluation_mode, validation_loss

MAX_BATCH_TOKENS = 4096


def evaluate(pipeline: FillMask, request: EvaluationRequest) -> dict[str, Any]:
    """Masked accuracy and perplexity, next-sentence accuracy; `limit` counts rows.

    The same text always gets the same masks.
    """
    folder, paths, limit = request.folder, request.paths, request.limit
    run = read_run_settings(folder) if paths else validation_of(folder)
    task_config = MaskedLMConfig(next_sentence=hasattr(pipeline.model, "next_sentence_logits"))
    config = MaskedDataConfig()
    if run is not None and "masking" in run.settings.get("task", {}):
        task_config = MaskedLMConfig.model_validate(run.settings["task"])
        config = MaskedDataConfig.model_validate(run.settings["data"])
    reading = override_reading(TextReadingConfig(field=config.field), request.assignments)
    config = config.model_copy(update=reading.model_dump() if paths else {})
    bad = BadRows()
    with tempfile.TemporaryDirectory() as temporary:
        if paths:
            documents = _tokenize(pipeline, request, Path(temporary), config, bad)
        else:
            corpus = open_corpus([] if run is None else run.data, config)
            documents = tokenized(corpus, "validation", pipeline.tokenizer)
        pairs = task_config.next_sentence and _has_pairs(documents)
        task = MaskedLMTraining(_masked_text(pipeline, documents, task_config.masking, pairs))
        runtime = runtime_of(pipeline.model)
        batches = task.validation_batches(max_tokens=MAX_BATCH_TOKENS, most=limit)
        loss = validation_loss(pipeline.model, task, batches, runtime)
        with evaluation_mode(pipeline.model):
            batches = task.validation_batches(max_tokens=MAX_BATCH_TOKENS, most=limit)
            scores = task.metrics(pipeline.model, loss, map(runtime.move, batches), None)
        found: dict[str, Any] = {"rows": len(task.data.validation_rows[:limit]), "loss": loss, **scores}
    if task_config.next_sentence and not pairs:
        found["next_sentence"] = "not scored: that needs two documents, and one of them with two sentences"
    if not paths and run is not None and not run.data:
        found |= _coreference(pipeline)
    return found | ({"bad_lines": bad.summary()} if bad.count else {})


def _has_pairs(documents: TokenizedDocuments) -> bool:
    return len(documents) > 1 and int(np.diff(documents.documents).max()) > 1


def _tokenize(
    pipeline: FillMask, request: EvaluationRequest, folder: Path, config: MaskedDataConfig, bad: BadRows
) -> TokenizedDocuments:
    pieces = read_documents(request.paths, field=config.field, on_error=config.on_error, report=bad, blank_lines=True)
    tokenizer = pipeline.tokenizer
    return TokenizedDocuments.build(
        pieces, tokenizer.encode_ids_batch, folder / "documents", vocab_size=tokenizer.vocab_size
    )


def _masked_text(
    pipeline: FillMask, documents: TokenizedDocuments, masking: MaskingConfig, next_sentence: bool
) -> MaskedText:
    return MaskedText(
        training=documents,
        validation=documents,
        context=pipeline.max_length,
        table=MaskingVocab.from_tokenizer(pipeline.tokenizer),
        masking=masking,
        next_sentence=next_sentence,
    )


def _coreference(pipeline: FillMask) -> dict[str, Any]:
    found = probe_coreference(pipeline.model, pipeline.tokenizer)
    without = ablate_heads(pipeline.model, pipeline.tokenizer, found.best)
    return {
        "coreference_sentences": found.sentences,
        "coreference_probe_accuracy": found.probe,
        "coreference_probe_by_layer": _in_a_row(found.by_layer),
        "coreference_attention_accuracy": found.attention,
        "coreference_attention_head": found.attention_head,
        "coreference_heads": " ".join(without.heads),
        "coreference_probe_without_these_heads": _in_a_row(without.accuracy),
        "coreference_probe_without_other_heads": _in_a_row(without.control),
    }


def _in_a_row(shares: Sequence[float]) -> str:
    return " ".join(f"{share:.3f}" for share in shares)
