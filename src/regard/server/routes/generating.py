"""From a request to the texts it asks for: prompts as ids, limits, and how tokens are chosen."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from regard.errors import InputError
from regard.server.errors import APIError
from regard.server.routes.openai_requests import ChatBody, CompletionBody, GenerationBody
from regard.server.structured import Grammars
from regard.server.texts import Sampling, Send, Text
from regard.server.workers import Pieces, Workers
from regard.tasks.language_modeling.pipeline import TextGenerator, TextStream
from regard.tokenizers.chat import apply_chat_template

LONG = 4_000  # characters of a prompt that are tokenized off the event loop
MAX_TEXTS = 128  # of one request
LEAST = 1e-4  # of a temperature, a probability, a penalty: what is smaller is as good as this, or as zero
MAX_TRACED = 1024  # tokens


@dataclass
class Asked:
    """The texts of one request."""

    texts: list[Text]
    prompts: list[list[int]]
    pieces: Pieces
    num_choices: int  # of each prompt

    @property
    def num_prompt_tokens(self) -> int:
        return sum(map(len, self.prompts))


def generator_of(workers: Workers, name: str) -> TextGenerator:
    """The pipeline of a language model; APIError for a model of another task."""
    served = workers.served(name)
    if served.pipeline.model.interface != "causal_lm":
        message = f"the model {name} is for {served.task.name}; this route needs a language model"
        raise APIError(400, message, param="model", code="wrong_model")
    found: TextGenerator = served.pipeline
    return found


async def encode(pipeline: TextGenerator, prompt: str, param: str, *, specials: bool = False) -> list[int]:
    """The ids of a prompt; APIError with the name of its field where it has none, or too many."""
    try:
        if len(prompt) <= LONG:
            return pipeline.encode(prompt, specials=specials)
        return await to_thread.run_sync(lambda: pipeline.encode(prompt, specials=specials))
    except InputError as error:
        message = str(error).partition("; `regard run`")[0]
        raise APIError(400, message, param=param, code="context_length_exceeded") from error


async def completion_prompts(pipeline: TextGenerator, body: CompletionBody) -> list[list[int]]:
    given: Any = body.prompt
    several: list[Any] = [given] if isinstance(given, str) or isinstance(given[0], int) else given
    return [
        await encode(pipeline, one, "prompt") if isinstance(one, str) else check_ids(pipeline, one, "prompt")
        for one in several
    ]


def check_ids(pipeline: Any, ids: list[int], param: str) -> list[int]:
    most = pipeline.tokenizer.vocab_size
    wrong = next((number for number in ids if number >= most), None)
    if wrong is not None:
        raise APIError(400, f"{param} has the token {wrong}, wanted less than {most:,}", param=param)
    return ids


async def chat_prompt(pipeline: TextGenerator, body: ChatBody) -> list[int]:
    """The rendered conversation. A template is a program: it runs in a process of its own, within bounds."""
    template = pipeline.tokenizer.chat_template
    if template is None:
        message = f"the model {body.model} has no chat template; use /v1/completions"
        raise APIError(400, message, param="model", code="no_chat_template")
    messages = [{"role": _role(one.role), "content": _content(one.content, n)} for n, one in enumerate(body.messages)]
    names = [pipeline.tokenizer.id_to_token(n) for n in (pipeline.tokenizer.bos_id, pipeline.tokenizer.eos_id)]

    def render() -> str:
        return apply_chat_template(template, messages, bos_token=names[0], eos_token=names[1])

    try:
        prompt = await to_thread.run_sync(render)
    except InputError as error:
        raise APIError(400, str(error), param="messages") from error
    return await encode(pipeline, prompt, "messages", specials=True)


def _role(role: str) -> str:
    return "system" if role == "developer" else role


def _content(content: Any, number: int) -> str:
    if isinstance(content, str):
        return content
    for place, part in enumerate(content):
        param = f"messages.{number}.content.{place}"
        if part.type != "text":
            raise APIError(400, f"{param} is of type {part.type}; this model takes text only", param=param)
        if part.text is None:
            raise APIError(400, f"{param} has no text", param=f"{param}.text")
    return "".join(part.text for part in content)


def make_texts(
    workers: Workers,
    body: GenerationBody,
    prompts: Sequence[list[int]],
    *,
    max_tokens: int | None,
    num_top: int | None,
    num_choices: int,
    scores_prompt: bool = False,
    grammars: Grammars | None = None,
) -> Asked:
    """The texts of a request, one for each prompt and choice; APIError where they do not fit."""
    pipeline = generator_of(workers, body.model)
    if len(prompts) * num_choices > MAX_TEXTS:
        message = f"{len(prompts)} prompts with {num_choices} choices each, at most {MAX_TEXTS} texts wanted"
        raise APIError(400, message, param="n")
    for prompt in prompts:
        check_fits(pipeline, prompt, max_tokens, traced=body.trace)
    sampling = sampling_of(body, pipeline)
    pieces = Pieces(workers.text_lane(body.model))
    deadline = time.monotonic() + workers.settings.request_seconds
    texts = []
    for row, prompt in enumerate(prompts):
        for sample in range(num_choices):
            index = row * num_choices + sample
            room = pipeline.context - len(prompt)
            texts.append(
                _text(
                    pipeline,
                    body,
                    index,
                    prompt,
                    pieces.send,
                    max_new_tokens=room if max_tokens is None else max_tokens,
                    sampling=sampling,
                    deadline=deadline,
                    sample=sample,
                    row=row,
                    num_top=num_top,
                    scores_prompt=scores_prompt,
                    grammar=None if grammars is None else grammars.start(),
                )
            )
    return Asked(texts, list(prompts), pieces, num_choices)


def _text(
    pipeline: TextGenerator, body: GenerationBody, index: int, prompt: list[int], send: Send, **others: Any
) -> Text:
    parts: list[str] = []
    stream = TextStream(pipeline.tokenizer, prompt, body.stops, parts.append if body.stream else None)
    text = Text(index=index, prompt=prompt, send=send, stream=stream, streams=bool(body.stream), **others)
    text.parts = parts
    return text


def check_fits(pipeline: TextGenerator, prompt: Sequence[int], max_tokens: int | None, *, traced: bool) -> None:
    """APIError where prompt and new tokens do not fit in the context."""
    wanted = 1 if max_tokens is None else max_tokens
    if len(prompt) + wanted > pipeline.context:
        raise APIError(
            400,
            f"the prompt has {len(prompt):,} tokens and {wanted:,} more are asked for, together more than this model's "
            f"context of {pipeline.context:,}; shorten one of them",
            param="max_tokens" if len(prompt) < pipeline.context else None,
            code="context_length_exceeded",
        )
    if traced and len(prompt) + (max_tokens if max_tokens is not None else MAX_TRACED) > MAX_TRACED:
        raise APIError(
            400, f"a trace is of at most {MAX_TRACED:,} tokens; set max_tokens, or shorten it", param="trace"
        )


def sampling_of(body: GenerationBody, pipeline: TextGenerator) -> Sampling:
    def given(value: float | None, default: float) -> float:
        return default if value is None else float(value)

    most = pipeline.tokenizer.vocab_size
    bias = tuple((int(token), float(value)) for token, value in (body.logit_bias or {}).items())
    for token, _ in bias:
        if token >= most:
            raise APIError(400, f"logit_bias has the token {token}, wanted less than {most:,}", param="logit_bias")
    # The lanes flush denormal numbers to zero, and a division by almost zero is no number.
    temperature, top_p, penalty = (given(one, 1.0) for one in (body.temperature, body.top_p, body.repetition_penalty))
    seed = secrets.randbits(63) if body.seed is None else body.seed % 2**63
    return Sampling(
        temperature=temperature if temperature >= LEAST else 0.0,
        top_p=max(top_p, LEAST),
        top_k=body.top_k,
        min_p=given(body.min_p, 0.0) if given(body.min_p, 0.0) >= LEAST else 0.0,
        repetition_penalty=max(penalty, LEAST),
        presence_penalty=given(body.presence_penalty, 0.0),
        frequency_penalty=given(body.frequency_penalty, 0.0),
        logit_bias=bias,
        seed=seed,
    )
