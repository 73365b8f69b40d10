"""Text to numbers and back: tokenizers behind one small interface."""
