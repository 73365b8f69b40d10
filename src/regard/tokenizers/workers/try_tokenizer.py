"""Tries a tokenizer.json on a few texts, a line of JSON each way; run by `regard.sandbox.Worker`, never imported."""

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tokenizers

TEXTS = ["", " ", "a", "Hello, world! 123", "déjà vu · 你好 🙂\n\tx", "a" * 200, "the quick brown fox " * 50]


def bound_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the bound on time remains
        return
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def bound_time(seconds: float) -> None:
    """End this process after so many seconds of processor time from now on; 0: no longer."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)


def failure(content: str) -> str | None:
    """What goes wrong with this tokenizer, or None."""
    import tokenizers

    try:
        core = tokenizers.Tokenizer.from_str(content)
        for special in (False, True):
            for text in TEXTS:
                encode_and_decode(core, text, special)
        for number in range(min(core.get_vocab_size(), 64)):
            core.decode([number])
    except BaseException as error:  # a panic of the library is not an Exception
        return str(error)[:300] or type(error).__name__
    return None


def encode_and_decode(core: "tokenizers.Tokenizer", text: str, special: bool) -> None:
    try:
        ids = core.encode(text, add_special_tokens=special).ids
    except Exception:  # a text it has no tokens for: that is an error of the text
        return
    core.decode(ids, skip_special_tokens=special)


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    bound_memory(int(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        bound_time(float(sys.argv[2]))
        print(json.dumps({"failure": failure(json.loads(line))}), flush=True)
        bound_time(0)


main()
