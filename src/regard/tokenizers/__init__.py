"""Tokenizers: text to token ids and back, one file a kind."""
