"""`regard run` on a language model: each prompt with its continuation, streamed where there is one text only."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from regard.generation import Beam, Strategy
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.language_modeling import LanguageModelOptions
from regard.tasks.language_modeling.drafting import with_draft
from regard.tasks.language_modeling.pipeline import Generation, TextGenerator, Token


def run(pipeline: TextGenerator, request: RunRequest) -> Iterator[Answer | Note]:
    options: LanguageModelOptions = request.options
    strategy = options.strategy(pipeline.strategy, scored=request.as_json)
    if options.draft is not None:
        strategy = with_draft(strategy, options.draft, pipeline)
    prompts = list(request.inputs)
    settings = _settings(options)
    streams = request.on_text is not None and _is_single_text(prompts, strategy) and not options.log_probabilities
    if streams:
        assert request.on_text is not None
        settings["on_text"] = _after_prompt("" if options.chat else prompts[0], request.on_text)
    if options.chat:
        found = [pipeline.chat([{"role": "user", "content": prompt}], strategy, **settings) for prompt in prompts]
    else:
        found = pipeline.run_all(prompts, strategy, **settings)
    for number, (prompt, one) in enumerate(zip(prompts, found, strict=True), 1):
        tokens = None
        if options.log_probabilities:
            tokens = [pipeline.log_probabilities(one.ids, text.tokens) for text in one.texts]
        title = f"prompt {number}" if len(found) > 1 else ""
        shown = "" if streams else _show(one, tokens, title, "" if options.chat else prompt)
        yield Answer(shown, _as_dict(one, tokens))
    if any(text.forgot for one in found for text in one.texts):
        yield Note(
            f"a text outgrew the context of {pipeline.context} tokens: its end was generated without its beginning"
        )


def _settings(options: LanguageModelOptions) -> dict[str, Any]:
    named = {"max_new_tokens": options.max_new_tokens, "stop": options.stop, "best_by": options.best_by}
    truncate = {"truncate": True} if options.truncate else {}
    return {name: value for name, value in named.items() if value is not None} | truncate


def _is_single_text(prompts: list[str], strategy: Strategy) -> bool:
    return len(prompts) == 1 and getattr(strategy, "num_samples", 1) == 1 and not isinstance(strategy, Beam)


def _after_prompt(prompt: str, on_text: Callable[[str], None]) -> Callable[[str], None]:
    """`on_text` with the prompt before the first text: nothing is shown of a prompt that is refused."""
    waiting = [prompt]

    def stream(text: str) -> None:
        on_text((waiting.pop() if waiting else "") + text)

    return stream


def _show(found: Generation, tokens: list[list[Token]] | None, title: str, prompt: str) -> str:
    """Every text of a prompt, the best first, after the prompt."""
    lines = [f"# {title}"] if title else []
    for number, text in enumerate(found.texts):
        if len(found.texts) > 1:
            lines.append(f"# {number + 1} of {len(found.texts)}: score {text.score:.3f}, {len(text.tokens)} tokens")
        lines.append(prompt + text.text)
        lines += [f"  {one.log_probability:8.3f}  {one.text}" for one in (tokens[number] if tokens else [])]
    return "\n".join(lines)


def _as_dict(found: Generation, tokens: list[list[Token]] | None) -> dict[str, Any]:
    texts: list[dict[str, Any]] = [
        {
            "text": text.text,
            "tokens": text.tokens,
            "score": text.score,
            "log_probability": text.log_probability,
            "ended": text.ended,
            "forgot": text.forgot,
        }
        for text in found.texts
    ]
    for text, several in zip(texts, tokens or [], strict=False):
        text["log_probabilities"] = [
            [one.text, None if math.isnan(one.log_probability) else one.log_probability] for one in several
        ]
    return {"prompt": found.prompt, "texts": texts}
