"""Look inside a model: capture its activations, and show them.

capture             watch the taps of a model while it runs
trace, tracing      the inner values of one pass as a file
interventions       switch heads off, force or patch values, and measure the effect
patterns            what a head does, in one word; attention rollout
projections         queries, keys and values of one head from its matrices
views               one file a view of `regard show`
drawing             draw a figure as SVG, PNG, PDF, HTML and text
examples            the figures of the lectures, without a model
predictions         the logits of a traced input, and the labels of its tokens
lens                the logit lens
decoding            the steps of decoding, their KV cache and their cost
parts               the parts of a model for its block diagram
alignment           attention of a translator or captioner to its input
heat_map            attention weights in the terminal and as figures
attention_overlay   the attention of a captioner drawn over its image
maps                embeddings in two dimensions, and nearest neighbors
curves              line plots
"""
