"""From files to batches: readers, one a format; memory-mapped datasets; splits; batches in a resumable order."""
