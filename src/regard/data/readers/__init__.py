"""Readers, one file a format: they stream the user's files, check every row, and report the bad ones."""
