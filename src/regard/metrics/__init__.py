"""Scores: pure functions over lists, on the field's own libraries."""
