"""The user's files, from sentence pairs on disk to batches of numbers in an order that can be resumed."""
