"""Pictures: checked and decoded, brought to one size, made numbers for a model."""
