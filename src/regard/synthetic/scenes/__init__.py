"""Drawn scenes with their captions, questions, statements and referring phrases."""
