"""A recurrent translator whose decoder gets the encoder's last state and nothing more: s₀ = h_T.

regard train rnn-translator -o runs/rnn
regard train rnn-translator pairs.tsv.gz -o runs/mine
"""

from regard.recipes.road import rung

RECIPE = rung("rnn")
