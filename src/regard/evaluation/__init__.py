"""Measuring a model: what it scores, what it costs, which laws it keeps."""
