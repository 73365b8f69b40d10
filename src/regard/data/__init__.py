"""From files to batches: readers of formats, memory-mapped stores, splits, and batches in a resumable order."""
