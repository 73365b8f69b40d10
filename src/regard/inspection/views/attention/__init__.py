"""The views of attention weights, one file each."""
