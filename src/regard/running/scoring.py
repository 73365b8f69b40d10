"""Score a translator's folder on a test set: the user's, or what its run held out."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.data.batches import collate_padded
from regard.data.pairs import BadLines, DataConfig, heldout_share, is_heldout, read_pairs
from regard.errors import DataError
from regard.evaluation.evaluate import heldout_loss
from regard.files import read_json
from regard.generation import Strategy
from regard.metrics.alignment import ErrorCounts, count_errors
from regard.metrics.translation import bleu, chrf, exact_match
from regard.running import load
from regard.running.translator import BATCH, Translator
from regard.worlds.sentences import Pair, sentences

SETTINGS = "run.json"  # what a run writes down of itself


def score_folder(folder: Path, paths: Sequence[Path], strategy: Strategy, most: int | None = None) -> dict[str, Any]:
    """Scores on the pairs of these files; without files, on what the folder's run held out."""
    translator = load(folder)
    if paths:
        bad = BadLines()
        pairs = list(islice(read_pairs(paths, on_error="skip", report=bad, longest=DataConfig().longest), most))
        return score_pairs(translator, pairs, strategy) | ({"bad_lines": bad.summary()} if bad.count else {})
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    if "data" not in settings:
        raise DataError(
            f"{folder} does not say what it was trained on; name the test data: regard evaluate {folder} DATA"
        )
    config = DataConfig.model_validate(settings["settings"]["data"])
    if settings["data"]:
        return score_pairs(
            translator, list(islice(_heldout([Path(p) for p in settings["data"]], config), most)), strategy
        )
    world = list(sentences(min(config.heldout, most or config.heldout), split="heldout"))
    scores = score_pairs(translator, [(pair.source, pair.target) for pair in world], strategy)
    return scores | {"alignment_error_rate": alignment_error_rate(translator, world)}


def _heldout(paths: list[Path], config: DataConfig) -> Iterable[tuple[str, str]]:
    def read() -> Iterable[tuple[str, str]]:
        return read_pairs(paths, on_error=config.on_error, report=BadLines(), longest=config.longest)

    share = heldout_share(sum(1 for _ in read()), config.heldout)
    return (pair for pair in read() if is_heldout(pair[0], share))


def score_pairs(translator: Translator, pairs: list[tuple[str, str]], strategy: Strategy) -> dict[str, Any]:
    """Teacher-forced loss and free-running scores, BLEU and chrF with their signatures."""
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    loss = teacher_forced_loss(translator, pairs)
    translations = [answer.text for answer in translator.run_all(sources, strategy)]
    found_bleu, found_chrf = bleu(translations, references), chrf(translations, references)
    return {
        "pairs": len(pairs),
        "loss": loss,
        "perplexity": math.exp(min(loss, 700.0)),
        "exact_match": exact_match(translations, references),
        "bleu": found_bleu.value,
        "bleu_signature": found_bleu.signature,
        "chrf": found_chrf.value,
        "chrf_signature": found_chrf.signature,
    }


def teacher_forced_loss(translator: Translator, pairs: list[tuple[str, str]]) -> float:
    """Mean cross-entropy a target token, given the true ones before it."""
    tokenizer = translator.tokenizer
    encode = tokenizer.encode_all
    ids = list(zip(encode([s for s, _ in pairs]), encode([t for _, t in pairs]), strict=True))
    ids.sort(key=lambda pair: len(pair[1]))
    batches = (
        collate_padded(
            ids[start : start + BATCH],
            range(len(ids[start : start + BATCH])),
            tokenizer.begin,
            tokenizer.end,
            tokenizer.padding,
        )
        for start in range(0, len(ids), BATCH)
    )
    return heldout_loss(translator.model, translator.task, batches)


@torch.inference_mode()
def alignment_error_rate(translator: Translator, world: Iterable[Pair]) -> float:
    """How far the model's looks, made links, are from the gold word alignment, given the true translations."""
    counts = ErrorCounts(0, 0, 0, 0)
    tokenizer = translator.tokenizer
    for pair in world:
        source, target = [*tokenizer.encode(pair.source), tokenizer.end], tokenizer.encode(pair.target)
        found = translator.align(source, target)
        assert tuple(found.source_words) == pair.source_words, (found.source_words, pair.source_words)
        counts = counts.plus(count_errors(found.links, pair.sure, pair.possible))
    return counts.rate
