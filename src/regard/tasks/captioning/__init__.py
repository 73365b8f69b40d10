"""The task captioning."""
