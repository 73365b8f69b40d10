"""English sentences with their Spanish translations and gold word alignments."""
