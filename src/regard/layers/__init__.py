"""The modules every model is built from, over `regard.ops`: attention, masks, positions, embeddings, KV cache, taps."""
