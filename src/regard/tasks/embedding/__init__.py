"""The task embedding."""
