"""Data we generate, with the true answer known: sentence pairs, stories, scenes."""
