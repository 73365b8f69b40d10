"""The commands that serve models in a browser."""
