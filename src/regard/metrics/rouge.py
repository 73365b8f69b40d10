"""ROUGE, how much of a reference summary a summary has (Lin 2004), by the library rouge-score."""

from collections import Counter

KINDS = ("rouge1", "rouge2", "rougeL")  # unigrams, bigrams, longest common subsequence


class RougeScorer:
    """Mean F1 of each kind over a corpus that comes pair by pair, 0 to 100; words are stemmed, as in the papers."""

    def __init__(self) -> None:
        from rouge_score.rouge_scorer import RougeScorer as Scorer  # slow to import: it loads nltk

        self.pairs = 0
        self._scorer = Scorer(list(KINDS), use_stemmer=True)
        self._sums: Counter[str] = Counter()

    def add(self, prediction: str, reference: str) -> None:
        self.pairs += 1
        for kind, score in self._scorer.score(reference, prediction).items():
            self._sums[kind] += score.fmeasure

    def scores(self) -> dict[str, float]:
        return {kind: 100 * self._sums[kind] / self.pairs for kind in KINDS}
