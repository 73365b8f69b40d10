"""A recurrent translator whose decoder gets the encoder's last state and nothing more: s₀ = h_T.

    regard train rnn-translator -o runs/rnn
    regard train rnn-translator pairs.tsv.gz -o runs/mine

On passages of one to four sentences of the built-in world: 1.0 million parameters; 800 steps, about two and a half
minutes on two cores (10,600 target tokens a second). BLEU 10.5 ± 0.7 and 1.8 % exactly right on 1,000 held-out
passages, three seeds: 38 where a passage has up to five words, 6 where it has more than thirty. The fall with length
is the bottleneck, and the reason for what comes next; that it begins at 38 says that the model is undertrained, too. On
your pairs: about four million parameters, 3,000 steps. `regard compare` sets it beside the others.
"""

from regard.recipes.road import rung

RECIPE = rung("rnn")
