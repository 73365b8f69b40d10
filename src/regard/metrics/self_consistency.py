"""Self-consistency: how far several generated texts for one prompt agree (Wang 2023)."""

from collections.abc import Sequence


def self_consistency(texts: Sequence[str]) -> list[float]:
    """For each text the mean chrF against each of the others, 0 to 100; the highest wins the vote.

    Wang 2023 votes by equal answers; chrF extends the vote to texts that are seldom equal letter by letter.
    """
    from sacrebleu import CHRF  # loaded when several texts are compared, not whenever one is generated

    chrf = CHRF()
    return [
        sum(chrf.sentence_score(text, [other]).score for j, other in enumerate(texts) if j != i)
        / max(1, len(texts) - 1)
        for i, text in enumerate(texts)
    ]
