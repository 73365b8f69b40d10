"""Word embeddings and text embeddings as maps: nearest neighbors, two dimensions, labels that do not overlap."""
