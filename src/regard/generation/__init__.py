"""Generating with a model: one protocol, one decoding loop, and strategies that are values."""

from regard.generation.decode import Hypothesis, Strategy, generate
from regard.generation.strategies import Beam, Greedy, Sample

__all__ = ["Beam", "Greedy", "Hypothesis", "Sample", "Strategy", "generate"]
