"""A convolutional translator: gated windows, and attention in every decoder layer (Gehring 2017).

regard train conv-translator -o runs/conv
regard train conv-translator pairs.tsv.gz -o runs/mine
"""

from regard.recipes.road import rung

RECIPE = rung("conv")
