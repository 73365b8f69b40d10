"""The leaves every model is built from: attention, masks, positions, embeddings, caches, taps.

They import torch and `regard.errors`, nothing else of the package.
"""
