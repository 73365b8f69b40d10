"""A recurrent translator with attention: a context vector for every step (Bahdanau 2015).

regard train rnn-attention-translator -o runs/rnn-attention
regard train rnn-attention-translator pairs.tsv.gz -o runs/mine
"""

from regard.recipes.road import rung

RECIPE = rung("rnn-attention")
