"""Datasets on disk: tokenized or preprocessed once, cached, memory-mapped."""
