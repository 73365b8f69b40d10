"""How far several texts for one prompt agree with each other."""

from collections.abc import Sequence

from sacrebleu import CHRF


def agreement(texts: Sequence[str]) -> list[float]:
    """For each text the mean chrF of it and each of the others, 0 to 100: where most say the same, that wins.

    The vote of self-consistency (Wang 2023) for texts that are seldom equal letter by letter.
    """
    chrf = CHRF()
    return [
        sum(chrf.sentence_score(text, [other]).score for j, other in enumerate(texts) if j != i)
        / max(1, len(texts) - 1)
        for i, text in enumerate(texts)
    ]
