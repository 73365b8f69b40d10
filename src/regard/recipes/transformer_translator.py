"""The Transformer on the budget of its forerunners: passages of the built-in world, or your own pairs.

regard train transformer-translator -o runs/transformer
regard train transformer-translator pairs.tsv.gz -o runs/mine
"""

from regard.recipes.road import rung

RECIPE = rung("transformer")
