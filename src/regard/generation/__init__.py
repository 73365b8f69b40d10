"""Generating with a model: one protocol, one decoding loop, and strategies that are values."""

from regard.generation.decode import Hypothesis, Strategy, generate
from regard.generation.speculative import DraftModel, PromptLookup
from regard.generation.strategies import Beam, Greedy, Sample

__all__ = ["Beam", "DraftModel", "Greedy", "Hypothesis", "PromptLookup", "Sample", "Strategy", "generate"]
