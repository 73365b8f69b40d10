"""Structured outputs: JSON of a schema, by llguidance, which says at each token what may come next."""

import json
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from llguidance import LLMatcher, LLTokenizer
from torch import Tensor

from regard.server.errors import APIError
from regard.server.routes.openai_requests import ResponseFormat

MAX_SCHEMA = 100_000  # characters


class Grammars:
    """The grammar of one response format, for one tokenizer; `start` begins a text."""

    def __init__(self, tokenizer: LLTokenizer, grammar: str) -> None:
        self._tokenizer, self._grammar = tokenizer, grammar
        self.start()  # a wrong schema is an error now

    def start(self) -> "SchemaGrammar":
        matcher = LLMatcher(self._tokenizer, self._grammar)
        if matcher.is_error():
            reason = " ".join(matcher.get_error().split())[:300]
            raise APIError(400, f"the schema cannot be followed: {reason}", param="response_format")
        return SchemaGrammar(matcher, self._tokenizer.vocab_size)


class SchemaGrammar:
    """What the next token of one text may be."""

    def __init__(self, matcher: LLMatcher, vocab_size: int) -> None:
        self._matcher, self._vocab_size = matcher, vocab_size

    def mask(self) -> Tensor:
        """(V,) True: allowed."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        return torch.from_numpy(np.unpackbits(bits, bitorder="little")[: self._vocab_size].astype(bool))

    def accept(self, token: int) -> None:
        self._matcher.consume_token(token)

    @property
    def is_done(self) -> bool:
        return bool(self._matcher.is_stopped())


def grammars_of(tokenizer: Any, format: ResponseFormat | None) -> Grammars | None:
    """What a response format asks for; None: any text. APIError for a schema that cannot be followed."""
    if format is None or format.type == "text":
        return None
    schema: Any = {"type": "object"}
    if format.json_schema is not None:
        schema = format.json_schema.json_schema
    if len(json.dumps(schema)) > MAX_SCHEMA:
        raise APIError(400, f"the schema is larger than {MAX_SCHEMA:,} characters", param="response_format")
    try:
        grammar = LLMatcher.grammar_from_json_schema(schema)
    except ValueError as error:
        raise APIError(400, f"the schema cannot be followed: {error}", param="response_format") from error
    return Grammars(_tokenizer_of(tokenizer), grammar)


def _tokenizer_of(tokenizer: Any) -> LLTokenizer:
    """The tokenizer as llguidance has it, made once."""
    if tokenizer not in _made:
        _made[tokenizer] = LLTokenizer(
            tokenizer.to_json(), n_vocab=tokenizer.vocab_size, eos_token=list(tokenizer.eos_ids)
        )
    return _made[tokenizer]


_made: WeakKeyDictionary[Any, LLTokenizer] = WeakKeyDictionary()
