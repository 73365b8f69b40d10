"""Metrics: pure functions over lists of predictions and references, on the field's own libraries."""
