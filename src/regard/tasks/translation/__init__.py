"""The task translation."""
