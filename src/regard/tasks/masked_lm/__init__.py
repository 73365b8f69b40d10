"""The task masked_lm."""
