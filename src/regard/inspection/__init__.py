"""Looking inside: what was computed, by name, and pictures of it."""
