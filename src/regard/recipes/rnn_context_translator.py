"""A recurrent translator with a fixed context: the last state goes into every step of the decoder.

regard train rnn-context-translator -o runs/rnn-context
regard train rnn-context-translator pairs.tsv.gz -o runs/mine
"""

from regard.recipes.road import rung

RECIPE = rung("rnn-context")
