"""What every encoder shares, whatever head it has: rows of tokens, vectors, the pipeline, `run` and traces."""
