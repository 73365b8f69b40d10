"""The task tagging."""
