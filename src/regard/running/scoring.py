"""Score a translator's folder on a test set: the user's, or what the run held out."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.data.batches import collate_padded
from regard.data.pairs import BadLines, read_pairs
from regard.errors import DataError
from regard.evaluation.evaluate import heldout_loss
from regard.files import read_json
from regard.generation import Strategy
from regard.metrics.alignment import ErrorCounts, count_errors
from regard.metrics.translation import bleu, chrf, exact_match
from regard.running import load
from regard.running.translator import Translator
from regard.worlds.sentences import Pair, sentences
