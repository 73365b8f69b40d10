"""What folders of language models share: common config keys, the tokenizer with its eos ids, the files written.

BERT folders share the config keys.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field
from torch import Tensor

from regard.checkpoint import CONFIG, encode_tensors
from regard.errors import FolderError
from regard.files import encode_json, read_json
from regard.huggingface.folder import GENERATION, WEIGHTS, ForeignConfig
from regard.models.base import CausalLMIds
from regard.tokenizers.missing import MissingTokenizer, has_tokenizer
from regard.tokenizers.text import TextTokenizer
from regard.tokenizers.wordpiece import WordPieceTokenizer

TASK = "language-modeling"
# Their names of activations -> ours; the first with the same meaning is written.
ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}
Activation = Literal["gelu_new", "gelu_pytorch_tanh", "gelu", "relu", "silu", "swish"]

# Decoding settings -> values without effect.
SEARCH: dict[str, tuple[Any, ...]] = {
    "do_sample": (False,),
    "temperature": (1.0,),
    "top_k": (0, 50),  # 50 is the default of `transformers`, without effect unless it samples
    "top_p": (1.0,),
    "typical_p": (1.0,),
    "repetition_penalty": (1.0,),
    "length_penalty": (1.0,),
    "diversity_penalty": (0.0,),
    "num_beams": (1,),
    "num_beam_groups": (1,),
    "num_return_sequences": (1,),
    "max_length": (20,),  # the default of older versions
    "min_length": (0,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "early_stopping": (False,),
    "remove_invalid_values": (False,),
    "output_scores": (False,),
    "return_dict_in_generate": (False,),
}
HARMLESS = {
    *("pad_token_id", "eos_token_id", "bos_token_id", "use_cache", "transformers_version", "_from_model_config"),
    *("output_attentions", "output_hidden_states"),
}


class TextConfig(ForeignConfig):
    """Keys that config.json of every text model may have."""

    bos_token_id: int | None = Field(None, ge=0)
    eos_token_id: int | list[int] | None = None
    # Other values are not supported.
    is_encoder_decoder: Literal[False] = False
    quantization_config: None = None
    pruned_heads: dict[str, Any] | None = Field(None, max_length=0)
    # Decoding settings of older folders; generation_config.json takes precedence.
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    length_penalty: float | None = None
    diversity_penalty: float | None = None
    num_beams: int | None = None
    num_beam_groups: int | None = None
    num_return_sequences: int | None = None
    max_length: int | None = None
    min_length: int | None = None
    no_repeat_ngram_size: int | None = None
    encoder_no_repeat_ngram_size: int | None = None
    early_stopping: bool | None = None
    bad_words_ids: list[list[int]] | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    suppress_tokens: list[int] | None = None
    begin_suppress_tokens: list[int] | None = None
    exponential_decay_length_penalty: Any = None
    remove_invalid_values: bool | None = None
    output_scores: bool | None = None
    return_dict_in_generate: bool | None = None
    # Keys without effect on a trained model, repetitions of the above, and leftovers of older versions.
    architectures: list[str] | None = None
    pad_token_id: int | None = None
    sep_token_id: int | None = None
    unk_token_id: int | None = None
    decoder_start_token_id: int | None = None
    tokenizer_class: str | None = None
    prefix: str | None = None
    initializer_range: float | None = None
    use_cache: bool | None = None
    is_decoder: bool | None = None
    cross_attention_hidden_size: int | None = None
    tie_encoder_decoder: bool | None = None
    chunk_size_feed_forward: int | None = None
    problem_type: str | None = None
    finetuning_task: str | None = None
    task_specific_params: Any = None
    id2label: dict[str, str] | None = None
    label2id: dict[str, int] | None = None
    num_labels: int | None = None
    old_num_labels: int | None = Field(None, alias="_num_labels")
    output_past: bool | None = None
    output_attentions: bool | None = None
    output_hidden_states: bool | None = None
    return_dict: bool | None = None
    torchscript: bool | None = None
    use_bfloat16: bool | None = None
    tf_legacy_loss: bool | None = None
    dtype: str | None = None
    torch_dtype: str | None = None
    transformers_version: str | None = None
    name_or_path: str | None = Field(None, alias="_name_or_path")
    attn_implementation: str | None = Field(None, alias="_attn_implementation")
    attn_implementation_autoset: bool | None = Field(None, alias="_attn_implementation_autoset")
    javascript: Any = Field(None, alias="transformers.js_config")
    unsloth_version: str | None = None
    unsloth_fixed: bool | None = None


class FolderTokenizer(NamedTuple):
    """The tokenizer of a folder, the special ids of its model, and notes on settings that are ignored."""

    tokenizer: TextTokenizer
    special_ids: CausalLMIds
    notes: list[str]


def read_tokenizer(folder: Path, config: TextConfig, vocab_size: int) -> FolderTokenizer:
    """The tokenizer of a folder, with the eos ids of its generation settings."""
    tokenizer = _tokenizer(folder, config, vocab_size)
    check_vocab_size(tokenizer, vocab_size, folder)
    path = folder / GENERATION if (folder / GENERATION).is_file() else folder / CONFIG
    own = read_json(path) if path.name == GENERATION else config.model_dump(exclude_none=True)
    eos = own.get("eos_token_id", config.eos_token_id)
    ends = [eos] if isinstance(eos, int) else eos or []
    if ends:  # the tokenizer's own first: it also ends documents in training
        tokenizer.eos_ids = tuple(sorted(dict.fromkeys(ends), key=lambda end: end != tokenizer.eos_id))
    return FolderTokenizer(tokenizer, special_ids_of(tokenizer), _notes(own, path))


def _tokenizer(folder: Path, config: TextConfig, vocab_size: int) -> Any:
    """The tokenizer of a folder; where there is none, what raises an error when text is given."""
    if has_tokenizer(folder, "tokenizer.json", "vocab.json"):
        return TextTokenizer.from_folder(folder)
    missing = FolderError(f"{folder} has no tokenizer; wanted tokenizer.json, or vocab.json and merges.txt")
    eos = config.eos_token_id[0] if isinstance(config.eos_token_id, list) else config.eos_token_id
    return MissingTokenizer(missing, vocab_size, prepended_bos_id=None, bos_id=config.bos_token_id, eos_id=eos)


def special_ids_of(tokenizer: TextTokenizer) -> CausalLMIds:
    """The special ids for a model config; bos only if the tokenizer prepends it to every text."""
    return CausalLMIds(bos_id=tokenizer.prepended_bos_id, eos_id=tokenizer.eos_id)


def activation_name(ours: str) -> str:
    """Their name of an activation of ours."""
    return next(theirs for theirs, name in ACTIVATIONS.items() if name == ours)


def check_vocab_size(tokenizer: TextTokenizer | WordPieceTokenizer, vocab_size: int, path: Path) -> None:
    if tokenizer.vocab_size > vocab_size:
        raise FolderError(
            f"{path}: the tokenizer has {tokenizer.vocab_size} tokens, the model only {vocab_size} ids; copy it again"
        )


def _notes(own: Mapping[str, Any], path: Path) -> list[str]:
    """One line for each setting that would change the generated text."""
    wanted = own.keys() & SEARCH.keys() if path.name == CONFIG else own.keys() - HARMLESS
    return [
        f"{path}: {key} is {own[key]!r}: ignored by default"
        for key in sorted(wanted)
        if own[key] not in (None, [], {}, *SEARCH.get(key, ()))
    ]


def folder_files(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], tokenizer: TextTokenizer
) -> dict[str, bytes]:
    """The files of a folder that `transformers` opens; config.json gets the special ids of the tokenizer."""
    ends = list(tokenizer.eos_ids)
    ids = {
        "bos_token_id": tokenizer.bos_id,
        "eos_token_id": None if not ends else ends[0] if len(ends) == 1 else ends,
    }
    return {
        CONFIG: encode_json({**config, **ids, "pad_token_id": None, "dtype": "float32"}),
        GENERATION: encode_json(ids),
        WEIGHTS: encode_tensors(tensors, {"format": "pt"}),
        **tokenizer.to_files(),
    }
