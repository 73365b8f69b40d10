"""Names that changed with format 2 of the model folder. This file can be deleted at version 1.0.

Folders of format 1 are read through these tables. On the command line an old name is answered with the new one:
"model.quiet_start is now model.zero_init_residual".
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Settings, in config.json, in run.json and on the command line.
KEYS = {
    "model.base": "model.rope_theta",
    "model.bias": "model.qkv_bias",
    "model.blocks": "model.encoder_blocks",
    "model.both_ways": "model.bidirectional",
    "model.cell": "model.cell_size",
    "model.epsilon": "model.norm_epsilon",
    "model.join": "model.combine_positions",
    "model.joint": "model.joint_width",
    "model.key_heads": "model.num_kv_heads",
    "model.longest": "model.max_positions",
    "model.meetings": "model.co_attention_layers",
    "model.quiet_start": "model.zero_init_residual",
    "model.scaled": "model.scale_embeddings",
    "model.seeing": "model.vision",
    "model.seeing.cells": "model.vision.grid",
    "model.seeing.classes": "model.vision.classes",
    "model.seeing.features": "model.vision.features",
    "model.seeing.hidden": "model.vision.inner",
    "model.seeing.patch": "model.vision.patch_size",
    "model.sentences": "model.num_segments",
    "model.side": "model.image_size",
    "model.stretch": "model.rope_scaling",
    "model.stretch.factor": "model.rope_scaling.factor",
    "model.stretch.high": "model.rope_scaling.high_freq_factor",
    "model.stretch.low": "model.rope_scaling.low_freq_factor",
    "model.stretch.trained": "model.rope_scaling.original_context",
    "model.symbols": "model.special_ids",
    "model.symbols.begin": "model.special_ids.bos_id",
    "model.symbols.end": "model.special_ids.eos_id",
    "model.symbols.mask": "model.special_ids.mask_id",
    "model.symbols.padding": "model.special_ids.pad_id",
    "model.tied": "model.tie_embeddings",
    "model.target_vocabulary": "model.target_vocab_size",
    "model.vit.bias": "model.vit.qkv_bias",
    "model.vit.epsilon": "model.vit.norm_epsilon",
    "model.vocabulary": "model.vocab_size",
    "task.false": "task.negative_share",
    "task.judged": "task.matching_share",
    "task.kept": "task.visible_region_share",
    "task.near": "task.near_miss_share",
    "task.regions": "task.region_share",
    "task.own_words": "task.scheduled_sampling",
    "training.accumulate": "training.gradient_accumulation",
    "training.average": "training.average_checkpoints",
    "training.batch_tokens": "training.max_tokens",
    "training.clip": "training.max_grad_norm",
    "training.compiled": "training.compile",
    "training.decay": "training.decay_share",
    "training.evaluate_on": "training.evaluate_examples",
    "training.keep": "training.keep_checkpoints",
    "training.recompute": "training.activation_checkpointing",
    "data.apart": "data.separate_documents",
    "data.captions": "data.captions_per_scene",
    "data.column": "data.label_column",
    "data.each": "data.questions_per_scene",
    "data.evaluated": "data.validation_tokens",
    "data.heldout": "data.validation",
    "data.joined": "data.max_sentences",
    "data.longest": "data.max_length",
    "data.near": "data.near_misses",
    "data.sentences": "data.num_pairs",
    "data.stated": "data.statements_per_scene",
    "data.vectors": "data.word_vectors",
    "data.whole_words": "data.whole_word_tokens",
    "data.word": "data.word_column",
}

# Kinds of models, in config.json.
KINDS = {
    "bert-words": "bert-masked-lm",
    "bert-classifier": "bert-sequence-classification",
    "bert-tagger": "bert-token-classification",
    "vilbert-answerer": "vilbert-question-answering",
    "vilbert-pointer": "vilbert-grounding",
    "vilbert-matcher": "vilbert-retrieval",
}

# What the recipe `vqa` trained, by its data.ask -> the recipe that trains it.
VQA_RECIPES = {"questions": "vqa", "statements": "statements", "phrases": "grounding", "captions": "retrieval"}

# Commands of the command line.
COMMANDS = {"words": "embeddings"}

# Tasks, in config.json.
TASKS = {
    "language": "language-modeling",
    "masked": "masked-lm",
    "encoding": "embedding",
    "image-text": "image-text-pretraining",
    "matching": "retrieval",
    "picture-questions": "visual-question-answering",
    "pointing": "grounding",
}

# Keys of the task in config.json, besides its name.
TASK_KEYS = {"longest": "max_length"}

# Options of `regard run` and `regard evaluate`.
OPTIONS = {
    "--beam": "--num-beams",
    "--guesses": "--num-predictions",
    "--most": "--limit",
    "--samples": "--num-samples",
    "--tokens": "--max-new-tokens",
}

# The progress of a run, in training.json of a checkpoint.
PROGRESS = {"heldout": "validation", "best_heldout": "best_validation", "worse_in_a_row": "evaluations_since_best"}

# Weights: the first part of the kind, or "" for all -> regular expressions in the names of tensors, and replacements.
WEIGHTS = {
    "": {r"\bpositions\.table\b": "positions.weight", r"memory_attention\.": "cross_attention."},
    "transformer": {r"^join\.": "combine_positions."},
    "conv": {r"\bseen\.": "output."},
    "rnn": {r"\bhidden\.(weight|bias)": r"recurrent.\1"},
    "captioner": {r"\bhidden\.(weight|bias)": r"recurrent.\1"},
    "bert": {r"\bembedding\.words\.": "embedding.tokens.", r"\bembedding\.sentences\.": "embedding.segments."},
    "vilbert": {
        r"(^|encoder\.)words\.words\.": r"\1text_embedding.tokens.",
        r"(^|encoder\.)words\.sentences\.": r"\1text_embedding.segments.",
        r"(^|encoder\.)words\.": r"\1text_embedding.",
        r"(^|encoder\.)regions\.hidden\.": r"\1region_embedding.inner.",
        r"(^|encoder\.)regions\.": r"\1region_embedding.",
        r"(^|encoder\.)word_blocks\.": r"\1text_blocks.",
        r"(^|encoder\.)meetings\.": r"\1co_attention_layers.",
        r"\bwords_look\.": "text_co_attention.",
        r"\bregions_look\.": "region_co_attention.",
        r"\bwords_read\.": "text_block.",
        r"\bregions_read\.": "region_block.",
        r"^hidden\.": "inner.",
        r"(^|encoder\.)picture\.": r"\1image.",
        r"^kinds\.kinds\.": "region_head.classes.",
        r"^kinds\.": "region_head.",
        r"^fits\.": "matching.",
    },
}


def settings(old: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings of format 1 under their new names, with nested sections."""
    new = {}
    for name, value in old.items():
        key = prefix + name
        if not (key == "model.cell" and isinstance(value, str)):  # of an RNN: gru or lstm, still called so
            name = KEYS.get(key, key).rpartition(".")[2]
        new[name] = settings(value, f"{key}.") if isinstance(value, dict) else value
    return new


