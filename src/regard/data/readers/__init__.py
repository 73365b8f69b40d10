"""Readers, one file a format: they stream, check each line or row, and count the bad ones."""
