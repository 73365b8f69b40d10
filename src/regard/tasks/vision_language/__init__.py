"""The task vision_language."""
