"""The answers of OpenAI's API as dicts: completions, chat completions, and their chunks."""

import time
import uuid
from collections.abc import Sequence
from typing import Any

from regard.server.texts import TokenScore
from regard.tokenizers.text import TextTokenizer

FINGERPRINT = "regard"


class Shape:
    """One answer: its id and time are those of all its chunks."""

    prefix = object_name = chunk_name = ""

    def __init__(self, model: str, tokenizer: TextTokenizer, *, wants_scores: bool, first: str = "") -> None:
        self.model, self.tokenizer, self.wants_scores, self.first = model, tokenizer, wants_scores, first
        self._id = f"{self.prefix}-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def whole(self, choices: list[dict[str, Any]], usage: dict[str, Any]) -> dict[str, Any]:
        return self._head(self.object_name) | {"choices": choices, "usage": usage}

    def chunk(self, choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> dict[str, Any]:
        found = self._head(self.chunk_name) | {"choices": choices}
        return found if usage is None else found | {"usage": usage}

    def _head(self, name: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": name,
            "created": self._created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
        }

    def name_of(self, token: int) -> str:
        """A token's text; one that is no whole character by its bytes, as OpenAI writes them."""
        raw = self.tokenizer.token_bytes.of(token)
        if not raw:
            return self.tokenizer.id_to_token(token) or ""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


class CompletionShape(Shape):
    prefix, object_name, chunk_name = "cmpl", "text_completion", "text_completion"

    def choice(
        self, index: int, text: str, scores: Sequence[TokenScore], finish_reason: str | None, offset: int = 0
    ) -> dict[str, Any]:
        logprobs = self._logprobs(scores, offset) if self.wants_scores else None
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}

    delta = choice

    def _logprobs(self, scores: Sequence[TokenScore], offset: int) -> dict[str, Any]:
        names = [self.name_of(one.token) for one in scores]
        offsets = []
        for name in names:
            offsets.append(offset)
            offset += len(name)
        values = [finite(one.log_probability) for one in scores]
        top = [{self.name_of(token): value for token, value in reversed(one.top)} or None for one in scores]
        return {"tokens": names, "token_logprobs": values, "top_logprobs": top, "text_offset": offsets}


class ChatShape(Shape):
    prefix, object_name, chunk_name = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def choice(
        self, index: int, text: str, scores: Sequence[TokenScore], finish_reason: str | None, offset: int = 0
    ) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": index, "message": message, "logprobs": self._logprobs(scores), "finish_reason": finish_reason}

    def delta(
        self, index: int, text: str, scores: Sequence[TokenScore], finish_reason: str | None, offset: int = 0
    ) -> dict[str, Any]:
        delta = {"content": text} if text or scores else {}
        return {"index": index, "delta": delta, "logprobs": self._logprobs(scores), "finish_reason": finish_reason}

    def begin(self, index: int) -> dict[str, Any]:
        delta = {"role": "assistant", "content": ""}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def _logprobs(self, scores: Sequence[TokenScore]) -> dict[str, Any] | None:
        if not self.wants_scores:
            return None
        return {"content": [self._token(one.token, one.log_probability, one.top) for one in scores], "refusal": None}

    def _token(self, token: int, value: float, top: Sequence[tuple[int, float]] | None) -> dict[str, Any]:
        raw = self.tokenizer.token_bytes.of(token)
        found: dict[str, Any] = {"token": self.name_of(token), "logprob": finite(value), "bytes": list(raw)}
        return found if top is None else found | {"top_logprobs": [self._token(*one, None) for one in top]}


def finite(value: float) -> float | None:
    """JSON has no NaN and no infinity: a probability of 0 is -9999, as OpenAI writes it; one not computed is null."""
    return None if value != value else max(value, -9999.0)


def usage(prompt: int, completion: int, reused: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": reused},
    }
