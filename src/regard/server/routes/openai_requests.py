"""The bodies of OpenAI's API, as far as this server takes them."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from regard.server.requests import Body

MAX_TEXT = 2_000_000
MAX_INPUTS = 2048
MAX_SEED = 2**63 - 1
String = Annotated[str, Field(max_length=MAX_TEXT)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]
TokenIds = Annotated[list[TokenId], Field(min_length=1, max_length=1_000_000)]
Stop = Annotated[str, Field(min_length=1, max_length=1000)]
Bias = Annotated[float, Field(ge=-100, le=100)]


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: bool = False


class GenerationBody(Body):
    """What completions and chat have in common."""

    model: str = Field(max_length=200)
    temperature: float | None = Field(1.0, ge=0, le=2, description="0: the most probable token")
    top_p: float | None = Field(1.0, gt=0, le=1)
    top_k: int | None = Field(None, ge=1, le=2**31 - 1)
    min_p: float | None = Field(0.0, ge=0, le=1)
    n: int | None = Field(1, ge=1, le=8)
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] | None = None
    seed: int | None = Field(None, ge=-MAX_SEED, le=MAX_SEED, description="the same seed gives the same text")
    presence_penalty: float | None = Field(0.0, ge=-2, le=2)
    frequency_penalty: float | None = Field(0.0, ge=-2, le=2)
    repetition_penalty: float | None = Field(1.0, gt=0, le=10)
    logit_bias: dict[str, Bias] | None = Field(None, max_length=1000, description="token id -> -100 to 100")
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    user: str | None = Field(None, max_length=1000, description="ignored")
    trace: bool = Field(False, description="answer with the id of a trace: GET /api/trace/ID")

    @model_validator(mode="after")
    def _check(self) -> Any:
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options needs stream: true; leave it out")
        for token in self.logit_bias or {}:
            if not token.isascii() or not token.isdecimal() or len(token) > 10:
                raise ValueError(f"logit_bias has the key {token[:40]!r}, wanted the number of a token")
        return self

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or [])


class CompletionBody(GenerationBody):
    """POST /v1/completions."""

    prompt: (
        String
        | Annotated[list[String], Field(min_length=1, max_length=MAX_INPUTS)]
        | TokenIds
        | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_INPUTS)]
    )
    max_tokens: int | None = Field(16, ge=0, le=2**31 - 1)
    logprobs: int | None = Field(None, ge=0, le=20)
    echo: bool | None = False
    best_of: int | None = Field(None, ge=1, le=8)

    @model_validator(mode="after")
    def _check_best_of(self) -> Any:
        if self.best_of is not None and self.best_of < (self.n or 1):
            raise ValueError(f"best_of is {self.best_of}, wanted at least n, which is {self.n or 1}")
        if self.best_of is not None and self.best_of > (self.n or 1) and self.stream:
            raise ValueError("best_of cannot be streamed: the best text is known only at the end")
        return self


class ContentPart(Body):
    type: Literal["text", "image_url", "input_audio", "file", "refusal"]
    text: String | None = None
    image_url: Any = None
    input_audio: Any = None
    file: Any = None
    refusal: Any = None


class Message(Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: String | Annotated[list[ContentPart], Field(min_length=1, max_length=100)]
    name: str | None = Field(None, max_length=200)


class JSONSchema(Body):
    name: str = Field(max_length=64)
    json_schema: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None
    description: String | None = None


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JSONSchema | None = None

    @model_validator(mode="after")
    def _check(self) -> Any:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("response_format of type json_schema, and only that, has the field json_schema")
        return self


class ChatBody(GenerationBody):
    """POST /v1/chat/completions."""

    messages: list[Message] = Field(min_length=1, max_length=1000)
    max_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    max_completion_tokens: int | None = Field(None, ge=1, le=2**31 - 1)
    logprobs: bool | None = False
    top_logprobs: int | None = Field(None, ge=0, le=20)
    response_format: ResponseFormat | None = None

    @model_validator(mode="after")
    def _check_logprobs(self) -> Any:
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("top_logprobs needs logprobs: true")
        return self


class EmbeddingBody(Body):
    """POST /v1/embeddings."""

    model: str = Field(max_length=200)
    input: (
        String
        | Annotated[list[String], Field(min_length=1, max_length=MAX_INPUTS)]
        | TokenIds
        | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_INPUTS)]
    )
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = Field(None, ge=1)
    user: str | None = Field(None, max_length=1000, description="ignored")
