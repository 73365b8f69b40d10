"""`regard run --draft`: speculative decoding with prompt look-up or a smaller model."""

from dataclasses import replace

from regard.errors import ConfigError, InputError
from regard.generation import DraftModel, Greedy, PromptLookup, Sample, Strategy
from regard.generation.engine import Engine
from regard.generation.speculative import Draft
from regard.tasks.language_modeling.pipeline import TextGenerator

PROMPT = "prompt"


def with_draft(strategy: Strategy, name: str, pipeline: TextGenerator) -> Strategy:
    """The strategy with a draft: "prompt" for prompt look-up, else a model folder or file."""
    if not isinstance(strategy, Greedy | Sample):
        raise ConfigError(f"--draft {name} is for greedy decoding and sampling; leave out --num-beams")
    draft: Draft = PromptLookup() if name == PROMPT else DraftModel(_engine(name, pipeline))
    return replace(strategy, draft=draft)


def _engine(name: str, pipeline: TextGenerator) -> Engine:
    from regard.tasks.loading import load

    found = load(name, precision="stored")
    if not isinstance(found, TextGenerator):
        raise InputError(f"--draft {name} is no language model; wanted one with the same tokens, or --draft {PROMPT}")
    if found.tokenizer.tokens() != pipeline.tokenizer.tokens():
        raise InputError(
            f"--draft {name} has other tokens than the model (it has {found.tokenizer.vocab_size:,}, the model "
            f"{pipeline.tokenizer.vocab_size:,}); wanted a smaller model of the same family, or --draft {PROMPT}"
        )
    engine = found.engine()
    if engine is None:
        raise InputError(f"--draft {name} has no recorded step here (--debug says why); try --draft {PROMPT}")
    return engine
