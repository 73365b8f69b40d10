"""Text to token ids and back: one file a kind of tokenizer, each behind the same small interface."""
