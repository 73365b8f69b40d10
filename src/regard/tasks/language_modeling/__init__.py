"""The task language_modeling."""
