"""Look inside a model: capture its activations, and show them.

capture             watch the taps of a model while it runs
alignment           attention of a translator or captioner to its input
heat_map            attention weights in the terminal and as figures
attention_overlay   the attention of a captioner drawn over its image
neighbors           nearest neighbors and analogies of word embeddings
map, map_page       word embeddings in two dimensions, as a figure or an HTML page
labels              labels of points that do not overlap
curves              line plots
"""
