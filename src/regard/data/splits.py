"""The training/validation split: a hash of the example decides, so no example is ever on both sides."""

import hashlib
import unicodedata


def is_validation(text: str, fraction: float) -> bool:
    """Whether an example belongs to the validation set, for this fraction of all examples.

    Depends only on its text (of a pair, the source), regardless of case and spacing.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    digest = hashlib.blake2b(" ".join(folded.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < fraction * 2**64


def validation_fraction(examples: int, validation: int | None) -> float:
    """The fraction for `is_validation` that holds out about `validation` examples, at most a tenth.

    None: a twentieth of them, but 100 at least and 2,000 at most.
    """
    if validation is None:
        validation = min(max(examples // 20, 100), 2000)
    return min(validation / examples, 0.1) if examples else 0.0
