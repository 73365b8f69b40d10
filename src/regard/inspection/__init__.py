"""Look inside a model: capture its activations, and show them.

capture             watch the taps of a model while it runs
predictions         the logits of a traced input, and the labels of its tokens
lens                the logit lens
decoding            the steps of decoding, their KV cache and their cost
parts               the parts of a model for its block diagram
alignment           attention of a translator or captioner to its input
heat_map            attention weights in the terminal and as figures
attention_overlay   the attention of a captioner drawn over its image
neighbors           nearest neighbors and analogies of word embeddings
map, map_page       word embeddings in two dimensions, as a figure or an HTML page
labels              labels of points that do not overlap
curves              line plots
"""