def run(old: Mapping[str, Any]) -> dict[str, Any]:
    """The run.json of an old run under today's names; what `vqa` trained by data.ask is a recipe of its own now."""
    new = dict(old)
    if isinstance(old.get("settings"), dict):
        new["settings"] = settings(old["settings"])
    if old.get("recipe") == "vqa" and "ask" in (data := new["settings"]["data"]):
        new["recipe"] = VQA_RECIPES[data.pop("ask")]
        if new["recipe"] == "statements":
            data["statements_per_scene"] = data["questions_per_scene"]
        if new["recipe"] != "vqa":
            del data["questions_per_scene"], data["on_error"]
        if new["recipe"] in ("grounding", "retrieval"):
            del new["settings"]["model"]["labels"]
    return new


def recipe_for(recipe: str, assignments: Sequence[str]) -> str | None:
    """The recipe that trains what `vqa` trained with this data.ask; None: data.ask is not given."""
    asked = [value for key, _, value in (one.partition("=") for one in assignments) if key.strip() == "data.ask"]
    return VQA_RECIPES.get(asked[-1].strip()) if recipe == "vqa" and asked else None


def weights(kind: str, old: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors of a checkpoint of format 1 under their new names: weights, and the optimizer state named after them."""
    patterns = WEIGHTS[""] | WEIGHTS.get(kind.partition("-")[0], {})
    new = {}
    for name, tensor in old.items():
        for pattern, replacement in patterns.items():
            name = re.sub(pattern, replacement, name)
        new[name] = tensor
    return new
