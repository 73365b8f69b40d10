"""Layers for images: encoders that turn an image into a grid of vectors, and regions as tokens."""
