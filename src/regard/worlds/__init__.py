"""Worlds we generate, where the true answer is known: sentences, scenes, stories."""
