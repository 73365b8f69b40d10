"""Stores: data tokenized or decoded once, kept on disk and memory-mapped."""
