"""generation_config.json of an encoder-decoder, read and written: how texts are decoded by default."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint import CONFIG
from regard.errors import FolderError
from regard.files import encode_json, read_json
from regard.huggingface.folder import GENERATION, ForeignConfig

MAX_LENGTH_PENALTY = 10  # as Beam takes it
SPECIAL_IDS = ("pad_token_id", "eos_token_id", "decoder_start_token_id")
FOLLOWED = {"num_beams", "max_length", "length_penalty", "forced_eos_token_id", "renormalize_logits"}
HARMLESS = {
    *(*SPECIAL_IDS, "bos_token_id", "use_cache", "transformers_version"),
    *("output_attentions", "output_hidden_states", "_from_model_config"),
}


def search_settings(folder: Path, config: ForeignConfig) -> dict[str, Any]:
    """The search settings of a folder, as keywords of Loaded; `config` has the SPECIAL_IDS that the model uses.

    They are in generation_config.json, or in config.json where there is no such file.
    """
    has_own_file = (folder / GENERATION).is_file()
    path = folder / (GENERATION if has_own_file else CONFIG)
    own = read_json(path) if has_own_file else config.model_dump(exclude_none=True)
    beams = _number(own, "num_beams", path, least=1) or 1
    penalty = _number(own, "length_penalty", path, least=0, most=MAX_LENGTH_PENALTY if beams > 1 else math.inf)
    longest = _number(own, "max_length", path, least=2)
    force_eos = own.get("forced_eos_token_id") is not None
    special_ids = {key: getattr(config, key) for key in SPECIAL_IDS}
    ignored = [key for key, value in own.items() if has_own_file and value and key not in FOLLOWED | HARMLESS]
    ignored += [key for key, used in special_ids.items() if own.get(key) not in (None, used, [used])]
    if own.get("bad_words_ids") in (None, [[special_ids["pad_token_id"]]]):  # padding is never generated anyway
        ignored = [key for key in ignored if key != "bad_words_ids"]
    return {
        "num_beams": int(beams),
        "length_penalty": 1.0 if penalty is None else float(penalty),
        # max_length counts the start token, and the end where it is forced. Without it the source's length decides.
        "max_new_tokens": None if longest is None else max(1, int(longest) - (2 if force_eos else 1)),
        "force_eos": force_eos,
        "renormalize": bool(own.get("renormalize_logits")),
        "notes": [f"{path}: {', '.join(sorted(ignored))}: not followed"] if ignored else [],
    }


def generation_file(
    config: Mapping[str, Any],
    *,
    max_length: int,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    max_new_tokens: int | None = None,
    force_eos: bool = False,
    renormalize: bool = False,
) -> bytes:
    """generation_config.json beside a config.json; `max_length` where the model has no `max_new_tokens` of its own."""
    settings = {
        "num_beams": num_beams,
        "length_penalty": length_penalty,
        "max_length": max_length if max_new_tokens is None else max_new_tokens + (2 if force_eos else 1),
        "bad_words_ids": [[config["pad_token_id"]]],
        "renormalize_logits": renormalize,
        **{key: config[key] for key in SPECIAL_IDS},
        "forced_eos_token_id": config["eos_token_id"] if force_eos else None,
    }
    return encode_json(settings)


def _number(
    settings: Mapping[str, Any], name: str, path: Path, *, least: float, most: float = math.inf
) -> float | None:
    value = settings.get(name)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not number or not least <= value <= most:
        upto = "on" if most == math.inf else f"to {most:g}"
        raise FolderError(f"{path}: {name} is {value!r}, wanted a number from {least:g} {upto}")
    return value
